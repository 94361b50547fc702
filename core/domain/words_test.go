package domain

import (
	"strings"
	"testing"
)

func TestWords(t *testing.T) {
	long := strings.Repeat("é0123456789", 5000)
	for name, pieces := range map[string][]string{
		"nothing":                   nil,
		"an empty piece":            {""},
		"one":                       {"hello"},
		"pieces that fill blocks":   {strings.Repeat("a", 64), strings.Repeat("b", 128), "c"},
		"a letter over two blocks":  {strings.Repeat("a", 63), "é", "z"},
		"one longer than any block": {"x", long, "y"},
		"many small ones":           strings.Split(long, "9"),
	} {
		t.Run(name, func(t *testing.T) {
			var w Words
			for _, p := range pieces {
				w.Add(p)
			}
			want := strings.Join(pieces, "")
			for _, skip := range []int{0, w.Len() / 2, w.Len()} {
				if got := w.After(skip); got != want[skip:] {
					t.Fatalf("without the first %d bytes: %d bytes, want %d; or others", skip, len(got), len(want)-skip)
				}
			}
		})
	}
}

// TestWords_Cost holds a small piece to its bytes: what was gathered before is
// never copied.
func TestWords_Cost(t *testing.T) {
	const pieces = 5000
	got := testing.AllocsPerRun(10, func() {
		var w Words
		for range pieces {
			w.Add("a few words ")
		}
	})
	if got > 25 { // 9 blocks up to the longest, 2 of that, and their list
		t.Errorf("%d small pieces allocate %.0f times, allowed are 25", pieces, got)
	}
}
