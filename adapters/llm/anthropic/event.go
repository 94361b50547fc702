package anthropic

import (
	"encoding/json"

	"github.com/berth-dev/berth/adapters/llm"
	"github.com/berth-dev/berth/core/domain"
)

// event is any event of a stream. Texts stay raw, because their halves of
// characters would be lost.
type event struct {
	Type    string     `json:"type"`
	Index   *int       `json:"index"`
	Message *answer    `json:"message"`       // message_start
	Block   *piece     `json:"content_block"` // content_block_start
	Delta   *piece     `json:"delta"`         // content_block_delta, message_delta
	Usage   *usage     `json:"usage"`         // message_delta
	Error   rawMessage `json:"error"`
}

type rawMessage = json.RawMessage

// answer is a whole message, or one that begins.
type answer struct {
	Type    string     `json:"type"`
	Content []*piece   `json:"content"`
	Stop    string     `json:"stop_reason"`
	Usage   *usage     `json:"usage"`
	Error   rawMessage `json:"error"`
}

// piece is a content block, or what is added to one or to the message.
type piece struct {
	Type      string     `json:"type"`
	Text      rawMessage `json:"text"`
	Thinking  rawMessage `json:"thinking"`
	Signature string     `json:"signature"`
	Data      string     `json:"data"`
	ID        string     `json:"id"`
	Name      string     `json:"name"`
	Input     rawMessage `json:"input"`
	Partial   rawMessage `json:"partial_json"`
	Stop      string     `json:"stop_reason"`
}

// usage is what the provider counts. A field that is absent was not counted.
type usage struct {
	Input   *llm.Count `json:"input_tokens"`
	Output  *llm.Count `json:"output_tokens"`
	Written *llm.Count `json:"cache_creation_input_tokens"`
	Read    *llm.Count `json:"cache_read_input_tokens"`
	Details *struct {
		Thinking *llm.Count `json:"thinking_tokens"`
	} `json:"output_tokens_details"`
}

// UnmarshalJSON passes over counts that have another form.
func (u *usage) UnmarshalJSON(data []byte) error {
	type plain usage
	llm.Counts(data, (*plain)(u))
	return nil
}

// replace puts newer counts over u. Servers that do not know a count yet, or
// any more, send 0 for it.
func (u *usage) replace(v *usage) {
	if v == nil {
		return
	}
	for _, c := range []struct{ from, to **llm.Count }{{&v.Input, &u.Input}, {&v.Output, &u.Output}, {&v.Written, &u.Written}, {&v.Read, &u.Read}} {
		if *c.from != nil && (**c.from > 0 || *c.to == nil) {
			*c.to = *c.from
		}
	}
	if v.Details != nil {
		u.Details = v.Details
	}
}

// domain converts the counts: the wire counts what was read from the cache and
// written to it apart from the rest of the prompt.
func (u usage) domain() domain.Usage {
	count := func(n *llm.Count) int64 {
		if n == nil {
			return 0
		}
		return int64(*n)
	}
	out := domain.Usage{Output: count(u.Output), CachedRead: count(u.Read), CachedWrite: count(u.Written)}
	out.Input = count(u.Input) + out.CachedRead + out.CachedWrite
	if u.Details != nil {
		out.Thought = min(count(u.Details.Thinking), out.Output)
	}
	return out
}
