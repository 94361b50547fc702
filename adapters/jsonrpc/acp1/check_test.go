package acp1

import (
	"strings"
	"testing"
)

// The checker is what other tests trust, so each thing it must notice is
// shown to it.
func TestCheckAgentFrame(t *testing.T) {
	update := func(u string) string {
		return `{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":` + u + `}}`
	}
	result := func(r string) string { return `{"jsonrpc":"2.0","id":1,"result":` + r + `}` }
	call := func(members string) string {
		return update(`{"sessionUpdate":"tool_call","toolCallId":"c","title":"T"` + members + `}`)
	}
	ask := func(method, params string) string {
		return `{"jsonrpc":"2.0","id":"zc-out-1","method":"` + method + `","params":` + params + `}`
	}
	cases := []struct{ name, frame, says string }{
		{"a chunk", update(`{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":""},"messageId":"m","_meta":{"a":1}}`), ""},
		{"a call", call(`,"kind":"edit","status":"pending","locations":[{"path":"/a","line":1}],"content":[{"type":"diff","path":"/a","oldText":null,"newText":""}]`), ""},
		{"a terminal", call(`,"content":[{"type":"terminal","terminalId":"t"}]`), ""},
		{"a title that is cleared", update(`{"sessionUpdate":"session_info_update","title":null}`), ""},
		{"a read", ask(methodReadFile, `{"sessionId":"s","path":"C:\\a","line":1,"limit":2}`), ""},
		{"an error", `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"m","data":{"reason":"PARSE_ERROR"}}}`, ""},
		{"a cancel", `{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":"zc-out-1"}}`, ""},
		{"a turn's result", result(`{"stopReason":"refusal"}`), ""},
		{"an empty result", result(`{}`), ""},

		{"not JSON", `{"jsonrpc":`, "envelope"},
		{"several lines", "{\"jsonrpc\":\"2.0\",\n\"id\":1,\"result\":{}}", "spans lines"},
		{"bad UTF-8", "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"a\":\"\xff\"}}", "not UTF-8"},
		{"too long", result(`{"_meta":{"a":"` + strings.Repeat("x", 10<<20) + `"}}`), "10 MiB"},
		{"a member beside the envelope", `{"jsonrpc":"2.0","id":1,"result":{},"extra":1}`, `unknown member "extra"`},
		{"a result of null", result(`null`), "fits no method"},
		{"a result with a custom member", result(`{"stopReason":"end_turn","content":"x"}`), "fits no method"},
		{"an unknown stop reason", result(`{"stopReason":"error"}`), "fits no method"},
		{"an unknown notification", `{"jsonrpc":"2.0","method":"session/gone","params":{}}`, "no notification"},
		{"an unknown request", ask("session/prompt", `{}`), "no request"},
		{"a request with a number for an id", `{"jsonrpc":"2.0","id":1,"method":"fs/read_text_file","params":{"sessionId":"s","path":"/a"}}`, "not a string"},
		{"an unknown update", update(`{"sessionUpdate":"state_update"}`), `sessionUpdate "state_update" is unknown`},
		{"an update without a kind", update(`{"content":{}}`), `sessionUpdate "" is unknown`},
		{"no session id", `{"jsonrpc":"2.0","method":"session/update","params":{"update":{"sessionUpdate":"plan","entries":[]}}}`, `"sessionId" is missing`},
		{"a session id that is none", `{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"../x","update":{"sessionUpdate":"plan","entries":[]}}}`, "no session id"},
		{"a null message id", update(`{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":""},"messageId":null}`), "messageId"},
		{"a block of an unknown type", update(`{"sessionUpdate":"agent_message_chunk","content":{"type":"html","text":""}}`), `type "html" is unknown`},
		{"a block without its text", update(`{"sessionUpdate":"agent_message_chunk","content":{"type":"text"}}`), `"text" is missing`},
		{"broken base64", update(`{"sessionUpdate":"user_message_chunk","content":{"type":"image","mimeType":"image/png","data":"a"}}`), "not base64"},
		{"a resource of nothing", update(`{"sessionUpdate":"user_message_chunk","content":{"type":"resource","resource":{"uri":"u"}}}`), `"text" is missing`},
		{"a call without a title", update(`{"sessionUpdate":"tool_call","toolCallId":"c"}`), `"title" is missing`},
		{"an unknown status", call(`,"status":"cancelled"`), "status"},
		{"an unknown kind", call(`,"kind":"juggle"`), "kind"},
		{"text that is not wrapped", call(`,"content":[{"type":"text","text":"a"}]`), `type "text" is unknown`},
		{"a diff with a relative path", call(`,"content":[{"type":"diff","path":"a","oldText":null,"newText":""}]`), "not an absolute path"},
		{"a diff without its old text", call(`,"content":[{"type":"diff","path":"/a","newText":""}]`), `"oldText" is missing`},
		{"a relative location", call(`,"locations":[{"path":"a"}]`), "not an absolute path"},
		{"a negative line", call(`,"locations":[{"path":"/a","line":-1}]`), "not a count"},
		{"a body outside zeroclaw", update(`{"sessionUpdate":"tool_call_update","toolCallId":"c","body":"b"}`), `unknown member "body"`},
		{"a plan with an unknown status", update(`{"sessionUpdate":"plan","entries":[{"content":"a","priority":"low","status":"done"}]}`), "status"},
		{"usage without a size", update(`{"sessionUpdate":"usage_update","used":1}`), `"size" is missing`},
		{"a cost without a currency", update(`{"sessionUpdate":"usage_update","used":1,"size":2,"cost":{"amount":1}}`), `"currency" is missing`},
		{"a time that is none", update(`{"sessionUpdate":"session_info_update","updatedAt":"yesterday"}`), "no time"},
		{"a notice without a title", update(`{"sessionUpdate":"notice","severity":"info","title":""}`), "title"},
		{"a command without a description", update(`{"sessionUpdate":"available_commands_update","availableCommands":[{"name":"a"}]}`), `"description" is missing`},
		{"_meta of another kind", update(`{"sessionUpdate":"plan","entries":[],"_meta":5}`), "_meta"},
		{"a permission without options", ask(methodPermission, `{"sessionId":"s","toolCall":{"toolCallId":"c"}}`), `"options" is missing`},
		{"an option of an unknown kind", ask(methodPermission, `{"sessionId":"s","toolCall":{"toolCallId":"c"},"options":[{"optionId":"a","name":"A","kind":"allow"}]}`), "kind"},
		{"a write without content", ask(methodWriteFile, `{"sessionId":"s","path":"/a"}`), `"content" is missing`},
		{"an error without words", `{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":" ","data":{"reason":"X"}}}`, "message is empty"},
		{"an error without a reason", `{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"m"}}`, "data.reason is missing"},
		{"an error of several lines", `{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"a\nb","data":{"reason":"X"}}}`, "spans lines"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			err := CheckAgentFrame([]byte(c.frame))
			if c.says == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if err == nil {
				t.Fatal("accepted")
			}
			contains(t, err.Error(), c.says)
		})
	}
}

// With the client's side known, a result must be that of its method.
func TestChecker_Results(t *testing.T) {
	const initialized = `{"protocolVersion":1,"agentInfo":{"name":"a","version":"1"},"_meta":{"berth":{"dialect":"zeroclaw"}}}`
	cases := []struct {
		name           string
		zeroclaw       bool
		method, result string
		says           string
	}{
		{"new", false, methodNew, `{"sessionId":"s","_meta":{}}`, ""},
		{"new without an id", false, methodNew, `{}`, `"sessionId" is missing`},
		{"new with a root extra", false, methodNew, `{"sessionId":"s","workspaceDir":"/p"}`, `unknown member "workspaceDir"`},
		{"new in zeroclaw", true, methodNew, `{"sessionId":"s","workspaceDir":"/p"}`, ""},
		{"new in zeroclaw without its extra", true, methodNew, `{"sessionId":"s"}`, `"workspaceDir" is missing`},
		{"load with null", false, methodLoad, `null`, "not an object"},
		{"prompt of another shape", false, "session/prompt", `{}`, `"stopReason" is missing`},
		{"prompt in zeroclaw", true, "session/prompt", `{"sessionId":"s","stopReason":"end_turn","content":""}`, ""},
		{"list", false, methodList, `{"sessions":[{"sessionId":"s","cwd":"/p","updatedAt":"2026-11-30T09:15:00Z"}]}`, ""},
		{"list of null", false, methodList, `{"sessions":null}`, "not a list"},
		{"list with a relative cwd", false, methodList, `{"sessions":[{"sessionId":"s","cwd":"p"}]}`, "not an absolute path"},
		{"a method that has no result", false, "session/fork", `{}`, "no method of the protocol"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			k := NewChecker()
			if c.zeroclaw {
				k.Client([]byte(`{"jsonrpc":"2.0","id":0,"method":"initialize"}`))
				if err := k.Agent([]byte(`{"jsonrpc":"2.0","id":0,"result":` + initialized + `}`)); err != nil {
					t.Fatal(err)
				}
			}
			k.Client([]byte(`{"jsonrpc":"2.0","id":"x","method":"` + c.method + `","params":{}}`))
			err := k.Agent([]byte(`{"jsonrpc":"2.0","id":"x","result":` + c.result + `}`))
			if (err == nil) != (c.says == "") {
				t.Fatalf("got %v", err)
			}
			if err != nil {
				contains(t, err.Error(), c.says)
			}
		})
	}
}
