package gemini

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/berth-dev/berth/adapters/llm"
	"github.com/berth-dev/berth/core/domain"
	"github.com/berth-dev/berth/core/ports/porttest"
)

// update rewrites golden files.
var update = flag.Bool("update", false, "rewrite golden files")

func user(words string) domain.UserInput {
	return domain.UserInput{Blocks: []domain.Block{domain.Text{Text: words}}}
}

// testModel returns a model that is asked nothing.
func testModel(t *testing.T, model string, change func(*domain.ModelInfo)) *Model {
	t.Helper()
	info := domain.ModelInfo{Ref: domain.ModelRef{Provider: "fake", Model: model}, Images: true, Audio: true, Thoughts: true}
	if change != nil {
		change(&info)
	}
	m, err := New(llm.Provider{ProviderConfig: llm.ProviderConfig{Name: "fake"}}, info)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// rendered returns the contents of a request, one a line.
func rendered(t *testing.T, m *Model, dropped option, msgs ...domain.ModelMessage) string {
	t.Helper()
	data, err := m.render(domain.ModelRequest{Messages: msgs}, dropped)
	if err != nil {
		t.Fatal(err)
	}
	var b struct {
		Contents []json.RawMessage `json:"contents"`
	}
	if err := json.Unmarshal(data, &b); err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, c := range b.Contents {
		lines = append(lines, string(c))
	}
	return strings.Join(lines, "\n")
}

func signed(parts string) *domain.Opaque {
	return &domain.Opaque{Provider: "fake", Data: []byte(`{"model":"m","parts":[` + parts + `]}`)}
}

// TestContents is the table of conversations and how they are sent.
func TestContents(t *testing.T) {
	x := domain.ModelCall{ID: "ours-1", ProviderID: "k1", Name: "f", Args: []byte(`{"p":"<a>"}`)}
	y := domain.ModelCall{ID: "ours-2", Name: "g"}
	png := domain.Image{MIME: "image/png", Data: []byte("png")}
	mp3 := domain.Audio{MIME: "audio/mpeg", Data: []byte("mp3")}
	const q = `{"role":"user","parts":[{"text":"q"}]}`
	const called = `{"role":"model","parts":[{"functionCall":{"name":"f","args":{"p":"<a>"}}},{"functionCall":{"name":"g","args":{}}}]}`
	for _, c := range []struct {
		name string
		msgs []domain.ModelMessage
		want []string
	}{
		{"users in a row", []domain.ModelMessage{user("q"), user("r")}, []string{`{"role":"user","parts":[{"text":"q"},{"text":"r"}]}`}},
		{
			"replies in a row",
			[]domain.ModelMessage{user("q"), domain.ModelReply{Text: "a"}, domain.ModelReply{Text: "b"}, user("r")},
			[]string{q, `{"role":"model","parts":[{"text":"a"},{"text":"b"}]}`, `{"role":"user","parts":[{"text":"r"}]}`},
		},
		{"only thoughts", []domain.ModelMessage{user("q"), domain.ModelReply{Thought: "hm"}, user("r")}, []string{`{"role":"user","parts":[{"text":"q"},{"text":"r"}]}`}},
		{"nothing said", []domain.ModelMessage{user("q"), domain.UserInput{}, domain.ModelReply{}}, []string{q}},
		{
			"the model first",
			[]domain.ModelMessage{domain.ModelReply{Text: "a"}, user("q")},
			[]string{`{"role":"user","parts":[{"text":"[The beginning of the conversation is left out.]"}]}`, `{"role":"model","parts":[{"text":"a"}]}`, q},
		},
		{
			"calls of another model do without ids",
			[]domain.ModelMessage{user("q"), domain.ModelReply{Text: "a", Calls: []domain.ModelCall{x}}, domain.ToolOutput{Call: x, Text: "1"}},
			[]string{
				q, `{"role":"model","parts":[{"text":"a"},{"functionCall":{"name":"f","args":{"p":"<a>"}}}]}`,
				`{"role":"user","parts":[{"functionResponse":{"name":"f","response":{"output":"1"}}}]}`,
			},
		},
		{
			"outputs out of order",
			[]domain.ModelMessage{user("q"), domain.ModelReply{Calls: []domain.ModelCall{x, y}}, domain.ToolOutput{Call: y, Text: "2", Failed: true}, domain.ToolOutput{Call: x}},
			[]string{q, called, `{"role":"user","parts":[{"functionResponse":{"name":"f","response":{"output":"(no output)"}}},{"functionResponse":{"name":"g","response":{"error":"2"}}}]}`},
		},
		{
			"an output that failed without words",
			[]domain.ModelMessage{user("q"), domain.ModelReply{Calls: []domain.ModelCall{x}}, domain.ToolOutput{Call: x, Failed: true}},
			[]string{q, `{"role":"model","parts":[{"functionCall":{"name":"f","args":{"p":"<a>"}}}]}`, `{"role":"user","parts":[{"functionResponse":{"name":"f","response":{"error":"(no output)"}}}]}`},
		},
		{
			"an output is missing",
			[]domain.ModelMessage{user("q"), domain.ModelReply{Calls: []domain.ModelCall{x, y}}, domain.ToolOutput{Call: y, Text: "2"}, user("r")},
			[]string{q, called, `{"role":"user","parts":[{"functionResponse":{"name":"f","response":{"error":"No result of this call was recorded; it may or may not have taken effect."}}},{"functionResponse":{"name":"g","response":{"output":"2"}}},{"text":"r"}]}`},
		},
		{
			"calls without any id",
			[]domain.ModelMessage{user("q"), domain.ModelReply{Calls: []domain.ModelCall{{Name: "f"}, {Name: "f"}}}, domain.ToolOutput{Call: domain.ModelCall{Name: "f"}, Text: "1"}, domain.ToolOutput{Call: domain.ModelCall{Name: "f"}, Text: "2"}},
			[]string{
				q, `{"role":"model","parts":[{"functionCall":{"name":"f","args":{}}},{"functionCall":{"name":"f","args":{}}}]}`,
				`{"role":"user","parts":[{"functionResponse":{"name":"f","response":{"output":"1"}}},{"functionResponse":{"name":"f","response":{"output":"2"}}}]}`,
			},
		},
		{
			"an output of no call",
			[]domain.ModelMessage{user("q"), domain.ToolOutput{Call: x, Text: "1", Media: []domain.Block{png}}},
			[]string{`{"role":"user","parts":[{"text":"q"},{"text":"[Output of f]\n1"},{"inlineData":{"mimeType":"image/png","data":"cG5n"}}]}`},
		},
		{
			"what is seen and heard",
			[]domain.ModelMessage{domain.UserInput{Blocks: []domain.Block{domain.Text{Text: "see"}, png, domain.Text{Text: "hear"}, mp3}}},
			[]string{`{"role":"user","parts":[{"text":"see"},{"inlineData":{"mimeType":"image/png","data":"cG5n"}},{"text":"hear"},{"inlineData":{"mimeType":"audio/mp3","data":"bXAz"}}]}`},
		},
		{
			"a tool shows, behind all responses",
			[]domain.ModelMessage{user("q"), domain.ModelReply{Calls: []domain.ModelCall{x, y}}, domain.ToolOutput{Call: x, Text: "1", Media: []domain.Block{png, mp3}}, domain.ToolOutput{Call: y, Text: "2"}},
			[]string{q, called, `{"role":"user","parts":[{"functionResponse":{"name":"f","response":{"output":"1"}}},{"functionResponse":{"name":"g","response":{"output":"2"}}},{"text":"[f shows:]"},{"inlineData":{"mimeType":"image/png","data":"cG5n"}},{"inlineData":{"mimeType":"audio/mp3","data":"bXAz"}}]}`},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got, want := rendered(t, testModel(t, "m", nil), 0, c.msgs...), strings.Join(c.want, "\n"); got != want {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
		})
	}
}

// TestContents_Media: a response holds a picture where the model can see it
// there.
func TestContents_Media(t *testing.T) {
	x := domain.ModelCall{ID: "1", Name: "f"}
	msgs := []domain.ModelMessage{user("q"), domain.ModelReply{Calls: []domain.ModelCall{x}}, domain.ToolOutput{Call: x, Media: []domain.Block{
		domain.Image{MIME: "image/PNG", Data: []byte("png")}, domain.Image{MIME: "image/tiff", Data: []byte("tif")},
	}}}
	for name, c := range map[string]struct {
		model   string
		dropped option
		blind   bool
		want    string
	}{
		"3":          {"gemini-3-pro", 0, false, `[{"functionResponse":{"name":"f","response":{"output":"(no output)"},"parts":[{"inlineData":{"mimeType":"image/png","data":"cG5n"}}]}},{"text":"[f shows:]"},{"inlineData":{"mimeType":"image/tiff","data":"dGlm"}}]`},
		"3, refused": {"gemini-3-pro", mediaBehind, false, `[{"functionResponse":{"name":"f","response":{"output":"(no output)"}}},{"text":"[f shows:]"},{"inlineData":{"mimeType":"image/png","data":"cG5n"}},{"inlineData":{"mimeType":"image/tiff","data":"dGlm"}}]`},
		"2.5":        {"gemini-2.5-pro", 0, false, `[{"functionResponse":{"name":"f","response":{"output":"(no output)"}}},{"text":"[f shows:]"},{"inlineData":{"mimeType":"image/png","data":"cG5n"}},{"inlineData":{"mimeType":"image/tiff","data":"dGlm"}}]`},
		"blind":      {"gemini-3-pro", 0, true, `[{"functionResponse":{"name":"f","response":{"output":"[Image: image/PNG]\n\n[Image: image/tiff]"}}}]`},
	} {
		m := testModel(t, c.model, func(info *domain.ModelInfo) { info.Images = !c.blind })
		if got := rendered(t, m, c.dropped, msgs...); !strings.HasSuffix(got, `{"role":"user","parts":`+c.want+`}`) {
			t.Errorf("%s: %s", name, got)
		}
	}
}

// TestContents_Kept: what the model gave with a reply it gets back with the
// parts it came with, and no other model does.
func TestContents_Kept(t *testing.T) {
	x := domain.ModelCall{ID: "ours-1", ProviderID: "k1", Name: "f", Args: []byte(`{}`)}
	y := domain.ModelCall{ID: "ours-2", Name: "g", Args: []byte(`{}`)}
	all := `{"kind":"thought","len":2,"sign":"t="},{"kind":"text","len":3},{"kind":"text","len":1,"sign":"u="},{"kind":"call","sign":"c="},{"kind":"call"},{"kind":"text","sign":"e="}`
	reply := domain.ModelReply{Thought: "hm", Text: "héb", Calls: []domain.ModelCall{x, y}, Opaque: signed(all)}
	changed := reply
	changed.Text, changed.Thought = "other", "?"
	fewer := reply
	fewer.Calls = fewer.Calls[:1]
	foreign := reply
	foreign.Opaque = &domain.Opaque{Provider: "else", Data: reply.Opaque.Data}
	damaged := reply
	damaged.Opaque = &domain.Opaque{Provider: "fake", Data: []byte("{")}
	const bare = `[{"text":"héb"},{"functionCall":{"name":"f","args":{}}},{"functionCall":{"name":"g","args":{}}}]`
	for _, c := range []struct {
		name    string
		model   string
		dropped option
		reply   domain.ModelReply
		want    string
	}{
		{"each part with its own", "m", 0, reply, `[{"text":"hm","thought":true,"thoughtSignature":"t="},{"text":"hé"},{"text":"b","thoughtSignature":"u="},{"functionCall":{"id":"k1","name":"f","args":{}},"thoughtSignature":"c="},{"functionCall":{"name":"g","args":{}}},{"text":"","thoughtSignature":"e="}]`},
		{"a text that was changed", "m", 0, changed, `[{"text":"other"},{"text":"","thoughtSignature":"u="},{"functionCall":{"id":"k1","name":"f","args":{}},"thoughtSignature":"c="},{"functionCall":{"name":"g","args":{}}},{"text":"","thoughtSignature":"e="}]`},
		{"a call that is gone", "m", 0, fewer, `[{"text":"hm","thought":true,"thoughtSignature":"t="},{"text":"hé"},{"text":"b","thoughtSignature":"u="},{"functionCall":{"id":"k1","name":"f","args":{}},"thoughtSignature":"c="},{"text":"","thoughtSignature":"e="}]`},
		{"another model", "n", 0, reply, bare},
		{"another provider", "m", 0, foreign, bare},
		{"damaged", "m", 0, damaged, bare},
		{"none kept", "m", 0, domain.ModelReply{Text: "héb", Calls: reply.Calls}, bare},
		{"refused", "m", dropSigns, reply, `[{"text":"hé"},{"text":"b"},{"functionCall":{"id":"k1","name":"f","args":{}}},{"functionCall":{"name":"g","args":{}}}]`},
		{"ids refused", "m", dropIDs | dropForeign, reply, `[{"text":"hé"},{"text":"b"},{"functionCall":{"name":"f","args":{}}},{"functionCall":{"name":"g","args":{}}}]`},
		{"another model that wants signatures", "gemini-3-pro", 0, reply, `[{"text":"héb"},{"functionCall":{"name":"f","args":{}},"thoughtSignature":"` + skipSign + `"},{"functionCall":{"name":"g","args":{}}}]`},
	} {
		t.Run(c.name, func(t *testing.T) {
			lines := strings.Split(rendered(t, testModel(t, c.model, nil), c.dropped, user("q"), c.reply), "\n")
			if got, want := lines[1], `{"role":"model","parts":`+c.want+`}`; got != want {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
		})
	}
}

// TestContents_Skip: calls of another origin get the value for that in the
// turn at hand alone, unless a server wants it everywhere.
func TestContents_Skip(t *testing.T) {
	call := func(id domain.CallID) []domain.ModelMessage {
		c := domain.ModelCall{ID: id, Name: "f"}
		return []domain.ModelMessage{domain.ModelReply{Calls: []domain.ModelCall{c, c}}, domain.ToolOutput{Call: c, Text: "1"}, domain.ToolOutput{Call: c, Text: "2"}}
	}
	msgs := append([]domain.ModelMessage{user("q")}, call("1")...)
	msgs = append(append(msgs, user("stop")), domain.ModelReply{Text: "ok"}, user("go on"))
	msgs = append(append(msgs, call("2")...), call("3")...)
	for name, c := range map[string]struct {
		model   string
		dropped option
		want    int
	}{
		"demanded in the turn": {"gemini-3-flash", 0, 2},
		"demanded everywhere":  {"gemini-3-flash", signEverywhere, 3},
		"learned":              {"some-proxy", signEverywhere, 3},
		"not demanded":         {"gemini-2.5-flash", 0, 0},
		"not known":            {"gemini-3-flash", dropSigns, 0},
		"the newest":           {"gemini-flash-latest", 0, 2},
	} {
		if got := strings.Count(rendered(t, testModel(t, c.model, nil), c.dropped, msgs...), skipSign); got != c.want {
			t.Errorf("%s: %d values, want %d", name, got, c.want)
		}
	}
}

// TestRender_Golden is a whole request as it goes over the wire.
func TestRender_Golden(t *testing.T) {
	req := porttest.SampleHistory()
	req.Thoughts = domain.ThoughtsLow
	data, err := testModel(t, "gemini-2.5-flash", nil).render(req, 0)
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

// TestThinking is the table of levels as the generations are told them.
func TestThinking(t *testing.T) {
	for _, c := range []struct {
		model   string
		level   domain.ThoughtLevel
		max     int
		dropped option
		want    string
	}{
		{"gemini-2.5-flash", "", 0, 0, `{"includeThoughts":true}`},
		{"gemini-2.5-flash", domain.ThoughtsOff, 0, 0, `{"thinkingBudget":0}`},
		{"gemini-2.5-flash", domain.ThoughtsOff, 0, coarseLevel, `{"thinkingBudget":512}`},
		{"gemini-2.5-pro", domain.ThoughtsOff, 0, 0, `{"thinkingBudget":128}`},
		{"gemini-2.5-flash-lite", domain.ThoughtsMinimal, 0, 0, `{"includeThoughts":true,"thinkingBudget":512}`},
		{"gemini-2.5-flash", domain.ThoughtsLow, 0, 0, `{"includeThoughts":true,"thinkingBudget":2048}`},
		{"gemini-2.5-flash", domain.ThoughtsMedium, 0, 0, `{"includeThoughts":true,"thinkingBudget":8192}`},
		{"gemini-2.5-flash", domain.ThoughtsHigh, 0, 0, `{"includeThoughts":true,"thinkingBudget":16384}`},
		{"gemini-2.5-flash", domain.ThoughtsXHigh, 0, 0, `{"includeThoughts":true,"thinkingBudget":24576}`},
		{"models/gemini-2.5-pro", domain.ThoughtsXHigh, 0, 0, `{"includeThoughts":true,"thinkingBudget":32768}`},
		{"gemini-2.5-pro", domain.ThoughtsHigh, 8000, 0, `{"includeThoughts":true,"thinkingBudget":4000}`},
		{"gemini-2.5-pro", domain.ThoughtsHigh, 600, 0, `{"includeThoughts":true,"thinkingBudget":512}`},
		{"gemini-3-pro-preview", "", 0, 0, `{"includeThoughts":true}`},
		{"gemini-3-pro-preview", domain.ThoughtsOff, 0, 0, `{"thinkingLevel":"LOW"}`},
		{"gemini-3-pro-preview", domain.ThoughtsMedium, 0, 0, `{"includeThoughts":true,"thinkingLevel":"HIGH"}`},
		{"gemini-3.1-pro-preview", domain.ThoughtsMedium, 0, 0, `{"includeThoughts":true,"thinkingLevel":"MEDIUM"}`},
		{"gemini-3-flash-preview", domain.ThoughtsOff, 0, 0, `{"thinkingLevel":"MINIMAL"}`},
		{"gemini-3-flash-preview", domain.ThoughtsMinimal, 0, 0, `{"includeThoughts":true,"thinkingLevel":"MINIMAL"}`},
		{"gemini-3-flash-preview", domain.ThoughtsMinimal, 0, coarseLevel, `{"includeThoughts":true,"thinkingLevel":"LOW"}`},
		{"gemini-3-flash-preview", domain.ThoughtsXHigh, 0, 0, `{"includeThoughts":true,"thinkingLevel":"HIGH"}`},
		{"gemini-flash-latest", domain.ThoughtsLow, 0, 0, `{"includeThoughts":true,"thinkingLevel":"LOW"}`},
		{"gemini-3-flash", domain.ThoughtsLow, 0, swapLevel, `{"includeThoughts":true,"thinkingBudget":2048}`},
		{"gemini-2.5-flash", domain.ThoughtsLow, 0, swapLevel, `{"includeThoughts":true,"thinkingLevel":"LOW"}`},
		{"gemini-2.5-flash", domain.ThoughtsOff, 0, dropLevel, ``},
		{"gemini-2.5-flash", domain.ThoughtsLow, 0, dropLevel, `{"includeThoughts":true}`},
		{"gemini-2.5-flash", domain.ThoughtsLow, 0, dropThinking, ``},
	} {
		m := testModel(t, c.model, nil)
		conf := m.config(domain.ModelRequest{Thoughts: c.level, MaxOutputTokens: c.max}, c.dropped)
		got := ""
		if conf != nil && conf.Thinking != nil {
			data, err := json.Marshal(conf.Thinking)
			if err != nil {
				t.Fatal(err)
			}
			got = string(data)
		}
		if got != c.want {
			t.Errorf("%s, %q, %b: %s, want %s", c.model, c.level, c.dropped, got, c.want)
		}
	}
	blunt := testModel(t, "gemini-2.0-flash", func(info *domain.ModelInfo) { info.Thoughts = false })
	if c := blunt.config(domain.ModelRequest{Thoughts: domain.ThoughtsHigh}, 0); c != nil {
		t.Errorf("a model that does not think is told %+v", c)
	}
}

// TestComplete: what the names of models tell.
func TestComplete(t *testing.T) {
	for model, want := range map[string]struct{ images, audio, thoughts bool }{
		"gemini-3-pro-preview":          {true, true, true},
		"gemini-3.8-flash":              {true, true, true},
		"gemini-4-argon":                {true, true, true},
		"gemini-2.5-flash-lite":         {true, true, true},
		"models/gemini-2.5-pro":         {true, true, true},
		"gemini-flash-latest":           {true, true, true},
		"gemini-2.0-flash":              {true, true, false},
		"gemini-2.5-flash-image":        {true, true, false},
		"gemini-2.0-flash-thinking-exp": {true, true, true},
		"gemini-exp-1206":               {true, true, false},
		"gemma-3-27b-it":                {},
		"gemma-4-31b-it":                {false, false, true},
		"something":                     {},
	} {
		info := complete(domain.ModelInfo{Ref: domain.ModelRef{Model: model}})
		if info.Images != want.images || info.Audio != want.audio || info.Thoughts != want.thoughts {
			t.Errorf("%s: %+v", model, info)
		}
	}
}

func TestNew_Address(t *testing.T) {
	const method = ":streamGenerateContent?alt=sse"
	for _, c := range []struct{ base, model, want string }{
		{"", "gemini-3-pro", "https://generativelanguage.googleapis.com/v1beta/models/gemini-3-pro" + method},
		{"https://generativelanguage.googleapis.com", "models/gemini-3-pro", "https://generativelanguage.googleapis.com/v1beta/models/gemini-3-pro" + method},
		{"https://generativelanguage.googleapis.com/v1beta/openai/", "m", "https://generativelanguage.googleapis.com/v1beta/models/m" + method},
		{"https://x.invalid/v1/models/", "m", "https://x.invalid/v1/models/m" + method},
		{"https://x.invalid/v1?trace=1", "tunedModels/m 1", "https://x.invalid/v1/tunedModels/m%201:streamGenerateContent?alt=sse&trace=1"},
		{"https://aiplatform.googleapis.com/v1/projects/p/locations/global/publishers/google", "gemini-3-pro", "https://aiplatform.googleapis.com/v1/projects/p/locations/global/publishers/google/models/gemini-3-pro" + method},
		{"127.0.0.1:80", "m", ""},
		{"localhost/v1", "m", ""},
		{"ftp://x/v1", "m", ""},
		{"http://", "m", ""},
		{"http://[::1", "m", ""},
	} {
		m, err := New(llm.Provider{ProviderConfig: llm.ProviderConfig{Name: "p", BaseURL: c.base}}, domain.ModelInfo{Ref: domain.ModelRef{Model: c.model}})
		switch {
		case c.want == "" && (!domain.HasCode(err, domain.InvalidArgument) || !strings.Contains(err.Error(), "providers.p.base_url")):
			t.Errorf("%q: error %v", c.base, err)
		case c.want != "" && (err != nil || m.url != c.want):
			t.Errorf("%q: %v, error %v", c.base, m, err)
		}
	}
}

// TestToolName: every name is one the wire takes, the same each time.
func TestToolName(t *testing.T) {
	for name, want := range map[string]string{
		"read_file": "read_file", "_": "_", "9lives": "_9lives", "": "unknown", "é": "_", "a.b:c d": "a_b_c_d", "-x": "_-x",
		strings.Repeat("7", 80): "_" + strings.Repeat("7", 63),
	} {
		if got := toolName(name); got != want {
			t.Errorf("%q is sent as %q, want %q", name, got, want)
		}
	}
}
