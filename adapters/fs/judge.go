package fs

import (
	"context"
	"errors"
	iofs "io/fs"
	"path/filepath"
	"slices"

	"github.com/berth-dev/berth/core/domain"
)

// Judge says what the path rules make of a path that a command names. dir is
// the directory the command runs in, absolute and canonical; "" means the
// session's working directory. The path is resolved as the file tools do it,
// links followed, and nothing is kept open. What does not exist is judged by
// where it would be. A path that cannot be one is WhereForbidden.
//
// Below level full a way that leads out of the roots is WhereOutside even if
// a link leads back in, as it is for the file tools.
func (d *Disk) Judge(ctx context.Context, s domain.Session, dir, path string) domain.Place {
	full, err := d.fullPath(s, dir, path)
	if err != nil {
		return domain.Place{Path: path, Why: messageOf(err)}
	}
	sp, err := d.spaceFor(s)
	if err != nil {
		return domain.Place{Path: full, Why: messageOf(err)}
	}
	defer sp.drop()
	if clean := filepath.Clean(full); usableDevice(clean) && !slices.Contains(sp.guard.paths, clean) {
		return domain.Place{Path: clean, Where: domain.WhereInside, Exists: true}
	}
	t, err := sp.retry(ctx, path, func() (*target, error) {
		return sp.follow(full, &walk{sp: sp, asked: path, judging: true})
	})
	if err != nil {
		return sp.byName(ctx, full, err)
	}
	defer t.close()
	return sp.placeOf(ctx, t)
}

// fullPath makes an absolute path of what a command in dir names.
func (d *Disk) fullPath(s domain.Session, dir, path string) (string, error) {
	if dir == "" {
		dir = s.Cwd
	}
	if path == "" {
		return "", checkSyntax(path)
	}
	full, err := expandHome(path, d.conf.Home)
	if err != nil {
		return "", err
	}
	if !filepath.IsAbs(full) && !halfAbsolute(full) {
		if dir == "" {
			return "", domain.Errorf(domain.InvalidArgument, "The session has no working directory")
		}
		full = dir + string(filepath.Separator) + full
	}
	return full, checkSyntax(full)
}

// placeOf describes where a judging walk arrived.
func (sp *space) placeOf(ctx context.Context, t *target) domain.Place {
	p := domain.Place{Path: t.path, Where: domain.WhereInside, Root: sp.holdsRoot(t.path)}
	here := t.info
	if t.found && t.name == "" && t.dir != nil {
		var err error
		if here, err = t.dir.stat(); err != nil {
			return domain.Place{Path: t.path, Root: p.Root, Why: t.show + ": " + reason(err)}
		}
	}
	if ban := t.ban; ban != "" {
		if here.mode&iofs.ModeCharDevice != 0 && plainDevice(t.path) && !slices.Contains(sp.guard.paths, t.path) {
			return domain.Place{Path: t.path, Where: domain.WhereInside, Exists: true}
		}
		p.Where, p.Why = domain.WhereForbidden, forbiddenWords(t.show, ban)
		return p
	}
	if t.outside {
		p.Where = domain.WhereOutside
	}
	p.Protected = t.access("", domain.AccessEdit, sp.pol.Level).Protected
	if !t.found {
		return p
	}
	p.Exists, p.Dir = true, here.mode.IsDir()
	if p.Dir {
		p.Root = p.Root || sp.isRoot(here.id)
		return p
	}
	if !here.mode.IsRegular() {
		return p
	}
	if ban, err := sp.guard.linked(ctx, here); err != nil {
		p.Where, p.Why = domain.WhereForbidden, t.show+": "+messageOf(err)
	} else if ban != "" {
		p.Where, p.Why = domain.WhereForbidden, forbiddenWords(t.show, ban)
	}
	return p
}

// byName judges a path that the walk got stuck on, such as one through a
// directory that may not be entered or through a loop of links. Nobody else
// gets further either; only the name is left to look at.
func (sp *space) byName(ctx context.Context, full string, stuck error) domain.Place {
	clean := filepath.Clean(full)
	p := domain.Place{Path: canonical(clean), Where: domain.WhereOutside}
	p.Root = sp.holdsRoot(p.Path)
	for _, name := range []string{clean, p.Path} {
		if ban := sp.guard.named(name); ban != "" {
			p.Where, p.Why = domain.WhereForbidden, forbiddenWords(name, ban)
			return p
		}
	}
	if ctx.Err() != nil || domain.HasCode(stuck, domain.Denied) && !errors.Is(stuck, iofs.ErrPermission) {
		p.Where, p.Why = domain.WhereForbidden, messageOf(stuck)
		return p
	}
	t := target{path: p.Path, show: p.Path, outside: true}
	if r, names, ok := sp.locate(p.Path); ok {
		if r.ban != "" {
			p.Where, p.Why = domain.WhereForbidden, forbiddenWords(p.Path, r.ban)
			return p
		}
		t.root, t.names, t.outside = r, names, false
		p.Where = domain.WhereInside
	}
	p.Protected = t.access("", domain.AccessEdit, sp.pol.Level).Protected
	return p
}

// holdsRoot reports whether a canonical path is a root or the home directory,
// or one of them lies in it.
func (sp *space) holdsRoot(path string) bool {
	for i := range sp.roots {
		if _, in := below(path, sp.roots[i].path); in {
			return true
		}
	}
	if home := sp.disk.conf.Home; home != "" {
		for _, name := range []string{filepath.Clean(home), canonical(home)} {
			if _, in := below(path, name); in {
				return true
			}
		}
	}
	return false
}

// isRoot reports whether a directory is a root, whatever it is called.
func (sp *space) isRoot(id fileID) bool {
	return slices.ContainsFunc(sp.roots, func(r root) bool { return r.h != nil && r.h.key.id == id })
}

// plainDevice reports whether path is one of the devices that hold nothing.
func plainDevice(path string) bool {
	switch path {
	case "/dev/null", "/dev/zero", "/dev/random", "/dev/urandom":
		return true
	}
	return false
}

// usableDevice reports whether commands may use what a path below /dev names:
// the plain devices, and the streams the command has anyway.
func usableDevice(path string) bool {
	switch path {
	case "/dev/stdin", "/dev/stdout", "/dev/stderr", "/dev/fd/0", "/dev/fd/1", "/dev/fd/2":
		return true
	}
	return plainDevice(path)
}

// messageOf is what an error tells the model.
func messageOf(err error) string {
	var e *domain.Error
	if errors.As(err, &e) {
		return e.Msg
	}
	return reason(err)
}

// Forbidden returns the forbidden paths that exist now for the session's
// agent, canonical and sorted. The agent's own workspace may lie in one of
// them and is not forbidden for all that.
func (d *Disk) Forbidden(s domain.Session) []string {
	g := d.guardFor(d.policy(s.Agent), s.Workspace)
	var list []string
	for _, path := range g.paths {
		if real, err := filepath.EvalSymlinks(path); err == nil {
			list = append(list, real)
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// WritableRoots returns the roots of a session that can be used now, by their
// canonical paths: the working directory first if it is one of them. Whether
// anything may be written there at all is the level's business.
func (d *Disk) WritableRoots(s domain.Session) []string {
	sp, err := d.spaceFor(s)
	if err != nil {
		return nil
	}
	defer sp.drop()
	var list []string
	for i := range sp.roots {
		if r := &sp.roots[i]; r.h != nil && r.ban == "" && !r.readOnly {
			list = append(list, r.path)
		}
	}
	return list
}
