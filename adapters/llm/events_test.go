package llm

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

// readAll reads a body's events as "name=data" and the error that ended it.
func readAll(r io.Reader) ([]string, error) {
	var out []string
	events := NewEvents(r, nil)
	for {
		ev, err := events.Next()
		if err != nil {
			return out, err
		}
		out = append(out, string(ev.Name)+"="+string(ev.Data))
	}
}

func TestEvents(t *testing.T) {
	for _, c := range []struct {
		name string
		body string
		want []string
	}{
		{"empty", "", nil},
		{"one", "data: a\n\n", []string{"=a"}},
		{"no blank line at the end", "data: a\n\ndata: b\n", []string{"=a", "=b"}},
		{"no line end at the end", "data: a\n\ndata: b", []string{"=a", "=b"}},
		{"CRLF", "data: a\r\n\r\ndata: b\r\n\r\n", []string{"=a", "=b"}},
		{"CR", "data: a\r\rdata: b\r\r", []string{"=a", "=b"}},
		{"mixed", "data: a\r\n\ndata: b\n\r\ndata: c\r\r\n", []string{"=a", "=b", "=c"}},
		{"CRLF is one line end", "data: a\r\ndata: b\r\n\r\n", []string{"=a\nb"}},
		{"LF CR is two", "data: a\n\rdata: b\n\n", []string{"=a", "=b"}},
		{"byte order mark", "\uFEFFdata: a\n\n", []string{"=a"}},
		{"two byte order marks", "\uFEFF\uFEFFdata: a\n\n", nil},
		{"no space", "data:a\n\ndata:  b\n\n", []string{"=a", "= b"}},
		{"comments", ": hello\n\n:\n\ndata: a\n: in between\n\n", []string{"=a"}},
		{"several lines", "data: a\ndata:\ndata: b\n\n", []string{"=a\n\nb"}},
		{"event names", "event: ping\ndata: a\n\ndata: b\n\n", []string{"ping=a", "=b"}},
		{"a name without data", "event: ping\n\ndata: b\n\n", []string{"=b"}},
		{"no data", "data:\n\ndata\n\nid: 1\n\n", nil},
		{"unknown fields", "id: 1\nretry: 3\nfoo: bar\nfoo\ndata: a\n\n", []string{"=a"}},
		{"an error field", "error: {\"a\":1}\n\n", []string{`error={"a":1}`}},
		{"a bare object", "{\"error\":\"x\"}\n\n", []string{`={"error":"x"}`}},
		{"an indented object", "data: a\n\n{\n  \"error\": {\n    \"code\": 503\n  }\n}\n", []string{"=a", "={\n  \"error\": {\n    \"code\": 503\n  }\n}"}},
		{"an indented list", "[{\n  \"error\": {}\n}\n]\n\ndata: a\n\n  data: b\n\n", []string{"=[{\n  \"error\": {}\n}\n]", "=a"}},
		{"a colon in the data", "data: a: b\n\n", []string{"=a: b"}},
		{"NUL", "data: a\x00b\n\n", []string{"=a\x00b"}},
		{"not UTF-8", "data: \xff\xfe\n\n", []string{"=\xff\xfe"}},
		{"a long line", "data: " + strings.Repeat("x", 100_000) + "\n\n", []string{"=" + strings.Repeat("x", 100_000)}},
	} {
		t.Run(c.name, func(t *testing.T) {
			for way, r := range map[string]io.Reader{
				"whole":   strings.NewReader(c.body),
				"bytes":   iotest.OneByteReader(strings.NewReader(c.body)),
				"with it": iotest.DataErrReader(strings.NewReader(c.body)),
			} {
				got, err := readAll(r)
				if err != io.EOF || fmt.Sprint(got) != fmt.Sprint(c.want) {
					t.Errorf("%s: %q, %v, want %q", way, got, err, c.want)
				}
			}
		})
	}
}

// TestEvents_AtOnce: an event is given out with its last byte, and a line
// ended by CR does not wait for a LF that may never come.
func TestEvents_AtOnce(t *testing.T) {
	for _, body := range []string{"data: a\n\n", "data: a\r\n\r", "data: a\r\r"} {
		r, w := io.Pipe()
		got := make(chan string)
		go func() {
			ev, err := NewEvents(r, nil).Next()
			got <- fmt.Sprint(string(ev.Data), err)
		}()
		if _, err := io.WriteString(w, body); err != nil {
			t.Fatal(err)
		}
		if s := <-got; s != "a<nil>" {
			t.Errorf("%q: %s", body, s)
		}
	}
}

// TestEvents_Broken: what came before a break is given out, a half line is
// not.
func TestEvents_Broken(t *testing.T) {
	broken := errors.New("broken")
	body := io.MultiReader(strings.NewReader("data: a\n\ndata: b\ndata: c"), iotest.ErrReader(broken))
	got, err := readAll(body)
	if !errors.Is(err, broken) || fmt.Sprint(got) != "[=a]" {
		t.Errorf("%q, %v", got, err)
	}
}

func TestEvents_Limits(t *testing.T) {
	for name, line := range map[string]string{"one line": "x", "many lines": "x\ndata: "} {
		t.Run(name, func(t *testing.T) {
			body := io.MultiReader(strings.NewReader("data: a\n\ndata: "), &endless{s: strings.Repeat(line, 100)})
			events := NewEvents(body, nil)
			events.max = 1 << 20
			if ev, err := events.Next(); err != nil || string(ev.Data) != "a" {
				t.Fatalf("%s, %v", ev.Data, err)
			}
			if _, err := events.Next(); !errors.Is(err, ErrTooLong) {
				t.Errorf("error %v", err)
			}
			if cap(events.buf)+cap(events.data) > 8<<20 {
				t.Errorf("%d bytes were held", cap(events.buf)+cap(events.data))
			}
		})
	}
}

type endless struct{ s string }

func (e *endless) Read(p []byte) (int, error) { return copy(p, e.s), nil }

// TestEvents_Alive: only whole lines are signs of life.
func TestEvents_Alive(t *testing.T) {
	alive := 0
	body := iotest.OneByteReader(strings.NewReader("data: a\n: c\n\ndata: no end of this line"))
	events := NewEvents(body, func() { alive++ })
	for {
		if _, err := events.Next(); err != nil {
			break
		}
	}
	if alive != 3 {
		t.Errorf("%d signs of life, want one for each of three lines", alive)
	}
}

// FuzzSSE: the events of a body are the same however the network cut it.
func FuzzSSE(f *testing.F) {
	f.Add("\uFEFFdata: a\r\n\r\nevent: x\rdata:b\rdata: c\r\r: hm\n{\"error\":1}\nerror: 5\n\ndata", uint8(3))
	f.Add("data: [DONE]", uint8(1))
	f.Add("data: a\r\n\r\n{\r\n  \"error\": {\r\n }\r\n}\r\n]\r\n [{", uint8(2))
	f.Fuzz(func(t *testing.T, body string, step uint8) {
		want, err := readAll(strings.NewReader(body))
		if err != io.EOF {
			t.Fatalf("%q: %v", body, err)
		}
		for _, r := range []io.Reader{
			iotest.OneByteReader(strings.NewReader(body)),
			iotest.HalfReader(strings.NewReader(body)),
			&stepReader{r: strings.NewReader(body), n: int(step)%17 + 1},
		} {
			got, err := readAll(r)
			if err != io.EOF || fmt.Sprintf("%q", got) != fmt.Sprintf("%q", want) {
				t.Fatalf("%q: %q, %v, want %q", body, got, err, want)
			}
		}
	})
}

type stepReader struct {
	r io.Reader
	n int
}

func (s *stepReader) Read(p []byte) (int, error) { return s.r.Read(p[:min(s.n, len(p))]) }

// BenchmarkEvents reads 5,000 events of a usual size.
func BenchmarkEvents(b *testing.B) {
	body := strings.Repeat("data: {\"id\":\"chatcmpl-1\",\"object\":\"chat.completion.chunk\",\"created\":1700000000,\"model\":\"m\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"twenty bytes of text\"},\"finish_reason\":null}]}\n\n", 5000)
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		events := NewEvents(strings.NewReader(body), nil)
		n := 0
		for {
			if _, err := events.Next(); err != nil {
				break
			}
			n++
		}
		if n != 5000 {
			b.Fatalf("%d events", n)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/5000, "ns/event")
}
