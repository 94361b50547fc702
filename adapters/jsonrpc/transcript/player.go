package transcript

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/berth-dev/berth/adapters/jsonrpc"
)

// firstClient is the client a script starts with.
const firstClient = "main"

// Options are the world a script is played in. Only Connect is needed by every
// script; a script that uses a word the runner has no function for fails.
type Options struct {
	// Connect makes a connection for the client of this name ("main" unless
	// the script says otherwise), at its first line and after restart and reconnect.
	Connect func(ctx context.Context, client string) (jsonrpc.Frames, error)
	// Vars are variables such as "WORK". What a script captures comes to them.
	Vars map[string]string
	// Monitor sees every frame in both directions, in order, also those the
	// script skips: before it is sent, after it was received. Calls do not
	// overlap. The frame must not be changed.
	Monitor func(Frame)
	// Now stamps frames; time.Now if nil.
	Now func() time.Time
	// Kill serves the word kill.
	Kill func(ctx context.Context, client string) error
	// Restart, if not nil, is called at the word restart before Connect: it
	// ends the process.
	Restart func(ctx context.Context, client string) error
	// Cut serves the word cut.
	Cut func(ctx context.Context, client string) error
	// Exit serves the word exit: it waits for the process and returns its status.
	Exit func(ctx context.Context) (int, error)
	// After serves the word after. In a bubble it sleeps.
	After func(ctx context.Context, d time.Duration) error
	// Settle serves the word quiet: it returns when the agent has had the time
	// to send what it should not. If nil, quiet sends a request nobody knows
	// and takes its answer as the sign that all before it has arrived.
	Settle func(ctx context.Context) error
	// Update makes Play accept what the agent answers wherever the kind of
	// message is right, and write it into Run.Script.
	Update bool
}

// Run is what a play left behind.
type Run struct {
	Frames []Frame
	Vars   map[string]any // "@label" holds a request's id
	Script *Script        // with Options.Update: as it should read
}

// player plays one script.
type player struct {
	opts    Options
	run     *Run
	vars    vars
	clients map[string]*client
	now     *client // the current one
	probes  int     // requests that quiet has sent

	mode  Op // Strict, Ambient or Loose
	skips []Line

	mu sync.Mutex // orders the monitor's calls
}

// Play plays a script until its end, its first failure or the end of ctx. The
// error is a *Failure unless a connection could not be made. All connections
// are closed when Play returns.
func Play(ctx context.Context, s *Script, opts Options) (*Run, error) {
	if opts.Now == nil {
		opts.Now = time.Now
	}
	p := &player{opts: opts, vars: vars{}, clients: map[string]*client{}, mode: Ambient}
	for name, value := range opts.Vars {
		p.vars[name] = value
	}
	p.run = &Run{Vars: p.vars, Script: &Script{Lines: cloneLines(s.Lines)}}
	// A frame that the agent does not take must not outlive ctx.
	stop := context.AfterFunc(ctx, p.cut)
	err := p.play(ctx, p.run.Script.Lines)
	stop()
	p.mu.Lock()
	clients := p.clients
	p.mu.Unlock()
	for _, c := range clients {
		c.close()
	}
	return p.run, err
}

func cloneLines(lines []Line) []Line {
	out := append([]Line(nil), lines...)
	for i := range out {
		out[i].Body = cloneLines(out[i].Body)
	}
	return out
}

// cut closes the transports, so that whoever uses them returns.
func (p *player) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.clients {
		_ = c.frames.Close()
	}
}

func (p *player) play(ctx context.Context, lines []Line) error {
	name := firstClient
	for i := range lines {
		l := &lines[i]
		switch l.Op {
		case Blank, Comment:
			continue
		case Client:
			name = l.Text
			continue
		case Strict, Ambient, Loose, Skip:
			p.policy(l)
			continue
		}
		if err := p.again(ctx, l, name); err != nil {
			return err
		}
		if err := p.line(ctx, l); err != nil {
			return p.failure(l, err)
		}
	}
	return nil
}

// policy changes what is skipped from here on.
func (p *player) policy(l *Line) {
	if l.Op == Skip {
		p.skips = append(p.skips, *l)
		return
	}
	p.mode = l.Op
	if l.Op == Strict {
		p.skips = nil
	}
}

// use makes the named client the current one and connects it if it is new, or
// again if that is wanted.
func (p *player) use(ctx context.Context, name string, again bool) error {
	c := p.clients[name]
	if c != nil && again {
		c.close()
	}
	if c == nil || again {
		frames, err := p.opts.Connect(ctx, name)
		if err != nil {
			return fmt.Errorf("connect client %s: %w", name, err)
		}
		c = newClient(name, frames)
		p.mu.Lock()
		p.clients[name] = c
		p.mu.Unlock()
		go c.receive(p.note)
		if ctx.Err() != nil {
			_ = frames.Close() // cut came too early for it
		}
	}
	p.now = c
	return nil
}

// again makes the client of a line the current one.
func (p *player) again(ctx context.Context, l *Line, name string) error {
	if c := p.clients[name]; c != nil && l.Op == Restart && p.opts.Restart != nil {
		c.close()
		if err := p.opts.Restart(ctx, name); err != nil {
			return p.failure(l, err)
		}
	}
	return p.use(ctx, name, l.Op == Restart || l.Op == Reconnect)
}

// note shows a frame to the monitor.
func (p *player) note(dir Dir, client string, data []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f := Frame{Time: p.opts.Now(), Dir: dir, Client: client, Data: data}
	p.run.Frames = append(p.run.Frames, f)
	if p.opts.Monitor != nil {
		p.opts.Monitor(f)
	}
}

func (p *player) line(ctx context.Context, l *Line) error {
	switch l.Op {
	case Response, Update, Ask, Says, Thinks:
		return p.await(ctx, []*branch{{lines: []*Line{l}}})
	case Any:
		return p.await(ctx, branches(l))
	case Request, Notify, Answer:
		return p.send(l)
	case Send, Raw:
		return p.sendText(l)
	case Quiet:
		return p.quiet(ctx)
	case End:
		return p.awaitEnd(ctx)
	case Hold:
		p.now.hold()
	case Release:
		p.now.release()
	case EOF:
		if c, ok := p.now.frames.(jsonrpc.CloseWriter); ok {
			return c.CloseWrite()
		}
		return p.now.frames.Close()
	case Drop:
		return p.drop()
	case Cut:
		if p.opts.Cut == nil {
			return errors.New("this runner has no network to cut")
		}
		return p.opts.Cut(ctx, p.now.name)
	case Kill:
		if p.opts.Kill == nil {
			return errors.New("this runner has no process to kill")
		}
		if err := p.opts.Kill(ctx, p.now.name); err != nil {
			return err
		}
		p.now.close()
	case Exit:
		return p.exit(ctx, l)
	case After:
		if p.opts.After == nil {
			return errors.New("this runner cannot make time pass")
		}
		d, err := time.ParseDuration(l.Text)
		if err != nil {
			return err
		}
		return p.opts.After(ctx, d)
	}
	return nil
}

// Dropper is a transport whose Close says goodbye. Drop ends it as a lost
// connection ends.
type Dropper interface{ Drop() error }

func (p *player) drop() error {
	if d, ok := p.now.frames.(Dropper); ok {
		if err := d.Drop(); err != nil {
			return err
		}
	}
	p.now.close()
	return nil
}

func (p *player) exit(ctx context.Context, l *Line) error {
	if p.opts.Exit == nil {
		return errors.New("this runner has no process that could exit")
	}
	got, err := p.opts.Exit(ctx)
	if err != nil {
		return err
	}
	if strconv.Itoa(got) != l.Text {
		return &mismatch{Unmeetable, fmt.Sprintf("exit status: want %s, got %d", l.Text, got), nil}
	}
	return nil
}

// send builds one message and sends it.
func (p *player) send(l *Line) error {
	value, err := p.vars.fill(l.Value)
	if err != nil {
		return err
	}
	m := []byte(`{"jsonrpc":"2.0"`)
	member := func(name string, v []byte) {
		if v != nil {
			m = append(m, `,"`+name+`":`...)
			m = append(m, v...)
		}
	}
	switch l.Op {
	case Request:
		id := l.ID
		if id == nil {
			id = json.RawMessage(p.now.newID())
		}
		p.bind(l, jsonrpc.ID(id))
		member("id", id)
	case Answer:
		id := jsonrpc.ID(l.ID)
		if id == "" {
			id = p.now.ids[l.ref]
		}
		if id == "" {
			return errors.New("the request it would answer has not come")
		}
		member("id", []byte(id))
	}
	if l.Op == Answer {
		name := "result"
		if l.Error {
			name = "error"
		}
		if value == nil {
			value = json.RawMessage(`{}`)
		}
		member(name, value)
	} else {
		member("method", jsonrpc.AppendString(nil, l.Method))
		member("params", value)
	}
	return p.write(append(m, '}'))
}

// bind notes the id of the request a line is about.
func (p *player) bind(l *Line, id jsonrpc.ID) {
	p.now.ids[l.ref] = id
	if l.Label != "" {
		p.vars["@"+l.Label], _ = decode([]byte(id)) // an id is valid JSON
	}
}

func (p *player) write(frame []byte) error {
	p.note(ToAgent, p.now.name, frame)
	return p.now.frames.Write(frame)
}

// sendText sends what may be no message at all.
func (p *player) sendText(l *Line) error {
	text := []byte(l.Text)
	p.note(ToAgent, p.now.name, text)
	lines, ok := p.now.frames.(jsonrpc.BatchWriter)
	switch {
	case l.Op == Raw && !ok:
		return errors.New("this transport has frames, not bytes; use >>")
	case l.Op == Raw:
		return lines.WriteBatch(text)
	case ok:
		return lines.WriteBatch(append(text, '\n'))
	}
	return p.now.frames.Write(text)
}
