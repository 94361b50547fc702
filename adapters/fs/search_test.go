package fs

import (
	"context"
	"errors"
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode/utf16"

	"github.com/berth-dev/berth/core/domain"
)

// utf16Text is text as UTF-16 with a byte-order mark.
func utf16Text(text string, big bool) string {
	var b strings.Builder
	for _, u := range append([]uint16{0xFEFF}, utf16.Encode([]rune(text))...) {
		if big {
			b.Write([]byte{byte(u >> 8), byte(u)})
		} else {
			b.Write([]byte{byte(u), byte(u >> 8)})
		}
	}
	return b.String()
}

// searchRig is a session over a tree with text of many kinds.
func searchRig(t testing.TB) *rig {
	r := newRig(t)
	for _, old := range []string{"ws/a.txt", "ws/src", "ws/private"} {
		if err := os.RemoveAll(r.at(old)); err != nil {
			t.Fatal(err)
		}
	}
	r.write("ws/src/main.go", "package main\n\nfunc main() {\n\tprintln(\"needle\")\n}\n")
	r.write("ws/src/sub/other.go", "package sub\n\n// Needle is one.\nfunc Needle() {}\nfunc two() {}\n")
	r.write("ws/src-x/late.go", "needle\n") // after src/…, although "-" comes before "/"
	r.write("ws/doc/crlf.txt", "one\r\nneedle here\r\nthree\r\n")
	r.write("ws/doc/bom.txt", "\xEF\xBB\xBFneedle at the start\n")
	r.write("ws/doc/wide.txt", utf16Text("first\nneedle 𝄞 wide\n", false))
	r.write("ws/doc/wider.txt", utf16Text("needle big\r\n", true))
	r.write("ws/doc/latin.txt", "caf\xE9 needle\n")
	r.write("ws/bin.dat", "needle\x00\x01\n")
	r.write("ws/empty", "")
	r.write("ws/.hidden/h.txt", "needle\n")
	r.write("ws/.git/config", "needle\n")
	r.write("ws/.gitignore", "ignored/\n*.log\n")
	r.write("ws/ignored/i.txt", "needle\n")
	r.write("ws/x.log", "needle\n")
	return r
}

func TestSearch(t *testing.T) {
	r := searchRig(t).open()
	const all = "doc/bom.txt:1: needle at the start\ndoc/crlf.txt:2: needle here\ndoc/latin.txt:1: caf\uFFFD needle\ndoc/wide.txt:2: needle 𝄞 wide\ndoc/wider.txt:1: needle big\n" +
		"src/main.go:4: \tprintln(\"needle\")\nsrc-x/late.go:1: needle\n"
	const binary = "[not searched: 1 binary file]\n"
	cases := map[string]struct {
		args []any
		want string
	}{
		"a word":            {[]any{"pattern", "needle"}, "[7 matches in 7 of 9 files in the working directory]\n" + all + binary},
		"a directory":       {[]any{"pattern", "needle", "path", "src"}, "[1 match in 1 of 2 files in src]\nsrc/main.go:4: \tprintln(\"needle\")\n"},
		"by absolute path":  {[]any{"pattern", "needle", "path", r.at("ws/src-x")}, "[1 match in 1 of 1 file in src-x]\nsrc-x/late.go:1: needle\n"},
		"one file":          {[]any{"pattern", "func", "path", "src/sub/other.go"}, "[2 matches in src/sub/other.go]\nsrc/sub/other.go:4: func Needle() {}\nsrc/sub/other.go:5: func two() {}\n"},
		"an ignored file":   {[]any{"pattern", "needle", "path", "x.log"}, "[1 match in x.log]\nx.log:1: needle\n"},
		"an ignored place":  {[]any{"pattern", "needle", "path", "ignored"}, "[1 match in 1 of 1 file in ignored]\nignored/i.txt:1: needle\n"},
		"a hidden place":    {[]any{"pattern", "needle", "path", ".git"}, "[1 match in 1 of 1 file in .git]\n.git/config:1: needle\n"},
		"another root":      {[]any{"pattern", "N", "path", r.at("agent")}, "[1 match in 1 of 1 file in " + r.at("agent") + "]\n" + r.at("agent/notes.md") + ":1: N\n"},
		"any case":          {[]any{"pattern", "NEEDLE", "case_insensitive", true, "path", "src"}, "[3 matches in 2 of 2 files in src]\nsrc/main.go:4: \tprintln(\"needle\")\nsrc/sub/other.go:3: // Needle is one.\nsrc/sub/other.go:4: func Needle() {}\n"},
		"ends of lines":     {[]any{"pattern", "^needle here$"}, "[1 match in 1 of 9 files in the working directory]\ndoc/crlf.txt:2: needle here\n" + binary},
		"plain text":        {[]any{"pattern", "Needle() {", "literal", true}, "[1 match in 1 of 9 files in the working directory]\nsrc/sub/other.go:4: func Needle() {}\n" + binary},
		"files":             {[]any{"pattern", "needle", "output", "files", "path", "doc"}, "[5 files match of 5 in doc]\ndoc/bom.txt\ndoc/crlf.txt\ndoc/latin.txt\ndoc/wide.txt\ndoc/wider.txt\n"},
		"count":             {[]any{"pattern", "[Nn]eedle|two", "output", "count", "path", "src"}, "[4 matches in 2 of 2 files in src]\nsrc/main.go: 1\nsrc/sub/other.go: 3\n"},
		"limit":             {[]any{"pattern", "needle", "limit", 2}, "[7 matches in 7 of 9 files in the working directory; the first 2 are shown]\ndoc/bom.txt:1: needle at the start\ndoc/crlf.txt:2: needle here\n" + binary},
		"limit of files":    {[]any{"pattern", "needle", "limit", "1", "output", "files", "path", "doc"}, "[5 files match of 5 in doc; the first is shown]\ndoc/bom.txt\n"},
		"names":             {[]any{"pattern", "eedle", "glob", "*.go"}, "[4 matches in 3 of 3 files in the working directory]\nsrc/main.go:4: \tprintln(\"needle\")\nsrc/sub/other.go:3: // Needle is one.\nsrc/sub/other.go:4: func Needle() {}\nsrc-x/late.go:1: needle\n"},
		"paths":             {[]any{"pattern", "eedle", "glob", "src/**/o*.{go,ts}"}, "[2 matches in 1 of 1 file in the working directory]\nsrc/sub/other.go:3: // Needle is one.\nsrc/sub/other.go:4: func Needle() {}\n"},
		"other names":       {[]any{"pattern", "eedle", "glob", "!*.{go,txt}"}, "[no match in 1 file searched in the working directory; 2 hidden names and 2 ignored ones were left out; set hidden or ignored to true to include them]\n" + binary},
		"hidden":            {[]any{"pattern", "needle", "hidden", true, "glob", "h*"}, "[1 match in 1 of 1 file in the working directory]\n.hidden/h.txt:1: needle\n"},
		"hidden by name":    {[]any{"pattern", "needle", "glob", ".hidden/*"}, "[1 match in 1 of 1 file in the working directory]\n.hidden/h.txt:1: needle\n"},
		"ignored":           {[]any{"pattern", "needle", "ignored", true, "glob", "{i.txt,*.log}"}, "[2 matches in 2 of 2 files in the working directory]\nignored/i.txt:1: needle\nx.log:1: needle\n"},
		"context":           {[]any{"pattern", "needle", "context", 1, "path", "doc/crlf.txt"}, "[1 match in doc/crlf.txt]\ndoc/crlf.txt-1- one\ndoc/crlf.txt:2: needle here\ndoc/crlf.txt-3- three\n"},
		"nothing":           {[]any{"pattern", "nowhere", "path", "src"}, "[no match in 2 files searched in src]"},
		"nothing in a file": {[]any{"pattern", "nowhere", "path", "src/main.go"}, "[no match in src/main.go]"},
		"across lines":      {[]any{"pattern", `main\(\) \{\n\tprint`}, "[1 match in 1 of 9 files in the working directory]\nsrc/main.go:3: func main() {\nsrc/main.go:4: \tprintln(\"needle\")\n" + binary},
		"across CRLF":       {[]any{"pattern", `(?s)one.*three$`, "multiline", true}, "[1 match in 1 of 9 files in the working directory]\ndoc/crlf.txt:1: one\ndoc/crlf.txt:2: needle here\ndoc/crlf.txt:3: three\n" + binary},
		"plain lines":       {[]any{"pattern", "one\r\nneedle", "literal", true, "path", "doc"}, "[1 match in 1 of 5 files in doc]\ndoc/crlf.txt:1: one\ndoc/crlf.txt:2: needle here\n"},
		"from the start":    {[]any{"pattern", `\Aneedle`, "multiline", true, "path", "doc"}, "[2 matches in 2 of 5 files in doc]\ndoc/bom.txt:1: needle at the start\ndoc/wider.txt:1: needle big\n"},
		"an empty file":     {[]any{"pattern", "^", "path", "empty"}, "[no match in empty]"},
		"empty lines":       {[]any{"pattern", "^$", "path", "src/main.go"}, "[1 match in src/main.go]\nsrc/main.go:2: \n"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			a := r.call("search", c.args...).want(t, "allow")
			if a.text != strings.ReplaceAll(c.want, "/", string(os.PathSeparator)) {
				t.Errorf("got\n%s\nwant\n%s", a.text, c.want)
			}
		})
	}
}

func TestSearch_Refusals(t *testing.T) {
	r := searchRig(t).open()
	cases := map[string]struct {
		args    []any
		verdict string
		part    string
	}{
		"missing":          {[]any{"pattern", "x", "path", "src/mian.go"}, "not_found", "src/mian.go does not exist; beside it there is main.go"},
		"a pattern":        {[]any{"pattern", "x", "path", "src/*.go"}, "not_found", "a pattern of names goes into glob"},
		"outside":          {[]any{"pattern", "x", "path", r.at("out")}, "deny", "outside the session's directories"},
		"forbidden":        {[]any{"pattern", "x", "path", "~/.ssh"}, "deny", "forbidden to tools"},
		"a forbidden file": {[]any{"pattern", "x", "path", "~/.ssh/id_rsa"}, "deny", "forbidden to tools"},
		"binary":           {[]any{"pattern", "x", "path", "bin.dat"}, "deny", "bin.dat: it is binary"},
		"look-ahead":       {[]any{"pattern", "x(?=y)"}, "error", "search: the pattern cannot be used: look-ahead"},
		"bad glob":         {[]any{"pattern", "x", "glob", "[a"}, "error", "not a valid pattern"},
		"bad output":       {[]any{"pattern", "x", "output", "json"}, "error", "content, files or count"},
		"unknown argument": {[]any{"regex", "x"}, "error", `unknown argument "regex"; "pattern" is missing`},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			r.call("search", c.args...).want(t, c.verdict).holds(t, c.part)
		})
	}
}

func TestSearch_ContextIsShownOnce(t *testing.T) {
	r := newRig(t)
	lines := make([]string, 30)
	for i := range lines {
		lines[i] = fmt.Sprintf("line %d", i+1)
	}
	for _, n := range []int{3, 5, 12, 30} {
		lines[n-1] += " hit"
	}
	r.write("ws/f", strings.Join(lines, "\n"))
	r.open()
	a := r.call("search", "pattern", "hit", "path", "f", "context", 2)
	var got []string
	for _, l := range strings.Split(strings.TrimSpace(a.text), "\n")[1:] {
		got = append(got, strings.TrimPrefix(strings.Fields(l)[0], "f"))
	}
	want := strings.Fields("-1- -2- :3: -4- :5: -6- -7- -- -10- -11- :12: -13- -14- -- -28- -29- :30:")
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %q\nwant %q", got, want)
	}
	if a := r.call("search", "pattern", "hit", "path", "f", "context", 2, "limit", 1); !strings.HasSuffix(a.text, "; the first is shown]\nf-1- line 1\nf-2- line 2\nf:3: line 3 hit\nf-4- line 4\nf-5- line 5 hit\n") {
		t.Errorf("cut short: %s", a.text)
	}
}

func TestSearch_LongLines(t *testing.T) {
	r := newRig(t)
	r.write("ws/min.js", strings.Repeat("ä", 5000)+"needle"+strings.Repeat("z", 9000)+"\nshort needle\n")
	r.open()
	for _, pattern := range []string{"needle", "need.e"} {
		a := r.call("search", "pattern", pattern, "path", "min.js").want(t, "allow").holds(t, "min.js:1: …ä", "needlezz", "zz…\nmin.js:2: short needle")
		if len(a.text) > 800 || strings.Contains(a.text, "\uFFFD") {
			t.Errorf("%d bytes: %s", len(a.text), a.text)
		}
	}
	// A match of many lines is cut, a pattern for it says how many are left.
	r.write("ws/many", "begin\n"+strings.Repeat("x\n", 100)+"end\n")
	r.call("search", "pattern", `(?s)begin.*end`, "multiline", true, "path", "many").want(t, "allow").
		holds(t, "[1 match in many]\nmany:1: begin\n", "many:50: x\nmany: … [52 more lines of this match]\n")
}

func TestSearch_TextIsBounded(t *testing.T) {
	r := newRig(t)
	for i := range 20 {
		r.write(fmt.Sprintf("ws/big/%02d", i), strings.Repeat(strings.Repeat("needle ", 60)+"\n", 100))
	}
	r.open()
	a := r.call("search", "pattern", "needle", "path", "big", "limit", 1000).want(t, "allow").holds(t, "[2000 matches in 20 of 20 files in big; the first ")
	if len(a.text) > maxSearchText+4096 {
		t.Errorf("%d bytes", len(a.text))
	}
	if string(a.result.RawOutput) != `{"matches":2000,"files":20,"complete":false}` {
		t.Errorf("raw output %s", a.result.RawOutput)
	}
}

// TestSearch_EndsEarlyTheSameWay: when there are more matches than are
// counted, the same first ones are shown each time.
func TestSearch_EndsEarlyTheSameWay(t *testing.T) {
	r := newRig(t)
	for i := range 300 {
		r.write(fmt.Sprintf("ws/many/%d/%03d", i%7, i), strings.Repeat(fmt.Sprintf("needle %d\n", i), 100))
	}
	r.open()
	first := r.call("search", "pattern", "needle", "path", "many", "limit", 300).want(t, "allow").
		holds(t, "[more than 10000 matches in many; the first 300 are shown]\nmany/0/000:1: needle 0\n")
	for range 20 {
		if again := r.call("search", "pattern", "needle", "path", "many", "limit", 300); again.text != first.text || string(again.result.RawOutput) != string(first.result.RawOutput) {
			t.Fatalf("another answer: %s\n%s", again.text[:100], first.text[:100])
		}
	}
}

func TestSearch_TellsWhere(t *testing.T) {
	r := searchRig(t).open()
	a := r.call("search", "pattern", "eedle", "path", "src").want(t, "allow")
	if a.plan.Title != "Search eedle in src" || a.plan.Kind != domain.KindSearch || a.plan.Locations[0].Path != r.at("ws/src") || a.plan.Access.Class != domain.AccessRead {
		t.Errorf("plan %+v", a.plan)
	}
	want := []domain.Location{{Path: r.at("ws/src/main.go"), Line: 4}, {Path: r.at("ws/src/sub/other.go"), Line: 3}}
	if !reflect.DeepEqual(a.result.Locations, want) {
		t.Errorf("locations %+v", a.result.Locations)
	}
	if string(a.result.RawOutput) != `{"matches":3,"files":2,"complete":true}` {
		t.Errorf("raw output %s", a.result.RawOutput)
	}
	if one := r.call("search", "pattern", "eedle", "path", "src/main.go"); one.result.Locations[0] != want[0] {
		t.Errorf("locations of one file %+v", one.result.Locations)
	}
}

// TestSearch_CountsWhole: files and counts are told in full where matching
// lines would have been cut off.
func TestSearch_CountsWhole(t *testing.T) {
	r := newRig(t)
	for i := range 3 {
		r.write(fmt.Sprintf("ws/much/%d", i), strings.Repeat("needle\n", maxCounted))
	}
	r.open()
	r.call("search", "pattern", "needle", "path", "much").want(t, "allow").holds(t, "[more than 10000 matches in much; the first 100 are shown]")
	r.call("search", "pattern", "needle", "path", "much", "output", "count").want(t, "allow").
		holds(t, "[30000 matches in 3 of 3 files in much]\nmuch/0: 10000\nmuch/1: 10000\nmuch/2: 10000\n")
	r.call("search", "pattern", "needle", "path", "much", "output", "files").want(t, "allow").holds(t, "[3 files match of 3 in much]\nmuch/0\n")
}

// TestSearch_EditorBuffer: one file is searched as the client has it.
func TestSearch_EditorBuffer(t *testing.T) {
	r := newRig(t)
	e := newEditor()
	r.client = e
	r.open()
	e.buffers[r.at("ws/a.txt")] = "unsaved needle\n"
	e.buffers[r.at("ws/new.txt")] = "new needle\n"
	r.call("search", "pattern", "needle", "path", "a.txt").want(t, "allow").holds(t, "a.txt:1: unsaved needle")
	r.call("search", "pattern", "needle", "path", "new.txt").want(t, "allow").holds(t, "new.txt:1: new needle")
	r.call("search", "pattern", "needle", "path", "none.txt").want(t, "deny").holds(t, "none.txt: there is no such file")
	r.call("search", "pattern", "needle").want(t, "allow").holds(t, "[no match")
	if n := len(e.asked); n != 3 {
		t.Errorf("the client was asked %d times: %v", n, e.asked)
	}
}

func TestSearch_LargeFiles(t *testing.T) {
	r := newRig(t)
	r.write("ws/big/a", strings.Repeat("x", maxSwept)+"needle\n")
	r.write("ws/big/b", "needle\n")
	r.write("ws/huge", strings.Repeat(strings.Repeat("y", 99)+"\n", 110_000)+"needle\n")
	r.open()
	r.call("search", "pattern", "needle", "path", "big").want(t, "allow").holds(t, "[1 match in 1 of 1 file in big]\nbig/b:1: needle\n[not searched: 1 file of more than 4.0 MiB]")
	r.call("search", "pattern", "needle", "path", "big/a").want(t, "allow").holds(t, "big/a:1: …x")
	r.call("search", "pattern", "needle", "path", "huge").want(t, "allow").holds(t, "huge:110001: needle")
	if err := os.Truncate(r.at("ws/huge"), maxSearchedFile+1); err != nil {
		t.Fatal(err)
	}
	r.call("search", "pattern", "needle", "path", "huge").want(t, "deny").holds(t, "at most 64.0 MiB of one file are searched")
}

// TestSearch_Budgets: what a budget leaves out is said.
func TestSearch_Budgets(t *testing.T) {
	for name, c := range map[string]struct {
		budget budget
		part   string
	}{
		"names": {budget{entries: 50, bytes: 1 << 30, time: time.Minute}, "stopped after 50 names, so there may be more"},
		"bytes": {budget{entries: 1e6, bytes: 1 << 10, time: time.Minute}, "stopped after reading 1.0 KiB"},
		"time":  {budget{entries: 1e6, bytes: 1 << 30, time: 1}, "stopped after 1ns"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			for i := range 200 {
				r.write(fmt.Sprintf("ws/d%d/f%d", i%10, i), strings.Repeat("needle\n", 10))
			}
			r.open()
			r.set.(*workspace).budget = c.budget
			a := r.call("search", "pattern", "needle").want(t, "allow").holds(t, c.part)
			if !strings.HasSuffix(string(a.result.RawOutput), `"complete":false}`) {
				t.Errorf("raw output %s", a.result.RawOutput)
			}
		})
	}
}

// TestSweep_Cancel: a cancel in the middle ends the walk with its cause, and
// every descriptor is given back.
func TestSweep_Cancel(t *testing.T) {
	r := newRig(t)
	for i := range 400 {
		r.write(fmt.Sprintf("ws/d%d/e%d/f%d", i%20, i%7, i), "needle\n")
	}
	r.open()
	before := openFiles(t)
	cause := errors.New("the user cancelled")
	for _, after := range []int64{0, 1, 5, 50, 399} {
		g, err := r.set.(*workspace).lookUp(t.Context(), "search", ".", true)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		v := &cancelling{left: after, cancel: func() { cancel(cause) }}
		_, err = g.sweep(ctx, options{}, v)
		if !errors.Is(err, cause) {
			t.Errorf("after %d: %v", after, err)
		}
		if err := g.Close(); err != nil {
			t.Error(err)
		}
		cancel(nil)
	}
	if now := openFiles(t); now != before {
		t.Errorf("%d files are open, %d were", now, before)
	}
}
