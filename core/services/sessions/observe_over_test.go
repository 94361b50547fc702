package sessions_test

import (
	"context"
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
