package sessions_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/berth-dev/berth/core/domain"
)

// What a lost client left ends when it is known that it will not come back;
// what others left, and what somebody has, goes on.
func TestDisown(t *testing.T) {
	for name, c := range map[string]struct {
		who  string
		lost bool
		ends bool
	}{
		"lost":            {who: "anna", lost: true, ends: true},
		"lost by another": {who: "bert", lost: true},
		"there":           {who: "anna"},
	} {
		t.Run(name, func(t *testing.T) {
			patient(t, func(t *testing.T, w *world) {
				w.client.rights = &domain.Rights{Name: "anna"}
				id := w.fresh()
				turn, _ := w.begin(id, time.Minute)
				synctest.Wait()
				if c.lost {
					w.svc.Lose(w.client)
				}
				cause := errors.New("the token was revoked")
				w.svc.Disown(c.who, cause)
				synctest.Wait()
				if got := context.Cause(turn.ctx); errors.Is(got, cause) != c.ends || (got != nil) != c.ends {
					t.Errorf("the turn ended with %v", got)
				}
				if n := w.svc.Stats(); (n.Detached == 1) != (c.lost && !c.ends) || w.leased(id) == c.ends {
					t.Errorf("afterwards: %+v, leased %v", n, w.leased(id))
				}
				time.Sleep(2 * time.Minute) // nothing is left to end
			})
		})
	}
}
