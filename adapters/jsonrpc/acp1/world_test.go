package acp1

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/berth-dev/berth/core/domain"
	"github.com/berth-dev/berth/core/ports"
)

// world is the agent behind the protocol, in memory: sessions and turns as
// simple as their contracts allow. The test sets the fields before the
// connection is served.
type world struct {
	volatile bool // keeps no sessions
	agents   []domain.Agent
	fallback string // the configured default agent
	models   map[domain.ModelRef]error
	senses   domain.ModelInfo // what every model can take
	history  []domain.Update  // what a load replays
	notes    []string
	commands []domain.Command
	pageSize int
	set      func(*Params)
	// turn is what a prompt does; the default answers "hello".
	turn func(ctx context.Context, c ports.Client, id domain.SessionID, p domain.Prompt) (domain.TurnOutcome, error)

	mu       sync.Mutex
	sessions map[domain.SessionID]*session
	rows     []domain.Session
	opened   []domain.OpenSession
	created  []domain.NewSession
	events   []domain.ClientEvent
	prompts  []domain.Prompt
	queries  []domain.SessionQuery
	detached error
	lost     bool
	running  domain.OpenedSession // what is said of every turn that goes on
	watching []ports.Client
	client   ports.Client // that asked for the newest session
	counter  int
}

// session is one active session.
type session struct {
	queue   []*turn // the first one runs
	stopped bool
}

type turn struct {
	cancel context.CancelCauseFunc
	begin  chan struct{} // closed when it is this turn's turn
	done   chan struct{}
}

func newWorld() *world {
	return &world{
		agents:   []domain.Agent{{Alias: "default", Title: "Default", Enabled: true, Model: domain.ModelRef{Provider: "p", Model: "m"}}},
		sessions: map[domain.SessionID]*session{},
	}
}

func (w *world) params() Params {
	p := Params{
		Sessions: w, Turns: w, Agents: w, Models: models{w}, Roots: w,
		Info: Info{Name: "berth", Title: "Berth", Version: "0.0.1"},
	}
	if w.set != nil {
		w.set(&p)
	}
	return p
}

func (w *world) New(_ context.Context, c ports.Client, n domain.NewSession) (domain.OpenedSession, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.client = c
	n.Answered = nil
	w.created = append(w.created, n)
	if n.RequireExisting {
		return domain.OpenedSession{}, domain.Errorf(domain.InvalidArgument, "no session has the key %q", n.Key)
	}
	if strings.HasSuffix(n.Dirs.Cwd, "/nowhere") {
		return domain.OpenedSession{}, domain.Errorf(domain.InvalidArgument, "cwd %q does not exist", n.Dirs.Cwd)
	}
	if len(w.sessions) >= 10 {
		return domain.OpenedSession{}, domain.Errorf(domain.SessionLimit, "10 sessions are active: close one first").With("limit", 10)
	}
	if err := w.models[domain.ModelRef{Provider: "p", Model: "m"}]; err != nil {
		return domain.OpenedSession{}, err
	}
	w.counter++
	id := domain.SessionID(fmt.Sprintf("00000000-0000-4000-8000-%012d", w.counter))
	s := domain.Session{
		ID: id, Key: "acp:" + string(id), Label: n.Label, Agent: "default", Cwd: n.Dirs.Cwd, CwdGiven: n.Dirs.Cwd,
		Additional: n.Dirs.Additional, UpdatedAt: time.Now().UTC(),
	}
	switch {
	case s.Cwd == "", s.Cwd == ".":
		s.Cwd = "/data/agents/default/workspace"
	case !filepath.IsAbs(s.Cwd):
		s.Cwd = filepath.Join("/process", s.Cwd)
	}
	w.rows = append(w.rows, s)
	w.sessions[id] = &session{}
	return w.describe(s, true), nil
}

func (w *world) describe(s domain.Session, created bool) domain.OpenedSession {
	return domain.OpenedSession{
		Session: s, Agent: w.agents[0], Model: domain.ModelInfo{Ref: w.agents[0].Model, Title: "Big M"},
		Created: created, Notes: slices.Clone(w.notes), Commands: w.commands,
		Running: w.running.Running, Queued: w.running.Queued,
	}
}

func (w *world) Open(c ports.Client, o domain.OpenSession) (func(context.Context) (domain.OpenedSession, error), error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	o.Answered = nil
	w.opened = append(w.opened, o)
	i := slices.IndexFunc(w.rows, func(s domain.Session) bool { return s.ID == o.ID })
	if i < 0 {
		return nil, domain.NoSession(o.ID)
	}
	if w.sessions[o.ID] != nil && !o.Takeover {
		return nil, domain.Errorf(domain.SessionActive, "session %s is active: close it first", o.ID)
	}
	w.sessions[o.ID] = &session{}
	row := w.rows[i]
	return func(ctx context.Context) (domain.OpenedSession, error) {
		if o.Replay {
			for _, u := range w.history {
				if err := c.Send(ctx, o.ID, u); err != nil {
					return domain.OpenedSession{}, err
				}
			}
		}
		return w.describe(row, false), nil
	}, nil
}

// leave takes a session out of memory and returns what was running.
func (w *world) leave(id domain.SessionID) ([]*turn, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := w.sessions[id]
	if s == nil {
		return nil, domain.NoSession(id)
	}
	s.stopped = true
	delete(w.sessions, id)
	return slices.Clone(s.queue), nil
}

func (w *world) Close(_ ports.Client, id domain.SessionID) (func(context.Context) error, error) {
	turns, err := w.leave(id)
	if err != nil {
		return nil, err
	}
	for _, t := range turns {
		t.cancel(domain.SessionClosed)
	}
	return waitFor(turns), nil
}

func (w *world) Stop(_ ports.Client, id domain.SessionID) (func(context.Context) error, error) {
	turns, err := w.leave(id)
	if err != nil {
		return nil, err
	}
	return waitFor(turns), nil
}

func waitFor(turns []*turn) func(context.Context) error {
	return func(context.Context) error {
		for _, t := range turns {
			<-t.done
		}
		return nil
	}
}

func (w *world) Delete(c ports.Client, id domain.SessionID) (func(context.Context) error, error) {
	run, err := w.Close(c, id)
	if err != nil {
		run = func(context.Context) error { return nil }
	}
	return func(ctx context.Context) error {
		err := run(ctx)
		w.mu.Lock()
		defer w.mu.Unlock()
		before := len(w.rows)
		w.rows = slices.DeleteFunc(w.rows, func(s domain.Session) bool { return s.ID == id })
		if len(w.rows) == before {
			return domain.NoSession(id)
		}
		return err
	}, nil
}

func (w *world) Event(_ ports.Client, id domain.SessionID, e domain.ClientEvent) (func(context.Context) error, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.sessions[id] == nil {
		return nil, domain.NoSession(id)
	}
	return func(context.Context) error {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.events = append(w.events, e)
		return nil
	}, nil
}

func (w *world) List(_ context.Context, _ ports.Client, q domain.SessionQuery) (domain.SessionPage, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.queries = append(w.queries, q)
	var page domain.SessionPage
	rows := slices.Clone(w.rows)
	slices.Reverse(rows) // newest first
	if q.After != nil {
		i := slices.IndexFunc(rows, func(s domain.Session) bool { return s.ID == q.After.ID })
		rows = rows[i+1:]
	}
	for _, s := range rows {
		if q.Cwd != "" && s.Cwd != q.Cwd {
			continue
		}
		if w.pageSize > 0 && len(page.Sessions) == w.pageSize {
			last := page.Sessions[len(page.Sessions)-1]
			page.Next = &domain.SessionCursor{UpdatedAt: last.UpdatedAt, ID: last.ID}
			break
		}
		page.Sessions = append(page.Sessions, s)
	}
	return page, nil
}

func (w *world) Await(_ ports.Client, id domain.SessionID, turn domain.TurnID) (func(context.Context) (domain.TurnOutcome, error), error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := w.sessions[id]
	if s == nil {
		return nil, domain.NoSession(id)
	}
	return func(context.Context) (domain.TurnOutcome, error) {
		return domain.TurnOutcome{Turn: turn, Stop: domain.StopEndTurn, Text: "awaited"}, nil
	}, nil
}

func (w *world) Observe(c ports.Client, id domain.SessionID, replay bool, _ <-chan struct{}) (func(context.Context) (domain.OpenedSession, error), error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	i := slices.IndexFunc(w.rows, func(s domain.Session) bool { return s.ID == id })
	if i < 0 {
		return nil, domain.NoSession(id)
	}
	w.watching = append(w.watching, c)
	opened := w.describe(w.rows[i], false)
	opened.Running, opened.Queued = "t1", []domain.QueuedTurn{{Turn: "t2", Blocks: []domain.Block{domain.Text{Text: "next"}}}}
	return func(ctx context.Context) (domain.OpenedSession, error) {
		if replay {
			for _, u := range w.history {
				if err := c.Send(ctx, id, u); err != nil {
					return domain.OpenedSession{}, err
				}
			}
		}
		return opened, nil
	}, nil
}

func (w *world) Unobserve(c ports.Client, id domain.SessionID) (rest func(context.Context) error, was bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := len(w.watching)
	w.watching = slices.DeleteFunc(w.watching, func(o ports.Client) bool { return o == c })
	if was = len(w.watching) < n; !was {
		return func(context.Context) error { return nil }, false
	}
	return func(ctx context.Context) error { // one thing was under way
		return c.Send(ctx, id, domain.AgentText{ID: "m", Text: "the last"})
	}, true
}

func (w *world) Absent(ports.Client, bool) {}

func (w *world) Lose(c ports.Client) {
	w.Detach(c, domain.Disconnected)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lost = true
}

func (w *world) Detach(_ ports.Client, cause error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.detached = cause
	for _, s := range w.sessions {
		for _, t := range s.queue {
			t.cancel(cause)
		}
	}
}

func (w *world) Durable() bool { return !w.volatile }

func (w *world) Begin(ctx context.Context, c ports.Client, id domain.SessionID, p domain.Prompt) (
	func() (domain.TurnOutcome, error), error,
) {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := w.sessions[id]
	if s == nil {
		return nil, domain.NoSession(id)
	}
	if len(s.queue) > 0 && !p.Queue {
		return nil, domain.Errorf(domain.SessionBusy, "a turn is running in session %s: wait for it or cancel it", id)
	}
	w.prompts = append(w.prompts, p)
	t := &turn{begin: make(chan struct{}), done: make(chan struct{})}
	ctx, t.cancel = context.WithCancelCause(ctx)
	if s.queue = append(s.queue, t); len(s.queue) == 1 {
		close(t.begin)
	}
	return func() (domain.TurnOutcome, error) {
		defer w.finish(s, t)
		select {
		case <-t.begin:
		case <-ctx.Done():
		}
		var out domain.TurnOutcome
		var err error
		if ctx.Err() == nil {
			out, err = w.body(ctx, c, id, p)
		}
		out.Turn = "t1"
		out.Stop, err = domain.StopFor(context.Cause(ctx), out.Stop, err)
		return out, err
	}, nil
}

func (w *world) body(ctx context.Context, c ports.Client, id domain.SessionID, p domain.Prompt) (domain.TurnOutcome, error) {
	if w.turn != nil {
		return w.turn(ctx, c, id, p)
	}
	err := c.Send(ctx, id, domain.AgentText{ID: "m1", Text: "hello"})
	return domain.TurnOutcome{Stop: domain.StopEndTurn, Text: "hello", Usage: domain.Usage{Input: 7, Output: 3}}, err
}

func (w *world) finish(s *session, t *turn) {
	w.mu.Lock()
	defer w.mu.Unlock()
	t.cancel(nil)
	close(t.done)
	first := s.queue[0] == t
	s.queue = slices.DeleteFunc(s.queue, func(o *turn) bool { return o == t })
	if first && len(s.queue) > 0 {
		close(s.queue[0].begin)
	}
}

func (w *world) Cancel(_ ports.Client, id domain.SessionID, cause error) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := w.sessions[id]
	if s == nil {
		return false
	}
	for _, t := range s.queue {
		t.cancel(cause)
	}
	return len(s.queue) > 0
}

func (w *world) Agent(alias string) (domain.Agent, bool) {
	i := slices.IndexFunc(w.agents, func(a domain.Agent) bool { return a.Alias == alias })
	if i < 0 {
		return domain.Agent{}, false
	}
	return w.agents[i], true
}
func (w *world) All() []domain.Agent { return w.agents }
func (w *world) Default() string     { return w.fallback }

func (w *world) Resolve(context.Context, domain.Agent, domain.Directories) (domain.Session, error) {
	return domain.Session{}, errors.New("the protocol does not resolve directories itself")
}

// Canonical knows one link: /link is /proj.
func (w *world) Canonical(path string) string {
	if path == "/link" {
		return "/proj"
	}
	return filepath.Clean(path)
}

type models struct{ w *world }

func (m models) Open(_ context.Context, ref domain.ModelRef) (ports.Model, error) {
	return nil, m.w.models[ref]
}
func (m models) Describe(ref domain.ModelRef) domain.ModelInfo {
	info := m.w.senses
	info.Ref = ref
	return info
}

func (m models) Catalog(context.Context) ([]domain.ModelInfo, error) { return nil, nil }

// waits is a turn that says it began and ends only with its context.
func waits(ctx context.Context, c ports.Client, id domain.SessionID, _ domain.Prompt) (domain.TurnOutcome, error) {
	if err := c.Send(ctx, id, domain.AgentText{ID: "m1", Text: "thinking"}); err != nil {
		return domain.TurnOutcome{Text: "thinking"}, err
	}
	<-ctx.Done()
	return domain.TurnOutcome{Text: "thinking"}, errors.New("the provider hung up")
}
