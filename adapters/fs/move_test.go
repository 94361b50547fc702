package fs

import (
	"context"
	"os"
	"strings"
	"testing"

	"github.com/berth-dev/berth/core/domain"
)

func TestMove(t *testing.T) {
	cases := map[string]struct {
		set       func(r *rig)
		from, to  string
		overwrite bool
		verdict   string
		holds     []string
		files     map[string]string // content afterwards; "-" for nothing there
	}{
		"rename":               {from: "a.txt", to: "b.txt", verdict: "allow", holds: []string{"Moved a.txt to b.txt."}, files: map[string]string{"ws/a.txt": "-", "ws/b.txt": "A"}},
		"to a new directory":   {from: "a.txt", to: "x/y/b.txt", verdict: "allow", files: map[string]string{"ws/a.txt": "-", "ws/x/y/b.txt": "A"}},
		"to another root":      {from: "a.txt", to: "BASE/agent/a.txt", verdict: "allow", files: map[string]string{"ws/a.txt": "-", "agent/a.txt": "A"}},
		"a directory":          {from: "src", to: "lib/go", verdict: "allow", files: map[string]string{"ws/lib/go/main.go": "M", "ws/src": "-"}},
		"a directory, slashes": {from: "src/", to: "lib/", verdict: "allow", files: map[string]string{"ws/lib/main.go": "M", "ws/src": "-"}},
		"a file, slash":        {from: "a.txt", to: "lib/", verdict: "not_found", files: map[string]string{"ws/a.txt": "A"}},
		"onto a file":          {from: "a.txt", to: "src/main.go", verdict: "error", holds: []string{"exists already", "overwrite"}, files: map[string]string{"ws/a.txt": "A", "ws/src/main.go": "M"}},
		"over a file":          {from: "a.txt", to: "src/main.go", overwrite: true, verdict: "allow", holds: []string{"replacing"}, files: map[string]string{"ws/a.txt": "-", "ws/src/main.go": "A"}},
		"into a directory":     {from: "a.txt", to: "src", overwrite: true, verdict: "error", holds: []string{"src/a.txt"}, files: map[string]string{"ws/a.txt": "A"}},
		"into itself":          {from: "src", to: "src/x/src", verdict: "error", holds: []string{"itself"}, files: map[string]string{"ws/src/main.go": "M"}},
		"onto itself":          {from: "a.txt", to: "src/../a.txt", verdict: "error", files: map[string]string{"ws/a.txt": "A"}},
		"out":                  {from: "a.txt", to: "../out/a.txt", verdict: "deny", files: map[string]string{"ws/a.txt": "A", "out/a.txt": "-"}},
		"in":                   {from: "../out/secret.txt", to: "s.txt", verdict: "deny", files: map[string]string{"out/secret.txt": "SECRET", "ws/s.txt": "-"}},
		"from forbidden":       {from: "private/p.txt", to: "p.txt", verdict: "deny", files: map[string]string{"ws/private/p.txt": "SECRET", "ws/p.txt": "-"}},
		"to forbidden":         {from: "a.txt", to: "private/a.txt", verdict: "deny", files: map[string]string{"ws/a.txt": "A", "ws/private/a.txt": "-"}},
		"the forbidden one":    {from: "private", to: "public", verdict: "deny", files: map[string]string{"ws/private/p.txt": "SECRET", "ws/public": "-"}},
		"the root":             {from: ".", to: "../elsewhere", verdict: "deny", files: map[string]string{"ws/a.txt": "A"}},
		"onto a root":          {from: "a.txt", to: "BASE/agent", overwrite: true, verdict: "deny", files: map[string]string{"ws/a.txt": "A"}},
		"to a protected name":  {from: "a.txt", to: ".git/hooks/pre-commit", verdict: "ask", files: map[string]string{"ws/a.txt": "A", "ws/.git": "-"}},
		"from a protected name": {
			set: func(r *rig) { r.write("ws/.git/config", "C") }, from: ".git/config", to: "c", verdict: "ask", files: map[string]string{"ws/.git/config": "C"},
		},
		"git's directory aside": {
			set: func(r *rig) { r.write("ws/.git/HEAD", "H") }, from: ".git", to: "git", verdict: "ask", files: map[string]string{"ws/.git/HEAD": "H"},
		},
		"a directory that becomes git's": {
			set: func(r *rig) { r.write("ws/d/hooks/pre-commit", "H") }, from: "d", to: ".git/modules/d", verdict: "ask", files: map[string]string{"ws/d/hooks/pre-commit": "H"},
		},
		"a link to the outside": {
			set: func(r *rig) { r.symlink("ws/l", "../out/secret.txt") }, from: "l", to: "m", verdict: "allow", files: map[string]string{"ws/l": "-", "out/secret.txt": "SECRET"},
		},
		"over a link to the outside": {
			set: func(r *rig) { r.symlink("ws/l", "../out/secret.txt") }, from: "a.txt", to: "l", overwrite: true, verdict: "allow",
			files: map[string]string{"ws/a.txt": "-", "ws/l": "A", "out/secret.txt": "SECRET"},
		},
		"onto a link to the outside": {
			set: func(r *rig) { r.symlink("ws/l", "../out/new.txt") }, from: "a.txt", to: "l", verdict: "error", files: map[string]string{"ws/a.txt": "A", "out/new.txt": "-"},
		},
		"below a link to the outside": {
			set: func(r *rig) { r.symlink("ws/l", "../out") }, from: "a.txt", to: "l/a.txt", verdict: "deny", files: map[string]string{"ws/a.txt": "A", "out/a.txt": "-"},
		},
		"below a link inside": {
			set: func(r *rig) { r.symlink("ws/l", "src") }, from: "a.txt", to: "l/a.txt", verdict: "allow", files: map[string]string{"ws/a.txt": "-", "ws/src/a.txt": "A"},
		},
		"onto a hard link of itself": {
			set: func(r *rig) { r.must(os.Link(r.at("ws/a.txt"), r.at("ws/twin"))) }, from: "a.txt", to: "twin", overwrite: true, verdict: "error",
			holds: []string{"two names of the same file"}, files: map[string]string{"ws/a.txt": "A", "ws/twin": "A"},
		},
		"a hard link to a key": {
			set: func(r *rig) { r.must(os.Link(r.at("home/.ssh/id_rsa"), r.at("ws/k"))) }, from: "k", to: "l", verdict: "deny", files: map[string]string{"ws/k": "SECRET"},
		},
		"missing":      {from: "a.tx", to: "b", verdict: "not_found", holds: []string{"a.txt"}},
		"below a file": {from: "src", to: "a.txt/b", verdict: "error", files: map[string]string{"ws/a.txt": "A"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			if c.set != nil {
				c.set(r)
			}
			r.open()
			fill := func(s string) string { return strings.ReplaceAll(s, "BASE", r.base) }
			a := r.call("move_file", "source", fill(c.from), "destination", fill(c.to), "overwrite", c.overwrite).want(t, c.verdict)
			if a.verdict != "ask" {
				a.holds(t, c.holds...)
			}
			if strings.Contains(a.text, "SECRET") {
				t.Error("the answer tells the content")
			}
			for p, want := range c.files {
				if want == "-" {
					r.absent(p)
				} else if got := r.read(p); got != want {
					t.Errorf("%s holds %q, want %q", p, got, want)
				}
			}
		})
	}
}

func TestMove_Shows(t *testing.T) {
	r := newRig(t).open()
	a := r.call("move_file", "source", "a.txt", "destination", "b.txt").want(t, "allow")
	if got := textIn(t, a.plan.Content); got != "Moves a.txt to b.txt (file, 1 byte)." {
		t.Errorf("%q", got)
	}
	if a.plan.Kind != domain.KindMove || a.plan.Title != "Move a.txt to b.txt" || len(a.plan.Locations) != 2 || a.plan.Access.Scope != r.at("ws") ||
		len(a.plan.Access.Paths) != 2 || len(a.result.Locations) != 1 || a.result.Locations[0].Path != r.at("ws/b.txt") {
		t.Errorf("plan %+v, result %+v", a.plan, a.result)
	}
	a = r.call("move_file", "source", "b.txt", "destination", "src/main.go", "overwrite", true).want(t, "allow")
	if len(a.plan.Content) != 2 || a.plan.Content[1] != (domain.Diff{Path: r.at("ws/src/main.go"), OldText: "M", NewText: "A"}) {
		t.Errorf("%+v", a.plan.Content)
	}
	a = r.call("move_file", "source", "src/main.go", "destination", r.at("agent/main.go")).want(t, "allow")
	if a.plan.Access.Scope != "" {
		t.Errorf("a move between roots has the scope %s", a.plan.Access.Scope)
	}
}

// TestMove_OnlyWhatWasShown: whatever changes between the question and the
// move stops it.
func TestMove_OnlyWhatWasShown(t *testing.T) {
	file := args("source", "a.txt", "destination", "b.txt", "overwrite", true)
	for name, c := range map[string]struct {
		args   []byte
		change func(r *rig)
		files  map[string]string
	}{
		"the source changed":      {file, func(r *rig) { r.write("ws/a.txt", "AA") }, map[string]string{"ws/a.txt": "AA", "ws/b.txt": "B"}},
		"the destination changed": {file, func(r *rig) { r.write("ws/b.txt", "BB") }, map[string]string{"ws/a.txt": "A", "ws/b.txt": "BB"}},
		"the destination is gone": {file, func(r *rig) { r.must(os.Remove(r.at("ws/b.txt"))) }, map[string]string{"ws/a.txt": "A"}},
		"the destination is there now": {args("source", "a.txt", "destination", "c.txt"), func(r *rig) { r.write("ws/c.txt", "C") },
			map[string]string{"ws/a.txt": "A", "ws/c.txt": "C"}},
		"a link is there now": {args("source", "a.txt", "destination", "c.txt"), func(r *rig) { r.symlink("ws/c.txt", "../out/new") },
			map[string]string{"ws/a.txt": "A"}},
		"something protected came in": {args("source", "src", "destination", "lib"), func(r *rig) { r.write("ws/src/.git/config", "C") },
			map[string]string{"ws/src/.git/config": "C"}},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			r.write("ws/b.txt", "B")
			r.open()
			p, err := r.prepare("move_file", c.args)
			if err != nil {
				t.Fatal(err)
			}
			c.change(r)
			res, err := p.Run(context.Background(), nil)
			if err != nil || !res.Failed {
				t.Errorf("%+v, %v", res, err)
			}
			for p, want := range c.files {
				if got := r.read(p); got != want {
					t.Errorf("%s holds %q, want %q", p, got, want)
				}
			}
			r.absent("out/new")
		})
	}
}

// TestMove_Seen: what the model knows of a file goes with it.
func TestMove_Seen(t *testing.T) {
	r := newRig(t).open()
	r.call("read_file", "path", "src/main.go").want(t, "allow")
	r.call("move_file", "source", "src", "destination", "lib").want(t, "allow")
	r.call("edit_file", "path", "lib/main.go", "old_text", "M", "new_text", "N").want(t, "allow")
	r.write("ws/lib/main.go", "the user's")
	r.call("edit_file", "path", "lib/main.go", "old_text", "user", "new_text", "model").want(t, "error").holds(t, "changed by someone else")
	r.call("move_file", "source", "a.txt", "destination", "lib/main.go", "overwrite", true).want(t, "error").holds(t, "read it again")
	r.call("read_file", "path", "lib/main.go").want(t, "allow")
	r.call("move_file", "source", "a.txt", "destination", "lib/main.go", "overwrite", true).want(t, "allow")
	// The name that was left is free for whatever comes.
	r.write("ws/src/main.go", "new")
	r.call("write_file", "path", "src/main.go", "content", "mine").want(t, "allow")
}
