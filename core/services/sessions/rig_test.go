package sessions_test

import (
	"context"
	"fmt"
	"iter"
	"path"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/berth-dev/berth/adapters/memory"
	"github.com/berth-dev/berth/core/domain"
	"github.com/berth-dev/berth/core/ports"
	"github.com/berth-dev/berth/core/services/sessions"
)

// idleTimeout is when a session of these tests leaves memory.
const idleTimeout = time.Hour

// world is a session service over fakes and a store in memory.
type world struct {
	t        *testing.T
	memory   *memory.Store
	store    *store
	svc      *sessions.Service
	client   *client
	agents   *agents
	roots    *roots
	models   *models
	blobs    *blobs
	tools    *tools
	observer *observer
	sandbox  *sandbox
	durable  atomic.Bool
	config   sessions.Config
}

func newWorld(t *testing.T) *world {
	w := &world{
		t: t, memory: memory.New(time.Now), client: &client{}, roots: &roots{}, models: &models{}, blobs: &blobs{},
		tools: &tools{}, observer: &observer{}, sandbox: &sandbox{},
		agents: &agents{list: []domain.Agent{agent("default")}},
	}
	w.store = &store{Store: w.memory}
	w.durable.Store(true)
	w.config = sessions.Config{MaxSessions: 3, QueueLimit: 2, IdleTimeout: idleTimeout}
	w.svc = w.process(w.store)
	return w
}

// process returns a service over a store, as another process would have it.
func (w *world) process(s ports.Store) *sessions.Service {
	return sessions.New(sessions.Params{
		Config:   w.config,
		Sessions: s, Journal: s, Leases: s, Durable: w.durable.Load,
		Agents: w.agents, Models: w.models, Roots: w.roots, Blobs: w.blobs, Tools: []ports.ToolSource{w.tools, w.tools},
		Sandbox: w.sandbox, Observer: w.observer, Clock: time.Now, IDs: ids(),
	})
}

var nextID atomic.Int64

func ids() ports.IDs {
	return func() string { return fmt.Sprintf("id-%d", nextID.Add(1)) }
}

// bubble runs a test in a synctest bubble and demands at its end that nothing
// is left: no session, no tool, no lease, no goroutine.
func bubble(t *testing.T, fn func(t *testing.T, w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		fn(t, w)
		if err := w.svc.Shutdown(t.Context(), domain.ProcessEnding); err != nil {
			t.Errorf("shutdown: %v", err)
		}
		synctest.Wait()
		if n := w.tools.left(); n != 0 {
			t.Errorf("%d toolsets are left open", n)
		}
		w.wantFree()
	})
}

// grace is how long a lost client is waited for in a patient bubble.
const grace = 15 * time.Minute

// patient is a bubble in which lost clients are waited for, and four sessions
// of all clients may be active.
func patient(t *testing.T, fn func(t *testing.T, w *world)) {
	t.Helper()
	bubble(t, func(t *testing.T, w *world) {
		w.config.Grace, w.config.MaxTotal = grace, 4
		w.svc = w.process(w.store)
		fn(t, w)
	})
}

// wantFree demands that another process could take every session.
func (w *world) wantFree() {
	w.t.Helper()
	other := w.memory.Other()
	page, err := w.memory.List(context.Background(), domain.SessionQuery{All: true, Limit: 200})
	if err != nil {
		w.t.Fatal(err)
	}
	for _, row := range page.Sessions {
		if err := other.Acquire(context.Background(), row.ID); err != nil {
			w.t.Errorf("the lease of %s was kept: %v", row.ID, err)
		}
	}
	_ = other.Close()
}

// leased reports whether this process holds the session's lease.
func (w *world) leased(id domain.SessionID) bool {
	other := w.memory.Other()
	defer func() { _ = other.Close() }()
	return other.Acquire(context.Background(), id) != nil
}

func agent(alias string) domain.Agent {
	return domain.Agent{Alias: alias, Enabled: true, Model: domain.ModelRef{Provider: "test", Model: alias}, Workspace: "/agents/" + alias, MaxTurnRequests: 5}
}

func in(dir string) domain.NewSession {
	return domain.NewSession{Dirs: domain.Directories{Cwd: dir}}
}

func (w *world) open(req domain.NewSession) domain.OpenedSession {
	w.t.Helper()
	opened, err := w.svc.New(w.t.Context(), w.client, req)
	if err != nil {
		w.t.Fatalf("new session: %v", err)
	}
	return opened
}

func (w *world) fresh() domain.SessionID {
	w.t.Helper()
	return w.open(in("/project")).Session.ID
}

func (w *world) load(c ports.Client, req domain.OpenSession) (domain.OpenedSession, error) {
	run, err := w.svc.Open(c, req)
	if err != nil {
		return domain.OpenedSession{}, err
	}
	return run(w.t.Context())
}

// end runs Close, Stop or Delete whole.
func (w *world) end(fn func(ports.Client, domain.SessionID) (func(context.Context) error, error), c ports.Client, id domain.SessionID) error {
	run, err := fn(c, id)
	if err != nil {
		return err
	}
	return run(w.t.Context())
}

func (w *world) wantCode(err error, code domain.Code) {
	w.t.Helper()
	if !domain.HasCode(err, code) {
		w.t.Errorf("the error is %v, want code %v", err, code)
	}
}

// turn is one admitted prompt, played by the test instead of an engine.
type turn struct {
	ticket *sessions.Ticket
	ctx    context.Context
}

func (w *world) tryAdmit(id domain.SessionID, queue bool) (*turn, error) {
	ctx, cancel := context.WithCancelCause(context.Background())
	ticket, err := w.svc.Admit(w.client, id, sessions.Admission{Turn: domain.TurnID(fmt.Sprintf("turn-%d", nextID.Add(1))), Queue: queue, Cancel: cancel})
	if err != nil {
		cancel(nil)
		return nil, err
	}
	return &turn{ticket: ticket, ctx: ctx}, nil
}

func (w *world) admit(id domain.SessionID) *turn {
	w.t.Helper()
	turn, err := w.tryAdmit(id, true)
	if err != nil {
		w.t.Fatalf("admit: %v", err)
	}
	return turn
}

// run plays a turn of the given length: it waits for its place, holds the
// session, and ends early when it is cancelled.
func (u *turn) run(d time.Duration, recs ...domain.Record) error {
	defer u.ticket.Done(nil)
	if err := u.ticket.Wait(u.ctx); err != nil {
		return err
	}
	if _, err := u.ticket.Live.Hold(context.Background()); err != nil {
		return err
	}
	defer u.ticket.Live.Drop()
	if err := u.ticket.Live.Append(context.Background(), nil, recs...); err != nil {
		return err
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-u.ctx.Done():
		return context.Cause(u.ctx)
	}
}

// begin runs a turn in the background.
func (w *world) begin(id domain.SessionID, d time.Duration) (turn *turn, ended <-chan error) {
	w.t.Helper()
	turn = w.admit(id)
	done := make(chan error, 1)
	go func() { done <- turn.run(d) }()
	return turn, done
}

// says stores a turn with a text in a session that is open.
func (w *world) says(id domain.SessionID, recs ...domain.Record) {
	w.t.Helper()
	if err := w.admit(id).run(0, recs...); err != nil {
		w.t.Fatalf("store a turn: %v", err)
	}
}

func whole(n int) []domain.Record {
	id := domain.TurnID(fmt.Sprintf("t%d", n))
	return []domain.Record{
		domain.UserSaid{Turn: id, ID: domain.MessageID(id + "-u"), Blocks: []domain.Block{domain.Text{Text: "go " + string(id)}}},
		domain.AssistantSaid{Turn: id, Parts: []domain.MessagePart{{ID: domain.MessageID(id + "-m"), Text: "done"}}, Usage: domain.Usage{Input: 5}, Window: 100},
		domain.TurnFinished{Turn: id, Stop: domain.StopEndTurn},
	}
}

// client takes what it is told.
type client struct {
	mu     sync.Mutex
	told   []domain.Update
	onSend func(context.Context, domain.Update) error
	rights *domain.Rights
	asked  int
	answer func(context.Context) (domain.Decision, error)
}

func (c *client) Send(ctx context.Context, _ domain.SessionID, u domain.Update) error {
	c.mu.Lock()
	hook := c.onSend
	c.mu.Unlock()
	if hook != nil {
		if err := hook(ctx, u); err != nil {
			return err
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.told = append(c.told, u)
	return nil
}

func (c *client) Ask(ctx context.Context, _ domain.PermissionRequest) (domain.Decision, error) {
	c.mu.Lock()
	c.asked++
	answer := c.answer
	c.mu.Unlock()
	if answer == nil {
		<-ctx.Done()
		return domain.Decision{}, context.Cause(ctx)
	}
	return answer(ctx)
}

func (c *client) questions() int { c.mu.Lock(); defer c.mu.Unlock(); return c.asked }

func (c *client) Info() domain.ClientInfo    { return domain.ClientInfo{Name: "fake", Rights: c.rights} }
func (c *client) Files() (ports.Files, bool) { return nil, false }

func (c *client) log() []domain.Update {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.told)
}

// agents is a table of agents.
type agents struct {
	mu   sync.Mutex
	list []domain.Agent
	def  string
}

func (a *agents) set(def string, list ...domain.Agent) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.def, a.list = def, list
}

func (a *agents) Agent(alias string) (domain.Agent, bool) {
	for _, g := range a.All() {
		if g.Alias == alias {
			return g, true
		}
	}
	return domain.Agent{}, false
}

func (a *agents) All() []domain.Agent { a.mu.Lock(); defer a.mu.Unlock(); return slices.Clone(a.list) }
func (a *agents) Default() string     { a.mu.Lock(); defer a.mu.Unlock(); return a.def }

// models knows every model but those of the provider "none".
type models struct{}

func (*models) Open(_ context.Context, ref domain.ModelRef) (ports.Model, error) {
	if ref.Provider == "none" {
		return nil, domain.Errorf(domain.AuthRequired, "no key for %s", ref)
	}
	return model{ref}, nil
}

func (*models) Describe(ref domain.ModelRef) domain.ModelInfo {
	return domain.ModelInfo{Ref: ref, Title: ref.Model}
}

func (*models) Catalog(context.Context) ([]domain.ModelInfo, error) { return nil, nil }

type model struct{ ref domain.ModelRef }

func (m model) Info() domain.ModelInfo { return domain.ModelInfo{Ref: m.ref} }

func (m model) Stream(context.Context, domain.ModelRequest) iter.Seq2[domain.ModelEvent, error] {
	return func(func(domain.ModelEvent, error) bool) {}
}

// roots takes absolute paths but those below "/missing", and cleans them.
type roots struct{}

func (*roots) Resolve(_ context.Context, a domain.Agent, d domain.Directories) (domain.Session, error) {
	s := domain.Session{Cwd: path.Clean(d.Cwd), CwdGiven: d.Cwd, Workspace: a.Workspace}
	for _, dir := range append([]string{d.Cwd}, d.Additional...) {
		if !path.IsAbs(dir) || strings.HasPrefix(dir, "/missing") {
			return domain.Session{}, domain.Errorf(domain.InvalidArgument, "the directory %q does not exist", dir)
		}
	}
	s.Additional = d.Additional
	return s, nil
}

func (*roots) Canonical(dir string) string { return path.Clean(dir) }

// blobs remembers what was removed, and reads what it is told it holds.
type blobs struct {
	mu      sync.Mutex
	removed []string
	holds   map[string]string // path to content
}

func (b *blobs) Read(_ context.Context, _ domain.Session, a domain.Attachment) ([]byte, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	text, ok := b.holds[a.Path]
	switch {
	case !ok:
		return nil, domain.Errorf(domain.NotFound, "%s does not exist", a.Path)
	case text != a.SHA256:
		return nil, domain.Errorf(domain.Conflict, "%s has changed", a.Path)
	}
	return []byte(text), nil
}

func (b *blobs) Store(context.Context, domain.Session, []domain.Resource) ([]domain.Attachment, error) {
	return nil, nil
}

func (b *blobs) Remove(_ context.Context, _ domain.Session, list []domain.Attachment) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, a := range list {
		b.removed = append(b.removed, a.Path)
	}
	slices.Sort(b.removed)
	return nil
}

// tools counts the toolsets that are open.
type tools struct {
	mu             sync.Mutex
	opened, closed int
	onOpen         func(context.Context, domain.Session) error
	onClose        func() error
}

func (s *tools) Open(ctx context.Context, row domain.Session, _ ports.Client) (ports.Toolset, error) {
	s.mu.Lock()
	hook := s.onOpen
	s.mu.Unlock()
	if hook != nil {
		if err := hook(ctx, row); err != nil {
			return nil, err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.opened++
	return &toolset{of: s}, nil
}

func (s *tools) left() int { s.mu.Lock(); defer s.mu.Unlock(); return s.opened - s.closed }

func (s *tools) hooks(open func(context.Context, domain.Session) error, end func() error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.onOpen, s.onClose = open, end
}

type toolset struct{ of *tools }

func (s *toolset) Tools() []ports.Tool { return nil }

func (s *toolset) Close() error {
	s.of.mu.Lock()
	s.of.closed++
	hook := s.of.onClose
	s.of.mu.Unlock()
	if hook != nil {
		return hook()
	}
	return nil
}

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

// life lists how sessions entered and left memory.
func (o *observer) life() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	var out []string
	for _, ev := range o.events {
		if e, ok := ev.(domain.SessionOpened); ok {
			out = append(out, "+"+e.How)
		}
		if e, ok := ev.(domain.SessionReleased); ok {
			out = append(out, "-"+e.How)
		}
	}
	return strings.Join(out, " ")
}

func (o *observer) troubles() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	var out []string
	for _, ev := range o.events {
		if e, ok := ev.(domain.Trouble); ok {
			out = append(out, e.Where+": "+e.Err.Error())
		}
	}
	return strings.Join(out, "\n")
}

// store puts a hook before every call of a real store.
type store struct {
	ports.Store
	mu   sync.Mutex
	hook func(ctx context.Context, method string) error
}

func (s *store) before(hook func(ctx context.Context, method string) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hook = hook
}

func (s *store) call(ctx context.Context, method string) error {
	s.mu.Lock()
	hook := s.hook
	s.mu.Unlock()
	if hook == nil {
		return nil
	}
	return hook(ctx, method)
}

func (s *store) Create(ctx context.Context, row domain.Session) error {
	if err := s.call(ctx, "create"); err != nil {
		return err
	}
	return s.Store.Create(ctx, row)
}

func (s *store) Load(ctx context.Context, id domain.SessionID) (domain.Session, error) {
	if err := s.call(ctx, "load"); err != nil {
		return domain.Session{}, err
	}
	return s.Store.Load(ctx, id)
}

func (s *store) Update(ctx context.Context, id domain.SessionID, fn func(*domain.Session) error) error {
	if err := s.call(ctx, "update"); err != nil {
		return err
	}
	return s.Store.Update(ctx, id, fn)
}

func (s *store) Delete(ctx context.Context, id domain.SessionID) error {
	if err := s.call(ctx, "delete"); err != nil {
		return err
	}
	return s.Store.Delete(ctx, id)
}

func (s *store) List(ctx context.Context, q domain.SessionQuery) (domain.SessionPage, error) {
	if err := s.call(ctx, "list"); err != nil {
		return domain.SessionPage{}, err
	}
	return s.Store.List(ctx, q)
}

func (s *store) Append(ctx context.Context, id domain.SessionID, after domain.Seq, recs ...domain.Record) (domain.Seq, error) {
	if err := s.call(ctx, "append"); err != nil {
		return 0, err
	}
	return s.Store.Append(ctx, id, after, recs...)
}

func (s *store) Records(ctx context.Context, id domain.SessionID, after domain.Seq) iter.Seq2[domain.Entry, error] {
	if err := s.call(ctx, "records"); err != nil {
		return func(yield func(domain.Entry, error) bool) { yield(domain.Entry{}, err) }
	}
	return s.Store.Records(ctx, id, after)
}

func (s *store) Acquire(ctx context.Context, id domain.SessionID) error {
	if err := s.call(ctx, "acquire"); err != nil {
		return err
	}
	return s.Store.Acquire(ctx, id)
}

func (s *store) Release(ctx context.Context, id domain.SessionID) error {
	if err := s.call(ctx, "release"); err != nil {
		return err
	}
	return s.Store.Release(ctx, id)
}

// sandbox confines as it is set.
type sandbox struct{ posture domain.Posture }

func (s *sandbox) Posture(context.Context, string) domain.Posture { return s.posture }

func (s *sandbox) Known(string) (domain.Posture, bool) { return s.posture, true }
