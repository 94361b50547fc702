package responses

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

// open connects a model to a handler on a network in memory.
func open(t porttest.TB, h http.Handler) *Model {
	t.Helper()
	m, err := New(llm.Provider{Client: llmtest.Connect(t, h), ProviderConfig: llm.ProviderConfig{
		Name: "fake", BaseURL: llmtest.Host + "/v1", APIKey: func() (string, error) { return llmtest.Canary, nil },
	}}, domain.ModelInfo{
		Ref: domain.ModelRef{Provider: "fake", Model: "fake-1"}, Title: "fake", Tools: true, Images: true, Thoughts: true,
	})
	if err != nil {
		t.Fatalf("%v", err)
	}
	return m
}

// answer is a server that answers with fixed bytes.
func answer(contentType, body string) http.Handler {
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
	thinking := false
	to := func(thought bool) {
		if thinking != thought {
			b.WriteString(map[bool]string{true: "<", false: ">"}[thought])
		}
		thinking = thought
	}
	for ev, err := range m.Stream(t.Context(), req) {
		_, thought := ev.(domain.ThoughtDelta)
		to(thought)
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
	return strings.TrimPrefix(b.String(), " "), failure
}

func js(v any) string {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(data)
}

// data makes a stream of events.
func data(events ...string) string {
	var b strings.Builder
	for _, e := range events {
		b.WriteString("data: " + e + "\n\n")
	}
	return b.String()
}

// The events of the tables. Each is about the item at an index.
func text(i int, s string) string {
	return fmt.Sprintf(`{"type":"response.output_text.delta","output_index":%d,"item_id":"i%d","content_index":0,"delta":%s}`, i, i, js(s))
}

func thought(i, part int, s string) string {
	return fmt.Sprintf(`{"type":"response.reasoning_summary_text.delta","output_index":%d,"item_id":"i%d","summary_index":%d,"delta":%s}`, i, i, part, js(s))
}

func args(i int, s string) string {
	return fmt.Sprintf(`{"type":"response.function_call_arguments.delta","output_index":%d,"item_id":"i%d","delta":%s}`, i, i, js(s))
}

func added(i int, item string) string {
	return fmt.Sprintf(`{"type":"response.output_item.added","output_index":%d,"item":%s}`, i, item)
}

func finished(i int, item string) string {
	return fmt.Sprintf(`{"type":"response.output_item.done","output_index":%d,"item":%s}`, i, item)
}

// The items, as they stand when they are whole.
func call(i int, id, name, args string) string {
	return fmt.Sprintf(`{"id":"i%d","type":"function_call","status":"completed","call_id":%q,"name":%q,"arguments":%s}`, i, id, name, js(args))
}

func said(i int, s string) string {
	return fmt.Sprintf(`{"id":"i%d","type":"message","status":"completed","role":"assistant","content":[{"type":"output_text","text":%s,"annotations":[]}]}`, i, js(s))
}

func thinking(i int, encrypted string, summary ...string) string {
	parts := []map[string]string{}
	for _, s := range summary {
		parts = append(parts, map[string]string{"type": "summary_text", "text": s})
	}
	return fmt.Sprintf(`{"id":"i%d","type":"reasoning","encrypted_content":%s,"summary":%s}`, i, js(encrypted), js(parts))
}

// completed closes a response that lists items.
func completed(items ...string) string {
	return `{"type":"response.completed","response":{"object":"response","status":"completed","output":[` + strings.Join(items, ",") + `]}}`
}

func incomplete(reason string) string {
	return `{"type":"response.incomplete","response":{"object":"response","status":"incomplete","incomplete_details":{"reason":"` + reason + `"},"output":[]}}`
}

func failed(code, words string) string {
	return `{"type":"response.failed","response":{"object":"response","status":"failed","error":{"code":"` + code + `","message":"` + words + `"}}}`
}

func user(s string) domain.UserInput {
	return domain.UserInput{Blocks: []domain.Block{domain.Text{Text: s}}}
}
