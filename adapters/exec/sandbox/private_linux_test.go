package sandbox

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestPrivateHome: what a command leaves in its home is there for the next one
// of the same project and for nobody else.
func TestPrivateHome(t *testing.T) {
	for _, mode := range []string{Namespaces, Landlock} {
		t.Run(mode, func(t *testing.T) {
			w := newWorld(t, mode).needs()
			state := t.TempDir()
			w.box.cfg.State = state
			write(t, filepath.Join(state, "home", ".gitconfig"), "[user]\n\tname = me\n")
			in := func(dir, line string) string {
				t.Helper()
				if err := os.MkdirAll(dir, 0o700); err != nil {
					t.Fatal(err)
				}
				spec := w.spec(line)
				spec.Writable, spec.Dir = []string{dir}, dir
				_, out := w.mustRun(spec)
				return out
			}
			one, other := filepath.Join(w.base, "one"), filepath.Join(w.base, "other")
			if out := in(one, `cat ~/.gitconfig; echo "[core]" > ~/.gitconfig; mkdir -p ~/.config/go; echo evil > ~/.config/go/env`); !strings.Contains(out, "name = me") {
				t.Errorf("the first said %q", out)
			}
			if out := in(one, `cat ~/.gitconfig ~/.config/go/env`); out != "[core]\nevil\n" {
				t.Errorf("the next of the same project said %q", out)
			}
			if out := in(other, `cat ~/.gitconfig; ls -A ~`); strings.Contains(out, "core") || strings.Contains(out, ".config") || !strings.Contains(out, "name = me") {
				t.Errorf("another project said %q", out)
			}
			projects, err := filepath.Glob(filepath.Join(state, "projects", "*"))
			if err != nil || len(projects) != 2 {
				t.Fatalf("%q, %v", projects, err)
			}
			long := time.Now().Add(-2 * privateAge)
			for _, p := range projects {
				if err := os.Chtimes(p, long, long); err != nil {
					t.Fatal(err)
				}
			}
			in(one, "true")
			in(filepath.Join(w.base, "third"), "true")
			if left, _ := filepath.Glob(filepath.Join(state, "projects", "*", "home", ".config")); len(left) != 1 {
				t.Errorf("the project in use has lost its home, or is not alone: %q", left)
			}
			if left, _ := filepath.Glob(filepath.Join(state, "projects", "*")); len(left) != 2 {
				t.Errorf("what was not used for long stays: %q", left)
			}
		})
	}
}
