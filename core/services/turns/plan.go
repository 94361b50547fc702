package turns

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/berth-dev/berth/core/domain"
	"github.com/berth-dev/berth/core/ports"
)

// planTool is update_plan: the model's list of what it is going to do. It
// lives here because a plan is a record of the session, not of any file.
type planTool struct{}

var _ ports.Tool = planTool{}

const planSchema = `{"type":"object","required":["entries"],"additionalProperties":false,"properties":{"entries":{"type":"array","minItems":1,"maxItems":50,"description":"The whole plan, in order; it replaces the one before.","items":{"type":"object","required":["content","status"],"additionalProperties":false,"properties":{"content":{"type":"string","description":"One step, in a few words."},"status":{"type":"string","enum":["pending","in_progress","completed"],"description":"At most one step is in_progress."},"priority":{"type":"string","enum":["high","medium","low"]}}}}}}`

// Spec describes the tool.
func (planTool) Spec() domain.ToolSpec {
	return domain.ToolSpec{
		Name:        "update_plan",
		Description: "Shows the user your plan for work of several steps. Send the whole list each time a step begins or ends.",
		Schema:      []byte(planSchema),
		Kind:        domain.KindThink,
	}
}

// Prepare checks the entries.
func (planTool) Prepare(_ context.Context, call domain.ToolCall) (ports.Prepared, error) {
	var args struct {
		Entries []struct {
			Content  string `json:"content"`
			Status   string `json:"status"`
			Priority string `json:"priority"`
		} `json:"entries"`
	}
	dec := json.NewDecoder(bytes.NewReader(call.Args))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&args); err != nil {
		return nil, domain.Errorf(domain.InvalidArgument, `update_plan wants {"entries":[{"content":"...","status":"pending"}]}: %v`, err)
	}
	if len(args.Entries) == 0 || len(args.Entries) > 50 {
		return nil, domain.Errorf(domain.InvalidArgument, "update_plan wants 1 to 50 entries, not %d", len(args.Entries))
	}
	p := &preparedPlan{}
	running := 0
	for i, e := range args.Entries {
		if e.Priority == "" {
			e.Priority = "medium"
		}
		switch {
		case strings.TrimSpace(e.Content) == "":
			return nil, domain.Errorf(domain.InvalidArgument, "entry %d of the plan is empty", i+1)
		case !slices.Contains([]string{"pending", "in_progress", "completed"}, e.Status):
			return nil, domain.Errorf(domain.InvalidArgument, "entry %d has status %q; use pending, in_progress or completed", i+1, e.Status)
		case !slices.Contains([]string{"high", "medium", "low"}, e.Priority):
			return nil, domain.Errorf(domain.InvalidArgument, "entry %d has priority %q; use high, medium or low", i+1, e.Priority)
		}
		if e.Status == "in_progress" {
			running++
		}
		p.entries = append(p.entries, domain.PlanEntry{Content: e.Content, Status: e.Status, Priority: e.Priority})
	}
	if running > 1 {
		return nil, domain.Errorf(domain.InvalidArgument, "%d entries are in_progress; at most one may be", running)
	}
	return p, nil
}

type preparedPlan struct {
	entries []domain.PlanEntry
	ran     bool
}

// Plan says that the call has no effect outside the session.
func (p *preparedPlan) Plan() domain.ToolPlan {
	return domain.ToolPlan{
		Title: fmt.Sprintf("Plan (%d of %d done)", p.done(), len(p.entries)), Kind: domain.KindThink,
		Access: domain.Access{Class: domain.AccessNone, Tool: "update_plan"},
	}
}

func (p *preparedPlan) done() int {
	n := 0
	for _, e := range p.entries {
		if e.Status == "completed" {
			n++
		}
	}
	return n
}

// Run sets the plan, once.
func (p *preparedPlan) Run(ctx context.Context, _ func(domain.ToolProgress)) (domain.ToolResult, error) {
	switch {
	case ctx.Err() != nil:
		return domain.ToolResult{}, context.Cause(ctx)
	case p.ran:
		return domain.ToolResult{}, errors.New("the plan was set before")
	}
	p.ran = true
	return domain.ToolResult{Text: fmt.Sprintf("The plan has %d entries now, %d of them done.", len(p.entries), p.done()), Plan: p.entries}, nil
}

// Close has nothing to release.
func (*preparedPlan) Close() error { return nil }
