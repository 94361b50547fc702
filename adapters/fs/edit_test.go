package fs

import (
	"bytes"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/quick"
	"time"
)

func TestEdit(t *testing.T) {
	one := func(old, put string) []map[string]any { return []map[string]any{{"old_text": old, "new_text": put}} }
	cases := []struct {
		name, before string
		edits        any
		after        string
		line         int
	}{
		{"one place", "a\nb\nc\n", one("b", "B"), "a\nB\nc\n", 2},
		{"several lines", "a\nb\nc\n", one("a\nb", "x"), "x\nc\n", 1},
		{"no final line end stays so", "a\nb", one("b", "B"), "a\nB", 2},
		{"delete a line", "a\nb\nc\n", one("b\n", ""), "a\nc\n", 2},
		{"insert lines", "a\nc\n", one("c\n", "b\nc\n"), "a\nb\nc\n", 2},
		{"replace all", "x y x", []map[string]any{{"old_text": "x", "new_text": "zz", "replace_all": true}}, "zz y zz", 1},
		{"in order", "a", []map[string]any{{"old_text": "a", "new_text": "b"}, {"old_text": "b", "new_text": "c"}}, "c", 1},
		{"as a string of JSON", "a", `[{"old_text":"a","new_text":"b"}]`, "b", 1},
		// A-ENC-1: an LF text matches a CRLF file, and every line stays CRLF.
		{"CRLF", "a\r\nb\r\nc\r\nd\r\n", one("b\nc\nd", "B\nx\nC\nd"), "a\r\nB\r\nx\r\nC\r\nd\r\n", 2},
		{"CRLF given as CRLF", "a\r\nb\r\n", one("a\r\nb", "a\r\nB"), "a\r\nB\r\n", 2},
		{"LF given as CRLF", "a\nb\n", one("a\r\nb", "a\r\nB"), "a\nB\n", 2},
		// A-ENC-2, A-ENC-3: a mark is kept once and never added.
		{"byte-order mark", "\uFEFFa\r\nb\r\n", one("a\nb", "A\nB"), "\uFEFFA\r\nB\r\n", 1},
		{"mark in the quoted text", "\uFEFFa\n", one("\uFEFFa", "\uFEFFb"), "\uFEFFb\n", 1},
		{"no mark is added", "a\n", one("a", "\uFEFFb"), "b\n", 1},
		{"mixed line ends", "a\r\nb\nc\r\nd\n", one("b\nc\nd", "B\nC\nD"), "a\r\nB\nC\r\nD\n", 2},
		{"a new line takes its neighbour's end", "a\r\nb\r\nc\n", one("b\n", "b\nx\n"), "a\r\nb\r\nx\r\nc\n", 3},
		{"the first line takes the next one's end", "a\r\nb", one("a", "x\na"), "x\r\na\r\nb", 1},
		{"a lone CR stays", "a\rb\nc\n", one("c", "C"), "a\rb\nC\n", 2},
		{"CR CR LF stays", "a\r\r\nb\r\n", one("b", "B"), "a\r\r\nB\r\n", 2},
		{"invalid bytes elsewhere", "caf\xE9\nb\n\xFF\xFE\n", one("b", "B"), "caf\xE9\nB\n\xFF\xFE\n", 2},
		{"invalid bytes and CRLF", "caf\xE9\r\nb\r\n", one("b", "B\nC"), "caf\xE9\r\nB\r\nC\r\n", 2},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t).open()
			r.write("ws/f", c.before)
			a := r.call("edit_file", "path", "f", "edits", c.edits).want(t, "allow")
			if got := r.read("ws/f"); got != c.after {
				t.Errorf("%q, want %q", got, c.after)
			}
			if a.verdict != "allow" {
				return
			}
			if l := a.plan.Locations[0]; l.Line != c.line {
				t.Errorf("first change at line %d, want %d", l.Line, c.line)
			}
			d := diffIn(t, a.plan.Content)
			if strings.Contains(d.OldText+d.NewText, "\r\n") && !strings.Contains(c.before, "\r\r\n") || strings.Contains(d.OldText+d.NewText, "\uFEFF") {
				t.Errorf("the wire sees line ends or a mark: %+v", d)
			}
		})
	}
}

func TestEdit_FlatForm(t *testing.T) {
	r := newRig(t).open()
	r.call("edit_file", "path", "a.txt", "old_text", "A", "new_text", "B", "replace_all", "true").want(t, "allow")
	if r.read("ws/a.txt") != "B" {
		t.Error("not edited")
	}
}

func TestEdit_ErrorsHelp(t *testing.T) {
	file := strings.Join([]string{
		"package main", "", "func main() {", "\tfmt.Println(\"hi\")   ", "\tx := 1", "\tx := 1", "}", "// it’s “done” – really", "Some Title", "// " + strings.Repeat("é", maxQuotedBytes),
	}, "\n") + "\n"
	cases := []struct {
		name, old, put string
		parts          []string
	}{
		{"found twice", "\tx := 1", "y", []string{"found 2 times, at lines 5, 6", "replace_all"}},
		{
			"whitespace at line ends", "fmt.Println(\"hi\")\n\tx := 1\n\tx", "y",
			[]string{"line 4 on differs in whitespace at the end of lines", "     4 | \tfmt.Println(\"hi\")   \n"},
		},
		{"indentation", "func main() {\n    fmt.Println(\"hi\")   \n    x := 1", "y", []string{"line 3 on differs in indentation", "     4 | \tfmt"}},
		{"spacing", "func  main()  {", "y", []string{"line 3 on differs in spacing"}},
		{"quotes", "// it's \"done\" - really", "y", []string{"line 8 on differs in the kind of quotes"}},
		{"case", "some title", "y", []string{"line 9 on differs in upper and lower case"}},
		{
			"a long line", "\t// " + strings.Repeat("é", maxQuotedBytes), "y",
			[]string{"line 10 on differs in indentation", "// " + strings.Repeat("é", (maxQuotedBytes-3)/2) + "…\n"},
		},
		{"backslash n", `func main() {\n`, "y", []string{"backslash and an n", "line 3"}},
		{"done before", "func start() {", "func main() {", []string{"new_text is there already, at line 3"}},
		{"closest", "fmt.Printline(\"hello\")", "y", []string{"Closest is line 4", "Println"}},
		{"nothing like it", "zzzzqqqq", "y", []string{"nor anything like it"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t).open()
			r.write("ws/f", file)
			r.call("edit_file", "path", "f", "old_text", c.old, "new_text", c.put).want(t, "error").holds(t, append(c.parts, "f: ")...)
			if r.read("ws/f") != file {
				t.Error("the file changed")
			}
		})
	}
	t.Run("which edit", func(t *testing.T) {
		r := newRig(t).open()
		r.write("ws/f", file)
		r.call("edit_file", "path", "f", "edits", []map[string]any{{"old_text": "main()", "new_text": "run()"}, {"old_text": "qqqqq", "new_text": "y"}}).
			want(t, "error").holds(t, "edits[1]: ", "no edit of this call was applied")
		if r.read("ws/f") != file {
			t.Error("the file changed")
		}
	})
}

// TestEdit_ErrorsAreQuick: working out what was meant is bounded, also in a
// file of the largest size that repeats itself.
func TestEdit_ErrorsAreQuick(t *testing.T) {
	r := newRig(t).open()
	for name, line := range map[string]string{"empty lines": "\n", "equal lines": "aaaa bbbb\n", "one line": "abcdefgh "} {
		r.write("ws/f", strings.Repeat(line, maxWhole/len(line)))
		start := time.Now()
		r.call("edit_file", "path", "f", "old_text", strings.Repeat(line, 50_000)+"zzzz\n", "new_text", "y").want(t, "error").holds(t, "not found")
		// Without its bound it takes minutes; the race detector takes seconds.
		if took := time.Since(start); took > 10*time.Second {
			t.Errorf("%s: answered after %v", name, took)
		} else {
			t.Logf("%s: %v", name, took)
		}
	}
}

func TestWrite_KeepsLineEnds(t *testing.T) {
	for _, c := range []struct{ name, before, text, after string }{
		{"CRLF", "a\r\nb\r\n", "a\nx\nb\n", "a\r\nx\r\nb\r\n"},
		{"CRLF given as CRLF", "a\r\nb\r\n", "x\r\ny\r\n", "x\r\ny\r\n"},
		{"LF given as CRLF", "a\nb\n", "x\r\ny\r\n", "x\ny\n"},
		{"mark and CRLF", "\uFEFFa\r\n", "b\n", "\uFEFFb\r\n"},
		{"mixed", "a\r\nb\nc\r\nd\n", "a\nb\nX\nd\n", "a\r\nb\nX\r\nd\n"},
		{"mixed, with new lines", "a\r\nb\nc\r\n", "a\nb\nnew\nc\nend\n", "a\r\nb\nnew\nc\r\nend\r\n"},
		{"final line end taken away", "a\r\nb\r\n", "a\nb", "a\r\nb"},
		{"from empty", "", "a\nb\n", "a\nb\n"},
		{"from one line", "a", "a\nb\n", "a\nb\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t).open()
			r.write("ws/f", c.before)
			r.call("write_file", "path", "f", "content", c.text).want(t, "allow")
			if got := r.read("ws/f"); got != c.after {
				t.Errorf("%q, want %q", got, c.after)
			}
		})
	}
}

// TestEdit_KeepsBytes is a property: whatever a file holds, an edit changes
// the bytes of its place and no others.
func TestEdit_KeepsBytes(t *testing.T) {
	pieces := []string{"a", "b", "\n", "\r\n", "\r", "é", "\xE9", "\xFF", "\uFEFF", " ", "\t", "word", "\r\r\n"}
	random := func(rnd *rand.Rand, n int) string {
		var b strings.Builder
		for range rnd.IntN(n) {
			b.WriteString(pieces[rnd.IntN(len(pieces))])
		}
		return b.String()
	}
	puts := []string{"", "x", "x\ny", "\n", "<<\nplace>>", "<<place>>\n<<place", "é\n\n"}
	property := func(seed uint64) bool {
		rnd := rand.New(rand.NewPCG(seed, 1))
		head, tail := random(rnd, 40), random(rnd, 40)
		if strings.HasSuffix(head, "\r") || strings.HasPrefix(tail, "\n") {
			return true // the place would be half of a line end
		}
		const mark = "<<place>>"
		raw := []byte(head + mark + tail)
		put := puts[rnd.IntN(len(puts))]
		got, at, err := newDoc(raw).apply(edit{old: mark, put: put})
		if err != nil || len(at) != 1 {
			t.Logf("seed %d: %v", seed, err)
			return false
		}
		mid, ok := bytes.CutPrefix(got, []byte(head))
		if !ok {
			t.Logf("seed %d: the bytes before changed: %q, %q", seed, raw, got)
			return false
		}
		mid, ok = bytes.CutSuffix(mid, []byte(tail))
		if !ok || strings.ReplaceAll(string(mid), "\r\n", "\n") != put {
			t.Logf("seed %d: %q became %q for %q", seed, raw, got, put)
			return false
		}
		return true
	}
	if err := quick.Check(property, &quick.Config{MaxCount: 5000}); err != nil {
		t.Error(err)
	}
}

// TestWrite_MeansTheText is a property: writing a text over any text file
// gives a file that reads as that text, and writing what it reads changes
// nothing.
func TestWrite_MeansTheText(t *testing.T) {
	pieces := []string{"a", "b", "\n", "\r\n", "é", " ", "word\n", "word\r\n"}
	property := func(seed uint64) bool {
		rnd := rand.New(rand.NewPCG(seed, 2))
		random := func() []byte {
			var b bytes.Buffer
			if rnd.IntN(4) == 0 {
				b.WriteString("\uFEFF")
			}
			for range rnd.IntN(60) {
				b.WriteString(pieces[rnd.IntN(len(pieces))])
			}
			return b.Bytes()
		}
		d := newDoc(random())
		if same := d.rewritten(string(d.text)); !bytes.Equal(same, d.raw) {
			t.Logf("seed %d: %q became %q", seed, d.raw, same)
			return false
		}
		put := string(newDoc(random()).text)
		got := d.rewritten(put)
		if string(newDoc(got).text) != put || bytes.HasPrefix(got, bom) != (d.skip > 0) {
			t.Logf("seed %d: %q over %q became %q", seed, put, d.raw, got)
			return false
		}
		return true
	}
	if err := quick.Check(property, &quick.Config{MaxCount: 5000}); err != nil {
		t.Error(err)
	}
}
