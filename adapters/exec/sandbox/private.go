package sandbox

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"time"

	"github.com/berth-dev/berth/core/domain"
)

// privateAge is how long the private places of a project stay after their
// last use.
const privateAge = 30 * 24 * time.Hour

// private is where the private home and the copies of caches of a command
// are kept; "" keeps none. Each project has its own: what a command of one
// leaves in them, such as settings of git or of a tool chain, must not run in
// another.
func (s *Sandbox) private(spec *Spec) string {
	if s.cfg.State == "" || spec.ReadOnly {
		return ""
	}
	project := spec.Dir
	if len(spec.Writable) > 0 {
		project = spec.Writable[0]
	}
	sum := sha256.Sum256([]byte(project))
	return filepath.Join(s.cfg.State, "projects", hex.EncodeToString(sum[:12]))
}

// makePrivate makes a private place if it is missing. Its home begins with the
// settings of git in State/home.
func (s *Sandbox) makePrivate(dir string) error {
	home := filepath.Join(dir, "home")
	_, err := os.Lstat(home)
	fresh := os.IsNotExist(err)
	if fresh {
		s.prunePrivate(filepath.Dir(dir))
	}
	if err := os.MkdirAll(home, 0o700); err != nil {
		return domain.WrapError(domain.Unavailable, err, "the sandbox cannot keep its files in "+dir)
	}
	now := time.Now()
	_ = os.Chtimes(dir, now, now) // it may be taken for unused otherwise, in a month
	if !fresh {
		return nil
	}
	const settings = ".gitconfig"
	if raw, err := os.ReadFile(filepath.Join(s.cfg.State, "home", settings)); err == nil {
		_ = os.WriteFile(filepath.Join(home, settings), raw, 0o600) // without it git asks for a name
	}
	return nil
}

// prunePrivate removes what was not used for long.
func (s *Sandbox) prunePrivate(dir string) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return
	}
	for _, e := range entries {
		if info, err := e.Info(); err == nil && time.Since(info.ModTime()) > privateAge {
			_ = os.RemoveAll(filepath.Join(dir, e.Name())) // another time otherwise
		}
	}
}
