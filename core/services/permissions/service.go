// Package permissions asks whether a prepared tool call may run: the pure
// decision first (domain.Decide), the person only when it says so. What comes
// back is both the answer and the record to be journalled.
//
// Read next: core/services/turns/calls.go, which is the only caller.
package permissions

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/berth-dev/berth/core/domain"
	"github.com/berth-dev/berth/core/ports"
)

// Service decides about calls. It keeps nothing but a count: remembered rules
// live in the session's journal.
type Service struct {
	observer ports.Observer
	clock    ports.Clock
	wait     time.Duration
	asking   atomic.Int64
}

// New returns a service that waits at most wait for a person's answer.
func New(observer ports.Observer, clock ports.Clock, wait time.Duration) *Service {
	return &Service{observer: observer, clock: clock, wait: wait}
}

// Asking returns how many questions wait for an answer.
func (s *Service) Asking() int { return int(s.asking.Load()) }

// Question is one call in need of a decision.
type Question struct {
	Session domain.SessionID
	Turn    domain.TurnID
	Call    domain.CallOpened // as announced
	Access  domain.Access
	Policy  domain.Policy
	Rules   []domain.Rule // remembered in this session
}

// Answer is what came of it. Record is nil when nobody was asked.
type Answer struct {
	Allowed bool
	// Withdrawn means the client answered "cancelled": the turn ends.
	Withdrawn bool
	// Reason tells the model why it was refused.
	Reason string
	Record *domain.PermissionGiven
}

// Decide answers q. It returns an error only when the context ended while the
// person was being asked, with the context's cause in its chain.
func (s *Service) Decide(ctx context.Context, client ports.Approver, q Question) (Answer, error) {
	start := s.clock()
	ruling := domain.Decide(q.Policy, q.Rules, q.Access)
	done := domain.PermissionDone{
		Session: q.Session, Turn: q.Turn, Call: q.Call.ID, Tool: q.Access.Tool, Verdict: ruling.Verdict,
	}
	defer func() {
		done.Duration = s.clock().Sub(start)
		s.observer.Observe(ctx, done)
	}()
	switch ruling.Verdict {
	case domain.Allow:
		return Answer{Allowed: true}, nil
	case domain.Refuse:
		return Answer{Reason: "Not allowed: " + ruling.Reason + "."}, nil
	case domain.Ask:
	}
	done.Asked = true
	options := Options(q.Access, ruling)
	decision, err := s.ask(ctx, client, q, ruling, options)
	if err != nil {
		done.Outcome = domain.Withdrawn // there was no time to answer: the turn has ended
		return Answer{}, err
	}
	answer := conclude(q, ruling, decision, options)
	done.Outcome, done.Option = answer.Record.Outcome, answer.Record.Option // what counts, not what was sent
	return answer, nil
}

// ask puts the question and bounds the wait. Errors other than the end of the
// caller's context count as no answer.
func (s *Service) ask(ctx context.Context, client ports.Approver, q Question, r domain.Ruling, options []domain.PermissionOption) (domain.Decision, error) {
	s.asking.Add(1)
	defer s.asking.Add(-1)
	waiting, cancel := context.WithTimeout(ctx, s.wait)
	defer cancel()
	decision, err := client.Ask(waiting, domain.PermissionRequest{
		Session: q.Session, Turn: q.Turn, Call: q.Call, Reason: r.Reason, Options: options,
	})
	switch {
	case ctx.Err() != nil:
		return domain.Decision{}, context.Cause(ctx)
	case errors.Is(waiting.Err(), context.DeadlineExceeded):
		return domain.Decision{Note: "nobody answered in time"}, nil
	case err != nil:
		return domain.Decision{Note: "the client could not be asked"}, nil
	}
	return decision, nil
}

// conclude turns a decision into an answer. Only an offered option of an
// allowing kind allows.
func conclude(q Question, ruling domain.Ruling, d domain.Decision, options []domain.PermissionOption) Answer {
	rec := &domain.PermissionGiven{Turn: q.Turn, Call: q.Call.ID, Outcome: d.Outcome, Option: d.Option}
	if d.Outcome == domain.Withdrawn {
		return Answer{Withdrawn: true, Reason: "The user cancelled.", Record: rec}
	}
	kind, offered := kindOf(d.Option, options)
	if d.Outcome != domain.Selected || !offered {
		rec.Outcome, rec.Option = domain.Unanswered, ""
		reason := "Not allowed: there was no answer to the permission request"
		if d.Note != "" {
			reason += " (" + d.Note + ")"
		}
		return Answer{Reason: reason + ".", Record: rec}
	}
	if kind == domain.AllowAlways || kind == domain.RejectAlways {
		rec.Rules = rulesOf(d.Option, ruling)
	}
	if !kind.Allows() {
		return Answer{Reason: "Not allowed: the user rejected this call. Do not try the same thing again another way; ask or go on without it.", Record: rec}
	}
	return Answer{Allowed: true, Record: rec}
}
