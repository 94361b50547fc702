package people

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/berth-dev/berth/core/domain"
	"github.com/berth-dev/berth/core/ports"
)

// Limits on a question, in bytes.
const (
	maxText   = 8 << 10
	maxOption = 200
	maxTitle  = 100
	maxLogged = 500
)

// The ids of the options that are no choices. A choice is choice-1 and so on.
const (
	optionOther = "other"
	optionNone  = "none"
)

// question is what a person is asked.
type question struct {
	text    string
	choices []string
	other   bool   // they may say that they want to write
	none    string // what declines
}

// options are the answers offered: one for each choice, all of a kind that
// every client shows and sends, and one that declines.
func (q *question) options() []domain.PermissionOption {
	var list []domain.PermissionOption
	for i, c := range q.choices {
		list = append(list, domain.PermissionOption{ID: "choice-" + strconv.Itoa(i+1), Name: c, Kind: domain.AllowOnce})
	}
	if q.other {
		list = append(list, domain.PermissionOption{ID: optionOther, Name: "Something else, which I will write", Kind: domain.AllowOnce})
	}
	return append(list, domain.PermissionOption{ID: optionNone, Name: q.none, Kind: domain.RejectOnce})
}

// chosen is the choice of an option's id; "" when it is none.
func (q *question) chosen(id string) string {
	for i, c := range q.choices {
		if id == "choice-"+strconv.Itoa(i+1) {
			return c
		}
	}
	return ""
}

// put asks the session's client and waits for a decision. Only the end of the
// context and a cancel are errors; whatever else is no answer has a note.
func (d *desk) put(ctx context.Context, call domain.CallOpened, at domain.ToolCall, q *question) (domain.Decision, error) {
	waiting, cancel := context.WithTimeout(ctx, d.source.cfg.Wait)
	defer cancel()
	decision, err := d.client.Ask(waiting, domain.PermissionRequest{Session: at.Session, Turn: at.Turn, Call: call, Options: q.options()})
	switch {
	case ctx.Err() != nil:
		return domain.Decision{}, context.Cause(ctx)
	case errors.Is(waiting.Err(), context.DeadlineExceeded):
		return domain.Decision{Note: "nobody answered in time"}, nil
	case errors.Is(err, domain.Disconnected):
		return domain.Decision{Note: "the user's client has gone"}, nil
	case err != nil:
		return domain.Decision{Note: "the client could not ask"}, nil
	case decision.Outcome == domain.Withdrawn:
		return domain.Decision{}, fmt.Errorf("ask: %w", domain.CancelledByClient)
	case decision.Outcome == domain.Selected && !slices.ContainsFunc(q.options(), func(o domain.PermissionOption) bool { return o.ID == decision.Option }):
		return domain.Decision{Note: "the client chose something that was not offered"}, nil
	}
	return decision, nil
}

// asked are words for the person: a question as a paragraph and its choices.
func (q *question) asked() string {
	var b strings.Builder
	b.WriteString(q.text)
	if len(q.choices) > 0 {
		b.WriteString("\n")
	}
	for _, c := range q.choices {
		b.WriteString("\n- " + c)
	}
	return b.String()
}

// block is text as content of a call.
func block(text string) []domain.CallContent {
	return []domain.CallContent{domain.ContentBlock{Block: domain.Text{Text: text}}}
}

// announced is a call as its client knows it while it runs.
func announced(at domain.ToolCall, plan domain.ToolPlan) domain.CallOpened {
	return domain.CallOpened{
		ID: at.ID, Name: at.Name, Title: plan.Title, Kind: plan.Kind, Status: domain.CallInProgress,
		Content: plan.Content, RawInput: at.Args,
	}
}

// checkText checks a text for the person and makes all of it visible.
func checkText(tool, what, text string) (string, error) {
	text = strings.TrimSpace(text)
	switch {
	case text == "":
		return "", wrong("%s: %q is missing or empty", tool, what)
	case len(text) > maxText:
		return "", wrong("%s: %q is %d bytes long; at most %d are shown", tool, what, len(text), maxText)
	case !utf8.ValidString(text):
		return "", wrong("%s: %q is not UTF-8", tool, what)
	}
	return domain.Visible(text), nil
}

// checkChoices checks choices: 2 to 8, each one short line, no two alike.
func checkChoices(tool string, given []string) ([]string, error) {
	if len(given) < 2 || len(given) > 8 {
		return nil, wrong("%s: give 2 to 8 options, not %d", tool, len(given))
	}
	var list []string
	for i, c := range given {
		c = line(c)
		switch {
		case c == "":
			return nil, wrong("%s: option %d is empty", tool, i+1)
		case len(c) > maxOption:
			return nil, wrong("%s: option %d is %d bytes long; at most %d fit", tool, i+1, len(c), maxOption)
		case slices.ContainsFunc(list, func(have string) bool { return strings.EqualFold(have, c) }):
			return nil, wrong("%s: option %d is the same as one before it", tool, i+1)
		}
		list = append(list, c)
	}
	return list, nil
}

// line puts a text into one line, all of it visible.
func line(s string) string { return domain.Visible(strings.Join(strings.Fields(s), " ")) }

// beginning is the beginning of a text in one line.
func beginning(text string, most int) string {
	text = line(text)
	if len(text) <= most {
		return text
	}
	for !utf8.RuneStart(text[most]) {
		most--
	}
	return text[:most] + "…"
}

func wrong(format string, args ...any) error {
	return domain.Errorf(domain.InvalidArgument, format, args...)
}

var errRanTwice = errors.New("people: a prepared call ran twice")

// prepared is what both tools have in common: a plan, and one run.
type prepared struct {
	plan domain.ToolPlan
	ran  bool
	run  func(context.Context) (domain.ToolResult, error)
}

var _ ports.Prepared = (*prepared)(nil)

// Plan tells what will be asked.
func (p *prepared) Plan() domain.ToolPlan { return p.plan }

// Run asks, once.
func (p *prepared) Run(ctx context.Context, _ func(domain.ToolProgress)) (domain.ToolResult, error) {
	switch {
	case p.ran:
		return domain.ToolResult{}, errRanTwice
	case ctx.Err() != nil:
		return domain.ToolResult{}, context.Cause(ctx)
	}
	p.ran = true
	return p.run(ctx)
}

// Close has nothing to release.
func (*prepared) Close() error { return nil }
