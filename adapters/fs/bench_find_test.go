package fs

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// sourceTree writes a tree of ten thousand files that look like source, in 500
// directories, with a few ignore files and binary files, about 80 MiB.
func sourceTree(tb testing.TB, base string) {
	tb.Helper()
	words := strings.Fields("func return error string context value index buffer length reader writer handler server client request response " +
		"config option session session close open read write flush parse encode decode marshal package import const type struct interface " +
		"for range if else switch case default break continue nil true false int byte rune slice map chan select defer go")
	r := rand.New(rand.NewPCG(1, 2))
	pick := func() string { return words[r.IntN(len(words))] }
	for n := range 10_000 {
		dir := filepath.Join(base, fmt.Sprintf("pkg%d", n%10), fmt.Sprintf("mod%d", n/10%10), fmt.Sprintf("part%d", n/100%5))
		if n < 500 {
			if err := os.MkdirAll(dir, 0o755); err != nil {
				tb.Fatal(err)
			}
		}
		var b bytes.Buffer
		fmt.Fprintf(&b, "package part%d\n\n", n)
		for range 20 + r.IntN(360) {
			switch r.IntN(12) {
			case 0:
				fmt.Fprintf(&b, "func %s%s(%s *%s) (%s, error) {\n", strings.ToUpper(pick()[:1]), pick(), pick(), pick(), pick())
			case 1:
				b.WriteString("}\n\n")
			case 2:
				fmt.Fprintf(&b, "\t// %s the %s of a %s before the %s\n", pick(), pick(), pick(), pick())
			default:
				fmt.Fprintf(&b, "\t%s.%s(%s, %d)\n", pick(), pick(), pick(), r.IntN(1000))
			}
		}
		if n%1000 == 7 {
			fmt.Fprintf(&b, "// the %s needle is here: ZebraCrossing%d\n", pick(), n)
		}
		ext := []string{".go", ".go", ".go", ".md", ".ts"}[n%5]
		if n%200 == 3 {
			ext, b = ".bin", *bytes.NewBuffer(append([]byte("\x7fELF\x00\x00"), b.Bytes()...))
		}
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("file%04d%s", n, ext)), b.Bytes(), 0o644); err != nil {
			tb.Fatal(err)
		}
	}
	for name, text := range map[string]string{".ignore": "*.log\n/build/\nnode_modules/\n", "pkg1/.ignore": "vendor/**/x\n*.tmp\n", "pkg2/mod3/.ignore": "!*.log\n"} {
		if err := os.WriteFile(filepath.Join(base, name), []byte(text), 0o644); err != nil {
			tb.Fatal(err)
		}
	}
}

// searchPatterns are the patterns of the comparison.
func searchPatterns() []struct {
	name, pattern string
	fold          bool
} {
	return []struct {
		name, pattern string
		fold          bool
	}{
		{"rare literal", "ZebraCrossing", false},
		{"common word", "session", false},
		{"anchored", `^func [A-Z]\w+\(`, false},
		{"case insensitive", "zebracrossing", true},
		{"case insensitive common", "SESSION", true},
		{"no match", "NowhereToBeFound", false},
		{"alternatives", "ZebraCrossing|NowhereToBeFound|needle is", false},
		{"classes only", `\d{3}, \d{3}\)\)`, false},
		{"word edges", `\b[A-Z]\w*[A-Z]\w*\d+\b`, false},
	}
}

// BenchmarkSearchBesideRipgrep is one search over ten thousand files, and rg
// with the same pattern on the same tree beside it.
func BenchmarkSearchBesideRipgrep(b *testing.B) {
	r := newRig(b)
	sourceTree(b, r.at("ws/tree"))
	r.open()
	rg, missing := exec.LookPath("rg")
	for _, p := range searchPatterns() {
		b.Run(p.name+"/search", func(b *testing.B) {
			raw := args("pattern", p.pattern, "path", "tree", "case_insensitive", p.fold)
			for b.Loop() {
				runCall(b, r, "search", raw)
			}
		})
		b.Run(p.name+"/rg", func(b *testing.B) {
			if missing != nil {
				b.Skip("ripgrep is not installed")
			}
			arg := []string{"--no-config", "-n", "--no-heading", "-e", p.pattern}
			if p.fold {
				arg = append(arg, "-i")
			}
			runBeside(b, 1, rg, append(arg, r.at("ws/tree"))...)
		})
	}
}

// BenchmarkGlobBesideFind is one glob over ten thousand files, and find with
// the same names on the same tree beside it.
func BenchmarkGlobBesideFind(b *testing.B) {
	r := newRig(b)
	sourceTree(b, r.at("ws/tree"))
	r.open()
	find, missing := exec.LookPath("find")
	for _, p := range []struct{ name, pattern, find string }{
		{"some", "**/*.md", "*.md"}, {"every file", "**/*", "*"}, {"one", "**/file0777.*", "file0777.*"}, {"none", "**/*.none", "*.none"},
	} {
		b.Run(p.name+"/glob", func(b *testing.B) {
			raw := args("pattern", p.pattern, "path", "tree", "limit", maxGlobLimit)
			for b.Loop() {
				runCall(b, r, "glob", raw)
			}
		})
		b.Run(p.name+"/find", func(b *testing.B) {
			if missing != nil {
				b.Skip("find is not installed")
			}
			runBeside(b, 0, find, r.at("ws/tree"), "-type", "f", "-name", p.find)
		})
	}
}

// runBeside runs a program; an exit code of up to most is no failure.
func runBeside(b *testing.B, most int, name string, arg ...string) {
	for b.Loop() {
		_, err := exec.CommandContext(b.Context(), name, arg...).Output()
		var exit *exec.ExitError
		if err != nil && (!errors.As(err, &exit) || exit.ExitCode() > most) {
			b.Fatal(err)
		}
	}
}

// BenchmarkIgnore judges a path by rules of every kind.
func BenchmarkIgnore(b *testing.B) {
	g := &ignores{git: parseIgnore([]byte("node_modules/\n*.log\n/build\nsrc/**/gen\n*.tar.gz\n!keep.log\nfoo*bar\n/a/b/*.c\n"))}
	b.ReportAllocs()
	for b.Loop() {
		if g.ignored("src/some/where/file.go", "file.go", false) {
			b.Fatal("ignored")
		}
	}
}
