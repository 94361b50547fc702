package sessions_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/berth-dev/berth/core/domain"
)

// What a client is told next comes behind what an observation told it that had
// not begun yet, and is over now: of that nothing more comes.
func TestObserve_EndsWhileItBegins(t *testing.T) {
	for name, next := range map[string]func(w *world, c *client, id domain.SessionID) error{
		"loading": func(w *world, c *client, id domain.SessionID) error {
			_, err := w.load(c, domain.OpenSession{ID: id, Replay: true})
			return err
		},
		"observing": func(w *world, c *client, id domain.SessionID) error {
			_, err := w.observe(c, id, true)
			return err
		},
	} {
		for _, stuck := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, stuck %v", name, stuck), func(t *testing.T) {
				patient(t, func(t *testing.T, w *world) {
					id := w.fresh()
					w.says(id, whole(1)...)
					w.says(id, whole(2)...)
					w.close(id)
					var c client
					c.onSend = func(ctx context.Context, u domain.Update) error {
						if said, ok := u.(domain.AgentText); !ok || said.ID != "t1-m" {
							return nil
						}
						c.mu.Lock()
						c.onSend = nil // it happens once
						c.mu.Unlock()
						if stuck {
							return takesNothing(ctx, u)
						}
						time.Sleep(time.Second) // sent all the same
						return nil
					}
					was := make(chan error, 1)
					go func() {
						_, err := w.observe(&c, id, true)
						was <- err
					}()
					synctest.Wait()
					if err := next(w, &c, id); err != nil {
						t.Fatal(err)
					}
					w.wantCode(<-was, domain.Cancelled)
					synctest.Wait()
					want := "go t1 done go t1 done go t2 done"
					if stuck {
						want = "go t1 go t1 done go t2 done"
					}
					if got := strings.Join(strings.Fields(texts(c.log())), " "); got != want {
						t.Errorf("it was told %q, want %q", got, want)
					}
				})
			})
		}
	}
}

// Who ends an observation can wait until nothing more is told of it.
func TestUnobserve_Rest(t *testing.T) {
	patient(t, func(t *testing.T, w *world) {
		id := w.fresh()
		var c client
		c.onSend = func(context.Context, domain.Update) error {
			time.Sleep(time.Second) // sent all the same
			return nil
		}
		if _, err := w.observe(&c, id, false); err != nil {
			t.Fatal(err)
		}
		turn := w.admit(id)
		turn.tell(t, domain.AgentText{ID: "m", Text: "one"})
		turn.tell(t, domain.AgentText{ID: "m", Text: "two"})
		synctest.Wait()
		rest, was := w.svc.Unobserve(&c, id)
		short, cancel := context.WithTimeoutCause(t.Context(), time.Millisecond, domain.RequestCancelled)
		defer cancel()
		if err := rest(short); !was || !errors.Is(err, domain.RequestCancelled) {
			t.Errorf("there was one: %v; while one thing is under way: %v", was, err)
		}
		if err := rest(t.Context()); err != nil {
			t.Error(err)
		}
		before := len(c.log())
		time.Sleep(time.Minute)
		if after := len(c.log()); after != before {
			t.Errorf("%d things were told, %d more afterwards", before, after-before)
		}
		turn.ticket.Done(nil)
	})
}
