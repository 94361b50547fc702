package sandbox

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/berth-dev/berth/core/domain"
)

// found lists what a scan found, below root.
func (n *names) mustFind(t *testing.T, root string) []string {
	t.Helper()
	s, err := n.scanRoot(root, nil, scanLimit)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, g := range s.found {
		rel, err := filepath.Rel(root, g.path)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, rel)
	}
	slices.Sort(all)
	return all
}

// TestScanRemembers changes a tree in every way that can bring a protected
// name into it, between scans that remember the tree.
func TestScanRemembers(t *testing.T) {
	tests := []struct {
		name   string
		change func(root string) error
		want   []string
	}{
		{"nothing", func(string) error { return nil }, []string{"a/.envrc"}},
		{"a new name", func(r string) error { return os.WriteFile(filepath.Join(r, "a", "b", ".npmrc"), nil, 0o600) }, []string{"a/.envrc", "a/b/.npmrc"}},
		{"a new directory", func(r string) error { return os.MkdirAll(filepath.Join(r, "a", "n", ".vscode"), 0o700) }, []string{"a/.envrc", "a/n/.vscode"}},
		{"a name renamed", func(r string) error {
			return os.Rename(filepath.Join(r, "a", "b", "f"), filepath.Join(r, "a", "b", ".mcp.json"))
		}, []string{"a/.envrc", "a/b/.mcp.json"}},
		{"a name taken away", func(r string) error { return os.Remove(filepath.Join(r, "a", ".envrc")) }, nil},
		{"a directory moved", func(r string) error { return os.Rename(filepath.Join(r, "a"), filepath.Join(r, "c")) }, []string{"c/.envrc"}},
		{"a directory replaced", func(r string) error {
			if err := os.Rename(filepath.Join(r, "a", "b"), filepath.Join(r, "old")); err != nil {
				return err
			}
			return os.MkdirAll(filepath.Join(r, "a", "b", ".claude"), 0o700)
		}, []string{"a/.envrc", "a/b/.claude"}},
		{"times set back", func(r string) error {
			b := filepath.Join(r, "a", "b")
			info, err := os.Stat(b)
			if err != nil {
				return err
			}
			if err := os.WriteFile(filepath.Join(b, ".npmrc"), nil, 0o600); err != nil {
				return err
			}
			return os.Chtimes(b, info.ModTime(), info.ModTime())
		}, []string{"a/.envrc", "a/b/.npmrc"}},
		{"a new repository", func(r string) error { return os.MkdirAll(filepath.Join(r, "a", "b", ".git", "hooks"), 0o700) }, []string{"a/.envrc", "a/b/.git", "a/b/.git/hooks"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			root, err := filepath.EvalSymlinks(t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			write(t, filepath.Join(root, "a", ".envrc"), "")
			write(t, filepath.Join(root, "a", "b", "f"), "")
			n := namesOf(&Config{Protected: protectedNames()})
			n.settled = -time.Hour // trust what was read just now
			first := []string{"a/.envrc"}
			for range 2 {
				if got := n.mustFind(t, root); !slices.Equal(got, first) {
					t.Fatalf("found %v, want %v", got, first)
				}
			}
			if err := tt.change(root); err != nil {
				t.Fatal(err)
			}
			if got := n.mustFind(t, root); !slices.Equal(got, tt.want) {
				t.Errorf("found %v, want %v", got, tt.want)
			}
		})
	}
}

func TestScanFollowsNoLinks(t *testing.T) {
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(base, "outside", ".envrc"), "")
	root := filepath.Join(base, "root")
	if err := os.Mkdir(root, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, target := range map[string]string{"out": "../outside", "loop": ".", "up": ".."} {
		if err := os.Symlink(target, filepath.Join(root, name)); err != nil {
			t.Fatal(err)
		}
	}
	n := namesOf(&Config{Protected: protectedNames()})
	if got := n.mustFind(t, root); len(got) > 0 {
		t.Errorf("found %v through links", got)
	}
}

// TestScanLimit: what lies beyond the directories that are looked through is
// not left open.
func TestScanLimit(t *testing.T) {
	root := t.TempDir()
	for i := range 20 {
		if err := os.MkdirAll(filepath.Join(root, "d"+string(rune('a'+i)), "e"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	s := &Sandbox{system: system{names: namesOf(&Config{Protected: []string{".envrc", ".husky/", "hook.yml"}})}}
	s.system.names.limit = 41
	p := &plan{write: []string{root}}
	if err := s.guard(p, &Spec{}); err != nil {
		t.Fatal(err)
	}
	// A command makes more than is looked through before one, and in it what
	// is protected.
	deep := filepath.Join(root, "da", "e", "f", "g")
	if err := os.MkdirAll(deep, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{".envrc", "HOOK.yml", "hook.yml.md"} {
		if err := os.WriteFile(filepath.Join(deep, name), []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	u := &undoing{names: s.system.names}
	u.root(p.before[0], nil)
	slices.Sort(u.undone)
	if want := []string{filepath.Join(deep, ".envrc"), filepath.Join(deep, "HOOK.yml")}; !slices.Equal(u.undone, want) {
		t.Errorf("undone %q, want %q", u.undone, want)
	}
	if err := s.guard(&plan{write: []string{root}}, &Spec{Writable: []string{root}}); !domain.HasCode(err, domain.Denied) {
		t.Errorf("a root with too many directories: %v", err)
	}
}
