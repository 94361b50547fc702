package sessions_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/core/domain"
)

func TestNew_StoresWhatWasAsked(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		opened := w.open(domain.NewSession{
			Dirs: domain.Directories{Cwd: "/project/", Additional: []string{"/lib"}}, Label: "mine", Client: "zed 1.0", Parent: "above",
		})
		now := time.Now().UTC().Truncate(time.Microsecond)
		want := domain.Session{
			ID: opened.Session.ID, Key: "acp:" + string(opened.Session.ID), Label: "mine", Agent: "default", Cwd: "/project", CwdGiven: "/project/",
			Additional: []string{"/lib"}, Workspace: "/agents/default", Parent: "above", Client: "zed 1.0", CreatedAt: now, UpdatedAt: now,
		}
		stored, err := w.memory.Load(t.Context(), opened.Session.ID)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, stored); diff != "" {
			t.Errorf("stored (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff(want, opened.Session); diff != "" {
			t.Errorf("answered (-want +got):\n%s", diff)
		}
		if !opened.Created || opened.Agent.Alias != "default" || opened.Model.Ref.Model != "default" || opened.Notes != nil {
			t.Errorf("answered %+v", opened)
		}
		if !w.leased(opened.Session.ID) || w.tools.left() != 2 || w.observer.life() != "+new" {
			t.Errorf("leased %v, %d toolsets, life %q", w.leased(opened.Session.ID), w.tools.left(), w.observer.life())
		}
	})
}

// TestNew_Agent is the table of the contract: first that is present wins, and
// whatever step chose it, it must exist and be enabled.
func TestNew_Agent(t *testing.T) {
	off := agent("off")
	off.Enabled = false
	a, b := agent("a"), agent("b")
	cases := []struct {
		name     string
		list     []domain.Agent
		def      string
		req      domain.NewSession
		want     string // alias, "" for invalid params
		mentions string
	}{
		{"the one in the params", []domain.Agent{a, b}, "b", domain.NewSession{Agent: "a", FallbackAgent: "b"}, "a", ""},
		{"the connection's", []domain.Agent{a, b}, "b", domain.NewSession{FallbackAgent: "a"}, "a", ""},
		{"a blank connection is absent", []domain.Agent{a, b}, "b", domain.NewSession{FallbackAgent: "  "}, "b", ""},
		{"the default", []domain.Agent{a, b}, "b", domain.NewSession{}, "b", ""},
		{"the only one", []domain.Agent{a}, "", domain.NewSession{}, "a", ""},
		{"none to choose from", []domain.Agent{a, b}, "", domain.NewSession{}, "", "a, b"},
		{"none at all", nil, "", domain.NewSession{}, "", "none"},
		{"two configured, one enabled: still a choice", []domain.Agent{a, off}, "", domain.NewSession{}, "", "a, off"},
		{"an unknown one in the params", []domain.Agent{a}, "a", domain.NewSession{Agent: "x"}, "", `"x"`},
		{"a disabled one in the params", []domain.Agent{a, off}, "a", domain.NewSession{Agent: "off"}, "", "disabled"},
		{"an unknown one of the connection", []domain.Agent{a}, "a", domain.NewSession{FallbackAgent: "x"}, "", `"x"`},
		{"a disabled one of the connection", []domain.Agent{a, off}, "a", domain.NewSession{FallbackAgent: "off"}, "", "disabled"},
		{"a bad default is no fall-through", []domain.Agent{a}, "x", domain.NewSession{}, "", "acp.default_agent"},
		{"a disabled default is no fall-through", []domain.Agent{a, off}, "off", domain.NewSession{}, "", "disabled"},
		{"the only one is disabled", []domain.Agent{off}, "", domain.NewSession{}, "", "disabled"},
		{"the key's", []domain.Agent{a, b}, "b", domain.NewSession{Key: "agent:a:x", FallbackAgent: "b"}, "a", ""},
		{"the key's and the same in the params", []domain.Agent{a, b}, "b", domain.NewSession{Key: "agent:a:x", Agent: "a"}, "a", ""},
		{"the key's and another in the params", []domain.Agent{a, b}, "b", domain.NewSession{Key: "agent:a:x", Agent: "b"}, "", "agent:a:x"},
		{"an unknown one in the key", []domain.Agent{a, b}, "b", domain.NewSession{Key: "agent:x:y"}, "", "session key"},
		{"a key that only looks so", []domain.Agent{a, b}, "b", domain.NewSession{Key: "agent:a"}, "b", ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world) {
				w.agents.set(c.def, c.list...)
				c.req.Dirs.Cwd = "/project"
				opened, err := w.svc.New(t.Context(), w.client, c.req)
				if c.want != "" {
					if err != nil || opened.Agent.Alias != c.want || opened.Session.Agent != c.want {
						t.Errorf("chose %q, %v; want %q", opened.Agent.Alias, err, c.want)
					}
					return
				}
				w.wantCode(err, domain.InvalidArgument)
				if err != nil && !strings.Contains(err.Error(), c.mentions) {
					t.Errorf("the message does not say %q: %v", c.mentions, err)
				}
				if page, _ := w.memory.List(t.Context(), domain.SessionQuery{}); len(page.Sessions) != 0 {
					t.Error("a session was stored all the same")
				}
			})
		})
	}
}

func TestNew_ByKeyAndLabel(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.agents.set("a", agent("a"), agent("b"))
		ask := func(change func(*domain.NewSession)) (domain.OpenedSession, error) {
			req := in("/project")
			change(&req)
			return w.svc.New(t.Context(), w.client, req)
		}
		must := func(o domain.OpenedSession, err error) domain.OpenedSession {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
			return o
		}
		_, err := ask(func(r *domain.NewSession) { r.Key, r.RequireExisting = "k1", true })
		w.wantCode(err, domain.SessionNotFound)
		first := must(ask(func(r *domain.NewSession) { r.Key, r.Label = "k1", "l1" }))
		second := must(ask(func(r *domain.NewSession) { r.Key, r.Label = "k2", "l2" }))
		for name, change := range map[string]func(*domain.NewSession){
			"the key":            func(r *domain.NewSession) { r.Key = "k1" },
			"the label":          func(r *domain.NewSession) { r.Label = "l1" },
			"the label and key":  func(r *domain.NewSession) { r.Label, r.Key = "l1", "k2" },
			"must exist":         func(r *domain.NewSession) { r.Key, r.RequireExisting = "k1", true },
			"its agent":          func(r *domain.NewSession) { r.Key, r.Agent = "k1", "a" },
			"another connection": func(r *domain.NewSession) { r.Key, r.FallbackAgent = "k1", "b" },
		} {
			again := must(ask(change))
			if again.Session.ID != first.Session.ID || again.Created || again.Agent.Alias != "a" {
				t.Errorf("by %s: got %+v", name, again)
			}
		}
		if second.Session.ID == first.Session.ID {
			t.Error("two keys name one session")
		}
		_, err = ask(func(r *domain.NewSession) { r.Key, r.Agent = "k1", "b" })
		w.wantCode(err, domain.InvalidArgument)
		for name, change := range map[string]func(*domain.NewSession){
			"a long key":   func(r *domain.NewSession) { r.Key = strings.Repeat("k", 257) },
			"a long label": func(r *domain.NewSession) { r.Label = strings.Repeat("l", 201) },
			"two lines":    func(r *domain.NewSession) { r.Key = "a\nb" },
			"a NUL":        func(r *domain.NewSession) { r.Label = "a\x00" },
		} {
			if _, err := ask(change); !domain.HasCode(err, domain.InvalidArgument) {
				t.Errorf("%s gives %v", name, err)
			}
		}
	})
}

func TestNew_Reset(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		req := in("/project")
		req.Key = "k"
		id := w.open(req).Session.ID
		w.says(id, append(whole(1), domain.TitleSet{Title: "old"}, domain.PermissionGiven{Turn: "t1", Rules: []domain.Rule{{Allow: true, Tool: "x", Scope: "/"}}})...)
		req.Reset = true
		opened := w.open(req)
		if opened.Session.ID != id || opened.Session.Title != "" || opened.Session.Start != 5 {
			t.Errorf("a reset gives %+v", opened.Session)
		}
		if n := w.prompts(id); n != 0 {
			t.Errorf("a fresh transcript has %d prompts", n)
		}
		w.says(id, whole(2)...)
		from := len(w.client.log())
		if _, err := w.load(w.client, domain.OpenSession{ID: id, Replay: true}); err != nil {
			t.Fatal(err)
		}
		for _, u := range w.client.log()[from:] {
			if m, ok := u.(domain.UserMessage); ok && m.ID != "t2-u" {
				t.Errorf("the old transcript is replayed: %+v", m)
			}
		}
		row, err := w.memory.Load(t.Context(), id)
		if err != nil || row.Start != 5 {
			t.Errorf("stored start %d, %v", row.Start, err)
		}
	})
}

// prompts plays an empty turn and returns how many prompts a model would see.
func (w *world) prompts(id domain.SessionID) int {
	w.t.Helper()
	turn := w.admit(id)
	defer turn.ticket.Done(nil)
	if err := turn.ticket.Wait(turn.ctx); err != nil {
		w.t.Fatal(err)
	}
	if _, err := turn.ticket.Live.Hold(context.Background()); err != nil {
		w.t.Fatal(err)
	}
	defer turn.ticket.Live.Drop()
	messages, err := turn.ticket.Live.Messages(context.Background())
	if err != nil {
		w.t.Fatal(err)
	}
	n := 0
	for _, m := range messages {
		if _, ok := m.(domain.UserInput); ok {
			n++
		}
	}
	return n
}

// A reset never meets a prompt: the session takes none while it is reset.
func TestNew_ResetIsOneStepForPrompts(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		req := in("/project")
		req.Key = "k"
		id := w.open(req).Session.ID
		w.says(id, whole(1)...)
		w.store.before(func(_ context.Context, method string) error {
			if method == "update" {
				if _, err := w.tryAdmit(id, true); !domain.HasCode(err, domain.SessionBusy) {
					t.Errorf("a prompt in the middle of a reset gets %v", err)
				}
			}
			return nil
		})
		req.Reset = true
		w.open(req)
		w.store.before(nil)
		w.says(id, whole(2)...)
	})
}

// What breaks on the way leaves no session behind: no row, no lease, no tool,
// and no place taken.
func TestNew_EachStepFails(t *testing.T) {
	boom := domain.Errorf(domain.StoreUnavailable, "The disk is full")
	cases := map[string]func(*world){
		"create": func(w *world) {
			w.store.before(func(_ context.Context, m string) error { return map[string]error{"create": boom}[m] })
		},
		"lease": func(w *world) {
			w.store.before(func(_ context.Context, m string) error { return map[string]error{"acquire": boom}[m] })
		},
		"tools": func(w *world) {
			w.tools.hooks(func(context.Context, domain.Session) error { return boom }, nil)
		},
		"the second tools": func(w *world) {
			n := 0
			w.tools.hooks(func(context.Context, domain.Session) error {
				if n++; n == 2 {
					return boom
				}
				return nil
			}, nil)
		},
	}
	for name, set := range cases {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world) {
				for range 5 { // more than the limit: no place stays taken
					set(w)
					_, err := w.svc.New(t.Context(), w.client, in("/project"))
					w.wantCode(err, domain.StoreUnavailable)
				}
				w.store.before(nil)
				w.tools.hooks(nil, nil)
				page, err := w.memory.List(t.Context(), domain.SessionQuery{})
				if err != nil || len(page.Sessions) != 0 || w.tools.left() != 0 {
					t.Errorf("left behind: %+v, %d toolsets, %v", page.Sessions, w.tools.left(), err)
				}
				w.fresh()
				if life := w.observer.life(); life != "+new" {
					t.Errorf("life %q", life)
				}
			})
		})
	}
}

func TestNew_WithoutModelOrDirectory(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		lost := agent("lost")
		lost.Model.Provider = "none"
		w.agents.set("default", agent("default"), lost)
		_, err := w.svc.New(t.Context(), w.client, domain.NewSession{Agent: "lost", Dirs: domain.Directories{Cwd: "/project"}})
		w.wantCode(err, domain.AuthRequired)
		_, err = w.svc.New(t.Context(), w.client, in("/missing"))
		w.wantCode(err, domain.InvalidArgument)
	})
}

func TestNew_Limit(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		var last domain.SessionID
		for range 3 {
			last = w.fresh()
		}
		_, err := w.svc.New(t.Context(), w.client, in("/project"))
		w.wantCode(err, domain.SessionLimit)
		var e *domain.Error
		if errors.As(err, &e) && fmt.Sprint(e.Details) != "[{limit 3} {active 3}]" {
			t.Errorf("details %v", e.Details)
		}
		if _, err := w.svc.New(t.Context(), &client{}, in("/project")); err != nil {
			t.Errorf("another client is refused as well: %v", err)
		}
		if err := w.end(w.svc.Close, w.client, last); err != nil {
			t.Fatal(err)
		}
		w.fresh()
		// Sessions that left memory do not count.
		time.Sleep(idleTimeout + time.Second)
		for range 3 {
			w.fresh()
		}
	})
}

// The limit holds against any number of calls at once.
func TestNew_LimitHoldsInARace(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.tools.hooks(func(context.Context, domain.Session) error { time.Sleep(time.Second); return nil }, nil)
		var group sync.WaitGroup
		var mu sync.Mutex
		opened := 0
		for range 20 {
			group.Go(func() {
				_, err := w.svc.New(context.Background(), w.client, in("/project"))
				mu.Lock()
				defer mu.Unlock()
				if err == nil {
					opened++
				} else if !domain.HasCode(err, domain.SessionLimit) {
					t.Errorf("error %v", err)
				}
			})
		}
		group.Wait()
		if opened != 3 {
			t.Errorf("%d sessions were opened, the limit is 3", opened)
		}
	})
}

// Of many calls with one key exactly one creates; all of one client get the
// same session.
func TestNew_SameKeyInARace(t *testing.T) {
	for round := range 20 {
		bubble(t, func(t *testing.T, w *world) {
			w.tools.hooks(func(context.Context, domain.Session) error {
				time.Sleep(time.Duration(round) * time.Millisecond)
				return nil
			}, nil)
			w.store.before(func(context.Context, string) error { time.Sleep(time.Duration(round%3) * time.Millisecond); return nil })
			req := in("/project")
			req.Key = "k"
			results := make(chan domain.OpenedSession, 3)
			var group sync.WaitGroup
			for range 3 {
				group.Go(func() {
					opened, err := w.svc.New(context.Background(), w.client, req)
					if err != nil {
						t.Errorf("error %v", err)
						return
					}
					results <- opened
				})
			}
			group.Wait()
			close(results)
			created, names := 0, map[domain.SessionID]bool{}
			for r := range results {
				names[r.Session.ID] = true
				if r.Created {
					created++
				}
			}
			if len(names) != 1 || created != 1 {
				t.Errorf("round %d: sessions %v, %d created", round, names, created)
			}
			w.store.before(nil)
			page, err := w.memory.List(t.Context(), domain.SessionQuery{})
			if err != nil || len(page.Sessions) != 1 {
				t.Errorf("stored %d sessions, %v", len(page.Sessions), err)
			}
			synctest.Wait()
		})
	}
}

func TestNew_SameKeyOfTwoClients(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		req := in("/project")
		req.Key = "k"
		first := w.open(req)
		other := &client{}
		_, err := w.svc.New(t.Context(), other, req)
		w.wantCode(err, domain.SessionActive)
		if err := w.end(w.svc.Close, w.client, first.Session.ID); err != nil {
			t.Fatal(err)
		}
		opened, err := w.svc.New(t.Context(), other, req)
		if err != nil || opened.Session.ID != first.Session.ID || opened.Created {
			t.Errorf("got %+v, %v", opened, err)
		}
	})
}
