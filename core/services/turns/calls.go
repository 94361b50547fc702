package turns

import (
	"context"
	"errors"
	"sync"

	"github.com/berth-dev/berth/core/domain"
	"github.com/berth-dev/berth/core/services/permissions"
)

// parallelCalls bounds how many read-only calls of one reply run at once.
const parallelCalls = 4

// callAll runs the calls of a complete reply. Calls that only read and stand
// side by side run in parallel; every other call is prepared after the one
// before it has ended, because it may depend on it. The reply is journalled
// together with the intent of its first calls.
func (t *turn) callAll(said domain.AssistantSaid) error {
	recs := []domain.Record{said}
	for rest := said.Calls; len(rest) > 0; {
		n := t.batch(rest)
		if err := t.callBatch(recs, rest[:n]); err != nil {
			return err
		}
		recs, rest = nil, rest[n:]
	}
	return nil
}

// batch returns how many of the next calls run together.
func (t *turn) batch(calls []domain.ModelCall) int {
	n := 0
	for n < len(calls) && t.tools[calls[n].Name].spec.ReadOnly {
		n++
	}
	return max(n, 1)
}

// callBatch journals recs with the intent of the calls, announces and runs
// them. After a cancel nothing new is announced.
func (t *turn) callBatch(recs []domain.Record, wants []domain.ModelCall) error {
	var calls []*call
	defer func() {
		for _, c := range calls {
			t.release(c)
		}
	}()
	for _, want := range wants {
		calls = append(calls, t.prepare(want))
	}
	if t.ctx.Err() != nil {
		_, err := t.emit.record(recs...)
		return errors.Join(err, context.Cause(t.ctx))
	}
	for _, c := range calls {
		recs = append(recs, domain.CallBegan{Turn: t.id, Call: c.want, Update: c.opened})
	}
	if _, err := t.emit.record(recs...); err != nil {
		return err
	}
	return t.runAll(calls)
}

// runAll runs prepared calls and joins them.
func (t *turn) runAll(calls []*call) error {
	if len(calls) == 1 {
		return t.runCall(calls[0])
	}
	errs := make([]error, len(calls))
	room := make(chan struct{}, parallelCalls)
	var group sync.WaitGroup
	for i, c := range calls {
		room <- struct{}{}
		group.Go(func() {
			defer func() { <-room }()
			errs[i] = t.isolate("call of "+c.want.Name, func() error { return t.runCall(c) })
		})
	}
	group.Wait()
	return errors.Join(errs...)
}

// runCall takes one call to its final status. The error ends the turn.
func (t *turn) runCall(c *call) error {
	result, given, err := t.decideAndRun(c)
	if err != nil && t.ctx.Err() == nil {
		return err
	}
	if err != nil {
		result = failed("Cancelled before it ran.")
		if c.started {
			result = failed("Cancelled before it finished; it may or may not have taken effect.")
		}
	}
	if result.Foreign {
		t.mu.Lock()
		t.foreign = true
		t.mu.Unlock()
	}
	recs := make([]domain.Record, 0, 3)
	if given != nil {
		recs = append(recs, *given)
	}
	recs = append(recs, domain.CallFinished{
		Turn: t.id, Call: c.want.ID, Failed: result.Failed, Text: result.Text, Limit: t.limitOf(result.Text),
		Content: result.Content, Locations: result.Locations, RawOutput: result.RawOutput,
	})
	if result.Plan != nil {
		recs = append(recs, domain.PlanSet{Turn: t.id, Entries: result.Plan})
	}
	if _, rerr := t.emit.record(recs...); rerr != nil {
		return rerr
	}
	status := domain.CallCompleted
	if result.Failed {
		status = domain.CallFailed
	}
	t.e.p.Observer.Observe(t.ctx, domain.CallDone{
		Session: t.sid, Turn: t.id, Call: c.want.ID, Tool: c.want.Name, Status: status, Duration: t.e.p.Clock().Sub(c.start),
		Unknown: c.unknown, Args: c.want.Args, Result: result.Text,
	})
	if t.ctx.Err() != nil {
		return context.Cause(t.ctx)
	}
	return nil
}

func failed(text string) domain.ToolResult { return domain.ToolResult{Failed: true, Text: text} }

// decideAndRun asks for permission and runs the call. A permission that
// refuses is returned to be journalled with the result; one that allows is
// journalled before the call has any effect.
func (t *turn) decideAndRun(c *call) (domain.ToolResult, *domain.PermissionGiven, error) {
	if c.refusal != "" {
		return failed(c.refusal), nil, nil
	}
	if t.ctx.Err() != nil {
		return domain.ToolResult{}, nil, context.Cause(t.ctx)
	}
	rules, err := t.live.Rules(t.ctx)
	if err != nil {
		return domain.ToolResult{}, nil, err
	}
	t.mu.Lock()
	c.access.Foreign = t.foreign
	t.mu.Unlock()
	answer, err := t.e.p.Permissions.Decide(t.ctx, t.live.Client(), permissions.Question{
		Session: t.sid, Turn: t.id, Call: c.opened, Access: c.access, Policy: t.view.Agent.Policy, Rules: rules,
	})
	switch {
	case err != nil:
		return domain.ToolResult{}, nil, err
	case answer.Withdrawn:
		t.cancel(domain.CancelledByClient)
		return failed("Cancelled by the user before it ran."), answer.Record, nil
	case !answer.Allowed:
		return failed(answer.Reason), answer.Record, nil
	}
	if answer.Record != nil {
		if _, err := t.emit.record(*answer.Record); err != nil {
			return domain.ToolResult{}, nil, err
		}
	}
	if t.ctx.Err() != nil {
		return domain.ToolResult{}, nil, context.Cause(t.ctx)
	}
	if err := t.emit.send(t.ctx, domain.CallChanged{ID: c.want.ID, Status: domain.CallInProgress}); err != nil {
		return domain.ToolResult{}, nil, err
	}
	result, err := t.execute(c)
	return result, nil, err
}
