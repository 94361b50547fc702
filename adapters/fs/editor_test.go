package fs

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/berth-dev/berth/core/domain"
)

// withEditor is a session whose client offers its buffers.
func withEditor(t *testing.T) (*rig, *editorClient) {
	r := newRig(t)
	e := newEditor()
	r.client = e
	return r.open(), e
}

// TestEditor_IsTheTruth guards A-FILE-2: the buffer is read and written, the
// disk is left to the client.
func TestEditor_IsTheTruth(t *testing.T) {
	r, e := withEditor(t)
	path := r.at("ws/a.txt")
	e.buffers[path] = "unsaved\n"
	r.call("read_file", "path", "a.txt").want(t, "allow").holds(t, "unsaved")
	a := r.call("edit_file", "path", "a.txt", "old_text", "unsaved", "new_text", "edited").want(t, "allow")
	if d := diffIn(t, a.plan.Content); d.OldText != "unsaved\n" || d.NewText != "edited\n" || d.Created {
		t.Errorf("diff %+v", d)
	}
	if e.buffers[path] != "edited\n" || r.read("ws/a.txt") != "A" {
		t.Errorf("buffer %q, disk %q", e.buffers[path], r.read("ws/a.txt"))
	}
	r.call("write_file", "path", "a.txt", "content", "whole\n").want(t, "allow")
	if e.buffers[path] != "whole\n" {
		t.Errorf("buffer %q", e.buffers[path])
	}
}

func TestEditor_ChangedSinceRead(t *testing.T) {
	r, e := withEditor(t)
	path := r.at("ws/a.txt")
	e.buffers[path] = "one\n"
	r.call("read_file", "path", "a.txt").want(t, "allow")
	e.buffers[path] = "typed by the user\n"
	r.call("write_file", "path", "a.txt", "content", "mine").want(t, "error").holds(t, "changed by someone else")
	if e.buffers[path] != "typed by the user\n" {
		t.Error("the user's text is lost")
	}
}

func TestEditor_ChangedBetweenQuestionAndAct(t *testing.T) {
	r, e := withEditor(t)
	path := r.at("ws/a.txt")
	e.buffers[path] = "one\n"
	p, err := r.prepare("write_file", args("path", "a.txt", "content", "mine"))
	if err != nil {
		t.Fatal(err)
	}
	e.buffers[path] = "typed by the user\n"
	if res, err := p.Run(t.Context(), nil); err != nil || !res.Failed || e.buffers[path] != "typed by the user\n" {
		t.Errorf("%+v, %v; buffer %q", res, err, e.buffers[path])
	}
}

// TestEditor_NeedsBothDirections: with one flag alone, reads and writes would
// speak of different texts, so the disk is the truth and no call is made.
func TestEditor_NeedsBothDirections(t *testing.T) {
	for name, info := range map[string]domain.ClientInfo{
		"none": {}, "reading": {ReadFiles: true}, "writing": {WriteFiles: true},
	} {
		t.Run(name, func(t *testing.T) {
			r, e := withEditor(t)
			e.info = info
			e.buffers[r.at("ws/a.txt")] = "unsaved"
			r.call("read_file", "path", "a.txt").want(t, "allow").holds(t, "\nA")
			r.call("write_file", "path", "a.txt", "content", "B").want(t, "allow")
			if len(e.asked) > 0 || r.read("ws/a.txt") != "B" {
				t.Errorf("asked %v, disk %q", e.asked, r.read("ws/a.txt"))
			}
		})
	}
}

// TestEditor_IsNotAskedAboutOurs guards A-FILE-4 and T81.
func TestEditor_IsNotAskedAboutOurs(t *testing.T) {
	r, e := withEditor(t)
	for _, path := range []string{r.at("agent/notes.md"), "/etc/passwd", r.at("out/secret.txt"), "private/p.txt", "../a.txt", r.at("data/x")} {
		r.call("read_file", "path", path)
		r.call("write_file", "path", path, "content", "x")
	}
	r.symlink("ws/leak", r.at("out/secret.txt"))
	r.call("read_file", "path", "leak").want(t, "deny")
	r.call("list_directory", "path", ".").want(t, "allow")
	if len(e.asked) > 0 {
		t.Errorf("the client was asked: %v", e.asked)
	}
	if r.read("agent/notes.md") != "x" {
		t.Error("the agent's own file was not written")
	}
}

// TestEditor_IsAskedByItsOwnSpelling: the paths the client gets begin as it
// spelled the directory (A-PATH-7), and links inside are resolved.
func TestEditor_IsAskedByItsOwnSpelling(t *testing.T) {
	r := newRig(t)
	r.symlink("project", r.at("ws"))
	r.symlink("ws/link.txt", "a.txt")
	e := newEditor()
	r.client, r.session.CwdGiven = e, r.at("project")
	r.open()
	for _, path := range []string{"a.txt", "link.txt", r.at("project/a.txt"), r.at("ws/a.txt")} {
		e.asked = nil
		a := r.call("read_file", "path", path).want(t, "allow")
		if want := "read " + r.at("project/a.txt"); !slices.Equal(e.asked, []string{want}) || a.plan.Locations[0].Path != r.at("project/a.txt") {
			t.Errorf("%s: asked %v, location %v", path, e.asked, a.plan.Locations)
		}
	}
}

// TestEditor_NewFile guards A-FILE-3.
func TestEditor_NewFile(t *testing.T) {
	t.Run("created through the client", func(t *testing.T) {
		r, e := withEditor(t)
		a := r.call("write_file", "path", "d/new.txt", "content", "x").want(t, "allow")
		if d := diffIn(t, a.plan.Content); !d.Created || e.buffers[r.at("ws/d/new.txt")] != "x" {
			t.Errorf("diff %+v, buffers %v", d, e.buffers)
		}
		if _, err := os.Stat(r.at("ws/d")); err != nil {
			t.Error("the host did not make the directory")
		}
	})
	t.Run("only in a buffer", func(t *testing.T) {
		r, e := withEditor(t)
		e.buffers[r.at("ws/untitled.txt")] = "draft"
		r.call("read_file", "path", "untitled.txt").want(t, "allow").holds(t, "draft")
	})
	t.Run("missing", func(t *testing.T) {
		r, _ := withEditor(t)
		r.call("read_file", "path", "none.txt").want(t, "deny").holds(t, "none.txt: there is no such file")
	})
	t.Run("the client has no such place", func(t *testing.T) {
		r, e := withEditor(t)
		e.onWrite = func(string) error { return domain.Errorf(domain.NotFound, "not in the project") }
		r.call("write_file", "path", "d/new.txt", "content", "x").want(t, "allow")
		if r.read("ws/d/new.txt") != "x" {
			t.Error("no fall back to the disk")
		}
	})
}

// TestEditor_Fails guards A-FILE-6 and the client file system rules: a failure
// that is no refusal leaves reading to the disk; a write that was not taken is
// told.
func TestEditor_Fails(t *testing.T) {
	cases := []struct {
		name           string
		read, write    error
		reads, writes  string // verdicts
		buffer, onDisk string // after the write
	}{
		{"refuses to show", domain.Errorf(domain.Denied, "private"), nil, "deny", "deny", "", "A"},
		{"cannot read", domain.Errorf(domain.Unavailable, "broken"), nil, "allow", "allow", "A", "B"},
		{"does not serve reading", domain.Errorf(domain.Unsupported, "no method"), nil, "allow", "allow", "A", "B"},
		{"an error without a code", errors.New("broken"), nil, "allow", "allow", "A", "B"},
		{"refuses the write", nil, domain.Errorf(domain.Denied, "rejected"), "allow", "deny", "A", "A"},
		{"fails to write", nil, domain.Errorf(domain.Unavailable, "rejected in review"), "allow", "deny", "A", "A"},
		{"is lost meanwhile", nil, fmt.Errorf("closed: %w", domain.Disconnected), "allow", "deny", "A", "A"},
		{"is away for long", nil, domain.WrapError(domain.Unavailable, domain.Disconnected, "it went"), "allow", "deny", "A", "A"},
		{"does not serve writing", nil, domain.Errorf(domain.Unsupported, "no method"), "allow", "allow", "A", "B"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			r, e := withEditor(t)
			path := r.at("ws/a.txt")
			e.buffers[path] = "A"
			e.onRead = func(string) error { return c.read }
			e.onWrite = func(string) error { return c.write }
			r.call("read_file", "path", "a.txt").want(t, c.reads)
			a := r.call("write_file", "path", "a.txt", "content", "B").want(t, c.writes)
			if c.buffer != "" && e.buffers[path] != c.buffer {
				t.Errorf("buffer %q", e.buffers[path])
			}
			if got := r.read("ws/a.txt"); got != c.onDisk {
				t.Errorf("disk %q", got)
			}
			gone := errors.Is(c.write, domain.Disconnected)
			if c.write != nil && c.writes == "deny" && strings.Contains(a.text, "the client refused: ") == gone {
				t.Errorf("the model is not told the client's words: %s", a.text)
			}
			if gone && !strings.Contains(a.text, "the client went away before it answered, and it is not known whether the file was written") {
				t.Errorf("the model is told %s", a.text)
			}
		})
	}
}

// TestEditor_AndBytes: what a buffer cannot hold unharmed is the disk's alone.
func TestEditor_AndBytes(t *testing.T) {
	r, e := withEditor(t)
	r.write("ws/latin.txt", "caf\xE9\nb\n")
	e.buffers[r.at("ws/latin.txt")] = "caf\uFFFD\nb\n"
	r.call("edit_file", "path", "latin.txt", "old_text", "b", "new_text", "B").want(t, "allow")
	if got := r.read("ws/latin.txt"); got != "caf\xE9\nB\n" || len(e.asked) > 0 {
		t.Errorf("disk %q, asked %v", got, e.asked)
	}
}

func TestEditor_KeepsItsLineEnds(t *testing.T) {
	r, e := withEditor(t)
	e.buffers[r.at("ws/a.txt")] = "one\r\ntwo\r\n"
	r.call("read_file", "path", "a.txt").want(t, "allow").holds(t, "one\ntwo\n")
	r.call("edit_file", "path", "a.txt", "old_text", "one\ntwo", "new_text", "1\n2").want(t, "allow")
	if got := e.buffers[r.at("ws/a.txt")]; got != "1\r\n2\r\n" {
		t.Errorf("buffer %q", got)
	}
}

// TestEditor_TakesItsTime guards A-FILE-6: a write is answered when the review
// is; a cancel ends the wait, and nothing is written behind the client's back.
func TestEditor_TakesItsTime(t *testing.T) {
	r, e := withEditor(t)
	e.buffers[r.at("ws/a.txt")] = "A"
	p, err := r.prepare("write_file", args("path", "a.txt", "content", "B"))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	e.onWrite = func(string) error {
		cancel(domain.CancelledByClient)
		return context.Canceled
	}
	if _, err := p.Run(ctx, nil); !errors.Is(err, domain.CancelledByClient) {
		t.Errorf("err %v", err)
	}
	if r.read("ws/a.txt") != "A" {
		t.Error("the disk was written behind the client's back")
	}
}
