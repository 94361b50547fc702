package sandbox

import (
	"regexp"
	"strings"
	"testing"
)

func TestSeatbeltProfile(t *testing.T) {
	s := New(Config{
		Mode: Seatbelt, Home: "/Users/a", Path: "/usr/bin:/opt/tools/bin:relative", Protected: []string{".vscode/", ".mcp.json"},
		Hidden: []string{"/Users/a/.ssh", "/Users/a/data"},
	})
	spec := Spec{Writable: []string{"/Users/a/project", "/Users/a/data/agent"}, Readable: []string{`/Users/a/odd "name"`}, Extra: []string{"/Users/a/extra"}}
	has := func(text string) func(string) bool { return func(p string) bool { return strings.Contains(p, text) } }
	not := func(f func(string) bool) func(string) bool { return func(p string) bool { return !f(p) } }
	after := func(first, second string) func(string) bool {
		return func(p string) bool {
			i, j := strings.Index(p, first), strings.LastIndex(p, second)
			return i >= 0 && j > i
		}
	}
	readOnly, network, approved := spec, spec, spec
	readOnly.ReadOnly, network.Network, approved.AllowProtected = true, true, []string{"/Users/a/project/.mcp.json"}
	tests := []struct {
		name string
		spec Spec
		ok   func(string) bool
	}{
		{"denies by default", spec, after("(version 1)", "(deny default)")},
		{"root is writable", spec, has(`(allow file-write* (subpath "/Users/a/project"))`)},
		{"extra is writable", spec, has(`(allow file-write* (subpath "/Users/a/extra"))`)},
		{"readable is not writable", spec, not(has(`(allow file-write* (subpath "/Users/a/odd`))},
		{"paths are quoted", spec, has(`(subpath "/Users/a/odd \"name\"")`)},
		{"tools of PATH can be read", spec, has(`(allow file-read* (subpath "/opt/tools/bin"))`)},
		{"relative PATH is ignored", spec, not(has("relative"))},
		{"home is not readable", spec, not(has(`(subpath "/Users/a"))`))},
		{"hidden comes after roots", spec, after(`(allow file-write* (subpath "/Users/a/project"))`, `(deny file* (subpath "/Users/a/.ssh"))`)},
		{"workspace comes after what hides it", spec, after(`(deny file* (subpath "/Users/a/data"))`, `(allow file-write* (subpath "/Users/a/data/agent"))`)},
		{"no network", spec, has("(deny network-outbound)")},
		{"network", network, has("(allow network*)")},
		{"network without local sockets", network, has("(deny network-outbound (remote unix-socket))")},
		{"read-only", readOnly, not(has(`(allow file-write* (subpath "/Users/a/project"))`))},
		{"protected comes after what is writable", approved, after(`(allow file-read* file-write* (subpath "/private/tmp/x"))`, "(deny file-write* (regex")},
		{"approved", approved, after("mM", `(allow file-write* (subpath "/Users/a/project/.mcp.json"))`)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if p := s.seatbeltProfile(&tt.spec, "/private/tmp/x"); !tt.ok(p) {
				t.Error(p)
			}
		})
	}
	if p := s.seatbeltProfile(&spec, "/x"); strings.Count(p, "(") != strings.Count(p, ")") {
		// Patterns have balanced parentheses too.
		t.Errorf("unbalanced:\n%s", p)
	}
}

// TestSeatbeltNames runs the patterns of the profile.
func TestSeatbeltNames(t *testing.T) {
	s := New(Config{Protected: []string{".vscode/", ".mcp.json", ".github/workflows/"}})
	var all []*regexp.Regexp
	for _, p := range s.seatbeltNames() {
		all = append(all, regexp.MustCompile(p))
	}
	tests := map[string]bool{
		"/r/.git":                     true,
		"/r/.git/hooks":               true,
		"/r/.git/hooks/pre-commit":    true,
		"/r/sub/.git/config":          true,
		"/r/.GIT/Config":              true,
		"/r/.Git/hooks/x":             true,
		"/r/.git/modules/a/b/config":  true,
		"/r/.git/worktrees/w/gitdir":  true,
		"/r/.git/info/attributes":     true,
		"/r/.git/index":               false,
		"/r/.git/refs/heads/config":   false,
		"/r/.git/objects/aa":          false,
		"/r/.vscode":                  true,
		"/r/a/.VSCode/settings.json":  true,
		"/r/.mcp.json":                true,
		"/r/x.mcp.json":               false,
		"/r/.github/workflows/ci.yml": true,
		"/r/.github/CODEOWNERS":       false,
		"/r/main.go":                  false,
	}
	for path, want := range tests {
		got := false
		for _, r := range all {
			got = got || r.MatchString(path)
		}
		if got != want {
			t.Errorf("%s: %v, want %v", path, got, want)
		}
	}
}
