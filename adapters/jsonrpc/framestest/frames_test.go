package framestest_test

import (
	"bytes"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/berth-dev/berth/adapters/jsonrpc"
	"github.com/berth-dev/berth/adapters/jsonrpc/framestest"
	"github.com/berth-dev/berth/core/ports/porttest"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func memory(_ framestest.TB, maxBytes int) (a, b jsonrpc.Frames) {
	aR, bW := io.Pipe()
	bR, aW := io.Pipe()
	return jsonrpc.NewStdio(aR, aW, maxBytes), jsonrpc.NewStdio(bR, bW, maxBytes)
}

func system(t framestest.TB, maxBytes int) (a, b jsonrpc.Frames) {
	aR, bW, err := os.Pipe()
	if err != nil {
		t.Fatalf("pipe: %v", err)
	}
	bR, aW, err := os.Pipe()
	if err != nil {
		t.Fatalf("pipe: %v", err)
	}
	return jsonrpc.NewStdio(aR, aW, maxBytes), jsonrpc.NewStdio(bR, bW, maxBytes)
}

func TestStdio_PipesInMemory(t *testing.T) { framestest.Run(t, memory) }

func TestStdio_PipesOfTheSystem(t *testing.T) { framestest.Run(t, system) }

// broken wraps the first end of a good connection.
type broken struct {
	jsonrpc.Frames
	write func(jsonrpc.Frames, []byte) error
	read  func(jsonrpc.Frames) ([]byte, error)
}

func (b *broken) Write(frame []byte) error {
	if b.write != nil {
		return b.write(b.Frames, frame)
	}
	return b.Frames.Write(frame)
}

func (b *broken) Read() ([]byte, error) {
	if b.read != nil {
		return b.read(b.Frames)
	}
	return b.Frames.Read()
}

// mutants are transports that are wrong in one way each, and the case that is
// meant to find it.
func mutants() map[string]struct {
	wantCase string
	a, b     broken
} {
	var held, last []byte
	var same [1 << 20]byte
	return map[string]struct {
		wantCase string
		a, b     broken
	}{
		"reorders": {wantCase: "order", a: broken{write: func(f jsonrpc.Frames, frame []byte) error {
			if held == nil {
				held = bytes.Clone(frame)
				return nil
			}
			both := append(append(bytes.Clone(frame), '\n'), append(held, '\n')...)
			held = nil
			return f.(jsonrpc.BatchWriter).WriteBatch(both)
		}}},
		"changes content": {wantCase: "content", a: broken{write: func(f jsonrpc.Frames, frame []byte) error {
			return f.Write(bytes.ReplaceAll(frame, []byte(" "), nil))
		}}},
		"cuts long frames": {wantCase: "sizes", b: broken{read: func(f jsonrpc.Frames) ([]byte, error) {
			frame, err := f.Read()
			return frame[:min(len(frame), 65536)], err
		}}},
		"has no limit": {wantCase: "over-limit", b: broken{read: func(f jsonrpc.Frames) ([]byte, error) {
			frame, err := f.Read()
			if err != nil && strings.Contains(err.Error(), "longer") {
				return []byte(`"passed"`), nil
			}
			return frame, err
		}}},
		"uses its buffer again": {wantCase: "ownership", b: broken{read: func(f jsonrpc.Frames) ([]byte, error) {
			frame, err := f.Read()
			return same[:copy(same[:], frame)], err
		}}},
		"loses a frame": {wantCase: "late-reader", a: broken{write: func(f jsonrpc.Frames, frame []byte) error {
			if len(frame) == 128<<10+5 {
				return nil
			}
			return f.Write(frame)
		}}},
		"tears frames": {wantCase: "whole-writes", a: broken{write: func(f jsonrpc.Frames, frame []byte) error {
			if err := f.Write(frame[:len(frame)/2]); err != nil {
				return err
			}
			return f.Write(frame[len(frame)/2:])
		}}},
		"ends without the last frame": {wantCase: "end", a: broken{write: func(f jsonrpc.Frames, frame []byte) error {
			before := last
			last = bytes.Clone(frame)
			if before == nil {
				return nil
			}
			return f.Write(before)
		}}},
		"ends with another error": {wantCase: "end", b: broken{read: func(f jsonrpc.Frames) ([]byte, error) {
			frame, err := f.Read()
			if err == io.EOF {
				err = io.ErrUnexpectedEOF
			}
			return frame, err
		}}},
		"takes frames after Close": {wantCase: "close-again", a: broken{write: func(f jsonrpc.Frames, frame []byte) error {
			_ = f.Write(frame)
			return nil
		}}},
	}
}

// TestSuiteCanFail runs the suite over the mutants.
func TestSuiteCanFail(t *testing.T) {
	for name := range mutants() {
		t.Run(name, func(t *testing.T) {
			mutant := mutants()[name]
			for _, c := range framestest.Cases() {
				if c.Name != mutant.wantCase {
					continue
				}
				failures := porttest.Record(t, func(tb porttest.TB) {
					c.Check(tb, func(tb framestest.TB, maxBytes int) (jsonrpc.Frames, jsonrpc.Frames) {
						mutant.a.Frames, mutant.b.Frames = memory(tb, maxBytes)
						return &mutant.a, &mutant.b
					})
				})
				if len(failures) == 0 {
					t.Errorf("the case %s passed", c.Name)
				}
			}
		})
	}
}
