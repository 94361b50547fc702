package llm

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

// allLines reads a body's lines and the error that ended it.
func allLines(r io.Reader) ([]string, error) {
	var out []string
	lines := NewLines(r, nil)
	for {
		line, err := lines.Next()
		if err != nil {
			return out, err
		}
		out = append(out, string(line))
	}
}

func TestLines(t *testing.T) {
	for _, c := range []struct {
		name string
		body string
		want []string
	}{
		{"empty", "", nil},
		{"one", "{}\n", []string{"{}"}},
		{"no line end at the end", "{}\n[]", []string{"{}", "[]"}},
		{"CRLF", "{}\r\n[]\r\n", []string{"{}", "[]"}},
		{"CR ends no line", "{\r}\n[]\r", []string{"{\r}", "[]"}},
		{"blank lines", "\n\r\n \t\n{}\n\n\n[]\n\n", []string{"{}", "[]"}},
		{"only blank", "\n \n\t", nil},
		{"white space around", "  {} \t\r\n\t[]", []string{"{}", "[]"}},
		{"byte order mark", "\uFEFF{}\n\uFEFF{}\n", []string{"{}", "\uFEFF{}"}},
		{"not UTF-8", "\xff\xfe\n", []string{"\xff\xfe"}},
		{"NUL", "a\x00b\n", []string{"a\x00b"}},
		{"a long line", strings.Repeat("x", 100_000) + "\n{}", []string{strings.Repeat("x", 100_000), "{}"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			for way, r := range map[string]io.Reader{
				"whole":   strings.NewReader(c.body),
				"bytes":   iotest.OneByteReader(strings.NewReader(c.body)),
				"with it": iotest.DataErrReader(strings.NewReader(c.body)),
			} {
				got, err := allLines(r)
				if err != io.EOF || fmt.Sprintf("%q", got) != fmt.Sprintf("%q", c.want) {
					t.Errorf("%s: %q, %v, want %q", way, got, err, c.want)
				}
			}
		})
	}
}

// TestLines_AtOnce: a line is given out with its last byte.
func TestLines_AtOnce(t *testing.T) {
	r, w := io.Pipe()
	got := make(chan string)
	go func() {
		line, err := NewLines(r, nil).Next()
		got <- fmt.Sprint(string(line), err)
	}()
	if _, err := io.WriteString(w, "{}\n"); err != nil {
		t.Fatal(err)
	}
	if s := <-got; s != "{}<nil>" {
		t.Errorf("%s", s)
	}
}

// TestLines_Broken: what came before a break is given out, a half line is
// not.
func TestLines_Broken(t *testing.T) {
	broken := errors.New("broken")
	got, err := allLines(io.MultiReader(strings.NewReader("{}\n[]\nhal"), iotest.ErrReader(broken)))
	if !errors.Is(err, broken) || fmt.Sprint(got) != "[{} []]" {
		t.Errorf("%q, %v", got, err)
	}
}

// TestLines_Limit: a line that never ends is an error, and not held for ever.
func TestLines_Limit(t *testing.T) {
	lines := NewLines(io.MultiReader(strings.NewReader("{}\n"), &endless{s: strings.Repeat("x", 100)}), nil)
	lines.max = 1 << 20
	if line, err := lines.Next(); err != nil || string(line) != "{}" {
		t.Fatalf("%s, %v", line, err)
	}
	if _, err := lines.Next(); !errors.Is(err, ErrTooLong) {
		t.Errorf("error %v", err)
	}
	if cap(lines.buf) > 4<<20 {
		t.Errorf("%d bytes were held", cap(lines.buf))
	}
}

// TestLines_Alive: only whole lines are signs of life.
func TestLines_Alive(t *testing.T) {
	alive := 0
	lines := NewLines(iotest.OneByteReader(strings.NewReader("{}\n\n[]\nno end of this line")), func() { alive++ })
	for {
		if _, err := lines.Next(); err != nil {
			break
		}
	}
	if alive != 3 {
		t.Errorf("%d signs of life, want one for each of three lines", alive)
	}
}

// FuzzLines: the lines of a body are the same however the network cut it, and
// they are those that splitting it all at once gives.
func FuzzLines(f *testing.F) {
	f.Add("\uFEFF{}\r\n\n [] \n{\"a\":1}", uint8(3))
	f.Add("\r\n\r{}\r", uint8(1))
	f.Fuzz(func(t *testing.T, body string, step uint8) {
		var want []string
		for line := range strings.SplitSeq(strings.TrimPrefix(body, bom), "\n") {
			if line = strings.Trim(line, " \t\r"); line != "" {
				want = append(want, line)
			}
		}
		for _, r := range []io.Reader{
			strings.NewReader(body),
			iotest.OneByteReader(strings.NewReader(body)),
			iotest.HalfReader(strings.NewReader(body)),
			&stepReader{r: strings.NewReader(body), n: int(step)%17 + 1},
		} {
			got, err := allLines(r)
			if err != io.EOF || fmt.Sprintf("%q", got) != fmt.Sprintf("%q", want) {
				t.Fatalf("%q: %q, %v, want %q", body, got, err, want)
			}
		}
	})
}
