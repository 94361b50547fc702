package people

import (
	"context"
	"strings"

	"github.com/berth-dev/berth/core/domain"
	"github.com/berth-dev/berth/core/ports"
)

// escalateTool is escalate_to_human.
type escalateTool struct{ d *desk }

// Spec describes escalate_to_human.
func (t escalateTool) Spec() domain.ToolSpec { return t.d.source.escalate }

// escalation is what is told and, perhaps, asked.
type escalation struct {
	urgency string
	wait    bool
	q       question
}

// Prepare checks the summary.
func (t escalateTool) Prepare(_ context.Context, call domain.ToolCall) (ports.Prepared, error) {
	e, err := parseEscalation(call.Args)
	if err != nil {
		return nil, err
	}
	p := &prepared{plan: domain.ToolPlan{
		Title: e.heading() + ": " + beginning(e.q.text, maxTitle), Kind: domain.KindOther, Content: block(e.shown()),
		Access: domain.Access{Class: domain.AccessNone, Tool: "escalate_to_human"},
	}}
	p.run = func(ctx context.Context) (domain.ToolResult, error) { return t.d.raise(ctx, call, p.plan, e) }
	return p, nil
}

// parseEscalation reads and checks the arguments.
func parseEscalation(raw []byte) (*escalation, error) {
	const tool = "escalate_to_human"
	var args *struct {
		Summary string   `json:"summary"`
		Urgency string   `json:"urgency"`
		Wait    bool     `json:"wait"`
		Options []string `json:"options"`
	}
	if err := parse(tool, raw, &args, `summary (string), urgency ("low", "normal" or "high"), wait (boolean), options (2 to 8 strings)`); err != nil {
		return nil, err
	}
	if args == nil {
		return nil, wrong("%s: the arguments are null; give a summary", tool)
	}
	text, err := checkText(tool, "summary", args.Summary)
	if err != nil {
		return nil, err
	}
	e := &escalation{urgency: args.Urgency, wait: args.Wait, q: question{text: text}}
	switch args.Urgency {
	case "":
		e.urgency = "normal"
	case "low", "normal", "high":
	default:
		return nil, wrong("%s: the urgency %q is none of low, normal and high", tool, line(args.Urgency))
	}
	switch {
	case !args.Wait && len(args.Options) > 0:
		return nil, wrong("%s: options are for an escalation that waits; set wait, or leave them out", tool)
	case args.Wait && len(args.Options) == 0:
		e.q.choices, e.q.none = []string{"Continue"}, "Stop here"
	case args.Wait:
		e.q.none = "Stop here: none of these"
		if e.q.choices, err = checkChoices(tool, args.Options); err != nil {
			return nil, err
		}
	}
	return e, nil
}

// heading is what a title begins with.
func (e *escalation) heading() string {
	switch {
	case e.urgency == "high":
		return "Urgent: needs a human"
	case e.wait:
		return "Needs a human"
	}
	return "For a human"
}

// shown is the escalation for the person.
func (e *escalation) shown() string {
	return "**" + e.heading() + "** (urgency " + e.urgency + ")\n\n" + e.q.asked()
}

// severity is the urgency as a notice has it.
func (e *escalation) severity() string {
	switch e.urgency {
	case "high":
		return "error"
	case "low":
		return "info"
	}
	return "warning"
}

// raise tells the operator and the client, and asks if it waits.
func (d *desk) raise(ctx context.Context, call domain.ToolCall, plan domain.ToolPlan, e *escalation) (domain.ToolResult, error) {
	d.source.cfg.Observer.Observe(ctx, domain.Escalated{
		Session: call.Session, Turn: call.Turn, Call: call.ID, Urgency: e.urgency, Summary: beginning(e.q.text, maxLogged),
	})
	if !e.wait {
		told, err := d.notify(ctx, call, e)
		if err != nil {
			return domain.ToolResult{}, err
		}
		return domain.ToolResult{Text: told, Content: block(e.shown()), RawOutput: []byte(`{"waited":false}`)}, nil
	}
	decision, err := d.put(ctx, announced(call, plan), call, &e.q)
	if err != nil {
		return domain.ToolResult{}, err
	}
	r := answered(&e.q, decision)
	if decision.Outcome == domain.Selected && e.q.chosen(decision.Option) == "" {
		r.Text = "The user wants you to stop here. Do nothing more; say in a few words where things stand and end your turn."
		r.Content = block(e.q.asked() + "\n\nAnswer: " + e.q.none)
	}
	return r, nil
}

// notify shows a notice to a client that has a place for one. Everybody else
// sees the call.
func (d *desk) notify(ctx context.Context, call domain.ToolCall, e *escalation) (told string, err error) {
	const seen = "The user sees this as a tool call, and it is in the host's log; nobody was waited for."
	if !d.client.Info().Notices {
		return seen, nil
	}
	err = d.client.Send(ctx, call.Session, domain.Notice{Severity: e.severity(), Title: e.heading(), Detail: strings.TrimSpace(e.q.text)})
	switch {
	case ctx.Err() != nil:
		return "", context.Cause(ctx)
	case err != nil:
		return "It is in the host's log. The user's client could not be told; nobody was waited for.", nil
	}
	return "The user was shown a notice, and it is in the host's log; nobody was waited for.", nil
}
