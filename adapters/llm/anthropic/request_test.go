package anthropic

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

// sent is a request as it goes over the wire, its parts raw.
type sent struct {
	MaxTokens int64           `json:"max_tokens"`
	Thinking  json.RawMessage `json:"thinking"`
	Output    json.RawMessage `json:"output_config"`
	Choice    json.RawMessage `json:"tool_choice"`
	Tools     json.RawMessage `json:"tools"`
	System    json.RawMessage `json:"system"`
	Messages  []struct {
		Role    string            `json:"role"`
		Content []json.RawMessage `json:"content"`
	} `json:"messages"`
}

func rendered(t *testing.T, m *Model, req domain.ModelRequest) sent {
	t.Helper()
	data, err := m.render(req, m.plan(req, amends{}))
	if err != nil {
		t.Fatal(err)
	}
	var s sent
	if err := json.Unmarshal(data, &s); err != nil {
		t.Fatalf("%v in %s", err, data)
	}
	return s
}

const mark = `,"cache_control":{"type":"ephemeral"}`

// lines shows messages, one a line, without the marks of the cache.
func (s sent) lines() string {
	var out []string
	for _, m := range s.Messages {
		line := m.Role + ":"
		for _, b := range m.Content {
			line += " " + strings.ReplaceAll(string(b), mark, "")
		}
		out = append(out, line)
	}
	return strings.Join(out, "\n")
}

func call(id, name string) domain.ModelCall {
	return domain.ModelCall{ID: domain.CallID("t-" + id), ProviderID: id, Name: name, Args: []byte(`{"p":"<a>"}`)}
}

type messagesCase struct {
	name string
	msgs []domain.ModelMessage
	want []string
}

func messagesCases() []messagesCase {
	a, b := call("x", "f"), call("x", "g")
	b.ID = "t-x2"
	c := domain.ModelCall{ID: "t.3", Name: "h"}
	foreignCall := domain.ModelCall{ID: "t-4", ProviderID: "functions.read:0", Name: "a.b"}
	png := domain.Image{MIME: "image/PNG", Data: []byte("png")}
	const (
		hi    = `{"type":"text","text":"q"}`
		image = `{"type":"image","source":{"type":"base64","media_type":"image/png","data":"cG5n"}}`
		use   = `{"type":"tool_use","id":"x","name":"f","input":{"p":"<a>"}}`
	)
	return []messagesCase{
		{"a question", []domain.ModelMessage{user("hi <b>")}, []string{`user: {"type":"text","text":"hi <b>"}`}},
		{"messages of the user in a row", []domain.ModelMessage{user("q"), user("two")}, []string{`user: ` + hi + ` {"type":"text","text":"two"}`}},
		{"an empty message of the user", []domain.ModelMessage{user("q"), user(" \n"), domain.ModelReply{Text: "r"}, user("")}, []string{`user: ` + hi, `assistant: {"type":"text","text":"r"}`, `user: {"type":"text","text":"Continue."}`}},
		{"replies in a row", []domain.ModelMessage{user("q"), domain.ModelReply{Text: "one"}, domain.ModelReply{Text: "two", Calls: []domain.ModelCall{a}}, domain.ToolOutput{Call: a, Text: "r"}},
			[]string{`user: ` + hi, `assistant: {"type":"text","text":"one"} {"type":"text","text":"two"} ` + use, `user: {"type":"tool_result","tool_use_id":"x","content":"r"}`}},
		{"a reply in the end", []domain.ModelMessage{user("q"), domain.ModelReply{Text: "r \n"}}, []string{`user: ` + hi, `assistant: {"type":"text","text":"r \n"}`, `user: {"type":"text","text":"Continue."}`}},
		{"a reply in the beginning", []domain.ModelMessage{domain.ModelReply{Text: "r"}, user("q")},
			[]string{`user: {"type":"text","text":"(The beginning of the conversation was left out.)"}`, `assistant: {"type":"text","text":"r"}`, `user: ` + hi}},
		{"nothing", nil, []string{`user: {"type":"text","text":"Continue."}`}},
		{"a reply without content", []domain.ModelMessage{user("q"), domain.ModelReply{Thought: "hm", Text: " \n"}, user("r")}, []string{`user: ` + hi + ` {"type":"text","text":"r"}`}},
		{"calls whose ids repeat, are missing or are foreign", []domain.ModelMessage{
			user("q"), domain.ModelReply{Calls: []domain.ModelCall{a, b, c, foreignCall}}, domain.ToolOutput{Call: a, Text: "1"}, domain.ToolOutput{Call: b, Text: "2"}, domain.ToolOutput{Call: c, Text: " "}, domain.ToolOutput{Call: foreignCall, Text: "4"}},
			[]string{`user: ` + hi,
				`assistant: ` + use + ` {"type":"tool_use","id":"t-x2","name":"g","input":{"p":"<a>"}} {"type":"tool_use","id":"call_1","name":"h","input":{}} {"type":"tool_use","id":"t-4","name":"a_b","input":{}}`,
				`user: {"type":"tool_result","tool_use_id":"x","content":"1"} {"type":"tool_result","tool_use_id":"t-x2","content":"2"} {"type":"tool_result","tool_use_id":"call_1","content":"(no output)"} {"type":"tool_result","tool_use_id":"t-4","content":"4"}`}},
		{"calls without any id", []domain.ModelMessage{user("q"), domain.ModelReply{Calls: []domain.ModelCall{{Name: "f"}, {}}}},
			[]string{`user: ` + hi, `assistant: {"type":"tool_use","id":"call_1","name":"f","input":{}} {"type":"tool_use","id":"call_2","name":"unknown","input":{}}`,
				`user: {"type":"tool_result","tool_use_id":"call_1","content":"Not run: the turn ended before this call was started.","is_error":true} {"type":"tool_result","tool_use_id":"call_2","content":"Not run: the turn ended before this call was started.","is_error":true}`}},
		{"ids that repeat from turn to turn", []domain.ModelMessage{user("q"), domain.ModelReply{Calls: []domain.ModelCall{a}}, domain.ToolOutput{Call: a, Text: "1"}, domain.ModelReply{Calls: []domain.ModelCall{b}}, domain.ToolOutput{Call: b, Text: "2"}},
			[]string{`user: ` + hi, `assistant: ` + use, `user: {"type":"tool_result","tool_use_id":"x","content":"1"}`, `assistant: {"type":"tool_use","id":"t-x2","name":"g","input":{"p":"<a>"}}`, `user: {"type":"tool_result","tool_use_id":"t-x2","content":"2"}`}},
		{"outputs out of order, and what the user says in between", []domain.ModelMessage{user("q"), domain.ModelReply{Text: "r", Calls: []domain.ModelCall{a, b}}, domain.ToolOutput{Call: b, Text: "2", Failed: true}, user("wait"), domain.ToolOutput{Call: a, Text: "1"}},
			[]string{`user: ` + hi, `assistant: {"type":"text","text":"r"} ` + use + ` {"type":"tool_use","id":"t-x2","name":"g","input":{"p":"<a>"}}`,
				`user: {"type":"tool_result","tool_use_id":"t-x2","content":"2","is_error":true} {"type":"tool_result","tool_use_id":"x","content":"1"} {"type":"text","text":"wait"}`}},
		{"an output without its call", []domain.ModelMessage{user("q"), domain.ToolOutput{Call: a, Text: "1"}}, []string{`user: ` + hi + ` {"type":"text","text":"[Result of an earlier call of f]\n1"}`}},
		{"pictures", []domain.ModelMessage{domain.UserInput{Blocks: []domain.Block{domain.Text{Text: "q"}, png, domain.Image{MIME: "image/jpg", Data: []byte("png")}, domain.Text{Text: "there"}}}},
			[]string{`user: ` + hi + ` ` + image + ` {"type":"image","source":{"type":"base64","media_type":"image/jpeg","data":"cG5n"}} {"type":"text","text":"there"}`}},
		{"what the wire does not take", []domain.ModelMessage{domain.UserInput{Blocks: []domain.Block{domain.Image{MIME: "image/tiff", Data: []byte("x")}, domain.Image{MIME: "image/png"}, domain.Audio{MIME: "audio/wav", Data: []byte("x")}}}},
			[]string{`user: {"type":"text","text":"[Image: image/tiff]\n\n[Image: image/png]\n\n[Audio: audio/wav]"}`}},
		{"a picture of a tool", []domain.ModelMessage{user("q"), domain.ModelReply{Calls: []domain.ModelCall{a}}, domain.ToolOutput{Call: a, Text: "a dot", Media: []domain.Block{png}}},
			[]string{`user: ` + hi, `assistant: ` + use, `user: {"type":"tool_result","tool_use_id":"x","content":[{"type":"text","text":"a dot"},` + image + `]}`}},
		{"a picture of a tool and nothing else", []domain.ModelMessage{user("q"), domain.ModelReply{Calls: []domain.ModelCall{a}}, domain.ToolOutput{Call: a, Media: []domain.Block{png}}},
			[]string{`user: ` + hi, `assistant: ` + use, `user: {"type":"tool_result","tool_use_id":"x","content":[` + image + `]}`}},
		{"a picture of a tool that failed", []domain.ModelMessage{user("q"), domain.ModelReply{Calls: []domain.ModelCall{a}}, domain.ToolOutput{Call: a, Text: "no", Failed: true, Media: []domain.Block{png}}},
			[]string{`user: ` + hi, `assistant: ` + use, `user: {"type":"tool_result","tool_use_id":"x","content":"no","is_error":true} ` + image}},
	}
}

func TestRender_Messages(t *testing.T) {
	for _, tc := range messagesCases() {
		t.Run(tc.name, func(t *testing.T) {
			got := rendered(t, open(t, nil, nil), domain.ModelRequest{Messages: tc.msgs}).lines()
			if want := strings.Join(tc.want, "\n"); got != want {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
		})
	}
}

// TestRender_Blind: a model that does not see reads that there was a picture.
func TestRender_Blind(t *testing.T) {
	m := open(t, nil, func(_ *llm.Provider, info *domain.ModelInfo) { info.Images = false })
	req := domain.ModelRequest{Messages: []domain.ModelMessage{domain.UserInput{Blocks: []domain.Block{domain.Image{MIME: "image/png", Data: []byte("png")}}}}}
	if got := rendered(t, m, req).lines(); got != `user: {"type":"text","text":"[Image: image/png]"}` {
		t.Error(got)
	}
}

// TestRender_Golden is a whole request as it goes over the wire.
func TestRender_Golden(t *testing.T) {
	m := open(t, nil, nil)
	data, err := m.render(porttest.SampleHistory(), m.plan(porttest.SampleHistory(), amends{}))
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

// TestRender_Cache: each step of a turn marks where it ends and where the one
// before ended, besides the tools and the system prompt, and begins with the
// same bytes.
func TestRender_Cache(t *testing.T) {
	m := open(t, nil, nil)
	req := porttest.SampleRequest()
	var before string
	var last string // the message that was the newest
	for step := range 5 {
		s := rendered(t, m, req)
		if !strings.HasSuffix(string(s.Tools), mark+"}]") || !strings.HasSuffix(string(s.System), mark+"}]") {
			t.Fatalf("tools %s, system %s", s.Tools, s.System)
		}
		marked := 0
		for i, msg := range s.Messages {
			for j, b := range msg.Content {
				if !strings.Contains(string(b), mark) {
					continue
				}
				marked++
				if j != len(msg.Content)-1 || i < len(s.Messages)-3 {
					t.Errorf("step %d: block %d of message %d is marked", step, j, i)
				}
			}
		}
		if want := min(2, step+1); marked != want {
			t.Errorf("step %d: %d messages are marked, want %d", step, marked, want)
		}
		if !strings.HasPrefix(s.lines(), before) {
			t.Errorf("step %d does not begin as the one before:\n%s\nafter\n%s", step, s.lines(), before)
		}
		before = s.lines()
		newest := s.Messages[len(s.Messages)-1].Content
		if step > 0 {
			again := s.Messages[len(s.Messages)-3].Content
			if got := string(again[len(again)-1]); got != last {
				t.Errorf("step %d: the place that was kept is %s, it was %s", step, got, last)
			}
		}
		last = string(newest[len(newest)-1])
		c := call(strings.Repeat("i", step+1), "read_file")
		req.Messages = append(req.Messages, domain.ModelReply{Text: "I read.", Calls: []domain.ModelCall{c}}, domain.ToolOutput{Call: c, Text: "content"})
	}
}

// TestRender_NoTools: a request without tools describes the ones that were
// called, and lets none be called.
func TestRender_NoTools(t *testing.T) {
	req := porttest.SampleHistory()
	req.Tools = nil
	s := rendered(t, open(t, nil, nil), req)
	if !strings.Contains(string(s.Tools), `"name":"read_file"`) || string(s.Choice) != `{"type":"none"}` {
		t.Errorf("tools %s, tool_choice %s", s.Tools, s.Choice)
	}
	if s := rendered(t, open(t, nil, nil), domain.ModelRequest{Messages: []domain.ModelMessage{user("q")}}); s.Tools != nil || s.Choice != nil || s.System != nil {
		t.Errorf("tools %s, tool_choice %s, system %s", s.Tools, s.Choice, s.System)
	}
}
