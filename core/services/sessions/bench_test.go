package sessions_test

import (
	"context"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/berth-dev/berth/adapters/memory"
	"github.com/berth-dev/berth/core/domain"
	"github.com/berth-dev/berth/core/services/sessions"
)

// TestSession_Memory measures what a live session costs: the slot, the row,
// the lease and an empty conversation, without tools, over a store that keeps
// the row once more.
func TestSession_Memory(t *testing.T) {
	const n, most = 2000, 6 << 10
	store := memory.New(time.Now)
	id := 0
	svc := sessions.New(sessions.Params{
		Config:   sessions.Config{MaxSessions: n, QueueLimit: 8, IdleTimeout: time.Hour},
		Sessions: store, Journal: store, Leases: store, Durable: func() bool { return true },
		Agents: &agents{list: []domain.Agent{agent("default")}}, Models: &models{}, Roots: &roots{}, Blobs: &blobs{}, Sandbox: &sandbox{},
		Observer: &blind{}, Clock: time.Now, IDs: func() string { id++; return fmt.Sprintf("5c3f8f52-4b52-4e8f-9d2e-%012d", id) },
	})
	client := &client{}
	heap := func() uint64 {
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := heap()
	for range n {
		if _, err := svc.New(t.Context(), client, domain.NewSession{Dirs: domain.Directories{Cwd: "/project"}}); err != nil {
			t.Fatal(err)
		}
	}
	each := (heap() - before) / n
	t.Logf("%d bytes for each idle session, the store's row included", each)
	if each > most {
		t.Errorf("an idle session takes %d bytes, allowed are %d", each, most)
	}
	if err := svc.Shutdown(t.Context(), domain.ProcessEnding); err != nil {
		t.Error(err)
	}
}

type blind struct{}

func (*blind) Observe(context.Context, domain.Event) {}
