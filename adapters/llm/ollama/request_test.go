package ollama

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/berth-dev/berth/adapters/llm"
	"github.com/berth-dev/berth/core/domain"
	"github.com/berth-dev/berth/core/ports/porttest"
)

// sent returns the request that a model makes of req, once it knows show.
func sent(t *testing.T, show string, req domain.ModelRequest, change func(*llm.Provider, *domain.ModelInfo)) (out string) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := &server{show: show, chat: answer(http.StatusOK, text("a")+done("stop", ""))}
		if line, err := got(t, s.model(t, change), req); line != "a .stop" {
			t.Fatalf("%q, %v", line, err)
		}
		out = strings.TrimSpace(s.sent["/api/chat"][0])
	})
	return out
}

// messages renders the messages of a request, one a line.
func messages(t *testing.T, body string) string {
	t.Helper()
	var b struct {
		Messages []json.RawMessage `json:"messages"`
	}
	if err := json.Unmarshal([]byte(body), &b); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	for _, m := range b.Messages {
		out.Write(m)
		out.WriteByte('\n')
	}
	return out.String()
}

func said(blocks ...domain.Block) domain.UserInput { return domain.UserInput{Blocks: blocks} }

// TestRequest_History is the whole of what is sent in the middle of a session.
func TestRequest_History(t *testing.T) {
	want := `{"model":"fake-1","messages":[` +
		`{"role":"system","content":"You are a test. Nobody may quote this sentence in an error."},` +
		`{"role":"user","content":"The quick brown fox asks for its private diary: page forty-two, please."},` +
		`{"role":"assistant","content":"I read both.","tool_calls":[{"id":"x","function":{"index":0,"name":"read_file","arguments":{"path":"a"}}},{"id":"c2","function":{"index":1,"name":"read_file","arguments":{"path":"b"}}}]},` +
		`{"role":"tool","content":"content of a","tool_name":"read_file","tool_call_id":"x"},` +
		`{"role":"tool","content":"no such file","tool_name":"read_file","tool_call_id":"c2"},` +
		`{"role":"assistant","content":"","tool_calls":[{"id":"c3","function":{"index":0,"name":"read_file","arguments":{}}}]},` +
		`{"role":"tool","content":"(no output)","tool_name":"read_file","tool_call_id":"c3"},` +
		`{"role":"assistant","content":"That was all."},` +
		`{"role":"user","content":"And this?\n\nWell?","images":["iVBORw=="]}],` +
		`"tools":[{"type":"function","function":{"name":"read_file","description":"Reads a file.","parameters":{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]}}}],` +
		`"stream":true,"truncate":false,"shift":false,"options":{"num_ctx":32768,"num_predict":1000}}`
	if is := sent(t, able, porttest.SampleHistory(), nil); is != want {
		t.Errorf("sent %s\nwant %s", is, want)
	}
}

// TestRequest_Messages is what becomes of conversations out of the ordinary.
func TestRequest_Messages(t *testing.T) {
	const blind = `{"capabilities":["completion","tools","thinking"]}`
	call := domain.ModelCall{ID: "c1", ProviderID: "p1", Name: "f", Args: []byte(`{"x":1}`)}
	other := domain.ModelCall{ID: "c2", Name: "g"}
	mine := &domain.Opaque{Provider: "fake", Data: []byte(`{"model":"fake-1"}`)}
	image := domain.Image{MIME: "image/png", Data: []byte("png")}
	wav := domain.Audio{MIME: "audio/wav", Data: []byte("RIFF1234WAVEfmt ")}
	mp3 := domain.Audio{MIME: "audio/mpeg", Data: []byte("ID3")}
	for _, c := range []struct {
		name string
		show string
		msgs []domain.ModelMessage
		want string
	}{
		{"two replies in a row", able, []domain.ModelMessage{domain.ModelReply{Text: "a"}, domain.ModelReply{Text: "b", Calls: []domain.ModelCall{other}}, domain.ToolOutput{Call: other, Text: "r"}},
			`{"role":"assistant","content":"a\n\nb","tool_calls":[{"id":"c2","function":{"index":0,"name":"g","arguments":{}}}]}
{"role":"tool","content":"r","tool_name":"g","tool_call_id":"c2"}
`},
		{"a reply of thoughts alone", able, []domain.ModelMessage{said(domain.Text{Text: "a"}), domain.ModelReply{Thought: "hm", Opaque: mine}, said(domain.Text{Text: "b"})},
			`{"role":"user","content":"a\n\nb"}
`},
		{"its own thoughts, of a turn with tools", able, []domain.ModelMessage{
			said(domain.Text{Text: "a"}), domain.ModelReply{Thought: "hm", Calls: []domain.ModelCall{call}, Opaque: mine}, domain.ToolOutput{Call: call, Text: "r"}, domain.ModelReply{Thought: "so", Text: "b", Opaque: mine},
			said(domain.Text{Text: "c"}), domain.ModelReply{Thought: "no tools", Text: "d", Opaque: mine}},
			`{"role":"user","content":"a"}
{"role":"assistant","content":"","thinking":"hm","tool_calls":[{"id":"p1","function":{"index":0,"name":"f","arguments":{"x":1}}}]}
{"role":"tool","content":"r","tool_name":"f","tool_call_id":"p1"}
{"role":"assistant","content":"b","thinking":"so"}
{"role":"user","content":"c"}
{"role":"assistant","content":"d"}
`},
		{"the thoughts of others", able, []domain.ModelMessage{
			domain.ModelReply{Thought: "hm", Calls: []domain.ModelCall{call}, Opaque: &domain.Opaque{Provider: "fake", Data: []byte(`{"model":"fake-2"}`)}}, domain.ToolOutput{Call: call, Text: "r"},
			domain.ModelReply{Thought: "hm", Calls: []domain.ModelCall{other}, Opaque: &domain.Opaque{Provider: "other", Data: []byte(`{"model":"fake-1"}`)}}, domain.ToolOutput{Call: other, Text: "r"}},
			`{"role":"assistant","content":"","tool_calls":[{"id":"p1","function":{"index":0,"name":"f","arguments":{"x":1}}}]}
{"role":"tool","content":"r","tool_name":"f","tool_call_id":"p1"}
{"role":"assistant","content":"","tool_calls":[{"id":"c2","function":{"index":0,"name":"g","arguments":{}}}]}
{"role":"tool","content":"r","tool_name":"g","tool_call_id":"c2"}
`},
		{"what tools show comes behind the last result", able, []domain.ModelMessage{
			domain.ModelReply{Calls: []domain.ModelCall{call, other}}, domain.ToolOutput{Call: call, Text: "r", Media: []domain.Block{image}}, domain.ToolOutput{Call: other, Text: "s"}, said(domain.Text{Text: "b"})},
			`{"role":"assistant","content":"","tool_calls":[{"id":"p1","function":{"index":0,"name":"f","arguments":{"x":1}}},{"id":"c2","function":{"index":1,"name":"g","arguments":{}}}]}
{"role":"tool","content":"r","tool_name":"f","tool_call_id":"p1"}
{"role":"tool","content":"s","tool_name":"g","tool_call_id":"c2"}
{"role":"user","content":"[Shown by f:]\n\nb","images":["cG5n"]}
`},
		{"sounds", able, []domain.ModelMessage{said(domain.Text{Text: "a"}, wav, mp3)},
			`{"role":"user","content":"a\n\n[Audio: audio/mpeg]","images":["UklGRjEyMzRXQVZFZm10IA=="]}
`},
		{"a model that neither sees nor hears", blind, []domain.ModelMessage{said(image, domain.Text{Text: "a"}, wav)},
			`{"role":"user","content":"[Image: image/png]\n\na\n\n[Audio: audio/wav]"}
`},
		{"only an image", able, []domain.ModelMessage{said(image)},
			`{"role":"user","content":"","images":["cG5n"]}
`},
		{"not escaped for pages", able, []domain.ModelMessage{said(domain.Text{Text: "<é&>\u2028"})}, `{"role":"user","content":"<é&>\u2028"}` + "\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if is := messages(t, sent(t, c.show, domain.ModelRequest{Messages: c.msgs}, nil)); is != c.want {
				t.Errorf("sent %s\nwant %s", is, c.want)
			}
		})
	}
}

// TestRequest_Thoughts: levels become on and off, or levels where the model
// takes them, and nothing where it cannot think.
func TestRequest_Thoughts(t *testing.T) {
	const family = `{"capabilities":["tools","thinking"],"details":{"family":"gptoss"}}`
	for _, c := range []struct {
		name, show, model string
		want              [7]any // of "", off, minimal, low, medium, high, xhigh
	}{
		{"on and off", able, "fake-1", [7]any{nil, false, true, true, true, true, true}},
		{"levels, by name", able, "gpt-oss:20b", [7]any{nil, "low", "low", "low", "medium", "high", "high"}},
		{"levels, by family", family, "mine", [7]any{nil, "low", "low", "low", "medium", "high", "high"}},
		{"neither", `{"capabilities":["tools"]}`, "fake-1", [7]any{}},
	} {
		for i, level := range []domain.ThoughtLevel{"", domain.ThoughtsOff, domain.ThoughtsMinimal, domain.ThoughtsLow, domain.ThoughtsMedium, domain.ThoughtsHigh, domain.ThoughtsXHigh} {
			t.Run(fmt.Sprintf("%s/%q", c.name, level), func(t *testing.T) {
				req := porttest.SampleRequest()
				req.Thoughts = level
				var body map[string]any
				if err := json.Unmarshal([]byte(sent(t, c.show, req, func(_ *llm.Provider, info *domain.ModelInfo) { info.Ref.Model = c.model })), &body); err != nil {
					t.Fatal(err)
				}
				if body["think"] != c.want[i] {
					t.Errorf("think is %v, want %v", body["think"], c.want[i])
				}
			})
		}
	}
}

// TestRequest_Schema: a tool without a schema takes an object.
func TestRequest_Schema(t *testing.T) {
	body := sent(t, able, domain.ModelRequest{Messages: porttest.SampleRequest().Messages, Tools: []domain.ToolSpec{{Name: "f"}}}, nil)
	if !strings.Contains(body, `"parameters":{"type":"object","properties":{}}`) || strings.Contains(body, "num_predict") {
		t.Errorf("sent %s", body)
	}
}
