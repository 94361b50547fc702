package sessions

import (
	"context"
	"time"

	"github.com/berth-dev/berth/core/domain"
	"github.com/berth-dev/berth/core/ports"
)

// stuckLimit is how long one update may be on its way to a client that takes
// nothing while another waits for the session.
const stuckLimit = 250 * time.Millisecond

// sending is what is on its way to a seat. Most often that is one thing after
// the other, within one turn.
type sending struct {
	within context.Context //nolint:containedctx // of the newest turn that sent something; ends when the seat is ousted
	turn   <-chan struct{} // of the context that within was made of
	cancel context.CancelCauseFunc
	begun  int // how often something was sent
	under  int // how much of it is under way
	ousted bool
}

// begins notes that something is on its way to a seat. What it returns ends
// with ctx, and when the seat is ousted.
func (a *Attachment) begins(s *seat, ctx context.Context) context.Context {
	a.mu.Lock()
	defer a.mu.Unlock()
	out := &s.sending
	out.begun++
	out.under++
	if out.within == nil || out.turn != ctx.Done() {
		if out.within != nil && out.under == 1 {
			out.cancel(nil) // nobody uses it any more
		}
		out.turn = ctx.Done()
		out.within, out.cancel = context.WithCancelCause(ctx)
		if out.ousted {
			out.cancel(domain.Disconnected)
		}
	}
	return out.within
}

// ends undoes begins.
func (a *Attachment) ends(s *seat) {
	a.mu.Lock()
	defer a.mu.Unlock()
	s.sending.under--
}

func (a *Attachment) wasOusted(s *seat) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return s.sending.ousted
}

// take is hold for a client that takes the session: another that has it and
// takes nothing of what it is told does not keep it waiting.
func (l *Live) take(ctx context.Context, by ports.Client) (*Feed, error) {
	defer l.att.oustWhenStuck(by)()
	return l.hold(ctx)
}

// oustWhenStuck takes the seat from another client as soon as one thing has
// been on its way to it for stuckLimit, until done is called.
func (a *Attachment) oustWhenStuck(by ports.Client) (done func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	at, begun := a.sentSoFar()
	var timer *time.Timer
	over := false
	timer = time.AfterFunc(stuckLimit, func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		if over {
			return
		}
		if at != nil && at == a.at && at.client != by && at.sending.under > 0 && at.sending.begun == begun {
			a.oust()
			return
		}
		at, begun = a.sentSoFar()
		timer.Reset(stuckLimit)
	})
	return func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		over = true
		timer.Stop()
	}
}

// sentSoFar returns who has the seat and how often something was sent to it,
// with the mutex held.
func (a *Attachment) sentSoFar() (*seat, int) {
	if a.at == nil {
		return nil, 0
	}
	return a.at, a.at.sending.begun
}

// oust empties the seat and ends what is on its way to it, with the mutex held.
func (a *Attachment) oust() {
	a.at.sending.ousted = true
	a.at.sending.cancel(domain.Disconnected)
	a.same = nil
	a.ousted = a.leave()
}

// oustedBefore returns who was ousted and has not been told; nil when nobody
// was.
func (a *Attachment) oustedBefore() *seat {
	a.mu.Lock()
	defer a.mu.Unlock()
	s := a.ousted
	a.ousted = nil
	return s
}
