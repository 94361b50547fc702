package fs

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	"github.com/berth-dev/berth/core/domain"
)

// FuzzWorkspacePath feeds paths to the resolver, over a tree with every kind
// of link. Whatever the path: no panic, a coded error or a target that lies
// where it says, nothing outside opened, no descriptor kept.
func FuzzWorkspacePath(f *testing.F) {
	r := newRig(f)
	r.symlink("ws/up", "..")
	r.symlink("ws/top", "/")
	r.symlink("ws/abs", r.at("ws/src"))
	r.symlink("ws/leak", r.at("out"))
	r.symlink("ws/loop", "loop")
	r.symlink("ws/src/self", ".")
	r.symlink("ws/dangling", "../out/none")
	r.open()
	for _, seed := range []string{
		"a.txt", "./src/../a.txt", "..", "../", "/", "", "~", "~/x", "~root", "a\x00b", "up/ws/a.txt", "top" + r.at("ws/a.txt"), "abs/main.go", "leak/secret.txt",
		"loop", "src/self/self/self/main.go", "dangling", "C:\\x", "c:/x", `..\out`, "a.txt/", "a.txt/.", "new/deep/x", "new/../x", "private/x", ".git/config",
		r.at("ws"), r.at("ws/a.txt"), r.at("out/../ws/a.txt"), "//" + r.at("ws"), "/proc/self/cwd", "/dev/fd/0", strings.Repeat("a/", 3000), strings.Repeat("../", 50), "\xff", "a\u200c",
	} {
		f.Add(seed)
	}
	sp, err := r.set.(*workspace).use()
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(sp.drop)
	f.Fuzz(func(t *testing.T, path string) {
		tg, err := sp.resolve(context.Background(), path)
		if err != nil {
			switch domain.CodeOf(err) {
			case domain.InvalidArgument, domain.NotFound, domain.Denied:
			default:
				t.Errorf("%q: %v", path, err)
			}
			return
		}
		defer tg.close()
		if tg.blocked() {
			if !tg.outside && tg.ban == "" {
				t.Errorf("%q is blocked without a reason", path)
			}
			return
		}
		inside := false
		for _, root := range []string{r.at("ws"), r.at("agent")} {
			_, in := below(root, tg.path)
			inside = inside || in
		}
		_, private := below(r.at("ws/private"), tg.path)
		if !inside || tg.outside || private {
			t.Errorf("%q led to %s", path, tg.path)
		}
		if tg.found && canonical(tg.path) != tg.path {
			t.Errorf("%q: %s is not canonical", path, tg.path)
		}
		real, err := tg.dir.stat()
		if err != nil {
			t.Fatal(err)
		}
		at := tg.path
		for range len(tg.missing) + 1 {
			at = filepath.Dir(at)
		}
		if tg.name == "" {
			at = tg.path
		}
		if want, err := statPath(at); err != nil || want.id != real.id {
			t.Errorf("%q: the open directory is not %s", path, at)
		}
	})
}

// FuzzEdit looks for texts that an edit would damage.
func FuzzEdit(f *testing.F) {
	f.Add([]byte("a\r\nb\n"), "a", "x\ny")
	f.Add([]byte("\xEF\xBB\xBFa\r\r\n\xE9"), "a\n", "")
	f.Fuzz(func(t *testing.T, raw []byte, old, put string) {
		d := newDoc(raw)
		got, at, err := d.apply(edit{old: old, put: put})
		if err != nil {
			if !domain.HasCode(err, domain.InvalidArgument) {
				t.Error(err)
			}
			return
		}
		if len(at) != 1 {
			t.Fatalf("applied %d times", len(at))
		}
		// Nothing before the place changes but by what follows it, and the
		// reverse; a carriage return beside the place may join a new line end.
		head := d.raw[:d.at(at[0])]
		if len(got) < len(head) || string(got[:len(head)]) != string(head) {
			t.Errorf("%q became %q: the bytes before the place changed", raw, got)
		}
	})
}
