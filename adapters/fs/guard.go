package fs

import (
	"context"
	"errors"
	iofs "io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/berth-dev/berth/core/domain"
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

// linkScan is the files with several names below the forbidden directories
// of one device.
type linkScan struct {
	at    time.Time
	files map[fileID]string
	whole bool // false when the budget ran out
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

// linked reports the forbidden file that an open regular file is too, under
// another name; "" when it is none. An error means it could not be told.
func (g *guard) linked(ctx context.Context, i info) (string, error) {
	if i.links < 2 {
		return "", nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	s := g.scans[i.id.dev]
	now := time.Now()
	// Giving a file a name moves its ctime, to a clock that may lag a little.
	// Windows has no such mark.
	fresh := linksFresh
	if i.ctime == 0 {
		fresh = idsFresh
	}
	stale := s == nil || now.Sub(s.at) > fresh || now.Before(s.at) || i.ctime >= s.at.Add(-time.Second).UnixNano()
	if stale {
		var err error
		if s, err = g.scan(ctx, i.id.dev, now); err != nil {
			return "", err
		}
		g.scans[i.id.dev] = s
	}
	if path, ok := s.files[i.id]; ok {
		return path, nil
	}
	if !s.whole {
		return "", domain.Errorf(domain.Denied,
			"the file has several hard links, and the forbidden directories are too large to rule out that one of them is there")
	}
	return "", nil
}

// scan collects the files with several names below the forbidden directories
// that lie on the device. Hard links never cross devices.
func (g *guard) scan(ctx context.Context, dev uint64, now time.Time) (*linkScan, error) {
	g.look(now)
	s := &linkScan{at: now, files: map[fileID]string{}}
	r := &scanner{ctx: ctx, dev: dev, own: g.ownID, into: s, seen: map[fileID]bool{}, left: maxScanned, until: now.Add(maxScanTime)}
	for _, p := range g.paths {
		if !g.system[p] {
			r.tree(p)
		}
	}
	s.whole = r.left > 0
	r.left, r.until = maxAside, time.Now().Add(maxAsideTime)
	for _, p := range g.paths {
		if g.system[p] {
			r.tree(p)
		}
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return s, nil
}

// scanner is one scan under way. What cannot be entered is passed over: nobody
// made a link out of it through us either.
type scanner struct {
	ctx   context.Context //nolint:containedctx // scanner is one running scan
	dev   uint64
	own   fileID
	into  *linkScan
	seen  map[fileID]bool
	left  int // entries; 0 when the budget is gone
	until time.Time
}

// tree scans a forbidden path.
func (r *scanner) tree(path string) {
	top, err := statPath(path)
	switch {
	case err != nil || top.id.dev != r.dev:
		return
	case !top.mode.IsDir():
		r.into.files[top.id] = path
		return
	}
	if d, err := openPath(canonical(path)); err == nil {
		r.dir(d, path)
	}
}

// dir scans and closes d.
func (r *scanner) dir(d *dir, path string) {
	defer func() { _ = d.close() }()
	self, err := d.stat()
	if err != nil || r.seen[self.id] || self.id == r.own {
		return
	}
	r.seen[self.id] = true
	f, err := d.readable()
	if err != nil {
		return
	}
	defer func() { _ = f.Close() }()
	for {
		names, err := f.Readdirnames(256)
		if r.ctx.Err() != nil || time.Now().After(r.until) {
			r.left = 0
		}
		for _, name := range names {
			if r.left--; r.left <= 0 {
				r.left = 0
				return
			}
			r.entry(d, path, name)
		}
		if err != nil {
			return
		}
	}
}

func (r *scanner) entry(d *dir, path, name string) {
	i, err := d.lstat(name)
	switch {
	case err != nil || i.id.dev != r.dev:
	case i.mode.IsRegular() && i.links > 1:
		r.into.files[i.id] = join(path, name)
	case i.mode.IsDir():
		if sub, err := d.sub(name); err == nil {
			r.dir(sub, join(path, name))
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
