package fs

import (
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/berth-dev/berth/core/domain"
)

// root is one directory a session may use.
type root struct {
	path  string // canonical
	given string // as the client spells it; shown to people and editors
	// editor is set when the client may hold files of it in its buffers: it
	// named the directory itself.
	editor bool
	// readOnly is set when the tools may read below it and change nothing.
	readOnly bool
	// persona is the agent's workspace, whose own instruction files are
	// protected: what is written there speaks to every later session.
	persona string
	// ban is the forbidden path the root lies in, "" as it should be. A
	// configured root may have become one.
	ban string
	h   *handle // nil when the directory cannot be opened
	err error   // why
}

// space is the roots and rules of one session at one time. It does not
// change; what uses it holds a share, and the last one closes the roots.
type space struct {
	disk  *Disk
	roots []root // cwd first
	guard *guard
	pol   Policy
	refs  atomic.Int64
}

// newSpace opens the roots of a session. A root that cannot be opened is kept
// with the reason; using it fails, the session does not.
func (d *Disk) newSpace(s domain.Session, pol Policy) *space {
	sp := &space{disk: d, guard: d.guardFor(pol, s.Workspace), pol: pol}
	sp.refs.Store(1)
	for _, path := range s.Roots() {
		r := root{path: path, given: path, editor: path != s.Workspace}
		if path == s.Cwd && s.CwdGiven != "" && displayable(s.CwdGiven) {
			r.given = filepath.Clean(s.CwdGiven)
		}
		sp.roots = append(sp.roots, r)
	}
	for _, path := range pol.AllowedRoots {
		if path = canonical(homePath(path, d.conf.Home)); path != "" && !sp.has(path) {
			sp.roots = append(sp.roots, root{path: path, given: path})
		}
	}
	for _, path := range pol.ReadRoots {
		if path = canonical(homePath(path, d.conf.Home)); path != "" && !sp.covers(path) {
			sp.roots = append(sp.roots, root{path: path, given: path, readOnly: true})
		}
	}
	for i := range sp.roots {
		r := &sp.roots[i]
		r.persona = s.Workspace
		if r.h, r.err = d.acquire(r.path); r.err == nil {
			r.ban = sp.guard.rootBan(r.path)
		}
	}
	return sp
}

// displayable reports whether a spelling of a directory can be extended by
// names: it is absolute and does not climb.
func displayable(given string) bool {
	return filepath.IsAbs(given) && !slices.Contains(strings.Split(filepath.ToSlash(given), "/"), "..")
}

func (sp *space) has(path string) bool {
	return slices.ContainsFunc(sp.roots, func(r root) bool { return r.path == path })
}

// covers reports whether a canonical path is a root or lies in one.
func (sp *space) covers(path string) bool {
	return slices.ContainsFunc(sp.roots, func(r root) bool { _, in := below(r.path, path); return in })
}

// share adds a share; it reports false when the space is closed already.
func (sp *space) share() bool {
	for {
		n := sp.refs.Load()
		if n == 0 {
			return false
		}
		if sp.refs.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

// drop gives up a share.
func (sp *space) drop() {
	if sp.refs.Add(-1) > 0 {
		return
	}
	for i := range sp.roots {
		if h := sp.roots[i].h; h != nil {
			sp.disk.release(h)
		}
	}
}

// broken reports whether a root could not be opened, so that it is worth
// trying again.
func (sp *space) broken() bool {
	return slices.ContainsFunc(sp.roots, func(r root) bool { return r.h == nil })
}

// locate finds the root that an absolute path begins with, and the names that
// follow. Among several the deepest wins. A root also goes by other names
// that lead to the very directory we hold open.
func (sp *space) locate(path string) (*root, []string, bool) {
	var best *root
	var rest string
	for i := range sp.roots {
		r := &sp.roots[i]
		for _, name := range []string{r.path, r.given} {
			if left, in := below(name, path); in && (best == nil || len(r.path) > len(best.path)) {
				best, rest = r, left
			}
		}
	}
	if best == nil {
		if best, rest = sp.alias(path); best == nil {
			return nil, nil, false
		}
	}
	names, _ := components(rest)
	return best, names, true
}

// maxAlias bounds the parts of a path that may be another name of a root; each
// costs a look at the disk.
const maxAlias = 256

// alias looks for a root under a name we were not told, such as /tmp/x for
// /private/tmp/x. It only chooses where the walk begins.
func (sp *space) alias(path string) (*root, string) {
	if strings.Count(path, string(filepath.Separator)) > maxAlias || sp.guard.named(filepath.Clean(path)) != "" {
		return nil, ""
	}
	for at := path; ; {
		up := strings.TrimRight(at, string(filepath.Separator))
		cut := strings.LastIndexByte(up, filepath.Separator)
		if cut <= len(filepath.VolumeName(path)) {
			return nil, ""
		}
		if i, err := statPath(up); err == nil && i.mode.IsDir() {
			for n := range sp.roots {
				if r := &sp.roots[n]; r.h != nil && r.h.key.id == i.id {
					return r, path[len(up):]
				}
			}
		}
		at = up[:cut]
	}
}

// rootBan reports the forbidden path that a directory is or lies in, by the
// identity of everything above it. The agent's own workspace lifts it.
func (g *guard) rootBan(path string) string {
	ban := ""
	d, err := openTop(path)
	if err != nil {
		return ""
	}
	names, _ := components(path)
	for _, name := range names {
		sub, err := d.sub(name)
		_ = d.close()
		if err != nil {
			return ban
		}
		d = sub
		if i, err := d.stat(); err == nil {
			b, own := g.object(i.id)
			switch {
			case own:
				ban = ""
			case b != "":
				ban = b
			}
		}
	}
	_ = d.close()
	if ban == "" {
		ban = g.named(path)
	}
	return ban
}
