package openai

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/berth-dev/berth/adapters/llm"
	"github.com/berth-dev/berth/core/domain"
	"github.com/berth-dev/berth/core/ports/porttest"
)

// rendered returns the messages of a request, one a line.
func rendered(t *testing.T, m *Model, req domain.ModelRequest) []string {
	t.Helper()
	data, err := m.render(req, option(m.dropped.Load()))
	if err != nil {
		t.Fatal(err)
	}
	var body struct {
		Messages []json.RawMessage `json:"messages"`
	}
	if err := json.Unmarshal(data, &body); err != nil {
		t.Fatalf("%v in %s", err, data)
	}
	var out []string
	for _, msg := range body.Messages {
		out = append(out, string(msg))
	}
	return out
}

func user(s string) domain.UserInput {
	return domain.UserInput{Blocks: []domain.Block{domain.Text{Text: s}}}
}

func testModel(t *testing.T, change func(*llm.Provider, *domain.ModelInfo)) *Model {
	t.Helper()
	p := llm.Provider{ProviderConfig: llm.ProviderConfig{Name: "fake", BaseURL: "http://fake.invalid/v1"}}
	info := domain.ModelInfo{Ref: domain.ModelRef{Provider: "fake", Model: "fake-1"}, Images: true}
	if change != nil {
		change(&p, &info)
	}
	m, err := New(p, info)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestRender_Messages(t *testing.T) {
	a := domain.ModelCall{ID: "ours-1", ProviderID: "x", Name: "f", Args: []byte(`{"p":"<a>"}`)}
	b := domain.ModelCall{ID: "ours-2", ProviderID: "x", Name: "g", Args: []byte(`{}`)}
	c := domain.ModelCall{ID: "ours-3", Name: "h"}
	png := domain.Image{MIME: "image/png", Data: []byte("png")}
	for _, tc := range []struct {
		name string
		msgs []domain.ModelMessage
		want []string
	}{
		{"a question", []domain.ModelMessage{user("hi <b>")}, []string{`{"role":"user","content":"hi <b>"}`}},
		{"messages of the user in a row", []domain.ModelMessage{user("one"), user("two")}, []string{`{"role":"user","content":"one\n\ntwo"}`}},
		{"replies in a row", []domain.ModelMessage{user("q"), domain.ModelReply{Text: "one"}, domain.ModelReply{Text: "two", Calls: []domain.ModelCall{a}}, domain.ToolOutput{Call: a, Text: "r"}},
			[]string{`{"role":"user","content":"q"}`, `{"role":"assistant","content":"one\n\ntwo","tool_calls":[{"id":"x","type":"function","function":{"name":"f","arguments":"{\"p\":\"<a>\"}"}}]}`, `{"role":"tool","tool_call_id":"x","content":"r"}`}},
		{"a reply without content", []domain.ModelMessage{user("q"), domain.ModelReply{Thought: "hm"}, user("r")}, []string{`{"role":"user","content":"q\n\nr"}`}},
		{"calls whose ids repeat or are missing", []domain.ModelMessage{
			user("q"), domain.ModelReply{Calls: []domain.ModelCall{a, b, c}}, domain.ToolOutput{Call: a, Text: "1"}, domain.ToolOutput{Call: b, Text: "2"}, domain.ToolOutput{Call: c}},
			[]string{`{"role":"user","content":"q"}`,
				`{"role":"assistant","content":null,"tool_calls":[{"id":"x","type":"function","function":{"name":"f","arguments":"{\"p\":\"<a>\"}"}},{"id":"ours-2","type":"function","function":{"name":"g","arguments":"{}"}},{"id":"ours-3","type":"function","function":{"name":"h","arguments":"{}"}}]}`,
				`{"role":"tool","tool_call_id":"x","content":"1"}`, `{"role":"tool","tool_call_id":"ours-2","content":"2"}`, `{"role":"tool","tool_call_id":"ours-3","content":"(no output)"}`}},
		{"outputs out of order", []domain.ModelMessage{user("q"), domain.ModelReply{Calls: []domain.ModelCall{a, b}}, domain.ToolOutput{Call: b, Text: "2"}, domain.ToolOutput{Call: a, Text: "1"}},
			[]string{`{"role":"user","content":"q"}`,
				`{"role":"assistant","content":null,"tool_calls":[{"id":"x","type":"function","function":{"name":"f","arguments":"{\"p\":\"<a>\"}"}},{"id":"ours-2","type":"function","function":{"name":"g","arguments":"{}"}}]}`,
				`{"role":"tool","tool_call_id":"ours-2","content":"2"}`, `{"role":"tool","tool_call_id":"x","content":"1"}`}},
		{"calls without any id", []domain.ModelMessage{user("q"), domain.ModelReply{Calls: []domain.ModelCall{{Name: "f"}, {Name: "f"}}}},
			[]string{`{"role":"user","content":"q"}`, `{"role":"assistant","content":null,"tool_calls":[{"id":"call_1","type":"function","function":{"name":"f","arguments":"{}"}},{"id":"call_2","type":"function","function":{"name":"f","arguments":"{}"}}]}`}},
		{"an image", []domain.ModelMessage{domain.UserInput{Blocks: []domain.Block{domain.Text{Text: "see"}, png, domain.Text{Text: "there"}}}},
			[]string{`{"role":"user","content":[{"type":"text","text":"see"},{"type":"image_url","image_url":{"url":"data:image/png;base64,cG5n"}},{"type":"text","text":"there"}]}`}},
		{"a sound for a model that cannot hear", []domain.ModelMessage{domain.UserInput{Blocks: []domain.Block{domain.Audio{MIME: "audio/wav", Data: []byte("x")}}}},
			[]string{`{"role":"user","content":"[Audio: audio/wav]"}`}},
		{"a resource", []domain.ModelMessage{domain.UserInput{Blocks: []domain.Block{domain.Text{Text: "see"}, domain.Resource{URI: "file:///a", MIME: "text/plain", Text: "body"}}}},
			[]string{`{"role":"user","content":"see\n\n<resource uri=\"file:///a\" type=\"text/plain\">\nbody\n</resource>"}`}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := rendered(t, testModel(t, nil), domain.ModelRequest{Messages: tc.msgs})
			if strings.Join(got, "\n") != strings.Join(tc.want, "\n") {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(tc.want, "\n"))
			}
		})
	}
}

// TestRender_Golden is a whole request as it goes over the wire.
func TestRender_Golden(t *testing.T) {
	m := testModel(t, nil)
	data, err := m.render(porttest.SampleHistory(), 0)
	if err != nil {
		t.Fatal(err)
	}
	var pretty bytes.Buffer
	if err := json.Indent(&pretty, data, "", "  "); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join("testdata", "history.json")
	if *update {
		if err := os.WriteFile(path, pretty.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if pretty.String() != string(want) {
		t.Errorf("the request changed; look at it and run with -update:\n%s", pretty.String())
	}
}

// TestRender_Senses: what a model can see and hear is sent as it is, else as
// a mark.
func TestRender_Senses(t *testing.T) {
	req := domain.ModelRequest{Messages: []domain.ModelMessage{domain.UserInput{Blocks: []domain.Block{
		domain.Image{MIME: "image/png", Data: []byte("png")}, domain.Audio{MIME: "audio/mpeg", Data: []byte("mp3")},
	}}}}
	for name, c := range map[string]struct {
		images, audio bool
		want          string
	}{
		"blind and deaf": {false, false, `{"role":"user","content":"[Image: image/png]\n\n[Audio: audio/mpeg]"}`},
		"sees":           {true, false, `{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,cG5n"}},{"type":"text","text":"[Audio: audio/mpeg]"}]}`},
		"hears":          {false, true, `{"role":"user","content":[{"type":"text","text":"[Image: image/png]"},{"type":"input_audio","input_audio":{"data":"bXAz","format":"mp3"}}]}`},
	} {
		m := testModel(t, func(_ *llm.Provider, info *domain.ModelInfo) { info.Images, info.Audio = c.images, c.audio })
		if got := rendered(t, m, req); got[0] != c.want {
			t.Errorf("%s: %s", name, got[0])
		}
	}
}

func TestNew_Address(t *testing.T) {
	for base, want := range map[string]string{
		"http://127.0.0.1:11434/v1":             "http://127.0.0.1:11434/v1/chat/completions",
		"https://openrouter.ai/api/v1/":         "https://openrouter.ai/api/v1/chat/completions",
		"https://x.invalid":                     "https://x.invalid/chat/completions",
		"https://x.invalid/v1/chat/completions": "https://x.invalid/v1/chat/completions",
		"https://x.invalid/v1?api-version=1":    "https://x.invalid/v1/chat/completions?api-version=1",
		"":                                      "", "127.0.0.1:11434": "", "localhost/v1": "", "ftp://x/v1": "", "http://": "", "http://[::1": "", "http://a b/": "",
	} {
		m, err := New(llm.Provider{ProviderConfig: llm.ProviderConfig{Name: "p", BaseURL: base}}, domain.ModelInfo{})
		switch {
		case want == "" && (!domain.HasCode(err, domain.InvalidArgument) || !strings.Contains(err.Error(), "providers.p.base_url")):
			t.Errorf("%q: error %v", base, err)
		case want != "" && (err != nil || m.url != want):
			t.Errorf("%q: %v, error %v", base, m, err)
		}
	}
}

// TestWarnings: a window that Ollama would ignore is not set in silence
// (A-PROV-10).
func TestWarnings(t *testing.T) {
	models := map[string]llm.ModelFacts{"a": {ContextWindow: 32000}, "b": {}}
	ms, err := llm.New(llm.Config{Providers: []llm.ProviderConfig{
		{Name: "local", Type: "x", BaseURL: "http://127.0.0.1:11434/v1", Models: models},
		{Name: "other", Type: "x", BaseURL: "http://127.0.0.1:8080/v1", Models: models},
		{Name: "empty", Type: "x"},
	}}, map[string]llm.Opener{"x": Opener()})
	if err != nil {
		t.Fatal(err)
	}
	got := ms.Warnings()
	if len(got) != 1 || !strings.Contains(got[0], `providers.local.models."a".context_window`) || !strings.Contains(got[0], "OLLAMA_CONTEXT_LENGTH=32000") {
		t.Errorf("%q", got)
	}
}

// picky is a server that refuses what a test names and records requests.
type picky struct {
	refuse func(body map[string]any) string // words of a refusal; "" accepts
	reply  string
	seen   []map[string]any
}

func (p *picky) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	var body map[string]any
	data, _ := io.ReadAll(req.Body)
	if err := json.Unmarshal(data, &body); err != nil {
		http.Error(w, err.Error(), http.StatusTeapot)
		return
	}
	p.seen = append(p.seen, body)
	if words := p.refuse(body); words != "" {
		w.WriteHeader(http.StatusBadRequest)
		_, _ = fmt.Fprintf(w, `{"error":{"message":%q}}`, words)
		return
	}
	_, _ = io.WriteString(w, p.reply)
}

// TestOptions: a server that refuses an optional field is asked again without
// it, at once and without a word, and is not offered it again.
func TestOptions(t *testing.T) {
	for name, c := range map[string]struct {
		refuse func(map[string]any) string
		want   string // the end of each of two requests
		asked  int
	}{
		"stream_options": {func(b map[string]any) string {
			if _, ok := b["stream_options"]; ok {
				return "Unrecognized request argument supplied: stream_options"
			}
			return ""
		}, "ok .stop", 3},
		"max_tokens": {func(b map[string]any) string {
			if _, ok := b["max_tokens"]; ok {
				return "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."
			}
			if b["max_completion_tokens"] != 1000.0 {
				return "no limit was sent"
			}
			return ""
		}, "ok .stop", 3},
		"both": {func(b map[string]any) string {
			if _, ok := b["stream_options"]; ok {
				return "extra fields not permitted: stream_options"
			}
			if _, ok := b["max_tokens"]; ok {
				return "use max_completion_tokens, not max_tokens"
			}
			return ""
		}, "ok .stop", 4},
		"something else": {func(map[string]any) string { return "unknown tool schema" }, "!provider rejected", 2},
		"whatever is sent": {func(map[string]any) string {
			return "Unrecognized request argument supplied: stream_options"
		}, "!provider rejected", 3},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := &picky{refuse: c.refuse, reply: data(text("ok"), ended("stop"), done)}
				m := open(porttest.T(t), serve(porttest.T(t), server))
				for range 2 {
					if line, err := got(t, m, porttest.SampleRequest()); strings.TrimSpace(line) != c.want {
						t.Errorf("%q, %v", line, err)
					}
				}
				if len(server.seen) != c.asked {
					t.Errorf("%d requests were sent, want %d", len(server.seen), c.asked)
				}
			})
		})
	}
}

// turnWithTools runs one tool turn against a server and returns the request
// that follows it, as sent by next.
func turnWithTools(t *testing.T, reply string, next *Model) []string {
	t.Helper()
	first := open(porttest.T(t), serve(porttest.T(t), answer("text/event-stream", reply)))
	var r domain.ModelReply
	for ev, err := range first.Stream(t.Context(), porttest.SampleRequest()) {
		if err != nil {
			t.Fatal(err)
		}
		switch ev := ev.(type) {
		case domain.TextDelta:
			r.Text += ev.Text
		case domain.ThoughtDelta:
			r.Thought += ev.Text
		case domain.CallRequested:
			ev.Call.ID = domain.CallID(fmt.Sprintf("ours-%d", len(r.Calls)+1))
			r.Calls = append(r.Calls, ev.Call)
		case domain.Finish:
			r.Opaque = ev.Opaque
		}
	}
	req := domain.ModelRequest{Messages: []domain.ModelMessage{user("q"), r}}
	for _, c := range r.Calls {
		req.Messages = append(req.Messages, domain.ToolOutput{Call: c, Text: "r"})
	}
	if next == nil {
		next = first
	}
	return rendered(t, next, req)
}

// TestOpaque: what a server gave with a reply it gets back, byte by byte, with
// the tool turns; no other model and no other provider does (A-PROV-6, 7).
func TestOpaque(t *testing.T) {
	call := calling(`{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}`)
	other := testModel(t, func(_ *llm.Provider, info *domain.ModelInfo) { info.Ref.Model = "plain" })
	elsewhere := testModel(t, func(p *llm.Provider, info *domain.ModelInfo) { info.Ref.Provider = "else" })
	for _, c := range []struct {
		name  string
		reply string
		next  *Model
		want  string // the assistant's message
	}{
		{"DeepSeek wants its reasoning", data(deltaOf(`{"reasoning_content":"I \ud83d"}`), deltaOf(`{"reasoning_content":"\ude00 think <b>\n"}`), call, ended("tool_calls")), nil,
			`{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}}],"reasoning_content":"I 😀 think <b>\n"}`},
		{"under the name it came by", data(deltaOf(`{"reasoning":"hm"}`), call, ended("tool_calls")), nil,
			`{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}}],"reasoning":"hm"}`},
		{"a model without thinking does not", data(deltaOf(`{"reasoning_content":"hm"}`), call, ended("tool_calls")), other,
			`{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}}]}`},
		{"another provider does not", data(deltaOf(`{"reasoning_content":"hm"}`), call, ended("tool_calls")), elsewhere,
			`{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}}]}`},
		{"not without tools", data(deltaOf(`{"reasoning_content":"hm"}`), text("a"), ended("stop")), nil, `{"role":"assistant","content":"a"}`},
		{"OpenRouter wants its details, joined", data(
			deltaOf(`{"reasoning":"I th","reasoning_details":[{"type":"reasoning.text","text":"I th","format":"f","index":0}]}`),
			deltaOf(`{"reasoning":"ink","reasoning_details":[{"type":"reasoning.text","text":"ink","format":"f","index":0}]}`),
			deltaOf(`{"reasoning_details":[{"type":"reasoning.text","signature":"s1","format":"f","index":0}]}`),
			deltaOf(`{"reasoning_details":[{"type":"reasoning.encrypted","data":"e=","index":1}]}`), call, ended("tool_calls")), nil,
			`{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}}],"reasoning_details":[{"format":"f","index":0,"signature":"s1","text":"I think","type":"reasoning.text"},{"type":"reasoning.encrypted","data":"e=","index":1}]}`},
		{"Gemini wants its signatures", data(
			deltaOf(`{"content":"a","extra_content":{"google":{"thought_signature":"m="}}}`),
			calling(`{"index":0,"id":"a","function":{"name":"f","arguments":"{}"},"extra_content":{"google": {"thought_signature":"c1="}}},{"index":1,"id":"b","function":{"name":"g","arguments":"{}"}}`), ended("tool_calls")), nil,
			`{"role":"assistant","content":"a","tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"},"extra_content":{"google":{"thought_signature":"c1="}}},{"id":"b","type":"function","function":{"name":"g","arguments":"{}"}}],"extra_content":{"google":{"thought_signature":"m="}}}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				if msgs := turnWithTools(t, c.reply, c.next); msgs[1] != c.want {
					t.Errorf("got\n%s\nwant\n%s", msgs[1], c.want)
				}
			})
		})
	}
}

// TestOpaque_Foreign: data that is damaged or not ours is left alone.
func TestOpaque_Foreign(t *testing.T) {
	m := testModel(t, nil)
	for _, o := range []*domain.Opaque{nil, {}, {Provider: "fake", Data: []byte("{")}, {Provider: "fake", Data: []byte(`{"model":"old","field":"reasoning"}`)}} {
		if k := m.kept(o); !reflect.DeepEqual(k, keepsake{}) {
			t.Errorf("%+v gave %+v", o, k)
		}
	}
}

// TestOptions_Thoughts: a server that gives reasoning and refuses it back is
// asked without it, and one that insists on it is not.
func TestOptions_Thoughts(t *testing.T) {
	history := func() domain.ModelRequest {
		c := domain.ModelCall{ID: "1", ProviderID: "a", Name: "f", Args: []byte("{}")}
		return domain.ModelRequest{Messages: []domain.ModelMessage{user("q"), domain.ModelReply{
			Thought: "hm", Calls: []domain.ModelCall{c}, Opaque: &domain.Opaque{Provider: "fake", Data: []byte(`{"model":"fake-1","field":"reasoning_content"}`)},
		}, domain.ToolOutput{Call: c, Text: "r"}}}
	}
	holds := func(body map[string]any) bool { return strings.Contains(fmt.Sprint(body), "reasoning_content") }
	for words, want := range map[string]string{
		"property 'reasoning_content' is unsupported":                               "ok .stop",
		"The reasoning_content in the thinking mode must be passed back to the API": "!provider rejected",
	} {
		synctest.Test(t, func(t *testing.T) {
			server := &picky{reply: data(text("ok"), ended("stop")), refuse: func(b map[string]any) string {
				if holds(b) {
					return words
				}
				return ""
			}}
			m := open(porttest.T(t), serve(porttest.T(t), server))
			if line, err := got(t, m, history()); strings.TrimSpace(line) != want {
				t.Errorf("%s: %q, %v", words, line, err)
			}
		})
	}
}
