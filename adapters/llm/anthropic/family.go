package anthropic

import (
	"github.com/berth-dev/berth/adapters/llm"
	"github.com/berth-dev/berth/core/domain"
)

// familyOf reads the name of a model. Names that are not Claude's are those of
// compatible servers, which take the older of the two ways to be told how much
// to think, and think by themselves.
func familyOf(model string) llm.Claude {
	if c, ok := llm.ClaudeOf(model); ok {
		return c
	}
	return llm.Claude{Thinks: llm.ThinksBudget, Always: true}
}

// complete adds what the name of a Claude model tells, for those that no
// catalogue lists yet. Of other models the name tells nothing.
func complete(info domain.ModelInfo) domain.ModelInfo {
	info.Audio = false // the wire has none
	c, ok := llm.ClaudeOf(info.Ref.Model)
	if !ok {
		return info
	}
	info.Images = c.Version >= 300
	info.Thoughts = c.Thinks != llm.ThinksNever
	if c.Version > 406 {
		info.ContextWindow = max(info.ContextWindow, 1_000_000)
		info.MaxOutput = max(info.MaxOutput, 128_000)
	}
	return info
}
