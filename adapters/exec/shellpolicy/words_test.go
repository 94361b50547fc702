package shellpolicy

import (
	"context"
	"math/rand"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"mvdan.cc/sh/v3/syntax"
)

// evaluate splits a line into words as the analysis does; ok is false when one
// of them is not static.
func evaluate(line string, env Env) (list []string, ok bool) {
	if gate(line) != "" {
		return nil, false
	}
	file, err := parse(context.Background(), "printf "+line, env.Dialect)
	if err != nil || len(file.Stmts) != 1 {
		return nil, false
	}
	call, isCall := file.Stmts[0].Cmd.(*syntax.CallExpr)
	if !isCall || len(call.Assigns) > 0 || len(file.Stmts[0].Redirs) > 0 || file.Stmts[0].Background {
		return nil, false
	}
	w := newWalker(context.Background(), "printf "+line, env, nil)
	for _, d := range w.words(scope{dirs: here()}, call.Args)[1:] {
		if !d.static || d.glob {
			return nil, false
		}
		list = append(list, d.text)
	}
	return list, true
}

func TestWord(t *testing.T) {
	env := Env{Home: "/home/u", Cwd: "/w"}
	spaced := Env{Home: "/home/a b", Cwd: "/w"}
	posix := Env{Home: "/home/u", Cwd: "/w", Dialect: Posix}
	for _, c := range []struct {
		name, line string
		env        Env
		want       []string // nil: not static
	}{
		{"plain words", "a b", env, []string{"a", "b"}},
		{"a backslash quotes one character", `r\m \'`, env, []string{"rm", "'"}},
		{"a line continuation vanishes", "a\\\nb", env, []string{"ab"}},
		{"glued quotes are one word", `'r'"m"x`, env, []string{"rmx"}},
		{"a backslash in double quotes stays before most", `"a\b\$\"\\"`, env, []string{`a\b$"\`}},
		{"ANSI-C escapes", `$'\x72\155\t\e'`, env, []string{"rm\t\x1b"}},
		{"ANSI-C escapes of few digits", `$'\x7g\7'`, env, []string{"\x07g\x07"}},
		{"ANSI-C escapes end with the word", `$'a\'`, env, nil},
		{"an ANSI-C NUL would cut the word", `$'a\0b'`, env, nil},
		{"an ANSI-C byte is no character", `$'\xff'`, env, nil},
		{"an ANSI-C character by number", `$'\u0041'`, env, nil},
		{"an ANSI-C control character", `$'\ca'`, env, nil},
		{"ANSI-C quotes are not POSIX", `$'a'`, posix, nil},
		{"text that is translated", `$"a"`, env, nil},
		{"a tilde", `~ ~/x`, env, []string{"/home/u", "/home/u/x"}},
		{"a quoted tilde", `'~' \~/x "~/x"`, env, []string{"~", "~/x", "~/x"}},
		{"a tilde inside a word", `a~ x/~/y`, env, []string{"a~", "x/~/y"}},
		{"a tilde before quotes", `~"/x"`, env, nil},
		{"a tilde with a name", `~root/x`, env, nil},
		{"a tilde for the directory before", `~-`, env, nil},
		{"a tilde after =", `a=~/x`, env, nil},
		{"a tilde without a home", `~/x`, Env{Cwd: "/w"}, nil},
		{"HOME and PWD", `$HOME/x "${PWD}/y"`, env, []string{"/home/u/x", "/w/y"}},
		{"HOME with a blank is split", `$HOME`, spaced, nil},
		{"but not in quotes", `"$HOME"`, spaced, []string{"/home/a b"}},
		{"another variable", `$X`, env, nil},
		{"HOME's length", `${#HOME}`, env, nil},
		{"HOME indirectly", `${!HOME}`, env, nil},
		{"HOME shortened", `${HOME%/*}`, env, nil},
		{"HOME from the third character", `${HOME:2}`, env, nil},
		{"HOME replaced in", `${HOME/u/v}`, env, nil},
		{"HOME as an array", `${HOME[0]}`, env, nil},
		{"names that begin so", `${!HOME*}`, env, nil},
		{"a number is known to be one and no more", `$?`, env, nil},
		{"braces", `a{b,c}d {x,}`, env, []string{"abd", "acd", "x"}},
		{"nested braces", `{a,b{1,2}}`, env, []string{"a", "b1", "b2"}},
		{"a sequence", `f{2..4} {3..1}`, env, []string{"f2", "f3", "f4", "3", "2", "1"}},
		{"sequences of other kinds", `{a..c}`, env, nil},
		{"a sequence with zeros", `{01..10}`, env, nil},
		{"a sequence with steps", `{1..9..2}`, env, nil},
		{"a long sequence", `{1..999}`, env, nil},
		{"too many words", strings.Repeat("{a,b}", 10), env, nil},
		{"braces beside quotes", `{a,'b'}`, env, nil},
		{"braces with a backslash", `{a,\b}`, env, nil},
		{"braces without a comma", `{} {a} a@{1}`, env, []string{"{}", "{a}", "a@{1}"}},
		{"an open brace", `{a,b`, env, []string{"{a,b"}},
		{"braces are not POSIX", `{a,b}`, posix, nil},
		{"an extended pattern", `@(a|b)`, env, nil},
		{"a command's output", `$(ls)`, env, nil},
		{"computed", `x$((1+1))`, env, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, ok := evaluate(c.line, c.env)
			if !slices.Equal(got, c.want) || ok != (c.want != nil) {
				t.Errorf("%s: %q %v, want %q", c.line, got, ok, c.want)
			}
		})
	}
}

// What we take words for is what bash makes of them.
func TestWord_SameAsBash(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("there is no bash")
	}
	home := t.TempDir()
	env := Env{Home: home, Cwd: home}
	pieces := []string{
		"a", "b", "-", "=", ":", "/", "~", "~/", `\a`, `\$`, `\"`, `\'`, `\\`, "\\\n", `'q r'`, `"d e"`, `"\a\$"`, `"it's"`, `'"'`, `$'\x41'`, `$'\n'`, `$'\101'`, "{", "}", ",", "..",
		"{a,b}", "{1..3}", "$HOME", `"$PWD"`, "${HOME}", " ", " ", "\t", "1", "3", ";", "#", "x#", "!", "{}", "@", "%", "^", "+", `""`, "''", "é", "[", "]", `"a\
b"`, `'a\
b'`, `"\\\
"`, `$'\''`, `"{a,b}"`, `{a,b{c,d}}`, "{,", "~root", "$", `"$"`, "\\ ",
	}
	r := rand.New(rand.NewSource(1)) //nolint:gosec // lines for tests
	var script strings.Builder
	var wants [][]string
	var lines []string
	for len(lines) < 3000 {
		line := ""
		for n := 1 + r.Intn(7); n > 0; n-- {
			line += pieces[r.Intn(len(pieces))]
		}
		want, ok := evaluate(line, env)
		if !ok || len(want) == 0 {
			continue
		}
		lines, wants = append(lines, line), append(wants, want)
		script.WriteString("printf '%s\\0' " + line + "\nprintf '\\001\\0'\n")
	}
	cmd := exec.CommandContext(t.Context(), bash, "--noprofile", "--norc", "-s")
	cmd.Stdin, cmd.Env, cmd.Dir = strings.NewReader(script.String()), []string{"HOME=" + home, "PWD=" + home, "LC_ALL=C.UTF-8"}, home
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	blocks := strings.Split(strings.TrimSuffix(string(out), "\x01\x00"), "\x01\x00")
	if len(blocks) != len(lines) {
		t.Fatalf("%d answers for %d lines", len(blocks), len(lines))
	}
	for i, b := range blocks {
		got := strings.Split(strings.TrimSuffix(b, "\x00"), "\x00")
		if !slices.Equal(got, wants[i]) {
			t.Errorf("%q: bash makes %q, we take it for %q", lines[i], got, wants[i])
		}
	}
}
