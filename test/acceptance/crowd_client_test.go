package acceptance

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/berth-dev/berth/adapters/jsonrpc"
	"github.com/berth-dev/berth/adapters/jsonrpc/acp1"
	"github.com/berth-dev/berth/adapters/jsonrpc/tether"
	"github.com/berth-dev/berth/adapters/jsonrpc/transcript"
)

// guest is one connection of a crowd: a client, or with a link a client that
// comes back to the same connection.
type guest struct {
	c      *crowd
	name   string
	token  string // name
	frames jsonrpc.Frames
	link   *tether.Link // nil: a plain socket
	conn   string       // id of the connection
	lastID int
	away   atomic.Int64  // nanoseconds until a link is taken up again
	pause  atomic.Int64  // nanoseconds for which the reader stops
	gone   chan struct{} // closed when nothing more comes
	left   chan struct{} // closed when the client is done with it
	leaver sync.Once
	outbox chan []byte

	// The crowd's mutex guards the rest.
	sock    *wsocket // nil: it comes by HTTP requests
	checker *acp1.Checker
	rng     *rand.Rand // of answers
	patient bool       // asks are answered at once
	over    bool       // the connection is gone, or was given up
	open    map[string]sent
	answers map[string]message
	asks    map[string]*question
	order   []string // of asks
	views   map[string]*view
	said    map[string]bool // prompts it sent, by text
}

// question is a request of the agent.
type question struct {
	id, session, call, method string
	raw                       json.RawMessage
	done                      bool // answered or withdrawn
}

// arrive connects a client. A gateway that is full is no fault.
func (c *crowd) arrive() *guest {
	token := pick(c.rng, "amy", "amy", "amy", "ben", "ben", "eve", "ron")
	var g *guest
	switch c.rng.IntN(6) {
	case 0:
		g = c.guest(token, c.net.posts(c.tokens[token]))
		g.begin(c.rng.IntN(3) == 0)
	case 1, 2:
		g = c.connect(token, true)
	default:
		g = c.connect(token, false)
	}
	if g == nil {
		return nil
	}
	if c.rng.IntN(3) > 0 {
		g.newSession()
	}
	return g
}

func (c *crowd) connect(token string, linked bool) *guest {
	return c.connectAs(token, linked, c.rng.IntN(3) == 0)
}

// editor connects a client that answers for its files, or would.
func (c *crowd) editor(token string, linked bool) *guest { return c.connectAs(token, linked, true) }

func (c *crowd) connectAs(token string, linked, fs bool) *guest {
	ask := ""
	if linked {
		ask = tether.Ask("", 0)
	}
	sock, head, err := c.net.dialSocket(context.Background(), c.tokens[token], ask)
	if err != nil {
		return nil
	}
	g := c.guest(token, sock)
	g.sock, g.conn = sock, head.Get("Acp-Connection-Id")
	if links, _, _ := tether.Answered(head.Get(tether.Header)); links {
		g.link = tether.New(sock, tether.Options{})
		g.frames = g.link
	}
	g.begin(fs)
	return g
}

// guest makes a client of a connection.
func (c *crowd) guest(token string, frames jsonrpc.Frames) *guest {
	return &guest{
		c: c, name: "c" + strconv.Itoa(len(c.all)+1), token: token, frames: frames,
		gone: make(chan struct{}), left: make(chan struct{}), outbox: make(chan []byte, 1000), checker: acp1.NewChecker(),
		rng:  rand.New(rand.NewPCG(c.seed, uint64(len(c.all)))),
		open: map[string]sent{}, answers: map[string]message{}, asks: map[string]*question{}, views: map[string]*view{}, said: map[string]bool{},
	}
}

// begin starts to read and write, and introduces the client.
func (g *guest) begin(fs bool) {
	g.c.mu.Lock()
	g.c.guests, g.c.all = append(g.c.guests, g), append(g.c.all, g)
	g.c.mu.Unlock()
	go g.read()
	go g.write()
	g.request("initialize", fmt.Sprintf(`{"protocolVersion":1,"clientCapabilities":{"fs":{"readTextFile":%v},"session":{%s}}}`,
		fs, pick(g.c.rng, ``, `"notices":{}`)), sent{})
}

// read is the client's reader. It ends with the connection.
func (g *guest) read() {
	defer close(g.gone)
	for {
		if d := g.pause.Swap(0); d > 0 {
			time.Sleep(time.Duration(d))
		}
		data, err := g.frames.Read()
		if errors.Is(err, tether.ErrAway) {
			err = g.comeBack()
			if err == nil {
				continue
			}
		}
		if err != nil {
			g.end()
			return
		}
		g.c.mu.Lock()
		g.note(transcript.ToClient, data)
		g.take(data)
		g.c.mu.Unlock()
	}
}

// comeBack takes the link up again on a new socket.
func (g *guest) comeBack() error {
	for range 20 {
		select {
		case <-time.After(time.Duration(g.away.Swap(int64(time.Second)))):
		case <-g.left:
			return errors.New("left")
		}
		ticket, received, err := g.link.Fence()
		if err != nil {
			return err
		}
		sock, head, err := g.c.net.dialSocket(context.Background(), g.c.tokens[g.token], tether.Ask(g.conn, received))
		if err != nil {
			continue
		}
		_, again, theirs := tether.Answered(head.Get(tether.Header))
		if !again {
			_ = sock.Close()
			return errors.New("the gateway does not know the link any more")
		}
		g.c.mu.Lock()
		g.sock = sock
		g.c.mu.Unlock()
		if err := g.link.Attach(ticket, sock, theirs); err != nil {
			_ = sock.Close()
			return err
		}
		return nil
	}
	return errors.New("the gateway is not to be reached")
}

// end notes that the connection is gone.
func (g *guest) end() {
	g.c.mu.Lock()
	g.over = true
	g.c.mu.Unlock()
	g.leave()
}

// leave gives the connection up without a word, at once.
func (g *guest) leave() {
	g.leaver.Do(func() {
		close(g.left)
		_ = g.frames.Close()
		g.c.mu.Lock()
		sock := g.sock
		g.over = true
		g.c.mu.Unlock()
		if sock != nil {
			_ = sock.Close()
		}
	})
}

func (g *guest) isOver() bool {
	g.c.mu.Lock()
	defer g.c.mu.Unlock()
	return g.over
}

// write is the client's writer.
func (g *guest) write() {
	for {
		select {
		case data := <-g.outbox:
			_ = g.frames.Write(data) // fails when it is gone, which the reader sees
		case <-g.left:
			return
		}
	}
}

// send sends a frame some time soon.
func (g *guest) send(data string) {
	g.c.mu.Lock()
	defer g.c.mu.Unlock()
	g.sendLocked(data)
}

func (g *guest) sendLocked(data string) {
	if g.over {
		return
	}
	g.note(transcript.ToAgent, []byte(data))
	select {
	case g.outbox <- []byte(data):
	default:
		g.c.wrong = append(g.c.wrong, g.name+": the gateway takes nothing")
	}
}

// note keeps a frame and holds it against the protocol. The mutex is held.
func (g *guest) note(dir transcript.Dir, data []byte) {
	g.c.frames = append(g.c.frames, transcript.Frame{Time: time.Now(), Dir: dir, Client: g.name, Data: data})
	if dir == transcript.ToAgent {
		g.checker.Client(data)
		return
	}
	if err := g.checker.Agent(data); err != nil {
		g.c.wrong = append(g.c.wrong, fmt.Sprintf("%s: %v in %.300s", g.name, err, data))
	}
}

// request sends a request and returns its id.
func (g *guest) request(method, params string, s sent) string {
	g.c.mu.Lock()
	defer g.c.mu.Unlock()
	g.lastID++
	id := strconv.Itoa(g.lastID)
	s.method = method
	g.open[id] = s
	g.asked(id, s)
	g.sendLocked(`{"jsonrpc":"2.0","id":` + id + `,"method":"` + method + `","params":` + params + `}`)
	return id
}
