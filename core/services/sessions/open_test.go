package sessions_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/core/domain"
	"github.com/berth-dev/berth/core/services/sessions"
)

// close frees a session so that it can be opened from the store.
func (w *world) close(id domain.SessionID) {
	w.t.Helper()
	if err := w.end(w.svc.Close, w.client, id); err != nil {
		w.t.Fatal(err)
	}
}

func TestOpen_LoadReplaysAllThenTheStateThenAnswers(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		id := w.fresh()
		plan := []domain.PlanEntry{{Content: "x", Priority: "low", Status: "pending"}}
		w.says(id, append(whole(1), domain.TitleSet{Title: "named"}, domain.PlanSet{Turn: "t1", Entries: plan})...)
		w.says(id, whole(2)...)
		w.close(id)
		if told := w.client.log(); len(told) != 0 {
			t.Fatalf("told before: %v", told)
		}
		opened, err := w.load(w.client, domain.OpenSession{ID: id, Replay: true})
		if err != nil {
			t.Fatal(err)
		}
		want := []domain.Update{
			domain.UserMessage{ID: "t1-u", Block: domain.Text{Text: "go t1"}}, domain.AgentText{ID: "t1-m", Text: "done"},
			domain.PlanChanged{Entries: plan},
			domain.UserMessage{ID: "t2-u", Block: domain.Text{Text: "go t2"}}, domain.AgentText{ID: "t2-m", Text: "done"},
			domain.PlanChanged{Entries: plan}, domain.UsageChanged{Used: 5, Size: 100}, domain.InfoChanged{Title: "named"},
		}
		if diff := cmp.Diff(want, w.client.log()); diff != "" {
			t.Errorf("replayed (-want +got):\n%s", diff)
		}
		if opened.Session.ID != id || opened.Session.Title != "named" || opened.Created || opened.Agent.Alias != "default" {
			t.Errorf("answered %+v", opened)
		}
		time.Sleep(time.Minute)
		if n := len(w.client.log()); n != len(want) {
			t.Errorf("%d updates after the answer", n-len(want))
		}
		w.close(id)
		if _, err := w.load(w.client, domain.OpenSession{ID: id}); err != nil {
			t.Fatal(err)
		}
		if n := len(w.client.log()); n != len(want) {
			t.Errorf("resume replayed %d updates", n-len(want))
		}
		if got, want := w.observer.life(), "+new -close +load -close +resume"; got != want {
			t.Errorf("life %q, want %q", got, want)
		}
	})
}

// An interrupted turn is closed by whoever reads it first, once.
func TestOpen_SettlesOnce(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		id := w.fresh()
		call := domain.ModelCall{ID: "c", Name: "x", Args: []byte("{}")}
		w.says(id, domain.UserSaid{Turn: "t1", ID: "t1-u"}, domain.AssistantSaid{Turn: "t1", Calls: []domain.ModelCall{call}},
			domain.CallBegan{Turn: "t1", Call: call, Update: domain.CallOpened{ID: "c", Status: domain.CallPending}})
		for range 3 {
			w.close(id)
			from := len(w.client.log())
			if _, err := w.load(w.client, domain.OpenSession{ID: id, Replay: true}); err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, u := range w.client.log()[from:] {
				got = append(got, fmt.Sprintf("%T", u))
			}
			if s := strings.Join(got, " "); s != "domain.CallOpened domain.CallChanged domain.AgentText domain.TurnEnded" {
				t.Errorf("replayed %s", s)
			}
		}
		n := 0
		for _, err := range w.memory.Records(t.Context(), id, 0) {
			if err != nil {
				t.Fatal(err)
			}
			n++
		}
		if n != 5 {
			t.Errorf("the journal holds %d records, want 5", n)
		}
	})
}

func TestOpen_WhatDoesNotExist(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		for _, id := range []domain.SessionID{"", "no-such", "a b", "../../x", domain.SessionID(strings.Repeat("x", 65)), "\x00"} {
			for range 5 { // more than the limit: no place stays taken
				_, err := w.load(w.client, domain.OpenSession{ID: id})
				w.wantCode(err, domain.SessionNotFound)
			}
		}
		w.fresh()
	})
}

func TestOpen_OneOwner(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		id := w.fresh()
		other := &client{}
		for _, req := range []domain.OpenSession{{ID: id}, {ID: id, Replay: true}} {
			_, err := w.load(other, req)
			w.wantCode(err, domain.SessionActive)
		}
		if _, err := w.svc.Admit(other, id, sessions.Admission{Queue: true, Cancel: func(error) {}}); !domain.HasCode(err, domain.SessionNotFound) {
			t.Errorf("another client's prompt gets %v", err)
		}
		w.wantCode(w.end(w.svc.Close, other, id), domain.SessionNotFound)
		w.wantCode(w.end(w.svc.Stop, other, id), domain.SessionNotFound)
		w.wantCode(w.end(w.svc.Delete, other, id), domain.SessionActive)
		if _, err := w.svc.Event(other, id, domain.ClientEvent{}); !domain.HasCode(err, domain.SessionNotFound) {
			t.Errorf("another client's event gets %v", err)
		}
		if w.svc.Cancel(other, id, domain.CancelledByClient) {
			t.Error("another client cancelled")
		}
		// Another process is told as well, and may have it once it is free.
		second := w.process(w.memory.Other())
		run, err := second.Open(other, domain.OpenSession{ID: id})
		if err != nil {
			t.Fatal(err)
		}
		_, err = run(t.Context())
		w.wantCode(err, domain.SessionActive)
		w.says(id, whole(1)...)
		w.close(id)
		if _, err := w.load(other, domain.OpenSession{ID: id}); err != nil {
			t.Errorf("after it was closed: %v", err)
		}
		if err := second.Shutdown(t.Context(), domain.ProcessEnding); err != nil {
			t.Error(err)
		}
	})
}

// While a session is being opened nobody else opens it and no prompt starts.
func TestOpen_WhileOpening(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		id := w.fresh()
		w.close(id)
		w.tools.hooks(func(context.Context, domain.Session) error { time.Sleep(time.Second); return nil }, nil)
		run, err := w.svc.Open(w.client, domain.OpenSession{ID: id})
		if err != nil {
			t.Fatal(err)
		}
		_, err = w.svc.Open(w.client, domain.OpenSession{ID: id}) // before the task runs
		w.wantCode(err, domain.SessionActive)
		done := make(chan error, 1)
		go func() { _, err := run(context.Background()); done <- err }()
		synctest.Wait()
		_, err = w.svc.Open(w.client, domain.OpenSession{ID: id})
		w.wantCode(err, domain.SessionActive)
		_, err = w.tryAdmit(id, true)
		w.wantCode(err, domain.SessionBusy)
		_, err = w.svc.Event(w.client, id, domain.ClientEvent{})
		w.wantCode(err, domain.SessionNotFound)
		if err := <-done; err != nil {
			t.Error(err)
		}
		w.says(id, whole(1)...)
	})
}

// One who comes while a client that is gone still leaves the session waits for
// that, and is not told of a client that there is not.
func TestOpen_WhileItIsLeft(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		id := w.fresh()
		w.says(id, whole(1)...)
		w.tools.hooks(nil, func() error { time.Sleep(time.Second); return nil })
		w.svc.Detach(w.client, domain.Disconnected)
		synctest.Wait()
		start := time.Now()
		w.tools.hooks(nil, nil)
		if _, err := w.load(&client{}, domain.OpenSession{ID: id}); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(start); took != time.Second {
			t.Errorf("it was opened after %v", took)
		}
	})
}

func TestOpen_AgainWhileActive(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		id := w.fresh()
		w.says(id, whole(1)...)
		if _, err := w.load(w.client, domain.OpenSession{ID: id, Replay: true}); err != nil {
			t.Fatalf("an idle session can be loaded again: %v", err)
		}
		if n := len(w.client.log()); n == 0 || w.tools.left() != 2 {
			t.Errorf("replayed %d updates, %d toolsets are open", n, w.tools.left())
		}
		w.says(id, whole(2)...)
		_, ended := w.begin(id, time.Second)
		synctest.Wait()
		_, err := w.load(w.client, domain.OpenSession{ID: id})
		w.wantCode(err, domain.SessionActive)
		if err := <-ended; err != nil {
			t.Errorf("the turn was disturbed: %v", err)
		}
	})
}

// When a second load fails, the session is as usable as before.
func TestOpen_AgainFails(t *testing.T) {
	boom := domain.Errorf(domain.StoreUnavailable, "The disk is full")
	cases := map[string]func(w *world, req *domain.OpenSession){
		"load": func(w *world, _ *domain.OpenSession) {
			w.store.before(func(_ context.Context, m string) error { return map[string]error{"load": boom}[m] })
		},
		"records": func(w *world, _ *domain.OpenSession) {
			w.store.before(func(_ context.Context, m string) error { return map[string]error{"records": boom}[m] })
		},
		"update": func(w *world, req *domain.OpenSession) {
			req.Dirs.Cwd = "/elsewhere"
			w.store.before(func(_ context.Context, m string) error { return map[string]error{"update": boom}[m] })
		},
		"tools": func(w *world, req *domain.OpenSession) {
			req.Dirs.Cwd = "/elsewhere"
			w.tools.hooks(func(context.Context, domain.Session) error { return boom }, nil)
		},
		"the client": func(w *world, req *domain.OpenSession) {
			req.Replay = true
			w.client.onSend = func(context.Context, domain.Update) error { return boom }
		},
	}
	for name, set := range cases {
		for _, again := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, active %v", name, again), func(t *testing.T) {
				bubble(t, func(t *testing.T, w *world) {
					id := w.fresh()
					w.says(id, whole(1)[:2]...) // a turn without an end, which opening settles
					if !again {
						w.close(id)
					}
					req := domain.OpenSession{ID: id}
					set(w, &req)
					_, err := w.load(w.client, req)
					w.wantCode(err, domain.StoreUnavailable)
					w.store.before(nil)
					w.tools.hooks(nil, nil)
					w.client.onSend = nil
					if !again {
						if w.leased(id) || w.tools.left() != 0 {
							t.Errorf("leased %v, %d toolsets after a load that failed", w.leased(id), w.tools.left())
						}
						if _, err := w.load(w.client, domain.OpenSession{ID: id}); err != nil {
							t.Fatal(err)
						}
					}
					w.says(id, whole(2)...)
					if n := w.prompts(id); n != 2 {
						t.Errorf("%d prompts are left of 2", n)
					}
				})
			})
		}
	}
}

// A session that was set aside and cannot be loaded is free for others.
func TestOpen_SetAsideFails(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		id := w.fresh()
		time.Sleep(idleTimeout + time.Second)
		w.tools.hooks(func(context.Context, domain.Session) error { return domain.Errorf(domain.Unavailable, "no") }, nil)
		_, err := w.load(w.client, domain.OpenSession{ID: id})
		w.wantCode(err, domain.Unavailable)
		if w.leased(id) {
			t.Error("the lease is kept after a load that failed")
		}
		w.wantCode(w.admit(id).run(0), domain.Unavailable)
		if w.leased(id) {
			t.Error("the lease is kept after a prompt that failed")
		}
		w.tools.hooks(nil, nil)
		w.says(id, whole(1)...)
	})
}

func TestOpen_Directories(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		first := w.open(domain.NewSession{Dirs: domain.Directories{Cwd: "/project", Additional: []string{"/lib"}}})
		id := first.Session.ID
		reload := func(d domain.Directories) domain.Session {
			t.Helper()
			w.close(id)
			opened, err := w.load(w.client, domain.OpenSession{ID: id, Dirs: d})
			if err != nil {
				t.Fatal(err)
			}
			stored, err := w.memory.Load(t.Context(), id)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(stored, opened.Session); diff != "" {
				t.Errorf("answered and stored differ:\n%s", diff)
			}
			return stored
		}
		if s := reload(domain.Directories{}); s.Cwd != "/project" || len(s.Additional) != 0 {
			t.Errorf("without a cwd the stored one holds, additional ones are as sent: %+v", s)
		}
		if s := reload(domain.Directories{Cwd: "/other/", Additional: []string{"/x"}}); s.Cwd != "/other" || s.CwdGiven != "/other/" || s.Additional[0] != "/x" {
			t.Errorf("a cwd that is sent becomes the session's: %+v", s)
		}
		w.close(id)
		_, err := w.load(w.client, domain.OpenSession{ID: id, Dirs: domain.Directories{Cwd: "/missing"}})
		w.wantCode(err, domain.InvalidArgument)
		opened, err := w.load(w.client, domain.OpenSession{ID: id})
		if err != nil || opened.Session.Cwd != "/other" {
			t.Errorf("a refused cwd changed the session: %+v, %v", opened.Session, err)
		}
	})
}

func TestOpen_OwnerIsGone(t *testing.T) {
	off := agent("mine")
	off.Enabled = false
	cases := []struct {
		name string
		def  string
		list []domain.Agent
		want string // alias, "" for invalid params
		note bool
	}{
		{"still there", "other", []domain.Agent{agent("mine"), agent("other")}, "mine", false},
		{"disabled, a default", "other", []domain.Agent{off, agent("other"), agent("third")}, "other", true},
		{"deleted, a default", "other", []domain.Agent{agent("other"), agent("third")}, "other", true},
		{"deleted, one enabled", "", []domain.Agent{agent("other")}, "other", true},
		{"disabled, one enabled", "", []domain.Agent{off, agent("other")}, "other", true},
		{"deleted, several", "", []domain.Agent{agent("other"), agent("third")}, "", false},
		{"deleted, a bad default", "lost", []domain.Agent{agent("other")}, "", false},
		{"none left", "", nil, "", false},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world) {
				w.agents.set("", agent("mine"))
				id := w.fresh()
				w.close(id)
				w.agents.set(c.def, c.list...)
				opened, err := w.load(w.client, domain.OpenSession{ID: id})
				if c.want == "" {
					w.wantCode(err, domain.InvalidArgument)
					return
				}
				if err != nil || opened.Agent.Alias != c.want || (len(opened.Notes) == 1) != c.note || opened.Session.Agent != "mine" {
					t.Errorf("got %q, notes %v, stored owner %q, %v", opened.Agent.Alias, opened.Notes, opened.Session.Agent, err)
				}
			})
		})
	}
}

func TestList(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		a := w.open(in("/a")).Session.ID
		time.Sleep(time.Second)
		b := w.open(in("/b")).Session.ID
		for cwd, want := range map[string]string{"": fmt.Sprint([]domain.SessionID{b, a}), "/a": fmt.Sprint([]domain.SessionID{a}), "/b/../b/": fmt.Sprint([]domain.SessionID{b}), "/c": "[]"} {
			page, err := w.svc.List(t.Context(), w.client, domain.SessionQuery{Cwd: cwd})
			if err != nil {
				t.Fatal(err)
			}
			ids := []domain.SessionID{}
			for _, s := range page.Sessions {
				ids = append(ids, s.ID)
			}
			if fmt.Sprint(ids) != want {
				t.Errorf("cwd %q lists %v, want %s", cwd, ids, want)
			}
		}
		if !w.svc.Durable() {
			t.Error("a durable store is not reported")
		}
	})
}

// What a client was shown of files it is shown again as long as they are the
// same; the journal does not hold them.
func TestOpen_LoadShowsFilesAgain(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		id := w.fresh()
		w.says(id, shows("/p/uploads/same", true, "/p/uploads/gone", true, "/p/changed.png", false)...)
		w.close(id)
		w.blobs.holds = map[string]string{"/p/uploads/same": "/p/uploads/same", "/p/changed.png": "something else"}
		if _, err := w.load(w.client, domain.OpenSession{ID: id, Replay: true}); err != nil {
			t.Fatal(err)
		}
		var got []domain.CallContent
		for _, u := range w.client.log() {
			if c, ok := u.(domain.CallChanged); ok {
				got = c.Content
				if c.Title != "T" || c.Status != domain.CallCompleted {
					t.Errorf("replayed %+v", c)
				}
			}
		}
		words := func(s string) domain.CallContent { return domain.ContentBlock{Block: domain.Text{Text: s}} }
		want := []domain.CallContent{
			domain.FileContent{
				File: domain.Attachment{Path: "/p/uploads/same", SHA256: "/p/uploads/same", Name: "n"}, Title: "T", Delivered: true, Data: []byte("/p/uploads/same"),
			},
			words("[T was shown here; it is gone.]"), words("[T was shown here; it has another content by now.]"),
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("shown again (-want +got):\n%s", diff)
		}
	})
}

// A picture or a sound of a prompt comes back as what it was sent as, as long
// as its file is the same; then it is a link to it.
func TestOpen_LoadShowsMediaAgain(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		id := w.fresh()
		file := func(path, mime string, inline bool, size int64) domain.Attachment {
			return domain.Attachment{Path: path, SHA256: path, MIME: mime, Inline: inline, Size: size}
		}
		sent := []domain.Block{
			file("/p/a", "image/png", true, 2), file("/p/b", "audio/wav", true, 2), file("/p/c", "image/png", false, 2),
			file("/p/gone", "image/png", true, 2), file("/p/huge", "image/png", true, domain.MaxShownPicture+1),
		}
		recs := whole(1)
		said := recs[0].(domain.UserSaid)
		said.Blocks = sent
		w.says(id, append([]domain.Record{said}, recs[1:]...)...)
		w.close(id)
		w.blobs.holds = map[string]string{"/p/a": "/p/a", "/p/b": "/p/b", "/p/c": "/p/c", "/p/huge": "/p/huge"}
		if _, err := w.load(w.client, domain.OpenSession{ID: id, Replay: true}); err != nil {
			t.Fatal(err)
		}
		var got []domain.Block
		for _, u := range w.client.log() {
			if m, ok := u.(domain.UserMessage); ok {
				got = append(got, m.Block)
			}
		}
		want := []domain.Block{
			domain.Image{MIME: "image/png", Data: []byte("/p/a")}, domain.Audio{MIME: "audio/wav", Data: []byte("/p/b")}, sent[2], sent[3], sent[4],
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("shown again (-want +got):\n%s", diff)
		}
	})
}
