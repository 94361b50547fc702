package ollama

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"

	"github.com/berth-dev/berth/adapters/llm"
	"github.com/berth-dev/berth/core/domain"
	"github.com/berth-dev/berth/core/ports/porttest"
)

// TestStreams is what becomes of the lines of an answer.
func TestStreams(t *testing.T) {
	stop := done("stop", "")
	counted := done("stop", `,"prompt_eval_count":12,"eval_count":3`)
	f := func(args string) string { return calls(`{"function":{"name":"f","arguments":` + args + `}}`) }
	for _, c := range []struct{ name, body, want string }{
		{"text", text("a") + text("b") + counted, "ab #12/3 .stop"},
		{"thoughts", says(`{"content":"","thinking":"hm"}`) + text("a") + stop, "<hm>a .stop"},
		{"thought and text in one line", says(`{"content":"a","thinking":"hm"}`) + stop, "<hm>a .stop"},
		{"nothing", stop, ".stop"},
		{"text in the last line", `{"message":{"content":"a"},"done":true,"done_reason":"stop"}`, "a .stop"},
		{"no message in the last line", text("a") + `{"done":true,"done_reason":"stop"}`, "a .stop"},
		{"fields of null", says(`{"content":null,"thinking":null,"tool_calls":null,"images":null}`) + text("a") + stop, "a .stop"},
		{"error null", `{"error":null,"message":{"content":"a"}}` + "\n" + stop, "a .stop"},
		{"CRLF and blank lines", "\r\n" + strings.ReplaceAll(text("a")+"\n"+stop, "\n", "\r\n"), "a .stop"},
		{"byte order mark", "\uFEFF" + text("a") + stop, "a .stop"},
		{"a pair cut in two", says(`{"content":"\ud83d"}`) + says(`{"content":"\ude00"}`) + stop, "😀 .stop"},
		{"a character cut in two", says("{\"content\":\"\xc3\"}") + says("{\"content\":\"\xa9\"}") + stop, "é .stop"},
		{"half a character at the end", says(`{"content":"a\ud83d"}`) + stop, "a\uFFFD .stop"},
		{"what follows the end", text("a") + stop + text("b"), "a .stop"},

		{"a call", f(`{"x":[1]}`) + stop, `+:f{"x":[1]} .calls`},
		{"a call with an id and an index", calls(`{"id":"call_1","function":{"index":3,"name":"f","arguments":{}}}`) + stop, `+call_1:f{} .calls`},
		{"a call after text in one line", says(`{"content":"a","tool_calls":[{"function":{"name":"f","arguments":{}}}]}`) + stop, `a +:f{} .calls`},
		{"text after a call", f(`{}`) + text("a") + stop, `a +:f{} .calls`},
		{"calls in one line and several", calls(`{"function":{"name":"f","arguments":{"x":1}}},{"function":{"name":"f","arguments":{"x":2}}}`) + f(`{"x":3}`) + stop,
			`+:f{"x":1} +:f{"x":2} +:f{"x":3} .calls`},
		{"the same call twice is two", f(`{"x":1}`) + f(`{"x":1}`) + stop, `+:f{"x":1} +:f{"x":1} .calls`},
		{"calls in the last line", `{"message":{"content":"","tool_calls":[{"function":{"name":"f","arguments":{}}}]},"done":true,"done_reason":"stop"}`, `+:f{} .calls`},
		{"reason of other wires", f(`{}`) + done("tool_calls", ""), `+:f{} .calls`},
		{"that reason without a call", text("a") + done("tool_calls", ""), "a !unavailable"},
		{"arguments as text", f(`"{\"x\":\"\ud83d\ude00\"}"`) + stop, `+:f{"x":"😀"} .calls`},
		{"arguments absent", calls(`{"function":{"name":"f"}}`) + stop, `+:f{} .calls`},
		{"arguments of an empty text", f(`""`) + stop, `+:f{} .calls`},
		{"arguments null", f(`null`) + stop, "!unavailable"},
		{"arguments that are a list", f(`[1]`) + stop, "!unavailable"},
		{"arguments that are a number", f(`1`) + stop, "!unavailable"},
		{"arguments as text that is no object", f(`"[1]"`) + stop, "!unavailable"},
		{"arguments as broken text", f(`"{\"x\":"`) + stop, "!unavailable"},
		{"arguments as text twice", f(`"\"{}\""`) + stop, "!unavailable"},
		{"a call without a name", calls(`{"function":{"arguments":{}}}`) + stop, "!unavailable"},
		{"one bad call of two", f(`{}`) + f(`[]`) + stop, "!unavailable"},
		{"tool_calls of a wrong type", says(`{"content":"a","tool_calls":"f"}`) + stop, "!unavailable"},

		{"counts of other forms", text("a") + done("stop", `,"prompt_eval_count":"5","eval_count":7.0`), "a #5/7 .stop"},
		{"counts beyond all measure", text("a") + done("stop", `,"prompt_eval_count":9223372036854775807,"eval_count":-1`), "a .stop"},
		{"length", text("a") + done("length", `,"prompt_eval_count":5,"eval_count":7`), "a #5/7 .length"},
		{"length after a call", f(`{}`) + done("length", ""), ".length"},
		{"no reason", text("a") + `{"message":{"content":""},"done":true}`, "a .stop"},
		{"a filter", text("no") + done("content_filter", ""), "no .refusal"},
		{"load", done("load", ""), "!unavailable"},
		{"unload", done("unload", ""), "!unavailable"},
		{"an unheard reason", text("a") + done("moon_phase", ""), "a !unavailable"},

		{"cut", text("a"), "a !unavailable"},
		{"cut in a line", text("a") + stop[:20], "a !unavailable"},
		{"empty", "", "!unavailable"},
		{"no JSON", text("a") + "lost\n" + stop, "a !unavailable"},
		{"another JSON", text("a") + `{"status":"fine"}` + "\n" + stop, "a !unavailable"},
		{"a list", "[1]\n", "!unavailable"},
		{"content of a wrong type", says(`{"content":5}`) + stop, "!unavailable"},
		{"thinking of a wrong type", says(`{"content":"","thinking":{"a":1}}`) + stop, "!unavailable"},
		{"a page", "<!doctype html><title>Sign in</title>", "!unavailable"},
		{"an error", text("a") + `{"error":"an error was encountered while running the model"}` + "\n", "a !unavailable"},
		{"an error object", text("a") + `{"error":{"message":"slow down","code":429}}` + "\n", "a !rate limited"},
		{"an error with its status", text("a") + `{"error":"not you","status_code":401}` + "\n", "a !auth required"},
		{"an error in a line that is done", text("a") + `{"error":"boom","done":true,"done_reason":"stop"}` + "\n", "a !unavailable"},
		{"an error beside a wrong type", `{"message":5,"error":"boom"}` + "\n", "!unavailable"},
		{"an error about the window", text("a") + `{"error":"the input length exceeds the context length"}` + "\n", "a !context too long"},
		{"an answer of another kind", `{"detail":"nobody home"}`, "!unavailable"},
		{"a prompt that fills the window", text("a") + f(`{}`) + done("stop", `,"prompt_eval_count":32768,"eval_count":9`), "a #32768/9 !context too long"},
		{"a prompt that nearly does", text("a") + done("stop", `,"prompt_eval_count":32767,"eval_count":1`), "a #32767/1 .stop"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := (&server{chat: answer(http.StatusOK, c.body)}).model(t, nil)
				if line, err := got(t, m, porttest.SampleRequest()); line != c.want {
					t.Errorf("got  %q (%v)\nwant %q", line, err, c.want)
				}
			})
		})
	}
}

// TestStreams_CutAnywhere cuts a reply with text and a call at every byte:
// what was shown is a beginning of it, and no call is requested before the
// last line has come whole.
func TestStreams_CutAnywhere(t *testing.T) {
	body := text("hé") + says(`{"content":"","thinking":"h€m"}`) + text("lo 😀") + calls(`{"id":"a","function":{"name":"f","arguments":{"x":"é"}}}`) +
		strings.TrimSuffix(done("stop", ""), "\n")
	full := "hé<h€m>lo 😀 +a:f{\"x\":\"é\"} .calls"
	for at := range len(body) + 1 {
		synctest.Test(t, func(t *testing.T) {
			line, err := got(t, (&server{chat: answer(http.StatusOK, body[:at])}).model(t, nil), porttest.SampleRequest())
			if at == len(body) {
				if line != full {
					t.Errorf("the whole of it gave %q", line)
				}
				return
			}
			shown, ok := strings.CutSuffix(line, "!unavailable")
			shown = strings.TrimSuffix(strings.TrimSpace(shown), ">")
			if !ok || !strings.HasPrefix(full, shown) || strings.Contains(shown, "+") {
				t.Errorf("cut at %d: %q, error %v", at, line, err)
			}
		})
	}
}

// TestStreams_Load: a server that only loaded the model is asked again.
func TestStreams_Load(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{chat: inTurn(answer(http.StatusOK, done("load", "")), answer(http.StatusOK, text("a")+done("stop", "")))}
		m := s.model(t, func(p *llm.Provider, _ *domain.ModelInfo) { p.MaxRetries = 1 })
		if line, err := got(t, m, porttest.SampleRequest()); line != "a .stop" {
			t.Errorf("%q, %v", line, err)
		}
	})
}

// TestStreams_LongLine: a line of several MiB is read.
func TestStreams_LongLine(t *testing.T) {
	long := strings.Repeat("0123456789", 1<<20)
	m := (&server{chat: answer(http.StatusOK, text(long)+done("stop", ""))}).model(t, nil)
	if line, err := got(t, m, porttest.SampleRequest()); err != nil || line != long+" .stop" {
		t.Errorf("%d bytes came, error %v", len(line), err)
	}
}

// reading answers every request for a reply with one body, as a reader cuts it.
type reading func() io.Reader

func (r reading) RoundTrip(req *http.Request) (*http.Response, error) {
	body := io.Reader(strings.NewReader(able))
	switch req.URL.Path {
	case "/api/version":
		body = strings.NewReader(`{"version":"0.30.1"}`)
	case "/api/chat":
		body = r()
	}
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(body)}, nil
}

// canned is a model whose server answers with the same bytes, without a
// network.
func canned(t testing.TB, body reading) *Model {
	t.Helper()
	p := llm.Provider{Client: llm.NewClient(llm.HTTPConfig{Transport: body}), ProviderConfig: llm.ProviderConfig{Name: "fake"}}
	m, err := New(p, domain.ModelInfo{Ref: domain.ModelRef{Provider: "fake", Model: "fake-1"}, Tools: true})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// FuzzReply: no answer makes the reader crash or hang; it ends in one way; and
// byte by byte is the same as all at once.
func FuzzReply(f *testing.F) {
	for _, s := range []string{
		text("a") + done("stop", `,"prompt_eval_count":5,"eval_count":7`), says(`{"content":"a\ud83d","thinking":"hm"}`) + done("length", ""),
		calls(`{"id":"a","function":{"name":"f","arguments":{"x":1}}}`) + done("stop", ""), calls(`{"function":{"name":"f","arguments":"{\"x\":1}"}}`) + done("", ""),
		text("a") + `{"error":"boom"}`, "<html>", "\uFEFF\r\n\r\n" + text("a"), `{"error":{"message":"x","code":400}}`, `{"message":{"content":"a"}`, done("load", ""),
		says(`{"tool_calls":[null,{}]}`) + done("stop", ""), `{"done":true,"prompt_eval_count":99999999}`, "[]\n" + text("a"),
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		whole, _ := got(t, canned(t, func() io.Reader { return strings.NewReader(string(body)) }), porttest.SampleRequest())
		bytes, _ := got(t, canned(t, func() io.Reader { return iotest.OneByteReader(strings.NewReader(string(body))) }), porttest.SampleRequest())
		if whole != bytes {
			t.Fatalf("%q: at once %q, byte by byte %q", body, whole, bytes)
		}
		if !strings.Contains(whole, "!") && !strings.Contains(whole, ".") {
			t.Fatalf("%q ended in no way: %q", body, whole)
		}
	})
}
