package anthropic

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/berth-dev/berth/adapters/llm"
	"github.com/berth-dev/berth/adapters/llm/llmtest"
	"github.com/berth-dev/berth/core/domain"
	"github.com/berth-dev/berth/core/ports/porttest"
)

// open returns a model that asks a handler over a network in memory.
func open(t *testing.T, h http.Handler, change func(*llm.Provider, *domain.ModelInfo)) *Model {
	t.Helper()
	p := llm.Provider{ProviderConfig: llm.ProviderConfig{
		Name: "fake", BaseURL: llmtest.Host + "/v1", APIKey: func() (string, error) { return llmtest.Canary, nil },
	}}
	if h != nil {
		p.Client = llmtest.Connect(porttest.T(t), h)
	}
	info := domain.ModelInfo{Ref: domain.ModelRef{Provider: "fake", Model: "claude-sonnet-5-5"}, Images: true, Thoughts: true, MaxOutput: 32_000}
	if change != nil {
		change(&p, &info)
	}
	m, err := New(p, info)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// answers is a server that answers with fixed bytes.
func answers(contentType, body string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		_, _ = io.Copy(io.Discard, req.Body)
		w.Header().Set("Content-Type", contentType)
		_, _ = io.WriteString(w, body)
	})
}

// got renders a reply in one line: text, <thought>, +call(args), #usage,
// .finish or !code.
func got(t testing.TB, m *Model, req domain.ModelRequest) (line string, failure error) {
	t.Helper()
	var b strings.Builder
	mode := ""
	to := func(next string) {
		if mode == "thought" && next != mode {
			b.WriteString(">")
		}
		if next == "thought" && mode != next {
			b.WriteString("<")
		}
		mode = next
	}
	for ev, err := range m.Stream(t.Context(), req) {
		switch ev := ev.(type) {
		case domain.TextDelta:
			to("text")
			b.WriteString(ev.Text)
		case domain.ThoughtDelta:
			to("thought")
			b.WriteString(ev.Text)
		case domain.CallRequested:
			to("call")
			fmt.Fprintf(&b, " +%s:%s%s", ev.Call.ProviderID, ev.Call.Name, ev.Call.Args)
		case domain.UsageReported:
			to("usage")
			u := ev.Usage
			fmt.Fprintf(&b, " #%d/%d", u.Input, u.Output)
			if u.CachedRead+u.CachedWrite+u.Thought > 0 {
				fmt.Fprintf(&b, "(r%d w%d t%d)", u.CachedRead, u.CachedWrite, u.Thought)
			}
		case domain.Finish:
			to("finish")
			fmt.Fprintf(&b, " .%s", ev.Reason)
			if ev.Opaque != nil {
				fmt.Fprintf(&b, " %s", layoutIn(t, ev.Opaque))
			}
		}
		if err != nil {
			to("error")
			fmt.Fprintf(&b, " !%s", domain.CodeOf(err))
			failure = err
		}
	}
	return b.String(), failure
}

// layoutIn shows what was kept with a reply, a word a block.
func layoutIn(t testing.TB, o *domain.Opaque) string {
	t.Helper()
	var k keepsake
	if err := json.Unmarshal(o.Data, &k); err != nil {
		t.Fatal(err)
	}
	var words []string
	for _, b := range k.Blocks {
		switch {
		case b.Thought != nil && b.Thought.Data != "":
			words = append(words, "redacted="+b.Thought.Data)
		case b.Thought != nil:
			words = append(words, "thought="+b.Thought.Text+"/"+b.Thought.Signature)
		case b.Call > 0:
			words = append(words, fmt.Sprintf("call%d", b.Call))
		default:
			words = append(words, fmt.Sprintf("text%d", b.Text))
		}
	}
	return "[" + strings.Join(words, " ") + "]"
}

// js encodes a value as JSON.
func js(v any) string {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(data)
}

// data makes a stream of events, whose names are their types.
func data(events ...string) string {
	var b strings.Builder
	for _, e := range events {
		var named struct {
			Type string `json:"type"`
		}
		if json.Unmarshal([]byte(e), &named) == nil && named.Type != "" {
			b.WriteString("event: " + named.Type + "\n")
		}
		b.WriteString("data: " + e + "\n\n")
	}
	return b.String()
}

// The events of the wire.
const (
	msgStart = `{"type":"message_start","message":{"id":"m","type":"message","role":"assistant","content":[],"stop_reason":null}}`
	msgStop  = `{"type":"message_stop"}`
)

func start(index int, block string) string {
	return fmt.Sprintf(`{"type":"content_block_start","index":%d,"content_block":%s}`, index, block)
}

func added(index int, d string) string {
	return fmt.Sprintf(`{"type":"content_block_delta","index":%d,"delta":%s}`, index, d)
}
func text(index int, s string) string { return added(index, `{"type":"text_delta","text":`+js(s)+`}`) }
func hint(index int, s string) string {
	return added(index, `{"type":"thinking_delta","thinking":`+js(s)+`}`)
}
func sign(index int, s string) string {
	return added(index, `{"type":"signature_delta","signature":`+js(s)+`}`)
}
func args(index int, s string) string {
	return added(index, `{"type":"input_json_delta","partial_json":`+js(s)+`}`)
}
func stopAt(index int) string { return fmt.Sprintf(`{"type":"content_block_stop","index":%d}`, index) }
func ended(reason string) string {
	return `{"type":"message_delta","delta":{"stop_reason":"` + reason + `","stop_sequence":null}}`
}

const (
	textBlock  = `{"type":"text","text":""}`
	thinkBlock = `{"type":"thinking","thinking":"","signature":""}`
)

func callBlock(id, name string) string {
	return `{"type":"tool_use","id":"` + id + `","name":"` + name + `","input":{}}`
}

func user(s string) domain.UserInput {
	return domain.UserInput{Blocks: []domain.Block{domain.Text{Text: s}}}
}
