package fs

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/berth-dev/berth/core/domain"
)

func TestDelete(t *testing.T) {
	cases := map[string]struct {
		set       func(r *rig)
		path      string
		recursive bool
		verdict   string
		holds     []string // in the text
		gone      []string
		stays     []string
	}{
		"a file":                   {path: "a.txt", verdict: "allow", holds: []string{"Deleted a.txt (file, 1 byte)"}, gone: []string{"ws/a.txt"}, stays: []string{"ws/src"}},
		"a file by its whole path": {path: "BASE/ws/a.txt", verdict: "allow", gone: []string{"ws/a.txt"}},
		"a link to the outside": {
			set: func(r *rig) { r.symlink("ws/l", r.at("out")) }, path: "l", verdict: "allow",
			holds: []string{"symbolic link to"}, gone: []string{"ws/l"}, stays: []string{"out/secret.txt"},
		},
		"a link, recursive": {
			set: func(r *rig) { r.symlink("ws/l", r.at("out")) }, path: "l", recursive: true, verdict: "allow", gone: []string{"ws/l"}, stays: []string{"out/secret.txt"},
		},
		"a link with a slash": {
			set: func(r *rig) { r.symlink("ws/l", "src") }, path: "l/", recursive: true, verdict: "error",
			holds: []string{"symbolic link"}, stays: []string{"ws/src/main.go", "ws/l"},
		},
		"through a link to the outside": {
			set: func(r *rig) { r.symlink("ws/l", r.at("out")) }, path: "l/secret.txt", verdict: "deny", stays: []string{"out/secret.txt"},
		},
		"through a link inside": {
			set: func(r *rig) { r.symlink("ws/l", "src") }, path: "l/main.go", verdict: "allow", gone: []string{"ws/src/main.go"}, stays: []string{"ws/l"},
		},
		"an empty directory": {
			set: func(r *rig) { r.write("ws/e/x", ""); r.must(os.Remove(r.at("ws/e/x"))) }, path: "e", verdict: "allow",
			holds: []string{"empty directory"}, gone: []string{"ws/e"},
		},
		"a directory": {path: "src", verdict: "error", holds: []string{"1 file (1 byte)", "set recursive"}, stays: []string{"ws/src/main.go"}},
		"a tree": {
			set: func(r *rig) {
				r.write("ws/d/e/f/g", "12345")
				r.write("ws/d/.hidden", "")
				r.symlink("ws/d/e/out", r.at("out"))
				r.symlink("ws/d/loop", ".")
			},
			path: "d", recursive: true, verdict: "ask", stays: []string{"out/secret.txt", "ws/d/e/f/g"},
		},
		"the working directory":        {path: ".", recursive: true, verdict: "deny", stays: []string{"ws/a.txt"}},
		"the working directory, by ..": {path: "src/..", recursive: true, verdict: "deny", stays: []string{"ws/a.txt"}},
		"the agent workspace":          {path: "BASE/agent", recursive: true, verdict: "deny", stays: []string{"agent/notes.md"}},
		"above the roots":              {path: "..", recursive: true, verdict: "deny", stays: []string{"ws/a.txt"}},
		"the top":                      {path: "/", recursive: true, verdict: "deny", stays: []string{"ws/a.txt"}},
		"home":                         {path: "~", recursive: true, verdict: "deny", stays: []string{"home/.ssh/id_rsa"}},
		"a directory by climbing":      {set: func(r *rig) { r.write("ws/src/sub/x", "") }, path: "src/sub/../sub/..", recursive: true, verdict: "ask", stays: []string{"ws/src"}},
		"outside":                      {path: "../out/secret.txt", verdict: "deny", stays: []string{"out/secret.txt"}},
		"forbidden":                    {path: "private/p.txt", verdict: "deny", stays: []string{"ws/private/p.txt"}},
		"forbidden directory":          {path: "private", recursive: true, verdict: "deny", stays: []string{"ws/private/p.txt"}},
		"protected":                    {set: func(r *rig) { r.write("ws/.git/config", "") }, path: ".git/config", verdict: "ask", stays: []string{"ws/.git/config"}},
		"missing":                      {path: "a.tx", verdict: "not_found", holds: []string{"a.txt"}},
		"a file as a directory":        {path: "a.txt/", verdict: "error", stays: []string{"ws/a.txt"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			if c.set != nil {
				c.set(r)
			}
			r.open()
			r.policy.AutoApprove = nil
			if c.verdict == "allow" {
				r.policy.AutoApprove = []domain.ToolRule{{Tool: "delete_file"}}
			}
			a := r.call("delete_file", "path", strings.ReplaceAll(c.path, "BASE", r.base), "recursive", c.recursive).want(t, c.verdict)
			if a.verdict != "ask" {
				a.holds(t, c.holds...)
			}
			for _, p := range c.gone {
				r.absent(p)
			}
			for _, p := range c.stays {
				if _, err := os.Lstat(r.at(p)); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

func (r *rig) must(err error) {
	r.t.Helper()
	if err != nil {
		r.t.Fatal(err)
	}
}

// TestDelete_Shows: the person sees what is lost, before and after.
func TestDelete_Shows(t *testing.T) {
	r := newRig(t)
	r.write("ws/crlf.txt", "\uFEFFone\r\ntwo\r\n")
	r.write("ws/bin", "a\x00b")
	r.write("ws/empty", "")
	for i := range 150 {
		r.write(fmt.Sprintf("ws/d/sub/f%03d", i), "xy")
	}
	r.symlink("ws/d/l", "sub")
	r.open()

	a := r.call("delete_file", "path", "crlf.txt").want(t, "allow")
	if d := diffIn(t, a.plan.Content); d != (domain.Diff{Path: r.at("ws/crlf.txt"), OldText: "one\ntwo\n"}) {
		t.Errorf("diff %+v", d)
	}
	if diffIn(t, a.result.Content) != diffIn(t, a.plan.Content) {
		t.Error("shown is not what was asked about")
	}
	if a.plan.Kind != domain.KindDelete || a.plan.Title != "Delete crlf.txt" || a.plan.Access.Scope != r.at("ws") ||
		len(a.plan.Locations) != 1 || a.plan.Locations[0].Path != r.at("ws/crlf.txt") {
		t.Errorf("plan %+v", a.plan)
	}
	for path, want := range map[string]string{
		"bin":   "Deletes bin (binary file, 3 bytes).",
		"empty": "Deletes empty (file, 0 bytes).",
	} {
		if got := textIn(t, r.call("delete_file", "path", path).want(t, "allow").plan.Content); got != want {
			t.Errorf("%s: %q", path, got)
		}
	}
	a = r.call("delete_file", "path", "d", "recursive", true).want(t, "allow")
	text := textIn(t, a.plan.Content)
	for _, part := range []string{
		"Deletes the directory d with 150 files (300 bytes), 1 directory, 1 symbolic link", "\nl  (symbolic link)\n", "\nsub/\n", "\nsub/f000  2 bytes\n", "… and 52 more",
	} {
		if !strings.Contains(text, part) {
			t.Errorf("%q is missing in\n%s", part, text)
		}
	}
	if string(a.result.RawOutput) != `{"deleted":153}` || a.plan.Access.Scope != "" || !strings.Contains(a.plan.Access.Reason, "150 files") {
		t.Errorf("%s, %+v", a.result.RawOutput, a.plan.Access)
	}
	r.absent("ws/d")
}

func textIn(t testing.TB, list []domain.CallContent) string {
	t.Helper()
	if len(list) > 0 {
		if b, ok := list[0].(domain.ContentBlock); ok {
			if text, ok := b.Block.(domain.Text); ok {
				return text.Text
			}
		}
	}
	t.Fatalf("no text in %#v", list)
	return ""
}

// TestDelete_GuardedInside: what lies in a directory is guarded as it is by
// itself.
func TestDelete_GuardedInside(t *testing.T) {
	for name, c := range map[string]struct {
		inside string
		level  domain.Level
		want   string
	}{
		"a hook":                   {"d/.git/hooks/x", domain.LevelSupervised, "ask"},
		"a hook, full":             {"d/.git/hooks/x", domain.LevelFull, "deny"},
		"a deep startup file":      {"d/e/f/.bashrc", domain.LevelSupervised, "ask"},
		"a workflow":               {"d/.github/workflows/ci.yml", domain.LevelSupervised, "ask"},
		"a workflow, full":         {"d/.github/workflows/ci.yml", domain.LevelFull, "allow"},
		"nothing":                  {"d/e", domain.LevelSupervised, "allow"},
		"nothing, read-only":       {"d/e", domain.LevelReadOnly, "deny"},
		"a forbidden directory":    {"keep/private/p", domain.LevelSupervised, "deny"},
		"a forbidden one, at full": {"keep/private/p", domain.LevelFull, "deny"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			r.write("ws/"+c.inside, "x")
			r.pol.Level, r.policy.Level = c.level, c.level
			r.pol.Forbidden = []string{r.at("ws/keep/private")}
			r.open()
			top, _, _ := strings.Cut(c.inside, "/")
			r.call("delete_file", "path", top, "recursive", true).want(t, c.want)
			r.call("move_file", "source", top, "destination", "elsewhere").want(t, map[string]string{"allow": "not_found"}[c.want], c.want)
		})
	}
}

// TestDelete_OnlyWhatWasShown: a change between the question and the deletion
// is not lost.
func TestDelete_OnlyWhatWasShown(t *testing.T) {
	for name, c := range map[string]struct {
		args   []byte
		change func(r *rig)
		stays  string
	}{
		"a changed file":       {args("path", "a.txt"), func(r *rig) { r.write("ws/a.txt", "B") }, "ws/a.txt"},
		"a file made a link":   {args("path", "a.txt"), func(r *rig) { r.must(os.Remove(r.at("ws/a.txt"))); r.symlink("ws/a.txt", "src") }, "ws/a.txt"},
		"a new file in it":     {args("path", "src", "recursive", true), func(r *rig) { r.write("ws/src/new", "") }, "ws/src/main.go"},
		"a changed file in it": {args("path", "src", "recursive", true), func(r *rig) { r.write("ws/src/main.go", "MM") }, "ws/src/main.go"},
		"another directory": {args("path", "src", "recursive", true), func(r *rig) {
			r.must(os.Rename(r.at("ws/src"), r.at("ws/old")))
			r.write("ws/src/main.go", "M")
		}, "ws/src/main.go"},
		"a link in its place": {args("path", "src", "recursive", true), func(r *rig) {
			r.must(os.Rename(r.at("ws/src"), r.at("ws/old")))
			r.symlink("ws/src", "old")
		}, "ws/old/main.go"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t).open()
			p, err := r.prepare("delete_file", c.args)
			if err != nil {
				t.Fatal(err)
			}
			c.change(r)
			res, err := p.Run(context.Background(), nil)
			if err != nil || !res.Failed {
				t.Errorf("%+v, %v", res, err)
			}
			if _, err := os.Lstat(r.at(c.stays)); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestDelete_LastSeen: a file that someone changed since the model read it
// stays.
func TestDelete_LastSeen(t *testing.T) {
	r := newRig(t).open()
	r.call("read_file", "path", "a.txt").want(t, "allow")
	r.write("ws/a.txt", "the user's")
	r.call("delete_file", "path", "a.txt").want(t, "error").holds(t, "changed by someone else")
	r.call("read_file", "path", "a.txt").want(t, "allow")
	r.call("delete_file", "path", "a.txt").want(t, "allow")
	// What is put there anew is another file, which nobody has seen.
	r.write("ws/a.txt", "another")
	r.call("write_file", "path", "a.txt", "content", "mine").want(t, "allow")
}

// TestDelete_Cancelled: a deletion that is stopped says how far it came.
func TestDelete_Cancelled(t *testing.T) {
	r := newRig(t)
	for i := range 50 {
		r.write(fmt.Sprintf("ws/d/f%02d", i), "x")
	}
	r.open()
	p, err := r.prepare("delete_file", args("path", "d", "recursive", true))
	if err != nil {
		t.Fatal(err)
	}
	// The context ends when the twentieth entry of the second stage is looked
	// at: one look at it is taken a directory, an entry and a batch.
	ctx := &endingContext{Context: context.Background(), left: 20}
	res, err := p.Run(ctx, nil)
	if err != nil || !res.Failed || !strings.Contains(res.Text, "entries were deleted, then it stopped: it was cancelled") {
		t.Fatalf("%+v, %v", res, err)
	}
	left := len(r.names("ws/d"))
	if want := fmt.Sprintf("d: %d of 51 entries were deleted", 50-left); !strings.HasPrefix(res.Text, want) || left == 0 || left == 50 {
		t.Errorf("%s, but %d are left", res.Text, left)
	}
}

// endingContext ends after it was looked at a number of times.
type endingContext struct {
	context.Context
	left int
}

func (c *endingContext) Err() error {
	if c.left--; c.left < 0 {
		return errors.New("ended")
	}
	return nil
}
