// Package bridge connects an editor, which speaks over frames such as standard
// input and output, with a gateway, which may be slow to start, may be cut off
// and may come back. The editor notices a pause and nothing else.
//
// Frames pass as they are, but for what this package has a file for:
//
//   - early.go: initialize is answered while the gateway still starts.
//   - decorate.go: session requests and prompts get what flags say.
//   - recover.go: after a link that cannot be taken up again the sessions are;
//     seen.go: what the editor missed is told; again.go: what it asked is asked
//     again or refused; questions.go: what it was asked is taken back.
//
// A gateway with links (package tether) needs no recovery for a cut: not a
// frame is lost, and nobody has to know. Recovery is for gateways without, for
// one that was started anew, and for who was away too long.
//
// Goroutines: E reads the editor (editor.go), W writes to the gateway
// (outbox.go), and Run reads the gateway and dials (gateway.go, dial.go). What
// they share is in book.go.
package bridge

import (
	"cmp"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/berth-dev/berth/adapters/jsonrpc"
	"github.com/berth-dev/berth/adapters/jsonrpc/tether"
)

// DrainLimit is how long requests may be answered after the editor's input
// has ended.
const DrainLimit = 3 * time.Second

// Dialled is a socket to a gateway, with what the gateway said to it.
type Dialled struct {
	Frames     jsonrpc.Frames
	Connection string // the gateway's id for it
	Link       string // the gateway's tether.Header
	// Gone, if set, is closed when the socket has said goodbye after Close.
	Gone <-chan struct{}
}

// Dial opens a socket to the gateway. connection and link are the headers to
// send: the id of the connection to take up, "" for a new one, and
// tether.Header. An error that is a *Refused is final.
type Dial func(ctx context.Context, connection, link string) (Dialled, error)

// Refused is why there is no use in dialling again.
type Refused struct{ Err error }

// Error says why.
func (e *Refused) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *Refused) Unwrap() error { return e.Err }

// Later is a gateway's wish not to be dialled before some time has passed.
type Later struct {
	Err   error
	After time.Duration
}

// Error says why.
func (e *Later) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *Later) Unwrap() error { return e.Err }

// Config says what a bridge does.
type Config struct {
	Dial     Dial
	Sessions SessionFlags
	// Provenance is "", "meta" or "meta+receipt"; Host is named by receipts.
	Provenance string
	Host       string
	// StartLimit and LostLimit are how long there may be no gateway before the
	// bridge gives up: at the start (30 s), and after a loss (2 min).
	StartLimit, LostLimit time.Duration
	// Memory keeps the gateway's last answer to initialize for the next start;
	// nil: nothing is known.
	Memory Memory
	Info   Info
	// Outages, if set, is told when the gateway is lost, and what follows.
	Outages Outages
	// Log gets one line at a time about what happens; nil: nobody.
	Log func(format string, args ...any)
}

// Info is what the bridge says of itself when nothing is known of the gateway.
type Info struct{ Name, Title, Version string }

// Memory keeps answers to initialize by the request's params. Its methods are
// called from several goroutines.
type Memory interface {
	Recall(params []byte) (result []byte, ok bool)
	Keep(params, result []byte)
}

// Bridge is one editor's way to a gateway.
type Bridge struct {
	cfg    Config
	editor jsonrpc.Frames
	rand   func(time.Duration) time.Duration // up to so much; for waits

	telling sync.Mutex // held while the editor is written to
	out     outbox

	ending    chan struct{} // closed when the editor's input has ended
	tried     chan struct{} // closed when the first dial has ended
	refused   bool          // it was refused; read behind tried
	firstDial sync.Once

	// The rest belongs to Run.
	spare     *channel        // dialled, and not used yet
	gone      <-chan struct{} // of the newest socket
	unreached error           // of the newest dial, while none has succeeded
	reached   bool            // one has
	calls     int             // requests of the bridge's own
	away      away            // which guards itself

	book book
}

// New makes a bridge for an editor.
func New(editor jsonrpc.Frames, cfg Config) *Bridge {
	if cfg.StartLimit <= 0 {
		cfg.StartLimit = 30 * time.Second
	}
	if cfg.LostLimit <= 0 {
		cfg.LostLimit = 2 * time.Minute
	}
	if cfg.Log == nil {
		cfg.Log = func(string, ...any) {}
	}
	b := &Bridge{cfg: cfg, editor: editor, ending: make(chan struct{}), tried: make(chan struct{}), rand: func(d time.Duration) time.Duration { return rand.N(d + 1) }}
	b.out.init()
	b.book.init()
	return b
}

// The ends of a bridge that are nobody's fault.
var (
	errEditorGone = errors.New("the editor has gone")
	errDrained    = errors.New("the time for the last answers is over")
)

// Run passes frames until the editor's input ends, or ctx, which is the same:
// requests already sent are answered for DrainLimit at most, then the gateway
// is told that this was the end. It returns nil then, if there was a gateway,
// and else why there is none, or none any more. No request is left without an
// answer. A read of the editor that cannot be interrupted is left
// behind.
func (b *Bridge) Run(ctx context.Context) error {
	ended := make(chan struct{}) // the editor's input
	var once sync.Once
	end := func() { once.Do(func() { close(ended) }) }
	life, stop := context.WithCancelCause(context.WithoutCancel(ctx))
	defer stop(nil)

	go func() { // E; ends with the editor's input, or is left behind in a read
		defer end()
		b.listen(life, stop)
	}()
	var side sync.WaitGroup
	defer side.Wait()
	defer stop(nil)
	side.Go(func() { // W
		b.out.run(life)
	})
	side.Go(func() { b.answerEarly(life) })
	side.Go(func() {
		select {
		case <-ended:
		case <-ctx.Done():
		case <-life.Done():
			return
		}
		b.finish(life, stop)
	})
	err := b.serve(life)
	stop(err)
	switch cause := context.Cause(life); {
	case errors.Is(cause, errEditorGone):
		err = nil
	case errors.Is(cause, errDrained), b.out.isClosed() && !isRefused(err):
		if err = nil; !b.book.nothingBegun() {
			err = b.unreached
		}
		b.fail(cmp.Or(err, errDrained))
	default:
		b.givenUp(err)
		b.fail(err)
	}
	b.goodbye()
	return err
}

// goodbyeLimit is how long the gateway may take to hear that this is the end.
const goodbyeLimit = time.Second

// goodbye waits until the last socket is closed.
func (b *Bridge) goodbye() {
	if b.gone == nil {
		return
	}
	t := time.NewTimer(goodbyeLimit)
	defer t.Stop()
	select {
	case <-b.gone:
	case <-t.C:
	}
}

func isRefused(err error) bool {
	var r *Refused
	return errors.As(err, &r)
}

// finish ends the bridge after the editor's input has: what was said is sent,
// what was asked is answered, as long as that takes no longer than DrainLimit.
func (b *Bridge) finish(ctx context.Context, stop context.CancelCauseFunc) {
	b.cfg.Log("the editor's input has ended")
	limit := time.AfterFunc(DrainLimit, func() { stop(errDrained) })
	defer limit.Stop()
	b.out.close()
	close(b.ending)
	if b.book.nothingBegun() {
		select {
		case <-b.tried:
		case <-ctx.Done():
		case <-time.After(goodbyeLimit):
			stop(errDrained)
			return
		}
		if !b.refused { // else that is what there is to say
			stop(errDrained)
		}
		return
	}
	cancel := time.AfterFunc(DrainLimit/2, b.cancelPrompts)
	defer cancel.Stop()
	select {
	case <-b.out.drained:
	case <-ctx.Done():
		return
	}
	ch := b.out.current()
	if ch != nil && ch.link != nil && ch.link.CloseWrite() == nil {
		<-ctx.Done() // the gateway answers what is open, and ends the connection
		return
	}
	if b.book.idle(ctx) {
		stop(errDrained)
	}
}

// cancelPrompts ends the turns that nobody will see the rest of, so that they
// are answered in time.
func (b *Bridge) cancelPrompts() {
	for _, session := range b.book.prompting() {
		b.out.late(cancelOf(session))
	}
}

// tell writes one frame to the editor.
func (b *Bridge) tell(frame []byte) error {
	b.telling.Lock()
	defer b.telling.Unlock()
	if err := b.editor.Write(frame); err != nil {
		return errEditorGone
	}
	return nil
}

// channel is a connection to the gateway.
type channel struct {
	frames jsonrpc.Frames
	link   *tether.Link // frames, when the gateway has links
	id     string
	cuts   int       // in a row, without a frame in between, nor a long time
	since  time.Time // of the newest socket
}

// isEnd reports whether an error of Read is an orderly end.
func isEnd(err error) bool { return errors.Is(err, io.EOF) }
