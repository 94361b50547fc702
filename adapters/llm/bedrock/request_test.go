package bedrock

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/berth-dev/berth/core/domain"
	"github.com/berth-dev/berth/core/ports/porttest"
)

// sent renders a request and takes it apart again.
func sent(t *testing.T, m *Model, req domain.ModelRequest, dropped option) (body, string) {
	t.Helper()
	data, err := m.render(req, dropped)
	if err != nil {
		t.Fatal(err)
	}
	var b body
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&b); err != nil {
		t.Fatalf("%v in %s", err, data)
	}
	return b, string(data)
}

// shape is a request's messages in a line: roles with their blocks.
func shape(msgs []message) string {
	var b strings.Builder
	for _, m := range msgs {
		b.WriteString(m.Role[:1] + "(")
		for _, c := range m.Content {
			switch {
			case c.Text != "":
				b.WriteString("text ")
			case c.Image != nil:
				b.WriteString(c.Image.Format + " ")
			case c.Audio != nil:
				b.WriteString(c.Audio.Format + " ")
			case c.Call != nil:
				b.WriteString("call:" + c.Call.ID + ":" + c.Call.Name + " ")
			case c.Result != nil:
				b.WriteString("result:" + c.Result.ID + ":" + c.Result.Status)
				for _, inner := range c.Result.Content {
					if inner.Image != nil {
						b.WriteString("+" + inner.Image.Format)
					}
				}
				b.WriteString(" ")
			case c.Thought != nil:
				b.WriteString("thought ")
			case c.CachePoint != nil:
				b.WriteString("point ")
			default:
				b.WriteString("nothing ")
			}
		}
		b.WriteString(")")
	}
	return b.String()
}

func said(s string) domain.UserInput {
	return domain.UserInput{Blocks: []domain.Block{domain.Text{Text: s}}}
}

const (
	nova  = "us.amazon.nova-pro-v1:0"
	llama = "us.meta.llama4-scout-17b-instruct-v1:0"
)

// TestRender_Messages is the table of how conversations are written.
func TestRender_Messages(t *testing.T) {
	call := func(id, provider, name string) domain.ModelCall {
		return domain.ModelCall{ID: domain.CallID(id), ProviderID: provider, Name: name, Args: []byte(`{}`)}
	}
	picture := domain.Image{MIME: "image/png", Data: []byte("\x89PNG")}
	a, b := call("s.1", "x", "read_file"), call("s.2", "x", "read_file")
	for _, c := range []struct {
		name  string
		model string
		msgs  []domain.ModelMessage
		want  string
	}{
		{"a question", claude, []domain.ModelMessage{said("a")}, "u(text )"},
		{"two in a row", claude, []domain.ModelMessage{said("a"), said("b")}, "u(text text )"},
		{"a blank one", claude, []domain.ModelMessage{said(" \n")}, "u(text )"},
		{"a reply first", claude, []domain.ModelMessage{domain.ModelReply{Text: "a"}, said("b")}, "u(text )a(text )u(text )"},
		{"a reply of nothing", claude, []domain.ModelMessage{said("a"), domain.ModelReply{Text: "\n"}, said("b")}, "u(text text )"},
		{"a reply of thoughts", claude, []domain.ModelMessage{said("a"), domain.ModelReply{Thought: "hm"}, said("b")}, "u(text text )"},
		{"two replies", claude, []domain.ModelMessage{said("a"), domain.ModelReply{Text: "b"}, domain.ModelReply{Text: "c"}, said("d")}, "u(text )a(text text )u(text )"},
		{"calls whose ids repeat", claude, []domain.ModelMessage{
			said("a"), domain.ModelReply{Calls: []domain.ModelCall{a, b}}, domain.ToolOutput{Call: a, Text: "1"}, domain.ToolOutput{Call: b, Failed: true}, said("b"),
		}, "u(text )a(call:x:read_file call:call_1:read_file )u(result:x: result:call_1:error text )"},
		{"ids that are not plain", claude, []domain.ModelMessage{
			said("a"), domain.ModelReply{Calls: []domain.ModelCall{call("1", "a:b/c", "x"), call("2", strings.Repeat("y", 70), "x"), call("3", "a_b_c", "x")}},
			domain.ToolOutput{Call: call("1", "a:b/c", "x")}, domain.ToolOutput{Call: call("2", "", "x")}, domain.ToolOutput{Call: call("3", "", "x")},
		}, "u(text )a(call:1:x call:2:x call:a_b_c:x )u(result:1: result:2: result:a_b_c: )"},
		{"a failed output of others", llama, []domain.ModelMessage{
			said("a"), domain.ModelReply{Calls: []domain.ModelCall{a}}, domain.ToolOutput{Call: a, Text: "1", Failed: true},
		}, "u(text )a(call:x:read_file )u(result:x: )"},
		{"a picture of a tool", claude, []domain.ModelMessage{
			said("a"), domain.ModelReply{Calls: []domain.ModelCall{a, b}}, domain.ToolOutput{Call: a, Media: []domain.Block{picture}}, domain.ToolOutput{Call: b},
		}, "u(text )a(call:x:read_file call:call_1:read_file )u(result:x:+png result:call_1: )"},
		{"a picture of a tool, of others", llama, []domain.ModelMessage{
			said("a"), domain.ModelReply{Calls: []domain.ModelCall{a, b}}, domain.ToolOutput{Call: a, Media: []domain.Block{picture}}, domain.ToolOutput{Call: b}, said("c"),
		}, "u(text )a(call:x:read_file call:call_1:read_file )u(result:x: result:call_1: png text )"},
		{"a sound of a tool", claude, []domain.ModelMessage{
			said("a"), domain.ModelReply{Calls: []domain.ModelCall{a}}, domain.ToolOutput{Call: a, Media: []domain.Block{domain.Audio{MIME: "audio/x-wav", Data: []byte("RIFF")}}},
		}, "u(text )a(call:x:read_file )u(result:x: wav )"},
		{"pictures between words", claude, []domain.ModelMessage{domain.UserInput{Blocks: []domain.Block{
			domain.Text{Text: "a"}, domain.Image{MIME: "image/JPG", Data: []byte("x")}, domain.Text{Text: "b"}, domain.Image{MIME: "image/tiff", Data: []byte("x")}, domain.Audio{MIME: "audio/mpeg", Data: []byte("x")},
		}}}, "u(text jpeg text mp3 )"},
		{"no picture in it", claude, []domain.ModelMessage{domain.UserInput{Blocks: []domain.Block{domain.Image{MIME: "image/png"}}}}, "u(text )"},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := over(t, canned{}, c.model)
			m.info.Images, m.info.Audio = true, true
			req := porttest.SampleRequest()
			req.Messages = c.msgs
			b, _ := sent(t, m, req, dropCaches)
			if got := shape(b.Messages); got != c.want {
				t.Errorf("\n got %s\nwant %s", got, c.want)
			}
		})
	}
}

// TestRender_WithoutTools: a conversation with calls can be told without
// them, as a summary wants it; the wire has no calls without tools.
func TestRender_WithoutTools(t *testing.T) {
	req := porttest.SampleHistory()
	req.Tools = nil
	b, data := sent(t, over(t, canned{}, claude), req, dropCaches)
	if got := shape(b.Messages); got != "u(text )a(text text text )u(text text )a(text )u(text )a(text )u(text png text )" || b.Tools != nil {
		t.Errorf("%s", got)
	}
	for _, want := range []string{`[call of read_file with {\"path\":\"a\"}]`, `[output of read_file]\ncontent of a`, noOutput} {
		if !strings.Contains(data, want) {
			t.Errorf("%q is not told in %s", want, data)
		}
	}
}

// TestRender_Caches: what the next request will share is marked, as far as
// the model's maker allows and the model has not refused.
func TestRender_Caches(t *testing.T) {
	req := porttest.SampleRequest()
	req.Messages = append(req.Messages, domain.ModelReply{Text: "b"}, said("c"), domain.ModelReply{Text: "d"}, said("e"))
	for _, c := range []struct {
		name    string
		model   string
		dropped option
		points  string // tools, system, then the messages
	}{
		{"Claude", claude, 0, "tools system u(text )a(text )u(text point )a(text )u(text point )"},
		{"Nova", nova, 0, "system u(text )a(text )u(text )a(text )u(text point )"},
		{"others", llama, 0, "u(text )a(text )u(text )a(text )u(text )"},
		{"Claude without tools", claude, dropToolCache, "system u(text )a(text )u(text point )a(text )u(text point )"},
		{"Claude without system", claude, dropSystemCache, "tools u(text )a(text )u(text point )a(text )u(text point )"},
		{"Claude without messages", claude, dropMessageCache, "tools system u(text )a(text )u(text )a(text )u(text )"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b, _ := sent(t, over(t, canned{}, c.model), req, c.dropped)
			got := ""
			if last := b.Tools.Tools[len(b.Tools.Tools)-1]; last.CachePoint != nil {
				got += "tools "
			}
			if last := b.System[len(b.System)-1]; last.CachePoint != nil {
				got += "system "
			}
			if got += shape(b.Messages); got != c.points {
				t.Errorf("\n got %s\nwant %s", got, c.points)
			}
		})
	}
	req.System, req.Tools = " ", nil
	if b, _ := sent(t, over(t, canned{}, claude), req, 0); b.System != nil || b.Tools != nil {
		t.Error("a cache point stands behind nothing")
	}
}

// TestRender_Thoughts is the table of how models are told to think.
func TestRender_Thoughts(t *testing.T) {
	for _, c := range []struct {
		name    string
		model   string
		level   domain.ThoughtLevel
		limit   int
		dropped option
		want    string // of additionalModelRequestFields
	}{
		{"Claude 4, unsaid", claude, "", 8000, 0, ``},
		{"Claude 4, off", claude, domain.ThoughtsOff, 8000, 0, ``},
		{"Claude 4, minimal", claude, domain.ThoughtsMinimal, 8000, 0, `{"thinking":{"budget_tokens":1024,"type":"enabled"}}`},
		{"Claude 4, medium", claude, domain.ThoughtsMedium, 32000, 0, `{"thinking":{"budget_tokens":10000,"type":"enabled"}}`},
		{"Claude 4, high within the limit", claude, domain.ThoughtsHigh, 8000, 0, `{"thinking":{"budget_tokens":6000,"type":"enabled"}}`},
		{"Claude 4, without room", claude, domain.ThoughtsHigh, 1024, 0, ``},
		{"Claude 4, without a limit", claude, domain.ThoughtsXHigh, 0, 0, `{"thinking":{"budget_tokens":32000,"type":"enabled"}}`},
		{"Claude 4, a word that is none", claude, "plenty", 8000, 0, ``},
		{"Claude 4, the other way", claude, domain.ThoughtsHigh, 8000, swapThoughts, `{"output_config":{"effort":"high"},"thinking":{"display":"summarized","type":"adaptive"}}`},
		{"Claude 4, refused", claude, domain.ThoughtsHigh, 8000, dropThoughts, ``},
		{"Claude 3.7", "anthropic.claude-3-7-sonnet-20250219-v1:0", domain.ThoughtsLow, 8000, 0, `{"thinking":{"budget_tokens":4096,"type":"enabled"}}`},
		{"Claude 3.5", "anthropic.claude-3-5-sonnet-20241022-v2:0", domain.ThoughtsLow, 8000, 0, ``},
		{"Claude 4.5", "global.anthropic.claude-opus-4-5-20251101-v1:0", domain.ThoughtsLow, 8000, 0, `{"thinking":{"budget_tokens":4096,"type":"enabled"}}`},
		{"Claude 4.6", "global.anthropic.claude-opus-4-6-v1", domain.ThoughtsXHigh, 0, 0, `{"output_config":{"effort":"max"},"thinking":{"display":"summarized","type":"adaptive"}}`},
		{"Claude 4.6, undisplayed", "global.anthropic.claude-opus-4-6-v1", domain.ThoughtsLow, 0, dropDisplay, `{"output_config":{"effort":"low"},"thinking":{"type":"adaptive"}}`},
		{"Claude 4.6, the other way", "anthropic.claude-sonnet-4-6", domain.ThoughtsLow, 8000, swapThoughts, `{"thinking":{"budget_tokens":4096,"type":"enabled"}}`},
		{"Claude 5", "anthropic.claude-sonnet-5", domain.ThoughtsMedium, 8000, 0, `{"output_config":{"effort":"medium"},"thinking":{"display":"summarized","type":"adaptive"}}`},
		{"Claude 5, unsaid", "anthropic.claude-sonnet-5", "", 8000, 0, `{"thinking":{"display":"summarized","type":"adaptive"}}`},
		{"Claude 5, off", "anthropic.claude-sonnet-5", domain.ThoughtsOff, 8000, 0, `{"thinking":{"type":"disabled"}}`},
		{"Claude 5, off refused", "anthropic.claude-sonnet-5", domain.ThoughtsOff, 8000, dropOff, `{"output_config":{"effort":"low"},"thinking":{"display":"summarized","type":"adaptive"}}`},
		{"Claude 5, a word that is none", "anthropic.claude-sonnet-5", "plenty", 8000, 0, ``},
		{"Claude 4.6, unsaid", "anthropic.claude-sonnet-4-6", "", 8000, 0, ``},
		{"Claude 4.6, off", "anthropic.claude-sonnet-4-6", domain.ThoughtsOff, 8000, 0, ``},
		{"Claude 4.7", "us.anthropic.claude-opus-4-7", domain.ThoughtsXHigh, 0, 0, `{"output_config":{"effort":"xhigh"},"thinking":{"display":"summarized","type":"adaptive"}}`},
		{"Claude 3", "anthropic.claude-3-haiku-20240307-v1:0", domain.ThoughtsLow, 8000, 0, ``},
		{"a Claude of another name", "anthropic.claude-fable-preview", domain.ThoughtsMedium, 8000, 0, `{"output_config":{"effort":"medium"},"thinking":{"display":"summarized","type":"adaptive"}}`},
		{"Claude 2", "anthropic.claude-v2:1", domain.ThoughtsMedium, 8000, 0, ``},
		{"Claude Instant", "anthropic.claude-instant-v1", domain.ThoughtsMedium, 8000, 0, ``},
		{"Nova", nova, domain.ThoughtsHigh, 8000, 0, ``},
		{"Nova 2", "us.amazon.nova-2-lite-v1:0", domain.ThoughtsLow, 8000, 0, `{"reasoningConfig":{"maxReasoningEffort":"low","type":"enabled"}}`},
		{"Nova 2, high beside a limit", "us.amazon.nova-2-lite-v1:0", domain.ThoughtsHigh, 8000, 0, `{"reasoningConfig":{"maxReasoningEffort":"medium","type":"enabled"}}`},
		{"Nova 2, high", "us.amazon.nova-2-lite-v1:0", domain.ThoughtsHigh, 0, 0, `{"reasoningConfig":{"maxReasoningEffort":"high","type":"enabled"}}`},
		{"gpt-oss", "openai.gpt-oss-120b-1:0", domain.ThoughtsMinimal, 8000, 0, `{"reasoning_effort":"low"}`},
		{"others", llama, domain.ThoughtsHigh, 8000, 0, ``},
		{"a hidden name", "arn:aws:bedrock:us-east-1:123456789012:application-inference-profile/abc123", domain.ThoughtsHigh, 8000, 0, ``},
	} {
		t.Run(c.name, func(t *testing.T) {
			req := porttest.SampleRequest()
			req.Thoughts, req.MaxOutputTokens = c.level, c.limit
			b, _ := sent(t, over(t, canned{}, c.model), req, c.dropped)
			got := ""
			if b.More != nil {
				data, _ := json.Marshal(b.More)
				got = string(data)
			}
			if got != c.want {
				t.Errorf("\n got %s\nwant %s", got, c.want)
			}
			thinking, _ := b.More["thinking"].(map[string]any)
			if budget, ok := thinking["budget_tokens"].(float64); ok && (b.Inference == nil || float64(b.Inference.MaxTokens) <= budget) {
				t.Errorf("a budget of %v beside the limit %v", budget, b.Inference)
			}
		})
	}
}

// TestRender_ThoughtsGoOn: a turn that another model began goes on without
// thoughts where they would have to be there from its beginning.
func TestRender_ThoughtsGoOn(t *testing.T) {
	m := over(t, canned{}, claude)
	call := domain.ModelCall{ID: "1", ProviderID: "t", Name: "read_file", Args: []byte(`{}`)}
	signed := &domain.Opaque{Provider: "fake", Data: []byte(`{"model":"` + claude + `","parts":[{"thought":{"size":2,"signature":"s"}},{"call":true}]}`)}
	for name, c := range map[string]struct {
		msgs    []domain.ModelMessage
		dropped option
		think   bool
	}{
		"its own turn":     {msgs: []domain.ModelMessage{domain.ModelReply{Thought: "hm", Opaque: signed, Calls: []domain.ModelCall{call}}, domain.ToolOutput{Call: call}}, think: true},
		"another's turn":   {msgs: []domain.ModelMessage{domain.ModelReply{Thought: "hm", Calls: []domain.ModelCall{call}}, domain.ToolOutput{Call: call}}},
		"a turn of before": {msgs: []domain.ModelMessage{domain.ModelReply{Calls: []domain.ModelCall{call}}, domain.ToolOutput{Call: call}, said("b")}, think: true},
		"without its own":  {msgs: []domain.ModelMessage{domain.ModelReply{Thought: "hm", Opaque: signed, Calls: []domain.ModelCall{call}}, domain.ToolOutput{Call: call}}, dropped: dropSigned},
	} {
		t.Run(name, func(t *testing.T) {
			req := porttest.SampleRequest()
			req.Thoughts, req.MaxOutputTokens = domain.ThoughtsHigh, 32000
			req.Messages = append(req.Messages, c.msgs...)
			if b, _ := sent(t, m, req, c.dropped); (b.More != nil) != c.think {
				t.Errorf("asked for thoughts: %v", b.More)
			}
		})
	}
}

// TestRender_Limit: the limit of a reply is sent unless it was refused.
func TestRender_Limit(t *testing.T) {
	m := over(t, canned{}, llama)
	req := porttest.SampleRequest()
	if b, _ := sent(t, m, req, 0); b.Inference == nil || b.Inference.MaxTokens != 1000 {
		t.Errorf("%+v", b.Inference)
	}
	if b, _ := sent(t, m, req, dropLimit); b.Inference != nil {
		t.Errorf("%+v", b.Inference)
	}
	req.MaxOutputTokens = 0
	if b, _ := sent(t, m, req, 0); b.Inference != nil {
		t.Errorf("%+v", b.Inference)
	}
}
