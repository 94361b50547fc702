package acceptance

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"sync/atomic"
	"testing/synctest"
	"time"

	"github.com/berth-dev/berth/adapters/jsonrpc"
	"github.com/berth-dev/berth/adapters/jsonrpc/transcript"
)

// walker is one connected client of a walk.
type walker struct {
	w        *walk
	name     string
	frames   jsonrpc.Frames
	rng      *rand.Rand
	zeroclaw bool
	lastID   int
	pause    atomic.Int64  // nanoseconds for which the reader stops
	ended    chan struct{} // closed when the agent's side has ended

	// The walk's mutex guards the rest.
	mine    []string            // sessions it opened, the newest last
	open    map[string]sent     // requests without an answer, by id
	answers map[string]message  // by id
	asks    []message           // requests of the agent, the newest last
	loads   map[string]int      // loads in flight, by session
	held    map[string][]*item  // updates since a load was sent
	order   map[string][]string // prompts in flight, by session
}

type sent struct {
	method, session, text string
	key                   string // of session/new
	reset                 bool
}

// longestPause is how long a client stops reading at most.
const longestPause = 5 * time.Second

// arrive connects a client and introduces it.
func (w *walk) arrive() {
	fs := w.rng.IntN(4) == 0
	hello := fmt.Sprintf(`{"protocolVersion":1,"clientCapabilities":{"fs":{"readTextFile":%v,"writeTextFile":%v},"session":{%s}}}`, fs, fs && w.rng.IntN(2) == 0,
		pick(w.rng, ``, `"notices":{}`, `"compaction":{}`, `"notices":{},"compaction":{}`))
	if w.rng.IntN(6) == 0 {
		hello = `{}` // the other dialect
	}
	c := w.connect(hello)
	c.zeroclaw = hello == `{}`
	if w.rng.IntN(3) > 0 {
		synctest.Wait()
		c.newSession()
	}
}

func (w *walk) connect(hello string) *walker {
	w.names++
	name := "c" + strconv.Itoa(w.names)
	frames, err := w.run.connect(context.Background(), name)
	if err != nil {
		w.t.Fatal(err)
	}
	c := &walker{
		w: w, name: name, frames: frames, rng: w.rng, ended: make(chan struct{}),
		open: map[string]sent{}, answers: map[string]message{}, loads: map[string]int{},
		held: map[string][]*item{}, order: map[string][]string{},
	}
	w.clients = append(w.clients, c)
	go c.read()
	c.request("initialize", hello)
	return c
}

// read is the client's reader. It ends with the agent's side.
func (c *walker) read() {
	defer close(c.ended)
	for {
		if d := c.pause.Swap(0); d > 0 {
			time.Sleep(time.Duration(d))
		}
		data, err := c.frames.Read()
		if err != nil {
			return
		}
		c.w.mu.Lock()
		c.note(transcript.ToClient, data)
		c.take(data)
		c.w.mu.Unlock()
	}
}

// note shows a frame to the monitors, with the walk's mutex held.
func (c *walker) note(dir transcript.Dir, data []byte) {
	f := transcript.Frame{Time: time.Now(), Dir: dir, Client: c.name, Data: data}
	c.w.frames = append(c.w.frames, f)
	c.w.run.mon.frame(f)
}

// write sends lines in one write.
func (c *walker) write(lines ...string) {
	var all []byte
	for _, l := range lines {
		all = append(append(all, l...), '\n')
		c.w.mu.Lock()
		c.note(transcript.ToAgent, []byte(l))
		c.w.mu.Unlock()
	}
	_ = c.frames.(jsonrpc.BatchWriter).WriteBatch(all) // fails when the agent has gone, which the end shows
}

// frame makes a request and registers it.
func (c *walker) frame(method, params string, s sent) (id, line string) {
	c.lastID++
	id = strconv.Itoa(c.lastID)
	if c.lastID%7 == 0 {
		id = `"r-` + id + `"`
	}
	s.method = method
	c.w.mu.Lock()
	c.open[id] = s
	switch method {
	case "session/load":
		c.loads[s.session]++
	case "session/prompt":
		c.order[s.session] = append(c.order[s.session], id)
	}
	c.w.mu.Unlock()
	return id, `{"jsonrpc":"2.0","id":` + id + `,"method":"` + method + `","params":` + params + `}`
}

func (c *walker) request(method, params string) string {
	var p struct {
		SessionID string `json:"sessionId"`
	}
	_ = json.Unmarshal([]byte(params), &p)
	id, line := c.frame(method, params, sent{session: p.SessionID})
	c.write(line)
	return id
}

func (c *walker) answer(id string) message {
	c.w.mu.Lock()
	defer c.w.mu.Unlock()
	return c.answers[id]
}

// listAll pages through the list of sessions.
func (c *walker) listAll() (ids []string) {
	cursor := ""
	for range 1000 {
		params := `{}`
		if cursor != "" {
			params = `{"cursor":` + strconv.Quote(cursor) + `}`
		}
		id := c.request("session/list", params)
		time.Sleep(time.Second)
		var page struct {
			Sessions []struct {
				SessionID string `json:"sessionId"`
			} `json:"sessions"`
			NextCursor string `json:"nextCursor"`
		}
		if err := json.Unmarshal(c.answer(id).Result, &page); err != nil {
			c.w.tell("session/list: %v", err)
			return ids
		}
		for _, s := range page.Sessions {
			ids = append(ids, s.SessionID)
		}
		if cursor = page.NextCursor; cursor == "" {
			return ids
		}
	}
	return ids
}

// leave ends the client's input and waits for the agent's end. A client that
// does not read would be cut off, so it reads again first.
func (c *walker) leave() {
	if c.w.slow {
		c.pause.Store(0)
		time.Sleep(longestPause)
	}
	start := time.Now()
	_ = c.frames.(jsonrpc.CloseWriter).CloseWrite()
	<-c.ended
	if took := time.Since(start); took > 3*time.Second {
		c.w.tell("I9: the connection of %s ended %v after its input", c.name, took)
	}
	c.gone()
}

// vanish cuts the connection.
func (c *walker) vanish() {
	_ = c.frames.Close()
	<-c.ended
	c.w.mu.Lock()
	c.w.cut = append(c.w.cut, c.name)
	for _, r := range c.open {
		if r.reset {
			c.w.forget(r.key) // nobody knows whether it was done
		}
	}
	c.w.mu.Unlock()
	c.gone()
}

func (c *walker) gone() {
	_ = c.frames.Close()
	<-c.w.run.conns[c.name]
	delete(c.w.run.conns, c.name)
	for i, other := range c.w.clients {
		if other == c {
			c.w.clients = append(c.w.clients[:i:i], c.w.clients[i+1:]...)
		}
	}
}

// onDisk answers a read of the client's buffers, which are the files.
func onDisk(path string) string {
	data, err := os.ReadFile(path)
	if err != nil {
		return `"error":{"code":-32002,"message":"no such file"}`
	}
	text, _ := json.Marshal(map[string]string{"content": string(data)})
	return `"result":` + string(text)
}
