package openai

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/berth-dev/berth/adapters/llm"
	"github.com/berth-dev/berth/core/domain"
	"github.com/berth-dev/berth/core/ports/porttest"
)

// answer is a server that answers with fixed bytes.
func answer(contentType, body string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		_, _ = io.Copy(io.Discard, req.Body)
		w.Header().Set("Content-Type", contentType)
		_, _ = io.WriteString(w, body)
	})
}

// got renders a reply in one line: text, <thought>, +call(args), #usage,
// .finish or !code.
func got(t *testing.T, m *Model, req domain.ModelRequest) (line string, failure error) {
	t.Helper()
	var b strings.Builder
	mode := ""
	to := func(next string) {
		if mode == "thought" && next != mode {
			b.WriteString(">")
		}
		if next == "thought" && mode != next {
			b.WriteString("<")
		}
		mode = next
	}
	for ev, err := range m.Stream(t.Context(), req) {
		switch ev := ev.(type) {
		case domain.TextDelta:
			to("text")
			b.WriteString(ev.Text)
		case domain.ThoughtDelta:
			to("thought")
			b.WriteString(ev.Text)
		case domain.CallRequested:
			to("call")
			fmt.Fprintf(&b, " +%s:%s%s", ev.Call.ProviderID, ev.Call.Name, ev.Call.Args)
		case domain.UsageReported:
			to("usage")
			fmt.Fprintf(&b, " #%d/%d", ev.Usage.Input, ev.Usage.Output)
		case domain.Finish:
			to("finish")
			fmt.Fprintf(&b, " .%s", ev.Reason)
		}
		if err != nil {
			to("error")
			fmt.Fprintf(&b, " !%s", domain.CodeOf(err))
			failure = err
		}
	}
	return b.String(), failure
}

// data makes a stream of events.
func data(events ...string) string {
	var b strings.Builder
	for _, e := range events {
		b.WriteString("data: " + e + "\n\n")
	}
	return b.String()
}

func deltaOf(d string) string { return `{"choices":[{"index":0,"delta":` + d + `}]}` }
func ended(reason string) string {
	return `{"choices":[{"index":0,"delta":{},"finish_reason":"` + reason + `"}]}`
}
func calling(fragments string) string { return deltaOf(`{"tool_calls":[` + fragments + `]}`) }

// text is an event with a piece of text.
func text(s string) string { return deltaOf(`{"content":` + js(s) + `}`) }

const done = "[DONE]"

// TestStreams is the table of what servers of this wire send, and worse.
func TestStreams(t *testing.T) {
	stop, tools := ended("stop"), ended("tool_calls")
	for _, c := range []struct {
		name string
		body string
		want string
	}{
		{"nothing at all", "", "!unavailable"},
		{"only the end mark", data(done), "!unavailable"},
		{"end mark without a finish reason", data(text("a"), done), "a !unavailable"},
		{"finish reason without the end mark", data(text("a"), stop), "a .stop"},
		{"finish reason with the text", data(`{"choices":[{"delta":{"content":"a"},"finish_reason":"stop"}]}`, done), "a .stop"},
		{"finish reason \"\" means none", data(`{"choices":[{"delta":{"content":"a"},"finish_reason":""}]}`, done), "a !unavailable"},
		{"last event without a blank line", "data: " + text("a") + "\n\ndata: " + stop, "a .stop"},
		{"last event cut in the middle", data(text("a")) + "data: " + stop[:40], "a !unavailable"},
		{"byte order mark", "\uFEFF" + data(text("a"), stop, done), "a .stop"},
		{"CRLF", strings.ReplaceAll(data(text("a"), stop, done), "\n", "\r\n"), "a .stop"},
		{"CR", strings.ReplaceAll(data(text("a"), stop, done), "\n", "\r"), "a .stop"},
		{"mixed line ends", "data: " + text("a") + "\r\n\rdata: " + stop + "\n\r\ndata: [DONE]\r\r", "a .stop"},
		{"no space after the colon", strings.ReplaceAll(data(text("a"), stop, done), "data: ", "data:"), "a .stop"},
		{"two spaces after the colon", strings.ReplaceAll(data(text("a"), stop, done), "data: ", "data:  "), "a .stop"},
		{"comments and unknown fields", ":\n: OPENROUTER PROCESSING\n\nretry: 5\nfoo: bar\nfoo\nid: 1\n" + data(text("a"), stop, done), "a .stop"},
		{"data over several lines", "data: {\"choices\":\ndata: [{\"delta\":{\"content\":\"a\"},\ndata: \"finish_reason\":\"stop\"}]}\n\n", "a .stop"},
		{"end mark with spaces", data(text("a"), stop, " [DONE] "), "a .stop"},
		{"events after the end mark", data(text("a"), stop, done, text("b")), "a .stop"},
		{"empty data", "data:\n\ndata: \n\n" + data(text("a"), stop), "a .stop"},
		{"ping events", "event: ping\ndata: {}\n\n" + data(text("a"), stop), "a .stop"},
		{"unknown event", data(`{"type":"status","note":"thinking"}`, text("a"), stop), "a .stop"},
		{"choices empty, absent, null", data(`{"choices":[]}`, `{}`, `{"choices":null}`, `{"choices":null,"usage":null}`, text("a"), stop), "a .stop"},
		{"delta null or absent", data(`{"choices":[{"delta":null}]}`, `{"choices":[{}]}`, text("a"), stop), "a .stop"},
		{"content null", data(deltaOf(`{"role":"assistant","content":null}`), text("a"), stop), "a .stop"},
		{"another choice", data(`{"choices":[{"index":1,"delta":{"content":"b"}},{"index":0,"delta":{"content":"a"}}]}`, stop), "a .stop"},
		{"another choice alone", data(`{"choices":[{"index":1,"delta":{"content":"b"},"finish_reason":"stop"}]}`, text("a")), "a !unavailable"},
		{"several texts", data(text("a"), text(""), text("b"), text("\n"), stop), "ab\n .stop"},
		{"escapes", data(`{"choices":[{"delta":{"content":"\u0041\n\t\"\\\/\b\f\r\u00e9\ud83d\ude00"}}]}`, stop), "A\n\t\"\\/\b\f\ré😀 .stop"},
		{"a pair cut in two", data(deltaOf(`{"content":"a\ud83d"}`), deltaOf(`{"content":"\ude00b"}`), stop), "a😀b .stop"},
		{"a pair never completed", data(deltaOf(`{"content":"a\ud83d"}`), deltaOf(`{"content":"b"}`), stop), "a\uFFFDb .stop"},
		{"a pair cut by the end", data(deltaOf(`{"content":"a\ud83d"}`), stop), "a\uFFFD .stop"},
		{"second half alone", data(deltaOf(`{"content":"a\ude00b"}`), stop), "a\uFFFDb .stop"},
		{"a character cut in two", data(deltaOf("{\"content\":\"a\xe2\x82\"}"), deltaOf("{\"content\":\"\xacb\"}"), stop), "a€b .stop"},
		{"bytes that are no UTF-8", data(deltaOf("{\"content\":\"a\xffb\"}"), stop), "a\uFFFDb .stop"},
		{"NUL in a text", data(deltaOf(`{"content":"a\u0000b"}`), stop), "a\x00b .stop"},

		{"not JSON", data("hello", stop), "!unavailable"},
		{"not JSON after text", data(text("a"), "hello", stop), "a !unavailable"},
		{"wrong type of choices", data(`{"choices":{}}`, stop), "!unavailable"},
		{"wrong type of content", data(deltaOf(`{"content":5}`), stop), "!unavailable"},
		{"wrong type of delta", data(`{"choices":[{"delta":"a"}]}`, stop), "!unavailable"},
		{"a list in place of an object", data(`[1]`, stop), "!unavailable"},
		{"a lone quote in JSON", data("{\"choices\":[{\"delta\":{\"content\":\"a\"b\"}}]}", stop), "!unavailable"},
		{"a raw newline in a string", "data: {\"choices\":[{\"delta\":{\"content\":\"a\ndata: b\"}}]}\n\n" + data(stop), "!unavailable"},

		{"thought", data(deltaOf(`{"reasoning_content":"hm"}`), deltaOf(`{"reasoning_content":null,"content":"a"}`), stop), "<hm>a .stop"},
		{"thought of another name", data(deltaOf(`{"reasoning":"hm","content":""}`), text("a"), stop), "<hm>a .stop"},
		{"thought under both names", data(deltaOf(`{"reasoning":"hm","reasoning_content":"hm"}`), text("a"), stop), "<hm>a .stop"},
		{"thought with details", data(deltaOf(`{"reasoning":"hm","reasoning_details":[{"type":"reasoning.text","text":"hm"}]}`), text("a"), stop), "<hm>a .stop"},
		{"thought in parts", data(deltaOf(`{"content":[{"type":"thinking","thinking":[{"type":"text","text":"hm"}]},{"type":"text","text":"a"}]}`), stop), "<hm>a .stop"},
		{"thought only", data(deltaOf(`{"reasoning_content":"hm"}`), stop), "<hm> .stop"},

		{"two reasons, the worse first", data(calling(`{"id":"a","function":{"name":"f","arguments":"{}"}}`), ended("length"), ended("tool_calls"), done), ".length"},
		{"two reasons, the worse last", data(calling(`{"id":"a","function":{"name":"f","arguments":"{}"}}`), ended("tool_calls"), ended("content_filter"), done), ".refusal"},
		{"two reasons, one unheard of", data(text("a"), ended("moon_phase"), ended("stop"), done), "a !unavailable"},
		{"another call behind the reason, and no end mark", data(calling(`{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}`), ended("tool_calls"), calling(`{"index":1,"id":"b","function":{"name":"f","arguments":"{}"}}`)), "!unavailable"},
		{"another call behind the reason, and the end mark", data(calling(`{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}`), ended("tool_calls"), calling(`{"index":1,"id":"b","function":{"name":"f","arguments":"{}"}}`), done), "+a:f{} +b:f{} .calls"},
		{"a reason with every piece, and no end mark", data(ended("stop"), text("a"), ended("stop"), text("b"), ended("stop")), "ab .stop"},
		{"usage in the end", data(text("a"), stop, `{"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":4}}`, done), "a #3/4 .stop"},
		{"usage without choices", data(text("a"), stop, `{"usage":{"prompt_tokens":3,"completion_tokens":4}}`, done), "a #3/4 .stop"},
		{"usage with choices null", data(text("a"), stop, `{"choices":null,"usage":{"prompt_tokens":3,"completion_tokens":4}}`), "a #3/4 .stop"},
		{"usage again and again", data(`{"choices":[{"delta":{"content":"a"}}],"usage":{"prompt_tokens":3,"completion_tokens":1}}`,
			`{"choices":[{"delta":{},"finish_reason":"stop"}],"usage":{"prompt_tokens":3,"completion_tokens":4}}`), "a #3/4 .stop"},
		{"usage of other forms", data(text("a"), stop, `{"choices":[],"usage":{"prompt_tokens":"3","completion_tokens":4.0,"total_tokens":1e30,"prompt_tokens_details":{"cached_tokens":-1}}}`, done), "a #3/4 .stop"},
		{"usage that is none", data(text("a"), stop, `{"choices":[],"usage":"much"}`, `{"choices":[],"usage":{"prompt_tokens":3,"completion_tokens_details":[]}}`, done), "a .stop"},
		{"usage of Groq", data(text("a"), `{"choices":[{"delta":{},"finish_reason":"stop"}],"x_groq":{"usage":{"prompt_tokens":3,"completion_tokens":4}}}`), "a #3/4 .stop"},
		{"usage in the choice", data(text("a"), `{"choices":[{"delta":{},"finish_reason":"stop","usage":{"prompt_tokens":3,"completion_tokens":4}}]}`), "a #3/4 .stop"},
		{"reasoning outside the completion", data(stop, `{"usage":{"prompt_tokens":3,"completion_tokens":4,"total_tokens":12,"completion_tokens_details":{"reasoning_tokens":5}}}`), " #3/9 .stop"},
		{"usage of a reply that breaks", data(`{"choices":[{"delta":{"content":"a"}}],"usage":{"prompt_tokens":3,"completion_tokens":1}}`), "a #3/1 !unavailable"},

		{"finish: end_turn", data(text("a"), ended("end_turn")), "a .stop"},
		{"finish: eos", data(text("a"), ended("eos")), "a .stop"},
		{"finish: STOP", data(text("a"), ended("STOP")), "a .stop"},
		{"finish: max_tokens", data(text("a"), ended("max_tokens")), "a .length"},
		{"finish: content_filter", data(text("a"), ended("content_filter")), "a .refusal"},
		{"finish: content_filter with a reason", data(text("a"), ended("content_filter: PROHIBITED_CONTENT")), "a .refusal"},
		{"finish: error", data(text("a"), ended("error")), "a !unavailable"},
		{"finish: abort", data(text("a"), ended("abort")), "a !unavailable"},
		{"finish: unheard of", data(text("a"), ended("moon_phase")), "a !unavailable"},
		{"finish: tools without a call", data(text("a"), tools), "a !unavailable"},
		{"refusal field", data(deltaOf(`{"refusal":"I can"}`), deltaOf(`{"refusal":"not."}`), stop), "I cannot. .refusal"},

		{"A-PROV-1: two calls without index", data(
			calling(`{"id":"a","function":{"name":"f","arguments":"{\"x\""}}`), calling(`{"id":"b","function":{"name":"g","arguments":"{\"y\""}}`),
			calling(`{"id":"a","function":{"arguments":":1"}}`), calling(`{"id":"b","function":{"arguments":":2"}}`),
			calling(`{"id":"a","function":{"arguments":"}"}}`), calling(`{"id":"b","function":{"arguments":"}"}}`), tools), ` +a:f{"x":1} +b:g{"y":2} .calls`},
		{"A-PROV-1: without index, then without id", data(
			calling(`{"id":"a","function":{"name":"f","arguments":""}}`), calling(`{"function":{"arguments":"{\"x\""}}`), calling(`{"function":{"arguments":":1}"}}`),
			calling(`{"id":"b","function":{"name":"g","arguments":"{"}}`), calling(`{"function":{"arguments":"}"}}`), tools), ` +a:f{"x":1} +b:g{} .calls`},
		{"A-PROV-2: later ids and names empty", data(
			calling(`{"index":0,"id":"a","function":{"name":"f","arguments":""}}`), calling(`{"index":0,"id":"","function":{"name":"","arguments":"{\"x\":"}}`),
			calling(`{"index":0,"id":"","function":{"name":"","arguments":"1}"}}`), tools), ` +a:f{"x":1} .calls`},
		{"A-PROV-2: later names null", data(
			calling(`{"index":0,"id":"a","function":{"name":"f","arguments":null}}`), calling(`{"index":0,"id":null,"function":{"name":null,"arguments":"{}"}}`), tools), ` +a:f{} .calls`},
		{"A-PROV-3: index and no id", data(
			calling(`{"index":0,"function":{"name":"f","arguments":"{\"x\""}}`), calling(`{"index":1,"function":{"name":"f","arguments":"{}"}}`),
			calling(`{"index":0,"function":{"arguments":":1}"}}`), tools), ` +:f{"x":1} +:f{} .calls`},
		{"A-PROV-4: an error object", data(text("a"), `{"error":{"message":"Overloaded","code":529},"choices":[]}`), "a !unavailable"},
		{"A-PROV-4: an error text", data(text("a"), `{"error":"model crashed"}`), "a !unavailable"},
		{"A-PROV-4: an error event", data(text("a")) + "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"Overloaded\"}}\n\n", "a !unavailable"},
		{"A-PROV-4: an error field", data(text("a")) + "error: {\"code\":500,\"message\":\"boom\",\"type\":\"server_error\"}\n\n", "a !unavailable"},
		{"A-PROV-4: a bare error line", data(text("a")) + "{\"error\":{\"message\":\"boom\"}}\n", "a !unavailable"},
		{"A-PROV-4: an error in a choice that finished", data(text("a"), `{"error":{"message":"x","code":400},"choices":[{"delta":{},"finish_reason":"error"}]}`), "a !provider rejected"},
		{"A-PROV-4: a list of errors", data(text("a"), `[{"error":{"code":429,"message":"slow down","status":"RESOURCE_EXHAUSTED"}}]`), "a !rate limited"},
		{"A-PROV-4: a quota in the stream", data(text("a"), `{"error":{"type":"insufficient_quota","message":"no more"}}`), "a !quota exhausted"},
		{"A-PROV-4: an error after the finish", data(text("a"), stop, `{"error":{"message":"late"}}`), "a !unavailable"},
		{"A-PROV-8: length in a call", data(text("a"), calling(`{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\":\"lo"}}`), ended("length")), "a .length"},

		{"all calls on index 0", data(
			calling(`{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\":1}"}}`), calling(`{"index":0,"id":"b","function":{"name":"g","arguments":"{\"y\":2}"}}`), tools), ` +a:f{"x":1} +b:g{"y":2} .calls`},
		{"all calls on index 0 without ids", data(
			calling(`{"index":0,"function":{"name":"f","arguments":"{\"x\":1}"}}`), calling(`{"index":0,"function":{"name":"f","arguments":"{\"x\":2}"}}`), tools), ` +:f{"x":1} +:f{"x":2} .calls`},
		{"an id that comes late", data(
			calling(`{"index":0,"function":{"name":"f","arguments":""}}`), calling(`{"index":0,"id":"a","function":{"arguments":"{}"}}`), tools), ` +a:f{} .calls`},
		{"id and name in every fragment", data(
			calling(`{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\""}}`), calling(`{"index":0,"id":"a","function":{"name":"f","arguments":":1}"}}`),
			calling(`{"index":0,"id":"a","function":{"name":"f","arguments":""}}`), tools), ` +a:f{"x":1} .calls`},
		{"a name in pieces", data(
			calling(`{"index":0,"id":"a","function":{"name":"read_","arguments":""}}`), calling(`{"index":0,"function":{"name":"file","arguments":""}}`),
			calling(`{"index":0,"function":{"arguments":"{}"}}`), tools), ` +a:read_file{} .calls`},
		{"two calls in one event", data(calling(`{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}},{"index":1,"id":"b","function":{"name":"g"}}`), tools), ` +a:f{} +b:g{} .calls`},
		{"calls with finish stop", data(calling(`{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}`), stop), ` +a:f{} .calls`},
		{"arguments as an object", data(calling(`{"index":0,"id":"a","function":{"name":"f","arguments":{"x":[1]}}}`), tools), ` +a:f{"x":[1]} .calls`},
		{"arguments of white space", data(calling(`{"index":0,"id":"a","function":{"name":"f","arguments":" \n"}}`), tools), ` +a:f{} .calls`},
		{"the form before tools", data(deltaOf(`{"function_call":{"name":"f","arguments":"{\"x\""}}`), deltaOf(`{"function_call":{"arguments":":1}"}}`), ended("function_call")), ` +:f{"x":1} .calls`},
		{"a call without a name", data(calling(`{"index":0,"id":"a","function":{"arguments":"{}"}}`), tools), "!unavailable"},
		{"tool_calls null", data(deltaOf(`{"content":"a","tool_calls":null}`), stop), "a .stop"},
		{"tool_calls of a wrong type", data(deltaOf(`{"tool_calls":"f"}`), stop), "!unavailable"},
		{"a call after text in one event", data(deltaOf(`{"content":"a","tool_calls":[{"id":"a","function":{"name":"f","arguments":"{}"}}]}`), tools), `a +a:f{} .calls`},
		{"a pair cut in two in arguments", data(
			calling(`{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\":\"\ud83d"}}`), calling(`{"index":0,"function":{"arguments":"\ude00\"}"}}`), tools), ` +a:f{"x":"😀"} .calls`},
		{"a finish reason before the call is whole", data(
			calling(`{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\""}}`), tools), "!unavailable"},
		{"the whole message once more in the end", data(text("a"), `{"choices":[{"index":0,"message":{"content":"a"},"finish_reason":"stop"}]}`), "a .stop"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := open(porttest.T(t), serve(porttest.T(t), answer("text/event-stream", c.body)))
				line, _ := got(t, m, porttest.SampleRequest())
				if line != c.want && line != " "+c.want {
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
		{"a whole answer", js, `{"choices":[{"index":0,"message":{"role":"assistant","content":"hello","reasoning_content":"hm"},"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":2}}`, "<hm>hello #1/2 .stop", ""},
		{"a whole answer with a call", js, "\n {\"choices\":[{\"message\":{\"content\":null,\"tool_calls\":[{\"id\":\"a\",\"type\":\"function\",\"function\":{\"name\":\"f\",\"arguments\":\"{\\\"x\\\":1}\"}}]},\"finish_reason\":\"tool_calls\"}]}", ` +a:f{"x":1} .calls`, ""},
		{"a whole answer cut", js, `{"choices":[{"index":0,"message":{"role":"assistant","content":"hel`, "!unavailable", "no JSON"},
		{"a whole answer without a finish reason", js, `{"choices":[{"message":{"content":"a"}}]}`, "a !unavailable", "before it was complete"},
		{"an error with status 200", js, `{"error":{"message":"model not loaded","type":"invalid_request_error"}}`, "!provider rejected", "model not loaded"},
		{"an error text with status 200", js, `{"detail":"nobody home"}`, "!unavailable", "nobody home"},
		{"a list with an error", js, `[{"error":{"code":400,"message":"bad schema"}}]`, "!provider rejected", "bad schema"},
		{"something else", js, `{"hello":"world"}`, "!unavailable", "no JSON of the expected form"},
		{"a stream under another type", js, data(text("a"), ended("stop")), "a .stop", ""},
		{"a page", html, "<!doctype html><title>Sign in</title>", "!unavailable", "web page"},
		{"a page under another type", "text/event-stream", "\r\n <html>", "!unavailable", "web page"},
		{"plain words", "text/plain", "it works", "!unavailable", "before it was complete"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := open(porttest.T(t), serve(porttest.T(t), answer(c.kind, c.body)))
				line, err := got(t, m, porttest.SampleRequest())
				if line != c.want && line != " "+c.want {
					t.Errorf("got  %q\nwant %q", line, c.want)
				}
				if err != nil && !strings.Contains(err.Error(), c.words) {
					t.Errorf("the error is %q, want %q in it", err, c.words)
				}
			})
		})
	}
}

// TestStreams_CutAnywhere cuts a reply with text and a call at every byte:
// what was shown is a beginning of it, and no call is requested before the
// finish reason has come.
func TestStreams_CutAnywhere(t *testing.T) {
	body := data(text("hé"), deltaOf(`{"reasoning_content":"h€m"}`), text("lo 😀"),
		calling(`{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\":"}}`), calling(`{"index":0,"function":{"arguments":"\"é\"}"}}`))
	finish := "data: " + ended("tool_calls")
	full := "hé<h€m>lo 😀 +a:f{\"x\":\"é\"} .calls"
	for at := range len(body) + len(finish) + 1 {
		synctest.Test(t, func(t *testing.T) {
			p := serve(porttest.T(t), answer("text/event-stream", (body + finish)[:at]))
			p.MaxRetries = 0
			line, err := got(t, open(porttest.T(t), p), porttest.SampleRequest())
			if at == len(body)+len(finish) {
				if line != full {
					t.Errorf("the whole of it gave %q", line)
				}
				return
			}
			shown, ok := strings.CutSuffix(line, " !unavailable")
			shown = strings.TrimSuffix(shown, ">")
			if !ok || !strings.HasPrefix(full, shown) || strings.Contains(shown, "+") {
				t.Errorf("cut at %d: %q, error %v", at, line, err)
			}
		})
	}
}

// TestStreams_LongEvent: an event of several MiB is read, one beyond the limit
// is an error and no hang.
func TestStreams_LongEvent(t *testing.T) {
	long := strings.Repeat("0123456789", 1<<20)
	m := open(porttest.T(t), serve(porttest.T(t), answer("text/event-stream", data(text(long), ended("stop")))))
	line, err := got(t, m, porttest.SampleRequest())
	if err != nil || line != long+" .stop" {
		t.Errorf("%d bytes came, error %v", len(line), err)
	}
	endless := http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		_, _ = io.WriteString(w, `data: {"choices":[{"delta":{"content":"`)
		for req.Context().Err() == nil {
			if _, err := io.WriteString(w, long); err != nil {
				return
			}
		}
	})
	p := serve(porttest.T(t), endless)
	p.MaxRetries = 0
	_, err = got(t, open(porttest.T(t), p), porttest.SampleRequest())
	if !domain.HasCode(err, domain.Unavailable) || !strings.Contains(err.Error(), "longer than 32 MiB") {
		t.Errorf("the error is %v", err)
	}
}

// TestStreams_Drip: a provider that sends a byte now and then, and never a
// line, is as silent as one that sends nothing.
func TestStreams_Drip(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := open(porttest.T(t), serve(porttest.T(t), http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
			for req.Context().Err() == nil {
				_, _ = io.WriteString(w, "d")
				_ = http.NewResponseController(w).Flush()
				select {
				case <-time.After(30 * time.Second):
				case <-req.Context().Done():
				}
			}
		})))
		began := time.Now()
		_, err := got(t, m, porttest.SampleRequest())
		if took := time.Since(began); !domain.HasCode(err, domain.Unavailable) || took != llm.DefaultTimeout {
			t.Errorf("%v after %s", err, took)
		}
	})
}

// TestStreams_EarlyEndMark: an end mark before the reply is complete is told as
// that, though the server keeps the connection open behind it.
func TestStreams_EarlyEndMark(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := serve(porttest.T(t), http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
			_, _ = io.WriteString(w, data(done))
			_ = http.NewResponseController(w).Flush()
			<-req.Context().Done()
		}))
		p.MaxRetries = 0
		line, err := got(t, open(porttest.T(t), p), porttest.SampleRequest())
		if !domain.HasCode(err, domain.Unavailable) || !strings.Contains(err.Error(), "before it was complete") {
			t.Errorf("%q, %v", line, err)
		}
	})
}
