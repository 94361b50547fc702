package framestest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"

	"github.com/berth-dev/berth/adapters/jsonrpc"
	"github.com/berth-dev/berth/core/domain"
)

// sized returns a JSON text of n bytes.
func sized(n int) []byte {
	if n == 1 {
		return []byte("7")
	}
	return []byte(`"` + strings.Repeat("x", n-2) + `"`)
}

func numbered(n int) [][]byte {
	frames := make([][]byte, n)
	for i := range frames {
		frames[i] = fmt.Appendf(nil, `{"n":%d,"pad":%q}`, i, strings.Repeat("p", i%97))
	}
	return frames
}

func checkOrder(t TB, a, b jsonrpc.Frames) {
	there, back := numbered(500), numbered(300)
	wroteA, wroteB := writeAll(a, there), writeAll(b, back)
	wantFrames(t, b, there)
	wantFrames(t, a, back)
	for _, wrote := range []<-chan error{wroteA, wroteB} {
		if err := <-wrote; err != nil {
			t.Errorf("Write: %v", err)
		}
	}
}

func checkSizes(t TB, a, b jsonrpc.Frames) {
	var frames [][]byte
	for _, n := range []int{1, 2, 3, 124, 125, 126, 127, 4095, 4096, 4097, 65534, 65535, 65536, 65537, 65538, Limit - 1, Limit, 2} {
		frames = append(frames, sized(n))
	}
	wrote := writeAll(a, frames)
	wantFrames(t, b, frames)
	if err := <-wrote; err != nil {
		t.Errorf("Write: %v", err)
	}
}

func checkContent(t TB, a, b jsonrpc.Frames) {
	frames := [][]byte{
		[]byte(`{}`), []byte(`[]`), []byte(`null`), []byte(`{ "a" : [ 1 , 2 ] }`),
		[]byte(`"\n\r\t\u0000 \\ \" \ud83d\ude00"`), []byte("\"日本語 ä \u2028\u2029\uFEFF \x7f 😀\""),
	}
	wrote := writeAll(a, frames)
	wantFrames(t, b, frames)
	if err := <-wrote; err != nil {
		t.Errorf("Write: %v", err)
	}
}

func checkOverLimit(t TB, a, b jsonrpc.Frames) {
	wrote := writeAll(a, [][]byte{[]byte(`{"before":1}`), sized(Limit + 1), []byte(`{"after":1}`)})
	wantFrames(t, b, [][]byte{[]byte(`{"before":1}`)})
	frame, err := read(t, b)
	if err == nil {
		t.Fatalf("a frame of %d bytes passed a limit of %d: %s", len(frame), Limit, excerpt(frame))
	}
	var long *jsonrpc.TooLongError
	if !errors.As(err, &long) {
		step(t, "Write to an end that gave up", func() { // must not be stuck for ever
			_ = b.Close()
			<-wrote
		})
		return
	}
	if long.Limit != Limit {
		t.Errorf("the error names the limit %d, want %d", long.Limit, Limit)
	}
	wantFrames(t, b, [][]byte{[]byte(`{"after":1}`)})
	if err := <-wrote; err != nil {
		t.Errorf("Write: %v", err)
	}
}

func checkOwnership(t TB, a, b jsonrpc.Frames) {
	frames := numbered(50)
	wrote := make(chan error, 1)
	go func() {
		buf := make([]byte, 0, 256)
		for _, frame := range frames {
			buf = append(buf[:0], frame...)
			if err := a.Write(buf); err != nil {
				wrote <- err
				return
			}
			for i := range buf {
				buf[i] = '#'
			}
		}
		wrote <- nil
	}()
	var got [][]byte
	for range frames {
		frame, err := read(t, b)
		if err != nil {
			t.Fatalf("Read: %v", err)
		}
		got = append(got, frame)
	}
	if err := <-wrote; err != nil {
		t.Errorf("Write: %v", err)
	}
	for i, frame := range got {
		if string(frame) != string(frames[i]) {
			t.Errorf("frame %d is %s by now, want %s", i, excerpt(frame), excerpt(frames[i]))
		}
	}
}

// tally counts the numbered notifications of several producers.
type tally struct {
	want int
	over chan struct{} // closed when all have come, or something is wrong

	mu   sync.Mutex
	next map[int]int // by producer
	got  int
	bad  string
}

// receive is the notification's handler.
func (y *tally) receive(_ context.Context, params json.RawMessage) (jsonrpc.Task, error) {
	y.mu.Lock()
	defer y.mu.Unlock()
	var p struct{ P, I int }
	if err := json.Unmarshal(params, &p); err != nil || y.next[p.P] != p.I {
		y.fail(fmt.Sprintf("got %s, %v; producer %d should be at %d", excerpt(params), err, p.P, y.next[p.P]))
	}
	y.next[p.P]++
	if y.got++; y.got == y.want && y.bad == "" {
		close(y.over)
	}
	return nil, nil
}

// Observe is told about frames that are no messages.
func (y *tally) Observe(_ context.Context, e domain.Event) {
	y.mu.Lock()
	defer y.mu.Unlock()
	y.fail(fmt.Sprintf("%v", e))
}

func (y *tally) fail(what string) {
	if y.bad == "" && y.got < y.want {
		y.bad = what
		close(y.over)
	}
}

// checkWholeWrites uses two Conns, for Write belongs to one goroutine: what
// must hold is that a transport under a Conn serves many producers.
func checkWholeWrites(t TB, a, b jsonrpc.Frames) {
	const producers, each = 8, 100
	y := &tally{want: producers * each, over: make(chan struct{}), next: map[int]int{}}
	sender := jsonrpc.NewConn(a, jsonrpc.Options{Client: true, QueueFrames: 16})
	receiver := jsonrpc.NewConn(b, jsonrpc.Options{Client: true, Observer: y})
	ctx, cancel := context.WithCancel(t.Context())
	var ends, writers sync.WaitGroup
	ends.Go(func() { _ = sender.Serve(ctx, jsonrpc.Methods{}) })
	ends.Go(func() { _ = receiver.Serve(ctx, jsonrpc.Methods{"n": {Notify: y.receive}}) })
	for p := range producers {
		writers.Go(func() {
			for i := range each {
				if err := sender.Notify(ctx, "n", map[string]any{"P": p, "I": i, "pad": strings.Repeat("z", i*p)}); err != nil {
					return // y misses it
				}
			}
		})
	}
	step(t, "the exchange", func() {
		<-y.over
		writers.Wait()
	})
	cancel()
	step(t, "the end of both Conns", ends.Wait)
	if y.bad != "" {
		t.Errorf("%s", y.bad)
	}
}

func checkLateReader(t TB, a, b jsonrpc.Frames) {
	frames := make([][]byte, 64)
	for i := range frames {
		frames[i] = sized(128<<10 + i)
	}
	started := make(chan struct{})
	wrote := make(chan error, 1)
	go func() {
		if err := a.Write([]byte(`"first"`)); err != nil {
			wrote <- err
			return
		}
		close(started)
		wrote <- <-writeAll(a, frames)
	}()
	wantFrames(t, b, [][]byte{[]byte(`"first"`)})
	<-started
	wantFrames(t, b, frames)
	if err := <-wrote; err != nil {
		t.Errorf("Write: %v", err)
	}
}

// finish ends the sending direction as orderly as the transport can.
func finish(f jsonrpc.Frames) error {
	if c, ok := f.(jsonrpc.CloseWriter); ok {
		return c.CloseWrite()
	}
	return f.Close()
}

func checkEnd(t TB, a, b jsonrpc.Frames) {
	frames := numbered(100)
	ended := make(chan error, 1)
	go func() {
		if err := <-writeAll(a, frames); err != nil {
			ended <- err
			return
		}
		ended <- finish(a)
	}()
	wantFrames(t, b, frames)
	if err := <-ended; err != nil {
		t.Errorf("ending: %v", err)
	}
	for range 2 {
		if frame, err := read(t, b); !errors.Is(err, io.EOF) {
			t.Fatalf("behind the last frame: %s, %v; want io.EOF", excerpt(frame), err)
		}
	}
}

func checkHalfClose(t TB, a, b jsonrpc.Frames) {
	c, ok := a.(jsonrpc.CloseWriter)
	if !ok {
		t.Skipf("the transport cannot end one direction alone")
	}
	request, answers := [][]byte{[]byte(`{"ask":1}`)}, numbered(200)
	wrote := writeAll(a, request)
	wantFrames(t, b, request)
	if err := <-wrote; err != nil {
		t.Errorf("Write: %v", err)
	}
	if err := c.CloseWrite(); err != nil {
		t.Errorf("CloseWrite: %v", err)
	}
	if frame, err := read(t, b); !errors.Is(err, io.EOF) {
		t.Fatalf("after CloseWrite: %s, %v; want io.EOF", excerpt(frame), err)
	}
	wrote = writeAll(b, answers)
	wantFrames(t, a, answers)
	if err := <-wrote; err != nil {
		t.Errorf("Write to an end that has stopped sending: %v", err)
	}
}

func checkCloseUnblocksRead(t TB, a, b jsonrpc.Frames) {
	var readA, readB error
	both := make(chan struct{}, 2)
	reading := make(chan struct{}, 2)
	for f, err := range map[jsonrpc.Frames]*error{a: &readA, b: &readB} {
		go func() {
			reading <- struct{}{}
			_, *err = f.Read()
			both <- struct{}{}
		}()
	}
	<-reading
	<-reading
	step(t, "Close", func() { _ = a.Close() })
	step(t, "Read on a closed connection", func() {
		<-both
		<-both
	})
	if readA == nil || readB == nil {
		t.Errorf("Read on the closed end: %v, on the other: %v; want errors", readA, readB)
	}
}

func checkCloseUnblocksWrite(t TB, a, b jsonrpc.Frames) {
	// Nobody reads, so these two are stuck sooner or later.
	endless := func(f jsonrpc.Frames) <-chan error {
		done := make(chan error, 1)
		frame := sized(Limit)
		go func() {
			for {
				if err := f.Write(frame); err != nil {
					done <- err
					return
				}
			}
		}()
		return done
	}
	wroteA, wroteB := endless(a), endless(b)
	step(t, "Close", func() { _ = a.Close() })
	step(t, "Write on the closed end", func() { <-wroteA })
	step(t, "Write to the closed end", func() { <-wroteB })
}

func checkCloseAgain(t TB, a, b jsonrpc.Frames) {
	step(t, "Close", func() { _ = a.Close() })
	step(t, "a second Close", func() { _ = a.Close() })
	step(t, "Write", func() {
		if err := a.Write([]byte(`{}`)); err == nil {
			t.Errorf("a closed end took a frame")
		}
	})
	step(t, "Close of the other end", func() { _ = b.Close() })
}
