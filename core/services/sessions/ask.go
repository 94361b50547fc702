package sessions

import (
	"context"
	"errors"
	"sync"

	"github.com/berth-dev/berth/core/domain"
	"github.com/berth-dev/berth/core/ports"
)

// errAnswered withdraws a question that somebody else answered, or whose
// client is not attached any more.
var errAnswered = errors.New("the question is not open any more")

// Ask puts the question to the attached client, and to those who observe and
// may answer. The first answer counts; from who is only observing, that is an
// option chosen. While nobody is attached the question waits, and whoever
// comes next is asked: the question ends with its context. A question that was
// put to somebody else than the one who comes is not for them, unless they
// took the session over by name; it ends unanswered.
func (a *Attachment) Ask(ctx context.Context, r domain.PermissionRequest) (domain.Decision, error) {
	q := &question{a: a, ctx: ctx, r: r, asked: make(map[any]context.CancelCauseFunc), answers: make(chan reply)}
	defer q.end()
	_, generation := a.place()
	for {
		changed, now := a.place()
		if now != generation {
			return domain.Decision{Note: "somebody else has the session now"}, nil
		}
		switch seated, err := q.put(); {
		case err != nil:
			return domain.Decision{}, err
		case seated && len(q.asked) == 0:
			return domain.Decision{Note: "who has the session now may not allow anything"}, nil
		}
		select {
		case got := <-q.answers:
			if got.panicked != nil {
				panic(got.panicked) // on the goroutine of who asked, as if there were no other
			}
			if q.counts(got) {
				return got.decision, got.err
			}
		case <-changed:
		case <-ctx.Done():
			return domain.Decision{}, context.Cause(ctx)
		}
	}
}

// place returns what is closed when the attachment changes, and how often
// questions were to be given up.
func (a *Attachment) place() (changed <-chan struct{}, dismissed int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.changed, a.dismissed
}

// question is one call of Ask.
type question struct {
	a       *Attachment
	ctx     context.Context
	r       domain.PermissionRequest
	asked   map[any]context.CancelCauseFunc // by *seat or *watcher
	answers chan reply
	group   sync.WaitGroup
}

// reply is what one client made of a question.
type reply struct {
	from     any
	decision domain.Decision
	err      error
	panicked any
}

// put asks who is there and was not asked, and withdraws the question from who
// has gone. Who may only read is not asked, also not of a turn that somebody
// with more rights began. seated reports whether anybody has the session.
func (q *question) put() (seated bool, err error) {
	s, watchers, err := q.a.current()
	if err != nil {
		return false, err
	}
	there := make(map[any]bool)
	if s != nil && s.client.Info().Rights.Answers() {
		there[s] = true
		q.ask(s, s.client, s.ready)
	}
	for _, w := range watchers {
		if w.client.Info().Rights.Answers() {
			there[w] = true
			if q.asked[w] == nil {
				q.ask(w, w.client, w.reached()) // behind the call that it is about
			}
		}
	}
	for who, cancel := range q.asked {
		if !there[who] {
			cancel(errAnswered)
			delete(q.asked, who)
		}
	}
	return s != nil, nil
}

// ask asks one client, once.
func (q *question) ask(who any, c ports.Client, ready <-chan struct{}) {
	if q.asked[who] != nil {
		return
	}
	ctx, cancel := context.WithCancelCause(q.ctx)
	q.asked[who] = cancel
	q.group.Go(func() {
		got := reply{from: who}
		func() {
			defer func() { got.panicked = recover() }()
			if got.err = waitFor(ctx, ready); got.err == nil {
				got.decision, got.err = c.Ask(ctx, q.r)
			}
		}()
		select {
		case q.answers <- got:
		case <-ctx.Done():
		}
	})
}

// counts reports whether a reply is the answer.
func (q *question) counts(got reply) bool {
	if q.asked[got.from] == nil {
		return false // it has gone
	}
	s, attached := got.from.(*seat)
	switch {
	case !attached:
		return got.err == nil && got.decision.Outcome == domain.Selected
	case got.err != nil && q.a.lost(s, got.err):
		return false // whoever comes next is asked
	}
	return true
}

// end withdraws the question from everybody and joins those who ask.
func (q *question) end() {
	for _, cancel := range q.asked {
		cancel(errAnswered)
	}
	q.group.Wait()
}
