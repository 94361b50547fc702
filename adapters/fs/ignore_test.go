package fs

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestWild(t *testing.T) {
	cases := []struct {
		pattern, path string
		want          bool
	}{
		{"a", "a", true}, {"a", "b", false}, {"*", "abc", true}, {"*", "a/b", false}, {"?", "/", false},
		{"a*c", "abbbc", true}, {"a*c", "abbb", false}, {"*a*b*c", "xxaxxbxxc", true},
		{"**", "a/b/c", true}, {"**/b", "b", true}, {"**/b", "a/b", true}, {"**/b", "ab", false},
		{"a/**", "a/b/c", true}, {"a/**", "a", false}, {"a/**/b", "a/b", true}, {"a/**/b", "a/x/y/b", true}, {"a/**/b", "a/xb", false},
		{"**/a/**/b", "a/a/c/b", true}, {"**/*x/**/*y", "qx/w/zy", true}, {"a**b", "axyb", true}, {"a**b", "ax/yb", false},
		{"[abc]", "b", true}, {"[!abc]", "b", false}, {"[^abc]", "d", true}, {"[a-c]x", "bx", true}, {"[]]", "]", true}, {"[]-a]", "_", true},
		{"[a-]", "-", true}, {"[!/]", "/", false}, {"a[/]b", "a/b", false}, {"[[:digit:]]", "5", true}, {"[[:digit:]x]", "x", true},
		{"[[:nope:]]", "n", false}, {"[a", "a", false}, {`\*`, "*", true}, {`\*`, "a", false}, {`[\]]`, "]", true}, {`a\`, "a", false}, {`[\`, `\`, false},
		{"?", "é", false}, {"??", "é", true}, // bytes, as git compares them
	}
	for _, c := range cases {
		if got := wild(c.pattern, c.path); got != c.want {
			t.Errorf("wild(%q, %q) = %t", c.pattern, c.path, got)
		}
	}
}

// TestWildIsBounded: no pattern takes more than a polynomial time.
func TestWildIsBounded(t *testing.T) {
	for _, p := range []string{strings.Repeat("*a", 100) + "b", strings.Repeat("**/", 100) + "*x", strings.Repeat("**/*a*a", 30) + "b", strings.Repeat(`**\/`, 50) + "x"} {
		if wild(p, strings.Repeat("a/aaaa/", 60)) {
			t.Errorf("%q matches", p)
		}
	}
}

// ignoreTree is a directory with ignore files, and what is in it.
type ignoreTree struct {
	files []string
	rules map[string]string // by path, .gitignore or .git/info/exclude
}

func TestIgnoreLikeGit(t *testing.T) {
	paths := []string{"a", "b.go", "c.log", "keep.log", "build/x", "build/y.log", "src/a", "src/build/z", "src/gen/q.go", "src/deep/gen/r.go", "src/deep/a b", "x[1]", "#hash", "!bang",
		"doc/frotz/z", "doc/a/frotz/z", "frotz", "foo/bar/baz", "foo/bar", "foobar", "ends ", "dir.go/f", "src/dir.go/f", "UP/low", ".hidden", ".dir/f", "tab\t", "é", "a\\b"}
	paths = slices.DeleteFunc(paths, func(p string) bool { return p == "foo/bar" })
	cases := map[string]string{
		"a name":                   "a\n",
		"an ending":                "*.log\n!keep.log\n",
		"an ending of a directory": "*.go/\n",
		"a directory":              "build/\n",
		"anchored":                 "/build\n/src/a\n",
		"a path":                   "src/gen\n",
		"any depth":                "**/gen\nsrc/**/a\n",
		"everything below":         "src/**\n!src/a\n",
		"everything but":           "/*\n!/src\n/src/*\n!/src/gen\n",
		"directory and back":       "build/\n!build/x\n",
		"comment and blank":        "# a\n\n   \n\\#hash\n\\!bang\n",
		"spaces at the end":        "a   \nends\\ \nb.go \\ \n",
		"carriage returns":         "a\r\n*.log\r\n",
		"carriage return last":     "a\r",
		"no line end":              "*.log",
		"byte-order mark":          "\xEF\xBB\xBFa\n",
		"sets":                     "[a-c]\n*.[gl]o[!x]\nx[[]1]\n",
		"set with a slash":         "src[/]a\ns[r/]c/a\n",
		"escape":                   "a\\\\b\n\\a\nx\\[1\\]\n",
		"lone backslash":           "a\\\nsrc\\\n",
		"question marks":           "?.go\nfoo/b?r/baz\nf??bar\n",
		"stars":                    "f*o*r\n*o*/*a*/b*\n",
		"double stars misplaced":   "f**r\nsrc/d**p\ns**/a\n",
		"slash alone":              "/\n//\n!\n!/\n",
		"negated first":            "!a\na\n!src/a\n",
		"twice":                    "*.log\n!*.log\n*.log\n!c.log\n",
		"middle slash":             "doc/frotz/\n",
		"literal then star":        "src/d*/gen\nfoo/bar*\nsrc/de\\ep/gen\n",
		"tab":                      "tab\t\n",
		"unclosed":                 "[a\na[\n*.lo[\n",
		"classes":                  "[[:upper:]]*\n[[:alpha:]].go\n[[:foo:]]\n",
	}
	for name, text := range cases {
		t.Run(name, func(t *testing.T) {
			compareWithGit(t, ignoreTree{paths, map[string]string{".gitignore": text}})
		})
	}
	t.Run("nested", func(t *testing.T) {
		compareWithGit(t, ignoreTree{paths, map[string]string{
			".git/info/exclude": "frotz\n*.go\n", ".gitignore": "*.log\n!b.go\nsrc/gen\n", "src/.gitignore": "!build\na\n/gen\n!deep/**\n", "src/deep/.gitignore": "!gen/\n*\n", "doc/.gitignore": "/frotz\n!frotz/z\n",
		}})
	})
}

// TestIgnoreLikeGit_Random compares made-up trees and rules with git.
func TestIgnoreLikeGit_Random(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 1))
	for n := range 60 {
		tree := randomIgnores(r)
		if compareWithGit(t, tree); t.Failed() {
			t.Fatalf("tree %d: %q", n, tree.rules)
		}
	}
}

func randomIgnores(r *rand.Rand) ignoreTree {
	names := []string{"a", "b", "ab", "a.c", "b.c", "abc", "a b", "A", "[a]", "a*"}
	pieces := []string{"a", "b", "ab", "a.c", "*", "*", "**", "?", "[ab]", "[!a]", "*.c", "a*", "*b", `\a`, `\*`, "a**", "**b", "A", "[a", "***", "*?", "[a-b]*"}
	tree := ignoreTree{rules: map[string]string{}}
	seen := map[string]bool{}
	isDir := map[string]bool{}
	for range 60 {
		depth := 1 + r.IntN(4)
		parts := make([]string, depth)
		for i := range parts {
			parts[i] = names[r.IntN(len(names))]
		}
		p := strings.Join(parts, "/")
		bad := isDir[p] || seen[p]
		for i := 1; i < depth; i++ {
			bad = bad || seen[strings.Join(parts[:i], "/")]
		}
		if bad {
			continue
		}
		for i := 1; i < depth; i++ {
			isDir[strings.Join(parts[:i], "/")] = true
		}
		seen[p] = true
		tree.files = append(tree.files, p)
	}
	rules := func() string {
		var b strings.Builder
		for range 1 + r.IntN(5) {
			if r.IntN(4) == 0 {
				b.WriteByte('!')
			}
			if r.IntN(4) == 0 {
				b.WriteByte('/')
			}
			for i := range 1 + r.IntN(3) {
				if i > 0 {
					b.WriteByte('/')
				}
				b.WriteString(pieces[r.IntN(len(pieces))])
			}
			if r.IntN(4) == 0 {
				b.WriteByte('/')
			}
			b.WriteByte('\n')
		}
		return b.String()
	}
	tree.rules[".gitignore"] = rules()
	if r.IntN(2) == 0 {
		tree.rules[".git/info/exclude"] = rules()
	}
	for d := range isDir {
		if len(tree.rules) < 4 {
			tree.rules[d+"/.gitignore"] = rules()
		}
	}
	return tree
}

// compareWithGit compares what glob leaves out with git check-ignore.
func compareWithGit(t *testing.T, tree ignoreTree) {
	t.Helper()
	git, err := exec.LookPath("git")
	if err != nil {
		t.Skip("git, which this is compared with, is not installed")
	}
	r := newRig(t)
	work := r.at("ws/repo")
	run := func(stdin string, arg ...string) string {
		cmd := exec.CommandContext(t.Context(), git, append([]string{"-C", work, "-c", "core.excludesFile=/dev/null", "-c", "core.ignoreCase=false"}, arg...)...)
		cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1")
		cmd.Stdin = strings.NewReader(stdin)
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		out, err := cmd.Output()
		if err != nil && cmd.ProcessState.ExitCode() != 1 {
			t.Fatalf("git %v: %v: %s", arg, err, stderr.String())
		}
		return string(out)
	}
	for _, p := range tree.files {
		r.write("ws/repo/"+p, "")
	}
	run("", "init", "-q")
	for p, text := range tree.rules {
		r.write("ws/repo/"+p, text)
	}
	all := tree.files
	out := run(strings.Join(all, "\x00")+"\x00", "check-ignore", "--no-index", "--stdin", "-z")
	ignored := strings.Split(strings.TrimSuffix(out, "\x00"), "\x00")
	var want []string
	for _, p := range all {
		if !slices.Contains(ignored, p) {
			want = append(want, p)
		}
	}
	r.open()
	p, err := r.prepare("glob", args("pattern", "**/*", "path", "repo", "hidden", true, "limit", maxGlobLimit))
	if err != nil {
		t.Fatal(err)
	}
	if res, err := p.Run(t.Context(), nil); err != nil || res.Failed {
		t.Fatal(res.Text, err)
	}
	var got []string
	for _, f := range p.(*globbing).list {
		if name := filepath.Base(f.path); name != ".gitignore" {
			got = append(got, f.path)
		}
	}
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("rules %q\nglob  %q\ngit   %q\n%s", tree.rules, minus(got, want), minus(want, got), fmt.Sprint(len(want)))
	}
}

func minus(a, b []string) []string {
	return slices.DeleteFunc(slices.Clone(a), func(s string) bool { return slices.Contains(b, s) })
}
