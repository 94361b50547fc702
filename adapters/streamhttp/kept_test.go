package streamhttp

import (
	"bytes"
	"fmt"
	"slices"
	"testing"
	"time"
)

// What all streams keep is counted through everything that becomes of it.
func TestKept_IsCounted(t *testing.T) {
	c := bare()
	defer c.end()
	c.opts.MaxStreams = 1
	want := func(step string, bytes int) {
		t.Helper()
		sum := c.main.kept
		for _, s := range c.sessions {
			sum += s.kept
		}
		if c.kept != bytes || sum != bytes {
			t.Errorf("%s: %d bytes are kept, %d of the streams, want %d", step, c.kept, sum, bytes)
		}
	}
	sent := func(call string) (*stream, *reader) {
		t.Helper()
		r := newReader(false, func(time.Time) {})
		s, _, bad := c.join("s1", r, nil)
		if bad != nil {
			t.Fatal(bad)
		}
		c.put(s, event{at: time.Now(), data: []byte("0123456789"), call: call})
		if call != "" {
			c.asking[call] = s
		}
		if _, over, _ := c.take(s, r, nil); over {
			t.Fatal("the reader has to go")
		}
		return s, r
	}
	s, r := sent("")
	want("sent", 10)
	c.part(s, r)
	s, r = sent("7")
	want("sent as well", 20)
	c.withdraw("7")
	want("withdrawn", 10)
	c.rewind(s, 0)
	want("wanted again", 0)
	if _, over, _ := c.take(s, r, nil); over {
		t.Fatal("the reader has to go")
	}
	want("sent again", 10)
	c.part(s, r)
	if c.session("s2") == nil {
		t.Fatal("there is no place for another")
	}
	want("forgotten for another stream", 0)
}

// What is kept is not the writer's memory, and short events share theirs.
func TestKept_Memory(t *testing.T) {
	c := bare()
	defer c.end()
	r := newReader(false, func(time.Time) {})
	s, _, bad := c.join("s1", r, nil)
	if bad != nil {
		t.Fatal(bad)
	}
	c.opening = false
	buf := make([]byte, 0, 4*shortEvent)
	want := []string{}
	for i := range 300 {
		buf = fmt.Appendf(buf[:0], `{"method":"m","params":{"sessionId":"s1","n":%d}}`, i)
		if i%100 == 99 {
			buf = fmt.Appendf(buf[:0], `{"method":"m","params":{"sessionId":"s1","n":%0*d}}`, 2*shortEvent, i)
		}
		want = append(want, string(buf))
		if err := c.Write(buf); err != nil {
			t.Fatal(err)
		}
	}
	clear(buf[:cap(buf)])
	for i, e := range s.events {
		if string(e.data) != want[i] {
			t.Fatalf("event %d is %q, want %q", i, e.data, want[i])
		}
		_ = append(e.data, "and more"...)
	}
	sent := all(c, s, r)
	if i := slices.IndexFunc(want, func(w string) bool { return !bytes.Contains(sent, []byte(w)) }); i >= 0 {
		t.Errorf("event %d was overwritten by the one before", i)
	}
	if n := testing.AllocsPerRun(100, func() { s.store(make([]byte, 100)) }); n > 0 {
		t.Errorf("%.0f allocations for each short event", n)
	}
	c.trim(s, time.Now().Add(2*keepFor))
	if s.events != nil || s.block != nil {
		t.Errorf("a stream without events keeps memory for %d events and %d bytes", cap(s.events), cap(s.block))
	}
}

// all takes everything that waits.
func all(c *connection, s *stream, r *reader) (sent []byte) {
	for {
		buf, _, _ := c.take(s, r, nil)
		if len(buf) == 0 {
			return sent
		}
		sent = append(sent, buf...)
	}
}
