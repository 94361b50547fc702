package llmtest

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"github.com/berth-dev/berth/adapters/llm"
	"github.com/berth-dev/berth/core/domain"
	"github.com/berth-dev/berth/core/ports"
	"github.com/berth-dev/berth/core/ports/porttest"
)

// Socket checks what only a real socket below the real transport shows, and a
// network in memory does not. Afterwards nothing of it is left running.
func (d Dialect) Socket(t *testing.T) {
	t.Run("a connection serves every request", d.keepsAlive)
	t.Run("the server sees a cancel", func(t *testing.T) { d.abandons(t, false) })
	t.Run("the server sees that nobody listens", func(t *testing.T) { d.abandons(t, true) })
}

// listen serves on a port of this machine until the test ends, and opens the
// model that reaches it.
func (d Dialect) listen(t *testing.T, server *Server, watch func(net.Conn, http.ConnState)) ports.Model {
	t.Helper()
	s := httptest.NewUnstartedServer(server)
	s.Config.ConnState = watch
	s.Start()
	p := llm.Provider{Client: llm.NewClient(llm.HTTPConfig{}), ProviderConfig: d.Provider("fake", s.URL)}
	t.Cleanup(func() {
		p.Client.Close()
		s.Close()
	})
	return d.Open(porttest.T(t), p)
}

// keepsAlive asks several times over one connection. What follows the end of a
// reply is only waited for as long as a new connection would take, so a busy
// machine may need some rounds until all of it came in time.
func (d Dialect) keepsAlive(t *testing.T) {
	const requests, rounds = 5, 40
	replies := make([]porttest.Reply, requests*rounds)
	for i := range replies {
		replies[i].Parts = []porttest.ReplyPart{porttest.SendText("a")}
	}
	var opened atomic.Int32
	m := d.listen(t, d.New().Replies(replies...), func(_ net.Conn, s http.ConnState) {
		if s == http.StateNew {
			opened.Add(1)
		}
	})
	for range rounds {
		before := opened.Load()
		for range requests {
			var text string
			for ev, err := range m.Stream(t.Context(), porttest.SampleRequest()) {
				if err != nil {
					t.Fatal(err)
				}
				if delta, ok := ev.(domain.TextDelta); ok {
					text += delta.Text
				}
			}
			if text != "a" {
				t.Fatalf("the reply is %q", text)
			}
		}
		if opened.Load() <= before+1 {
			return
		}
	}
	t.Errorf("%d connections were opened for %d requests", opened.Load(), requests*rounds)
}

// abandons leaves a reply that goes on: by leaving the loop, or by a cancel.
// It ends when the server has seen it.
func (d Dialect) abandons(t *testing.T, leave bool) {
	server := d.New().Replies(porttest.Reply{Parts: []porttest.ReplyPart{porttest.SendText("a")}, End: porttest.EndSilent})
	gone := server.Gone()
	m := d.listen(t, server, nil)
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	var last error
	for ev, err := range m.Stream(ctx, porttest.SampleRequest()) {
		last = err
		if _, ok := ev.(domain.TextDelta); ok {
			if leave {
				break
			}
			cancel(domain.CancelledByClient)
		}
	}
	<-gone
	if !leave && !errors.Is(last, domain.CancelledByClient) {
		t.Errorf("the stream ended with %v", last)
	}
}
