package turns_test

import (
	"context"
	"fmt"
	"iter"
	"sync"
	"time"

	"github.com/berth-dev/berth/core/domain"
	"github.com/berth-dev/berth/core/ports"
)

// client is the far end of a session, in memory. It keeps what it was told in
// order and answers questions as the test says.
type client struct {
	mu      sync.Mutex
	told    []domain.Update
	asked   []domain.PermissionRequest
	answer  func(context.Context, domain.PermissionRequest) (domain.Decision, error)
	onSend  func(context.Context, domain.Update) error // nil takes everything at once
	info    domain.ClientInfo
	stopped bool
}

var _ ports.Client = (*client)(nil)

func (c *client) Send(ctx context.Context, _ domain.SessionID, u domain.Update) error {
	c.mu.Lock()
	hook := c.onSend
	c.mu.Unlock()
	if hook != nil {
		if err := hook(ctx, u); err != nil {
			return err
		}
	}
	// A client with room takes an update whatever became of the context.
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stopped {
		return fmt.Errorf("send: %w", domain.Disconnected)
	}
	c.told = append(c.told, u)
	return nil
}

func (c *client) Ask(ctx context.Context, r domain.PermissionRequest) (domain.Decision, error) {
	c.mu.Lock()
	c.asked = append(c.asked, r)
	answer := c.answer
	c.mu.Unlock()
	if answer == nil {
		return choose("allow-once")(ctx, r)
	}
	return answer(ctx, r)
}

func (c *client) Info() domain.ClientInfo    { return c.info }
func (c *client) Files() (ports.Files, bool) { return nil, false }
func (c *client) log() []domain.Update {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]domain.Update(nil), c.told...)
}
func (c *client) questions() int { c.mu.Lock(); defer c.mu.Unlock(); return len(c.asked) }
func (c *client) gone()          { c.mu.Lock(); defer c.mu.Unlock(); c.stopped = true }
func (c *client) setSend(f func(context.Context, domain.Update) error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.onSend = f
}

// choose answers every question with an option.
func choose(option string) func(context.Context, domain.PermissionRequest) (domain.Decision, error) {
	return func(context.Context, domain.PermissionRequest) (domain.Decision, error) {
		return domain.Decision{Outcome: domain.Selected, Option: option}, nil
	}
}

// step is what a model does with one request.
type step func(ctx context.Context, req domain.ModelRequest, yield func(domain.ModelEvent, error) bool)

// model plays one step for each request, the last one again and again.
type model struct {
	mu       sync.Mutex
	steps    []step
	requests []domain.ModelRequest
	info     *domain.ModelInfo // nil: one with a window of 1,000 tokens
}

var _ ports.Model = (*model)(nil)

func (m *model) Info() domain.ModelInfo {
	if m.info != nil {
		return *m.info
	}
	return domain.ModelInfo{Ref: domain.ModelRef{Provider: "test", Model: "one"}, ContextWindow: 1000, Tools: true}
}

func (m *model) Stream(ctx context.Context, req domain.ModelRequest) iter.Seq2[domain.ModelEvent, error] {
	return func(yield func(domain.ModelEvent, error) bool) {
		m.mu.Lock()
		m.requests = append(m.requests, req)
		next := m.steps[0]
		if len(m.steps) > 1 {
			m.steps = m.steps[1:]
		}
		m.mu.Unlock()
		next(ctx, req, yield)
	}
}

func (m *model) play(steps ...step) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.steps = steps
}

func (m *model) seen() []domain.ModelRequest {
	m.mu.Lock()
	defer m.mu.Unlock()
	return append([]domain.ModelRequest(nil), m.requests...)
}

// events yields events and then a finish. Between calls and the finish nothing
// stops it, as with a reply that is complete.
func events(reason domain.FinishReason, evs ...domain.ModelEvent) step {
	return func(ctx context.Context, _ domain.ModelRequest, yield func(domain.ModelEvent, error) bool) {
		complete := false
		for _, ev := range append(evs, domain.Finish{Reason: reason}) {
			if ctx.Err() != nil && !complete {
				yield(nil, domain.WrapError(domain.Cancelled, context.Cause(ctx), "The request was cancelled"))
				return
			}
			if !yield(ev, nil) {
				return
			}
			if _, ok := ev.(domain.CallRequested); ok {
				complete = true
			}
		}
	}
}

// says answers with a text and a count of tokens.
func says(text string) step {
	return events(domain.FinishStop, domain.TextDelta{Text: text}, domain.UsageReported{Usage: domain.Usage{Input: 10, Output: 1}})
}

// wants says a text and asks for calls of the named tools.
func wants(text string, tools ...string) step {
	var evs []domain.ModelEvent
	if text != "" {
		evs = append(evs, domain.TextDelta{Text: text})
	}
	for _, name := range tools {
		evs = append(evs, domain.CallRequested{Call: domain.ModelCall{ProviderID: "p", Name: name, Args: []byte(`{"x":1}`)}})
	}
	return events(domain.FinishCalls, evs...)
}

// fails streams a text and breaks off with an error.
func fails(text string, err error) step {
	return func(_ context.Context, _ domain.ModelRequest, yield func(domain.ModelEvent, error) bool) {
		if text == "" || yield(domain.TextDelta{Text: text}, nil) {
			yield(nil, err)
		}
	}
}

// tool is a tool whose behaviour is written in the test.
type tool struct {
	spec    domain.ToolSpec
	access  domain.Access
	prepare func(context.Context, domain.ToolCall) error
	plan    func() domain.ToolPlan
	run     func(context.Context, func(domain.ToolProgress)) (domain.ToolResult, error)

	mu               sync.Mutex
	runs, open, most int
	closed           int
}

var _ ports.Tool = (*tool)(nil)

func (t *tool) Spec() domain.ToolSpec { return t.spec }

func (t *tool) Prepare(ctx context.Context, call domain.ToolCall) (ports.Prepared, error) {
	if t.prepare != nil {
		if err := t.prepare(ctx, call); err != nil {
			return nil, err
		}
	}
	return &prepared{tool: t}, nil
}

func (t *tool) ran() int { t.mu.Lock(); defer t.mu.Unlock(); return t.runs }

type prepared struct{ tool *tool }

func (p *prepared) Plan() domain.ToolPlan {
	if p.tool.plan != nil {
		return p.tool.plan()
	}
	return domain.ToolPlan{Title: "Run " + p.tool.spec.Name, Kind: p.tool.spec.Kind, Access: p.tool.access}
}

func (p *prepared) Run(ctx context.Context, progress func(domain.ToolProgress)) (domain.ToolResult, error) {
	t := p.tool
	t.mu.Lock()
	t.runs++
	t.open++
	t.most = max(t.most, t.open)
	t.mu.Unlock()
	defer func() {
		t.mu.Lock()
		t.open--
		t.mu.Unlock()
	}()
	if t.run == nil {
		return domain.ToolResult{Text: "done by " + t.spec.Name}, nil
	}
	return t.run(ctx, progress)
}

func (p *prepared) Close() error {
	p.tool.mu.Lock()
	defer p.tool.mu.Unlock()
	p.tool.closed++
	return nil
}

func reader(name string) *tool {
	return &tool{spec: domain.ToolSpec{Name: name, Kind: domain.KindRead, ReadOnly: true}, access: domain.Access{Class: domain.AccessRead}}
}

func editor(name string) *tool {
	return &tool{spec: domain.ToolSpec{Name: name, Kind: domain.KindEdit}, access: domain.Access{Class: domain.AccessEdit, Scope: "/project"}}
}

// takes makes a run last, or end with the context.
func takes(d time.Duration) func(context.Context, func(domain.ToolProgress)) (domain.ToolResult, error) {
	return func(ctx context.Context, _ func(domain.ToolProgress)) (domain.ToolResult, error) {
		return domain.ToolResult{Text: "done"}, pause(ctx, d)
	}
}

// pause waits, or returns the cause of the context's end.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// toolbox is the tools of every session.
type toolbox struct {
	tools  []ports.Tool
	mu     sync.Mutex
	opened int
	closed int
}

func (b *toolbox) Open(context.Context, domain.Session, ports.Client) (ports.Toolset, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.opened++
	return &toolset{box: b}, nil
}

func (b *toolbox) left() int { b.mu.Lock(); defer b.mu.Unlock(); return b.opened - b.closed }

type toolset struct{ box *toolbox }

func (s *toolset) Tools() []ports.Tool { return s.box.tools }

func (s *toolset) Close() error {
	s.box.mu.Lock()
	defer s.box.mu.Unlock()
	s.box.closed++
	return nil
}

// models opens one model for every reference.
type models struct {
	model  ports.Model
	onOpen func(context.Context) error
}

func (m *models) Open(ctx context.Context, _ domain.ModelRef) (ports.Model, error) {
	if m.onOpen != nil {
		if err := m.onOpen(ctx); err != nil {
			return nil, err
		}
	}
	return m.model, nil
}

func (m *models) Describe(domain.ModelRef) domain.ModelInfo { return m.model.Info() }

func (m *models) Catalog(context.Context) ([]domain.ModelInfo, error) {
	return []domain.ModelInfo{m.model.Info()}, nil
}

// agents is one agent called "default".
type agents struct{ agent domain.Agent }

func (a *agents) Agent(alias string) (domain.Agent, bool) { return a.agent, alias == a.agent.Alias }
func (a *agents) All() []domain.Agent                     { return []domain.Agent{a.agent} }
func (a *agents) Default() string                         { return "" }

// roots takes every directory as it is.
type roots struct{}

func (roots) Resolve(_ context.Context, agent domain.Agent, d domain.Directories) (domain.Session, error) {
	return domain.Session{Cwd: d.Cwd, CwdGiven: d.Cwd, Additional: d.Additional, Workspace: agent.Workspace}, nil
}

func (roots) Canonical(path string) string { return path }

// blobs names blobs by their length.
type blobs struct {
	onStore func(context.Context) error
	files   map[string][]byte // by path; what is not there cannot be read
	size    int64             // of every attachment
}

func (b *blobs) Store(ctx context.Context, s domain.Session, in []domain.Resource) ([]domain.Attachment, error) {
	if b.onStore != nil {
		if err := b.onStore(ctx); err != nil {
			return nil, err
		}
	}
	out := make([]domain.Attachment, len(in))
	for i, r := range in {
		out[i] = domain.Attachment{Path: fmt.Sprintf("%s/uploads/%d.bin", s.Cwd, len(r.Blob)), MIME: r.MIME, URI: r.URI, Name: "blob", Size: b.size}
	}
	return out, nil
}

func (b *blobs) Read(_ context.Context, _ domain.Session, a domain.Attachment) ([]byte, error) {
	if data, ok := b.files[a.Path]; ok {
		return data, nil
	}
	return nil, domain.Errorf(domain.NotFound, "nothing is shown again here")
}

func (b *blobs) Remove(context.Context, domain.Session, []domain.Attachment) error { return nil }

// observer keeps what it sees.
type observer struct {
	mu     sync.Mutex
	events []domain.Event
}

func (o *observer) Observe(_ context.Context, ev domain.Event) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.events = append(o.events, ev)
}

// troubles returns what went wrong, as text.
func (o *observer) seen() []domain.Event {
	o.mu.Lock()
	defer o.mu.Unlock()
	return append([]domain.Event(nil), o.events...)
}

func (o *observer) troubles() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	var out []string
	for _, ev := range o.events {
		if tr, ok := ev.(domain.Trouble); ok {
			out = append(out, tr.Where+": "+tr.Err.Error())
		}
	}
	return out
}

// store puts a hook before each append of a real store. What the hook returns
// is the answer; after says that the append was done all the same.
type store struct {
	ports.Store
	mu       sync.Mutex
	appends  int
	onAppend func(ctx context.Context, n int, recs []domain.Record) (after bool, err error)
	lag      func() time.Duration // how long an append takes after it was done; nil: no time
}

func (s *store) hook(f func(ctx context.Context, n int, recs []domain.Record) (bool, error)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.appends, s.onAppend = 0, f
}

func (s *store) Append(ctx context.Context, id domain.SessionID, after domain.Seq, recs ...domain.Record) (domain.Seq, error) {
	s.mu.Lock()
	s.appends++
	n, hook := s.appends, s.onAppend
	if s.lag != nil {
		defer time.Sleep(s.lag())
	}
	s.mu.Unlock()
	if hook == nil {
		return s.Store.Append(ctx, id, after, recs...)
	}
	applied, err := hook(ctx, n, recs)
	if err != nil && !applied {
		return 0, err
	}
	// A store that has begun ends, whatever became of the context.
	pos, serr := s.Store.Append(context.WithoutCancel(ctx), id, after, recs...)
	if err != nil {
		return 0, err
	}
	return pos, serr
}

// told is instructions and a sandbox that answer as they are set.
type told struct {
	posture domain.Posture
	notes   []domain.Instruction
}

func (t *told) Posture(context.Context, string) domain.Posture { return t.posture }

func (t *told) Known(string) (domain.Posture, bool) { return t.posture, true }

func (t *told) Read(context.Context, domain.Session, domain.Agent) []domain.Instruction {
	return t.notes
}
