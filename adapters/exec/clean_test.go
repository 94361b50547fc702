package exec

import (
	"bytes"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

// cleaned runs text through a cleaner in pieces of n bytes.
func cleaned(raw string, n int) (string, int64) {
	var b bytes.Buffer
	c := cleaner{emit: func(p []byte) { b.Write(p) }}
	for len(raw) > n {
		c.write([]byte(raw[:n]))
		raw = raw[n:]
	}
	c.write([]byte(raw))
	c.end()
	return b.String(), c.dropped
}

func TestCleaner(t *testing.T) {
	long := strings.Repeat("x", maxLine+10)
	for name, c := range map[string]struct {
		raw, want string
		dropped   int64
	}{
		"text":                   {"a\n\tb\n", "a\n\tb\n", 0},
		"no line end":            {"a\nb", "a\nb", 0},
		"letters":                {"ünï 漢字 🙂\n", "ünï 漢字 🙂\n", 0},
		"CRLF":                   {"a\r\nb\r\n", "a\nb\n", 0},
		"CR CR LF":               {"a\r\r\nb", "a\nb", 0},
		"a progress bar":         {"10%\r50%\r100%\ndone\n", "100%\ndone\n", 0},
		"a bar that is wiped":    {"working\r\x1b[Kdone\n", "done\n", 0},
		"CR at the end":          {"working\r", "working", 0},
		"backspaces":             {"|\b/\b-\bok\n", "ok\n", 0},
		"a backspace at a start": {"\bx\n", "x\n", 0},
		"colours":                {"\x1b[1;31mred\x1b[0m\n", "red\n", 0},
		"a title":                {"\x1b]0;title\x07x\n", "x\n", 0},
		"a title by ST":          {"\x1b]0;title\x1b\\x\n", "x\n", 0},
		"a clipboard":            {"\x1b]52;c;cm0gLXJmIC8=\x07x", "x", 0},
		"a link":                 {"\x1b]8;;http://x.invalid\x1b\\text\x1b]8;;\x1b\\\n", "text\n", 0},
		"a character set":        {"\x1b(Bx\n", "x\n", 0},
		"a string nobody ends":   {"\x1b]0;never\nseen\n", "\nseen\n", 0},
		"a string cut off":       {"\x1b]0;t\x1b[31mred\n", "red\n", 0},
		"a sequence at the end":  {"x\x1b[3", "x", 0},
		"NUL and BEL":            {"a\x00\x00b\x07c\x7f\n", "abc\n", 4},
		"C1":                     {"a\u009b31mb\u0085c\n", "a31mbc\n", 4},
		"no UTF-8":               {"a\xff\xfe\xfdb\xc3\n", "a\uFFFDb\uFFFD\n", 4},
		"a character cut off":    {"a\xe6\xbc", "a\uFFFD", 2},
		"Latin-1":                {"caf\xe9 au lait\n", "caf\uFFFD au lait\n", 1},
		"direction marks":        {"a\u202eb\u2066c\n", "a\\u202eb\\u2066c\n", 0},
		"one long line":          {long, long, 0},
		"a long line, rewritten": {long + "\rnew\n", long + "\nnew\n", 0},
		"after a rewritten one":  {long + "\rnew\ra\rb\n", long + "\nb\n", 0},
	} {
		t.Run(name, func(t *testing.T) {
			for _, n := range []int{1, 2, 3, 7, 1 << 20} {
				if got, dropped := cleaned(c.raw, n); got != c.want || dropped != c.dropped {
					t.Errorf("in pieces of %d: %q, %d dropped", n, cutAt(got, 200), dropped)
				}
			}
		})
	}
}

// FuzzCleaner: what comes out is safe, and the same however it was cut.
func FuzzCleaner(f *testing.F) {
	for _, s := range []string{"a\r\nb", "\x1b[1mx\x1b]0;t\x07", "\xff\xe6\xbc", "a\rb\bc", "\u202e\u009b", "\x1b]\x1b\x1b\\", strings.Repeat("\r", 9)} {
		f.Add(s, 3)
	}
	f.Fuzz(func(t *testing.T, raw string, n int) {
		whole, dropped := cleaned(raw, len(raw)+1)
		if !utf8.ValidString(whole) {
			t.Errorf("%q is no UTF-8", whole)
		}
		for _, r := range whole {
			if unicode.IsControl(r) && r != '\n' && r != '\t' || turnsText(r) {
				t.Errorf("%q holds %U", whole, r)
			}
		}
		if n < 1 {
			return
		}
		if pieces, d := cleaned(raw, n); pieces != whole || d != dropped {
			t.Errorf("in pieces of %d: %q, whole: %q", n, pieces, whole)
		}
	})
}

// TestOutputTail: the first line is left out only where something is lost.
func TestOutputTail(t *testing.T) {
	for name, c := range map[string]struct {
		text       string
		keep, show int
		want       string
	}{
		"all of it fits":        {"total 1\nthe only file there is\nand another one\n", 1 << 10, 1 << 10, "total 1\nthe only file there is\nand another one\n"},
		"more than is shown":    {"total 1\nthe only file there is\nand another one\n", 1 << 10, 44, "the only file there is\nand another one\n"},
		"more than is kept":     {strings.Repeat("0123456\n", 12), 48, 48, strings.Repeat("0123456\n", 3)},
		"cut within characters": {strings.Repeat("漢", 5), 1 << 10, 10, "漢漢漢"},
	} {
		t.Run(name, func(t *testing.T) {
			o := newOutput(c.keep, nil, "")
			o.write([]byte(c.text))
			if got := o.tail(c.show); got != c.want {
				t.Errorf("shown live: %q", got)
			}
			if got := o.since(0, c.show).text; !strings.HasSuffix(got, c.want) || (got == c.want) != (c.want == c.text) {
				t.Errorf("shown from the start: %q", got)
			}
		})
	}
}

// FuzzKeep: what is kept are the two ends, cut at characters, and the numbers
// are true.
func FuzzKeep(f *testing.F) {
	f.Add("line one\nline two\nline three\n", 3, 12, 9)
	f.Add("漢字漢字漢字漢字", 5, 10, 10)
	f.Fuzz(func(t *testing.T, text string, piece, limit, show int) {
		if !utf8.ValidString(text) || piece < 1 || limit < 3 || limit > 1<<16 || show < 0 || show > limit {
			return
		}
		k := keep{headMax: limit / 3, tailMax: limit - limit/3}
		for rest := []byte(text); len(rest) > 0; {
			n := min(piece, len(rest))
			k.add(rest[:n])
			rest = rest[n:]
		}
		e := k.ends(show)
		if len(e.head)+len(e.tail) > show && e.omitted > 0 || !utf8.Valid(e.head) || !utf8.Valid(e.tail) {
			t.Errorf("%q and %q of %d", e.head, e.tail, show)
		}
		if !strings.HasPrefix(text, string(e.head)) || !strings.HasSuffix(text, string(e.tail)) {
			t.Errorf("%q and %q are not the ends of %q", e.head, e.tail, text)
		}
		if int64(len(e.head)+len(e.tail))+e.omitted != int64(len(text)) {
			t.Errorf("%d + %d + %d are not %d", len(e.head), len(e.tail), e.omitted, len(text))
		}
		middle := text[len(e.head) : len(text)-len(e.tail)]
		if int64(strings.Count(middle, "\n")) != e.lines {
			t.Errorf("%d lines left out of %q", e.lines, middle)
		}
		if len(text) <= show && string(e.head)+string(e.tail) != text {
			t.Errorf("%q of %q", e.head, text)
		}
	})
}
