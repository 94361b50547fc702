package jsonrpc

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/berth-dev/berth/core/domain"
	"github.com/google/go-cmp/cmp"
)

// slowFrames is a transport whose writes wait for the test.
type slowFrames struct {
	Frames
	writing chan string // what a write brings
	let     chan error  // what it returns
}

func newSlow() *slowFrames {
	return &slowFrames{writing: make(chan string, 100), let: make(chan error)}
}

func (f *slowFrames) WriteBatch(lines []byte) error {
	f.writing <- string(lines)
	return <-f.let
}

func TestWriter_GathersWhatCameDuringAWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newSlow()
		w := newWriter(f, 100, 100)
		go w.run()
		for i := range 5 {
			if err := w.put(t.Context(), fmt.Append(nil, i)); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		}
		w.close()
		f.let <- nil
		f.let <- nil
		<-w.written
		if got := []string{<-f.writing, <-f.writing}; !cmp.Equal(got, []string{"0\n", "1\n2\n3\n4\n"}) {
			t.Errorf("wrote %q", got)
		}
		if err := w.put(t.Context(), []byte("late")); !errors.Is(err, errClosed) {
			t.Errorf("after close: %v", err)
		}
	})
}

func TestWriter_FullQueueServesProducersInTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newSlow()
		w := newWriter(f, 1, 100) // room for one frame
		go w.run()
		var wg sync.WaitGroup
		put := func(frame string) {
			wg.Go(func() {
				if err := w.put(t.Context(), []byte(frame)); err != nil {
					t.Error(err)
				}
			})
			synctest.Wait()
		}
		put("in the transport")
		put("in the queue")
		put("a big one " + strings.Repeat("x", 1000))
		put("second")
		if w.try([]byte("pushes in")) {
			t.Error("a frame passed those that wait")
		}
		put("third")
		for range 5 {
			f.let <- nil
			synctest.Wait()
		}
		wg.Wait()
		w.close()
		<-w.written
		close(f.writing)
		var got []string
		for s := range f.writing {
			got = append(got, s[:min(len(s)-1, 9)])
		}
		if d := cmp.Diff([]string{"in the tr", "in the qu", "a big one", "second", "third"}, got); d != "" {
			t.Error(d)
		}
	})
}

func TestWriter_GivingUpAPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newSlow()
		w := newWriter(f, 1, 100)
		go w.run()
		_ = w.put(t.Context(), []byte("0"))
		synctest.Wait()
		_ = w.put(t.Context(), []byte("1"))
		ctx, cancel := context.WithCancelCause(t.Context())
		given := make(chan error)
		go func() { given <- w.put(ctx, []byte("given up")) }()
		synctest.Wait()
		behind := make(chan error)
		go func() { behind <- w.put(t.Context(), []byte("2")) }()
		synctest.Wait()
		cancel(domain.SessionClosed)
		if err := <-given; !errors.Is(err, domain.SessionClosed) {
			t.Errorf("got %v, want the cause", err)
		}
		f.let <- nil
		if err := <-behind; err != nil {
			t.Error(err)
		}
		w.close()
		f.let <- nil
		f.let <- nil
		<-w.written
		if err := w.put(ctx, nil); !errors.Is(err, domain.SessionClosed) {
			t.Errorf("a context that ended before: %v", err)
		}
	})
}

// TestWriter_TurnsAreNotLost looks at the moment between a producer's being
// let in and its appending, which no schedule can be made to hit.
func TestWriter_TurnsAreNotLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWriter(newSlow(), 100, 100)
		mine, behind := make(chan struct{}, 1), make(chan struct{}, 1)
		w.line = []chan struct{}{mine, behind}
		w.next()
		if w.try([]byte("pushes in")) {
			t.Error("a frame passed one that was let in")
		}
		w.next()
		if len(w.line) != 1 || len(mine) != 1 || len(behind) != 0 {
			t.Error("two were let in at once")
		}
		w.leave(mine) // its context ended just then
		if len(w.line) != 0 || len(behind) != 1 {
			t.Error("the turn was lost")
		}
		if w.try([]byte("pushes in")) {
			t.Error("a frame passed one that was let in")
		}
		w.leave(behind)
		if !w.try([]byte("free")) {
			t.Error("the queue stays closed when nobody waits")
		}
	})
}

func TestWriter_DeadTransportFreesEverybody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newSlow()
		w := newWriter(f, 1, 100)
		go w.run()
		_ = w.put(t.Context(), []byte("0"))
		synctest.Wait()
		_ = w.put(t.Context(), []byte("1"))
		waiting := make(chan error)
		for range 3 {
			go func() { waiting <- w.put(context.Background(), []byte("2")) }()
		}
		synctest.Wait()
		broken := errors.New("broken pipe")
		f.let <- broken
		for range 3 {
			if err := <-waiting; !errors.Is(err, broken) || !errors.Is(err, domain.Disconnected) {
				t.Errorf("got %v, want the reason and Disconnected", err)
			}
		}
		<-w.written
		if w.try([]byte("late")) {
			t.Error("a dead queue took a frame")
		}
	})
}

func TestWriter_FramesOnOneLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newSlow()
		w := newWriter(f, 100, 100)
		if err := w.put(t.Context(), []byte("{\n\"a\": 1}")); err != nil {
			t.Error(err)
		}
		if err := w.put(t.Context(), []byte("{\n")); err == nil {
			t.Error("half a frame with a newline was taken")
		}
		if w.try([]byte("{\n")) {
			t.Error("half a frame with a newline was taken")
		}
		w.close()
		go w.run()
		if got := <-f.writing; got != "{\"a\":1}\n" {
			t.Errorf("wrote %q", got)
		}
		f.let <- nil
		<-w.written
	})
}

// oneByOne is a transport with messages of its own, as a WebSocket.
type oneByOne struct {
	Frames
	got []string
}

func (f *oneByOne) Write(frame []byte) error {
	f.got = append(f.got, string(frame))
	return nil
}

func TestWriter_WithoutBatches(t *testing.T) {
	f := &oneByOne{}
	w := newWriter(f, 1<<20, 100)
	for i := range 3 {
		_ = w.put(t.Context(), fmt.Append(nil, "frame ", i))
	}
	w.close()
	w.run()
	if d := cmp.Diff([]string{"frame 0", "frame 1", "frame 2"}, f.got); d != "" {
		t.Error(d)
	}
}

// TestWriter_ManyProducers checks, for the race detector and for order, that
// each producer's frames arrive whole and in its order, whatever is cancelled.
func TestWriter_ManyProducers(t *testing.T) {
	f := &oneByOne{}
	w := newWriter(f, 64, 4)
	go w.run()
	const producers, frames = 16, 300
	var wg sync.WaitGroup
	for p := range producers {
		wg.Go(func() {
			for i := range frames {
				ctx, cancel := context.WithCancel(t.Context())
				if i%7 == 3 {
					go cancel()
				}
				if err := w.put(ctx, fmt.Appendf(nil, "%d %d", p, i)); err != nil && !errors.Is(err, context.Canceled) {
					t.Error(err)
				}
				cancel()
			}
		})
	}
	wg.Wait()
	w.close()
	<-w.written
	last := map[int]int{}
	for _, frame := range f.got {
		var p, i int
		if _, err := fmt.Sscanf(frame, "%d %d", &p, &i); err != nil {
			t.Fatalf("torn frame %q", frame)
		}
		if before, ok := last[p]; ok && i <= before {
			t.Errorf("producer %d: %d after %d", p, i, before)
		}
		last[p] = i
	}
	if len(last) != producers {
		t.Errorf("%d producers were heard, want %d", len(last), producers)
	}
}

// TestWriter_RestsWithSmallBuffers: a connection that rests does not keep what
// a burst needed.
func TestWriter_RestsWithSmallBuffers(t *testing.T) {
	for name, burst := range map[string]struct{ frames, size int }{
		"a long frame": {1, 4 * idleBuffer},
		"many frames":  {4 * idleFrames, 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newSlow()
				w := newWriter(f, 1<<20, 1<<20)
				go w.run()
				put := func(size int) { _ = w.put(t.Context(), make([]byte, size)) }
				rests := func(which string) {
					t.Helper()
					synctest.Wait()
					w.mu.Lock()
					defer w.mu.Unlock()
					if cap(w.buf) > idleBuffer || cap(w.ends) > idleFrames {
						t.Errorf("%s buffer rests with %d bytes and places for %d frames", which, cap(w.buf), cap(w.ends))
					}
				}
				put(1)
				for range 2 { // one for each buffer, while the other is in the transport
					synctest.Wait()
					for range burst.frames {
						put(burst.size)
					}
					f.let <- nil
				}
				f.let <- nil
				rests("one")
				put(1) // takes it away
				rests("the other")
				w.close()
				f.let <- nil
				<-w.written
			})
		})
	}
}

// discard is a transport that takes everything.
type discard struct{ Frames }

func (discard) WriteBatch([]byte) error { return nil }

// TestNotify_Allocations: an update built by hand costs no more than one
// allocation on its way to the transport.
func TestNotify_Allocations(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	c := NewConn(discard{}, Options{})
	go c.w.run()
	got := testing.AllocsPerRun(2000, func() {
		if err := c.Notify(t.Context(), "session/update", benchChunk); err != nil {
			t.Error(err)
		}
	})
	c.w.close()
	<-c.w.written
	if got > 1 {
		t.Errorf("%.1f allocations", got)
	}
}
