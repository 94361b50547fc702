package responses

import (
	"bytes"
	"encoding/json"

	"github.com/berth-dev/berth/adapters/llm"
	"github.com/berth-dev/berth/core/domain"
)

// event is any event of a stream. Texts stay raw, because their halves of
// characters would be lost.
type event struct {
	Type    string          `json:"type"`
	Index   *int            `json:"output_index"`
	ItemID  string          `json:"item_id"`
	Summary int             `json:"summary_index"`
	Content int             `json:"content_index"`
	Delta   json.RawMessage `json:"delta"`
	Args    json.RawMessage `json:"arguments"`
	Item    json.RawMessage `json:"item"`
	// Response is in the events that open and close a response.
	Response json.RawMessage `json:"response"`
	Error    json.RawMessage `json:"error"`
}

// response is a response as a whole.
type response struct {
	Object     string          `json:"object"`
	Status     string          `json:"status"`
	Error      json.RawMessage `json:"error"`
	Incomplete *struct {
		Reason string `json:"reason"`
	} `json:"incomplete_details"`
	Output []json.RawMessage `json:"output"`
	Usage  *usage            `json:"usage"`
}

// output is an item of a response.
type output struct {
	Type      string          `json:"type"`
	ID        string          `json:"id"`
	Status    string          `json:"status"`
	Phase     string          `json:"phase"`
	CallID    string          `json:"call_id"`
	Name      string          `json:"name"`
	Args      json.RawMessage `json:"arguments"`
	Content   []content       `json:"content"`
	Summary   []content       `json:"summary"`
	Encrypted json.RawMessage `json:"encrypted_content"`
}

type content struct {
	Type    string          `json:"type"`
	Text    json.RawMessage `json:"text"`
	Refusal json.RawMessage `json:"refusal"`
}

// usage is what the server counted. Cached tokens are part of the input,
// reasoning is part of the output.
type usage struct {
	Input     llm.Count `json:"input_tokens"`
	Output    llm.Count `json:"output_tokens"`
	InputMore *struct {
		Cached llm.Count `json:"cached_tokens"`
		Write  llm.Count `json:"cache_write_tokens"`
	} `json:"input_tokens_details"`
	OutputMore *struct {
		Reasoning llm.Count `json:"reasoning_tokens"`
	} `json:"output_tokens_details"`
}

// UnmarshalJSON passes over counts that have another form.
func (u *usage) UnmarshalJSON(data []byte) error {
	type plain usage
	llm.Counts(data, (*plain)(u))
	return nil
}

func (u usage) domain() domain.Usage {
	out := domain.Usage{Input: int64(u.Input), Output: int64(u.Output)}
	if m := u.InputMore; m != nil {
		out.CachedRead, out.CachedWrite = int64(m.Cached), int64(m.Write)
	}
	if m := u.OutputMore; m != nil {
		out.Thought = int64(m.Reasoning)
	}
	return out
}

// sameArgs compares arguments, white space aside.
func sameArgs(a, b []byte) bool {
	if bytes.Equal(a, b) {
		return true
	}
	var x, y bytes.Buffer
	return json.Compact(&x, []byte(llm.Whole(a))) == nil && json.Compact(&y, []byte(llm.Whole(b))) == nil && bytes.Equal(x.Bytes(), y.Bytes())
}
