package ollama

import (
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/berth-dev/berth/adapters/llm"
	"github.com/berth-dev/berth/adapters/llm/llmtest"
	"github.com/berth-dev/berth/core/domain"
	"github.com/berth-dev/berth/core/ports/porttest"
)

func connect(t *testing.T, h http.Handler) *llm.Client { return llmtest.Connect(porttest.T(t), h) }

// TestRefusals: what Ollama says and what a person is told, with what to do.
func TestRefusals(t *testing.T) {
	for _, c := range []struct {
		name   string
		status int
		body   string
		code   domain.Code
		retry  bool
		words  string
	}{
		{"no model", 404, `{"error":"model \"fake-1\" not found, try pulling it first"}`, domain.ProviderRejected, false, "ollama pull fake-1"},
		{"no tools", 400, `{"error":"registry.ollama.ai/library/fake-1 does not support tools"}`, domain.ProviderRejected, false, `model "fake-1" of provider "fake" does not support tools`},
		{"no memory", 500, `{"error":"model requires more system memory (63.6 GiB) than is available (18.9 GiB)"}`, domain.Unavailable, false, "choose a smaller one"},
		{"no memory on the card", 500, `{"error":"llama runner process has terminated: cudaMalloc failed: out of memory"}`, domain.Unavailable, false, `providers.fake.models."fake-1".context_window`},
		{"too long", 400, `{"error":"the input length exceeds the context length"}`, domain.ContextTooLong, false, "longer than the model takes"},
		{"too long, of the engine", 400, `{"error":"{\"error\":{\"code\":400,\"message\":\"request (12008 tokens) exceeds the available context size (2048 tokens), try increasing it\",\"type\":\"exceed_context_size_error\"}}"}`, domain.ContextTooLong, false, "12008 tokens"},
		{"too long, as the server's fault", 500, `{"error":"input exceeds maximum context length and cannot be truncated further"}`, domain.ContextTooLong, false, "maximum context length"},
		{"an unreadable call", 500, `{"error":"error parsing tool call: raw='{', err=unexpected end of JSON input"}`, domain.Unavailable, true, "error parsing tool call"},
		{"busy", 503, `{"error":"server busy, please try again.  maximum pending requests exceeded"}`, domain.Unavailable, true, "server busy"},
		{"not signed in", 401, `{"error":"unauthorized","signin_url":"https://ollama.com/connect?name=x"}`, domain.AuthRequired, false, "ollama signin"},
		{"spent", 429, `{"error":"you (x) have reached your weekly usage limit, upgrade for higher limits"}`, domain.QuotaExhausted, false, "weekly usage limit"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &server{chat: inTurn(answer(c.status, c.body), answer(http.StatusOK, text("a")+done("stop", "")))}
				m := s.model(t, func(p *llm.Provider, _ *domain.ModelInfo) { p.MaxRetries = 1 })
				line, err := got(t, m, porttest.SampleRequest())
				if (line == "a .stop") != c.retry {
					t.Fatalf("%q, %v", line, err)
				}
				// The words of what may pass are those of the last attempt.
				s = &server{chat: answer(c.status, c.body)}
				_, err = got(t, s.model(t, nil), porttest.SampleRequest())
				if !domain.HasCode(err, c.code) || !strings.Contains(err.Error(), c.words) {
					t.Errorf("%v: %v, want %v and %q", domain.CodeOf(err), err, c.code, c.words)
				}
			})
		})
	}
}

// TestToolless: a model that is said to call no tools is not asked to, and is
// asked all the same when there are none.
func TestToolless(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{show: `{"capabilities":["completion"]}`, chat: answer(http.StatusOK, text("a")+done("stop", ""))}
		m := s.model(t, nil)
		line, err := got(t, m, porttest.SampleRequest())
		if line != "!provider rejected" || !strings.Contains(err.Error(), "does not support tools") || s.count("/api/chat") != 0 {
			t.Errorf("%q, %v", line, err)
		}
		req := porttest.SampleRequest()
		req.Tools = nil
		if line, err := got(t, m, req); line != "a .stop" {
			t.Errorf("%q, %v", line, err)
		}
	})
}

// TestOptions: an optional field that is refused is left out at once and from
// then on.
func TestOptions(t *testing.T) {
	for _, c := range []struct {
		name   string
		model  string
		words  []string // refusals, one a request
		field  string
		values []any // what is sent, with what follows the refusals twice
	}{
		{"no thoughts", "fake-1", []string{`"fake-1" does not support thinking`}, "think", []any{true, nil, nil}},
		{"no levels", "gpt-oss:20b", []string{`think value "high" is not supported for this model`}, "think", []any{"high", true, true}},
		{"neither", "gpt-oss:20b", []string{`invalid think value: "high"`, `"gpt-oss" does not support thinking`}, "think", []any{"high", true, nil, nil}},
		{"a server that knows only on and off", "gpt-oss:20b", []string{"json: cannot unmarshal string into Go struct field ChatRequest.think of type bool"}, "think", []any{"high", true, true}},
		{"no truncate", "fake-1", []string{`json: unknown field "truncate"`}, "truncate", []any{false, nil, nil}},
		{"no shift", "fake-1", []string{`Extra inputs are not permitted: shift`}, "shift", []any{false, nil, nil}},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var answers []http.Handler
				for _, w := range c.words {
					answers = append(answers, answer(http.StatusBadRequest, `{"error":`+quoted(w)+`}`))
				}
				s := &server{chat: inTurn(append(answers, answer(http.StatusOK, text("a")+done("stop", "")))...)}
				m := s.model(t, func(_ *llm.Provider, info *domain.ModelInfo) { info.Ref.Model = c.model })
				req := porttest.SampleRequest()
				req.Thoughts = domain.ThoughtsHigh
				for range 2 {
					if line, err := got(t, m, req); line != "a .stop" {
						t.Fatalf("%q, %v", line, err)
					}
				}
				sent := s.chats(t)
				if len(sent) != len(c.values) {
					t.Fatalf("%d requests, want %d", len(sent), len(c.values))
				}
				for i, want := range c.values {
					if is := sent[i][c.field]; is != want {
						t.Errorf("request %d: %s is %v, want %v", i+1, c.field, is, want)
					}
				}
			})
		})
	}
}

// TestOptions_IDs: a server that knows no ids of calls is sent none.
func TestOptions_IDs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{chat: inTurn(answer(http.StatusBadRequest, `{"error":"json: unknown field \"tool_call_id\""}`), answer(http.StatusOK, done("stop", "")))}
		if line, err := got(t, s.model(t, nil), porttest.SampleHistory()); line != ".stop" {
			t.Fatalf("%q, %v", line, err)
		}
		bodies := s.sent["/api/chat"]
		if len(bodies) != 2 || !strings.Contains(bodies[0], `"tool_call_id":"x"`) || strings.Contains(bodies[1], `"tool_call_id"`) || strings.Contains(bodies[1], `"id"`) {
			t.Errorf("%q", bodies)
		}
	})
}

// TestNotRunning: what to do about a server that is not there is said, by a
// request and by a check.
func TestNotRunning(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // a port nobody listens on
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	p := llm.Provider{Client: llm.NewClient(llm.HTTPConfig{}), ProviderConfig: llm.ProviderConfig{Name: "fake", BaseURL: "http://" + l.Addr().String()}}
	defer p.Client.Close()
	m, err := New(p, domain.ModelInfo{Ref: domain.ModelRef{Provider: "fake", Model: "fake-1"}})
	if err != nil {
		t.Fatal(err)
	}
	_, asked := got(t, m, porttest.SampleRequest())
	_, probed := Opener().Probe(t.Context(), p)
	for name, err := range map[string]error{"ask": asked, "probe": probed} {
		if !domain.HasCode(err, domain.Unavailable) || !strings.Contains(err.Error(), "ollama serve") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestProbe: the models of a server are listed, with and without a key.
func TestProbe(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if key := req.Header.Get("Authorization"); req.URL.Path != "/api/tags" || req.Method != http.MethodGet || (key != "" && key != "Bearer good") {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		_, _ = w.Write([]byte(`{"models":[{"name":"b:latest"},{"model":"a:1b"},{"name":"b:latest"},{}]}`))
	}))
	defer server.Close()
	for _, c := range []struct {
		name, path, key string
		code            domain.Code
		want            string
	}{
		{"plain", "", "", 0, "a:1b b:latest"},
		{"address of the compatible wire", "/v1", "", 0, "a:1b b:latest"},
		{"a key", "/api/", "good", 0, "a:1b b:latest"},
		{"a wrong key", "", "bad-key-0123", domain.AuthRequired, ""},
	} {
		p := llm.Provider{Client: llm.NewClient(llm.HTTPConfig{}), ProviderConfig: llm.ProviderConfig{Name: "fake", BaseURL: server.URL + c.path}}
		if c.key != "" {
			p.APIKey = func() (string, error) { return c.key, nil }
		}
		names, err := Opener().Probe(t.Context(), p)
		if strings.Join(names, " ") != c.want || (err != nil) != (c.code != 0) || err != nil && !domain.HasCode(err, c.code) {
			t.Errorf("%s: %q, %v", c.name, names, err)
		}
		p.Client.Close()
	}
}

func TestAddress(t *testing.T) {
	for base, want := range map[string]string{
		"": DefaultURL, "http://box:11434": "http://box:11434", "http://box:11434/": "http://box:11434", "http://box:11434/v1": "http://box:11434",
		"http://box:11434/v1/": "http://box:11434", "http://box/api": "http://box", "http://box/api/chat": "http://box", "http://box/ollama/api/": "http://box/ollama",
		"http://box/v1/chat/completions": "http://box", "https://ollama.com": "https://ollama.com", "https://ollama.com/api?x=1#y": "https://ollama.com",
		"box:11434": "", "ftp://box": "", "http://": "", "://": "",
	} {
		got, err := address(llm.ProviderConfig{Name: "fake", BaseURL: base})
		if got != want || (err != nil) != (want == "") {
			t.Errorf("%q: %q, %v, want %q", base, got, err, want)
		}
		if err != nil && (!domain.HasCode(err, domain.InvalidArgument) || !strings.Contains(err.Error(), "providers.fake.base_url")) {
			t.Errorf("%q: %v", base, err)
		}
	}
}
