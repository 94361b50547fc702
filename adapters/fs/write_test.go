package fs

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/berth-dev/berth/core/domain"
)

func TestWrite_Creates(t *testing.T) {
	r := newRig(t).open()
	p, err := r.prepare("write_file", args("path", "deep/er/new.txt", "content", "one\ntwo\n"))
	if err != nil {
		t.Fatal(err)
	}
	plan := p.Plan()
	d := diffIn(t, plan.Content)
	if !d.Created || d.OldText != "" || d.NewText != "one\ntwo\n" || d.Path != r.at("ws/deep/er/new.txt") {
		t.Errorf("diff %+v", d)
	}
	if plan.Title != "Create deep/er/new.txt" || plan.Kind != domain.KindEdit || plan.Locations[0].Line != 1 {
		t.Errorf("plan %+v", plan)
	}
	if plan.Access.Scope != r.at("ws") || plan.Access.Class != domain.AccessEdit || plan.Access.Protected {
		t.Errorf("access %+v", plan.Access)
	}
	r.absent("ws/deep")
	res, err := p.Run(t.Context(), nil)
	if err != nil || res.Failed {
		t.Fatalf("%+v, %v", res, err)
	}
	if res.Text != "Created deep/er/new.txt (2 lines, 8 bytes)." || diffIn(t, res.Content) != d {
		t.Errorf("result %+v", res)
	}
	if got := r.read("ws/deep/er/new.txt"); got != "one\ntwo\n" {
		t.Errorf("content %q", got)
	}
	if names := r.names("ws/deep/er"); !slices.Equal(names, []string{"new.txt"}) {
		t.Errorf("left over: %v", names)
	}
}

func TestWrite_Replaces(t *testing.T) {
	r := newRig(t).open()
	r.write("ws/f", "one\ntwo\nthree\n")
	a := r.call("write_file", "path", "f", "content", "one\n2\nthree\n").want(t, "allow")
	d := diffIn(t, a.plan.Content)
	if d.Created || d.OldText != "one\ntwo\nthree\n" || d.NewText != "one\n2\nthree\n" || a.plan.Locations[0].Line != 2 {
		t.Errorf("plan %+v", a.plan)
	}
	r.call("write_file", "path", "f", "content", "again\n").want(t, "allow") // two own writes in a row are fine
	same := r.call("write_file", "path", "f", "content", "again\n").want(t, "allow").holds(t, "already has exactly this content")
	if len(same.plan.Content) != 0 || same.plan.Access.Class != domain.AccessRead {
		t.Errorf("a write that changes nothing asks: %+v", same.plan)
	}
}

func TestWrite_AsksByDefault(t *testing.T) {
	r := newRig(t).open()
	r.policy.AutoApprove = nil
	r.call("write_file", "path", "new.txt", "content", "x").want(t, "ask")
	r.call("edit_file", "path", "a.txt", "old_text", "A", "new_text", "B").want(t, "ask")
	r.policy.Level = domain.LevelReadOnly
	r.call("write_file", "path", "new.txt", "content", "x").want(t, "deny")
	r.call("read_file", "path", "a.txt").want(t, "allow")
	r.absent("ws/new.txt")
}

// TestWrite_NeedsTheContentLastSeen guards A-FILE-1 and T80.
func TestWrite_NeedsTheContentLastSeen(t *testing.T) {
	write := []any{"path", "f", "content", "mine\n"}
	edit := []any{"path", "f", "old_text", "one", "new_text", "1"}
	for name, call := range map[string][]any{"write_file": write, "edit_file": edit} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t).open()
			r.write("ws/f", "one\n")
			r.call("read_file", "path", "f").want(t, "allow")
			r.write("ws/f", "one\nthe user's\n")
			r.call(name, call...).want(t, "error").holds(t, "f: the file was changed by someone else", "read it again")
			if got := r.read("ws/f"); got != "one\nthe user's\n" {
				t.Errorf("the user's bytes are lost: %q", got)
			}
			r.call("read_file", "path", "f").want(t, "allow")
			r.call(name, call...).want(t, "allow")
		})
	}
	t.Run("after an own write", func(t *testing.T) {
		r := newRig(t).open()
		r.call("write_file", write...).want(t, "allow")
		r.write("ws/f", "the user's\n")
		r.call("write_file", "path", "f", "content", "mine again\n").want(t, "error")
	})
	t.Run("under another name", func(t *testing.T) {
		r := newRig(t).open()
		r.symlink("ws/link", "f")
		r.write("ws/f", "one\n")
		r.call("read_file", "path", "link").want(t, "allow")
		r.write("ws/f", "two\n")
		r.call("write_file", write...).want(t, "error")
	})
	t.Run("touched only", func(t *testing.T) {
		r := newRig(t).open()
		r.write("ws/f", "one\n")
		r.call("read_file", "path", "f").want(t, "allow")
		r.write("ws/f", "one\n") // a new time, the same content
		r.call("edit_file", edit...).want(t, "allow")
	})
	t.Run("deleted since", func(t *testing.T) {
		r := newRig(t).open()
		r.write("ws/f", "one\n")
		r.call("read_file", "path", "f").want(t, "allow")
		if err := os.Remove(r.at("ws/f")); err != nil {
			t.Fatal(err)
		}
		r.call("edit_file", edit...).want(t, "not_found").holds(t, "f: there is no such file")
		r.call("write_file", write...).want(t, "allow")
	})
}

func TestSeen_ForgetsTheOldest(t *testing.T) {
	var s seen
	for i := range maxSeen + 1 {
		s.note(string(rune(i)), stamp{1})
	}
	if s.outdated(string(rune(0)), stamp{2}) || !s.outdated(string(rune(1)), stamp{2}) || len(s.files) != maxSeen || len(s.order) != maxSeen {
		t.Errorf("%d files in %d places", len(s.files), len(s.order))
	}
}

// TestWrite_ChangeBetweenQuestionAndAct: what was approved is exactly what is
// done.
func TestWrite_ChangeBetweenQuestionAndAct(t *testing.T) {
	cases := map[string]struct {
		path   string
		meddle func(r *rig) error
	}{
		"content changed": {"f", func(r *rig) error { return os.WriteFile(r.at("ws/f"), []byte("user\n"), 0o644) }},
		"file deleted":    {"f", func(r *rig) error { return os.Remove(r.at("ws/f")) }},
		"another file, same content": {"f", func(r *rig) error {
			return errors.Join(os.WriteFile(r.at("ws/g"), []byte("one\n"), 0o600), os.Rename(r.at("ws/g"), r.at("ws/f")))
		}},
		"a link to the outside": {"f", func(r *rig) error {
			return errors.Join(os.Remove(r.at("ws/f")), os.Symlink(r.at("out/secret.txt"), r.at("ws/f")))
		}},
		"a directory":                             {"f", func(r *rig) error { return errors.Join(os.Remove(r.at("ws/f")), os.Mkdir(r.at("ws/f"), 0o755)) }},
		"a new file appeared":                     {"n", func(r *rig) error { return os.WriteFile(r.at("ws/n"), []byte("user\n"), 0o644) }},
		"a link appeared":                         {"n", func(r *rig) error { return os.Symlink(r.at("out/secret.txt"), r.at("ws/n")) }},
		"a dangling link appeared":                {"n", func(r *rig) error { return os.Symlink(r.at("out/made"), r.at("ws/n")) }},
		"a link where a directory was to be made": {"d/n", func(r *rig) error { return os.Symlink(r.at("out"), r.at("ws/d")) }},
		"a file where a directory was to be made": {"d/n", func(r *rig) error { return os.WriteFile(r.at("ws/d"), nil, 0o644) }},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			r := newRig(t).open()
			r.write("ws/f", "one\n")
			p, err := r.prepare("write_file", args("path", c.path, "content", "mine\n"))
			if err != nil {
				t.Fatal(err)
			}
			if err := c.meddle(r); err != nil {
				t.Fatal(err)
			}
			before := state(t, r.base)
			res, err := p.Run(t.Context(), nil)
			if err != nil || !res.Failed || !strings.Contains(res.Text, "someone else") {
				t.Errorf("result %+v, %v", res, err)
			}
			if after := state(t, r.base); withoutDirTimes(after) != withoutDirTimes(before) {
				t.Errorf("something was written:\n%s\n%s", before, after)
			}
		})
	}
}

// withoutDirTimes leaves the directories' sizes and times out of a state.
func withoutDirTimes(s string) string {
	var b strings.Builder
	for line := range strings.Lines(s) {
		if f := strings.Fields(line); len(f) == 4 && f[1][0] == 'd' {
			line = f[0] + "\n"
		}
		b.WriteString(line)
	}
	return b.String()
}

// TestWrite_UsesTheDirectoryThatWasPrepared: a directory that is swapped for a
// link between the question and the act leads nowhere.
func TestWrite_UsesTheDirectoryThatWasPrepared(t *testing.T) {
	r := newRig(t).open()
	r.write("ws/d/f", "one\n")
	p, err := r.prepare("write_file", args("path", "d/f", "content", "mine\n"))
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Rename(r.at("ws/d"), r.at("ws/was")), os.Symlink(r.at("out"), r.at("ws/d"))); err != nil {
		t.Fatal(err)
	}
	if res, err := p.Run(t.Context(), nil); err != nil || res.Failed {
		t.Fatalf("%+v, %v", res, err)
	}
	if got := r.read("ws/was/f"); got != "mine\n" {
		t.Errorf("content %q", got)
	}
	if names := r.names("out"); !slices.Equal(names, []string{"secret.txt"}) {
		t.Errorf("out holds %v", names)
	}
}

func TestWrite_Protected(t *testing.T) {
	r := newRig(t).open()
	r.write("ws/f", "one\n")
	if err := os.Chmod(r.at("ws/f"), 0o444); err != nil {
		t.Fatal(err)
	}
	r.call("write_file", "path", "f", "content", "two").want(t, "deny").holds(t, "write-protected")
}

// TestWrite_Persona: the agent's own instructions are asked about each time,
// by every tool and in commands; files of these names elsewhere are ordinary.
func TestWrite_Persona(t *testing.T) {
	r := newRig(t).open()
	for _, name := range []string{"SOUL.md", "Identity.MD"} {
		r.call("write_file", "path", r.at("agent/"+name), "content", "steer").want(t, "ask")
		if !r.disk.Judge(t.Context(), r.session, "", r.at("agent/"+name)).Protected {
			t.Errorf("a command may change %s like any file", name)
		}
		r.call("write_file", "path", name, "content", "mine").want(t, "allow")
		r.call("write_file", "path", r.at("agent/sub/"+name), "content", "mine").want(t, "allow")
	}
}

func TestWrite_OverBinary(t *testing.T) {
	r := newRig(t).open()
	r.write("ws/f.png", "\x89PNG\x00")
	r.call("write_file", "path", "f.png", "content", "text").want(t, "deny").holds(t, "binary", "destroy")
	r.call("edit_file", "path", "f.png", "old_text", "PNG", "new_text", "GIF").want(t, "deny").holds(t, "binary")
	if r.read("ws/f.png") != "\x89PNG\x00" {
		t.Error("the file changed")
	}
}

// TestWrite_ThroughLinks: the target changes and the link stays; hard links
// keep their bytes (T65).
func TestWrite_ThroughLinks(t *testing.T) {
	r := newRig(t).open()
	r.write("ws/d/real", "one\n")
	r.symlink("ws/one", "two")
	r.symlink("ws/two", r.at("ws/d/real")) // absolute, and inside
	r.symlink("ws/new", "d/made")
	if err := os.Link(r.at("ws/d/real"), r.at("out/other")); err != nil {
		t.Fatal(err)
	}
	a := r.call("edit_file", "path", "one", "old_text", "one", "new_text", "1").want(t, "allow")
	if a.plan.Locations[0].Path != r.at("ws/d/real") {
		t.Errorf("location %v", a.plan.Locations)
	}
	r.call("write_file", "path", "new", "content", "made").want(t, "allow")
	if r.read("ws/d/real") != "1\n" || r.read("out/other") != "one\n" || r.read("ws/d/made") != "made" {
		t.Error("the wrong file changed")
	}
	for _, link := range []string{"one", "two", "new"} {
		if _, err := os.Readlink(r.at("ws/" + link)); err != nil {
			t.Errorf("%s is no link any more", link)
		}
	}
}

// TestWrite_IsAtomic: an open file keeps what it had; the new content is a new
// file.
func TestWrite_IsAtomic(t *testing.T) {
	r := newRig(t).open()
	r.write("ws/f", "old")
	f, err := os.Open(r.at("ws/f"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	r.call("write_file", "path", "f", "content", "new").want(t, "allow")
	buf := make([]byte, 10)
	if n, _ := f.ReadAt(buf, 0); string(buf[:n]) != "old" {
		t.Errorf("the open file holds %q", buf[:n])
	}
}

// TestWrite_TemporaryNamesAreNotGuessed guards T84.
func TestWrite_TemporaryNamesAreNotGuessed(t *testing.T) {
	r := newRig(t).open()
	r.write("ws/f", "old")
	for _, name := range []string{"f.tmp", ".f.tmp", "f~", ".f.swp", ".berth.tmp", ".berth-.tmp"} {
		r.symlink("ws/"+name, r.at("out/secret.txt"))
	}
	r.call("write_file", "path", "f", "content", "new").want(t, "allow")
	if r.read("out/secret.txt") != "SECRET" {
		t.Error("a link was written through")
	}
}

func TestWrite_MadeDirectoriesGoWhenItFails(t *testing.T) {
	e := newEditor()
	e.onWrite = func(string) error { return domain.Errorf(domain.Unavailable, "not today") }
	r := newRig(t)
	r.client = e
	r.open()
	r.call("write_file", "path", "x/y/z.txt", "content", "z").want(t, "deny").holds(t, "not today")
	r.absent("ws/x")
}

func TestWrite_HugeDiffIsCut(t *testing.T) {
	r := newRig(t).open()
	old := strings.Repeat("0123456789\n", 80_000)
	r.write("ws/f", old)
	a := r.call("write_file", "path", "f", "content", strings.Replace(old, "0123456789\n", "changed\n", 1)).want(t, "allow")
	block, ok := a.plan.Content[0].(domain.ContentBlock)
	if !ok {
		t.Fatalf("content %T", a.plan.Content[0])
	}
	text := block.Block.(domain.Text).Text
	if len(text) > 2*maxShortDiff || !strings.Contains(text, "too large for a full diff") ||
		!strings.Contains(text, "-0123456789\n+changed\n") || !strings.Contains(text, "From line 1 on, 1 line replace 1 line") {
		t.Errorf("content of %d bytes: %.400s", len(text), text)
	}
}

func TestWrite_Cancelled(t *testing.T) {
	r := newRig(t).open()
	p, err := r.prepare("write_file", args("path", "a.txt", "content", "new"))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(domain.CancelledByClient)
	if _, err := p.Run(ctx, nil); !errors.Is(err, domain.CancelledByClient) {
		t.Errorf("err %v", err)
	}
	if r.read("ws/a.txt") != "A" {
		t.Error("written")
	}
}

// TestWrite_CwdMovedAway guards T71 for writing: the open directory is the
// root, whatever its name leads to now.
func TestWrite_CwdMovedAway(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("an open directory cannot be moved here")
	}
	r := newRig(t).open()
	if err := errors.Join(os.Rename(r.at("ws"), r.at("ws-old")), os.Symlink(r.at("ws-evil"), r.at("ws"))); err != nil {
		t.Fatal(err)
	}
	r.call("write_file", "path", "new.txt", "content", "x").want(t, "allow")
	r.call("write_file", "path", filepath.Join(r.at("ws"), "new2.txt"), "content", "x").want(t, "allow")
	r.absent("ws-evil/new.txt")
	r.absent("ws-evil/new2.txt")
	if r.read("ws-old/new.txt") != "x" || r.read("ws-old/new2.txt") != "x" {
		t.Error("not in the directory that was opened")
	}
}
