package acp1

import (
	"fmt"
	"testing"

	"github.com/berth-dev/berth/core/domain"
)

// TestOpenRequests_Forget: a client that names a session only once costs no
// memory for that, however many it names; what is not answered is kept.
func TestOpenRequests_Forget(t *testing.T) {
	answered := make(chan struct{})
	close(answered)
	var o openRequests
	o.add("open", openRequest{answered: make(chan struct{}), turn: true})
	for i := range 10 * fewSessions {
		o.add(domain.SessionID(fmt.Sprint(i)), openRequest{answered: answered})
	}
	if n := len(o.bySession); n > 2*fewSessions {
		t.Errorf("%d sessions are remembered", n)
	}
	if turns, others := o.of("open"); len(turns) != 1 || len(others) != 0 {
		t.Errorf("what is open is %d turns and %d others", len(turns), len(others))
	}
}
