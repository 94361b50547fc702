package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"
)

// patience is how long an answer may take before it counts as missing.
const patience = time.Minute

// ledger is what all clients of a run saw. Its methods may be used from any
// goroutine; a nil one takes nothing down.
type ledger struct {
	mu     sync.Mutex
	faults map[string]int
	counts map[string]int
	asked  map[string]string // permission answers, by call
}

func newLedger() *ledger {
	return &ledger{faults: map[string]int{}, counts: map[string]int{}, asked: map[string]string{}}
}

func (l *ledger) fault(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.faults[fmt.Sprintf(format, args...)]++
}

func (l *ledger) count(what string, n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.counts[what] += n
}

// answered takes down how a call was decided.
func (l *ledger) answered(call, how string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.asked[call] = how
}

// snapshot returns copies of the counts, with the permissions among them.
func (l *ledger) snapshot() (counts, faults map[string]int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	counts = maps.Clone(l.counts)
	for _, how := range l.asked {
		counts["permission "+how]++
	}
	return counts, maps.Clone(l.faults)
}

// client is one client of the daemon, over any wire.
type client struct {
	wire wire
	book *ledger
	now  func() time.Duration // the endpoint's clock

	mu      sync.Mutex
	next    int
	over    bool // closed or cut: nothing is awaited any more
	waiting map[string]chan reply
	views   map[string]*view // by session
}

// view is what a client saw of a session since its newest prompt.
type view struct {
	begun   chan struct{} // closed with the first words or call of the agent
	first   chan struct{} // closed with the first words of the agent
	at      time.Time     // when they came
	chunks  int
	updates int
	lags    []time.Duration // from the endpoint to here, one for each chunk
	started bool            // begun is closed
	ended   bool            // the prompt was answered
}

// dial connects and initializes.
func dial(ctx context.Context, d dialer, book *ledger, now func() time.Duration) (*client, error) {
	c := &client{book: book, now: now, waiting: map[string]chan reply{}, views: map[string]*view{}}
	w, err := d(ctx, c.take)
	if err != nil {
		return nil, err
	}
	c.wire = w
	_, err = c.call("initialize", "", `{"protocolVersion":1,"clientCapabilities":{},"clientInfo":{"name":"bench","version":"1"}}`)
	if err != nil {
		c.cut()
		return nil, err
	}
	return c, nil
}

// close ends the connection in an orderly way.
func (c *client) close() {
	c.leave()
	if err := c.wire.close(); err != nil {
		c.book.fault("close: %v", err)
	}
}

// cut breaks the connection.
func (c *client) cut() {
	c.leave()
	c.wire.cut()
}

func (c *client) leave() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.over = true
}

// begin sends a request and returns where its answer comes.
func (c *client) begin(method, session, params string) (<-chan reply, error) {
	ch := make(chan reply, 1)
	c.mu.Lock()
	c.next++
	id := strconv.Itoa(c.next)
	c.waiting[id] = ch
	c.mu.Unlock()
	err := c.wire.send(fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"method":%q,"params":%s}`, id, method, params), session)
	if err != nil {
		c.mu.Lock()
		delete(c.waiting, id)
		c.mu.Unlock()
	}
	return ch, err
}

// wait waits for an answer.
func (c *client) wait(method string, ch <-chan reply) (reply, error) {
	limit := time.NewTimer(patience)
	defer limit.Stop()
	select {
	case r := <-ch:
		if r.Error != nil {
			return r, fmt.Errorf("%s: error %d: %s", method, r.Error.Code, r.Error.Message)
		}
		return r, nil
	case <-limit.C:
		c.book.count("unanswered", 1)
		return reply{}, fmt.Errorf("%s: no answer within %s", method, patience)
	}
}

func (c *client) call(method, session, params string) (reply, error) {
	ch, err := c.begin(method, session, params)
	if err != nil {
		return reply{}, fmt.Errorf("%s: %w", method, err)
	}
	return c.wait(method, ch)
}

// newSession opens a session and returns its id.
func (c *client) newSession(dir string) (string, error) {
	r, err := c.call("session/new", "", fmt.Sprintf(`{"cwd":%q,"mcpServers":[]}`, dir))
	if err != nil {
		return "", err
	}
	var s struct {
		SessionID string `json:"sessionId"`
	}
	if err := json.Unmarshal(r.Result, &s); err != nil || s.SessionID == "" {
		return "", fmt.Errorf("session/new answered %.200s", r.Result)
	}
	return s.SessionID, c.wire.listen(s.SessionID)
}

// watch forgets what was seen of a session and sees it anew.
func (c *client) watch(session string) *view {
	v := &view{begun: make(chan struct{}), first: make(chan struct{})}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.views[session] = v
	return v
}

// prompt starts a turn.
func (c *client) prompt(session string, w wish) (*view, <-chan reply, error) {
	v := c.watch(session)
	ch, err := c.begin("session/prompt", session, fmt.Sprintf(`{"sessionId":%q,"prompt":[{"type":"text","text":%q}]}`, session, w))
	return v, ch, err
}

// stopReason is how a prompt was answered.
func stopReason(r reply) string {
	var s struct {
		StopReason string `json:"stopReason"`
	}
	if json.Unmarshal(r.Result, &s) != nil {
		return ""
	}
	return s.StopReason
}

// notify sends a notification.
func (c *client) notify(method, session, params string) error {
	return c.wire.send(fmt.Appendf(nil, `{"jsonrpc":"2.0","method":%q,"params":%s}`, method, params), session)
}

var (
	isUpdate = []byte(`"method":"session/update"`)
	isText   = []byte(`"sessionUpdate":"agent_message_chunk"`)
	isCall   = []byte(`"sessionUpdate":"tool_call"`)
	isStamp  = []byte(`"text":"@`)
	isID     = []byte(`"sessionId":"`)
	// isNotice begins what the owner before is told, which may come at any time.
	isNotice = []byte(`"text":"Another client has taken this session over`)
)

// take takes one message. Updates are looked at and not decoded, so that this
// side is not what is measured.
func (c *client) take(message []byte) {
	if bytes.Contains(message, isUpdate) {
		c.update(message)
		return
	}
	var m struct {
		ID     json.RawMessage `json:"id"`
		Method string          `json:"method"`
		Params json.RawMessage `json:"params"`
		reply
	}
	if err := json.Unmarshal(message, &m); err != nil {
		c.book.fault("not JSON: %.100s", message)
		return
	}
	if m.Method == "session/request_permission" {
		go c.permit(m.ID, m.Params) // ends with its send, which has a limit
		return
	}
	if m.Method != "" {
		c.book.count("notification "+m.Method, 1)
		return
	}
	m.at = time.Now()
	c.mu.Lock()
	ch := c.waiting[string(m.ID)]
	delete(c.waiting, string(m.ID))
	c.mu.Unlock()
	if ch == nil {
		c.book.fault("an answer to nothing: %.100s", message)
		return
	}
	ch <- m.reply
}

// update takes an update.
func (c *client) update(message []byte) {
	_, rest, _ := bytes.Cut(message, isID)
	session, _, _ := bytes.Cut(rest, []byte{'"'})
	text := bytes.Contains(rest[:min(len(rest), 200)], isText)
	c.mu.Lock()
	defer c.mu.Unlock()
	v := c.views[string(session)]
	if v == nil || bytes.Contains(message, isNotice) {
		return
	}
	v.updates++
	turns := text || bytes.Contains(message, isCall)
	if turns && !v.started {
		v.started = true
		close(v.begun)
	}
	if turns && v.ended {
		c.book.fault("an update behind the answer of its prompt: %.400s", message)
	}
	if !text {
		return
	}
	if v.chunks++; v.at.IsZero() {
		v.at = time.Now()
		close(v.first)
	}
	if _, stamp, ok := bytes.Cut(rest, isStamp); ok && v.lags != nil {
		digits, _, _ := bytes.Cut(stamp, []byte{' '})
		if sent, err := strconv.ParseInt(string(digits), 10, 64); err == nil {
			v.lags = append(v.lags, c.now()-time.Duration(sent))
		}
	}
}

// endView marks a view whose prompt was answered: nothing may follow.
func (c *client) endView(v *view) (seen view) {
	c.mu.Lock()
	defer c.mu.Unlock()
	v.ended = true
	return *v
}

// permit answers a permission request. One call in five is refused, the same
// whoever is asked.
func (c *client) permit(id, params json.RawMessage) {
	var p struct {
		SessionID string `json:"sessionId"`
		ToolCall  struct {
			ID string `json:"toolCallId"`
		} `json:"toolCall"`
		Options []struct {
			ID   string `json:"optionId"`
			Kind string `json:"kind"`
		} `json:"options"`
	}
	if err := json.Unmarshal(params, &p); err != nil {
		c.book.fault("a permission request that is none: %.100s", params)
		return
	}
	h := fnv.New32a()
	_, _ = h.Write([]byte(p.SessionID + p.ToolCall.ID)) // never fails
	kind, how := "allow_once", "allowed"
	if h.Sum32()%5 == 0 {
		kind, how = "reject_once", "rejected"
	}
	option := ""
	for _, o := range p.Options {
		if o.Kind == kind {
			option = o.ID
		}
	}
	if option == "" {
		c.book.fault("a permission request without %s", kind)
		return
	}
	c.book.answered(p.SessionID+" "+p.ToolCall.ID, how)
	err := c.wire.send(fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"result":{"outcome":{"outcome":"selected","optionId":%q}}}`, id, option), p.SessionID)
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil && !c.over {
		c.book.fault("answer of a permission: %v", err)
	}
}

// settle checks that a prompt was answered as it should be.
func (c *client) settle(v *view, ch <-chan reply, want ...string) error {
	r, err := c.wait("session/prompt", ch)
	if err != nil {
		return err
	}
	seen := c.endView(v)
	c.book.count("prompt "+stopReason(r), 1)
	if !slices.Contains(want, stopReason(r)) {
		return fmt.Errorf("a prompt ended with %q", stopReason(r))
	}
	if seen.updates == 0 && stopReason(r) == "end_turn" {
		return errors.New("a prompt was answered without an update")
	}
	return nil
}
