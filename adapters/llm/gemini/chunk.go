package gemini

import (
	"encoding/json"

	"github.com/berth-dev/berth/adapters/llm"
	"github.com/berth-dev/berth/core/domain"
)

// chunk is one GenerateContentResponse: an event of a stream, or the whole
// answer. Texts stay raw, because their halves of characters would be lost.
type chunk struct {
	Error      json.RawMessage `json:"error"`
	Candidates []candidate     `json:"candidates"`
	Feedback   *struct {
		Blocked string `json:"blockReason"`
	} `json:"promptFeedback"`
	Usage *usage `json:"usageMetadata"`
}

type candidate struct {
	Index   int `json:"index"`
	Content *struct {
		Parts []came `json:"parts"`
	} `json:"content"`
	Finish string `json:"finishReason"`
}

// came is a part as a model sends it.
type came struct {
	Text    json.RawMessage `json:"text"`
	Thought bool            `json:"thought"`
	Sign    string          `json:"thoughtSignature"`
	Call    *asked          `json:"functionCall"`

	// What nobody asked for, and must not be lost in silence.
	Inline json.RawMessage `json:"inlineData"`
	File   json.RawMessage `json:"fileData"`
	Code   json.RawMessage `json:"executableCode"`
	Ran    json.RawMessage `json:"codeExecutionResult"`
}

// strange reports whether the part holds something that was not asked for.
func (p *came) strange() bool {
	return llm.Present(p.Inline) || llm.Present(p.File) || llm.Present(p.Code) || llm.Present(p.Ran)
}

// asked is a call as a model sends it.
type asked struct {
	ID      string          `json:"id"`
	Name    string          `json:"name"`
	Args    json.RawMessage `json:"args"`
	Partial json.RawMessage `json:"partialArgs"`
	More    bool            `json:"willContinue"`
}

// usage is what the provider counts, in tokens.
type usage struct {
	Prompt     llm.Count `json:"promptTokenCount"`
	Cached     llm.Count `json:"cachedContentTokenCount"`
	Candidates llm.Count `json:"candidatesTokenCount"`
	Thoughts   llm.Count `json:"thoughtsTokenCount"`
	ToolUse    llm.Count `json:"toolUsePromptTokenCount"`
}

// UnmarshalJSON passes over counts that have another form.
func (u *usage) UnmarshalJSON(data []byte) error {
	type plain usage
	llm.Counts(data, (*plain)(u))
	return nil
}

// domain converts the counts: thoughts are counted apart from candidates.
func (u usage) domain() domain.Usage {
	return domain.Usage{
		Input: int64(u.Prompt + u.ToolUse), Output: int64(u.Candidates + u.Thoughts), Thought: int64(u.Thoughts), CachedRead: int64(u.Cached),
	}
}

// first returns the only candidate there is when one was asked for, nil when
// the chunk has none.
func (c *chunk) first() *candidate {
	for i := range c.Candidates {
		if c.Candidates[i].Index == 0 {
			return &c.Candidates[i]
		}
	}
	return nil
}

// says reports whether the chunk holds anything of an answer.
func (c *chunk) says() bool {
	return len(c.Candidates) > 0 || c.Feedback != nil || c.Usage != nil
}
