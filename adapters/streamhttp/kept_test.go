package streamhttp

import (
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
