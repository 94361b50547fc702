package sessions

import (
	"context"
	"slices"
	"time"

	"github.com/berth-dev/berth/core/domain"
	"github.com/berth-dev/berth/core/ports"
)

// stuckLimit is how long one update may be on its way to a client that takes
// nothing while another waits for the session.
const stuckLimit = 250 * time.Millisecond

// sending is what is on its way to a seat. Most often that is one thing after
// the other, within one turn; nothing here relies on that.
type sending struct {
	ways   []*way // the newest last, which may have nothing under way
	begun  int    // how often something was sent
	ousted bool
}

// way is what is sent within one context.
type way struct {
	within context.Context //nolint:containedctx // of what is sent, which ends when the seat is ousted
	of     <-chan struct{} // the end of the context that within was made of
	cancel context.CancelCauseFunc
	under  int // how much is under way
}

// under reports whether anything is under way.
func (out *sending) under() bool {
	return slices.ContainsFunc(out.ways, func(w *way) bool { return w.under > 0 })
}

// begins notes that something is on its way to a seat, until ends. The context
// of what it returns ends with ctx, and when the seat is ousted. Any number of
// things may be on their way at once, each within a context of its own.
func (a *Attachment) begins(s *seat, ctx context.Context) *way {
	a.mu.Lock()
	defer a.mu.Unlock()
	out := &s.sending
	out.begun++
	i := slices.IndexFunc(out.ways, func(w *way) bool { return w.of == ctx.Done() })
	if i < 0 {
		out.ways = slices.DeleteFunc(out.ways, func(w *way) bool {
			if w.under == 0 {
				w.cancel(nil) // nobody uses it any more
			}
			return w.under == 0
		})
		w := &way{of: ctx.Done()}
		w.within, w.cancel = context.WithCancelCause(ctx)
		if out.ousted {
			w.cancel(domain.Disconnected)
		}
		i, out.ways = len(out.ways), append(out.ways, w)
	}
	w := out.ways[i]
	w.under++
	return w
}

// ends undoes begins.
func (a *Attachment) ends(w *way) {
	a.mu.Lock()
	defer a.mu.Unlock()
	w.under--
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
		if at != nil && at == a.at && at.client != by && at.sending.under() && at.sending.begun == begun {
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
	for _, w := range a.at.sending.ways {
		w.cancel(domain.Disconnected)
	}
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
