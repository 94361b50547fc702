package fs

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/berth-dev/berth/core/domain"
	"github.com/berth-dev/berth/core/ports"
)

// BenchmarkRead is a whole read_file call of 4 KiB, five directories deep.
func BenchmarkRead(b *testing.B) {
	r := newRig(b)
	r.write("ws/a/b/c/d/f", strings.Repeat("0123456789abcde\n", 256))
	r.open()
	raw := args("path", "a/b/c/d/f")
	b.ReportAllocs()
	for b.Loop() {
		runCall(b, r, "read_file", raw)
	}
}

// BenchmarkEdit is a whole edit_file call in 4 KiB, made durable.
func BenchmarkEdit(b *testing.B) {
	r := newRig(b)
	r.write("ws/a/b/c/d/f", "marker0 "+strings.Repeat("0123456789abcde\n", 256))
	r.open()
	b.ReportAllocs()
	for n := 0; b.Loop(); n++ {
		old, put := fmt.Sprintf("marker%d ", n), fmt.Sprintf("marker%d ", n+1)
		runCall(b, r, "edit_file", args("path", "a/b/c/d/f", "edits", []map[string]any{{"old_text": old, "new_text": put}}))
	}
}

// BenchmarkEditPrepare is what precedes the question: the diff, worked out.
func BenchmarkEditPrepare(b *testing.B) {
	r := newRig(b)
	r.write("ws/a/b/c/d/f", "marker "+strings.Repeat("0123456789abcde\n", 256))
	r.open()
	raw := args("path", "a/b/c/d/f", "edits", []map[string]any{{"old_text": "marker", "new_text": "other"}})
	b.ReportAllocs()
	for b.Loop() {
		p, err := r.tools["edit_file"].Prepare(b.Context(), domain.ToolCall{Args: raw})
		if err != nil {
			b.Fatal(err)
		}
		_ = p.Close()
	}
}

// BenchmarkList lists 100 files.
func BenchmarkList(b *testing.B) {
	r := newRig(b)
	for i := range 100 {
		r.write(fmt.Sprintf("ws/d/%03d", i), "")
	}
	r.open()
	raw := args("path", "d")
	b.ReportAllocs()
	for b.Loop() {
		runCall(b, r, "list_directory", raw)
	}
}

func runCall(b *testing.B, r *rig, tool string, raw []byte) {
	p, err := r.tools[tool].Prepare(b.Context(), domain.ToolCall{Args: raw})
	if err != nil {
		b.Fatal(err)
	}
	res, err := p.Run(b.Context(), nil)
	if err != nil || res.Failed {
		b.Fatal(res.Text, err)
	}
	_ = p.Close()
}

// TestIdleSessionIsSmall: an open session without a turn costs little memory
// and one descriptor for a directory of its own.
func TestIdleSessionIsSmall(t *testing.T) {
	const sessions = 500
	r := newRig(t)
	r.disk = New(r.conf)
	source := NewSource(r.disk)
	list := make([]domain.Session, sessions)
	for i := range list {
		list[i] = r.session
		list[i].ID = domain.SessionID(fmt.Sprint("s", i))
		r.write(fmt.Sprintf("ws%d/f", i), "")
		list[i].Cwd = r.at(fmt.Sprint("ws", i))
	}
	sets := make([]ports.Toolset, 0, sessions)
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	for _, s := range list {
		set, err := source.Open(t.Context(), s, nil)
		if err != nil {
			t.Fatal(err)
		}
		sets = append(sets, set)
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if per := (int64(after.HeapAlloc) - int64(before.HeapAlloc)) / sessions; per > 4<<10 {
		t.Errorf("%d bytes a session", per)
	} else {
		t.Logf("%d bytes a session", per)
	}
	if n := len(r.disk.handles); n != sessions+1 {
		t.Errorf("%d directories are open", n)
	}
	for _, s := range sets {
		_ = s.Close()
	}
}
