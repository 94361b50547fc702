package anthropic

import (
	"fmt"
	"testing"

	"github.com/berth-dev/berth/adapters/llm"
	"github.com/berth-dev/berth/core/domain"
)

// TestFamily: models of others are told what compatible servers take.
func TestFamily(t *testing.T) {
	other := llm.Claude{Thinks: llm.ThinksBudget, Always: true}
	for name, want := range map[string]llm.Claude{
		"claude-opus-4-6": {Version: 406, Thinks: llm.ThinksAdaptive}, "glm-4.6": other, "deepseek-ai/deepseek-v4:thinking": other, "": other,
	} {
		if got := familyOf(name); got != want {
			t.Errorf("%s: %+v, want %+v", name, got, want)
		}
	}
}

// TestComplete: what is known of Claude's models without asking, and what
// configuration puts over it.
func TestComplete(t *testing.T) {
	no, set := false, int64(50_000)
	ms, err := llm.New(llm.Config{Providers: []llm.ProviderConfig{{
		Name: "a", Type: "anthropic", Models: map[string]llm.ModelFacts{"claude-opus-5": {ContextWindow: set, Thoughts: &no}},
	}}}, map[string]llm.Opener{"anthropic": Opener()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(ms.Close)
	ref := domain.ModelRef{Provider: "a", Model: "claude-opus-5"}
	info := ms.Describe(ref)
	if info.ContextWindow != set || info.Thoughts || info.MaxOutput < 128_000 {
		t.Errorf("%+v", info)
	}
	m, err := ms.Open(t.Context(), ref)
	if err != nil || m.Info() != info {
		t.Errorf("opened it is %+v, %v", m, err)
	}
	for name, want := range map[string]string{
		"claude-2.1":                "1 1 false false",
		"claude-3-5-haiku-20241022": "1 1 true false",
		"claude-sonnet-4-5":         "1 1 true true",
		"claude-sonnet-4-6":         "1 1 true true",
		"claude-haiku-5-5":          "1000000 128000 true true",
		"some-model":                "1 1 false false",
	} {
		info := complete(domain.ModelInfo{Ref: domain.ModelRef{Model: name}, ContextWindow: 1, MaxOutput: 1, Audio: true})
		if got := fmt.Sprint(info.ContextWindow, info.MaxOutput, info.Images, info.Thoughts); got != want || info.Audio {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}

// TestPlan: how models of each family are told how much to think, and how long
// a reply may be.
func TestPlan(t *testing.T) {
	const sonnet5, sonnet46, sonnet45, haiku35, glm = "claude-sonnet-5", "claude-sonnet-4-6", "claude-sonnet-4-5", "claude-3-5-haiku", "glm-4.6"
	for _, c := range []struct {
		name, model string
		level       domain.ThoughtLevel
		asked, most int64
		dropped     option
		want        string
	}{
		{"adaptive, default", sonnet5, "", 0, 0, 0, "8192 adaptive summarized"},
		{"adaptive, off", sonnet5, domain.ThoughtsOff, 0, 0, 0, "8192 disabled"},
		{"adaptive, off refused", sonnet5, domain.ThoughtsOff, 0, 0, dropOff, "8192 effort=low"},
		{"adaptive, off and effort refused", sonnet5, domain.ThoughtsOff, 0, 0, dropOff | dropEffort, "8192"},
		{"adaptive, minimal", sonnet5, domain.ThoughtsMinimal, 0, 0, 0, "8192 adaptive summarized effort=low"},
		{"adaptive, medium", sonnet5, domain.ThoughtsMedium, 1000, 0, 0, "1000 adaptive summarized effort=medium"},
		{"adaptive, xhigh", sonnet5, domain.ThoughtsXHigh, 0, 0, 0, "8192 adaptive summarized effort=xhigh"},
		{"adaptive, xhigh, effort refused", sonnet5, domain.ThoughtsXHigh, 0, 0, dropEffort, "8192 adaptive summarized"},
		{"adaptive, display refused", sonnet5, domain.ThoughtsHigh, 0, 0, dropDisplay, "8192 adaptive effort=high"},
		{"adaptive, thinking refused", sonnet5, domain.ThoughtsHigh, 0, 0, dropThinking, "8192"},
		{"adaptive refused", sonnet5, domain.ThoughtsHigh, 64_000, 0, swapThinking, "64000 enabled 20000"},
		{"off by itself, default", sonnet46, "", 0, 0, 0, "8192"},
		{"off by itself, off", sonnet46, domain.ThoughtsOff, 0, 0, 0, "8192"},
		{"off by itself, xhigh", sonnet46, domain.ThoughtsXHigh, 0, 0, 0, "8192 adaptive summarized effort=max"},
		{"budget, default", sonnet45, "", 0, 0, 0, "8192"},
		{"budget, off", sonnet45, domain.ThoughtsOff, 0, 0, 0, "8192"},
		{"budget, minimal", sonnet45, domain.ThoughtsMinimal, 0, 0, 0, "8192 enabled 1024"},
		{"budget, low", sonnet45, domain.ThoughtsLow, 0, 64_000, 0, "64000 enabled 4096"},
		{"budget, xhigh", sonnet45, domain.ThoughtsXHigh, 0, 64_000, 0, "64000 enabled 32000"},
		{"budget, room for the answer", sonnet45, domain.ThoughtsXHigh, 16_000, 64_000, 0, "16000 enabled 12000"},
		{"budget, hardly any room", sonnet45, domain.ThoughtsHigh, 1100, 0, 0, "1100 enabled 1024"},
		{"budget, no room", sonnet45, domain.ThoughtsHigh, 1024, 0, 0, "1024"},
		{"budget refused", sonnet45, domain.ThoughtsHigh, 0, 0, swapThinking, "8192 adaptive summarized effort=high"},
		{"never", haiku35, domain.ThoughtsHigh, 0, 0, 0, "8192"},
		{"compatible, default", glm, "", 0, 0, 0, "8192"},
		{"compatible, off", glm, domain.ThoughtsOff, 0, 0, 0, "8192 disabled"},
		{"compatible, off refused", glm, domain.ThoughtsOff, 0, 0, dropOff, "8192"},
		{"compatible, high", glm, domain.ThoughtsHigh, 0, 0, 0, "8192 enabled 6144"},
		{"compatible, budget refused", glm, domain.ThoughtsXHigh, 0, 0, swapThinking, "8192 adaptive summarized effort=high"},
		{"a reply longer than the model's", sonnet46, "", 100_000, 64_000, 0, "64000"},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := open(t, nil, func(_ *llm.Provider, info *domain.ModelInfo) { info.Ref.Model, info.MaxOutput = c.model, c.most })
			m.dropped.Store(uint32(c.dropped))
			p := m.plan(domain.ModelRequest{Thoughts: c.level, MaxOutputTokens: int(c.asked)}, amends{})
			got := fmt.Sprint(p.most)
			if p.think != nil {
				got += " " + p.think.Type
				if p.think.Budget > 0 {
					got += fmt.Sprint(" ", p.think.Budget)
				}
				if p.think.Display != "" {
					got += " " + p.think.Display
				}
			}
			if p.effort != "" {
				got += " effort=" + p.effort
			}
			if got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
		})
	}
}

// TestPlan_Unthinking: a model that is said not to think is asked nothing.
func TestPlan_Unthinking(t *testing.T) {
	m := open(t, nil, func(_ *llm.Provider, info *domain.ModelInfo) { info.Thoughts = false })
	if p := m.plan(domain.ModelRequest{Thoughts: domain.ThoughtsHigh}, amends{}); p.think != nil || p.effort != "" {
		t.Errorf("%+v", p)
	}
}

// TestPlan_Beta: only Anthropic itself is told of what is not general, and only
// where it is needed.
func TestPlan_Beta(t *testing.T) {
	for _, c := range []struct {
		base, model string
		want        string
	}{
		{"", "claude-sonnet-4-5", interleaved},
		{"", "claude-3-7-sonnet", ""},
		{"", "claude-sonnet-4-6", ""},
		{"https://gateway.invalid/v1", "claude-sonnet-4-5", ""},
	} {
		m := open(t, nil, func(p *llm.Provider, info *domain.ModelInfo) { p.BaseURL, info.Ref.Model = c.base, c.model })
		if p := m.plan(domain.ModelRequest{Thoughts: domain.ThoughtsLow}, amends{}); p.beta != c.want {
			t.Errorf("%s at %q: %q", c.model, c.base, p.beta)
		}
	}
}
