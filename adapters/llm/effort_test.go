package llm

import (
	"testing"

	"github.com/berth-dev/berth/core/domain"
)

// TestEffort: a level becomes the nearest word that a model takes, and a model
// that takes none is not told.
func TestEffort(t *testing.T) {
	const value, unknown = "Unsupported value: 'x' is not supported with this model. Supported values are: …", "Unrecognized request argument supplied: reasoning_effort"
	for _, c := range []struct {
		name     string
		level    domain.ThoughtLevel
		refusals []string
		want     []string // at first and after each refusal
	}{
		{"nothing asked", "", nil, []string{""}},
		{"off", domain.ThoughtsOff, []string{value, value, value}, []string{"none", "minimal", "low", ""}},
		{"off, where it must think", domain.ThoughtsOff, []string{"Reasoning is mandatory for this endpoint and cannot be disabled."}, []string{"none", "minimal"}},
		{"minimal", domain.ThoughtsMinimal, []string{value, value}, []string{"minimal", "low", ""}},
		{"medium", domain.ThoughtsMedium, []string{value}, []string{"medium", ""}},
		{"xhigh", domain.ThoughtsXHigh, []string{value, value}, []string{"xhigh", "high", ""}},
		{"no such field", domain.ThoughtsXHigh, []string{unknown}, []string{"xhigh", ""}},
		{"no such level", "enormous", nil, []string{""}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var refused Efforts
			for i, want := range c.want {
				got := Effort(c.level, refused)
				if got != want {
					t.Fatalf("after %d refusals %q, want %q", i, got, want)
				}
				if i < len(c.refusals) {
					refused = RefuseEffort(refused, got, c.refusals[i])
				}
			}
			if refused >= 1<<EffortBits {
				t.Errorf("%b has more than %d bits", refused, EffortBits)
			}
		})
	}
}
