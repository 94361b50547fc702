package bootstrap

import (
	"testing"
	"time"

	"github.com/berth-dev/berth/core/domain"
)

// TestPacer: a burst, then a steady pace; each token has its own.
func TestPacer(t *testing.T) {
	now := time.Unix(1000, 0)
	p := newPacer(func() time.Time { return now })
	begin := func(name string) int {
		for n := 0; ; n++ {
			if err := p.begin(name); err != nil {
				if !domain.HasCode(err, domain.SessionLimit) {
					t.Fatal(err)
				}
				return n
			}
		}
	}
	for _, step := range []struct {
		name  string
		after time.Duration
		want  int
	}{
		{"a", 0, 120}, {"a", 0, 0}, {"b", 0, 120}, {"a", 50 * time.Millisecond, 0}, {"a", 50 * time.Millisecond, 1}, {"a", time.Second, 12},
		{"a", time.Hour, 120}, {"a", -time.Hour, 0}, {"a", time.Second, 12},
	} {
		now = now.Add(step.after)
		if got := begin(step.name); got != step.want {
			t.Errorf("%s after %v: %d, want %d", step.name, step.after, got, step.want)
		}
	}
}
