package responses

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/berth-dev/berth/adapters/llm"
	"github.com/berth-dev/berth/core/domain"
	"github.com/berth-dev/berth/core/ports/porttest"
)

// update rewrites golden files.
var update = flag.Bool("update", false, "rewrite golden files")

func testModel(t *testing.T, change func(*llm.Provider, *domain.ModelInfo)) *Model {
	t.Helper()
	p := llm.Provider{ProviderConfig: llm.ProviderConfig{Name: "fake", BaseURL: "http://fake.invalid/v1"}}
	info := domain.ModelInfo{Ref: domain.ModelRef{Provider: "fake", Model: "fake-1"}, Images: true, Thoughts: true}
	if change != nil {
		change(&p, &info)
	}
	m, err := New(p, info)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// rendered returns the items of a request, one a line.
func rendered(t *testing.T, m *Model, req domain.ModelRequest, dropped option) []string {
	t.Helper()
	data, err := m.render(req, dropped)
	if err != nil {
		t.Fatal(err)
	}
	var b struct {
		Input []json.RawMessage `json:"input"`
	}
	if err := json.Unmarshal(data, &b); err != nil {
		t.Fatalf("%v in %s", err, data)
	}
	var out []string
	for _, item := range b.Input {
		out = append(out, string(item))
	}
	return out
}

func TestRender_Input(t *testing.T) {
	a := domain.ModelCall{ID: "ours-1", ProviderID: "x", Name: "f", Args: []byte(`{"p":"<a>"}`)}
	b := domain.ModelCall{ID: "ours-2", ProviderID: "x", Name: "g"}
	png := domain.Image{MIME: "image/png", Data: []byte("png")}
	wav := domain.Audio{MIME: "audio/x-wav", Data: []byte("wav")}
	says := func(s string) string {
		return `{"type":"message","role":"user","content":[{"type":"input_text","text":` + js(s) + `}]}`
	}
	for _, tc := range []struct {
		name string
		msgs []domain.ModelMessage
		want []string
	}{
		{"a question", []domain.ModelMessage{user("hi")}, []string{says("hi")}},
		{"messages of the user in a row", []domain.ModelMessage{user("one"), user("two")}, []string{says("one\n\ntwo")}},
		{"a message of nothing", []domain.ModelMessage{domain.UserInput{Blocks: []domain.Block{domain.Text{}}}}, []string{says(" ")}},
		{"a reply of nothing but thoughts", []domain.ModelMessage{user("q"), domain.ModelReply{Thought: "hm"}, user("r")}, []string{says("q\n\nr")}},
		{"calls whose ids repeat", []domain.ModelMessage{user("q"), domain.ModelReply{Text: "t", Calls: []domain.ModelCall{a, b}}, domain.ToolOutput{Call: b}, domain.ToolOutput{Call: a, Text: "1"}}, []string{
			says("q"), `{"type":"message","role":"assistant","content":"t"}`,
			`{"type":"function_call","call_id":"x","name":"f","arguments":"{\"p\":\"<a>\"}"}`, `{"type":"function_call","call_id":"ours-2","name":"g","arguments":"{}"}`,
			`{"type":"function_call_output","call_id":"ours-2","output":"(no output)"}`, `{"type":"function_call_output","call_id":"x","output":"1"}`}},
		{"an image and a sound", []domain.ModelMessage{domain.UserInput{Blocks: []domain.Block{domain.Text{Text: "see"}, png, wav}}}, []string{
			`{"type":"message","role":"user","content":[{"type":"input_text","text":"see"},{"type":"input_image","image_url":"data:image/png;base64,cG5n","detail":"auto"},{"type":"input_text","text":"[Audio: audio/x-wav]"}]}`}},
		{"a tool's picture", []domain.ModelMessage{user("q"), domain.ModelReply{Calls: []domain.ModelCall{a}}, domain.ToolOutput{Call: a, Text: "a dot", Media: []domain.Block{png, wav}}}, []string{
			says("q"), `{"type":"function_call","call_id":"x","name":"f","arguments":"{\"p\":\"<a>\"}"}`,
			`{"type":"function_call_output","call_id":"x","output":[{"type":"input_text","text":"a dot"},{"type":"input_image","image_url":"data:image/png;base64,cG5n","detail":"auto"},{"type":"input_text","text":"[Audio: audio/x-wav]"}]}`}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := rendered(t, testModel(t, nil), domain.ModelRequest{Messages: tc.msgs}, 0)
			if strings.Join(got, "\n") != strings.Join(tc.want, "\n") {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(tc.want, "\n"))
			}
		})
	}
	deaf := rendered(t, testModel(t, func(_ *llm.Provider, i *domain.ModelInfo) { i.Images, i.Audio = false, true }),
		domain.ModelRequest{Messages: []domain.ModelMessage{domain.UserInput{Blocks: []domain.Block{png, wav}}}}, 0)
	if want := `{"type":"message","role":"user","content":[{"type":"input_text","text":"[Image: image/png]\n\n[Audio: audio/x-wav]"}]}`; deaf[0] != want {
		t.Errorf("a model that does not see, and is said to hear: %s", deaf[0])
	}
}

// TestRender_Thoughts: how much to think is said to models that think.
func TestRender_Thoughts(t *testing.T) {
	for _, c := range []struct {
		name    string
		thinks  bool
		level   domain.ThoughtLevel
		dropped option
		want    string
	}{
		{"the provider's default", true, "", 0, `{"summary":"auto"}`},
		{"high", true, domain.ThoughtsHigh, 0, `{"effort":"high","summary":"auto"}`},
		{"off", true, domain.ThoughtsOff, 0, `{"effort":"none","summary":"auto"}`},
		{"without summaries", true, domain.ThoughtsLow, dropSummary, `{"effort":"low"}`},
		{"without anything", true, "", dropSummary, ``},
		{"a model that does not think", false, domain.ThoughtsHigh, 0, ``},
	} {
		m := testModel(t, func(_ *llm.Provider, i *domain.ModelInfo) { i.Thoughts = c.thinks })
		data, err := m.render(domain.ModelRequest{Thoughts: c.level, Messages: []domain.ModelMessage{user("q")}}, c.dropped)
		var b struct {
			Reasoning json.RawMessage `json:"reasoning"`
		}
		if err != nil || json.Unmarshal(data, &b) != nil || string(b.Reasoning) != c.want {
			t.Errorf("%s: %s, %v", c.name, b.Reasoning, err)
		}
	}
}

// TestRender_Golden is a whole request as it goes over the wire.
func TestRender_Golden(t *testing.T) {
	data, err := testModel(t, nil).render(porttest.SampleHistory(), 0)
	if err != nil {
		t.Fatal(err)
	}
	var pretty bytes.Buffer
	if err := json.Indent(&pretty, data, "", "  "); err != nil {
		t.Fatal(err)
	}
	pretty.WriteByte('\n')
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

func TestNew_Address(t *testing.T) {
	for base, want := range map[string]string{
		"":                               "https://api.openai.com/v1/responses",
		"http://127.0.0.1:1234/v1/":      "http://127.0.0.1:1234/v1/responses",
		"https://x.invalid/v1/responses": "https://x.invalid/v1/responses",
		"https://x.invalid/v1?api-version=preview": "https://x.invalid/v1/responses?api-version=preview",
		"localhost/v1": "", "ftp://x/v1": "", "http://": "", "http://[::1": "", "http://a b/": "",
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

// TestAuthorize: Azure wants the key in a header of its own.
func TestAuthorize(t *testing.T) {
	for address, want := range map[string]string{
		"https://api.openai.com/v1/responses":               "Authorization",
		"https://acme.openai.azure.com/openai/v1/responses": "Api-Key",
		"https://azure.com.invalid/v1/responses":            "Authorization",
	} {
		h := http.Header{}
		authorize(address)(h, "key")
		if !strings.HasSuffix(h.Get(want), "key") || len(h) != 1 {
			t.Errorf("%s: %v", address, h)
		}
	}
}

// picky is a server that refuses what a test names and records requests.
type picky struct {
	refuse func(body string) string // the refusal, "" accepts
	seen   []string
}

func (p *picky) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	body, _ := io.ReadAll(req.Body)
	p.seen = append(p.seen, string(body))
	if words := p.refuse(string(body)); words != "" {
		w.WriteHeader(http.StatusBadRequest)
		_, _ = fmt.Fprint(w, words)
		return
	}
	_, _ = io.WriteString(w, data(text(0, "ok"), completed()))
}

// TestOptions: a server that refuses an optional field is asked again without
// it, at once and without a word, and is not offered it again.
func TestOptions(t *testing.T) {
	has := func(field, param, words string) func(string) string {
		return func(body string) string {
			if strings.Contains(body, field) {
				return `{"error":{"message":` + js(words) + `,"type":"invalid_request_error","param":` + js(param) + `,"code":null}}`
			}
			return ""
		}
	}
	for _, c := range []struct {
		name   string
		level  domain.ThoughtLevel
		refuse func(string) string
		want   string // the end of each of two requests
		asked  int
	}{
		{"include", "", has(`"include"`, "include", "Encrypted content is not supported with this model."), "ok .stop", 3},
		{"summary", "", has(`"summary":"auto"`, "reasoning.summary", "Your organization must be verified to generate reasoning summaries."), "ok .stop", 3},
		{"summary of a value it does not know", "", has(`"summary":"auto"`, "reasoning.summary", "Unsupported value: 'auto' is not supported with this model."), "ok .stop", 3},
		{"reasoning", "", has(`"reasoning":`, "reasoning", "Unrecognized request argument supplied: 'reasoning'"), "ok .stop", 3},
		{"effort", domain.ThoughtsMedium, has(`"effort"`, "reasoning.effort", "Unsupported parameter: 'reasoning.effort' is not supported with this model."), "ok .stop", 3},
		{"the lowest effort", domain.ThoughtsOff, has(`"none"`, "reasoning.effort", "Unsupported value: 'none' is not supported with the 'o3' model. Supported values are: 'low', 'medium', and 'high'."), "ok .stop", 3},
		{"cache", "", has(`"prompt_cache_key"`, "prompt_cache_key", "Unknown parameter: 'prompt_cache_key'."), "ok .stop", 3},
		{"limit", "", has(`"max_output_tokens"`, "", "Unsupported parameter: max_output_tokens"), "ok .stop", 3},
		{"store", "", has(`"store"`, "", "extra fields not permitted: store"), "ok .stop", 3},
		{"something else", "", func(string) string { return `{"error":{"message":"unknown tool schema"}}` }, "!provider rejected", 2},
		{"whatever is sent", "", func(string) string { return `{"error":{"message":"Unknown parameter: 'include'"}}` }, "!provider rejected", 3},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := &picky{refuse: c.refuse}
				m := open(porttest.T(t), server)
				req := porttest.SampleRequest()
				req.Thoughts = c.level
				for range 2 {
					if line, err := got(t, m, req); line != c.want {
						t.Errorf("%q, %v", line, err)
					}
				}
				if len(server.seen) != c.asked {
					t.Errorf("%d requests were sent, want %d:\n%s", len(server.seen), c.asked, strings.Join(server.seen, "\n"))
				}
			})
		})
	}
}

// TestOptions_Kept: reasoning that cannot be read any more is left out of the
// request, and of that one alone.
func TestOptions_Kept(t *testing.T) {
	history := domain.ModelRequest{Messages: []domain.ModelMessage{user("q"), domain.ModelReply{Text: "a", Opaque: &domain.Opaque{
		Provider: "fake", Data: []byte(`{"model":"fake-1","items":[{"reasoning":{"type":"reasoning","id":"r","encrypted_content":"stale"}},{"text":1}]}`),
	}}, user("r")}}
	for _, words := range []string{
		"The encrypted content gAAA could not be verified. Reason: Encrypted content could not be decrypted or parsed.",
		"Item with id 'r' not found. Items are not persisted when `store` is set to false.",
	} {
		synctest.Test(t, func(t *testing.T) {
			server := &picky{refuse: func(body string) string {
				if strings.Contains(body, "stale") {
					return `{"error":{"message":` + js(words) + `,"code":"invalid_encrypted_content"}}`
				}
				return ""
			}}
			m := open(porttest.T(t), server)
			for range 2 {
				if line, err := got(t, m, history); line != "ok .stop" {
					t.Errorf("%q, %v", line, err)
				}
			}
			if len(server.seen) != 4 || m.dropped.Load() != 0 {
				t.Errorf("%d requests were sent, %b is dropped for good", len(server.seen), m.dropped.Load())
			}
		})
	}
}

// TestOpaque: what a server gave with a reply it gets back, each item in its
// place; no other model and no other provider does.
func TestOpaque(t *testing.T) {
	think := func(i int) string {
		return `{"id":"i` + fmt.Sprint(i) + `","type":"reasoning","encrypted_content":"g<` + fmt.Sprint(i) + `>&=","summary":[{"type":"summary_text","text":"hm \u00e9"}]}`
	}
	phased := strings.Replace(said(1, "look 😀"), `"role"`, `"phase":"commentary","role"`, 1)
	stream := data(finished(0, think(0)), finished(1, phased), finished(2, think(2)), finished(3, call(3, "a", "f", `{}`)),
		finished(4, said(4, "done")), finished(5, think(5)), completed())
	m := open(porttest.T(t), answer("text/event-stream", stream))
	var r domain.ModelReply
	for ev, err := range m.Stream(t.Context(), porttest.SampleRequest()) {
		if err != nil {
			t.Fatal(err)
		}
		switch ev := ev.(type) {
		case domain.TextDelta:
			r.Text += ev.Text
		case domain.CallRequested:
			ev.Call.ID = "ours-1"
			r.Calls = append(r.Calls, ev.Call)
		case domain.Finish:
			r.Opaque = ev.Opaque
		}
	}
	if r.Text != "look 😀\n\ndone" {
		t.Fatalf("the text is %q", r.Text)
	}
	plain := []string{
		`{"type":"message","role":"assistant","content":"look 😀\n\ndone"}`, `{"type":"function_call","call_id":"a","name":"f","arguments":"{}"}`,
	}
	ordered := []string{
		`{"type":"message","role":"assistant","content":"look 😀","phase":"commentary"}`, `{"type":"function_call","call_id":"a","name":"f","arguments":"{}"}`,
		`{"type":"message","role":"assistant","content":"done"}`,
	}
	longer := r
	longer.Text += "!"
	fewer := r
	fewer.Calls = nil
	for _, c := range []struct {
		name    string
		m       *Model
		reply   domain.ModelReply
		dropped option
		want    []string
	}{
		{"the same model", m, r, 0, []string{think(0), ordered[0], think(2), ordered[1], ordered[2]}},
		{"the same model, unread", m, r, dropKept, ordered},
		{"another model", testModel(t, func(_ *llm.Provider, i *domain.ModelInfo) { i.Ref.Model = "plain" }), r, 0, plain},
		{"another provider", testModel(t, func(_ *llm.Provider, i *domain.ModelInfo) { i.Ref.Provider = "else" }), r, 0, plain},
		{"a text that is another", m, longer, 0, []string{strings.Replace(plain[0], "done", "done!", 1), plain[1]}},
		{"calls that are gone", m, fewer, 0, plain[:1]},
	} {
		t.Run(c.name, func(t *testing.T) {
			items := rendered(t, c.m, domain.ModelRequest{Messages: []domain.ModelMessage{user("q"), c.reply}}, c.dropped)[1:]
			if strings.Join(items, "\n") != strings.Join(c.want, "\n") {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(items, "\n"), strings.Join(c.want, "\n"))
			}
		})
	}
}

// TestOpaque_Foreign: data that is damaged or not ours is left alone.
func TestOpaque_Foreign(t *testing.T) {
	m := testModel(t, nil)
	for _, o := range []*domain.Opaque{
		nil, {}, {Provider: "fake", Data: []byte("{")}, {Provider: "fake", Data: []byte(`{"model":"old","items":[{"text":1}]}`)},
		{Provider: "fake", Data: []byte(`{"model":"fake-1","items":[{"text":-1},{"text":2}]}`)}, {Provider: "fake", Data: []byte(`{"model":"fake-1","items":[{"text":1},{"call":true}]}`)},
	} {
		got := rendered(t, m, domain.ModelRequest{Messages: []domain.ModelMessage{domain.ModelReply{Text: "a", Opaque: o}}}, 0)
		if len(got) != 1 || got[0] != `{"type":"message","role":"assistant","content":"a"}` {
			t.Errorf("%+v gave %s", o, got)
		}
	}
}
