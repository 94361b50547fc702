package sessions

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/berth-dev/berth/core/domain"
	"github.com/berth-dev/berth/core/ports"
)

// Attachment is what a session's turns and tools hold in place of a
// connection. It forwards to the client that is attached at the moment of each
// call, and copies what is told to those who observe. While a lost client is
// waited for, nobody is attached: what is told then is dropped, because the
// journal and the feed's tail keep it, and questions wait for who comes. After
// the end, calls fail with domain.Disconnected.
type Attachment struct {
	patient bool // a lost client is waited for
	// absence is Service.absence.
	absence func(ports.Client) (left time.Duration, changed <-chan struct{}, away bool)
	came    atomic.Int64 // how often somebody was attached

	mu        sync.Mutex
	at        *seat // nil while nobody is attached
	over      bool
	watchers  []*watcher
	changed   chan struct{}  // closed and replaced when one of those changes
	principal string         // the name of who was attached last
	same      []ports.Client // the connections it had, as far as it resumed what was lost
	dismissed int            // how often questions were to be given up
	ousted    *seat          // who was stuck when another came, and was not told of it yet
}

// seat is one client's time as the one who is attached.
type seat struct {
	client ports.Client
	ready  <-chan struct{} // closed when it may be told what goes on; nil is now
	gone   chan struct{}   // closed when its time is over

	sending sending // guarded by the attachment's mutex
}

var _ ports.Client = (*Attachment)(nil)

func newAttachment(s *Service, c ports.Client) *Attachment {
	a := &Attachment{patient: s.cfg.Grace > 0, absence: s.absence, changed: make(chan struct{})}
	if c != nil {
		a.at = &seat{client: c, gone: make(chan struct{})}
		a.same, a.principal = []ports.Client{c}, c.Info().Rights.Principal()
	}
	return a
}

// attach seats a client in place of the one there, which is returned; nil when
// there was none. What goes on is told to it when it was answered. Questions
// that wait are put to it, unless it is somebody else than the one they were
// put to before and did not ask for the session explicitly: those end.
func (a *Attachment) attach(c ports.Client, req storedRequest) (before *seat) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.at != nil || req.Replay || req.silent {
		a.same = nil
	}
	a.same = append(a.same, c)
	if before = a.leave(); before == nil {
		before = a.ousted
	}
	a.ousted = nil
	if who := c.Info().Rights.Principal(); who != a.principal {
		a.principal = who
		if !req.Takeover {
			a.dismissed++
		}
	}
	a.at = &seat{client: c, ready: req.Answered, gone: make(chan struct{})}
	a.came.Add(1)
	return before
}

// heldBy reports whether the one who was attached last and c stand for each
// other.
func (a *Attachment) heldBy(c ports.Client) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.principal == c.Info().Rights.Principal()
}

// restore puts an earlier seat back, as if it had been kept; nil leaves it
// empty.
func (a *Attachment) restore(before *seat) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.came.Add(-1)
	a.leave()
	if before != nil {
		a.at = &seat{client: before.client, ready: before.ready, gone: make(chan struct{})}
		a.same, a.principal = []ports.Client{before.client}, before.client.Info().Rights.Principal()
	}
}

// seated reports whether somebody is attached.
func (a *Attachment) seated() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.at != nil
}

// newest reports whether c is the one who is attached, or was last, or is a
// connection that it had before.
func (a *Attachment) newest(c ports.Client) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Contains(a.same, c)
}

// detach empties the seat: a client was lost.
func (a *Attachment) detach() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.leave()
}

// leave ends the time of who is attached, with the mutex held, and wakes those
// who wait for a change.
func (a *Attachment) leave() *seat {
	before := a.at
	if before != nil {
		close(before.gone)
	}
	a.at = nil
	a.wake()
	return before
}

func (a *Attachment) wake() {
	close(a.changed)
	a.changed = make(chan struct{})
}

// end detaches for good.
func (a *Attachment) end() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.over = true
	a.watchers, a.same, a.ousted = nil, nil, nil
	a.leave()
}

func (a *Attachment) current() (*seat, []*watcher, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.over {
		return nil, nil, domain.Disconnected
	}
	return a.at, a.watchers, nil
}

// Send forwards to the attached client. That a client is lost, while it is
// waited for, is no failure.
func (a *Attachment) Send(ctx context.Context, id domain.SessionID, u domain.Update) error {
	_, err := a.pass(ctx, id, u)
	return err
}

// pass is Send that tells whether the update was taken by a client. Observers
// are told what was: what a cancel kept from the client was never told.
func (a *Attachment) pass(ctx context.Context, id domain.SessionID, u domain.Update) (taken bool, err error) {
	s, watchers, err := a.current()
	if err != nil {
		return false, err
	}
	if s != nil {
		taken, err = a.deliver(ctx, s, id, u)
		if errors.Is(err, domain.Disconnected) && len(watchers) > 0 {
			taken, err = false, nil // the others see how it ends
		}
		if err != nil {
			return false, err
		}
	}
	for _, w := range watchers {
		w.tell(u)
	}
	return taken, nil
}

// deliver sends an update to who has the seat. It is not taken, which is no
// failure, when that client is lost.
func (a *Attachment) deliver(ctx context.Context, s *seat, id domain.SessionID, u domain.Update) (taken bool, err error) {
	w := a.begins(s, ctx)
	defer a.ends(w)
	ctx = w.within
	if s.ready != nil {
		select {
		case <-s.ready:
		case <-s.gone:
			return false, nil
		case <-ctx.Done():
			if a.wasOusted(s) {
				return false, nil
			}
			return false, context.Cause(ctx)
		}
	}
	err = s.client.Send(ctx, id, u)
	if err != nil && a.lost(s, err) {
		return false, nil
	}
	return err == nil, err
}

// lost reports whether a call failed only because its client is lost and
// waited for, or was ousted.
func (a *Attachment) lost(s *seat, err error) bool {
	if a.wasOusted(s) {
		return true
	}
	if !a.patient {
		return false
	}
	select {
	case <-s.gone:
		return true
	default:
		return errors.Is(err, domain.Disconnected)
	}
}

// Info forwards to the attached client; it is empty when there is none.
func (a *Attachment) Info() domain.ClientInfo {
	if s, _, _ := a.current(); s != nil {
		return s.client.Info()
	}
	return domain.ClientInfo{}
}
