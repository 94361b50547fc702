package sessions_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/berth-dev/berth/core/domain"
)

func (w *world) observe(c *client, id domain.SessionID, replay bool) (domain.OpenedSession, error) {
	run, err := w.svc.Observe(c, id, replay, nil)
	if err != nil {
		return domain.OpenedSession{}, err
	}
	return run(w.t.Context())
}

// tell tells an update as a turn does.
func (u *turn) tell(t *testing.T, up domain.Update) {
	t.Helper()
	f := u.ticket.Live.Feed()
	if err := f.Sending.Acquire(t.Context()); err != nil {
		t.Fatal(err)
	}
	defer f.Sending.Release()
	if err := f.Tell(t.Context(), up); err != nil {
		t.Errorf("tell: %v", err)
	}
}

// Observers see what the client sees, whoever has the session, in memory or
// not, and know which prompts are admitted.
func TestObserve(t *testing.T) {
	patient(t, func(t *testing.T, w *world) {
		id := w.fresh()
		w.says(id, whole(1)...)
		w.close(id)
		early, late := &client{}, &client{}
		if _, err := w.observe(early, id, true); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if got := texts(early.log()); got != "go t1 done" {
			t.Errorf("of a session out of memory it saw %q", got)
		}
		if _, err := w.load(w.client, domain.OpenSession{ID: id}); err != nil {
			t.Fatal(err)
		}
		turn, _ := w.begin(id, time.Minute)
		w.begin(id, time.Minute)
		synctest.Wait()
		turn.tell(t, domain.AgentText{ID: "m", Text: "half"})
		opened, err := w.observe(late, id, true)
		if err != nil || opened.Running == "" || len(opened.Queued) != 1 {
			t.Fatalf("observe: %+v, %v", opened, err)
		}
		if opened.Agent.Alias != "default" || opened.Model.Ref != opened.Agent.Model || opened.Model.Title == "" {
			t.Errorf("of who answers it is told %+v, %+v", opened.Agent, opened.Model)
		}
		turn.tell(t, domain.AgentText{ID: "m", Text: "way"})
		synctest.Wait()
		for name, c := range map[string]*client{"early": early, "late": late} {
			if got := texts(c.log()); strings.ReplaceAll(got, " ", "") != "got1donehalfway" {
				t.Errorf("%s saw %q", name, got)
			}
		}
		if q := lastQueue(early.log()); q.Running == "" || len(q.Queued) != 1 {
			t.Errorf("it knows of the queue %+v", q)
		}
		_, was := w.svc.Unobserve(late, id)
		if _, again := w.svc.Unobserve(late, id); !was || again {
			t.Error("Unobserve does not say what was so")
		}
		w.svc.Lose(w.client)
		turn.tell(t, domain.AgentText{ID: "m", Text: "!"})
		synctest.Wait()
		if !strings.HasSuffix(texts(early.log()), "!") || strings.HasSuffix(texts(late.log()), "!") {
			t.Errorf("after the loss early saw %q, late, which had left, %q", texts(early.log()), texts(late.log()))
		}
		// An observer that takes the session is told everything as its client.
		before := len(early.log())
		if _, err := w.load(early, domain.OpenSession{ID: id, Replay: true}); err != nil {
			t.Fatal(err)
		}
		turn.tell(t, domain.AgentText{ID: "m", Text: "?"})
		synctest.Wait()
		if got := texts(early.log()[before:]); strings.Count(got, "?") != 1 || !strings.Contains(got, "halfway!") {
			t.Errorf("it took the session and saw %q", got)
		}
		_, err = w.observe(early, id, false)
		w.wantCode(err, domain.InvalidArgument)
		w.svc.Cancel(early, id, domain.CancelledByClient)
	})
}

func lastQueue(ups []domain.Update) (q domain.QueueChanged) {
	for _, u := range ups {
		if c, ok := u.(domain.QueueChanged); ok {
			q = c
		}
	}
	return q
}

// How a turn ended is told to who observes, as it ends and in the history, and
// to who loads.
func TestObserve_Ends(t *testing.T) {
	for name, c := range map[string]struct {
		outcome domain.TurnOutcome
		err     error
		rec     domain.TurnFinished
		ended   domain.TurnEnded // but for its turn
	}{
		"by itself": {outcome: domain.TurnOutcome{Stop: domain.StopEndTurn}, ended: domain.TurnEnded{Stop: domain.StopEndTurn}},
		"cancelled": {outcome: domain.TurnOutcome{Stop: domain.StopCancelled}, ended: domain.TurnEnded{Stop: domain.StopCancelled}},
		"refused":   {outcome: domain.TurnOutcome{Stop: domain.StopRefusal}, ended: domain.TurnEnded{Stop: domain.StopRefusal}},
		"failed": {
			err: domain.Errorf(domain.Unavailable, "no route"), rec: domain.TurnFinished{Failure: &domain.Failure{Code: domain.Unavailable, Msg: "no route"}},
			ended: domain.TurnEnded{Why: "no route"},
		},
		"failed within": {
			err: errors.New("a secret detail"), rec: domain.TurnFinished{Failure: domain.FailureOf(errors.New("a secret detail"))},
			ended: domain.TurnEnded{Why: "an internal error; the log has the details"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			patient(t, func(t *testing.T, w *world) {
				id := w.fresh()
				live := &client{}
				if _, err := w.observe(live, id, true); err != nil {
					t.Fatal(err)
				}
				turn := w.admit(id)
				synctest.Wait()
				q := lastQueue(live.log())
				if q.Running == "" || q.Ended != nil {
					t.Errorf("while it runs it is told %+v", q)
				}
				c.ended.Turn, c.rec.Turn, c.rec.Stop = q.Running, q.Running, c.outcome.Stop
				turn.ticket.Ended(c.outcome, c.err)
				if err := turn.run(0, domain.UserSaid{Turn: q.Running, ID: "u"}, c.rec); err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
				if q = lastQueue(live.log()); q.Running != "" || q.Ended == nil || *q.Ended != c.ended {
					t.Errorf("it is told %+v, want %+v", q.Ended, c.ended)
				}
				var want []domain.TurnEnded
				if c.outcome.Stop != domain.StopEndTurn {
					c.ended.Past = true
					want = append(want, c.ended)
				}
				late := &client{}
				if _, err := w.observe(late, id, true); err != nil {
					t.Fatal(err)
				}
				w.close(id)
				if _, err := w.load(w.client, domain.OpenSession{ID: id, Replay: true}); err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
				for who, log := range map[string][]domain.Update{"an observer": late.log(), "who loads": w.client.log()} {
					if got := endsIn(log); !slices.Equal(got, want) {
						t.Errorf("%s is told %+v, want %+v", who, got, want)
					}
				}
			})
		})
	}
}

func endsIn(ups []domain.Update) (list []domain.TurnEnded) {
	for _, u := range ups {
		if e, ok := u.(domain.TurnEnded); ok {
			list = append(list, e)
		}
	}
	return list
}

// An observer goes on to see a session that leaves memory and comes back, while
// it was being started as well.
func TestObserve_AcrossReleases(t *testing.T) {
	patient(t, func(t *testing.T, w *world) {
		id := w.fresh()
		w.says(id, whole(1)...)
		w.close(id)
		slow := &client{onSend: func(_ context.Context, u domain.Update) error { time.Sleep(time.Second); return nil }}
		done := make(chan error, 1)
		go func() {
			_, err := w.observe(slow, id, true)
			done <- err
		}()
		time.Sleep(500 * time.Millisecond) // it takes the history
		for n := 2; n < 4; n++ {
			if _, err := w.load(w.client, domain.OpenSession{ID: id}); err != nil {
				t.Fatal(err)
			}
			w.says(id, whole(n)...)
			w.close(id)
		}
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		if got := texts(slow.log()); got != "go t1 done go t2 done go t3 done" {
			t.Errorf("it saw %q", got)
		}
		if _, err := w.load(w.client, domain.OpenSession{ID: id}); err != nil {
			t.Fatal(err)
		}
		turn := w.admit(id)
		turn.tell(t, domain.AgentText{ID: "m", Text: "new"})
		turn.ticket.Done(nil)
		time.Sleep(time.Minute)
		if got := texts(slow.log()); !strings.HasSuffix(got, "t3 done new") {
			t.Errorf("after it came back it saw %q", got)
		}
	})
}

// An observer that does not keep up is dropped and told so; nobody waits for
// it.
func TestObserve_TooSlow(t *testing.T) {
	for name, text := range map[string]string{"updates": "x", "bytes": strings.Repeat("x", 64<<10)} {
		t.Run(name, func(t *testing.T) {
			patient(t, func(t *testing.T, w *world) {
				id := w.fresh()
				read := make(chan struct{})
				stuck := &client{onSend: func(ctx context.Context, _ domain.Update) error {
					select {
					case <-read:
						return nil
					case <-ctx.Done():
						return context.Cause(ctx)
					}
				}}
				if _, err := w.observe(stuck, id, false); err != nil {
					t.Fatal(err)
				}
				turn := w.admit(id)
				for range 10_000 {
					turn.tell(t, domain.AgentText{ID: "m", Text: text})
				}
				turn.ticket.Done(nil)
				if n := len(w.client.log()); n != 10_000 {
					t.Errorf("the client was told %d updates", n)
				}
				close(read)
				synctest.Wait()
				ups := stuck.log()
				if n, ok := ups[len(ups)-1].(domain.Notice); !ok || n.Reason != domain.ObserverDropped {
					t.Errorf("the last it was told is %T", ups[len(ups)-1])
				}
				if _, was := w.svc.Unobserve(stuck, id); was {
					t.Error("it is still an observer")
				}
			})
		})
	}
}

// Whoever answers first decides, and the others are told that it is over; who
// may only look is not asked.
func TestObserve_Answers(t *testing.T) {
	patient(t, func(t *testing.T, w *world) {
		id := w.fresh()
		turn := w.admit(id)
		defer turn.ticket.Done(nil)
		withdrawn := make(chan string, 2)
		w.client.answer = func(ctx context.Context) (domain.Decision, error) {
			<-ctx.Done()
			withdrawn <- "owner"
			return domain.Decision{}, context.Cause(ctx)
		}
		looks := &client{rights: &domain.Rights{Name: "looks", Observe: true}}
		reads := &client{rights: &domain.Rights{Name: "reads", Level: domain.LevelReadOnly}}
		shrugs := &client{answer: func(context.Context) (domain.Decision, error) { return domain.Decision{Outcome: domain.Withdrawn}, nil }}
		for _, c := range []*client{looks, reads, shrugs} {
			if _, err := w.observe(c, id, false); err != nil {
				t.Fatal(err)
			}
		}
		done := make(chan domain.Decision, 1)
		go func() {
			d, _ := turn.ticket.Live.Client().Ask(turn.ctx, domain.PermissionRequest{Session: id})
			done <- d
		}()
		synctest.Wait()
		helps := &client{answer: allows}
		if _, err := w.observe(helps, id, false); err != nil {
			t.Fatal(err)
		}
		if d := <-done; d.Outcome != domain.Selected || <-withdrawn != "owner" {
			t.Errorf("the answer is %+v", d)
		}
		if looks.questions()+reads.questions() != 0 || shrugs.questions() != 1 {
			t.Errorf("asked: %d, %d, %d", looks.questions(), reads.questions(), shrugs.questions())
		}
	})
}

// Of a session beyond its rights a client is not told who has it, and it
// disturbs nobody who does.
func TestRights_InUse(t *testing.T) {
	patient(t, func(t *testing.T, w *world) {
		w.agents.set("", agent("default"))
		req := in("/private")
		req.Key, req.Label = "agent:default:mine", "mine"
		id := w.open(req).Session.ID
		guest := &client{rights: &domain.Rights{Name: "guest", Roots: []string{"/team"}}}
		for _, takeover := range []bool{false, true} {
			run, err := w.svc.Open(guest, domain.OpenSession{ID: id, Takeover: takeover})
			if err != nil {
				t.Fatalf("takeover %v: it was told before its rights were looked at: %v", takeover, err)
			}
			turn, _ := w.begin(id, time.Minute) // while it is asked for
			_, err = run(t.Context())
			w.wantCode(err, domain.Denied)
			w.svc.Cancel(w.client, id, domain.CancelledByClient)
			<-turn.ctx.Done()
			synctest.Wait()
			for _, named := range []domain.NewSession{{Key: "agent:default:mine"}, {Label: "mine"}, {Label: "mine", Agent: "other"}, {Key: "agent:default:mine", Reset: true}} {
				named.Dirs, named.Takeover = in("/team").Dirs, takeover
				_, err = w.svc.New(t.Context(), guest, named)
				w.wantCode(err, domain.Denied)
			}
		}
		w.wantCode(w.end(w.svc.Delete, guest, id), domain.Denied)
		w.wantCode(w.end(w.svc.Delete, &client{}, id), domain.SessionActive)
		if _, err := w.load(w.client, domain.OpenSession{ID: id}); err != nil {
			t.Errorf("who has it was disturbed: %v", err)
		}
	})
}

// What a client may not use it is not shown, in no way.
func TestRights(t *testing.T) {
	patient(t, func(t *testing.T, w *world) {
		w.agents.set("", agent("default"), agent("other"))
		w.config.MaxSessions, w.config.MaxTotal = 100, 0
		w.svc = w.process(w.store)
		mine := func(dir, alias string) domain.SessionID {
			req := in(dir)
			req.Agent = alias
			return w.open(req).Session.ID
		}
		within, beyond, foreign := mine("/team/a", "default"), mine("/teamwork", "default"), mine("/team", "other")
		wide := in("/team/b")
		wide.Agent, wide.Dirs.Additional = "default", []string{"/private"}
		alsoBeyond := w.open(wide).Session.ID
		w.svc.Lose(w.client)
		guest := &client{rights: &domain.Rights{Name: "guest", Agents: []string{"default"}, Roots: []string{"/team"}, Level: domain.LevelSupervised}}
		for _, id := range []domain.SessionID{beyond, foreign, alsoBeyond} {
			_, err := w.load(guest, domain.OpenSession{ID: id, Takeover: true, Replay: true})
			w.wantCode(err, domain.Denied)
			_, err = w.observe(guest, id, true)
			w.wantCode(err, domain.Denied)
			if err := w.end(w.svc.Delete, guest, id); err == nil {
				t.Errorf("it deleted %s", id)
			}
		}
		if _, err := w.load(guest, domain.OpenSession{ID: within, Replay: true}); err != nil {
			t.Errorf("its own: %v", err)
		}
		for _, dirs := range []domain.Directories{
			{Cwd: "/"}, {Cwd: "/teamwork"}, {Cwd: "/team", Additional: []string{"/private"}}, {Cwd: "/team/../private"},
			{Cwd: "/missing"}, {Cwd: "/team", Additional: []string{"/missing/it/is"}}, // which is not for it to know
		} {
			_, err := w.load(guest, domain.OpenSession{ID: within, Dirs: dirs})
			w.wantCode(err, domain.Denied)
			_, err = w.svc.New(t.Context(), guest, domain.NewSession{Dirs: dirs})
			w.wantCode(err, domain.Denied)
		}
		opened, err := w.svc.New(t.Context(), guest, in("/team/deep/er"))
		if err != nil || opened.Agent.Alias != "default" {
			t.Errorf("a session of its own: %+v, %v", opened.Agent.Alias, err)
		}
		req := in("/team")
		req.Agent = "other"
		_, err = w.svc.New(t.Context(), guest, req)
		w.wantCode(err, domain.Denied)

		for n := range 7 { // to be passed over, between what it may see
			mine2 := in(fmt.Sprintf("/private/%d", n))
			mine2.Agent = "default"
			w.client = &client{}
			w.open(mine2)
		}
		var seen []domain.SessionID
		for q := (domain.SessionQuery{Limit: 1}); ; {
			page, err := w.svc.List(t.Context(), guest, q)
			if err != nil || len(page.Sessions) != 1 {
				t.Fatalf("a page of %d, %v", len(page.Sessions), err)
			}
			seen = append(seen, page.Sessions[0].ID)
			if page.Next == nil {
				break
			}
			q.After = page.Next
		}
		if len(seen) != 2 {
			t.Errorf("it is shown %d sessions, want its 2", len(seen))
		}
	})
}
