package people

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/berth-dev/berth/core/domain"
	"github.com/berth-dev/berth/core/ports"
	"github.com/berth-dev/berth/core/ports/porttest"
)

// person is a client and an observer that write everything down. A nil answer
// never comes.
type person struct {
	answer  func(context.Context, domain.PermissionRequest) (domain.Decision, error)
	notices bool
	refuses error // what Send answers

	mu     sync.Mutex
	asked  []domain.PermissionRequest
	told   []domain.Update
	events []domain.Event
}

var (
	_ ports.Client   = (*person)(nil)
	_ ports.Observer = (*person)(nil)
)

func (p *person) Ask(ctx context.Context, r domain.PermissionRequest) (domain.Decision, error) {
	p.mu.Lock()
	p.asked = append(p.asked, r)
	p.mu.Unlock()
	if p.answer == nil {
		<-ctx.Done()
		return domain.Decision{}, context.Cause(ctx)
	}
	return p.answer(ctx, r)
}

func (p *person) Send(_ context.Context, _ domain.SessionID, u domain.Update) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.told = append(p.told, u)
	return p.refuses
}

func (p *person) Info() domain.ClientInfo    { return domain.ClientInfo{Notices: p.notices} }
func (p *person) Files() (ports.Files, bool) { return nil, false }

func (p *person) Observe(_ context.Context, ev domain.Event) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.events = append(p.events, ev)
}

// state is what a call could change.
func (p *person) state() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return fmt.Sprint(len(p.asked), len(p.told), len(p.events))
}

func selects(id string) func(context.Context, domain.PermissionRequest) (domain.Decision, error) {
	return answers(domain.Decision{Outcome: domain.Selected, Option: id}, nil)
}

func answers(d domain.Decision, err error) func(context.Context, domain.PermissionRequest) (domain.Decision, error) {
	return func(context.Context, domain.PermissionRequest) (domain.Decision, error) { return d, err }
}

func tools(t testing.TB, p *person) map[string]ports.Tool {
	t.Helper()
	set, err := NewSource(Config{Observer: p, Wait: time.Minute}).Open(t.Context(), domain.Session{ID: "s"}, p)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = set.Close() })
	out := map[string]ports.Tool{}
	for _, tool := range set.Tools() {
		out[tool.Spec().Name] = tool
	}
	return out
}

func callOf(tool, args string) domain.ToolCall {
	return domain.ToolCall{Session: "s", Turn: "t", ID: "c", Name: tool, Args: []byte(args)}
}

const (
	colours = `{"question":"Which colour?","options":["Red","Blue"],"allow_other":true}`
	stuckIn = `{"summary":"The disk is full.","wait":true}`
)

func TestTools(t *testing.T) {
	cases := map[string]struct {
		args, stuck string
		wrong       map[string]string
	}{
		"ask_user": {colours, colours, map[string]string{
			"no question": `{"options":["a","b"]}`, "blank question": `{"question":" ","options":["a","b"]}`, "no options": `{"question":"q"}`,
			"one option": `{"question":"q","options":["a"]}`, "nine options": `{"question":"q","options":["1","2","3","4","5","6","7","8","9"]}`,
			"an empty option": `{"question":"q","options":["a"," "]}`, "the same twice": `{"question":"q","options":["a","A "]}`,
			"a long option":       `{"question":"q","options":["a","` + strings.Repeat("x", 201) + `"]}`,
			"a long question":     `{"question":"` + strings.Repeat("x", maxText+1) + `","options":["a","b"]}`,
			"options are no list": `{"question":"q","options":"a"}`, "two objects": colours + `{}`,
		}},
		"escalate_to_human": {`{"summary":"The disk is full.","urgency":"high"}`, stuckIn, map[string]string{
			"no summary": `{}`, "unknown urgency": `{"summary":"x","urgency":"huge"}`, "options without wait": `{"summary":"x","options":["a","b"]}`,
			"one option": `{"summary":"x","wait":true,"options":["a"]}`, "wait is a word": `{"summary":"x","wait":"yes"}`,
		}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			porttest.Tool(porttest.T(t), porttest.ToolHarness{Open: func(tb porttest.TB) porttest.ToolFixture {
				p := &person{answer: selects("choice-1")}
				started := make(chan struct{})
				if strings.HasSuffix(tb.Name(), "/tool-run-stuck") {
					p.answer = func(ctx context.Context, _ domain.PermissionRequest) (domain.Decision, error) {
						close(started)
						<-ctx.Done()
						return domain.Decision{}, context.Cause(ctx)
					}
				}
				stuck := callOf(name, c.stuck)
				return porttest.ToolFixture{
					Tool: tools(t, p)[name], Call: callOf(name, c.args), Wrong: c.wrong, State: p.state, Stuck: &stuck, Started: started,
				}
			}})
		})
	}
}

// run prepares and runs one call.
func run(t testing.TB, p *person, tool, args string) (domain.ToolResult, error) {
	t.Helper()
	prepared, err := tools(t, p)[tool].Prepare(t.Context(), callOf(tool, args))
	if err != nil {
		t.Fatal(err)
	}
	r, err := prepared.Run(t.Context(), func(domain.ToolProgress) {})
	return r, errors.Join(err, prepared.Close())
}

func text(r domain.ToolResult) string {
	return r.Content[0].(domain.ContentBlock).Block.(domain.Text).Text
}

// The question is the call itself, as it was announced, with an option that
// allows for each choice and one that declines.
func TestAsk_Request(t *testing.T) {
	p := &person{answer: selects("choice-2")}
	if _, err := run(t, p, "ask_user", colours); err != nil {
		t.Fatal(err)
	}
	shown := "Which colour?\n\n- Red\n- Blue"
	want := []domain.PermissionRequest{{
		Session: "s", Turn: "t",
		Call: domain.CallOpened{
			ID: "c", Name: "ask_user", Title: "Ask: Which colour?", Kind: domain.KindOther, Status: domain.CallInProgress,
			Content: block(shown), RawInput: []byte(colours),
		},
		Options: []domain.PermissionOption{
			{ID: "choice-1", Name: "Red", Kind: domain.AllowOnce}, {ID: "choice-2", Name: "Blue", Kind: domain.AllowOnce},
			{ID: "other", Name: "Something else, which I will write", Kind: domain.AllowOnce},
			{ID: "none", Name: "Skip: none of these", Kind: domain.RejectOnce},
		},
	}}
	if diff := cmp.Diff(want, p.asked); diff != "" {
		t.Errorf("asked (-want +got):\n%s", diff)
	}
}

func TestAsk_Answers(t *testing.T) {
	cases := []struct {
		name   string
		answer func(context.Context, domain.PermissionRequest) (domain.Decision, error)
		failed bool
		reads  string // what the model reads, in part
		shows  string // what the client shows, in part
	}{
		{"the first", selects("choice-1"), false, "Red", "Answer: Red"},
		{"the second", selects("choice-2"), false, "Blue", "Answer: Blue"},
		{"in words", selects("other"), false, "in their own words", "in words"},
		{"none", selects("none"), false, "chose none of the options", "Skipped"},
		{"nothing that was offered", selects("choice-3"), true, "not offered", "No answer"},
		{"an empty choice", selects(""), true, "not offered", "No answer"},
		{"no answer", answers(domain.Decision{Note: "it has no screen"}, nil), true, "There was no answer (it has no screen)", "No answer (it has no screen)"},
		{"an option without the outcome", answers(domain.Decision{Option: "choice-1"}, nil), true, "There was no answer.", "No answer"},
		{"an error", answers(domain.Decision{}, errors.New("method not found")), true, "could not ask", "No answer"},
		{"no client", answers(domain.Decision{}, fmt.Errorf("send: %w", domain.Disconnected)), true, "client has gone", "No answer"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			r, err := run(t, &person{answer: c.answer}, "ask_user", colours)
			if err != nil || r.Failed != c.failed || !strings.Contains(r.Text, c.reads) || !strings.Contains(text(r), c.shows) || !strings.HasPrefix(text(r), "Which colour?") {
				t.Errorf("the result is %+v, %v", r, err)
			}
			if !c.failed && c.reads == "Red" && r.Text != "Red" {
				t.Errorf("the choice is told as %q", r.Text)
			}
		})
	}
}

// A cancel is passed on as what it is; it ends the turn.
func TestAsk_Withdrawn(t *testing.T) {
	for tool, args := range map[string]string{"ask_user": colours, "escalate_to_human": stuckIn} {
		p := &person{answer: answers(domain.Decision{Outcome: domain.Withdrawn}, nil)}
		if r, err := run(t, p, tool, args); !errors.Is(err, domain.CancelledByClient) {
			t.Errorf("%s: the result is %+v, %v", tool, r, err)
		}
	}
}

func TestAsk_NobodyAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		r, err := run(t, &person{}, "ask_user", colours)
		if err != nil || !r.Failed || !strings.Contains(r.Text, "nobody answered in time") || time.Since(start) != time.Minute {
			t.Errorf("after %v: %+v, %v", time.Since(start), r, err)
		}
	})
}

// Without choices the model is told what to do instead.
func TestAsk_OpenQuestion(t *testing.T) {
	_, err := tools(t, &person{})["ask_user"].Prepare(t.Context(), callOf("ask_user", `{"question":"Why?"}`))
	if !domain.HasCode(err, domain.InvalidArgument) || !strings.Contains(err.Error(), "ask the question in your answer and end your turn") {
		t.Errorf("the error is %v", err)
	}
}

// What a person reads holds nothing they cannot see.
func TestAsk_HiddenText(t *testing.T) {
	p := &person{answer: selects("choice-1")}
	if _, err := run(t, p, "ask_user", `{"question":"Delete?\u202e\nReally","options":["Yes\u200b\nno","No"]}`); err != nil {
		t.Fatal(err)
	}
	r := p.asked[0]
	if got := r.Options[0].Name; got != `Yes\u{200B} no` {
		t.Errorf("the choice is shown as %q", got)
	}
	if got := r.Call.Title; got != `Ask: Delete?\u{202E} Really` {
		t.Errorf("the title is %q", got)
	}
}

func TestEscalate_Notice(t *testing.T) {
	cases := []struct {
		name, args, title, severity string
		client                      person
		reads                       string
	}{
		{"to a client without notices", `{"summary":"The disk\nis full."}`, "For a human: The disk is full.", "", person{}, "as a tool call"},
		{"normal", `{"summary":"The disk is full."}`, "For a human: The disk is full.", "warning", person{notices: true}, "shown a notice"},
		{"high", `{"summary":"The disk is full.","urgency":"high"}`, "Urgent: needs a human: The disk is full.", "error", person{notices: true}, "shown a notice"},
		{"low", `{"summary":"The disk is full.","urgency":"low"}`, "For a human: The disk is full.", "info", person{notices: true}, "shown a notice"},
		{"to a client that has gone", `{"summary":"The disk is full."}`, "For a human: The disk is full.", "warning", person{notices: true, refuses: domain.Disconnected}, "could not be told"},
	}
	for i := range cases {
		c := &cases[i]
		t.Run(c.name, func(t *testing.T) {
			p := &c.client
			r, err := run(t, p, "escalate_to_human", c.args)
			if err != nil || r.Failed || !strings.Contains(r.Text, c.reads) || !strings.Contains(text(r), "The disk") {
				t.Errorf("the result is %+v, %v", r, err)
			}
			if len(p.asked) != 0 {
				t.Errorf("asked %+v", p.asked)
			}
			var severity string
			for _, u := range p.told {
				severity = u.(domain.Notice).Severity
			}
			if severity != c.severity {
				t.Errorf("the notice has the severity %q", severity)
			}
			want := domain.Escalated{Session: "s", Turn: "t", Call: "c", Urgency: "normal", Summary: "The disk is full."}
			if strings.Contains(c.args, "high") {
				want.Urgency = "high"
			} else if strings.Contains(c.args, "low") {
				want.Urgency = "low"
			}
			if diff := cmp.Diff([]domain.Event{want}, p.events); diff != "" {
				t.Errorf("observed (-want +got):\n%s", diff)
			}
			prepared, err := tools(t, &person{})["escalate_to_human"].Prepare(t.Context(), callOf("escalate_to_human", c.args))
			if err != nil || prepared.Plan().Title != c.title {
				t.Errorf("the title is %q, %v", prepared.Plan().Title, err)
			}
		})
	}
}

func TestEscalate_Waits(t *testing.T) {
	cases := []struct {
		name, args, option string
		offered            string
		reads              string
	}{
		{"going on", stuckIn, "choice-1", "Continue, Stop here", "Continue"},
		{"stopping", stuckIn, "none", "Continue, Stop here", "wants you to stop here"},
		{"a choice", `{"summary":"x","wait":true,"options":["Clean up","Ask Ann"]}`, "choice-2", "Clean up, Ask Ann, Stop here: none of these", "Ask Ann"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			p := &person{answer: selects(c.option)}
			r, err := run(t, p, "escalate_to_human", c.args)
			if err != nil || r.Failed || !strings.Contains(r.Text, c.reads) {
				t.Errorf("the result is %+v, %v", r, err)
			}
			var offered []string
			for _, o := range p.asked[0].Options {
				offered = append(offered, o.Name)
			}
			if got := strings.Join(offered, ", "); got != c.offered {
				t.Errorf("offered are %s", got)
			}
			if len(p.events) != 1 {
				t.Errorf("observed %+v", p.events)
			}
		})
	}
}

func TestSchemas(t *testing.T) {
	for name, cases := range map[string]map[string]bool{
		"ask_user": {
			colours: true, `{"question":"q"}`: true, `{"question":"q","options":["a"]}`: false, `{"options":["a","b"]}`: false, `{"question":"q","x":1}`: false,
		},
		"escalate_to_human": {
			stuckIn: true, `{"summary":"x","urgency":"low"}`: true, `{"summary":"x","urgency":"huge"}`: false, `{}`: false,
		},
	} {
		doc, err := jsonschema.UnmarshalJSON(strings.NewReader(string(tools(t, &person{})[name].Spec().Schema)))
		if err != nil {
			t.Fatal(err)
		}
		compiler := jsonschema.NewCompiler()
		if err := compiler.AddResource("mem:"+name, doc); err != nil {
			t.Fatal(err)
		}
		schema, err := compiler.Compile("mem:" + name)
		if err != nil {
			t.Fatal(err)
		}
		for args, good := range cases {
			v, err := jsonschema.UnmarshalJSON(strings.NewReader(args))
			if err != nil {
				t.Fatal(err)
			}
			if err := schema.Validate(v); (err == nil) != good {
				t.Errorf("%s with %s: %v", name, args, err)
			}
		}
	}
}
