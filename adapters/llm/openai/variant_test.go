package openai

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/berth-dev/berth/adapters/llm"
	"github.com/berth-dev/berth/adapters/llm/llmtest"
	"github.com/berth-dev/berth/core/domain"
	"github.com/berth-dev/berth/core/ports/porttest"
)

// varied returns a model of a variant at an address.
func varied(t porttest.TB, client *llm.Client, v variant, base, model string) *Model {
	t.Helper()
	p := llm.Provider{Client: client, ProviderConfig: llm.ProviderConfig{
		Name: "fake", BaseURL: base, APIKey: func() (string, error) { return canary, nil },
	}}
	m, err := newModel(p, domain.ModelInfo{Ref: domain.ModelRef{Provider: "fake", Model: model}, Images: true, Thoughts: true}, v)
	if err != nil {
		t.Fatalf("%v", err)
	}
	return m
}

func TestVariant_Address(t *testing.T) {
	for _, c := range []struct {
		v          variant
		base, want string // "" wants an error
	}{
		{openRouter, "", "https://openrouter.ai/api/v1/chat/completions"},
		{openRouter, "https://or.invalid/api/v1/", "https://or.invalid/api/v1/chat/completions"},
		{azure, "https://acme.openai.azure.com/openai/v1", "https://acme.openai.azure.com/openai/v1/chat/completions"},
		{azure, "https://acme.openai.azure.com/openai/v1/?api-version=preview", "https://acme.openai.azure.com/openai/v1/chat/completions?api-version=preview"},
		{azure, "https://acme.openai.azure.com", "https://acme.openai.azure.com/openai/v1/chat/completions"},
		{azure, "https://acme.openai.azure.com/openai/", "https://acme.openai.azure.com/openai/v1/chat/completions"},
		{azure, "https://acme.openai.azure.com/openai/deployments/gpt?api-version=2024-10-21", "https://acme.openai.azure.com/openai/deployments/gpt/chat/completions?api-version=2024-10-21"},
		{azure, "https://acme.openai.azure.com/openai/deployments/gpt/chat/completions?api-version=2024-10-21", "https://acme.openai.azure.com/openai/deployments/gpt/chat/completions?api-version=2024-10-21"},
		{azure, "https://acme.openai.azure.com/openai/deployments/gpt", ""},
		{azure, "", ""},
		{azure, "acme.openai.azure.com", ""},
	} {
		m, err := newModel(llm.Provider{ProviderConfig: llm.ProviderConfig{Name: "p", BaseURL: c.base}}, domain.ModelInfo{}, c.v)
		switch {
		case c.want == "" && (!domain.HasCode(err, domain.InvalidArgument) || !strings.Contains(err.Error(), "providers.p.base_url")):
			t.Errorf("%q: error %v", c.base, err)
		case c.want != "" && (err != nil || m.url != c.want):
			t.Errorf("%q: %v, error %v", c.base, m, err)
		}
	}
}

// TestVariant_Fields: each server is sent what it understands, and no more.
func TestVariant_Fields(t *testing.T) {
	const name = "stream_options max_tokens max_completion_tokens reasoning_effort prompt_cache_key reasoning usage"
	for _, c := range []struct {
		name    string
		v       variant
		level   domain.ThoughtLevel
		dropped option
		want    string
	}{
		{"compatible", compatible, "", 0, `stream_options={"include_usage":true} max_tokens=1000`},
		{"compatible, thinking", compatible, domain.ThoughtsHigh, 0, `stream_options={"include_usage":true} max_tokens=1000 reasoning_effort="high"`},
		{"official", official, domain.ThoughtsOff, swapLimit, `stream_options={"include_usage":true} max_completion_tokens=1000 reasoning_effort="none" prompt_cache_key="7b0f4d36-5d0e-4f0e-9a35-0d2f6b1f0a11"`},
		{"official, refused", official, "", dropCacheKey | dropUsage, `max_tokens=1000`},
		{"openrouter", openRouter, "", 0, `max_tokens=1000 usage={"include":true}`},
		{"openrouter, thinking", openRouter, domain.ThoughtsXHigh, 0, `max_tokens=1000 reasoning={"effort":"xhigh"} usage={"include":true}`},
		{"openrouter, not thinking", openRouter, domain.ThoughtsOff, 0, `max_tokens=1000 reasoning={"effort":"none"} usage={"include":true}`},
		{"azure", azure, domain.ThoughtsMinimal, 0, `stream_options={"include_usage":true} max_tokens=1000 reasoning_effort="minimal"`},
	} {
		req := porttest.SampleRequest()
		req.Thoughts = c.level
		data, err := varied(porttest.T(t), nil, c.v, "https://acme.invalid/openai/v1", "m").render(req, c.dropped)
		var fields map[string]json.RawMessage
		if err != nil || json.Unmarshal(data, &fields) != nil {
			t.Fatal(err)
		}
		var got []string
		for _, f := range strings.Fields(name) {
			if v, ok := fields[f]; ok {
				got = append(got, f+"="+string(v))
			}
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%s:\ngot  %s\nwant %s", c.name, strings.Join(got, " "), c.want)
		}
	}
	m := varied(porttest.T(t), nil, compatible, "https://acme.invalid/v1", "m")
	m.info.Thoughts = false
	req := porttest.SampleRequest()
	req.Thoughts = domain.ThoughtsHigh
	if data, err := m.render(req, 0); err != nil || strings.Contains(string(data), "reasoning") {
		t.Errorf("a model that does not think is told how much: %s, %v", data, err)
	}
}

// TestVariant_CacheMarks: what Anthropic's models are to cache is marked.
func TestVariant_CacheMarks(t *testing.T) {
	const mark = `"cache_control":{"type":"ephemeral"}`
	call := domain.ModelCall{ID: "1", ProviderID: "a", Name: "f", Args: []byte("{}")}
	png := domain.Image{MIME: "image/png", Data: []byte("png")}
	req := domain.ModelRequest{System: "sys", Messages: []domain.ModelMessage{
		user("one"), domain.ModelReply{Text: "t"}, domain.UserInput{Blocks: []domain.Block{domain.Text{Text: "two"}, png}},
		domain.ModelReply{Calls: []domain.ModelCall{call}}, domain.ToolOutput{Call: call, Text: "r"},
	}}
	marked := varied(porttest.T(t), nil, openRouter, "", "anthropic/claude")
	want := []string{
		`{"role":"system","content":[{"type":"text","text":"sys",` + mark + `}]}`, `{"role":"user","content":[{"type":"text","text":"one"}]}`, `{"role":"assistant","content":"t"}`,
		`{"role":"user","content":[{"type":"text","text":"two",` + mark + `},{"type":"image_url","image_url":{"url":"data:image/png;base64,cG5n"}}]}`,
		`{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}}]}`,
		`{"role":"tool","tool_call_id":"a","content":[{"type":"text","text":"r",` + mark + `}]}`,
	}
	if got := rendered(t, marked, req); strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	for _, m := range []*Model{varied(porttest.T(t), nil, openRouter, "", "openai/gpt"), varied(porttest.T(t), nil, compatible, "http://x/v1", "anthropic/claude")} {
		if got := rendered(t, m, req); strings.Contains(strings.Join(got, ""), "cache_control") {
			t.Errorf("%s", got)
		}
	}
}

// TestVariant_Media: what tools show follows all of their outputs.
func TestVariant_Media(t *testing.T) {
	a := domain.ModelCall{ID: "1", ProviderID: "a", Name: "f", Args: []byte("{}")}
	b := domain.ModelCall{ID: "2", ProviderID: "b", Name: "g", Args: []byte("{}")}
	png, wav := domain.Image{MIME: "image/png", Data: []byte("png")}, domain.Audio{MIME: "audio/wav", Data: []byte("w")}
	req := domain.ModelRequest{Messages: []domain.ModelMessage{
		user("q"), domain.ModelReply{Calls: []domain.ModelCall{a, b}},
		domain.ToolOutput{Call: a, Text: "1", Media: []domain.Block{png, wav}}, domain.ToolOutput{Call: b, Text: "2"}, user("and?"),
	}}
	tail := func(m *Model) string { return strings.Join(rendered(t, m, req)[2:], "\n") }
	sees := testModel(t, nil)
	blind := testModel(t, func(_ *llm.Provider, i *domain.ModelInfo) { i.Images = false })
	if got, want := tail(sees), `{"role":"tool","tool_call_id":"a","content":"1\n\n[Audio: audio/wav]"}`+"\n"+`{"role":"tool","tool_call_id":"b","content":"2"}`+"\n"+
		`{"role":"user","content":[{"type":"text","text":"[Shown by the tool f:]"},{"type":"image_url","image_url":{"url":"data:image/png;base64,cG5n"}},{"type":"text","text":"and?"}]}`; got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if got, want := tail(blind), `{"role":"tool","tool_call_id":"a","content":"1\n\n[Image: image/png]\n\n[Audio: audio/wav]"}`+"\n"+`{"role":"tool","tool_call_id":"b","content":"2"}`+"\n"+
		`{"role":"user","content":"and?"}`; got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// TestVariant_Cost: OpenRouter's costs are passed on, other servers' fields of
// that name are not.
func TestVariant_Cost(t *testing.T) {
	body := func(fields string) string {
		return data(text("a"), ended("stop"), `{"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":1,`+fields+`}}`, done)
	}
	for _, c := range []struct {
		name   string
		v      variant
		fields string
		want   string
	}{
		{"told", openRouter, `"cost":0.00123456`, "1235"},
		{"nothing", openRouter, `"cost":0`, "0"},
		{"with a key of one's own", openRouter, `"cost":0.00005,"is_byok":true,"cost_details":{"upstream_inference_cost":0.001}`, "1050"},
		{"upstream's part of it", openRouter, `"cost":0.001,"is_byok":false,"cost_details":{"upstream_inference_cost":0.001}`, "1000"},
		{"not told", openRouter, `"x":1`, "none"},
		{"null", openRouter, `"cost":null,"is_byok":null,"cost_details":null`, "none"},
		{"beyond all measure", openRouter, `"cost":1e300`, "none"},
		{"no number", openRouter, `"cost":{"usd":1},"is_byok":"yes","cost_details":[]`, "none"},
		{"another server", compatible, `"cost":0.5`, "none"},
		{"another server, another form", compatible, `"cost":{"usd":1}`, "none"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := varied(porttest.T(t), llmtest.Connect(porttest.T(t), answer("text/event-stream", body(c.fields))), c.v, llmtest.Host, "m")
				got := "no usage"
				for ev, err := range m.Stream(t.Context(), porttest.SampleRequest()) {
					if err != nil {
						t.Fatal(err)
					}
					if u, ok := ev.(domain.UsageReported); ok {
						if got = "none"; u.Cost != nil {
							got = fmt.Sprint(int64(*u.Cost))
						}
					}
				}
				if got != c.want {
					t.Errorf("%s, want %s", got, c.want)
				}
			})
		})
	}
}

// TestVariant_Streams is what only some servers send.
func TestVariant_Streams(t *testing.T) {
	for _, c := range []struct {
		name string
		v    variant
		body string
		want string
	}{
		{"OpenRouter, an error in the stream", openRouter, ": OPENROUTER PROCESSING\n\n" + data(text("a"), `{"id":"g","error":{"code":"server_error","message":"Provider disconnected"},"choices":[{"index":0,"delta":{"content":""},"finish_reason":"error"}]}`), "a !unavailable"},
		{"OpenRouter, an error in a choice", openRouter, data(text("a"), `{"choices":[{"index":0,"delta":{"content":""},"finish_reason":"error","native_finish_reason":"error","error":{"code":429,"message":"slow down"}}]}`), "a !rate limited"},
		{"OpenRouter, an error of no words", openRouter, data(text("a"), ended("error")), "a !unavailable"},
		{"OpenRouter, credits", openRouter, data(`{"error":{"code":402,"message":"This request requires more credits"}}`), "!quota exhausted"},
		{"OpenRouter, moderation", openRouter, data(`{"error":{"code":403,"message":"Your input was flagged","metadata":{"reasons":["x"],"flagged_input":"y"}}}`), "!provider rejected"},
		{"Azure, the filter's notes", azure, data(`{"choices":[],"prompt_filter_results":[{"prompt_index":0}]}`, text("a"), `{"choices":[{"content_filter_offsets":{"check_offset":1},"content_filter_results":{"hate":{"filtered":false}},"finish_reason":null,"index":0}]}`, ended("stop"), done), "a .stop"},
		{"Azure, the filter in a reply", azure, data(text("a"), `{"choices":[{"index":0,"delta":{},"content_filter_results":{"hate":{"filtered":true,"severity":"high"}},"finish_reason":"content_filter"}]}`, done), "a .refusal"},
		{"Azure, the filter in the stream", azure, data(text("a"), `{"error":{"code":"content_filter","message":"x","innererror":{"content_filter_result":{"hate":{"filtered":true}}}}}`), "a !provider rejected"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := varied(porttest.T(t), llmtest.Connect(porttest.T(t), answer("text/event-stream", c.body)), c.v, llmtest.Host, "m")
				if line, err := got(t, m, porttest.SampleRequest()); strings.TrimSpace(line) != c.want {
					t.Errorf("%q, want %q: %v", line, c.want, err)
				}
			})
		})
	}
}

// TestVariant_Filter: a prompt that Azure's filter refuses is told as that.
func TestVariant_Filter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusBadRequest)
			_, _ = fmt.Fprint(w, `{"error":{"message":"The response was filtered due to the prompt","param":"prompt","code":"content_filter","status":400,`+
				`"innererror":{"code":"ResponsibleAIPolicyViolation","content_filter_result":{"violence":{"filtered":true,"severity":"medium"}}}}}`)
		})
		m := varied(porttest.T(t), llmtest.Connect(porttest.T(t), h), azure, llmtest.Host, "m")
		_, err := got(t, m, porttest.SampleRequest())
		if !domain.HasCode(err, domain.ProviderRejected) || !strings.Contains(err.Error(), "a content filter refused the request: violence") {
			t.Errorf("%v", err)
		}
	})
}

// TestVariant_Effort: a server that does not know how to be told is not told
// again, one that knows other words is told in those.
func TestVariant_Effort(t *testing.T) {
	for _, c := range []struct {
		name   string
		v      variant
		level  domain.ThoughtLevel
		refuse func(map[string]any) string
		want   any // the effort of the last request
		asked  int
	}{
		{"no such field", compatible, domain.ThoughtsMedium, func(b map[string]any) string {
			if b["reasoning_effort"] != nil {
				return "Unrecognized request argument supplied: reasoning_effort"
			}
			return ""
		}, nil, 3},
		{"no such value", compatible, domain.ThoughtsXHigh, func(b map[string]any) string {
			if b["reasoning_effort"] == "xhigh" {
				return "Unsupported value: 'reasoning_effort' does not support 'xhigh' with this model. Supported values are: 'low', 'medium', and 'high'."
			}
			return ""
		}, "high", 3},
		{"not beside tools", official, domain.ThoughtsLow, func(b map[string]any) string {
			if b["reasoning_effort"] != nil {
				return "Function tools with reasoning_effort are not supported for this model in /v1/chat/completions."
			}
			return ""
		}, nil, 3},
		{"it must think", openRouter, domain.ThoughtsOff, func(b map[string]any) string {
			if r, _ := b["reasoning"].(map[string]any); r["effort"] == "none" {
				return "Reasoning is mandatory for this endpoint and cannot be disabled."
			}
			return ""
		}, map[string]any{"effort": "minimal"}, 3},
		{"no reasoning at all", openRouter, domain.ThoughtsHigh, func(b map[string]any) string {
			if b["reasoning"] != nil {
				return "reasoning is not supported by this endpoint"
			}
			return ""
		}, nil, 4},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := &picky{refuse: c.refuse, reply: data(text("ok"), ended("stop"), done)}
				m := varied(porttest.T(t), llmtest.Connect(porttest.T(t), server), c.v, llmtest.Host, "m")
				req := porttest.SampleRequest()
				req.Thoughts = c.level
				for range 2 {
					if line, err := got(t, m, req); strings.TrimSpace(line) != "ok .stop" {
						t.Errorf("%q, %v", line, err)
					}
				}
				last := server.seen[len(server.seen)-1]
				effort := last["reasoning_effort"]
				if c.v == openRouter {
					effort = last["reasoning"]
				}
				if fmt.Sprint(effort) != fmt.Sprint(c.want) || len(server.seen) != c.asked {
					t.Errorf("%d requests, the last with %v", len(server.seen), effort)
				}
			})
		})
	}
}

// TestVariant_Headers: OpenRouter is told who asks, unless configured
// otherwise; nobody else is.
func TestVariant_Headers(t *testing.T) {
	for v, want := range map[variant]string{openRouter: "Berth", compatible: "", azure: "", official: ""} {
		synctest.Test(t, func(t *testing.T) {
			var h http.Header
			m := varied(porttest.T(t), llmtest.Connect(porttest.T(t), http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
				h = req.Header
				_, _ = fmt.Fprint(w, data(text("a"), ended("stop")))
			})), v, llmtest.Host, "m")
			if _, err := got(t, m, porttest.SampleRequest()); err != nil || h.Get("X-Title") != want || h.Get("Referer")+h.Get("Http-Referer") != "" {
				t.Errorf("%v: %v, %v", v, h, err)
			}
		})
	}
}
