package turns

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"github.com/berth-dev/berth/core/domain"
	"github.com/berth-dev/berth/core/ports"
	"github.com/berth-dev/berth/core/services/permissions"
)

const (
	// parallelCalls bounds how many read-only calls of one reply run at once.
	parallelCalls = 4
	// maxRawInput is the longest argument text shown to a client, in bytes.
	maxRawInput = 256 << 10
)

// call is one tool call on its way from the model's wish to its result.
type call struct {
	want     domain.ModelCall
	tool     ports.Tool
	prepared ports.Prepared // nil when preparing failed
	refusal  string         // why it cannot run; "" when it can
	opened   domain.CallOpened
	access   domain.Access
	start    time.Time
}

// callAll runs the calls of a complete reply. Calls that only read and stand
// side by side run in parallel; every other call is prepared after the one
// before it has ended, because it may depend on it. The reply is journalled
// together with the intent of its first calls.
func (t *turn) callAll(said domain.AssistantSaid) error {
	recs := []domain.Record{said}
	rest := said.Calls
	for len(rest) > 0 {
		n := t.batch(rest)
		if t.ctx.Err() != nil {
			return errors.Join(t.recordSettled(recs...), context.Cause(t.ctx))
		}
		calls := t.prepareAll(rest[:n])
		for _, c := range calls {
			recs = append(recs, domain.CallBegan{Turn: t.id, Call: c.want, Update: c.opened})
		}
		err := t.recordSettled(recs...)
		if err == nil {
			err = t.runAll(calls)
		}
		for _, c := range calls {
			t.release(c)
		}
		if err != nil {
			return err
		}
		recs, rest = nil, rest[n:]
	}
	return nil
}

// recordSettled journals and tells, also after a cancel: what was announced
// must be closed.
func (t *turn) recordSettled(recs ...domain.Record) error {
	ctx, cancel := t.settling()
	defer cancel()
	return t.emit.record(ctx, recs...)
}

// batch returns how many of the next calls run together.
func (t *turn) batch(calls []domain.ModelCall) int {
	n := 0
	for n < len(calls) {
		tool, ok := t.tools[calls[n].Name]
		if !ok || !tool.Spec().ReadOnly {
			break
		}
		n++
	}
	return max(n, 1)
}

// prepareAll looks at calls, without effects, and makes their announcements.
func (t *turn) prepareAll(wants []domain.ModelCall) []*call {
	calls := make([]*call, len(wants))
	for i, want := range wants {
		calls[i] = t.prepare(want)
	}
	return calls
}

func (t *turn) prepare(want domain.ModelCall) (c *call) {
	c = &call{want: want, start: t.e.p.Clock()}
	c.opened = domain.CallOpened{
		ID: want.ID, Name: want.Name, Title: want.Name, Kind: domain.KindOther,
		Status: domain.CallPending, RawInput: rawInput(want.Args),
	}
	defer func() {
		if p := recover(); p != nil {
			t.e.trouble(t.ctx, t.sid, "turns: panic", fmt.Errorf("panic in %s: %v\n%s", want.Name, p, debug.Stack()))
			c.refusal = "The tool " + want.Name + " failed internally."
		}
	}()
	tool, ok := t.tools[want.Name]
	if !ok {
		c.refusal = fmt.Sprintf("There is no tool %q. Tools: %s.", want.Name, strings.Join(t.toolNames(), ", "))
		return c
	}
	c.tool = tool
	c.opened.Kind = tool.Spec().Kind
	prepared, err := tool.Prepare(t.ctx, domain.ToolCall{Session: t.sid, Turn: t.id, ID: want.ID, Name: want.Name, Args: want.Args})
	if err != nil {
		c.refusal = t.explain(want.Name, err)
		return c
	}
	c.prepared = prepared
	plan := prepared.Plan()
	c.access = plan.Access
	c.access.Tool = want.Name
	c.opened.Title, c.opened.Kind = plan.Title, plan.Kind
	c.opened.Content, c.opened.Locations = plan.Content, plan.Locations
	return c
}

// explain tells the model about an error: coded ones speak for themselves,
// others are ours and go to the observer.
func (t *turn) explain(tool string, err error) string {
	var e *domain.Error
	if errors.As(err, &e) {
		return e.Msg
	}
	if t.ctx.Err() != nil {
		return "Cancelled."
	}
	t.e.trouble(t.ctx, t.sid, "turns: tool "+tool, err)
	return "The tool " + tool + " failed internally; try something else."
}

func (t *turn) toolNames() []string {
	names := make([]string, len(t.specs))
	for i, s := range t.specs {
		names[i] = s.Name
	}
	return names
}

// runAll runs prepared calls and joins them.
func (t *turn) runAll(calls []*call) error {
	if len(calls) == 1 {
		return t.run1(calls[0])
	}
	errs := make([]error, len(calls))
	room := make(chan struct{}, parallelCalls)
	var group sync.WaitGroup
	for i, c := range calls {
		room <- struct{}{}
		group.Go(func() {
			defer func() { <-room }()
			errs[i] = t.run1(c)
		})
	}
	group.Wait()
	return errors.Join(errs...)
}

// run1 takes one call to its final status. The error ends the turn.
func (t *turn) run1(c *call) error {
	result, given, err := t.decideAndRun(c)
	if err != nil && t.ctx.Err() == nil {
		return err
	}
	if err != nil {
		result = domain.ToolResult{Failed: true, Text: "Cancelled before it finished."}
	}
	recs := make([]domain.Record, 0, 3)
	if given != nil {
		recs = append(recs, *given)
	}
	recs = append(recs, domain.CallFinished{
		Turn: t.id, Call: c.want.ID, Failed: result.Failed, Text: result.Text,
		Content: result.Content, Locations: result.Locations, RawOutput: result.RawOutput,
	})
	if result.Plan != nil {
		recs = append(recs, domain.PlanSet{Turn: t.id, Entries: result.Plan})
	}
	if rerr := t.recordSettled(recs...); rerr != nil {
		return rerr
	}
	status := domain.CallCompleted
	if result.Failed {
		status = domain.CallFailed
	}
	t.e.p.Observer.Observe(t.ctx, domain.CallDone{
		Session: t.sid, Turn: t.id, Call: c.want.ID, Tool: c.want.Name, Status: status, Duration: t.e.p.Clock().Sub(c.start),
	})
	if t.ctx.Err() != nil {
		return context.Cause(t.ctx)
	}
	return nil
}

// decideAndRun asks for permission and runs the call. A permission that
// refuses is returned to be journalled with the result; one that allows is
// journalled before the call has any effect.
func (t *turn) decideAndRun(c *call) (domain.ToolResult, *domain.PermissionGiven, error) {
	failed := func(text string) domain.ToolResult { return domain.ToolResult{Failed: true, Text: text} }
	if c.prepared == nil {
		return failed(c.refusal), nil, nil
	}
	rules, err := t.live.Rules(t.ctx)
	if err != nil {
		return domain.ToolResult{}, nil, err
	}
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
		if err := t.recordSettled(*answer.Record); err != nil {
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

// execute runs the prepared call and turns what broke into a failed result.
func (t *turn) execute(c *call) (result domain.ToolResult, err error) {
	defer func() {
		if p := recover(); p != nil {
			t.e.trouble(t.ctx, t.sid, "turns: panic", fmt.Errorf("panic in %s: %v\n%s", c.want.Name, p, debug.Stack()))
			result, err = domain.ToolResult{Failed: true, Text: "The tool " + c.want.Name + " failed internally."}, nil
		}
	}()
	result, err = c.prepared.Run(t.ctx, func(p domain.ToolProgress) {
		// Progress is best effort: a client that has gone ends the turn by itself.
		_ = t.emit.send(t.ctx, domain.CallChanged{ID: c.want.ID, Title: p.Title, Content: p.Content})
	})
	if err != nil && t.ctx.Err() == nil {
		return domain.ToolResult{Failed: true, Text: t.explain(c.want.Name, err)}, nil
	}
	return result, err
}

func (t *turn) release(c *call) {
	if c.prepared == nil {
		return
	}
	if err := c.prepared.Close(); err != nil {
		t.e.trouble(t.ctx, t.sid, "turns: close "+c.want.Name, err)
	}
}

// rawInput shortens what a client is shown of a call's arguments.
func rawInput(args []byte) []byte {
	if len(args) <= maxRawInput {
		return args
	}
	return fmt.Appendf(nil, `{"truncated":true,"bytes":%d}`, len(args))
}
