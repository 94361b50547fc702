package sessions_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/berth-dev/berth/core/domain"
)

// allows answers every question with yes.
func allows(context.Context) (domain.Decision, error) {
	return domain.Decision{Outcome: domain.Selected, Option: "allow-once"}, nil
}

// A session whose client was lost is there for whoever opens it, until the
// grace is over.
func TestLose_Idle(t *testing.T) {
	patient(t, func(t *testing.T, w *world) {
		id := w.fresh()
		w.says(id, whole(1)...)
		w.svc.Lose(w.client)
		w.svc.Lose(w.client) // when its last call was answered
		if n := w.svc.Stats(); n.Detached != 1 || !w.leased(id) {
			t.Errorf("after the loss: %+v, leased %v", n, w.leased(id))
		}
		if _, err := w.tryAdmit(id, true); !domain.HasCode(err, domain.SessionNotFound) {
			t.Errorf("a prompt of the lost client gets %v", err)
		}
		time.Sleep(grace - time.Second)
		other := &client{}
		opened, err := w.load(other, domain.OpenSession{ID: id, Replay: true})
		if err != nil || opened.Running != "" {
			t.Fatalf("open: %+v, %v", opened, err)
		}
		if got := texts(other.log()); got != "go t1 done" {
			t.Errorf("the one who came was told %q", got)
		}
		time.Sleep(2 * grace)
		if n := w.svc.Stats(); n.Detached != 0 {
			t.Errorf("the grace ended what somebody had taken: %+v", n)
		}
		w.svc.Lose(other)
		time.Sleep(grace)
		synctest.Wait()
		if n := w.svc.Stats(); n != w.process(w.store).Stats() || w.leased(id) {
			t.Errorf("after the grace: %+v, leased %v", n, w.leased(id))
		}
	})
}

func texts(ups []domain.Update) string {
	var out []string
	for _, u := range ups {
		switch u := u.(type) {
		case domain.UserMessage:
			out = append(out, u.Block.(domain.Text).Text)
		case domain.AgentText:
			out = append(out, u.Text)
		}
	}
	return strings.Join(out, " ")
}

// A turn outlives its connection, but not the grace.
func TestLose_RunningTurn(t *testing.T) {
	patient(t, func(t *testing.T, w *world) {
		id := w.fresh()
		turn, ended := w.begin(id, time.Hour)
		w.svc.Lose(w.client)
		select {
		case <-turn.ticket.Left():
		default:
			t.Error("the prompt is waited for although its client has gone")
		}
		time.Sleep(grace - time.Second)
		if turn.ctx.Err() != nil {
			t.Fatal("the turn ended with the connection")
		}
		time.Sleep(2 * time.Second)
		if err := <-ended; !errors.Is(err, domain.Disconnected) {
			t.Errorf("the turn ended with %v", err)
		}
		synctest.Wait()
		if w.leased(id) {
			t.Error("the session was not freed when its turn had ended")
		}
	})
}

// Without a grace, and where nothing can be opened again, a loss is an end.
func TestLose_EndsAtOnce(t *testing.T) {
	for name, set := range map[string]func(*world){
		"no grace":  func(w *world) { w.config.Grace = 0; w.svc = w.process(w.store) },
		"no memory": func(w *world) { w.durable.Store(false) },
	} {
		t.Run(name, func(t *testing.T) {
			patient(t, func(t *testing.T, w *world) {
				set(w)
				id := w.fresh()
				_, ended := w.begin(id, time.Hour)
				w.svc.Lose(w.client)
				if err := <-ended; !errors.Is(err, domain.Disconnected) {
					t.Errorf("the turn ended with %v", err)
				}
				synctest.Wait()
				if n := w.svc.Stats(); n.Detached+n.Busy+n.Idle != 0 {
					t.Errorf("left: %+v", n)
				}
			})
		})
	}
}

// A session that nobody was told of yet ends with the connection.
func TestLose_WhileOpening(t *testing.T) {
	patient(t, func(t *testing.T, w *world) {
		id := w.fresh()
		w.close(id)
		w.tools.hooks(func(context.Context, domain.Session) error { time.Sleep(time.Second); return nil }, nil)
		run, err := w.svc.Open(w.client, domain.OpenSession{ID: id})
		if err != nil {
			t.Fatal(err)
		}
		w.svc.Lose(w.client)
		_, err = run(t.Context())
		w.wantCode(err, domain.SessionNotFound)
		synctest.Wait()
		if w.leased(id) {
			t.Error("the lease was kept")
		}
	})
}

// Sessions that are waited for count for nobody, but against what all may have.
func TestLose_Limits(t *testing.T) {
	patient(t, func(t *testing.T, w *world) {
		ids := []domain.SessionID{w.fresh(), w.fresh(), w.fresh()}
		w.svc.Lose(w.client)
		w.client = &client{}
		w.fresh()
		if _, err := w.svc.New(t.Context(), w.client, in("/project")); !domain.HasCode(err, domain.SessionLimit) || !strings.Contains(err.Error(), "gateway.max_sessions") {
			t.Errorf("a fifth session: %v", err)
		}
		for i, id := range ids {
			_, err := w.load(w.client, domain.OpenSession{ID: id})
			if i < 2 && err != nil || i == 2 && !domain.HasCode(err, domain.SessionLimit) {
				t.Errorf("session %d of the lost client: %v", i, err)
			}
		}
	})
}

// A client that takes a session over has it, and the one before is told and may
// do nothing any more, but sees its prompt answered.
func TestTakeover(t *testing.T) {
	patient(t, func(t *testing.T, w *world) {
		id := w.fresh()
		turn, ended := w.begin(id, time.Minute)
		synctest.Wait()
		other := &client{}
		opened, err := w.load(other, domain.OpenSession{ID: id, Dirs: domain.Directories{Cwd: "/elsewhere"}, Takeover: true})
		if err != nil || opened.Running == "" || opened.Session.Cwd != "/project" || !strings.Contains(strings.Join(opened.Notes, " "), "keeps its directories") {
			t.Fatalf("takeover: %+v, %v", opened, err)
		}
		synctest.Wait()
		if n, ok := w.client.log()[len(w.client.log())-1].(domain.Notice); !ok || n.Severity != "error" || n.Reason != domain.SessionTaken {
			t.Errorf("the client before was told %+v", w.client.log())
		}
		if _, err := w.tryAdmit(id, true); !domain.HasCode(err, domain.SessionNotFound) {
			t.Errorf("its prompt gets %v", err)
		}
		if w.svc.Cancel(w.client, id, domain.CancelledByClient) {
			t.Error("it cancelled the turn of another client")
		}
		turn.ticket.Interrupt(domain.RequestCancelled)
		select {
		case <-turn.ticket.Left():
		default:
			t.Error("a prompt that it cancelled is still waited for")
		}
		w.svc.Detach(w.client, domain.Disconnected)
		if turn.ctx.Err() != nil {
			t.Error("the turn ended with the client that had sent it")
		}
		if !w.svc.Cancel(other, id, domain.CancelledByClient) {
			t.Error("the new client cannot cancel")
		}
		if err := <-ended; !errors.Is(err, domain.CancelledByClient) {
			t.Errorf("the turn ended with %v", err)
		}
		w.wantCode(w.end(w.svc.Close, w.client, id), domain.SessionNotFound)
	})
}

// What cannot be taken over stays as it is.
func TestTakeover_Refused(t *testing.T) {
	gone, leave := context.WithCancelCause(context.Background())
	leave(domain.Disconnected)
	for name, c := range map[string]struct {
		by   *client
		req  domain.OpenSession
		code domain.Code // 0: Disconnected
	}{
		"bad directories":                  {by: &client{}, req: domain.OpenSession{Dirs: domain.Directories{Cwd: "/missing"}}, code: domain.InvalidArgument},
		"rights":                           {by: &client{rights: &domain.Rights{Name: "x", Roots: []string{"/only"}}}, code: domain.Denied},
		"a client that is lost on the way": {by: &client{onSend: func(context.Context, domain.Update) error { return context.Cause(gone) }}, req: domain.OpenSession{Replay: true}},
	} {
		for _, busy := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				patient(t, func(t *testing.T, w *world) {
					id := w.fresh()
					w.says(id, whole(1)...)
					if busy {
						w.begin(id, time.Minute)
						synctest.Wait()
					}
					c.req.ID, c.req.Takeover = id, true
					_, err := w.load(c.by, c.req)
					if c.code != 0 {
						w.wantCode(err, c.code)
					} else if !errors.Is(err, domain.Disconnected) {
						t.Errorf("the error is %v", err)
					}
					turn, err := w.tryAdmit(id, true)
					if err != nil {
						t.Fatalf("the client that has the session: %v", err)
					}
					w.svc.Cancel(w.client, id, domain.CancelledByClient)
					turn.ticket.Done(nil)
					for _, u := range w.client.log() {
						if _, ok := u.(domain.Notice); ok {
							t.Errorf("it was told that it lost the session: %+v", u)
						}
					}
				})
			})
		}
	}
}

// A question waits for whoever comes, is put to them anew, and taken from who
// has gone.
func TestAsk_WaitsForSomebody(t *testing.T) {
	patient(t, func(t *testing.T, w *world) {
		id := w.fresh()
		turn, _ := w.begin(id, time.Hour)
		synctest.Wait()
		att := turn.ticket.Live.Client()
		done := make(chan domain.Decision, 1)
		go func() {
			d, err := att.Ask(turn.ctx, domain.PermissionRequest{Session: id})
			if err != nil {
				t.Errorf("ask: %v", err)
			}
			done <- d
		}()
		synctest.Wait()
		late := make(chan struct{})
		w.client.answer = nil
		w.svc.Lose(w.client)
		synctest.Wait()
		second := &client{answer: func(ctx context.Context) (domain.Decision, error) {
			<-ctx.Done() // it says yes when the question is not its any more
			close(late)
			return domain.Decision{Outcome: domain.Selected, Option: "late"}, nil
		}}
		if _, err := w.load(second, domain.OpenSession{ID: id}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		w.svc.Lose(second)
		<-late
		third := &client{answer: allows}
		answered := make(chan struct{})
		if _, err := w.load(third, domain.OpenSession{ID: id, Answered: answered}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if third.questions() != 0 {
			t.Error("it was asked before it was answered")
		}
		close(answered)
		if d := <-done; d.Option != "allow-once" || w.client.questions() != 1 || second.questions() != 1 || third.questions() != 1 {
			t.Errorf("%+v after %d, %d and %d questions", d, w.client.questions(), second.questions(), third.questions())
		}
		w.svc.Cancel(third, id, domain.CancelledByClient)
	})
}

// A question is not for somebody else than who was asked, unless they took the
// session over and may do more than read.
func TestAsk_AnotherPrincipal(t *testing.T) {
	for name, c := range map[string]struct {
		who      string
		takeover bool
		asked    int
		level    domain.Level
	}{
		"another that may only read, takeover": {who: "bert", takeover: true, level: domain.LevelReadOnly},
		"the same, that may now only read":     {who: "anna", level: domain.LevelReadOnly},
		"another that is asked itself":         {who: "bert", takeover: true, level: domain.LevelSupervised, asked: 1},

		"the same":          {who: "anna", asked: 1},
		"another":           {who: "bert"},
		"another, takeover": {who: "bert", takeover: true, asked: 1},
	} {
		t.Run(name, func(t *testing.T) {
			patient(t, func(t *testing.T, w *world) {
				w.client.rights = &domain.Rights{Name: "anna"}
				id := w.fresh()
				turn, _ := w.begin(id, time.Hour)
				synctest.Wait()
				done := make(chan domain.Decision, 1)
				go func() {
					d, _ := turn.ticket.Live.Client().Ask(turn.ctx, domain.PermissionRequest{Session: id})
					done <- d
				}()
				synctest.Wait()
				w.svc.Lose(w.client)
				next := &client{rights: &domain.Rights{Name: c.who, Level: c.level}, answer: allows}
				if _, err := w.load(next, domain.OpenSession{ID: id, Takeover: c.takeover}); err != nil {
					t.Fatal(err)
				}
				d := <-done
				if next.questions() != c.asked || (d.Outcome == domain.Selected) != (c.asked == 1) || c.asked == 0 && d.Note == "" {
					t.Errorf("asked %d times, want %d; the answer is %+v", next.questions(), c.asked, d)
				}
				w.svc.Cancel(next, id, domain.CancelledByClient)
			})
		})
	}
}

// What a prompt is answered is there for who took the session, at its end and
// afterwards.
func TestAwait(t *testing.T) {
	patient(t, func(t *testing.T, w *world) {
		id := w.fresh()
		_, err := w.svc.Await(&client{}, id, "")
		w.wantCode(err, domain.SessionNotFound)
		outcome := func(turn domain.TurnID) (domain.TurnOutcome, error) {
			run, err := w.svc.Await(w.client, id, turn)
			if err != nil {
				t.Fatal(err)
			}
			return run(t.Context())
		}
		_, err = outcome("")
		w.wantCode(err, domain.NotFound)

		turn, err := w.tryAdmit(id, true)
		if err != nil {
			t.Fatal(err)
		}
		run, err := w.svc.Await(w.client, id, "")
		if err != nil {
			t.Fatal(err)
		}
		waiting, cancel := context.WithCancelCause(t.Context())
		cancel(domain.RequestCancelled)
		if _, err := run(waiting); !errors.Is(err, domain.RequestCancelled) {
			t.Errorf("a wait that was cancelled: %v", err)
		}
		turn.ticket.Ended(domain.TurnOutcome{Turn: "t", Stop: domain.StopRefusal}, nil)
		time.AfterFunc(time.Second, func() { turn.ticket.Done(nil) })
		for range 2 {
			if out, err := run(t.Context()); err != nil || out.Stop != domain.StopRefusal {
				t.Errorf("%+v, %v", out, err)
			}
		}
		if out, err := outcome(""); err != nil || out.Stop != domain.StopRefusal {
			t.Errorf("afterwards: %+v, %v", out, err)
		}
		_, err = outcome("another")
		w.wantCode(err, domain.NotFound)

		// The journal knows the newest one after the session left memory.
		w.says(id, append(whole(1), domain.UserSaid{Turn: "t2", ID: "t2-u"},
			domain.TurnFinished{Turn: "t2", Failure: &domain.Failure{Code: domain.RateLimited, Msg: "wait"}})...)
		w.close(id)
		if _, err := w.load(w.client, domain.OpenSession{ID: id}); err != nil {
			t.Fatal(err)
		}
		_, err = outcome("t2")
		w.wantCode(err, domain.RateLimited)
		w.says(id, whole(3)...)
		w.close(id)
		if _, err := w.load(w.client, domain.OpenSession{ID: id}); err != nil {
			t.Fatal(err)
		}
		if out, err := outcome(""); err != nil || out.Turn != "t3" || out.Stop != domain.StopEndTurn {
			t.Errorf("from the journal: %+v, %v", out, err)
		}
		// It knows the others as well, each as it was.
		first, err := outcome("t1")
		if err != nil || first.Turn != "t1" || first.Stop != domain.StopEndTurn || first.Total.Input != 5 {
			t.Errorf("an older one: %+v, %v", first, err)
		}
		_, err = outcome("t2")
		w.wantCode(err, domain.RateLimited)
		_, err = outcome("t")
		w.wantCode(err, domain.NotFound)
	})
}
