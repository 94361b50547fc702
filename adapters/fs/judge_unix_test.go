//go:build unix

package fs

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/berth-dev/berth/core/domain"
)

// judgedTree is a tree with everything that a command's path may meet.
func judgedTree(t testing.TB) *rig {
	r := newRig(t)
	r.write("ws/.git/config", "[core]")
	r.write("ws/home/x", "")
	r.write("tmp/f", "T")
	r.symlink("ws/toout", r.at("out"))
	r.symlink("ws/tosecret", "../home/.ssh/id_rsa")
	r.symlink("ws/tonull", "/dev/null")
	r.symlink("ws/inlink", "src")
	r.symlink("ws/loop", "loop")
	r.symlink("ws/dangling", "nowhere/x")
	r.symlink("ws/up", "..")
	r.symlink("tmp/back", r.at("ws/src"))
	if err := os.Link(r.at("home/.ssh/id_rsa"), r.at("ws/hard")); err != nil {
		t.Fatal(err)
	}
	if err := os.Link(r.at("ws/a.txt"), r.at("ws/twin")); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mkfifo(r.at("ws/fifo"), 0o644); err != nil {
		t.Fatal(err)
	}
	return r
}

// words is a Place in short: side, then what is set.
func placeWords(p domain.Place) string {
	words := []string{map[domain.Where]string{
		domain.WhereForbidden: "forbidden", domain.WhereOutside: "outside", domain.WhereInside: "inside",
	}[p.Where]}
	for name, set := range map[string]bool{"exists": p.Exists, "dir": p.Dir, "root": p.Root, "protected": p.Protected} {
		if set {
			words = append(words, name)
		}
	}
	slices.Sort(words[1:])
	return strings.Join(words, " ")
}

func TestJudge(t *testing.T) {
	cases := map[string]struct {
		dir, path string // BASE is put in
		want      string
		full      string // at level full, where it differs
		leads     string // to this, below the base; "" when it is not looked at
	}{
		"a file":                       {path: "a.txt", want: "inside exists", leads: "ws/a.txt"},
		"by its whole path":            {path: "BASE/ws/a.txt", want: "inside exists", leads: "ws/a.txt"},
		"a directory":                  {path: "src", want: "inside dir exists", leads: "ws/src"},
		"from a directory":             {dir: "BASE/ws/src", path: "main.go", want: "inside exists", leads: "ws/src/main.go"},
		"up from a directory":          {dir: "BASE/ws/src", path: "../a.txt", want: "inside exists", leads: "ws/a.txt"},
		"from a directory outside":     {dir: "BASE/tmp", path: "f", want: "outside exists", leads: "tmp/f"},
		"new":                          {path: "n/e/w.txt", want: "inside", leads: "ws/n/e/w.txt"},
		"new directory":                {path: "newdir/", want: "inside", leads: "ws/newdir"},
		"below what is not there":      {path: "n/../a.txt", want: "inside exists", leads: "ws/a.txt"},
		"out by what is not there":     {path: "n/../../out/secret.txt", want: "outside exists", leads: "out/secret.txt"},
		"below a file":                 {path: "a.txt/b", want: "inside", leads: "ws/a.txt/b"},
		"a file as a directory":        {path: "a.txt/", want: "inside exists", leads: "ws/a.txt"},
		"the working directory":        {path: ".", want: "inside dir exists root", leads: "ws"},
		"the directory above":          {path: "..", want: "outside dir exists root", leads: ""},
		"the directory above, by link": {path: "up", want: "outside dir exists root"},
		"the top":                      {path: "/", want: "outside dir exists root"},
		"home":                         {path: "~", want: "outside dir exists root", leads: "home"},
		"below home":                   {path: "~/notes", want: "outside", leads: "home/notes"},
		"another's home":               {path: "~root/x", want: "forbidden"},
		"a file named ~x":              {path: "./~x", want: "inside", leads: "ws/~x"},
		"the agent workspace":          {path: "BASE/agent", want: "inside dir exists root", leads: "agent"},
		"in the agent workspace":       {path: "BASE/agent/notes.md", want: "inside exists", leads: "agent/notes.md"},
		"outside":                      {path: "BASE/out/secret.txt", want: "outside exists", leads: "out/secret.txt"},
		"outside and new":              {path: "BASE/out/new", want: "outside", leads: "out/new"},
		"a sibling's prefix":           {path: "BASE/ws-evil/a.txt", want: "outside exists", leads: "ws-evil/a.txt"},
		"out by a link":                {path: "toout/secret.txt", want: "outside exists", leads: "out/secret.txt"},
		"a link inside":                {path: "inlink/main.go", want: "inside exists", leads: "ws/src/main.go"},
		"out and back":                 {path: "BASE/tmp/back/main.go", want: "outside exists", full: "inside exists", leads: "ws/src/main.go"},
		"a loop":                       {path: "loop", want: "inside"},
		"a dangling link":              {path: "dangling", want: "inside", leads: "ws/nowhere/x"},
		"a pipe":                       {path: "fifo", want: "inside exists", leads: "ws/fifo"},
		"two names, both inside":       {path: "twin", want: "inside exists", leads: "ws/twin"},
		"a hard link to a key":         {path: "hard", want: "forbidden exists"},
		"a link to a key":              {path: "tosecret", want: "forbidden"},
		"a key":                        {path: "~/.ssh/id_rsa", want: "forbidden"},
		"a key that is not there":      {path: "~/.ssh/none", want: "forbidden"},
		"forbidden in the root":        {path: "private/p.txt", want: "forbidden"},
		"forbidden in the root, new":   {path: "private/q/r", want: "forbidden"},
		"our data":                     {path: "BASE/data/x", want: "forbidden"},
		"system":                       {path: "/etc/passwd", want: "forbidden"},
		"system by the back door":      {path: "/usr/../etc/passwd", want: "forbidden"},
		"proc":                         {path: "/proc/self/cwd/a.txt", want: "forbidden"},
		"git's configuration":          {path: ".git/config", want: "inside exists protected", full: "inside exists protected"},
		"a hook that is not there":     {path: ".git/hooks/pre-commit", want: "inside protected"},
		"git's directory":              {path: ".git", want: "inside dir exists protected"},
		"git's head":                   {path: ".git/HEAD", want: "inside"},
		"a workflow":                   {path: ".github/workflows/ci.yml", want: "inside protected", full: "inside"},
		"startup file outside":         {path: "BASE/tmp/.bashrc", want: "outside protected"},
		"null":                         {path: "/dev/null", want: "inside exists"},
		"null, by link":                {path: "tonull", want: "inside exists"},
		"null from its directory":      {dir: "/dev", path: "./null", want: "inside exists"},
		"standard output":              {path: "/dev/stdout", want: "inside exists"},
		"a descriptor":                 {path: "/dev/fd/2", want: "inside exists"},
		"another descriptor":           {path: "/dev/fd/3", want: "forbidden"},
		"a disk":                       {path: "/dev/sda", want: "forbidden"},
		"the network as a file":        {path: "/dev/tcp/h/1", want: "forbidden"},
		"nothing":                      {path: "", want: "forbidden"},
		"a NUL":                        {path: "a\x00b", want: "forbidden"},
		"looks like a drive":           {path: "C:/x", want: "inside", leads: "ws/C:/x"},
	}
	for _, level := range []domain.Level{domain.LevelSupervised, domain.LevelFull} {
		for _, opened := range []bool{true, false} {
			r := judgedTree(t)
			r.pol.Level = level
			r.disk = New(r.conf)
			if opened {
				r.open()
			}
			for name, c := range cases {
				fill := func(s string) string { return strings.ReplaceAll(s, "BASE", r.base) }
				got := r.disk.Judge(t.Context(), r.session, fill(c.dir), fill(c.path))
				want := c.want
				if level == domain.LevelFull && c.full != "" {
					want = c.full
				}
				if placeWords(got) != want {
					t.Errorf("%s (%s, opened %t): %+v is %s, want %s", name, level, opened, got, placeWords(got), want)
				}
				if (got.Where == domain.WhereForbidden) != (got.Why != "") {
					t.Errorf("%s: %+v", name, got)
				}
				if c.leads != "" && got.Path != r.at(c.leads) {
					t.Errorf("%s: leads to %s, want %s", name, got.Path, r.at(c.leads))
				}
			}
			if n := len(r.disk.handles); !opened && n != 0 {
				t.Errorf("%d directories stayed open", n)
			}
		}
	}
}

// TestJudge_AgreesWithTheTools: what a file tool would refuse to read is
// never judged usable, and the other way round.
func TestJudge_AgreesWithTheTools(t *testing.T) {
	for _, level := range []domain.Level{domain.LevelSupervised, domain.LevelFull} {
		r := judgedTree(t)
		r.pol.Level = level
		r.open()
		err := filepath.WalkDir(r.base, func(p string, _ os.DirEntry, err error) error {
			if err != nil {
				return err
			}
			got := r.disk.Judge(context.Background(), r.session, "", p)
			sp, err := r.disk.spaceFor(r.session)
			if err != nil {
				return err
			}
			defer sp.drop()
			tg, f, err := sp.openFile(context.Background(), p)
			if f != nil {
				_ = f.Close()
			}
			if err != nil {
				return nil //nolint:nilerr // a directory, a pipe or a loop: no verdict to compare
			}
			defer tg.close()
			want := domain.WhereInside
			switch {
			case tg.ban != "":
				want = domain.WhereForbidden
			case tg.outside:
				want = domain.WhereOutside
			}
			if got.Where != want && !usableDevice(got.Path) {
				t.Errorf("%s at %s: judged %s, the tools say %d", p, level, placeWords(got), want)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

func TestForSandboxes(t *testing.T) {
	r := judgedTree(t)
	r.pol.AllowedRoots = []string{r.at("tmp"), r.at("none"), r.at("home/.ssh")}
	r.open()
	if got, want := r.disk.WritableRoots(r.session), []string{r.at("ws"), r.at("agent"), r.at("tmp")}; !slices.Equal(got, want) {
		t.Errorf("roots %v, want %v", got, want)
	}
	got := r.disk.Forbidden(r.session)
	for _, path := range []string{r.at("ws/private"), r.at("data"), r.at("conf"), r.at("home/.ssh"), "/etc"} {
		if !slices.Contains(got, path) {
			t.Errorf("%s is missing in %v", path, got)
		}
	}
	if !slices.IsSorted(got) || slices.Contains(got, r.at("home/.gnupg")) {
		t.Errorf("forbidden %v", got)
	}
}

// TestProtectedLists: each name that is handed out is protected, and what is
// handed out cannot be changed from outside.
func TestProtectedLists(t *testing.T) {
	lists := ProtectedNames()
	check := func(path string, want protection) {
		t.Helper()
		names, _ := components(path)
		if got := protectionOf("/ws", names); got != want {
			t.Errorf("%s: %d, want %d", path, got, want)
		}
	}
	for _, n := range lists.Files {
		check("a/"+n, protected)
	}
	for _, n := range lists.Dirs {
		check("a/"+n+"/b", protected)
	}
	for _, n := range lists.GitDirs {
		check("a/.git/modules/m/"+n+"/b", protected)
	}
	for _, n := range lists.GitFiles {
		check(".git/worktrees/w/"+n, protected)
	}
	for _, n := range lists.AskDirs {
		check("a/"+n+"/b", askOnly)
	}
	lists.Files[0], lists.Dirs[0], lists.GitDirs[0], lists.GitFiles[0], lists.AskDirs[0] = "", "", "", "", ""
	check(".git/hooks/x", protected)
	if slices.Contains(ProtectedNames().Files, "") {
		t.Error("the lists are shared")
	}
}

func BenchmarkJudge(b *testing.B) {
	r := judgedTree(b)
	r.open()
	for name, path := range map[string]string{"inside": "src/main.go", "outside": r.at("out/secret.txt"), "forbidden": "/etc/passwd"} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				r.disk.Judge(context.Background(), r.session, "", path)
			}
		})
	}
}
