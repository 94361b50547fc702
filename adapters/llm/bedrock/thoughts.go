package bedrock

import (
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
		info.Images = info.Images || (facts.Images != nil && *facts.Images)
	}
	info.Thoughts = info.Thoughts || knobOf(name) != noKnob
	return info
}

// factsOf returns what is generally known of a model by its own name. The
// models that only Bedrock has are listed here.
func factsOf(name string) (llm.ModelFacts, bool) {
	if facts, ok := llm.Known(name); ok {
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
	budgetKnob        // older Claude: a number of tokens
	adaptiveKnob      // newer Claude: an effort, and it decides itself
	novaKnob          // Nova 2: an effort
	effortKnob        // gpt-oss: an effort
)

func knobOf(name string) knob {
	switch {
	case strings.HasPrefix(name, "claude-"):
		switch c, _ := llm.ClaudeOf(name); c.Thinks {
		case llm.ThinksAdaptive:
			return adaptiveKnob
		case llm.ThinksBudget:
			return budgetKnob
		case llm.ThinksNever:
		}
	case strings.HasPrefix(name, "nova-2-"):
		return novaKnob
	case strings.HasPrefix(name, "gpt-oss-"):
		return effortKnob
	}
	return noKnob
}

// effortOf is a level as a word, for models that know three of them; "" for
// none.
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
// is left out. Unsigned tells that the turn under way cannot be thought about
// with a budget, see conversation.
func (m *Model) think(b *body, level domain.ThoughtLevel, unsigned bool, dropped option) {
	if !m.info.Thoughts || dropped&dropThoughts != 0 {
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
	effort := effortOf(level)
	switch {
	case k == adaptiveKnob:
		m.adapt(b, level, dropped)
	case effort == "":
	case k == budgetKnob && !unsigned:
		m.budget(b, level)
	case k == novaKnob:
		if effort == "high" && b.Inference != nil {
			effort = "medium" // the highest takes no limit of tokens beside it
		}
		b.More = map[string]any{"reasoningConfig": map[string]any{"type": "enabled", "maxReasoningEffort": effort}}
	case k == effortKnob:
		b.More = map[string]any{"reasoning_effort": effort}
	}
}

// adapt lets Claude decide how much it thinks, and tells it the effort. One
// that always thinks is told not to where that is wanted; if it refuses, it is
// asked for as little as it can.
func (m *Model) adapt(b *body, level domain.ThoughtLevel, dropped option) {
	claude, _ := llm.ClaudeOf(bare(m.info.Ref.Model))
	effort := claude.Effort(level)
	switch {
	case level == domain.ThoughtsOff && claude.Always:
		if dropped&dropOff == 0 {
			b.More = map[string]any{"thinking": map[string]any{"type": "disabled"}}
			return
		}
		effort = "low"
	case effort == "" && (level != "" || !claude.Always):
		return
	}
	thinking := map[string]any{"type": "adaptive"}
	if dropped&dropDisplay == 0 {
		thinking["display"] = "summarized" // newer ones show nothing of their thoughts unless asked
	}
	b.More = map[string]any{"thinking": thinking}
	if effort != "" {
		b.More["output_config"] = map[string]any{"effort": effort}
	}
}

// budget gives Claude a number of tokens to think with. It must be smaller
// than the limit of the whole reply.
func (m *Model) budget(b *body, level domain.ThoughtLevel) {
	if b.Inference == nil && m.info.MaxOutput > 0 {
		b.Inference = &inference{MaxTokens: int(m.info.MaxOutput)}
	}
	most := int64(1 << 20)
	if b.Inference != nil {
		most = int64(b.Inference.MaxTokens)
	}
	if tokens := llm.ThoughtBudget(level, most); tokens > 0 {
		b.More = map[string]any{"thinking": map[string]any{"type": "enabled", "budget_tokens": tokens}}
	}
}
