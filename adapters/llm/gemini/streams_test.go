package gemini

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/berth-dev/berth/adapters/llm"
	"github.com/berth-dev/berth/adapters/llm/llmtest"
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

// open opens a model over a handler that does not retry.
func open(t porttest.TB, h http.Handler, model string) *Model {
	t.Helper()
	m, err := New(llm.Provider{Client: llmtest.Connect(t, h), ProviderConfig: llm.ProviderConfig{
		Name: "fake", BaseURL: llmtest.Host + "/v1beta", APIKey: func() (string, error) { return llmtest.Canary, nil },
	}}, domain.ModelInfo{Ref: domain.ModelRef{Provider: "fake", Model: model}, Tools: true, Images: true, Audio: true, Thoughts: true})
	if err != nil {
		t.Fatalf("%v", err)
	}
	return m
}

// got renders a reply in one line: text, <thought>, +id:call(args), #usage,
// .finish or !code.
func got(t porttest.TB, m *Model, req domain.ModelRequest) (line string, failure error) {
	t.Helper()
	var b strings.Builder
	thinking := false
	think := func(on bool) {
		if on && !thinking {
			b.WriteString("<")
		}
		if !on && thinking {
			b.WriteString(">")
		}
		thinking = on
	}
	for ev, err := range m.Stream(t.Context(), req) {
		_, isThought := ev.(domain.ThoughtDelta)
		think(isThought)
		switch ev := ev.(type) {
		case domain.TextDelta:
			b.WriteString(ev.Text)
		case domain.ThoughtDelta:
			b.WriteString(ev.Text)
		case domain.CallRequested:
			fmt.Fprintf(&b, " +%s:%s%s", ev.Call.ProviderID, ev.Call.Name, ev.Call.Args)
		case domain.UsageReported:
			fmt.Fprintf(&b, " #%d/%d", ev.Usage.Input, ev.Usage.Output)
		case domain.Finish:
			fmt.Fprintf(&b, " .%s", ev.Reason)
		}
		if err != nil {
			fmt.Fprintf(&b, " !%s", domain.CodeOf(err))
			failure = err
		}
	}
	return strings.TrimSpace(b.String()), failure
}

// data writes events as the API does.
func data(chunks ...string) string {
	var b strings.Builder
	for _, c := range chunks {
		b.WriteString("data: " + c + "\r\n\r\n")
	}
	return b.String()
}

// say is a chunk with parts.
func say(parts string) string {
	return `{"candidates":[{"content":{"parts":[` + parts + `],"role":"model"},"index":0}],"modelVersion":"x"}`
}

// ends is a chunk with parts and a finish reason.
func ends(reason, parts string) string {
	return `{"candidates":[{"content":{"parts":[` + parts + `],"role":"model"},"finishReason":"` + reason + `","index":0}]}`
}

const (
	a    = `{"text":"a"}`
	f    = `{"functionCall":{"name":"f","args":{"x":1}}}`
	stop = `{"candidates":[{"finishReason":"STOP"}]}`
)

// TestStreams is the table of what servers send and what becomes of it.
func TestStreams(t *testing.T) {
	for _, c := range []struct{ name, body, want, words string }{
		{"text", data(say(a), ends("STOP", `{"text":"b"}`)), "ab .stop", ""},
		{"an empty last text", data(say(a), ends("STOP", `{"text":""}`)), "a .stop", ""},
		{"no content in the last chunk", data(say(a), stop), "a .stop", ""},
		{"nothing at all", data(stop), ".stop", ""},
		{"the end mark of another wire", data(say(a), stop, "[DONE]"), "a .stop", ""},
		{"the end mark alone", data(say(a), "[DONE]"), "a !unavailable", "before it was complete"},
		{"cut", data(say(a)), "a !unavailable", "before it was complete"},
		{"no body", "", "!unavailable", "before it was complete"},
		{"white space", " \r\n \r\n", "!unavailable", "before it was complete"},
		{"a last event without its line end", strings.TrimSpace(data(say(a), stop)), "a .stop", ""},
		{"half an event", data(say(a)) + "data: " + stop[:20], "a !unavailable", "no JSON"},
		{"a thought", data(say(`{"text":"hm","thought":true}`), say(a), stop), "<hm>a .stop", ""},
		{"a thought and a text in one chunk", data(say(`{"text":"hm","thought":true},`+a), stop), "<hm>a .stop", ""},
		{"a null text", data(say(`{"text":null}`), say(a), stop), "a .stop", ""},
		{"a text that is none", data(say(`{"text":5}`)), "!unavailable", "no text"},
		{"a pair cut in two", data(say(`{"text":"\ud83d"}`), say(`{"text":"\ude00"}`), stop), "😀 .stop", ""},
		{"half a pair", data(say(`{"text":"x\ud83d"}`), stop), "x\uFFFD .stop", ""},
		{"an empty part", data(say(`{}`), say(a), stop), "a .stop", ""},
		{"another candidate", data(`{"candidates":[{"index":1,"content":{"parts":[{"text":"b"}]},"finishReason":"SAFETY"},{"index":0,"content":{"parts":[`+a+`]}}]}`, stop), "a .stop", ""},
		{"no candidates", data(`{"candidates":[]}`, `{"modelVersion":"x"}`, say(a), stop), "a .stop", ""},
		{"a picture", data(say(`{"inlineData":{"mimeType":"image/png","data":"AA=="}}`), stop), "!unavailable", "something else than text"},
		{"code", data(say(a), say(`{"executableCode":{"code":"1"}}`), stop), "a !unavailable", "something else than text"},

		{"usage", data(`{"usageMetadata":{"promptTokenCount":1}}`, say(a), `{"candidates":[{"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":10,"candidatesTokenCount":3,"thoughtsTokenCount":4,"toolUsePromptTokenCount":2}}`), "a #12/7 .stop", ""},
		{"usage after the finish", data(say(a), stop, `{"usageMetadata":{"promptTokenCount":10,"candidatesTokenCount":3}}`), "a #10/3 .stop", ""},
		{"usage of a reply that breaks", data(`{"candidates":[{"content":{"parts":[` + a + `]}}],"usageMetadata":{"promptTokenCount":3,"candidatesTokenCount":1}}`), "a #3/1 !unavailable", ""},
		{"counts of the last chunk but one", data(`{"candidates":[{"content":{"parts":[`+a+`]}}],"usageMetadata":{"promptTokenCount":3,"candidatesTokenCount":1}}`, stop), "a #3/1 .stop", ""},
		{"counts that are none", data(`{"candidates":[{"content":{"parts":[`+a+`]}}],"usageMetadata":{"promptTokenCount":"many","candidatesTokenCount":"1"}}`, stop), "a #0/1 .stop", ""},
		{"counts of another form", data(say(a), `{"candidates":[{"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":3.0,"candidatesTokenCount":-4}}`), "a #3/0 .stop", ""},
		{"no counts", data(say(a), `{"candidates":[{"finishReason":"STOP"}],"usageMetadata":{}}`), "a .stop", ""},

		{"two reasons, the worse first", data(say(f), ends("MAX_TOKENS", ""), stop), ".length", ""},
		{"two reasons, the worse last", data(say(f), stop, ends("SAFETY", "")), ".refusal", ""},
		{"a call", data(say(f), stop), `+:f{"x":1} .calls`, ""},
		{"a call with the finish", data(ends("STOP", f)), `+:f{"x":1} .calls`, ""},
		{"a call with an id", data(say(`{"functionCall":{"id":"k","name":"f","args":{}}}`), stop), `+k:f{} .calls`, ""},
		{"a call without arguments", data(say(`{"functionCall":{"name":"f"}}`), stop), `+:f{} .calls`, ""},
		{"two calls in one chunk", data(say(f+`,{"functionCall":{"name":"g","args":{"y":[1,"é"]}}}`), stop), `+:f{"x":1} +:g{"y":[1,"é"]} .calls`, ""},
		{"two calls in two chunks", data(say(f), say(f), stop), `+:f{"x":1} +:f{"x":1} .calls`, ""},
		{"a call, then text", data(say(f), say(a), stop), `a +:f{"x":1} .calls`, ""},
		{"arguments null", data(say(`{"functionCall":{"name":"f","args":null}}`), stop), "!unavailable", "no JSON object"},
		{"arguments in a text", data(say(`{"functionCall":{"name":"f","args":"{}"}}`), stop), "!unavailable", "no JSON object"},
		{"a call without a name", data(say(`{"functionCall":{"args":{}}}`), stop), "!unavailable", "without a name"},
		{"a call in pieces", data(say(`{"functionCall":{"name":"f","willContinue":true}}`), stop), "!unavailable", "in pieces"},
		{"pieces of arguments", data(say(`{"functionCall":{"partialArgs":[{"jsonPath":"$.x"}]}}`), stop), "!unavailable", "in pieces"},
		{"A-PROV-8: length after a call", data(say(a), say(f), ends("MAX_TOKENS", "")), "a .length", ""},
		{"refusal after a call", data(say(f), ends("SAFETY", "")), ".refusal", ""},
		{"cut after a call", data(say(f)), "!unavailable", ""},

		{"finish: RECITATION", data(say(a), ends("RECITATION", "")), "a .refusal", ""},
		{"finish: BLOCKLIST", data(ends("BLOCKLIST", "")), ".refusal", ""},
		{"finish: PROHIBITED_CONTENT", data(ends("PROHIBITED_CONTENT", "")), ".refusal", ""},
		{"finish: SPII", data(ends("SPII", "")), ".refusal", ""},
		{"finish: IMAGE_SAFETY", data(ends("IMAGE_SAFETY", "")), ".refusal", ""},
		{"finish: LANGUAGE", data(ends("LANGUAGE", "")), ".refusal", ""},
		{"finish: MALFORMED_FUNCTION_CALL", data(say(a), ends("MALFORMED_FUNCTION_CALL", "")), "a !unavailable", "MALFORMED_FUNCTION_CALL"},
		{"finish: UNEXPECTED_TOOL_CALL", data(ends("UNEXPECTED_TOOL_CALL", "")), "!unavailable", "not given"},
		{"finish: TOO_MANY_TOOL_CALLS", data(ends("TOO_MANY_TOOL_CALLS", "")), "!unavailable", "too many"},
		{"finish: MISSING_THOUGHT_SIGNATURE", data(ends("MISSING_THOUGHT_SIGNATURE", "")), "!unavailable", "signature"},
		{"finish: OTHER", data(say(a), ends("OTHER", "")), "a !unavailable", `"OTHER"`},
		{"finish: unheard of", data(ends("moon <phase>\\n", "")), "!unavailable", `"MOONPHASE"`},
		{"finish: unspecified", data(say(a), ends("FINISH_REASON_UNSPECIFIED", "")), "a !unavailable", "UNSPECIFIED"},
		{"a failure in place of calls", data(say(f), ends("MALFORMED_FUNCTION_CALL", "")), "!unavailable", ""},
		{"a prompt that is refused", data(`{"promptFeedback":{"blockReason":"PROHIBITED_CONTENT"},"usageMetadata":{"promptTokenCount":5}}`), "#5/0 .refusal", ""},
		{"feedback without a reason", data(`{"promptFeedback":{"safetyRatings":[]}}`, say(a), stop), "a .stop", ""},

		{"stop with every chunk", data(ends("STOP", a), ends("STOP", `{"text":"b"}`), ends("STOP", f)), `ab +:f{"x":1} .calls`, ""},
		{"stop with every chunk but the last", data(ends("STOP", a), say(`{"text":"b"}`)), "ab !unavailable", "before it was complete"},
		{"another finish at the end", data(ends("STOP", a), ends("MAX_TOKENS", `{"text":"b"}`)), "ab .length", ""},

		{"A-PROV-4: an error object", data(say(a), `{"error":{"code":503,"message":"The model is overloaded.","status":"UNAVAILABLE"}}`), "a !unavailable", "overloaded"},
		{"A-PROV-4: an error beside candidates", data(say(a), `{"candidates":[{"finishReason":"STOP"}],"error":{"code":500,"message":"boom"}}`), "a !unavailable", "boom"},
		{"A-PROV-4: an error after the finish", data(say(a), stop, `{"error":{"code":500,"message":"late"}}`), "a !unavailable", "late"},
		{"A-PROV-4: an error event", data(say(a)) + "event: error\r\ndata: {\"error\":{\"code\":400,\"message\":\"bad\"}}\r\n\r\n", "a !provider rejected", "bad"},
		{"A-PROV-4: an error event in words", data(say(a)) + "event: error\ndata: gone\n\n", "a !unavailable", "gone"},
		{"A-PROV-4: an indented object between events", data(say(a)) + "{\n  \"error\": {\n    \"code\": 429,\n    \"message\": \"slow down\",\n    \"status\": \"RESOURCE_EXHAUSTED\"\n  }\n}\n", "a !rate limited", "slow down"},
		{"A-PROV-4: an indented list between events", data(say(a)) + "[{\n  \"error\": {\n    \"code\": 503,\n    \"message\": \"busy\"\n  }\n}\n]", "a !unavailable", "busy"},
		{"A-PROV-4: a detail", data(say(a), `{"detail":"nobody home"}`), "a !unavailable", "nobody home"},
		{"A-PROV-4: a list as an event", data(say(a), `[{"error":{"code":400,"message":"API key not valid. Please pass a valid API key.","status":"INVALID_ARGUMENT"}}]`), "a !auth required", "refused its API key"},
		{"a quota of the day in the stream", data(`{"error":{"code":429,"message":"x","details":[{"@type":"type.googleapis.com/google.rpc.QuotaFailure","violations":[{"quotaId":"GenerateRequestsPerDayPerProjectPerModel"}]}]}}`), "!quota exhausted", ""},
		{"a conversation too long in the stream", data(`{"error":{"code":400,"message":"The input token count (1048577) exceeds the maximum number of tokens allowed (1048576).","status":"INVALID_ARGUMENT"}}`), "!context too long", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				check(porttest.T(t), "text/event-stream", c.body, c.want, c.words)
			})
		})
	}
}

func check(t porttest.TB, kind, body, want, words string) {
	t.Helper()
	line, err := got(t, open(t, answer(kind, body), "gemini-3-flash"), porttest.SampleRequest())
	if line != want {
		t.Errorf("got  %q\nwant %q", line, want)
	}
	if err != nil && !strings.Contains(err.Error(), words) {
		t.Errorf("the error is %q, want %q in it", err, words)
	}
}

// TestAnswers is the same for answers that are no event streams.
func TestAnswers(t *testing.T) {
	const js = "application/json; charset=UTF-8"
	list := func(chunks ...string) string { return "[" + strings.Join(chunks, "\n,\r\n") + "\n]\n" }
	for _, c := range []struct{ name, kind, body, want, words string }{
		{"a list", js, list(say(a), ends("STOP", f)), `a +:f{"x":1} .calls`, ""},
		{"a list that is cut", js, list(say(a), say(a))[:130], "a !unavailable", "before it was complete"},
		{"a list without its end", js, strings.TrimSpace(strings.TrimSuffix(list(say(a), stop), "]\n")), "a .stop", ""},
		{"an empty list", js, "[]", "!unavailable", "before it was complete"},
		{"a list with an error", js, list(say(a), `{"error":{"code":503,"message":"busy","status":"UNAVAILABLE"}}`), "a !unavailable", "busy"},
		{"a list of an error alone", js, list(`{"error":{"code":400,"message":"bad schema","status":"INVALID_ARGUMENT"}}`), "!provider rejected", "bad schema"},
		{"a list of something else", js, `[1,2]`, "!unavailable", "expected form"},
		{"a list with nonsense", js, "[" + say(a) + " x " + stop + "]", "a !unavailable", "no JSON"},
		{"a whole answer", js, "\n " + ends("STOP", `{"text":"hm","thought":true},`+a+","+f), `<hm>a +:f{"x":1} .calls`, ""},
		{"a whole answer, indented", js, "{\n \"candidates\": [{\"content\": {\"parts\": [\n {\"text\": \"a\"}]},\n \"finishReason\": \"STOP\"}]\n}\n", "a .stop", ""},
		{"a whole answer, cut", js, ends("STOP", a)[:60], "!unavailable", "before it was complete"},
		{"chunks, one a line", js, say(a) + "\n" + stop + "\n", "a .stop", ""},
		{"an error with status 200", js, `{"error":{"code":404,"message":"no such model","status":"NOT_FOUND"}}`, "!provider rejected", "no such model"},
		{"words with status 200", js, `{"message":"nobody home"}`, "!unavailable", "nobody home"},
		{"something else", js, `{"hello":"world"}`, "!unavailable", "before it was complete"},
		{"a stream under another type", js, data(say(a), stop), "a .stop", ""},
		{"a byte order mark", js, "\uFEFF" + data(say(a), stop), "a .stop", ""},
		{"a byte order mark before a list", js, "\uFEFF" + list(say(a), stop), "a .stop", ""},
		{"half a byte order mark", js, "\xEF\xBB", "!unavailable", "before it was complete"},
		{"a page", "text/html", "<!doctype html><title>Sign in</title>", "!unavailable", "web page"},
		{"a page after white space", "text/event-stream", strings.Repeat(" \r\n", 700) + "<html>", "!unavailable", "web page"},
		{"plain words", "text/plain", "it works", "!unavailable", "before it was complete"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { check(porttest.T(t), c.kind, c.body, c.want, c.words) })
		})
	}
}

// TestStreams_CutAnywhere cuts a reply with text and a call at every byte, as
// events and as a list: what was shown is a beginning of it, and no call is
// requested before the finish reason has come.
func TestStreams_CutAnywhere(t *testing.T) {
	chunks := []string{say(`{"text":"hé"}`), say(`{"text":"h€m","thought":true}`), say(`{"text":"lo 😀"}`), say(`{"functionCall":{"name":"f","args":{"x":"é"}}}`), stop}
	const full = "hé<h€m>lo 😀 +:f{\"x\":\"é\"} .calls"
	for name, body := range map[string]string{"events": strings.TrimSpace(data(chunks...)), "list": "[" + strings.Join(chunks, ",\n")} {
		for at := range len(body) + 1 {
			synctest.Test(t, func(t *testing.T) {
				line, err := got(porttest.T(t), open(porttest.T(t), answer("", body[:at]), "gemini-3-flash"), porttest.SampleRequest())
				if at == len(body) {
					if line != full {
						t.Errorf("%s: the whole of it gave %q", name, line)
					}
					return
				}
				shown, ok := strings.CutSuffix(line, "!unavailable")
				shown = strings.TrimSuffix(strings.TrimSpace(shown), ">")
				if !ok || !strings.HasPrefix(full, shown) || strings.Contains(shown, "+") {
					t.Errorf("%s cut at %d: %q, error %v", name, at, line, err)
				}
			})
		}
	}
}

// TestStreams_KeptOpen: a proxy that does not close the connection after a
// finish reason is not waited for as long as for text, but one that gives a
// reason with every chunk is.
func TestStreams_KeptOpen(t *testing.T) {
	for name, c := range map[string]struct {
		first, then string
		want        string
		took        time.Duration
	}{
		"after the end":       {data(say(a), stop), "", "a .stop", afterFinish},
		"stop with each":      {data(ends("STOP", a), ends("STOP", `{"text":"b"}`)), data(ends("STOP", `{"text":"c"}`)), "abc .stop", 30 * time.Second},
		"stop with each, cut": {data(ends("STOP", a), ends("STOP", `{"text":"b"}`)), "", "ab !unavailable", llm.DefaultIdle},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := open(porttest.T(t), http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
					_, _ = io.WriteString(w, c.first)
					_ = http.NewResponseController(w).Flush()
					if c.then == "" {
						<-req.Context().Done()
						return
					}
					select {
					case <-time.After(30 * time.Second):
					case <-req.Context().Done():
					}
					_, _ = io.WriteString(w, c.then)
				}), "gemini-3-flash")
				began := time.Now()
				line, err := got(porttest.T(t), m, porttest.SampleRequest())
				if took := time.Since(began); line != c.want || took != c.took {
					t.Errorf("%q, %v after %s", line, err, took)
				}
			})
		})
	}
}

// TestStreams_Long: an event of several MiB is read, one beyond the limit is
// an error and no hang, in both forms.
func TestStreams_Long(t *testing.T) {
	long := strings.Repeat("0123456789", 1<<20)
	for name, c := range map[string]struct{ head, sep, tail string }{"events": {"data: ", "\n\ndata: ", "\n\n"}, "list": {"[", ",", "]"}} {
		t.Run(name, func(t *testing.T) {
			body := c.head + say(`{"text":"`+long+`"}`) + c.sep + say(`{"text":"`+long+`"}`) + c.sep + stop + c.tail
			line, err := got(porttest.T(t), open(porttest.T(t), answer("", body), "gemini-3-flash"), porttest.SampleRequest())
			if err != nil || line != long+long+" .stop" {
				t.Errorf("%d bytes came, error %v", len(line), err)
			}
			endless := http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
				_, _ = io.WriteString(w, c.head+`{"candidates":[{"content":{"parts":[{"text":"`)
				for req.Context().Err() == nil {
					if _, err := io.WriteString(w, long); err != nil {
						return
					}
				}
			})
			_, err = got(porttest.T(t), open(porttest.T(t), endless, "gemini-3-flash"), porttest.SampleRequest())
			if !domain.HasCode(err, domain.Unavailable) || !strings.Contains(err.Error(), "longer than 32 MiB") {
				t.Errorf("the error is %v", err)
			}
		})
	}
}
