package responses

import (
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

// TestStreams is the table of what servers of this wire send, and worse.
func TestStreams(t *testing.T) {
	stop := completed()
	begin := func(i int) string {
		return added(i, `{"id":"i`+string(rune('0'+i))+`","type":"function_call","status":"in_progress","call_id":"a","name":"f","arguments":""}`)
	}
	for _, c := range []struct {
		name string
		body string
		want string
	}{
		{"nothing at all", "", "!unavailable"},
		{"only an end mark", data("[DONE]"), "!unavailable"},
		{"an end mark without the closing event", data(text(0, "a"), "[DONE]"), "a !unavailable"},
		{"the closing event alone", data(stop), ".stop"},
		{"text", data(text(0, "a"), text(0, ""), text(0, "b"), stop), "ab .stop"},
		{"events after the closing one", data(text(0, "a"), stop, text(0, "b"), "[DONE]"), "a .stop"},
		{"the last event without a blank line", "data: " + text(0, "a") + "\n\ndata: " + stop, "a .stop"},
		{"the last event cut", data(text(0, "a")) + "data: " + stop[:60], "a !unavailable"},
		{"types in the event field alone", "event: response.output_text.delta\ndata: {\"delta\":\"a\"}\n\nevent: response.completed\ndata: {}\n\n", "a .stop"},
		{"unknown events", data(`{"type":"response.audio.delta","delta":"x"}`, `{"type":"response.queued"}`, `{}`, `{"type":"keepalive","sequence_number":3}`, text(0, "a"), stop), "a .stop"},
		{"unknown items", data(added(0, `{"id":"w","type":"web_search_call","status":"in_progress"}`), finished(0, `{"id":"w","type":"web_search_call","action":{"query":"q"}}`), text(1, "a"), stop), "a .stop"},
		{"halves of a character", data(`{"type":"response.output_text.delta","delta":"a\ud83d"}`, `{"type":"response.output_text.delta","delta":"\ude00b"}`, finished(0, said(0, "a😀b")), stop), "a😀b .stop"},
		{"half a character at the end", data(`{"type":"response.output_text.delta","delta":"a\ud83d"}`, stop), "a\uFFFD .stop"},
		{"a text that is a number", data(`{"type":"response.output_text.delta","delta":7}`, stop), "!unavailable"},
		{"an event that is a list", data(`[1]`, stop), "!unavailable"},
		{"usage", data(text(0, "a"), `{"type":"response.completed","response":{"status":"completed","usage":{"input_tokens":9,"output_tokens":4}}}`), "a #9/4 .stop"},
		{"usage of other forms", data(text(0, "a"), `{"type":"response.completed","response":{"status":"completed","usage":{"input_tokens":9.0,"output_tokens":"4","input_tokens_details":{"cached_tokens":9223372036854775807}}}}`), "a #9/4 .stop"},
		{"usage that is none", data(text(0, "a"), `{"type":"response.completed","response":{"status":"completed","usage":[]}}`), "a .stop"},
		{"usage null", data(text(0, "a"), `{"type":"response.completed","response":{"status":"completed","usage":null}}`), "a .stop"},
		{"two messages", data(text(0, "a"), text(1, "b"), stop), "a\n\nb .stop"},

		{"the message once more when it is whole", data(text(0, "a"), text(0, "b"), finished(0, said(0, "ab")), completed(said(0, "ab"))), "ab .stop"},
		{"a message that was not streamed", data(finished(0, said(0, "ab")), stop), "ab .stop"},
		{"a message streamed in part", data(text(0, "a"), finished(0, said(0, "ab")), stop), "ab .stop"},
		{"a message in the closing event alone", data(completed(said(0, "ab"))), "ab .stop"},
		{"a message closed by the closing event", data(text(0, "a"), completed(said(0, "ab"))), "ab .stop"},
		{"a message that changed", data(text(0, "ab"), finished(0, said(0, "ac")), stop), "ab !unavailable"},
		{"a message that shrank", data(text(0, "ab"), finished(0, said(0, "a")), stop), "ab !unavailable"},
		{"a message without content when it is whole", data(text(0, "ab"), finished(0, `{"id":"i0","type":"message"}`), stop), "ab .stop"},
		{"a closed message repeated", data(text(0, "a"), finished(0, said(0, "a")), finished(0, said(0, "a")), stop), "a .stop"},

		{"refusal", data(`{"type":"response.refusal.delta","output_index":0,"delta":"I "}`, `{"type":"response.refusal.delta","output_index":0,"delta":"cannot."}`, stop), "I cannot. .refusal"},
		{"refusal in a whole message", data(finished(0, `{"id":"i0","type":"message","content":[{"type":"refusal","refusal":"No."}]}`), stop), "No. .refusal"},
		{"refusal after a call", data(begin(0), args(0, "{}"), `{"type":"response.refusal.delta","output_index":1,"delta":"No."}`, stop), "No. .refusal"},

		{"thoughts", data(thought(0, 0, "I "), thought(0, 0, "think"), text(1, "a"), stop), "<I think>a .stop"},
		{"thoughts in parts", data(thought(0, 0, "one"), thought(0, 1, "two"), thought(1, 0, "three"), text(2, "a"), stop), "<one\n\ntwo\n\nthree>a .stop"},
		{"thoughts that were not streamed", data(finished(0, thinking(0, "e", "one", "two")), text(1, "a"), stop), "<one\n\ntwo>a .stop"},
		{"thoughts as text", data(`{"type":"response.reasoning_text.delta","output_index":0,"content_index":0,"delta":"hm"}`, text(1, "a"), stop), "<hm>a .stop"},

		{"a call", data(begin(0), args(0, `{"x"`), args(0, `:1}`), finished(0, call(0, "a", "f", `{"x":1}`)), completed(call(0, "a", "f", `{"x":1}`))), `+a:f{"x":1} .calls`},
		{"a call that comes whole", data(finished(0, call(0, "a", "f", `{"x":1}`)), stop), `+a:f{"x":1} .calls`},
		{"a call in the closing event alone", data(completed(said(0, "t"), call(1, "a", "f", `{}`))), `t +a:f{} .calls`},
		{"a call in the closing event beside a text", data(text(0, "t"), completed(said(0, "t"), call(1, "a", "f", `{}`))), `t +a:f{} .calls`},
		{"a call whose end is in the closing event", data(begin(0), completed(call(0, "a", "f", `{"x":1}`))), `+a:f{"x":1} .calls`},
		{"a call that was never closed", data(begin(0), args(0, `{"x":1}`), stop), `+a:f{"x":1} .calls`},
		{"arguments as an object", data(finished(0, `{"id":"i0","type":"function_call","call_id":"a","name":"f","arguments":{"x":[1]}}`), stop), `+a:f{"x":[1]} .calls`},
		{"arguments in another spacing", data(begin(0), args(0, `{"x": 1}`), finished(0, call(0, "a", "f", `{"x":1}`)), stop), `+a:f{"x":1} .calls`},
		{"two calls at one index", data(
			added(0, `{"id":"i0","type":"function_call","call_id":"a","name":"f"}`), args(0, `{}`), finished(0, call(0, "a", "f", `{}`)),
			added(0, `{"id":"i1","type":"function_call","call_id":"b","name":"g"}`), strings.Replace(args(1, `{"y":1}`), `"output_index":1`, `"output_index":0`, 1),
			finished(0, call(1, "b", "g", `{"y":1}`)), stop), `+a:f{} +b:g{"y":1} .calls`},
		{"two calls side by side", data(
			added(0, `{"id":"i0","type":"function_call","call_id":"a","name":"f"}`), added(1, `{"id":"i1","type":"function_call","call_id":"b","name":"g"}`),
			args(1, `{"y"`), args(0, `{"x"`), args(1, `:2}`), args(0, `:1}`), stop), `+a:f{"x":1} +b:g{"y":2} .calls`},
		{"a call repeated when it is whole", data(begin(0), args(0, "{}"), finished(0, call(0, "a", "f", "{}")), finished(0, call(0, "a", "f", "{}")), stop), `+a:f{} .calls`},
		{"arguments that changed", data(begin(0), args(0, `{"x":1}`), finished(0, call(0, "a", "f", `{"x":2}`)), stop), "!unavailable"},
		{"arguments that changed in their own event", data(begin(0), args(0, `{"x":1}`), `{"type":"response.function_call_arguments.done","output_index":0,"item_id":"i0","arguments":"{}"}`, stop), "!unavailable"},
		{"a name that changed", data(begin(0), finished(0, call(0, "a", "g", `{}`)), stop), "!unavailable"},
		{"a call without a name", data(args(0, `{}`), stop), "!unavailable"},
		{"a call that says it is not whole", data(finished(0, strings.Replace(call(0, "a", "f", `{}`), "completed", "incomplete", 1)), stop), "!unavailable"},
		{"more calls in the closing event", data(finished(0, call(0, "a", "f", `{}`)), completed(call(0, "a", "f", `{}`), call(1, "b", "g", `{}`))), "!unavailable"},
		{"fewer calls in the closing event", data(finished(0, call(0, "a", "f", `{}`)), completed(said(0, "t"))), "t !unavailable"},
		{"a call in a reply that was cut", data(begin(0), args(0, `{}`), finished(0, call(0, "a", "f", `{}`))), "!unavailable"},
		{"A-PROV-8: the limit in a call", data(text(0, "a"), begin(1), args(1, `{"x":"lo`), incomplete("max_output_tokens")), "a .length"},
		{"the filter in a call", data(text(0, "a"), finished(1, call(1, "a", "f", `{}`)), incomplete("content_filter")), "a .refusal"},

		{"the limit under a wrong type", data(text(0, "a"), strings.Replace(incomplete("max_output_tokens"), "response.incomplete", "response.completed", 1)), "a .length"},
		{"incomplete without a reason", data(text(0, "a"), `{"type":"response.incomplete","response":{}}`), "a !unavailable"},
		{"incomplete for a reason nobody knows", data(text(0, "a"), incomplete("moon_phase")), "a !unavailable"},
		{"cancelled", data(text(0, "a"), `{"type":"response.completed","response":{"status":"cancelled"}}`), "a !unavailable"},
		{"failed", data(text(0, "a"), failed("server_error", "boom")), "a !unavailable"},
		{"failed without words", data(text(0, "a"), `{"type":"response.failed","response":{"status":"failed","error":null}}`), "a !unavailable"},
		{"failed under a wrong type", data(strings.Replace(failed("insufficient_quota", "x"), "response.failed", "response.completed", 1)), "!quota exhausted"},
		{"failed: rate", data(text(0, "a"), failed("rate_limit_exceeded", "Please try again in 3s.")), "a !rate limited"},
		{"failed: quota", data(failed("insufficient_quota", "no more")), "!quota exhausted"},
		{"failed: too long", data(failed("context_length_exceeded", "x")), "!context too long"},
		{"failed: a prompt it does not take", data(failed("invalid_prompt", "x")), "!provider rejected"},
		{"failed: an image it does not take", data(failed("invalid_image_format", "x")), "!provider rejected"},
		{"failed with costs", data(text(0, "a"), `{"type":"response.failed","response":{"status":"failed","error":{"code":"server_error","message":"x"},"usage":{"input_tokens":3,"output_tokens":1}}}`), "a #3/1 !unavailable"},
		{"A-PROV-4: an error event", data(text(0, "a"), `{"type":"error","code":"server_error","message":"boom","param":null,"sequence_number":4}`), "a !unavailable"},
		{"A-PROV-4: an error event with an object", data(text(0, "a"), `{"type":"error","error":{"type":"invalid_request_error","code":"context_length_exceeded","message":"Your input exceeds the context window"}}`), "a !context too long"},
		{"A-PROV-4: an error by name", data(text(0, "a")) + "event: error\ndata: {\"code\":\"rate_limit_exceeded\",\"message\":\"slow down\"}\n\n", "a !rate limited"},
		{"A-PROV-4: a bare error line", data(text(0, "a")) + "{\"error\":{\"message\":\"boom\"}}\n", "a !unavailable"},
		{"A-PROV-4: a list of errors", data(text(0, "a"), `[{"error":{"code":429,"message":"slow down"}}]`), "a !rate limited"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				line, _ := got(t, open(porttest.T(t), answer("text/event-stream", c.body)), porttest.SampleRequest())
				if line != c.want {
					t.Errorf("got  %q\nwant %q", line, c.want)
				}
			})
		})
	}
}

// TestAnswers is the same for answers that are no streams.
func TestAnswers(t *testing.T) {
	const kind, html = "application/json", "text/html"
	whole := func(status, more string, items ...string) string {
		return `{"id":"r","object":"response","status":"` + status + `","error":null,` + more + `"output":[` + strings.Join(items, ",") + `],"usage":{"input_tokens":1,"output_tokens":2}}`
	}
	for _, c := range []struct {
		name, kind, body, want, words string
	}{
		{"a whole answer", kind, whole("completed", "", thinking(0, "e", "hm"), said(1, "hello")), "<hm>hello #1/2 .stop", ""},
		{"a whole answer with calls", kind, "\n " + whole("completed", "", said(0, "t"), call(1, "a", "f", `{"x":1}`), call(2, "b", "f", `{}`)), `t #1/2 +a:f{"x":1} +b:f{} .calls`, ""},
		{"a whole answer at the limit", kind, whole("incomplete", `"incomplete_details":{"reason":"max_output_tokens"},`, said(0, "t"), call(1, "a", "f", `{"x`)), `t #1/2 .length`, ""},
		{"a whole answer cut", kind, whole("completed", "", said(0, "hello"))[:120], "!unavailable", "no JSON"},
		{"an answer in progress", kind, whole("in_progress", "", said(0, "hello")), "!unavailable", `the status "in_progress"`},
		{"an answer that failed", kind, `{"object":"response","status":"failed","error":{"code":"server_error","message":"boom"},"output":[]}`, "!unavailable", "boom"},
		{"an error with status 200", kind, `{"error":{"message":"model not loaded","type":"invalid_request_error"}}`, "!provider rejected", "model not loaded"},
		{"an error text with status 200", kind, `{"detail":"nobody home"}`, "!unavailable", "nobody home"},
		{"a list with an error", kind, `[{"error":{"code":400,"message":"bad schema"}}]`, "!provider rejected", "bad schema"},
		{"another wire", kind, `{"choices":[{"message":{"content":"a"}}]}`, "!unavailable", "no JSON of the expected form"},
		{"a stream under another type", kind, data(text(0, "a"), completed()), "a .stop", ""},
		{"a page", html, "<!doctype html><title>Sign in</title>", "!unavailable", "web page"},
		{"plain words", "text/plain", "it works", "!unavailable", "before it was complete"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				line, err := got(t, open(porttest.T(t), answer(c.kind, c.body)), porttest.SampleRequest())
				if line != c.want {
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
// closing event has come.
func TestStreams_CutAnywhere(t *testing.T) {
	arguments := `{"x":"é"}`
	body := data(thought(0, 0, "h€m"), finished(0, thinking(0, "e", "h€m")), text(1, "hé"), text(1, "lo 😀"), finished(1, said(1, "hélo 😀")),
		args(2, arguments[:4]), args(2, arguments[4:]), finished(2, call(2, "a", "f", arguments)))
	closing := "data: " + completed(thinking(0, "e", "h€m"), said(1, "hélo 😀"), call(2, "a", "f", arguments))
	full := "<h€m>hélo 😀 +a:f{\"x\":\"é\"} .calls"
	for at := range len(body) + len(closing) + 1 {
		synctest.Test(t, func(t *testing.T) {
			line, err := got(t, open(porttest.T(t), answer("text/event-stream", (body + closing)[:at])), porttest.SampleRequest())
			if at == len(body)+len(closing) {
				if line != full {
					t.Errorf("the whole of it gave %q", line)
				}
				return
			}
			shown, ok := strings.CutSuffix(line, "!unavailable")
			shown = strings.TrimSuffix(strings.TrimSuffix(shown, " "), ">")
			if !ok || !strings.HasPrefix(full, shown) || strings.Contains(shown, "+") {
				t.Errorf("cut at %d: %q, error %v", at, line, err)
			}
		})
	}
}

// TestStreams_Prelude: a provider that has acknowledged a request may think as
// long as it may take to its first sign, and what it then waits for too long
// is told with the setting that helps.
func TestStreams_Prelude(t *testing.T) {
	for name, c := range map[string]struct {
		after time.Duration
		want  string
	}{
		"in time":  {llm.DefaultTimeout - time.Second, "a .stop"},
		"too late": {llm.DefaultTimeout + time.Second, "!unavailable"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := open(porttest.T(t), http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
					_, _ = io.WriteString(w, data(`{"type":"response.created","response":{}}`, `{"type":"response.in_progress","response":{}}`))
					_ = http.NewResponseController(w).Flush()
					select {
					case <-time.After(c.after):
					case <-req.Context().Done():
					}
					_, _ = io.WriteString(w, data(text(0, "a"), completed()))
				}))
				line, err := got(t, m, porttest.SampleRequest())
				if line != c.want || err != nil && !strings.Contains(err.Error(), "timeout_secs") {
					t.Errorf("%q, %v", line, err)
				}
			})
		})
	}
}

// TestStreams_LongEvent: an item of several MiB is read, one beyond the limit
// is an error.
func TestStreams_LongEvent(t *testing.T) {
	long := strings.Repeat("0123456789", 1<<20)
	line, err := got(t, cannedModel(t, canned{body: data(text(0, long), completed(said(0, long)))}), porttest.SampleRequest())
	if err != nil || line != long+" .stop" {
		t.Errorf("%d bytes came, error %v", len(line), err)
	}
	for name, body := range map[string]string{
		"a line": "data: " + strings.Repeat(long, 4),
		"a call": strings.Repeat(data(args(0, long)), 4),
	} {
		_, err := got(t, cannedModel(t, canned{body: body}), porttest.SampleRequest())
		if !domain.HasCode(err, domain.Unavailable) || !strings.Contains(err.Error(), "longer than 32 MiB") {
			t.Errorf("%s: the error is %v", name, err)
		}
	}
}
