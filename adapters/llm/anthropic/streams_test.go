package anthropic

import (
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/berth-dev/berth/core/domain"
	"github.com/berth-dev/berth/core/ports/porttest"
)

func said(s string) string { return data(msgStart, start(0, textBlock), text(0, s), stopAt(0)) }

// streamCase is a stream and what is to become of it.
type streamCase struct{ name, body, want string }

func endCases() []streamCase {
	end, tools := data(ended("end_turn"), msgStop), data(ended("tool_use"), msgStop)
	call := data(start(1, callBlock("a", "f")), args(1, `{"x":1}`), stopAt(1))
	return []streamCase{
		{"nothing at all", "", "!unavailable"},
		{"only the beginning", data(msgStart), "!unavailable"},
		{"a reply", said("a") + end, "a .stop"},
		{"no closing event", said("a") + data(ended("end_turn")), "a !unavailable"},
		{"no stop reason", said("a") + data(msgStop), "a !unavailable"},
		{"a stop reason of null", said("a") + data(`{"type":"message_delta","delta":{"stop_reason":null}}`, msgStop), "a !unavailable"},
		{"an end mark of another wire", said("a") + "data: [DONE]\n\n", "a !unavailable"},
		{"an end mark behind the closing event", said("a") + end + "data: [DONE]\n\n", "a .stop"},
		{"last event without a blank line", strings.TrimSuffix(said("a")+end, "\n\n"), "a .stop"},
		{"events without names", strings.ReplaceAll(said("a")+end, "event: ", "x: "), "a .stop"},
		{"types only in names", "event: content_block_delta\ndata: {\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"a\"}}\n\n" +
			"event: message_delta\ndata: {\"delta\":{\"stop_reason\":\"end_turn\"}}\n\nevent: message_stop\ndata: {}\n\n", "a .stop"},
		{"pings, comments and unknown events", ": x\n\n" + data(`{"type": "ping"}`) + said("a") + data(`{"type":"moon_phase","x":{}}`, `{"note":1}`) + end, "a .stop"},
		{"unknown deltas", said("a") + data(added(0, `{"type":"citations_delta","citation":{"text":"no"}}`), added(0, `{"type":"moon_delta"}`)) + end, "a .stop"},
		{"a reply without content", data(msgStart) + end, ".stop"},

		{"stop: stop_sequence", said("a") + data(ended("stop_sequence"), msgStop), "a .stop"},
		{"stop: max_tokens", said("a") + data(ended("max_tokens"), msgStop), "a .length"},
		{"stop: the window is full", said("a") + data(ended("model_context_window_exceeded"), msgStop), "a .length"},
		{"stop: refusal", said("a") + data(ended("refusal"), msgStop), "a .refusal"},
		{"stop: pause_turn", said("a") + data(ended("pause_turn"), msgStop), "a !unavailable"},
		{"stop: unheard of", said("a") + data(ended("moon_phase"), msgStop), "a !unavailable"},
		{"stop: tools without a call", said("a") + tools, "a !unavailable"},
		{"stop: max_tokens behind a whole call", said("a") + call + data(ended("max_tokens"), msgStop), "a .length"},
		{"stop: refusal behind a whole call", said("a") + call + data(ended("refusal"), msgStop), "a .refusal"},
		{"stop: twice, the worse first", said("a") + call + data(ended("max_tokens"), ended("tool_use"), msgStop), "a .length"},
		{"stop: twice, the worse last", said("a") + call + data(ended("tool_use"), ended("refusal"), msgStop), "a .refusal"},
		{"stop: end_turn with a call", said("a") + call + end, `a +a:f{"x":1} .calls`},

		{"not JSON", "data: hello\n\n" + end, "!unavailable"},
		{"not JSON after text", said("a") + "data: hello\n\n" + end, "a !unavailable"},
		{"an event cut in the middle", said("a") + "data: {\"type\":\"message_de", "a !unavailable"},
		{"wrong type of a delta", said("a") + data(`{"type":"content_block_delta","index":0,"delta":"b"}`) + end, "a !unavailable"},
		{"wrong type of a text", said("a") + data(added(0, `{"type":"text_delta","text":5}`)) + end, "a !unavailable"},
		{"a list in place of an object", "data: [1]\n\n", "!unavailable"},

		{"A-PROV-4: overloaded", said("a") + data(`{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`), "a !unavailable"},
		{"A-PROV-4: a rate", said("a") + data(`{"type":"error","error":{"type":"rate_limit_error","message":"slow"}}`), "a !rate limited"},
		{"A-PROV-4: a bad request", said("a") + data(`{"type":"error","error":{"type":"invalid_request_error","message":"no"}}`), "a !provider rejected"},
		{"A-PROV-4: too long", data(`{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 9 > 8"}}`), "!context too long"},
		{"A-PROV-4: an error by its name", said("a") + "event: error\ndata: {\"message\":\"boom\"}\n\n", "a !unavailable"},
		{"A-PROV-4: words by its name", said("a") + "event: error\ndata: boom\n\n", "a !unavailable"},
		{"A-PROV-4: a bare error object", said("a") + "data: {\"error\":{\"message\":\"boom\"}}\n\n" + end, "a !unavailable"},
		{"A-PROV-4: an error after the stop reason", said("a") + data(ended("end_turn"), `{"type":"error","error":{"type":"api_error","message":"late"}}`), "a !unavailable"},
	}
}

func blockCases() []streamCase {
	end, tools := data(ended("end_turn"), msgStop), data(ended("tool_use"), msgStop)
	return []streamCase{
		{"texts in several blocks", said("a") + data(start(1, textBlock), text(1, "b"), stopAt(1)) + end, "ab .stop"},
		{"text in the beginning of a block", data(msgStart, start(0, `{"type":"text","text":"a"}`), text(0, "b")) + end, "ab .stop"},
		{"text without a block", data(text(0, "a"), text(0, "b")) + end, "ab .stop"},
		{"text without an index", data(`{"type":"content_block_delta","delta":{"type":"text_delta","text":"a"}}`) + end, "a .stop"},
		{"indexes with gaps", data(start(3, textBlock), text(3, "a"), start(9, textBlock), text(9, "b")) + end, "ab .stop"},
		{"a pair cut in two", data(start(0, textBlock), added(0, `{"type":"text_delta","text":"a\ud83d"}`), added(0, `{"type":"text_delta","text":"\ude00b"}`)) + end, "a😀b .stop"},
		{"a pair cut by the block", data(start(0, textBlock), added(0, `{"type":"text_delta","text":"a\ud83d"}`), start(1, textBlock), text(1, "b")) + end, "a\uFFFDb .stop"},
		{"a pair cut by the end", data(added(0, `{"type":"text_delta","text":"a\ud83d"}`)) + end, "a\uFFFD .stop"},
		{"escapes", data(added(0, `{"type":"text_delta","text":"\u0041\n\t\"\\\/\u00e9"}`)) + end, "A\n\t\"\\/é .stop"},

		{"a signed thought", data(start(0, thinkBlock), hint(0, "h"), hint(0, "m"), sign(0, "s"), stopAt(0), start(1, textBlock), text(1, "a")) + end, "<hm>a .stop [thought=hm/s text1]"},
		{"a thought without a signature", data(start(0, thinkBlock), hint(0, "hm"), start(1, textBlock), text(1, "a")) + end, "<hm>a .stop [thought=hm/ text1]"},
		{"a signature without a thought", data(start(0, thinkBlock), sign(0, "s"), start(1, textBlock), text(1, "a")) + end, "a .stop [thought=/s text1]"},
		{"a signature in the beginning", data(start(0, `{"type":"thinking","thinking":"hm","signature":"s"}`), start(1, textBlock), text(1, "a")) + end, "<hm>a .stop [thought=hm/s text1]"},
		{"an empty thought", data(start(0, thinkBlock), stopAt(0), start(1, textBlock), text(1, "a")) + end, "a .stop"},
		{"a redacted thought", data(start(0, `{"type":"redacted_thinking","data":"EqQ="}`), start(1, textBlock), text(1, "a")) + end, "a .stop [redacted=EqQ= text1]"},
		{"thoughts between texts and calls", data(
			start(0, thinkBlock), hint(0, "x"), sign(0, "s1"), start(1, textBlock), text(1, "ab"), start(2, thinkBlock), hint(2, "y"), sign(2, "s2"),
			start(3, callBlock("i", "f")), start(4, `{"type":"redacted_thinking","data":"d"}`), start(5, callBlock("j", "f")), start(6, textBlock), text(6, "é")) + tools,
			"<x>ab<y>é +i:f{} +j:f{} .calls [thought=x/s1 text2 thought=y/s2 call1 redacted=d call2 text2]"},
		{"a thought cut by the limit", data(start(0, thinkBlock), hint(0, "hm")) + data(ended("max_tokens"), msgStop), "<hm> .length"},
		{"a signed thought and a call cut by the limit", data(start(0, thinkBlock), hint(0, "hm"), sign(0, "s"), start(1, textBlock), text(1, "a"), start(2, callBlock("i", "f")), args(2, `{"x`)) +
			data(ended("max_tokens"), msgStop), "<hm>a .length [thought=hm/s text1]"},
		{"a thought without a block", data(hint(0, "hm"), sign(0, "s"), text(1, "a")) + end, "<hm>a .stop [thought=hm/s text1]"},

		{"two calls", data(start(0, callBlock("i", "f")), args(0, ""), args(0, `{"x":`), args(0, `1}`), stopAt(0), start(1, callBlock("j", "g")), stopAt(1)) + tools, `+i:f{"x":1} +j:g{} .calls`},
		{"two calls on one index", data(start(0, callBlock("i", "f")), args(0, `{"x":1}`), start(0, callBlock("j", "g")), args(0, `{"y":2}`)) + tools, `+i:f{"x":1} +j:g{"y":2} .calls`},
		{"calls whose pieces mix", data(start(0, callBlock("i", "f")), start(1, callBlock("j", "g")), args(0, `{"x":`), args(1, `{"y":`), args(0, `1}`), args(1, `2}`)) + tools, `+i:f{"x":1} +j:g{"y":2} .calls`},
		{"two calls of one id", data(start(0, callBlock("i", "f")), args(0, `{"x":1}`), start(1, callBlock("i", "f")), args(1, `{"x":2}`)) + tools, `+i:f{"x":1} +i:f{"x":2} .calls`},
		{"calls without ids", data(start(0, `{"type":"tool_use","name":"f"}`), args(0, `{}`), start(1, `{"type":"tool_use","id":null,"name":"f","input":null}`)) + tools, `+:f{} +:f{} .calls`},
		{"arguments in the beginning", data(start(0, `{"type":"tool_use","id":"i","name":"f","input":{"x": 1}}`), stopAt(0)) + tools, `+i:f{"x": 1} .calls`},
		{"arguments in the beginning and again", data(start(0, `{"type":"tool_use","id":"i","name":"f","input":{"x":1}}`), args(0, `{"x":1}`)) + tools, `+i:f{"x":1} .calls`},
		{"a pair cut in two in arguments", data(start(0, callBlock("i", "f")), added(0, `{"type":"input_json_delta","partial_json":"{\"x\":\"\ud83d"}`), added(0, `{"type":"input_json_delta","partial_json":"\ude00\"}"}`)) + tools, `+i:f{"x":"😀"} .calls`},
		{"a call without a name", data(start(0, `{"type":"tool_use","id":"i","input":{}}`)) + tools, "!unavailable"},
		{"arguments that are a list", data(start(0, `{"type":"tool_use","id":"i","name":"f","input":[1]}`)) + tools, "!unavailable"},
		{"arguments that were cut", data(start(0, callBlock("i", "f")), args(0, `{"x":`)) + tools, "!unavailable"},
		{"arguments without a call", data(args(0, `{}`)) + tools, "!unavailable"},
		{"a block of a tool of the provider's own", data(start(0, `{"type":"server_tool_use","id":"s","name":"web_search","input":{}}`), args(0, `{"q":"x"}`),
			start(1, `{"type":"web_search_tool_result","tool_use_id":"s","content":[]}`), text(1, "no"), start(2, textBlock), text(2, "a")) + end, "a .stop"},
	}
}

func usageCases() []streamCase {
	begun := func(u string) string { return data(`{"type":"message_start","message":{"usage":` + u + `}}`) }
	stopped := func(u string) string {
		return data(`{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":`+u+`}`, msgStop)
	}
	return []streamCase{
		{"usage", begun(`{"input_tokens":3,"output_tokens":1}`) + said("a") + stopped(`{"output_tokens":4}`), "a #3/4 .stop"},
		{"usage of the cache", begun(`{"input_tokens":3,"cache_creation_input_tokens":10,"cache_read_input_tokens":100,"output_tokens":1}`) + said("a") +
			stopped(`{"output_tokens":40,"output_tokens_details":{"thinking_tokens":30}}`), "a #113/40(r100 w10 t30) .stop"},
		{"usage replaced", begun(`{"input_tokens":3,"cache_read_input_tokens":5,"output_tokens":1}`) + said("a") + stopped(`{"input_tokens":7,"cache_creation_input_tokens":0,"cache_read_input_tokens":6,"output_tokens":4}`), "a #13/4(r6 w0 t0) .stop"},
		{"usage only in the end", begun(`{"input_tokens":0,"output_tokens":0}`) + said("a") + stopped(`{"input_tokens":7,"output_tokens":4}`), "a #7/4 .stop"},
		{"usage of zeros in the end", begun(`{"input_tokens":7,"cache_read_input_tokens":1,"output_tokens":1}`) + said("a") + stopped(`{"input_tokens":0,"cache_read_input_tokens":0,"output_tokens":4}`), "a #8/4(r1 w0 t0) .stop"},
		{"usage of nulls", begun(`{"input_tokens":7,"cache_read_input_tokens":null,"output_tokens":null}`) + said("a") + stopped(`null`), "a #7/0 .stop"},
		{"usage of other forms", begun(`{"input_tokens":"7","output_tokens":1e999}`) + said("a") + stopped(`{"output_tokens":4.0}`), "a #7/4 .stop"},
		{"usage that is none", begun(`[]`) + said("a") + stopped(`"much"`), "a .stop"},
		{"usage of nothing", begun(`null`) + said("a") + stopped(`{}`), "a .stop"},
		{"usage of a reply that breaks", begun(`{"input_tokens":7,"output_tokens":1}`) + said("a"), "a #7/1 !unavailable"},
		{"usage of a reply that never began", begun(`{"input_tokens":7,"output_tokens":1}`), "!unavailable"},
	}
}

// TestStreams is the table of what servers of this wire send, and worse.
func TestStreams(t *testing.T) {
	for _, c := range append(append(endCases(), blockCases()...), usageCases()...) {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				line, _ := got(t, open(t, answers("text/event-stream", c.body), nil), porttest.SampleRequest())
				if strings.TrimSpace(line) != c.want {
					t.Errorf("got  %q\nwant %q", line, c.want)
				}
			})
		})
	}
}

// TestAnswers is the same for answers that are no streams.
func TestAnswers(t *testing.T) {
	const js, html = "application/json", "text/html"
	for _, c := range []struct {
		name, kind, body, want, words string
	}{
		{"a whole answer", js, `{"id":"m","type":"message","role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"s"},{"type":"text","text":"hello"}],"stop_reason":"end_turn","usage":{"input_tokens":1,"output_tokens":2}}`, "<hm>hello #1/2 .stop [thought=hm/s text5]", ""},
		{"a whole answer with a call", js, "\n {\"type\":\"message\",\"content\":[{\"type\":\"tool_use\",\"id\":\"a\",\"name\":\"f\",\"input\":{\"x\":1}}],\"stop_reason\":\"tool_use\"}", `+a:f{"x":1} .calls`, ""},
		{"a whole answer at the limit", js, `{"type":"message","content":[{"type":"text","text":"a"},{"type":"tool_use","id":"a","name":"f","input":{}}],"stop_reason":"max_tokens"}`, "a .length", ""},
		{"a whole answer without content", js, `{"type":"message","content":[],"stop_reason":"end_turn"}`, ".stop", ""},
		{"a whole answer cut", js, `{"type":"message","content":[{"type":"text","text":"hel`, "!unavailable", "no JSON"},
		{"a whole answer without a stop reason", js, `{"type":"message","content":[{"type":"text","text":"a"}],"stop_reason":null}`, "a !unavailable", "before it was complete"},
		{"an error with status 200", js, `{"type":"error","error":{"type":"not_found_error","message":"model: x"}}`, "!provider rejected", "model: x"},
		{"an error text with status 200", js, `{"detail":"nobody home"}`, "!unavailable", "nobody home"},
		{"something else", js, `{"hello":"world"}`, "!unavailable", "no JSON of the expected form"},
		{"a stream under another type", js, said("a") + data(ended("end_turn"), msgStop), "a .stop", ""},
		{"a page", html, "<!doctype html><title>Sign in</title>", "!unavailable", "web page"},
		{"plain words", "text/plain", "it works", "!unavailable", "before it was complete"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				line, err := got(t, open(t, answers(c.kind, c.body), nil), porttest.SampleRequest())
				if strings.TrimSpace(line) != c.want {
					t.Errorf("got  %q\nwant %q", line, c.want)
				}
				if err != nil && !strings.Contains(err.Error(), c.words) {
					t.Errorf("the error is %q, want %q in it", err, c.words)
				}
			})
		})
	}
}

// TestStreams_Pause: a reply that waits for a tool of the provider's own is
// not asked for again.
func TestStreams_Pause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked := 0
		h := answers("text/event-stream", data(msgStart, ended("pause_turn"), msgStop))
		m := open(t, http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) { asked++; h.ServeHTTP(w, req) }), nil)
		m.provider.MaxRetries = 3
		line, err := got(t, m, porttest.SampleRequest())
		if line != " !unavailable" || asked != 1 || !strings.Contains(err.Error(), "paused") {
			t.Errorf("%q after %d requests, %v", line, asked, err)
		}
	})
}

// TestStreams_CutAnywhere cuts a reply with a thought, text and a call at every
// byte: what was shown is a beginning of it, and no call is requested before
// the closing event has come.
func TestStreams_CutAnywhere(t *testing.T) {
	body := data(msgStart, start(0, thinkBlock), hint(0, "h€m"), sign(0, "s"), start(1, textBlock), text(1, "hé"), text(1, "lo 😀"),
		start(2, callBlock("a", "f")), args(2, `{"x":`), args(2, `"é"}`), stopAt(2), ended("tool_use")) + "event: message_stop\ndata: " + msgStop
	full := "<h€m>hélo 😀 +a:f{\"x\":\"é\"} .calls [thought=h€m/s text10 call1]"
	for at := range len(body) + 1 {
		synctest.Test(t, func(t *testing.T) {
			line, err := got(t, open(t, answers("text/event-stream", body[:at]), nil), porttest.SampleRequest())
			if at == len(body) {
				if line != full {
					t.Errorf("the whole of it gave %q", line)
				}
				return
			}
			shown, ok := strings.CutSuffix(line, " !unavailable")
			shown = strings.TrimSuffix(shown, ">")
			if !ok || !strings.HasPrefix(full, shown) || strings.Contains(shown, "+") || !domain.HasCode(err, domain.Unavailable) {
				t.Errorf("cut at %d: %q, error %v", at, line, err)
			}
		})
	}
}
