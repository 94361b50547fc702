package sandbox

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"testing"
)

// BenchmarkCommand is /bin/true under each backend, in a root of a few files
// and in one of a thousand directories; plain is without any of this.
func BenchmarkCommand(b *testing.B) {
	small := filepath.Join(b.TempDir(), "small")
	large := filepath.Join(b.TempDir(), "large")
	for dir, n := range map[string]int{small: 1, large: 1000} {
		for i := range n {
			write(b, filepath.Join(dir, fmt.Sprintf("d%d", i), "file"), "x")
		}
		write(b, filepath.Join(dir, ".git", "config"), "")
		write(b, filepath.Join(dir, ".vscode", "settings.json"), "")
	}
	b.Run("plain", func(b *testing.B) {
		for b.Loop() {
			if err := exec.Command("/bin/true").Run(); err != nil {
				b.Fatal(err)
			}
		}
	})
	for _, mode := range []string{Namespaces, Bubblewrap, Landlock, None} {
		for _, root := range []string{small, large} {
			b.Run(mode+"/"+filepath.Base(root), func(b *testing.B) {
				s := New(Config{Mode: mode, Home: b.TempDir(), State: b.TempDir(), Protected: protectedNames()})
				if p := s.Posture(b.Context()); !p.Confined() && mode != None {
					b.Skip(p.Reason)
				}
				for b.Loop() {
					p, err := s.Command(Spec{Argv: []string{"/bin/true"}, Dir: root, Writable: []string{root}})
					if err != nil {
						b.Fatal(err)
					}
					if err := p.Start(); err != nil {
						b.Fatal(err)
					}
					if res, err := p.Wait(); err != nil || res.Code != 0 {
						b.Fatal(res, err)
					}
				}
			})
		}
	}
}
