package fs

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"

	"github.com/berth-dev/berth/core/domain"
)

func TestRead(t *testing.T) {
	numbered := func(n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, "line %d\n", i+1)
		}
		return b.String()
	}
	cases := []struct {
		name, content string
		args          []any
		head, body    string
	}{
		{"whole", "one\ntwo\n", nil, "[f: lines 1-2 of 2]", "one\ntwo\n"},
		{"no line end at the end", "one\ntwo", nil, "[f: lines 1-2 of 2; the last line has no line end]", "one\ntwo"},
		{"empty", "", nil, "[f is empty]", ""},
		{"only a byte-order mark", "\uFEFF", nil, "[f is empty]", ""},
		{"one empty line", "\n", nil, "[f: lines 1-1 of 1]", "\n"},
		{"CRLF and byte-order mark", "\uFEFFone\r\ntwo\r\n", nil, "[f: lines 1-2 of 2]", "one\ntwo\n"},
		{"a lone CR stays", "a\rb\n", nil, "[f: lines 1-1 of 1]", "a\rb\n"},
		{"a range", numbered(9), []any{"offset", 3, "limit", 2}, "[f: lines 3-4 of 9; go on with offset 5]", "line 3\nline 4\n"},
		{"a range to the end", numbered(9), []any{"offset", 9, "limit", 5}, "[f: lines 9-9 of 9]", "line 9\n"},
		{"numbers as strings", numbered(9), []any{"line", "8", "limit", "1"}, "[f: lines 8-8 of 9; go on with offset 9]", "line 8\n"},
		{"more lines than fit", numbered(2001), nil, "[f: lines 1-2000 of 2001; go on with offset 2001]", numbered(2000)},
		{
			"more bytes than fit", strings.Repeat(strings.Repeat("x", 1023)+"\n", 300), nil,
			"[f: lines 1-256 of 300; go on with offset 257]", strings.Repeat(strings.Repeat("x", 1023)+"\n", 256),
		},
		{
			"a long line", strings.Repeat("é", 3000) + "\nend\n", nil, "[f: lines 1-2 of 2; 1 long line shortened]",
			strings.Repeat("é", 2048) + " … [1904 more bytes of this line]\nend\n",
		},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t).open()
			r.write("ws/f", c.content)
			a := r.call("read_file", append([]any{"path", "f"}, c.args...)...).want(t, "allow")
			head, body, _ := strings.Cut(a.text, "\n")
			if head != c.head || body != c.body {
				t.Errorf("head %q\nbody %.200q", head, body)
			}
			if a.plan.Locations[0].Path != r.at("ws/f") || a.plan.Access.Class != domain.AccessRead || a.plan.Access.Outside {
				t.Errorf("plan %+v", a.plan)
			}
		})
	}
	t.Run("beyond the end", func(t *testing.T) {
		r := newRig(t).open()
		r.call("read_file", "path", "a.txt", "offset", 7).want(t, "deny").holds(t, "a.txt: it has 1 line; there is no line 7")
	})
}

func TestRead_NoText(t *testing.T) {
	for name, c := range map[string]struct{ content, why string }{
		"NUL":                {"text\x00more", "a NUL byte at offset 4"},
		"UTF-16":             {"\xFF\xFEa\x00", "UTF-16"},
		"Latin-1":            {"line\ncaf\xE9\n", "byte 0xE9 at offset 8, line 2"},
		"cut at the end":     {"caf\xC3", "byte 0xC3"},
		"overlong":           {"\xC0\xAF", "byte 0xC0"},
		"a surrogate":        {"\xED\xA0\x80", "byte 0xED"},
		"NUL behind a mark":  {"\uFEFF\x00", "NUL"},
		"NUL far behind":     {strings.Repeat("a", 1<<20) + "\x00", "NUL"},
		"NUL in a long file": {"\x00" + strings.Repeat("a", maxWhole), "NUL"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t).open()
			r.write("ws/f", c.content)
			r.call("read_file", "path", "f").want(t, "deny").holds(t, "f: ", c.why, "UTF-8 text only")
		})
	}
}

// TestRead_CharacterBorders guards A-ENC-4: text stays text wherever a sample
// or a chunk is cut.
func TestRead_CharacterBorders(t *testing.T) {
	r := newRig(t).open()
	for _, border := range []int{512, 1000, 1024, 4096, 8192, chunk, 2 * chunk} {
		for _, char := range []string{"é", "€", "𝒳"} {
			for back := range len(char) + 1 {
				text := strings.Repeat("a", border-back) + char + "\nend\n"
				if back == 1 && border >= chunk {
					text += strings.Repeat("b\n", maxWhole/2) // too large to be taken whole
				}
				r.write("ws/f", text)
				a := r.call("read_file", "path", "f", "limit", 1)
				if a.verdict != "allow" {
					t.Fatalf("%s %d bytes before %d: %s", char, back, border, a.text)
				}
			}
		}
	}
}

func TestRead_PartOfALargeFile(t *testing.T) {
	r := newRig(t).open()
	var b strings.Builder
	for i := 1; b.Len() <= maxWhole+chunk; i++ {
		fmt.Fprintf(&b, "line %d é\r\n", i)
	}
	lines := strings.Count(b.String(), "\n")
	r.write("ws/f", "\uFEFF"+b.String())
	check := func(offset, limit int, head string, body ...string) {
		t.Helper()
		a := r.call("read_file", "path", "f", "offset", offset, "limit", limit).want(t, "allow")
		got, text, _ := strings.Cut(a.text, "\n")
		if !strings.HasPrefix(got, head) || text != strings.Join(body, "\n")+"\n" {
			t.Errorf("offset %d: %s\n%q", offset, got, text)
		}
	}
	check(1, 2, "[f: lines 1-2 of a file of 10.", "line 1 é", "line 2 é")
	check(30000, 1, "[f: lines 30000-30000 of a file of 10.", "line 30000 é")
	check(lines, 5, fmt.Sprintf("[f: lines %d-%d of a file of 10.", lines, lines), fmt.Sprintf("line %d é", lines))
	r.call("read_file", "path", "f", "offset", lines+1).want(t, "deny").holds(t, "f: it has", "there is no line")
	r.call("read_file", "path", "f", "offset", lines+9).want(t, "deny").holds(t, "f: it has fewer than")
	r.call("edit_file", "path", "f", "old_text", "a", "new_text", "b").want(t, "deny").holds(t, "10.0 MiB")
	r.call("write_file", "path", "f", "content", "b").want(t, "deny").holds(t, "10.0 MiB")
}

func TestRead_EndlessLine(t *testing.T) {
	r := newRig(t).open()
	r.write("ws/f", strings.Repeat("x", maxWhole+2*chunk)+"\nend\n")
	a := r.call("read_file", "path", "f").want(t, "allow").holds(t, "1 long line shortened", "\nend\n")
	if len(a.text) > 2*maxLineBytes {
		t.Errorf("%d bytes", len(a.text))
	}
}

// TestRead_BoundedMemory guards T68: a sparse file of a tebibyte that begins
// with text costs what is shown of it.
func TestRead_BoundedMemory(t *testing.T) {
	r := newRig(t).open()
	f, err := os.Create(r.at("ws/big"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString(strings.Repeat("text\n", chunk/5+1)); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(f.Truncate(1<<40), f.Close()); err != nil {
		t.Skipf("no sparse files: %v", err)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	r.call("read_file", "path", "big").want(t, "allow")
	runtime.ReadMemStats(&after)
	if grown := after.TotalAlloc - before.TotalAlloc; grown > 16<<20 {
		t.Errorf("%d bytes allocated", grown)
	}
	r.call("read_file", "path", "big", "offset", 200_000).want(t, "deny")
}

func TestRead_StopsWhenCancelled(t *testing.T) {
	r := newRig(t).open()
	r.write("ws/f", strings.Repeat("x\n", maxWhole))
	p, err := r.prepare("read_file", args("path", "f", "offset", maxWhole))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(domain.CancelledByClient)
	if _, err := p.Run(ctx, nil); !errors.Is(err, domain.CancelledByClient) {
		t.Errorf("err %v", err)
	}
}

func TestRead_HoldsWhatItPrepared(t *testing.T) {
	r := newRig(t).open()
	p, err := r.prepare("read_file", args("path", "a.txt"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(r.at("out/secret.txt"), r.at("ws/a.txt")); err != nil {
		t.Fatal(err)
	}
	res, err := p.Run(t.Context(), nil)
	if err != nil || !strings.HasSuffix(res.Text, "\nA") {
		t.Errorf("result %+v, %v", res, err)
	}
}

func TestRead_SuggestsNames(t *testing.T) {
	r := newRig(t).open()
	r.write("ws/src/Helper.go", "")
	r.write("ws/src/config.yaml", "")
	r.call("read_file", "path", "src/helperr.go").want(t, "not_found").holds(t, "src/helperr.go does not exist", "Helper.go")
	r.call("read_file", "path", "src/config.yml").want(t, "not_found").holds(t, "config.yaml")
	r.call("read_file", "path", "src/mian.go").want(t, "not_found").holds(t, "main.go")
	r.call("read_file", "path", "nowhere/main.go").want(t, "not_found").holds(t, "nor does the directory")
}

func TestRead_ShowsTheClientAPreview(t *testing.T) {
	r := newRig(t).open()
	r.write("ws/f.md", "# Title\n```go\ncode\n```\n"+strings.Repeat("filling\n", 1900))
	a := r.call("read_file", "path", "f.md")
	text := a.result.Content[0].(domain.ContentBlock).Block.(domain.Text).Text
	if len(text) > maxPreview+100 || !strings.HasPrefix(text, "````\n# Title\n```go\n") || !strings.HasSuffix(text, "filling\n````\n…") {
		t.Errorf("preview of %d bytes: %.60q…%q", len(text), text, text[len(text)-30:])
	}
}

func TestToolNamesAreStable(t *testing.T) {
	r := newRig(t).open()
	var names []string
	for _, tool := range r.set.Tools() {
		names = append(names, tool.Spec().Name)
	}
	if got := strings.Join(names, " "); got != "read_file write_file edit_file list_directory move_file delete_file glob search deliver_file" {
		t.Errorf("tools %s", got)
	}
}
