package bedrock

import (
	"strconv"
	"strings"

	"github.com/berth-dev/berth/adapters/llm"
	"github.com/berth-dev/berth/core/domain"
)

// family is what a model is by its maker, as far as requests differ. The name
// of an application inference profile tells nothing of it, and such a model
// gets only what all understand.
type family int

// The families.
const (
	otherFamily family = iota
	claudeFamily
	novaFamily
	gptFamily // OpenAI's open weights
)

func familyOf(model string) family {
	name := bare(model)
	switch {
	case strings.HasPrefix(name, "claude-"):
		return claudeFamily
	case strings.HasPrefix(name, "nova-"):
		return novaFamily
	case strings.HasPrefix(name, "gpt-oss-"):
		return gptFamily
	}
	return otherFamily
}

// bare returns a model's own name: without the ARN's path, the region and the
// maker ("us.anthropic.claude-sonnet-4-20250514-v1:0" is
// "claude-sonnet-4-20250514-v1:0").
func bare(model string) string {
	name := strings.ToLower(model)
	name = name[strings.LastIndexByte(name, '/')+1:]
	for {
		label, rest, more := strings.Cut(name, ".")
		if !more || strings.ContainsAny(label, "0123456789:") {
			return name
		}
		name = rest
	}
}

// complete adds what Bedrock's names hide from the catalogue: a model is known
// by its name without region and maker.
func complete(info domain.ModelInfo) domain.ModelInfo {
	name := bare(info.Ref.Model)
	if facts, ok := factsOf(name); ok {
		if info.ContextWindow == 0 {
			info.ContextWindow = facts.ContextWindow
		}
		if info.MaxOutput == 0 {
			info.MaxOutput = facts.MaxOutput
		}
		info.Images = info.Images || *facts.Images
	}
	info.Thoughts = info.Thoughts || knobOf(name) != noKnob
	return info
}

// factsOf returns what is generally known of a model by its own name. The
// models that only Bedrock has are listed here.
func factsOf(name string) (llm.ModelFacts, bool) {
	if facts, ok := llm.Known(name); ok && facts.Images != nil {
		return facts, true
	}
	const k = 1000
	for _, n := range []struct {
		name   string
		window int64
		output int64
		images bool
	}{
		{"nova-micro", 128 * k, 10 * k, false},
		{"nova-lite", 300 * k, 10 * k, true},
		{"nova-pro", 300 * k, 10 * k, true},
		{"nova-premier", 1000 * k, 10 * k, true},
		{"nova-2-", 1000 * k, 64 * k, true},
	} {
		if strings.HasPrefix(name, n.name) {
			return llm.ModelFacts{ContextWindow: n.window, MaxOutput: n.output, Images: &n.images}, true
		}
	}
	return llm.ModelFacts{}, false
}

// knob is how a model is told to think.
type knob int

// The knobs.
const (
	noKnob       knob = iota
	budgetKnob        // Claude: a number of tokens
	adaptiveKnob      // Claude since 4.6: an effort, and it decides itself
	novaKnob          // Nova 2: an effort
	effortKnob        // gpt-oss: an effort
)

func knobOf(name string) knob {
	switch {
	case strings.HasPrefix(name, "claude-"):
		return claudeKnob(strings.TrimPrefix(name, "claude-"))
	case strings.HasPrefix(name, "nova-2-"):
		return novaKnob
	case strings.HasPrefix(name, "gpt-oss-"):
		return effortKnob
	}
	return noKnob
}

// claudeKnob tells by the version in a name: "3-7-sonnet-20250219-v1:0",
// "opus-4-6-v1", "sonnet-5". A name without one is of a model that is newer.
func claudeKnob(name string) knob {
	version := 0 // as ten times major plus minor
	digits := 0
	for _, word := range strings.Split(name, "-") {
		n, err := strconv.Atoi(word)
		if err != nil {
			if digits == 0 && (strings.HasPrefix(word, "v") || word == "instant") {
				return noKnob
			}
			if digits > 0 {
				break
			}
			continue
		}
		if len(word) > 2 || digits == 2 {
			break
		}
		digits++
		version = version*10 + n
	}
	if digits == 1 {
		version *= 10
	}
	switch {
	case digits == 0 || version >= 46:
		return adaptiveKnob
	case version >= 37:
		return budgetKnob
	}
	return noKnob
}

// leastBudget is the smallest budget of thoughts that Claude takes, and what
// is left beside it for the answer, in tokens.
const leastBudget = 1024

// budgetOf is what a level is worth in tokens.
func budgetOf(level domain.ThoughtLevel) int {
	switch level {
	case domain.ThoughtsMinimal:
		return leastBudget
	case domain.ThoughtsLow:
		return 4096
	case domain.ThoughtsMedium:
		return 10240
	case domain.ThoughtsHigh:
		return 24576
	case domain.ThoughtsXHigh:
		return 32768
	case domain.ThoughtsOff:
	}
	return 0
}

// effortOf is a level as a word, for models that know three of them.
func effortOf(level domain.ThoughtLevel) string {
	switch level {
	case domain.ThoughtsMinimal, domain.ThoughtsLow:
		return "low"
	case domain.ThoughtsMedium:
		return "medium"
	case domain.ThoughtsHigh, domain.ThoughtsXHigh:
		return "high"
	case domain.ThoughtsOff:
	}
	return ""
}

// think sets how much the model is to reason. Whatever a model cannot be told
// is left out: off is what all of them do unless told otherwise, or cannot be
// told at all.
func (m *Model) think(b *body, level domain.ThoughtLevel, unsigned bool, dropped option) {
	if !m.info.Thoughts || dropped&dropThoughts != 0 || effortOf(level) == "" {
		return
	}
	k := knobOf(bare(m.info.Ref.Model))
	if dropped&swapThoughts != 0 {
		switch k {
		case budgetKnob:
			k = adaptiveKnob
		case adaptiveKnob:
			k = budgetKnob
		case noKnob, novaKnob, effortKnob:
		}
	}
	switch k {
	case budgetKnob:
		m.budget(b, level, unsigned)
	case adaptiveKnob:
		thinking := map[string]any{"type": "adaptive"}
		if dropped&dropDisplay == 0 {
			thinking["display"] = "summarized" // some show nothing of their thoughts unless asked
		}
		effort := effortOf(level)
		if level == domain.ThoughtsXHigh {
			effort = "max"
		}
		b.More = map[string]any{"thinking": thinking, "output_config": map[string]any{"effort": effort}}
	case novaKnob:
		effort := effortOf(level)
		if effort == "high" && b.Inference != nil {
			effort = "medium" // the highest takes no limit of tokens beside it
		}
		b.More = map[string]any{"reasoningConfig": map[string]any{"type": "enabled", "maxReasoningEffort": effort}}
	case effortKnob:
		b.More = map[string]any{"reasoning_effort": effortOf(level)}
	case noKnob:
	}
}

// budget gives Claude a number of tokens to think with. It must be smaller
// than the limit of the whole reply. A turn that goes on after a call without
// signed thoughts, as one that another model began, must go on without any.
func (m *Model) budget(b *body, level domain.ThoughtLevel, unsigned bool) {
	if unsigned {
		return
	}
	tokens := budgetOf(level)
	if b.Inference == nil && m.info.MaxOutput > 0 {
		b.Inference = &inference{MaxTokens: int(m.info.MaxOutput)}
	}
	if b.Inference != nil {
		tokens = min(tokens, b.Inference.MaxTokens-leastBudget)
	}
	if tokens >= leastBudget {
		b.More = map[string]any{"thinking": map[string]any{"type": "enabled", "budget_tokens": tokens}}
	}
}
