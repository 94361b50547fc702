package llm

import (
	"testing"

	"github.com/berth-dev/berth/core/domain"
)

// TestClaude: what the names of models tell.
func TestClaude(t *testing.T) {
	for name, want := range map[string]struct {
		Claude
		most string // the effort of the highest level
	}{
		"claude-instant-v1":                            {Claude{Version: 100}, "high"},
		"claude-v2:1":                                  {Claude{Version: 200}, "high"},
		"claude-3-haiku-20240307":                      {Claude{Version: 300}, "high"},
		"claude-3-5-sonnet-latest":                     {Claude{Version: 305}, "high"},
		"us.anthropic.claude-3-5-sonnet-20241022-v2:0": {Claude{Version: 305}, "high"},
		"claude-3-7-sonnet-20250219":                   {Claude{Version: 307, Thinks: ThinksBudget}, "high"},
		"claude-opus-4-20250514":                       {Claude{Version: 400, Thinks: ThinksBudget}, "high"},
		"claude-opus-4-0":                              {Claude{Version: 400, Thinks: ThinksBudget}, "high"},
		"anthropic/claude-sonnet-4.5":                  {Claude{Version: 405, Thinks: ThinksBudget}, "high"},
		"claude-haiku-4-5@20251001":                    {Claude{Version: 405, Thinks: ThinksBudget}, "high"},
		"claude-opus-4-6-v1":                           {Claude{Version: 406, Thinks: ThinksAdaptive}, "max"},
		"anthropic.claude-opus-4-8":                    {Claude{Version: 408, Thinks: ThinksAdaptive}, "xhigh"},
		"Claude-Sonnet-5":                              {Claude{Version: 500, Thinks: ThinksAdaptive, Always: true}, "xhigh"},
		"claude-fable-5":                               {Claude{Version: 500, Thinks: ThinksAdaptive, Always: true}, "xhigh"},
		"claude-fable-5-1":                             {Claude{Version: 501, Thinks: ThinksAdaptive, Always: true, Binds: true}, "xhigh"},
		"claude-haiku-5-5":                             {Claude{Version: 505, Thinks: ThinksAdaptive, Always: true, Binds: true}, "xhigh"},
		"claude-opus-latest":                           {Claude{Version: NewestClaude, Thinks: ThinksAdaptive, Always: true, Binds: true}, "xhigh"},
	} {
		got, ok := ClaudeOf(name)
		if most := got.Effort(domain.ThoughtsXHigh); !ok || got != want.Claude || most != want.most {
			t.Errorf("%s: %+v %s, want %+v %s", name, got, most, want.Claude, want.most)
		}
	}
	for _, name := range []string{"", "glm-4.6", "claude/other", "deepseek-ai/deepseek-v4:thinking"} {
		if got, ok := ClaudeOf(name); ok {
			t.Errorf("%q is taken for %+v", name, got)
		}
	}
}
