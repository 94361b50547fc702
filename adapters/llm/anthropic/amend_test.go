package anthropic

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/berth-dev/berth/adapters/llm"
	"github.com/berth-dev/berth/core/domain"
	"github.com/berth-dev/berth/core/ports/porttest"
)

// picky is a server that refuses what a test names and records requests.
type picky struct {
	refuse func(body string, h http.Header) (status int, words string) // 0 accepts
	seen   []string
}

func (p *picky) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	body, _ := io.ReadAll(req.Body)
	p.seen = append(p.seen, string(body))
	if status, words := p.refuse(string(body), req.Header); status != 0 {
		refusal := `{"type":"error","error":{"type":"invalid_request_error","message":` + js(words) + `}}`
		if status == http.StatusOK {
			_, _ = io.WriteString(w, data(msgStart, refusal))
			return
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, refusal)
		return
	}
	_, _ = io.WriteString(w, said("ok")+data(ended("end_turn"), msgStop))
}

// refusing refuses what holds any of some texts.
func refusing(words string, texts ...string) func(string, http.Header) (int, string) {
	return func(body string, h http.Header) (int, string) {
		for _, s := range texts {
			if strings.Contains(body+h.Get("Anthropic-Beta"), s) {
				return http.StatusBadRequest, words
			}
		}
		return 0, ""
	}
}

// thoughtful is a request in the middle of a turn, with a thought and a picture.
func thoughtful(level domain.ThoughtLevel) domain.ModelRequest {
	req := porttest.SampleRequest()
	req.MaxOutputTokens, req.Thoughts = 0, level
	c := call("x", "read_file")
	req.Messages = append(req.Messages, domain.ModelReply{Text: "I read.", Calls: []domain.ModelCall{c}, Opaque: &domain.Opaque{
		Provider: "fake", Data: []byte(`{"model":"MODEL","blocks":[{"thought":{"text":"hm","signature":"SIG"}},{"text":7},{"call":1}]}`),
	}}, domain.ToolOutput{Call: c, Text: "a dot", Media: []domain.Block{domain.Image{MIME: "image/png", Data: []byte("png")}}})
	return req
}

type amendCase struct {
	name, model string
	level       domain.ThoughtLevel
	refuse      func(string, http.Header) (int, string)
	lacks       []string // what the accepted request does not have
	has         string   // what it has
	lasts       bool     // the next request is accepted at once
}

func amendCases() []amendCase {
	const sonnet5, sonnet46, sonnet45, glm = "claude-sonnet-5", "claude-sonnet-4-6", "claude-sonnet-4-5", "glm-4.6"
	const high, off = domain.ThoughtsHigh, domain.ThoughtsOff
	return []amendCase{
		{"cache marks", sonnet5, "", refusing("tools.0.cache_control: Extra inputs are not permitted", "cache_control"), []string{"cache_control"}, "SIG", true},
		{"a budget where thinking is adaptive", glm, high,
			refusing("\"thinking.type.enabled\" is not supported for this model. Use \"thinking.type.adaptive\" and \"output_config.effort\" to control thinking behavior.", "budget_tokens"),
			[]string{"budget_tokens"}, `"thinking":{"type":"adaptive","display":"summarized"},"output_config":{"effort":"high"}`, true},
		{"adaptive where there is a budget", sonnet46, high, refusing("adaptive thinking is not supported on this model", `"adaptive"`), []string{"adaptive", "output_config"}, `"thinking":{"type":"enabled","budget_tokens":20000}`, true},
		{"thinking of any form", sonnet46, high, refusing("thinking: Extra inputs are not permitted", `"thinking":{`, "output_config"), []string{`"thinking":{`, "output_config"}, "SIG", true},
		{"an effort", sonnet5, high, refusing("This model does not support the effort parameter.", "output_config"), []string{"output_config"}, `"type":"adaptive"`, true},
		{"a display", sonnet5, high, refusing("thinking.adaptive.display: Extra inputs are not permitted", "display"), []string{"display"}, `"type":"adaptive"`, true},
		{"thinking that cannot be off", sonnet5, off, refusing("thinking.type: \"disabled\" is not supported for this model", "disabled"), []string{"disabled"}, `"output_config":{"effort":"low"}`, true},
		{"what is not general yet", sonnet45, high, refusing("Unexpected value(s) `interleaved-thinking-2025-05-14` for the `anthropic-beta` header", interleaved), nil, "budget_tokens", true},
		{"a reply that is too long", sonnet5, high, refusing("max_tokens: 32000 > 8192, which is the maximum allowed number of output tokens for x", `"max_tokens":32000`), nil, `"max_tokens":8192`, true},
		{"a reply that does not fit", sonnet5, high, refusing("input length and `max_tokens` exceed context limit: 188240 + 32000 > 200000, decrease input length or `max_tokens` and try again", `"max_tokens":32000`), nil, `"max_tokens":11760`, false},
		{"a signature", sonnet5, high, refusing("messages.1.content.0: Invalid `signature` in `thinking` block", "SIG"), []string{"SIG"}, `"type":"adaptive"`, false},
		{"a thought of another conversation", sonnet5, high, refusing("messages.1.content.0: Invalid `signature` in `thinking` block. The block is bound to a different conversation. Remove the block, or set ...", "SIG"), []string{"SIG"}, `"type":"adaptive"`, false},
		{"a thought that was changed", sonnet5, high, refusing("messages.1.content.0: `thinking` or `redacted_thinking` blocks in the latest assistant message cannot be modified.", "SIG"), []string{"SIG"}, `"type":"adaptive"`, false},
		{"a signature, and then that it is missing", sonnet45, high, func(body string, _ http.Header) (int, string) {
			switch {
			case strings.Contains(body, "SIG"):
				return 400, "messages.1.content.0: Invalid `signature` in `thinking` block"
			case strings.Contains(body, "budget_tokens"):
				return 400, "messages.1.content.0.type: Expected `thinking` or `redacted_thinking`, but found `text`. When `thinking` is enabled, a final `assistant` message must start with a thinking block"
			}
			return 0, ""
		}, []string{"SIG", "budget_tokens"}, "I read.", false},
		{"a thought, inside a stream", sonnet5, high, func(body string, _ http.Header) (int, string) {
			if strings.Contains(body, "SIG") {
				return http.StatusOK, "messages.1.content.0: Invalid `signature` in `thinking` block"
			}
			return 0, ""
		}, []string{"SIG"}, `"type":"adaptive"`, false},
		{"a picture", sonnet5, high, refusing("messages.2.content.0.tool_result.content.1.image.source.base64: Could not process image", "cG5n"), []string{"cG5n"}, `[Image: image/png]`, false},
	}
}

// TestAmend: what a server refuses and can be left out is left out at once,
// for good where it is the server's way, and nothing else with it.
func TestAmend(t *testing.T) {
	for _, c := range amendCases() {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := &picky{refuse: c.refuse}
				m := open(t, server, func(p *llm.Provider, info *domain.ModelInfo) {
					p.BaseURL, p.MaxRetries = "http://fake.invalid/v1", 0
					info.Ref.Model = c.model
				})
				m.official = true
				req := thoughtful(c.level)
				req.Messages[1] = withModel(t, req.Messages[1], c.model)
				if line, err := got(t, m, req); line != "ok .stop" {
					t.Fatalf("%q, %v", line, err)
				}
				first, n := server.seen[0], len(server.seen)
				last := server.seen[n-1]
				for _, s := range c.lacks {
					if strings.Contains(last, s) || !strings.Contains(first, s) && len(c.lacks) == 1 {
						t.Errorf("%s: first\n%s\nthen\n%s", s, first, last)
					}
				}
				if !strings.Contains(last, c.has) {
					t.Errorf("lacks %s:\n%s", c.has, last)
				}
				if _, err := got(t, m, req); err != nil {
					t.Fatal(err)
				}
				if again := len(server.seen) - n; c.lasts != (again == 1) {
					t.Errorf("%d requests, then %d", n, again)
				}
			})
		})
	}
}

func withModel(t *testing.T, msg domain.ModelMessage, model string) domain.ModelMessage {
	t.Helper()
	r, ok := msg.(domain.ModelReply)
	if !ok {
		t.Fatalf("%T", msg)
	}
	o := *r.Opaque
	o.Data = []byte(strings.Replace(string(o.Data), "MODEL", model, 1))
	r.Opaque = &o
	return r
}

// TestAmend_Never: a refusal that leaving something out does not mend is told
// after a few requests, and one that is about something else at once.
func TestAmend_Never(t *testing.T) {
	for words, most := range map[string]int{
		"thinking cache_control effort display adaptive signature image":              8,
		"max_tokens: 32000 > 40000, which is odd":                                     1,
		"max_tokens: must be positive":                                                1,
		"input length and `max_tokens` exceed context limit: 1 + 2":                   1,
		"input length and `max_tokens` exceed context limit: 199990 + 32000 > 200000": 1,
		"tools.0.name: not a name":                                                    1,
		"":                                                                            1,
	} {
		synctest.Test(t, func(t *testing.T) {
			server := &picky{refuse: func(string, http.Header) (int, string) { return http.StatusBadRequest, words }}
			req := thoughtful(domain.ThoughtsHigh)
			req.Messages[1] = withModel(t, req.Messages[1], "claude-sonnet-5-5")
			_, err := got(t, open(t, server, nil), req)
			if n := len(server.seen); n > most || !domain.HasCode(err, domain.ProviderRejected) && !domain.HasCode(err, domain.ContextTooLong) {
				t.Errorf("%q: %d requests, %v", words, n, err)
			}
		})
	}
}

// TestAmend_Nothing: what is not in a request is not left out of it.
func TestAmend_Nothing(t *testing.T) {
	for words, most := range map[string]int{"an `image` could not be read": 1, "Invalid `signature` of a thinking block": 2} {
		synctest.Test(t, func(t *testing.T) {
			server := &picky{refuse: func(string, http.Header) (int, string) { return http.StatusBadRequest, words }}
			if _, err := got(t, open(t, server, nil), porttest.SampleRequest()); err == nil || len(server.seen) != most {
				t.Errorf("%q: %d requests, %v", words, len(server.seen), err)
			}
		})
	}
}

// TestAmend_Status: only a bad request is asked again.
func TestAmend_Status(t *testing.T) {
	for _, status := range []int{401, 403, 404, 413} {
		synctest.Test(t, func(t *testing.T) {
			server := &picky{refuse: func(string, http.Header) (int, string) { return status, "thinking cache_control" }}
			if _, err := got(t, open(t, server, nil), porttest.SampleRequest()); err == nil || len(server.seen) != 1 {
				t.Errorf("%d: %d requests, %v", status, len(server.seen), err)
			}
		})
	}
}

// TestKeep_Origin: thoughts go back to the very provider and model they came
// from, and to nobody else; damaged ones are left out.
func TestKeep_Origin(t *testing.T) {
	const model = "claude-sonnet-5-5"
	whole := `{"model":"` + model + `","blocks":[{"thought":{"text":"a","signature":"s1"}},{"text":2},{"thought":{"data":"d"}},{"text":5},{"call":1}]}`
	for _, c := range []struct {
		name, provider, data string
		want                 string
	}{
		{"its own", "fake", whole, "thinking text redacted_thinking text tool_use"},
		{"another provider's", "other", whole, "text tool_use"},
		{"another model's", "fake", strings.Replace(whole, model, "claude-opus-5-5", 1), "text tool_use"},
		{"no JSON", "fake", "garbage", "text tool_use"},
		{"of a text that is longer", "fake", strings.Replace(whole, `"text":5`, `"text":9`, 1), "thinking redacted_thinking text tool_use"},
		{"of a text that is shorter", "fake", strings.Replace(whole, `"text":5`, `"text":1`, 1), "thinking redacted_thinking text tool_use"},
		{"of negative texts", "fake", strings.Replace(whole, `"text":5`, `"text":-5`, 1), "thinking redacted_thinking text tool_use"},
		{"of a call that is not there", "fake", strings.Replace(whole, `"call":1`, `"call":2`, 1), "thinking redacted_thinking text tool_use"},
		{"of a call twice", "fake", strings.Replace(whole, `{"call":1}`, `{"call":1},{"call":1}`, 1), "thinking redacted_thinking text tool_use"},
		{"a thought in the end", "fake", strings.Replace(whole, `{"call":1}`, `{"call":1},{"thought":{"data":"e"}}`, 1), "thinking text redacted_thinking text tool_use"},
	} {
		t.Run(c.name, func(t *testing.T) {
			req := domain.ModelRequest{Messages: []domain.ModelMessage{
				user("q"), domain.ModelReply{Text: "I read.", Thought: "a", Calls: []domain.ModelCall{call("x", "f")}, Opaque: &domain.Opaque{Provider: c.provider, Data: []byte(c.data)}},
			}}
			var kinds []string
			for _, b := range rendered(t, open(t, nil, nil), req).Messages[1].Content {
				var k struct{ Type string }
				if err := json.Unmarshal(b, &k); err != nil {
					t.Fatal(err)
				}
				kinds = append(kinds, k.Type)
			}
			if got := strings.Join(kinds, " "); got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
		})
	}
}

// TestKeep_Off: a model that is told not to think is not given thoughts.
func TestKeep_Off(t *testing.T) {
	req := thoughtful(domain.ThoughtsOff)
	req.Messages[1] = withModel(t, req.Messages[1], "claude-sonnet-5-5")
	if lines := rendered(t, open(t, nil, nil), req).lines(); strings.Contains(lines, "SIG") {
		t.Error(lines)
	}
}
