package domain

import "testing"

func TestFenced(t *testing.T) {
	for _, tt := range []struct{ lang, text, want string }{
		{"", "", "```\n\n```"},
		{"go", "x := `a`", "```go\nx := `a`\n```"},
		{"", "a\n", "```\na\n```"},
		{"", "a\n\n", "```\na\n\n```"},
		{"", "``` and `````", "``````\n``` and `````\n``````"},
		{"", "`` ` ``", "```\n`` ` ``\n```"},
	} {
		if got := Fenced(tt.lang, tt.text); got != tt.want {
			t.Errorf("%q: %q, want %q", tt.text, got, tt.want)
		}
	}
}
