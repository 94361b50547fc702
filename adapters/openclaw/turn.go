package openclaw

import (
	"context"
	"sync"

	"github.com/berth-dev/berth/core/domain"
)

// turn is a run of the Gateway's in a session that the editor has open: one
// that the editor asked for, or one that somebody else did.
type turn struct {
	bridge  *Bridge
	session *session
	ctx     context.Context
	cancel  context.CancelCauseFunc
	own     bool // the editor asked for it
	blocks  []domain.Block
	before  <-chan struct{} // the prompt in front; nil for none
	settled chan struct{}   // closed when the next prompt may begin
	over    chan struct{}   // closed when the run has ended
	heirOf  *turn           // the turn that ends with this run

	prompt string // the name that the prompt was sent under

	mu       sync.Mutex
	run      string // the Gateway's name for the run: the prompt's, as a rule
	closed   bool   // nothing more is told
	accepted bool   // the Gateway has it
	boot     string // of the Gateway that it was first sent to
	waiting  bool   // for a run that goes on with it
	making   bool   // the transcript is read for what is missing, and then the run is over
	out      *outcome
	held     []runEvent // what came while something is made up for
	heldSize int        // bytes
	heldEnd  bool       // the end of the run is among it
	holding  int
	said     said
	tools    map[string]*toolCall // by the Gateway's id
}

func newTurn(b *Bridge, s *session, run string) *turn {
	t := &turn{
		bridge: b, session: s, prompt: run, run: run, own: true, settled: make(chan struct{}), over: make(chan struct{}),
		tools: map[string]*toolCall{},
	}
	t.said.run = run
	return t
}

// runEvent is what the Gateway tells of a run.
type runEvent struct {
	kind string // chat, or agent
	data fields
	size int // bytes
}

// ends reports whether it says how the run ended.
func (e runEvent) ends() bool {
	state := e.data.text("state")
	return e.kind == "chat" && (state == "final" || state == "aborted" || state == "error")
}

// runID is the Gateway's name for the run.
func (t *turn) runID() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.run
}

// settleFirst reports whether what came before an event has to be made up for
// before it is told. The transcript has it when a tool is called.
func (t *turn) settleFirst(stream string, data fields) bool {
	if !t.said.unsettled || data.text("phase") != "start" || stream != "tool" && (stream != "item" || data.text("kind") != "tool") {
		return false
	}
	t.said.unsettled = false
	t.holding++
	t.bridge.side.Go(func() { // ends with the run
		t.bridge.catchUp(t.ctx, t)
		t.release()
	})
	return true
}

// take tells the editor what an event says. mu is held, here and below, so
// that nothing is told any more once close has returned.
func (t *turn) take(e runEvent) {
	if t.closed || t.out != nil {
		return
	}
	if e.kind == "chat" {
		t.chat(e.data)
		return
	}
	data, stream := e.data.in("data"), e.data.text("stream")
	if t.settleFirst(stream, data) {
		t.keep(e)
		return
	}
	switch stream {
	case "assistant":
		t.said.fromAgent = true
		t.speak(t.said.agent(data))
	case "thinking":
		t.speak(t.said.thinking(data))
	case "item":
		t.item(data)
	case "tool":
		t.tool(data)
	case "plan":
		t.plan(data)
	case "lifecycle":
		if data.text("phase") == "start" {
			t.accepted = true
		}
	}
}

// chat takes an event of the chat, which tells the same text as the agent
// stream, later, and how the run ends.
func (t *turn) chat(p fields) {
	if t.making { // it has ended; Gateways may say so twice
		return
	}
	switch p.text("state") {
	case "delta":
		if !t.said.fromAgent {
			t.speak(t.said.chat(p))
		}
	case "final":
		t.speak(t.said.final(messageText(p["message"])))
		t.complete(outcome{stop: stopOf(p.text("stopReason"))})
	case "aborted":
		t.speak(t.said.final(messageText(p["message"])))
		if why := brief(p.text("errorMessage")); why != "" {
			t.speak(t.said.notice("[The gateway stopped the turn: " + why + "]"))
		}
		t.complete(outcome{stop: stopCancelled})
	case "error":
		t.complete(failed(p))
	}
}

// complete ends the run as the Gateway says. When something may have been
// left out, the transcript is read first.
func (t *turn) complete(o outcome) {
	if t.out != nil || t.making {
		return
	}
	if !t.said.unsettled || !t.own {
		t.end(o)
		return
	}
	t.making = true
	t.bridge.side.Go(func() { // ends with the bridge
		t.bridge.catchUp(t.ctx, t)
		t.finish(o)
	})
}

// speak sends what is to be said.
func (t *turn) speak(list []domain.Update) {
	for _, u := range list {
		t.bridge.tell(t.bridge.life, t.session.id, u)
	}
}

// end notes how the run ended. The first end counts: the Gateway may tell of
// several.
func (t *turn) end(o outcome) {
	if t.out != nil {
		return
	}
	t.out = &o
	t.endTools(o)
	close(t.over)
}

// finish ends the run from outside.
func (t *turn) finish(o outcome) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.closed {
		t.end(o)
	}
}

// close stops what is told of the run, for good.
func (t *turn) close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return
	}
	if t.out == nil {
		t.endTools(outcome{stop: stopCancelled})
	}
	t.closed = true
}

func (t *turn) result() outcome {
	t.mu.Lock()
	defer t.mu.Unlock()
	return *t.out
}

func (t *turn) wasOver() bool {
	select {
	case <-t.over:
		return true
	default:
		return false
	}
}

func (t *turn) wasAccepted() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.accepted
}

func (t *turn) accept() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.accepted = true
}

// sentOn notes the Gateway that the prompt is sent to.
func (t *turn) sentOn(l *link) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.boot == "" {
		t.boot = l.hello.boot
	}
}

// follow has the events of a run go to its turn.
func (b *Bridge) follow(t *turn) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.runs[t.run] = t
}

func (b *Bridge) unfollow(t *turn) {
	run := t.runID()
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.runs[run] == t {
		delete(b.runs, run)
		t.session.noteDone(run)
		if t.prompt != run {
			t.session.noteDone(t.prompt)
		}
	}
}

// rename follows a run that the Gateway calls otherwise. The locks are not held
// together: that of a turn waits for the editor.
func (b *Bridge) rename(t *turn, run string) {
	was := t.runID()
	b.mu.Lock()
	delete(b.runs, was)
	b.runs[run] = t
	b.mu.Unlock()
	t.mu.Lock()
	defer t.mu.Unlock()
	t.run, t.said.run = run, run
}
