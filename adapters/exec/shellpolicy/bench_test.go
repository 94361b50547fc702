package shellpolicy

import "testing"

func BenchmarkAnalyze(b *testing.B) {
	r := newRig(b)
	for _, c := range []struct{ name, line string }{
		{"read", "grep -rn TODO src | head -20"},
		{"git", "git status --short"},
		{"build", "cd src && CGO_ENABLED=0 go test ./... 2>&1 | tail -n 20"},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				analyze(b.Context(), c.line, r.env(), r)
			}
		})
	}
}
