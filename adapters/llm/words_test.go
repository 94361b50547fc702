package llm

import (
	"testing"
	"time"
)

// TestSaidWait: a wait that is told in words is understood, and nothing else
// is taken for one.
func TestSaidWait(t *testing.T) {
	for words, want := range map[string]time.Duration{
		"Please try again in 11.054s. Visit the site": 11054 * time.Millisecond,
		"try again in 20ms":                           20 * time.Millisecond, "Try again in 1m2s.": 62 * time.Second,
		"Please retry in 17.2s.": 17200 * time.Millisecond, "retry after 6 seconds.": 6 * time.Second, "retry after 1 minute": time.Minute,
		"try again in 99999999999999 seconds": 30 * 24 * time.Hour, "try again in 9h99999999h": -1,
		"try again in ": -1, "try again in a while": -1, "try again in -5s": -1, "try again in 5": -1, "retry after midnight": -1, "": -1,
	} {
		got, ok := saidWait(words)
		if !ok {
			got = -1
		}
		if got != want {
			t.Errorf("%q: %s, want %s", words, got, want)
		}
	}
}
