package fs

import (
	"errors"
	iofs "io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"
)

const (
	// idsFresh is how long the identities of forbidden directories are
	// trusted. A forbidden directory made since is caught by its name.
	idsFresh = time.Second
	// linksFresh is how long a scan for hard links is trusted, unless the
	// file asked about was given a name since.
	linksFresh = time.Minute
	// maxScanned and maxScanTime bound one scan of what is private: it must be
	// complete, or files with several names are refused.
	maxScanned  = 200_000
	maxScanTime = 1500 * time.Millisecond
	// maxAside and maxAsideTime bound what is scanned besides, of the system's
	// directories, as far as it gets.
	maxAside     = 20_000
	maxAsideTime = 300 * time.Millisecond
)

// guard knows what is forbidden to one agent: directories (or files) by name
// and by identity, and the files below them by identity, because a hard link
// gives a file a second name anywhere. The agent's own workspace is the one
// exception. It is safe for concurrent use.
type guard struct {
	paths  []string        // clean and absolute; given and canonical spelling
	system map[string]bool // those of paths that are the system's, not private
	own    string          // canonical agent workspace; "" when it has none

	mu    sync.Mutex
	ids   map[fileID]string // identity to the path that is forbidden
	ownID fileID
	idsAt time.Time
	scans map[uint64]*linkScan // by device
}

// newGuard makes the guard of a policy.
func newGuard(c Config, p Policy, workspace string) *guard {
	g := &guard{own: workspace, system: map[string]bool{}, scans: map[uint64]*linkScan{}}
	system := systemPaths(c.Home)
	for _, path := range forbiddenPaths(c, p, system) {
		for _, name := range []string{path, canonical(path)} {
			if !slices.Contains(g.paths, name) {
				g.paths = append(g.paths, name)
				g.system[name] = slices.Contains(system, path)
			}
		}
	}
	return g
}

// systemPaths are the forbidden directories that belong to the system.
func systemPaths(home string) []string {
	if runtime.GOOS == "windows" {
		return nil
	}
	list := []string{"/etc", "/proc", "/sys", "/boot", "/run", "/var/run", "/dev"}
	if _, in := below("/root", canonical(home)); !in {
		list = append(list, "/root")
	}
	return list
}

// forbiddenPaths is the default list with the policy's changes.
func forbiddenPaths(c Config, p Policy, system []string) []string {
	list := slices.Clone(system)
	if c.Home != "" {
		for _, name := range []string{".ssh", ".gnupg", ".aws", ".config"} {
			list = append(list, filepath.Join(c.Home, name))
		}
	}
	for _, entry := range p.Forbidden {
		name, removes := strings.CutPrefix(entry, "!")
		name = homePath(name, c.Home)
		switch {
		case name == "":
		case removes:
			list = slices.DeleteFunc(list, func(have string) bool { return have == name })
		default:
			list = append(list, name)
		}
	}
	for _, own := range []string{c.ConfigDir, c.DataDir} {
		if own != "" {
			list = append(list, filepath.Clean(own))
		}
	}
	return list
}

// homePath cleans a configured directory; "" when it is not absolute.
func homePath(path, home string) string {
	if path == "~" || strings.HasPrefix(path, "~/") {
		if home == "" {
			return ""
		}
		path = home + path[1:]
	}
	if !filepath.IsAbs(path) {
		return ""
	}
	return filepath.Clean(path)
}

// named reports the forbidden path that an absolute, clean path is or lies
// in, by its name alone.
func (g *guard) named(path string) string {
	if g.own != "" {
		if _, in := below(g.own, path); in {
			return ""
		}
	}
	for _, f := range g.paths {
		if _, in := below(f, sameCase(path, f)); in {
			return f
		}
	}
	return ""
}

// sameCase gives path the letters of f where the system's file names usually
// ignore case and path differs from f in case alone.
func sameCase(path, f string) string {
	if runtime.GOOS != "darwin" && runtime.GOOS != "windows" {
		return path
	}
	if len(path) >= len(f) && strings.EqualFold(path[:len(f)], f) {
		return f + path[len(f):]
	}
	return path
}

// object reports the forbidden path that id is; "" when it is none. own is
// set for the agent's workspace, where a ban above it ends.
func (g *guard) object(id fileID) (ban string, own bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if now := time.Now(); g.ids == nil || now.Sub(g.idsAt) > idsFresh || now.Before(g.idsAt) {
		g.look(now)
	}
	if g.own != "" && id == g.ownID {
		return "", true
	}
	return g.ids[id], false
}

// look finds out what the forbidden paths are now.
func (g *guard) look(now time.Time) {
	ids := make(map[fileID]string, len(g.paths))
	for _, p := range g.paths {
		if i, err := statPath(p); err == nil {
			ids[i.id] = p
		}
	}
	g.ids, g.idsAt, g.ownID = ids, now, fileID{}
	if g.own != "" {
		if i, err := statPath(g.own); err == nil {
			g.ownID = i.id
		}
	}
}

// openPath opens a directory by its canonical path. A link anywhere in it is
// refused: the path was canonical once and is no more.
func openPath(path string) (*dir, error) {
	d, err := openTop(path)
	if err != nil {
		return nil, err
	}
	names, _ := components(path)
	for _, name := range names {
		sub, err := d.sub(name)
		_ = d.close()
		if err != nil {
			return nil, err
		}
		d = sub
	}
	return d, nil
}

// canonical returns path, which is absolute, with all links resolved. What
// does not exist is kept as it is, below what does.
func canonical(path string) string {
	if path == "" {
		return ""
	}
	names, _ := components(path)
	path = join(topOf(path), names...)
	rest := ""
	for at := path; ; {
		if real, err := filepath.EvalSymlinks(at); err == nil {
			return filepath.Clean(real + rest)
		} else if !errors.Is(err, iofs.ErrNotExist) && !errors.Is(err, os.ErrPermission) {
			return filepath.Clean(path)
		}
		up := filepath.Dir(at)
		if up == at {
			return filepath.Clean(path)
		}
		rest = string(filepath.Separator) + filepath.Base(at) + rest
		at = up
	}
}
