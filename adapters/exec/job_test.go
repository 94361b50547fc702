//go:build unix

package exec

import (
	"os"
	"strings"
	"testing"
	"time"
)

// TestDrain: what had come before the deadline is read after it.
func TestDrain(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _, _ = r.Close(), w.Close() }()
	want := strings.Repeat("late ", 10_000)
	if _, err := w.WriteString(want); err != nil {
		t.Fatal(err)
	}
	if err := r.SetReadDeadline(time.Now().Add(-time.Second)); err != nil {
		t.Fatal(err)
	}
	if n, err := r.Read(make([]byte, 10)); n != 0 || err == nil {
		t.Fatalf("%d %v: the deadline does not keep from reading, so this proves nothing", n, err)
	}
	var got strings.Builder
	drain(r, func(p []byte) { got.Write(p) })
	if got.String() != want {
		t.Errorf("%d bytes of %d", got.Len(), len(want))
	}
}
