package people

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"strconv"

	"github.com/berth-dev/berth/core/domain"
	"github.com/berth-dev/berth/core/ports"
)

// askTool is ask_user.
type askTool struct{ d *desk }

// Spec describes ask_user.
func (t askTool) Spec() domain.ToolSpec { return t.d.source.ask }

// Prepare checks the question.
func (t askTool) Prepare(_ context.Context, call domain.ToolCall) (ports.Prepared, error) {
	var args *struct {
		Question string   `json:"question"`
		Options  []string `json:"options"`
		Other    bool     `json:"allow_other"`
	}
	if err := parse("ask_user", call.Args, &args, `question (string), options (2 to 8 strings), allow_other (boolean)`); err != nil {
		return nil, err
	}
	if args == nil {
		return nil, wrong("ask_user: the arguments are null; give question and options")
	}
	text, err := checkText("ask_user", "question", args.Question)
	if err != nil {
		return nil, err
	}
	if len(args.Options) == 0 {
		return nil, wrong("ask_user: this client can only choose among options; give 2 to 8 of them, or ask the question in your answer and end your turn")
	}
	q := &question{text: text, other: args.Other, none: "Skip: none of these"}
	if q.choices, err = checkChoices("ask_user", args.Options); err != nil {
		return nil, err
	}
	p := &prepared{plan: domain.ToolPlan{
		Title: "Ask: " + beginning(text, maxTitle), Kind: domain.KindOther, Content: block(q.asked()),
		Access: domain.Access{Class: domain.AccessNone, Tool: "ask_user"},
	}}
	p.run = func(ctx context.Context) (domain.ToolResult, error) {
		decision, err := t.d.put(ctx, announced(call, p.plan), call, q)
		if err != nil {
			return domain.ToolResult{}, err
		}
		return answered(q, decision), nil
	}
	return p, nil
}

// answered tells the model and the client what was answered. A choice is told
// word for word and alone.
func answered(q *question, d domain.Decision) domain.ToolResult {
	r := domain.ToolResult{RawOutput: []byte(`{"answered":false}`)}
	shown := ""
	switch choice := q.chosen(d.Option); {
	case d.Outcome != domain.Selected:
		note := ""
		if d.Note != "" {
			note = " (" + line(d.Note) + ")"
		}
		r.Failed = true
		r.Text = "There was no answer" + note + ". Nothing was decided: do not take it for a yes or a no. " +
			"Go on with what does not need the answer, or ask in your answer and end your turn."
		shown = "No answer" + note + "."
	case choice != "":
		r.Text, shown = choice, "Answer: "+choice
		r.RawOutput = []byte(`{"answered":true,"choice":` + strconv.Itoa(choiceNumber(q, choice)) + `}`)
	case d.Option == optionOther:
		r.Text = "The user wants to answer in their own words. Ask the question in your answer, end your turn, and wait for what they write."
		shown = "Answer: something else, in words."
	default:
		r.Text = "The user chose none of the options and gave no answer. Do not ask the same again; go on without it if you can, or say in your answer what you need."
		shown = "Skipped."
	}
	r.Content = block(q.asked() + "\n\n" + shown)
	return r
}

func choiceNumber(q *question, choice string) int {
	for i, c := range q.choices {
		if c == choice {
			return i + 1
		}
	}
	return 0
}

// parse reads the arguments of a call strictly.
func parse(tool string, raw []byte, into any, names string) error {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.DisallowUnknownFields()
	err := dec.Decode(into)
	if err == nil {
		if _, more := dec.Token(); !errors.Is(more, io.EOF) {
			err = errors.New("something follows them")
		}
	}
	if err != nil {
		return wrong("%s: the arguments are not as they should be (%v). Arguments: %s", tool, err, names)
	}
	return nil
}
