//go:build unix

package sqlite

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/berth-dev/berth/core/domain"
)

func TestOpen_PrivateFiles(t *testing.T) {
	old := syscall.Umask(0)
	defer syscall.Umask(old)
	dir := filepath.Join(t.TempDir(), "data")
	path := filepath.Join(dir, "sessions", "s.db")
	s := openAt(t, path)
	id := mustCreate(t, s, 1)
	if err := s.Acquire(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	seen := 0
	err := filepath.WalkDir(dir, func(name string, e os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		want := os.FileMode(0o600)
		if info.IsDir() {
			want = 0o700
		}
		if got := info.Mode().Perm(); got != want {
			t.Errorf("%s has the mode %v, want %v", name, got, want)
		}
		seen++
		return nil
	})
	if err != nil || seen != 8 { // two directories and instances/, s.db, -wal, -shm, .place, one lock
		t.Errorf("%d files (%v)", seen, err)
	}
	s.Close()
	if err := os.Chmod(path, 0o644); err != nil {
		t.Fatal(err)
	}
	openAt(t, path)
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("a file with wider rights keeps %v (%v)", info.Mode(), err)
	}
}

func TestOpen_PlacesThatCannotBe(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "file"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "directory.db"), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, path := range map[string]string{
		"below a file":        filepath.Join(dir, "file", "s.db"),
		"deep below a file":   filepath.Join(dir, "file", "a", "b", "s.db"),
		"a directory":         filepath.Join(dir, "directory.db"),
		"a device":            "/dev/null",
		"below a pseudo file": "/proc/self/status/s.db",
	} {
		s, err := Open(t.Context(), Config{Path: path})
		if err == nil {
			s.Close()
		}
		if !domain.HasCode(err, domain.StoreUnavailable) || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: open gave %v", name, err)
		}
	}
	if _, err := Open(t.Context(), Config{}); !domain.HasCode(err, domain.InvalidArgument) {
		t.Errorf("no path: open gave %v", err)
	}
}

func TestOpen_OddNames(t *testing.T) {
	for _, name := range []string{"a b", "100%", "what?", "#1", "ünï", "a&b=c", "q'uote\"", "-dash", "%41"} {
		path := filepath.Join(t.TempDir(), name, name+".db")
		s := openAt(t, path)
		mustCreate(t, s, 1)
		if _, err := s.Load(t.Context(), row(1).ID); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		s.Close()
		if _, err := os.Stat(path); err != nil {
			t.Errorf("the file is not where it was asked for: %v", err)
		}
	}
}

// TestOpen_NotWritable opens stores without the right to write. Root may
// write everywhere, so for root another user does it.
func TestOpen_NotWritable(t *testing.T) {
	base := t.TempDir()
	for name, prepare := range map[string]func(dir, path string) error{
		"a directory nobody may write": func(dir, path string) error { return os.Chmod(dir, 0o555) },
		"a file nobody may write": func(dir, path string) error {
			return firstOf(makeStore(t, path), os.Chmod(path, 0o444), os.Chmod(dir, 0o777))
		},
		"a store in a directory nobody may write": func(dir, path string) error {
			return firstOf(makeStore(t, path), os.Chmod(path, 0o666), os.Chmod(dir, 0o555))
		},
		"a file nobody may read": func(dir, path string) error {
			return firstOf(makeStore(t, path), os.Chmod(path, 0), os.Chmod(dir, 0o777))
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir, err := os.MkdirTemp(base, "d")
			if err != nil {
				t.Fatal(err)
			}
			path := filepath.Join(dir, "s.db")
			if err := prepare(dir, path); err != nil {
				t.Fatal(err)
			}
			defer os.Chmod(dir, 0o700)
			c := startCommand(t, asNobody(t, base, path), "start")
			said := c.line()
			c.kill()
			if !strings.HasPrefix(said, "error: store unavailable The session store "+path) {
				t.Errorf("the start said %q", said)
			}
			if strings.Contains(said, "damaged") {
				t.Errorf("a store that may not be written is called damaged: %s", said)
			}
		})
	}
}

func firstOf(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func makeStore(t *testing.T, path string) error {
	s, err := Open(t.Context(), Config{Path: path})
	if err != nil {
		return err
	}
	return s.Close()
}

// asNobody is this test binary run by a user without rights; by the same user
// when that is not root.
func asNobody(t *testing.T, base, path string) *exec.Cmd {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if os.Geteuid() != 0 {
		return exec.Command(exe, path)
	}
	// The binary and the way to it must be there for everybody.
	bin := filepath.Join(base, "test.bin")
	if _, err := os.Stat(bin); err != nil {
		data, err := os.ReadFile(exe)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(bin, data, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for dir := base; dir != filepath.Clean(os.TempDir()) && len(dir) > 1; dir = filepath.Dir(dir) {
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command(bin, path)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	cmd.Dir = "/"
	return cmd
}
