package bedrock

import (
	"encoding/json"
	"strings"

	"github.com/berth-dev/berth/adapters/llm"
	"github.com/berth-dev/berth/core/domain"
)

// event is what any frame of a reply says. Texts stay raw, because their
// halves of characters would be lost.
type event struct {
	Index int `json:"contentBlockIndex"`
	Start struct {
		Call *struct {
			ID   string `json:"toolUseId"`
			Name string `json:"name"`
		} `json:"toolUse"`
	} `json:"start"`
	Delta delta  `json:"delta"`
	Stop  string `json:"stopReason"`
	Usage *usage `json:"usage"`
}

// delta is a piece of a block; one of its members is there.
type delta struct {
	Text json.RawMessage `json:"text"`
	Call *struct {
		Input json.RawMessage `json:"input"`
	} `json:"toolUse"`
	Thought *struct {
		Text      json.RawMessage `json:"text"`
		Signature json.RawMessage `json:"signature"`
		Redacted  []byte          `json:"redactedContent"`
	} `json:"reasoningContent"`
}

// usage is what Bedrock counts. What came from a cache or went into one is
// not part of the input.
type usage struct {
	Input      llm.Count `json:"inputTokens"`
	Output     llm.Count `json:"outputTokens"`
	CacheRead  llm.Count `json:"cacheReadInputTokens"`
	CacheWrite llm.Count `json:"cacheWriteInputTokens"`
}

// UnmarshalJSON passes over counts that have another form.
func (u *usage) UnmarshalJSON(data []byte) error {
	type plain usage
	llm.Counts(data, (*plain)(u))
	return nil
}

func (u usage) domain() domain.Usage {
	return domain.Usage{
		Input: int64(u.Input + u.CacheRead + u.CacheWrite), Output: int64(u.Output),
		CachedRead: int64(u.CacheRead), CachedWrite: int64(u.CacheWrite),
	}
}

// refusal reads an exception or an error that came in place of an event. The
// class of an exception has a status of its own; it is the one that the same
// refusal would have had at the start of the answer.
func (f frame) refusal() llm.Refusal {
	if string(f.message) == "error" {
		kind := string(f.code)
		return llm.Refusal{Type: kind, Message: string(f.words), Status: statusOf(kind), After: -1}
	}
	r, ok := llm.ParseRefusal(f.payload)
	if !ok {
		r = llm.Refusal{After: -1}
	}
	r.Type = string(f.event)
	r.Status = statusOf(r.Type)
	return r
}

// statusOf returns the status of a class of exceptions, 0 for one that is not
// known.
func statusOf(kind string) int {
	switch strings.TrimSuffix(strings.ToLower(kind), "exception") {
	case "validation", "servicequotaexceeded":
		return 400
	case "accessdenied", "unrecognizedclient", "expiredtoken":
		return 403
	case "resourcenotfound":
		return 404
	case "modeltimeout":
		return 408
	case "modelerror", "modelstreamerror":
		return 424
	case "throttling", "modelnotready":
		return 429
	case "internalserver":
		return 500
	case "serviceunavailable":
		return 503
	}
	return 0
}
