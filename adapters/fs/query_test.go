package fs

import (
	"bytes"
	"context"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/berth-dev/berth/core/domain"
)

// linesOf are the numbers of the lines of a text that a pattern matches, by
// package regexp alone.
func linesOf(re *regexp.Regexp, text []byte) []int {
	var list []int
	n := 0
	for line := range bytes.Lines(text) {
		n++
		if rest, ended := bytes.CutSuffix(line, []byte("\n")); ended {
			line = bytes.TrimSuffix(rest, []byte("\r"))
		}
		if re.Match(line) {
			list = append(list, n)
		}
	}
	return list
}

// toldLines are the numbers of the lines that a scan tells.
func toldLines(s *scan, text []byte) []int {
	var list []int
	s.each(text, func(line, _ span) bool {
		list = append(list, lineOf(text, line.from))
		return true
	})
	return list
}

// compareQuery compares every way a query is answered with package regexp.
func compareQuery(t testing.TB, pattern string, fold bool, texts ...[]byte) {
	t.Helper()
	q, err := compile(asked{pattern: pattern, fold: fold})
	if err != nil || q.multi {
		return
	}
	flags := ""
	if fold {
		flags = "(?i)"
	}
	re, err := regexp.Compile(flags + pattern)
	if err != nil {
		t.Fatalf("%q: taken by us, but %v", pattern, err)
	}
	bare, plain := *q, *q
	bare.needle, bare.whole = nil, false
	plain.needle, plain.whole, plain.lines = nil, false, nil
	ways := map[string]*scan{}
	for name, query := range map[string]*query{"as it is": q, "automaton alone": &bare, "regexp alone": &plain} {
		ways[name] = &scan{query: query, ctx: context.Background()}
	}
	for _, text := range texts {
		want := linesOf(re, text)
		for name, s := range ways {
			if got := toldLines(s, text); !slices.Equal(got, want) {
				t.Fatalf("%s: %q (fold %t) in %q: lines %v, want %v", name, pattern, fold, text, got, want)
			}
		}
	}
}

func TestQueryLikeRegexp(t *testing.T) {
	text := []byte("foo\nbar foo\r\n\n  \nFOO bar\nfood\n_foo_ 12-34\nK \u212A ſ S strasse\nÄpfel äpfel\n\xff\xfe bad\nx\ry\n\r\nlast Error")
	for _, pattern := range []string{
		"foo", "^foo", "foo$", "^foo$", "^$", "^", "$", `\bfoo\b`, `\Bfoo`, `foo\B`, `\b`, `\B`, "", ".", "..*", `\s`, `^\s*$`, `\d+-\d+`, "fo+", "(foo|bar)", "foo|bar", "food|bar$",
		"k", "s", "strasse", "kelvin|s", "äpfel", "Äpfel", `\pL+`, `[^a-z]`, `[[:upper:]]`, `\x{FFFD}`, `\xff`, "(?m)^foo$", `\Afoo`, `foo\z`, "(?s).", "(?i)foo", "(?i:f)oo", "x.y", `x\ry`, `\r`, `r$`,
		"o{2}", "(fo){0,3}d", "(a|b|f)o", "a*", "(a*)*", "(^|x)foo", "(foo|^bar)(d|$)", "Error", "E|F", "e.r", `(?:\b|_)foo`, `foo\b.*\bfoo`, "[k-s]", "zzz",
	} {
		compareQuery(t, pattern, false, text, []byte("foo"), []byte("foo\n"), nil, []byte("\n"), []byte("\n\n"), []byte("\r\n"))
		compareQuery(t, pattern, true, text, []byte("foo"), []byte("FOO\n"))
	}
}

// TestQueryLikeRegexp_Random compares made-up patterns over made-up texts.
func TestQueryLikeRegexp_Random(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 7))
	pieces := []string{"a", "b", "k", "S", "foo", "Ä", "ſ", ".", `\w`, `\b`, `\B`, "^", "$", `\s`, "[ab]", "[^a]", `\d`, "1", "-", "(?i:k)", `\pL`, `\r`, "(?m)$", `\z`}
	letters := []rune("aabbkKsSfoo Ää\u212Aſ1-_\t\r\n\n\n")
	for range 4000 {
		var p strings.Builder
		depth := 0
		for range 1 + r.IntN(6) {
			if r.IntN(5) == 0 {
				p.WriteByte('(')
				depth++
			}
			p.WriteString(pieces[r.IntN(len(pieces))])
			switch r.IntN(8) {
			case 0:
				p.WriteByte('*')
			case 1:
				p.WriteByte('+')
			case 2:
				p.WriteString("{2,3}")
			case 3:
				p.WriteByte('|')
			}
			if depth > 0 && r.IntN(2) == 0 {
				p.WriteByte(')')
				depth--
			}
		}
		p.WriteString(strings.Repeat(")", depth))
		var texts [][]byte
		for range 3 {
			text := make([]rune, r.IntN(60))
			for i := range text {
				text[i] = letters[r.IntN(len(letters))]
			}
			raw := []byte(string(text))
			if len(raw) > 0 && r.IntN(4) == 0 {
				raw[r.IntN(len(raw))] = 0xC3
			}
			texts = append(texts, raw)
		}
		compareQuery(t, p.String(), r.IntN(2) == 0, texts...)
	}
}

// TestQueryAcrossLines compares whether a text as a whole is matched, by the
// automaton and by package regexp.
func TestQueryAcrossLines(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 5))
	pieces := []string{"a", "b", "k", ".", "(?s:.)", `\w`, `\b`, `\B`, "^", "$", `\s`, "[^a]", `\n`, `\r`, `\z`, "^$", "(a|\n)", "Ä"}
	letters := []rune("aabbkKÄ \n\n\n\r_")
	for range 4000 {
		var p strings.Builder
		for range 1 + r.IntN(5) {
			p.WriteString(pieces[r.IntN(len(pieces))])
			p.WriteString([]string{"", "", "", "*", "+", "?"}[r.IntN(6)])
		}
		fold := r.IntN(2) == 0
		q, err := compile(asked{pattern: p.String(), multi: true, fold: fold})
		if err != nil {
			continue
		}
		a := newAutomaton(t.Context(), q.lines)
		for range 3 {
			text := make([]rune, r.IntN(30))
			for i := range text {
				text[i] = letters[r.IntN(len(letters))]
			}
			raw := []byte(string(text))
			if got, _ := a.line(raw, 0); got != q.re.Match(raw) {
				t.Fatalf("%q (fold %t) in %q: %t", p.String(), fold, raw, got)
			}
		}
	}
}

func FuzzQuery(f *testing.F) {
	f.Add("foo|ba[rz]", "foo\nbar\r\n", false)
	f.Add(`\bk+$`, "\u212A\nK\n", true)
	f.Fuzz(func(t *testing.T, pattern, text string, fold bool) {
		if len(pattern) > 60 || strings.Contains(pattern, "\r\n") {
			return
		}
		compareQuery(t, pattern, fold, []byte(text))
	})
}

// TestAutomatonIsBounded: a pattern whose states are without number is still
// answered, by package regexp in the end.
func TestAutomatonIsBounded(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	text := make([]byte, 200_000)
	for i := range text {
		if text[i] = "ab"[r.IntN(2)]; r.IntN(60) == 0 {
			text[i] = '\n'
		}
	}
	pattern := "a[ab]{14}c|a[ab]{13}a[ab]{3}b$"
	q, err := compile(asked{pattern: pattern})
	if err != nil {
		t.Fatal(err)
	}
	q.needle = nil
	s := &scan{query: q, ctx: t.Context()}
	if got, want := toldLines(s, text), linesOf(q.re, text); !slices.Equal(got, want) {
		t.Errorf("%d lines, want %d", len(got), len(want))
	}
	if s.auto.resets == 0 {
		t.Error("the pattern is not hard enough")
	}
	if len(s.auto.table) > maxTable+q.lines.kinds || len(s.auto.states) > maxStates+1 {
		t.Errorf("%d states, a table of %d", len(s.auto.states), len(s.auto.table))
	}
}

// TestQueryStops: a pattern that takes long stops with its context.
func TestQueryStops(t *testing.T) {
	for name, a := range map[string]asked{
		"many threads": {pattern: "(x+x+){200}y[0-9]{90}", multi: true},
		"one line":     {pattern: "(x|y|z){300}[a-f]{300}$"},
	} {
		t.Run(name, func(t *testing.T) {
			q, err := compile(a)
			if err != nil {
				t.Fatal(err)
			}
			q.lines, q.needle = nil, nil
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
			defer cancel()
			start := time.Now()
			s := &scan{query: q, ctx: ctx}
			s.each(bytes.Repeat([]byte("xyzx"), 4<<20), func(_, _ span) bool { return true })
			if took := time.Since(start); took > 30*time.Second {
				t.Errorf("took %v", took)
			}
		})
	}
}

func TestPatternErrors(t *testing.T) {
	for pattern, part := range map[string]string{
		"a(?=b)":                        "look-ahead and look-behind are not supported",
		"(?<!a)b":                       "look-ahead and look-behind",
		`(a)\1`:                         "references to a group",
		"a++b":                          "possessive",
		"(?>a)":                         "atomic groups",
		"(?#c)a":                        "this kind of group",
		`\Ka`:                           "an escape in it is not supported",
		"foo(":                          "missing closing ): foo(; to look for exactly this text, set literal to true",
		"*a":                            "set literal to true",
		"[z-a]":                         "invalid character class range: z-a",
		"(a{1000}){1000}":               "a count goes up to 1000",
		"a{2000}":                       "a count goes up to 1000",
		"(?:abcdefghijklmnop){1000}":    "too large once its repetitions are written out",
		strings.Repeat("a", 5000):       "at most 4096 are allowed",
		"":                              "empty",
		strings.Repeat("(", 1500) + "a": "missing closing )",
		"\xff":                          "invalid UTF-8",
	} {
		_, err := compile(asked{pattern: pattern})
		if !domain.HasCode(err, domain.InvalidArgument) || !strings.Contains(err.Error(), part) {
			t.Errorf("%.20q: %v, want %q", pattern, err, part)
		}
	}
	for _, pattern := range []string{"foo(", "*a", "a(?=b)", `\1`, "[", `a\`, "(a{1000}){1000}"} {
		q, err := compile(asked{pattern: pattern, literal: true})
		if err != nil || !q.whole {
			t.Errorf("%q as a literal: %v", pattern, err)
		}
	}
}
