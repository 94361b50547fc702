package jsonrpc

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
)

// readAll reads frames to the end; frames over the limit show as "<limit>".
func readAll(t *testing.T, f Frames) []string {
	t.Helper()
	var got []string
	for {
		frame, err := f.Read()
		var long *TooLongError
		switch {
		case errors.As(err, &long):
			got = append(got, fmt.Sprintf("<%d>", long.Limit))
		case err == io.EOF:
			return got
		case err != nil:
			t.Fatal(err)
		default:
			got = append(got, string(frame))
		}
	}
}

func TestStdio_Read(t *testing.T) {
	long := strings.Repeat("x", 200)
	for _, tt := range []struct {
		name, in string
		want     []string
	}{
		{"nothing", "", nil},
		{"lines", "{}\n[1]\n", []string{"{}", "[1]"}},
		{"carriage returns", "{}\r\n[1]\r\n", []string{"{}", "[1]"}},
		{"blank lines", "\n\r\n  \t\n{}\n\n", []string{"{}"}},
		{"byte order mark first", "\xEF\xBB\xBF{}\n{}\n", []string{"{}", "{}"}},
		{"byte order mark later", "{}\n\xEF\xBB\xBF{}\n", []string{"{}", "\xEF\xBB\xBF{}"}},
		{"byte order mark and nothing", "\xEF\xBB\xBF\n{}\n", []string{"{}"}},
		{"other white space is the message's own", " {} \n", []string{" {} "}},
		{"last line without newline", "{}\n{\"a\":1}", []string{"{}", `{"a":1}`}},
		{"last line cut short", "{}\n{\"a\":1", []string{"{}"}},
		{"last line blank", "{}\n ", []string{"{}"}},
		{"over the limit", long + "\n{}\n", []string{"<100>", "{}"}},
		{"over the limit, then over it again", long + "\n" + long + "\n{}\n", []string{"<100>", "<100>", "{}"}},
		{"over the limit at the end", "{}\n" + long, []string{"{}", "<100>"}},
		{"exactly the limit", long[:100] + "\n{}\n", []string{long[:100], "{}"}},
		{"a byte over the limit", long[:101] + "\n{}\n", []string{"<100>", "{}"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for how, r := range map[string]io.Reader{
				"whole":        strings.NewReader(tt.in),
				"byte by byte": iotest.OneByteReader(strings.NewReader(tt.in)),
				"end with it":  iotest.DataErrReader(strings.NewReader(tt.in)),
			} {
				if d := cmp.Diff(tt.want, readAll(t, NewStdio(r, io.Discard, 100))); d != "" {
					t.Errorf("%s: %s", how, d)
				}
			}
		})
	}
}

// TestStdio_Sizes goes around the sizes of the buffers inside.
func TestStdio_Sizes(t *testing.T) {
	for _, n := range []int{readBuffer - 2, readBuffer - 1, readBuffer, readBuffer + 1, 2*readBuffer - 1, 2 * readBuffer,
		spillPart, spillPart + readBuffer, 1 << 20, 8 << 20} {
		line := `"` + strings.Repeat("x", n-2) + `"`
		in := line + "\n" + line + "\r\n[1]\n" + line
		if d := cmp.Diff([]string{line, line, "[1]", line}, readAll(t, NewStdio(strings.NewReader(in), nil, 8<<20+1))); d != "" {
			t.Errorf("%d bytes: differs", n)
		}
		if d := cmp.Diff([]string{fmt.Sprintf("<%d>", n-1), fmt.Sprintf("<%d>", n-1), "[1]", fmt.Sprintf("<%d>", n-1)},
			readAll(t, NewStdio(strings.NewReader(in), nil, n-1))); d != "" {
			t.Errorf("%d bytes with a smaller limit: %s", n, d)
		}
	}
}

func TestStdio_FramesAreTheCallers(t *testing.T) {
	f := NewStdio(strings.NewReader("[1]\n[2]\n"), nil, 0)
	first, _ := f.Read()
	second, _ := f.Read()
	if string(first) != "[1]" || string(second) != "[2]" {
		t.Errorf("got %s and %s", first, second)
	}
}

func TestStdio_ReadErrorDropsThePart(t *testing.T) {
	broken := errors.New("broken")
	f := NewStdio(io.MultiReader(strings.NewReader("{}\n{}"), iotest.ErrReader(broken)), nil, 0)
	if frame, err := f.Read(); err != nil || string(frame) != "{}" {
		t.Fatalf("got %s, %v", frame, err)
	}
	if frame, err := f.Read(); !errors.Is(err, broken) || frame != nil {
		t.Errorf("got %s, %v; want the reader's error and no frame", frame, err)
	}
}

// TestStdio_OverLongLineIsNotKept reads a line far over the limit and looks at
// what was allocated on the way.
func TestStdio_OverLongLineIsNotKept(t *testing.T) {
	const limit = 1 << 20
	endless := io.MultiReader(io.LimitReader(repeat('x'), 256<<20), strings.NewReader("\n{}\n"))
	f := NewStdio(endless, nil, limit)
	got := testing.Benchmark(func(b *testing.B) {
		b.ReportAllocs()
		for range b.N {
			if b.N > 1 {
				b.Skip("once is enough")
			}
			if d := cmp.Diff([]string{fmt.Sprintf("<%d>", limit), "{}"}, readAll(t, f)); d != "" {
				t.Error(d)
			}
		}
	})
	if got.MemBytes > 4*limit {
		t.Errorf("a line over the limit of %d bytes took %d bytes of memory", limit, got.MemBytes)
	}
}

type repeat byte

func (r repeat) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = byte(r)
	}
	return len(p), nil
}

// writes records every write.
type writes struct{ got []string }

func (w *writes) Write(p []byte) (int, error) {
	w.got = append(w.got, string(p))
	return len(p), nil
}

func TestStdio_WriteIsOneWrite(t *testing.T) {
	w := &writes{}
	f := NewStdio(strings.NewReader(""), w, 0)
	for _, frame := range []string{`{}`, "{\n\t\"a\": \"\\n\"\n}", `[1]`} {
		if err := f.Write([]byte(frame)); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.Write([]byte("{\n")); err == nil {
		t.Error("half a frame over two lines was written")
	}
	if d := cmp.Diff([]string{"{}\n", "{\"a\":\"\\n\"}\n", "[1]\n"}, w.got); d != "" {
		t.Error(d)
	}
}

func TestStdio_CloseClosesBothEndsOnce(t *testing.T) {
	r, w := &closer{}, &closer{}
	f := NewStdio(r, w, 0)
	for range 2 {
		if err := f.CloseWrite(); err != nil {
			t.Error(err)
		}
	}
	if r.n != 0 || w.n != 1 {
		t.Errorf("after CloseWrite r was closed %d times, w %d times", r.n, w.n)
	}
	for range 2 {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}
	if r.n != 1 || w.n != 1 {
		t.Errorf("r was closed %d times, w %d times", r.n, w.n)
	}
}

type closer struct {
	bytes.Buffer
	n int
}

func (c *closer) Close() error { c.n++; return nil }

// FuzzFrames reads arbitrary bytes in arbitrary pieces and compares with the
// plain way of cutting lines.
func FuzzFrames(f *testing.F) {
	f.Add([]byte("{}\n[1]\r\n\n\xEF\xBB\xBF{}\n{\"a\":1}"), uint64(1), uint16(8))
	f.Add([]byte("\xEF\xBB\xBF{}\nxxxxxxxxxxxxxxxxxxxxx\n{"), uint64(2), uint16(4))
	f.Fuzz(func(t *testing.T, in []byte, seed uint64, limit uint16) {
		max := int(limit) + 1
		rng := rand.New(rand.NewPCG(seed, 1))
		got := readAll(t, NewStdio(&pieces{in: in, rng: rng}, nil, max))
		if d := cmp.Diff(wantFrames(in, max), got); d != "" {
			t.Fatal(d)
		}
		// What was read and is written comes back the same.
		var out bytes.Buffer
		w := NewStdio(strings.NewReader(""), &out, max)
		var want []string
		for _, frame := range got {
			if strings.HasPrefix(frame, "<") || strings.HasPrefix(frame, "\xEF\xBB\xBF") || strings.HasSuffix(frame, "\r") {
				continue
			}
			want = append(want, frame)
			if err := w.Write([]byte(frame)); err != nil {
				t.Fatal(err)
			}
		}
		if d := cmp.Diff(want, readAll(t, NewStdio(&out, nil, max))); d != "" {
			t.Fatal(d)
		}
	})
}

type pieces struct {
	in  []byte
	rng *rand.Rand
}

func (p *pieces) Read(b []byte) (int, error) {
	if len(p.in) == 0 {
		return 0, io.EOF
	}
	n := copy(b[:min(len(b), 1+p.rng.IntN(20))], p.in)
	p.in = p.in[n:]
	return n, nil
}

func wantFrames(in []byte, limit int) []string {
	var want []string
	lines := bytes.Split(in, []byte("\n"))
	for i, line := range lines {
		last := i == len(lines)-1
		if len(line) > limit {
			want = append(want, fmt.Sprintf("<%d>", limit))
			continue
		}
		if i == 0 {
			line = bytes.TrimPrefix(line, []byte("\xEF\xBB\xBF"))
		}
		line = bytes.TrimSuffix(line, []byte("\r"))
		if len(bytes.Trim(line, " \t\r")) == 0 || last && !Valid(line) {
			continue
		}
		want = append(want, string(line))
	}
	return want
}
