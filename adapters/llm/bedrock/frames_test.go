package bedrock

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/berth-dev/berth/adapters/llm"
	"github.com/berth-dev/berth/adapters/llm/llmtest/bedrocktest/wire"
)

// all reads frames to the end and returns them a line each, with the error
// that ended them.
func all(r io.Reader) (lines []string, alive int, err error) {
	in := newFrames(r, func() { alive++ })
	for {
		f, err := in.Next()
		if err != nil {
			if _, again := in.Next(); !errors.Is(again, err) {
				return append(lines, "another error after the first"), alive, err
			}
			return lines, alive, err
		}
		lines = append(lines, fmt.Sprintf("%s/%s/%s/%s/%s", f.message, f.event, f.code, f.words, f.payload))
	}
}

// TestFrames is the table of what is a frame and what is none.
func TestFrames(t *testing.T) {
	text := wire.Text
	event := wire.Event("e", "{}")
	flip := func(s string, at int) string {
		b := []byte(s)
		b[at] ^= 0x40
		return string(b)
	}
	header := func(h string) string {
		return wire.Raw(uint32(16+len(h)), uint32(len(h)), h)
	}
	for _, c := range []struct {
		name string
		in   string
		want string
		err  error
	}{
		{"nothing", "", "", io.EOF},
		{"an event", event, "event/e///{}", io.EOF},
		{"two", event + wire.Exception("x", "no"), `event/e///{}|exception/x///{"message":"no"}`, io.EOF},
		{"an error", wire.Frame("", text(":message-type", "error"), text(":error-code", "C"), text(":error-message", "m")), "error//C/m/", io.EOF},
		{"no headers", wire.Frame("p"), "////p", io.EOF},
		{"no payload", wire.Frame("", text("a", "")), "////", io.EOF},
		{"all types", wire.Frame("p", wire.Value("t", 0, ""), wire.Value("f", 1, ""), wire.Value("b", 2, "1"),
			wire.Value("s", 3, "12"), wire.Value("i", 4, "1234"),
			wire.Value("l", 5, "12345678"), wire.Value("B", 6, "any"), text("S", "any"),
			wire.Value("w", 8, "12345678"), wire.Value("u", 9, "1234567812345678"), text(":message-type", "event")), "event////p", io.EOF},
		{"an unknown type", wire.Frame("", wire.Value("x", 10, "")), "", errHeaders},
		{"a name that is a number", wire.Frame("", wire.Value(":event-type", 4, "1234")), "", errHeaders},
		{"a name that is bytes", wire.Frame("", wire.Value(":event-type", 6, "e")), "", errHeaders},
		{"a name twice", wire.Frame("", text(":message-type", "event"), text(":message-type", "event")), "", errHeaders},
		{"an empty name twice", wire.Frame("", text(":message-type", ""), text(":message-type", "event")), "", errHeaders},
		{"event and exception", wire.Frame("", text(":event-type", "a"), text(":exception-type", "b")), "", errHeaders},
		{"a header without a name", header("\x00\x00"), "", errHeaders},
		{"a header cut in its name", header("\x05ab"), "", errHeaders},
		{"a header cut before its type", header("\x02ab"), "", errHeaders},
		{"a header cut in its length", header("\x01a\x07\x00"), "", errHeaders},
		{"a header cut in its value", header("\x01a\x07\x00\x05ab"), "", errHeaders},
		{"a header cut in its number", header("\x01a\x05\x00\x05ab"), "", errHeaders},
		{"a wrong length of all", flip(event, 3), "", errPrelude},
		{"a wrong length of headers", flip(event, 7), "", errPrelude},
		{"a wrong checksum of lengths", flip(event, 9), "", errPrelude},
		{"a wrong header", flip(event, 14), "", errChecks},
		{"a wrong payload", flip(event, len(event)-5), "", errChecks},
		{"a wrong checksum", flip(event, len(event)-1), "", errChecks},
		{"a wrong second frame", event + flip(event, 20), "event/e///{}", errChecks},
		{"shorter than a frame", wire.Raw(15, 0, ""), "", errLengths},
		{"no length", wire.Raw(0, 0, ""), "", errLengths},
		{"more headers than frame", wire.Raw(20, 5, "abcd"), "", errLengths},
		{"headers without end", wire.Raw(1<<20, 200<<10, ""), "", errLengths},
		{"headers of all there is", wire.Raw(20, 0xffffffff, "abcd"), "", errLengths},
		{"a frame without end", wire.Raw(0xffffffff, 0, ""), "", llm.ErrTooLong},
		{"a frame too long", wire.Raw(llm.MaxEvent+1, 0, ""), "", llm.ErrTooLong},
		{"text", "data: {\"a\":1}\n\n", "", errPrelude},
		{"rubbish behind", event + "\r\n", "event/e///{}", io.ErrUnexpectedEOF},
	} {
		t.Run(c.name, func(t *testing.T) {
			for way, r := range map[string]io.Reader{
				"at once":     strings.NewReader(c.in),
				"bytes":       iotest.OneByteReader(strings.NewReader(c.in)),
				"halves":      iotest.HalfReader(strings.NewReader(c.in)),
				"err at once": iotest.DataErrReader(strings.NewReader(c.in)),
			} {
				lines, _, err := all(r)
				if got := strings.Join(lines, "|"); got != c.want || !errors.Is(err, c.err) {
					t.Errorf("%s: %q, %v; want %q, %v", way, got, err, c.want, c.err)
				}
			}
		})
	}
}

// TestFrames_Cut: a stream that ends inside a frame tells so, wherever that
// is, and one that breaks off gives the reader's own error.
func TestFrames_Cut(t *testing.T) {
	whole := wire.Event("a", `{"x":1}`) + wire.Event("b", `{}`)
	first := len(wire.Event("a", `{"x":1}`))
	broken := errors.New("broken")
	for at := range whole {
		lines, _, err := all(strings.NewReader(whole[:at]))
		want := io.ErrUnexpectedEOF
		if at == 0 || at == first {
			want = io.EOF
		}
		if err != want || (len(lines) == 1) != (at >= first) { //nolint:errorlint // it is not wrapped
			t.Fatalf("cut at %d: %q, %v", at, lines, err)
		}
		_, _, err = all(io.MultiReader(strings.NewReader(whole[:at]), iotest.ErrReader(broken)))
		if !errors.Is(err, broken) {
			t.Fatalf("broken at %d: %v", at, err)
		}
	}
}

// TestFrames_Large: a frame as long as allowed is read, and one that only says
// that it is long takes no memory.
func TestFrames_Large(t *testing.T) {
	payload := strings.Repeat("x", llm.MaxEvent-16)
	f, err := newFrames(strings.NewReader(wire.Frame(payload)), nil).Next()
	if err != nil || string(f.payload) != payload {
		t.Fatalf("%d bytes, %v", len(f.payload), err)
	}
	in := newFrames(strings.NewReader(wire.Raw(llm.MaxEvent, 0, "abc")), nil)
	if _, err := in.Next(); !errors.Is(err, io.ErrUnexpectedEOF) || len(in.buf) > firstBuffer {
		t.Errorf("%v with %d bytes", err, len(in.buf))
	}
	if _, err := newFrames(stuck{}, nil).Next(); !errors.Is(err, io.ErrNoProgress) {
		t.Errorf("a reader that brings nothing: %v", err)
	}
}

// stuck is a reader that never brings anything.
type stuck struct{}

func (stuck) Read([]byte) (int, error) { return 0, nil }

// TestFrames_Alive: a whole frame is a sign of life, a part of one is none.
func TestFrames_Alive(t *testing.T) {
	three := strings.Repeat(wire.Event("a", "{}"), 3)
	if _, alive, _ := all(iotest.OneByteReader(strings.NewReader(three))); alive != 3 {
		t.Errorf("%d signs of life in three frames", alive)
	}
	if _, alive, _ := all(iotest.OneByteReader(strings.NewReader(three[:len(three)/3-1]))); alive != 0 {
		t.Errorf("%d signs of life in a part of a frame", alive)
	}
}

// TestFrames_First: the first byte can be looked at without being taken.
func TestFrames_First(t *testing.T) {
	in := newFrames(strings.NewReader("<html>"), nil)
	if c, err := in.First(); c != '<' || err != nil {
		t.Errorf("%q, %v", c, err)
	}
	if rest, err := in.Rest(4); string(rest) != "<htm" || err != nil {
		t.Errorf("%q, %v", rest, err)
	}
	if _, err := newFrames(strings.NewReader(""), nil).First(); err != io.EOF { //nolint:errorlint // it is not wrapped
		t.Errorf("%v", err)
	}
}

// mend puts right checksums over what may be a run of frames, so that a
// fuzzer's changes get behind them.
func mend(data []byte) []byte {
	data = bytes.Clone(data)
	for at := data; len(at) >= frameSize; {
		binary.BigEndian.PutUint32(at[8:], crc32.ChecksumIEEE(at[:8]))
		total := binary.BigEndian.Uint32(at)
		if total < frameSize || uint64(total) > uint64(len(at)) {
			break
		}
		binary.BigEndian.PutUint32(at[total-4:], crc32.ChecksumIEEE(at[:total-4]))
		at = at[total:]
	}
	return data
}

// FuzzFrames: no input makes the reader crash or hang, frames are the same
// however they were cut, and what is read is what was written.
func FuzzFrames(f *testing.F) {
	f.Add([]byte(wire.Event("a", `{"x":1}`)+wire.Exception("b", "no")), uint8(3), true)
	f.Add([]byte(wire.Frame("p", wire.Value("u", 9, "1234567812345678"))), uint8(1), true)
	f.Add([]byte(wire.Raw(0xffffffff, 12, "x")), uint8(0), false)
	f.Add([]byte(wire.Raw(40, 12, "x")), uint8(7), true)
	f.Fuzz(func(t *testing.T, data []byte, step uint8, mended bool) {
		if mended {
			data = mend(data)
		}
		lines, _, err := all(bytes.NewReader(data))
		small, _, smallErr := all(&stepReader{data: data, step: int(step)%17 + 1})
		if strings.Join(lines, "|") != strings.Join(small, "|") || err.Error() != smallErr.Error() {
			t.Fatalf("at once %q, %v; in steps %q, %v", lines, err, small, smallErr)
		}
		if len(lines)*frameSize > len(data) {
			t.Fatalf("%d frames in %d bytes", len(lines), len(data))
		}
	})
}

// stepReader brings a few bytes at a time.
type stepReader struct {
	data []byte
	step int
}

func (r *stepReader) Read(p []byte) (int, error) {
	if len(r.data) == 0 {
		return 0, io.EOF
	}
	n := copy(p, r.data[:min(r.step, len(r.data))])
	r.data = r.data[n:]
	return n, nil
}
