package sandbox

import (
	"bytes"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/berth-dev/berth/core/domain"
)

// world is a home, a session's root in it, and things that are none of a
// command's business.
type world struct {
	t                                *testing.T
	base, home, root, outside, state string
	box                              *Sandbox
}

// protectedNames are those that the file tools protect, in part.
func protectedNames() []string {
	return []string{".vscode/", ".claude/", ".berth/", ".mcp.json", ".envrc", ".npmrc", ".gitmodules", ".bashrc", ".github/workflows/"}
}

func write(t testing.TB, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func newWorld(t *testing.T, mode string) *world {
	t.Helper()
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	w := &world{
		t: t, base: base, home: filepath.Join(base, "home"), root: filepath.Join(base, "home", "work"),
		outside: filepath.Join(base, "outside"), state: filepath.Join(base, "state"),
	}
	write(t, filepath.Join(w.home, ".bashrc"), "# mine\n")
	write(t, filepath.Join(w.home, ".ssh", "id"), "canary")
	write(t, filepath.Join(w.outside, "secret"), "canary")
	write(t, filepath.Join(w.root, "main.txt"), "hello\n")
	write(t, filepath.Join(w.root, ".git", "HEAD"), "ref: refs/heads/main\n")
	write(t, filepath.Join(w.root, ".git", "config"), "[core]\n\tbare = false\n")
	write(t, filepath.Join(w.root, ".vscode", "settings.json"), "{}")
	write(t, filepath.Join(w.root, "sub", ".git", "hooks", "pre-commit.sample"), "")
	write(t, filepath.Join(w.root, "sub", ".git", "config"), "")
	write(t, filepath.Join(w.root, "keys", "secret"), "canary")
	hidden := []string{filepath.Join(w.home, ".ssh")}
	if mode != Landlock {
		hidden = append(hidden, filepath.Join(w.root, "keys"))
	}
	w.box = New(Config{Mode: mode, Home: w.home, State: w.state, Path: os.Getenv("PATH"), Hidden: hidden, Protected: protectedNames()})
	w.box.breaks.bwrap = os.Getenv("BERTH_TEST_BWRAP") // a bubblewrap that is not installed
	return w
}

// needs skips a test where a backend does not work.
func (w *world) needs() *world {
	w.t.Helper()
	p := w.box.Posture(w.t.Context())
	if !p.Confined() {
		w.t.Skipf("%s does not work here: %s", w.box.cfg.Mode, p.Reason)
	}
	return w
}

// spec is a command line in the root.
func (w *world) spec(line string) Spec {
	self, err := os.Executable()
	if err != nil {
		w.t.Fatal(err)
	}
	return Spec{
		Argv: []string{"/bin/bash", "--noprofile", "--norc", "-c", line}, Dir: w.root, Writable: []string{w.root}, Readable: []string{self},
		Env: []string{"PATH=" + os.Getenv("PATH"), "HOME=" + w.home, "ME=" + self, "OUT=" + w.outside, "LANG=C"},
	}
}

// run runs a command to its end.
func (w *world) run(spec Spec) (Result, string, error) {
	w.t.Helper()
	p, err := w.box.Command(spec)
	if err != nil {
		return Result{}, "", err
	}
	defer p.Close()
	var out bytes.Buffer
	p.Cmd.Stdout, p.Cmd.Stderr = &out, &out
	if err := p.Start(); err != nil {
		return Result{}, out.String(), err
	}
	res, err := p.Wait()
	return res, out.String(), err
}

// mustRun runs a command that starts.
func (w *world) mustRun(spec Spec) (Result, string) {
	w.t.Helper()
	res, out, err := w.run(spec)
	if err != nil {
		w.t.Fatalf("%v\n%s", err, out)
	}
	return res, out
}

func read(t *testing.T, path string) string {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// tree lists what is below dir, with sizes of files.
func tree(t *testing.T, dir string) string {
	t.Helper()
	var b strings.Builder
	filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return nil
		}
		info, err := d.Info()
		if err != nil {
			return nil
		}
		b.WriteString(path + " " + info.Mode().String())
		if info.Mode().IsRegular() {
			raw, _ := os.ReadFile(path)
			b.WriteString(" " + string(raw))
		}
		b.WriteString("\n")
		return nil
	})
	return b.String()
}

// listeners are sockets of ours that nobody may reach.
func (w *world) listeners() (env []string, reached func() []string) {
	w.t.Helper()
	got := make(chan string, 100)
	listen := func(network, address string) net.Listener {
		l, err := net.Listen(network, address)
		if err != nil {
			w.t.Fatal(err)
		}
		w.t.Cleanup(func() { l.Close() })
		go func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				got <- network
				c.Close()
			}
		}()
		return l
	}
	tcp := listen("tcp", "127.0.0.1:0")
	path := filepath.Join(w.outside, "docker.sock")
	listen("unix", path)
	abstract := "@" + filepath.Join(w.base, "abstract")
	listen("unix", abstract)
	udp, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { udp.Close() })
	go func() {
		b := make([]byte, 8)
		for {
			if _, _, err := udp.ReadFrom(b); err != nil {
				return
			}
			got <- "udp"
		}
	}()
	return []string{"TCP=" + tcp.Addr().String(), "UDP=" + udp.LocalAddr().String(), "SOCK=" + path, "ABSTRACT=" + abstract}, func() []string {
		var all []string
		for {
			select {
			case g := <-got:
				all = append(all, g)
			default:
				return all
			}
		}
	}
}

func tool(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		t.Skip(name + " is not installed")
	}
	return path
}

func wantCode(t *testing.T, err error, code domain.Code) {
	t.Helper()
	if !errorsIs(err, code) {
		t.Errorf("error %v, want code %v", err, code)
	}
}
