package conformance

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/berth-dev/berth/adapters/jsonrpc"
)

// A cancelled prompt ends as a result, whatever the model and the tools do.
func TestChecklist_099_cancelled_is_no_error(t *testing.T) {
	t.Parallel()
	playFile(t, "cancel_during_text")
	playFile(t, "cancel_before_first_token")
	const asking = "<? session/request_permission @q {}\n"
	const writing = "text \"One\"\ncall write_file {\"path\":\"a.txt\",\"content\":\"x\"}"
	// The title of the session is the first that a client without notices
	// hears of a turn that waits.
	const waiting = "waiting to try again"
	late := map[string]string{"an error instead": "late error", "a reply cut short": "late cut", "signing in required": "late sign-in"}
	for name, c := range map[string]struct{ model, before, after string }{
		"silence":                           {"text \"One\"\nhang", "", ""},
		"an error instead":                  {},
		"a reply cut short":                 {},
		"signing in required":               {},
		waiting:                             {"retrying 1 60s \"busy\"\ntext \"One\"", "", ""},
		"a question":                        {writing, asking, ""},
		"a question, answered by an error":  {writing, asking, ">= @q error {\"code\":-32603,\"message\":\"gone\"}\n"},
		"a question, answered by cancelled": {writing, asking, ">= @q {\"outcome\":{\"outcome\":\"cancelled\"}}\n"},
		"a question, answered too late":     {writing, asking, ">= @q {\"outcome\":{\"outcome\":\"selected\",\"optionId\":\"allow-once\"}}\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			first := "agent_message_chunk"
			if name == waiting {
				first = "session_info_update"
			}
			var how launch
			ask := prompt
			if words := late[name]; words != "" {
				how, ask = broken(), strings.Replace(prompt, "go", words, 1)
			}
			scene{launch: how, model: c.model, want: map[string]string{"a.txt": "(absent)"}, script: session + `loose
` + ask + `<! session/update {"sessionId":"$sid","update":{"sessionUpdate":"` + first + `"}}
` + c.before + `>! session/cancel {"sessionId":"$sid"}
` + c.after + `< @p {"stopReason":"cancelled"}
quiet
`}.play(t)
		})
	}
}

// What a cancelled turn still owes, here the end of two calls, comes before
// its response; then there is silence.
func TestChecklist_100_nothing_follows_a_cancelled_turn(t *testing.T) {
	t.Parallel()
	scene{
		model: "text \"One\"\nusage input=5 output=1\ncall write_file {\"path\":\"a.txt\",\"content\":\"x\"}\ncall write_file {\"path\":\"b.txt\",\"content\":\"x\"}",
		watch: quietPeriod, want: map[string]string{"a.txt": "(absent)", "b.txt": "(absent)"},
		script: session + `loose
` + prompt + `<! session/update {"update":{"sessionUpdate":"tool_call","toolCallId":"$c"}}
<? session/request_permission @q {"toolCall":{"toolCallId":"$c"}}
>! session/cancel {"sessionId":"$sid"}
<! session/update {"update":{"sessionUpdate":"tool_call_update","toolCallId":"$c","status":"failed"}}
< @p {"stopReason":"cancelled"}
strict
quiet
>= @q {"outcome":{"outcome":"selected","optionId":"allow-once"}}
quiet
`,
	}.play(t)
}

// The client owes an answer to the open question, and the agent does not
// depend on it: it takes the question back and ends the turn.
func TestChecklist_102_an_unanswered_question_ends(t *testing.T) {
	t.Parallel()
	playFile(t, "late_permission_answer_is_dropped")
	scene{
		model: "call write_file {\"path\":\"a.txt\",\"content\":\"x\"}\n--- next\ntext \"ok\"", want: map[string]string{"a.txt": "(absent)"},
		script: session + `loose
` + prompt + `<? session/request_permission @q {"sessionId":"$sid"}
>! session/cancel {"sessionId":"$sid"}
<! $/cancel_request {"requestId":"$@q"}
< @p {"stopReason":"cancelled"}
` + strings.Replace(turn, "@p", "@again", 2),
	}.play(t)
}

func TestChecklist_103_cancel_with_nothing_running(t *testing.T) {
	t.Parallel()
	playFile(t, "cancel_with_nothing_running_is_harmless")
	playFile(t, "cancel_of_an_unknown_session_is_ignored")
	const cancel = `>! session/cancel {"sessionId":"$sid"}
`
	scene{
		model:  "--- next always\ntext \"ok\"",
		script: session + cancel + cancel + turn + cancel + cancel + strings.ReplaceAll(turn, "@p", "@again") + "strict\nquiet\n",
	}.play(t)
}

// A cancel on the heels of a prompt meets it, or comes too late: one answer,
// and the next prompt is none the worse.
func TestChecklist_104_cancel_races_with_the_end(t *testing.T) {
	t.Parallel()
	var script strings.Builder
	for i := range 25 {
		fmt.Fprintf(&script, `> session/prompt @r%[1]d {"sessionId":"$sid","prompt":[{"type":"text","text":"go"}]}
>! session/cancel {"sessionId":"$sid"}
< @r%[1]d {"stopReason":"~^(cancelled|end_turn)$"}
`, i)
	}
	scene{model: "--- next always\ntext \"ok\"", script: session + "loose\n" + script.String() + turn + "strict\nquiet\n"}.play(t)
}

// provider is a server of chat completions that asks for two calls and then
// talks. It keeps what it was asked.
type provider struct {
	mu    sync.Mutex
	asked []json.RawMessage
}

func (p *provider) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body) // what is missing of it fails the test
	p.mu.Lock()
	p.asked = append(p.asked, body)
	n := len(p.asked)
	p.mu.Unlock()
	w.Header().Set("Content-Type", "text/event-stream")
	if n == 1 {
		fmt.Fprint(w, `data: {"choices":[{"index":0,"delta":{"role":"assistant","content":"Let me.","tool_calls":[{"index":0,"id":"call_r","type":"function","function":{"name":"read_file","arguments":"{\"path\":\"a.txt\"}"}},{"index":1,"id":"call_w","type":"function","function":{"name":"write_file","arguments":"{\"path\":\"b.txt\",\"content\":\"x\"}"}}]}}]}

data: {"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}

data: [DONE]

`)
		return
	}
	fmt.Fprint(w, `data: {"choices":[{"index":0,"delta":{"role":"assistant","content":"Fresh."}}]}

data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}

data: [DONE]

`)
}

// After a cancel in the middle of two calls a real provider's wire format is
// still in order: each call it made has its result before anything else.
func TestChecklist_106_history_after_cancel_is_valid(t *testing.T) {
	t.Parallel()
	model := &provider{}
	server := httptest.NewServer(model)
	defer server.Close()
	scene{
		config: "[providers.fake]\ntype = \"openai-compatible\"\nbase_url = \"" + server.URL + "/v1\"\napi_key = \"none\"\n[agents.default]\nmodel = \"fake/test\"\n",
		files:  map[string]string{"a.txt": "AAA\n"}, want: map[string]string{"b.txt": "(absent)"},
		script: session + `loose
` + prompt + `<? session/request_permission @q {"sessionId":"$sid"}
>! session/cancel {"sessionId":"$sid"}
< @p {"stopReason":"cancelled"}
ambient
> session/prompt {"sessionId":"$sid","prompt":[{"type":"text","text":"again"}]}
says "Fresh."
< {"stopReason":"end_turn"}
`,
	}.play(t)
	if len(model.asked) != 2 {
		t.Fatalf("the provider was asked %d times", len(model.asked))
	}
	messages, _ := find(model.asked[1], "messages").([]any)
	var owed, made []string
	for _, m := range messages {
		role, _ := in(m, "role").(string)
		if role == "tool" {
			id, _ := in(m, "tool_call_id").(string)
			if !slices.Contains(owed, id) {
				t.Errorf("a result of call %q, which is not open", id)
			}
			owed = slices.DeleteFunc(owed, func(o string) bool { return o == id })
			continue
		}
		if len(owed) > 0 {
			t.Errorf("calls %q have no result before the next %s message", owed, role)
		}
		calls, _ := in(m, "tool_calls").([]any)
		for _, c := range calls {
			id, _ := in(c, "id").(string)
			owed, made = append(owed, id), append(made, id)
		}
	}
	if len(owed) > 0 || len(made) != 2 {
		t.Errorf("of calls %q these have no result: %q, in %s", made, owed, model.asked[1])
	}
}

// A request that was cancelled by its id is answered all the same: a prompt by
// "cancelled", any other by its result or by -32800.
func TestChecklist_107_cancel_request(t *testing.T) {
	t.Parallel()
	playFile(t, "cancel_request_ends_the_prompt")
	_, frames := streaming(t, `chunks 100000 "tick " every 1ms`, nil)
	var lines strings.Builder
	for i := range 10 {
		fmt.Fprintf(&lines, "{\"jsonrpc\":\"2.0\",\"id\":\"l%[1]d\",\"method\":\"session/list\"}\n{\"jsonrpc\":\"2.0\",\"method\":\"$/cancel_request\",\"params\":{\"requestId\":\"l%[1]d\"}}\n", i)
	}
	lines.WriteString(`{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":3}}` + "\n")
	if err := frames.WriteBatch([]byte(lines.String())); err != nil {
		t.Fatal(err)
	}
	answers := map[jsonrpc.ID]bool{}
	for len(answers) < 11 {
		f, err := frames.Read()
		if err != nil {
			t.Fatalf("after %d answers: %v", len(answers), err)
		}
		m, err := jsonrpc.Parse(f)
		if err != nil || m.Kind != jsonrpc.Response {
			continue
		}
		answers[m.ID] = true
		switch {
		case m.ID == "3":
			if text(m.Result, "stopReason") != "cancelled" {
				t.Errorf("the prompt: %s", f)
			}
		case m.Error != nil && m.Error.Code != jsonrpc.CodeRequestCancelled:
			t.Errorf("a list: %s", f)
		}
	}
}

func TestChecklist_108_cancel_of_foreign_ids(t *testing.T) {
	t.Parallel()
	playFile(t, "cancel_request_of_unknown_id_is_ignored")
	scene{
		model: "text \"One\"\ncall write_file {\"path\":\"a.txt\",\"content\":\"x\\n\"}\n--- next\ntext \"ok\"", want: map[string]string{"a.txt": "x\n"},
		script: session + `>! $/cancel_request {"requestId":1}
>! $/cancel_request {"requestId":"none"}
>! $/cancel_request {"requestId":null}
>! $/cancel_request {"requestId":{"a":1}}
>! $/cancel_request {}
loose
` + prompt + `<? session/request_permission @q {}
>! $/cancel_request {"requestId":"$@q"}
>! $/cancel_request {"requestId":"3"}
>= @q {"outcome":{"outcome":"selected","optionId":"allow-once"}}
< @p {"stopReason":"end_turn"}
>! $/cancel_request {"requestId":"$@p"}
strict
quiet
`,
	}.play(t)
}
