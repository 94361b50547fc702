package turns

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/berth-dev/berth/core/domain"
	"github.com/berth-dev/berth/core/ports"
)

// call is one tool call on its way from the model's wish to its result.
type call struct {
	want     domain.ModelCall
	prepared ports.Prepared // nil when preparing failed
	refusal  string         // why it must not run; "" when it may be decided on
	opened   domain.CallOpened
	access   domain.Access
	start    time.Time
	started  bool // its effects may have begun
	unknown  bool // there is no such tool
}

// prepare looks at a call, without effects, and makes its announcement.
func (t *turn) prepare(want domain.ModelCall) *call {
	c := &call{want: want, start: t.e.p.Clock()}
	c.opened = domain.CallOpened{
		ID: want.ID, Name: want.Name, Title: want.Name, Kind: domain.KindOther,
		Status: domain.CallPending, RawInput: rawInput(want.Args),
	}
	tool, ok := t.tools[want.Name]
	if !ok {
		name := plainTitle(want.Name)
		c.opened.Name, c.opened.Title, c.unknown = name, name, true
		c.refusal = fmt.Sprintf("There is no tool %q. Tools: %s.", name, strings.Join(t.toolNames(), ", "))
		return c
	}
	c.opened.Kind = tool.spec.Kind
	if err := t.isolate(want.Name, func() error { return t.look(tool, c) }); err != nil {
		c.refusal = t.explain(want.Name, err)
	}
	return c
}

// look prepares the call with its tool and takes over its plan.
func (t *turn) look(tool ports.Tool, c *call) error {
	prepared, err := tool.Prepare(t.ctx, domain.ToolCall{
		Session: t.sid, Turn: t.id, ID: c.want.ID, Name: c.want.Name, Args: c.want.Args,
	})
	if err != nil {
		return err
	}
	c.prepared = prepared
	plan := prepared.Plan()
	c.access = plan.Access
	c.access.Tool = c.want.Name
	c.opened.Title, c.opened.Kind = plan.Title, plan.Kind
	c.opened.Content, c.opened.Locations = plan.Content, plan.Locations
	return nil
}

// explain tells the model about an error: coded ones speak for themselves,
// others are ours and go to the observer.
func (t *turn) explain(tool string, err error) string {
	var e *domain.Error
	if errors.As(err, &e) && e.Msg != "" {
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

// execute runs the prepared call and turns what broke into a failed result.
func (t *turn) execute(c *call) (domain.ToolResult, error) {
	c.started = true
	var result domain.ToolResult
	err := t.isolate(c.want.Name, func() (err error) {
		result, err = c.prepared.Run(t.ctx, func(p domain.ToolProgress) {
			t.emit.progress(t.ctx, domain.CallChanged{ID: c.want.ID, Title: p.Title, Content: p.Content})
		})
		return err
	})
	switch {
	case err == nil:
		return result, nil
	case t.ctx.Err() != nil:
		return domain.ToolResult{}, context.Cause(t.ctx)
	case errors.Is(err, domain.CancelledByClient):
		t.cancel(domain.CancelledByClient) // the person was asked, and cancelled
		return domain.ToolResult{}, err
	}
	return failed(t.explain(c.want.Name, err)), nil
}

// release gives up what prepare opened.
func (t *turn) release(c *call) {
	if c.prepared == nil {
		return
	}
	if err := t.isolate("close of "+c.want.Name, c.prepared.Close); err != nil {
		t.e.trouble(t.ctx, t.sid, "turns: close "+c.want.Name, err)
	}
}
