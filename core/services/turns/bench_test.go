package turns_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/berth-dev/berth/adapters/memory"
	"github.com/berth-dev/berth/core/domain"
	"github.com/berth-dev/berth/core/ports"
	"github.com/berth-dev/berth/core/services/permissions"
	"github.com/berth-dev/berth/core/services/sessions"
	"github.com/berth-dev/berth/core/services/turns"
)

// null is a client that takes everything, and an observer that sees nothing.
type null struct{ updates atomic.Int64 }

func (n *null) Send(context.Context, domain.SessionID, domain.Update) error {
	n.updates.Add(1)
	return nil
}

func (n *null) Ask(context.Context, domain.PermissionRequest) (domain.Decision, error) {
	return domain.Decision{}, nil
}
func (n *null) Info() domain.ClientInfo               { return domain.ClientInfo{} }
func (n *null) Files() (ports.Files, bool)            { return nil, false }
func (n *null) Observe(context.Context, domain.Event) {}

// chunks streams n deltas that exist already, so that what is measured is the
// engine alone.
func chunks(n int) step {
	evs := make([]domain.ModelEvent, n)
	for i := range evs {
		evs[i] = domain.TextDelta{Text: "a few words "}
	}
	return func(_ context.Context, _ domain.ModelRequest, yield func(domain.ModelEvent, error) bool) {
		for _, ev := range evs {
			if !yield(ev, nil) {
				return
			}
		}
		yield(domain.Finish{Reason: domain.FinishStop}, nil)
	}
}

func benchTurn(b *testing.B, n int) {
	client, m := &null{}, &model{info: &domain.ModelInfo{ContextWindow: 1 << 24}}
	m.play(chunks(n))
	store := memory.New(time.Now)
	id := 0
	ids := func() string { id++; return fmt.Sprintf("id-%d", id) }
	open := func() (*turns.Engine, domain.SessionID, *sessions.Service) {
		svc := sessions.New(sessions.Params{
			Config:   sessions.Config{MaxSessions: 10, QueueLimit: 2},
			Sessions: store, Journal: store, Leases: store, Durable: func() bool { return true },
			Agents: &agents{agent: domain.Agent{Alias: "default", Enabled: true, Workspace: "/agent", MaxTurnRequests: 10}},
			Models: &models{model: m}, Roots: roots{}, Blobs: &blobs{}, Sandbox: &told{}, Observer: client, Clock: time.Now, IDs: ids,
		})
		engine := turns.New(turns.Params{
			Sessions: svc, Permissions: permissions.New(client, time.Now, time.Hour), Models: &models{model: m}, Ledger: store, Blobs: &blobs{},
			Instructions: &told{}, Sandbox: &told{}, Observer: client, Clock: time.Now, IDs: ids,
		})
		opened, err := svc.New(b.Context(), client, domain.NewSession{Dirs: domain.Directories{Cwd: "/project"}})
		if err != nil {
			b.Fatal(err)
		}
		return engine, opened.Session.ID, svc
	}
	engine, session, svc := open()
	prompt := domain.Prompt{Blocks: []domain.Block{domain.Text{Text: "go"}}}
	b.ReportAllocs()
	turnsOfSession := 0
	for b.Loop() {
		if turnsOfSession++; turnsOfSession == 50 { // a session that does not grow for ever
			b.StopTimer()
			end, err := svc.Delete(client, session)
			if err == nil {
				err = end(b.Context())
			}
			if err != nil {
				b.Fatal(err)
			}
			engine, session, svc = open()
			turnsOfSession = 0
			b.StartTimer()
		}
		run, err := engine.Begin(b.Context(), client, session, prompt)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := run(); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/chunk")
}

func BenchmarkTurn_1(b *testing.B)    { benchTurn(b, 1) }
func BenchmarkTurn_5000(b *testing.B) { benchTurn(b, 5000) }

// TestTurn_CostOfAChunk holds the engine to what a chunk may allocate.
func TestTurn_CostOfAChunk(t *testing.T) {
	per := func(n int) float64 {
		w := newWorld(t)
		client := &null{}
		opened, err := w.sessions.New(t.Context(), client, domain.NewSession{Dirs: domain.Directories{Cwd: "/project"}})
		if err != nil {
			t.Fatal(err)
		}
		w.model.info = &domain.ModelInfo{Ref: domain.ModelRef{Provider: "test", Model: "one"}, ContextWindow: 1 << 20}
		w.model.play(chunks(n))
		defer func() {
			if err := w.sessions.Shutdown(t.Context(), domain.ProcessEnding); err != nil {
				t.Error(err)
			}
		}()
		return testing.AllocsPerRun(5, func() {
			run, err := w.engine.Begin(t.Context(), client, opened.Session.ID, domain.Prompt{Blocks: []domain.Block{domain.Text{Text: "go"}}})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := run(); err != nil {
				t.Fatal(err)
			}
		})
	}
	small, large := per(1), per(2001)
	if each := (large - small) / 2000; each > 2 {
		t.Errorf("each chunk allocates %.2f times, allowed are 2 (a turn of one chunk: %.0f)", each, small)
	}
}
