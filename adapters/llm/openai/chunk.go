package openai

import (
	"encoding/json"

	"github.com/berth-dev/berth/adapters/llm"
	"github.com/berth-dev/berth/core/domain"
)

// chunk is any event of a stream, or the one object of an answer that is no
// stream. Texts stay raw, because their halves of characters would be lost.
type chunk struct {
	Error   json.RawMessage `json:"error"`
	Choices []choice        `json:"choices"`
	Usage   *usage          `json:"usage"`
	Groq    *struct {
		Usage *usage `json:"usage"`
	} `json:"x_groq"`
}

type choice struct {
	Index   int      `json:"index"`
	Delta   *message `json:"delta"`
	Message *message `json:"message"` // in place of a delta when nothing is streamed
	Finish  string   `json:"finish_reason"`
	Usage   *usage   `json:"usage"`
	// Error is why this choice ended, from OpenRouter.
	Error json.RawMessage `json:"error"`
}

type message struct {
	Content          json.RawMessage   `json:"content"`
	ReasoningContent json.RawMessage   `json:"reasoning_content"`
	Reasoning        json.RawMessage   `json:"reasoning"`
	Details          []json.RawMessage `json:"reasoning_details"`
	Refusal          json.RawMessage   `json:"refusal"`
	Calls            []fragment        `json:"tool_calls"`
	Function         *function         `json:"function_call"` // the form before tools
	Extra            json.RawMessage   `json:"extra_content"`
}

// fragment is a piece of one tool call.
type fragment struct {
	ID       string          `json:"id"`
	Index    *int            `json:"index"`
	Function function        `json:"function"`
	Extra    json.RawMessage `json:"extra_content"`
}

type function struct {
	Name string          `json:"name"`
	Args json.RawMessage `json:"arguments"`
}

// usage is what servers count, under the names in use.
type usage struct {
	Prompt     llm.Count `json:"prompt_tokens"`
	Completion llm.Count `json:"completion_tokens"`
	Total      llm.Count `json:"total_tokens"`
	CacheHit   llm.Count `json:"prompt_cache_hit_tokens"`
	PromptMore *struct {
		Cached llm.Count `json:"cached_tokens"`
		Write  llm.Count `json:"cache_write_tokens"`
	} `json:"prompt_tokens_details"`
	CompletionMore *struct {
		Reasoning llm.Count `json:"reasoning_tokens"`
	} `json:"completion_tokens_details"`
	// The cost, from OpenRouter. Other servers have other things by this name.
	Cost        json.RawMessage `json:"cost"`
	OwnKey      json.RawMessage `json:"is_byok"`
	CostDetails json.RawMessage `json:"cost_details"`
}

// UnmarshalJSON passes over counts that have another form.
func (u *usage) UnmarshalJSON(data []byte) error {
	type plain usage
	llm.Counts(data, (*plain)(u))
	return nil
}

// domain converts the counts. Where reasoning was left out of the completion,
// which the total betrays, it is added.
func (u usage) domain() domain.Usage {
	out := domain.Usage{Input: int64(u.Prompt), Output: int64(u.Completion), CachedRead: int64(u.CacheHit)}
	if p := u.PromptMore; p != nil {
		out.CachedRead, out.CachedWrite = max(out.CachedRead, int64(p.Cached)), int64(p.Write)
	}
	if c := u.CompletionMore; c != nil {
		out.Thought = int64(c.Reasoning)
		if c.Reasoning > 0 && u.Total == u.Prompt+u.Completion+c.Reasoning {
			out.Output += int64(c.Reasoning)
		}
	}
	return out
}

// decode reads an event in full.
func decode(data []byte) (*chunk, error) {
	var c chunk
	if err := json.Unmarshal(data, &c); err != nil {
		return nil, err
	}
	return &c, nil
}

// first returns the only choice there is when one answer was asked for, nil
// when the event has none.
func (c *chunk) first() *choice {
	for i := range c.Choices {
		if c.Choices[i].Index == 0 {
			return &c.Choices[i]
		}
	}
	return nil
}

// said returns what a choice says: its delta, else its whole message.
func (c *choice) said() *message {
	if c.Delta != nil {
		return c.Delta
	}
	return c.Message
}

// usages returns the newest counts of an event, nil when it has none.
func (c *chunk) usages() *usage {
	switch {
	case c.Usage != nil:
		return c.Usage
	case c.Groq != nil && c.Groq.Usage != nil:
		return c.Groq.Usage
	case len(c.Choices) > 0:
		return c.Choices[0].Usage
	}
	return nil
}

// textOf unescapes a text field: a string, null, or a list of parts whose
// texts are joined. Parts that are thoughts come back as the second result.
func textOf(raw json.RawMessage) (text, thought []byte, err error) {
	if !llm.Present(raw) || raw[0] != '[' {
		text, err = llm.AppendText(nil, raw)
		return text, nil, err
	}
	var parts []struct {
		Type     string          `json:"type"`
		Text     json.RawMessage `json:"text"`
		Thinking json.RawMessage `json:"thinking"`
	}
	if err := json.Unmarshal(raw, &parts); err != nil {
		return nil, nil, llm.ErrNotText
	}
	for _, p := range parts {
		said, _, err := textOf(p.Text)
		if err != nil {
			return nil, nil, err
		}
		// A thinking part holds a text, or text parts of its own.
		inner, _, err := textOf(p.Thinking)
		if err != nil {
			return nil, nil, err
		}
		text, thought = append(text, said...), append(thought, inner...)
	}
	return text, thought, nil
}
