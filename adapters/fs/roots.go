package fs

import (
	"context"
	"errors"
	iofs "io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/berth-dev/berth/core/domain"
	"github.com/berth-dev/berth/core/ports"
)

// Roots checks and canonicalises the directories of sessions.
type Roots struct{ disk *Disk }

var _ ports.Roots = (*Roots)(nil)

// NewRoots makes the Roots of a disk.
func NewRoots(d *Disk) *Roots { return &Roots{d} }

// Resolve checks what a client asked for, by CONTRACT section 4: "." and the
// configuration directory stand for the agent workspace, as does an omitted
// cwd in a lenient dialect, where a relative one is taken from the process
// directory. Everything else must be an absolute path of a directory that is
// not forbidden.
func (r *Roots) Resolve(_ context.Context, agent domain.Agent, dirs domain.Directories) (domain.Session, error) {
	var s domain.Session
	// Without its workspace an agent can still work in a directory that the
	// client names; a session that needs it is refused with the reason.
	var missing error
	s.Workspace, missing = r.workspace(agent)
	if missing != nil {
		s.Workspace = ""
	}
	var err error
	g := r.disk.guardFor(r.disk.policy(agent.Alias), s.Workspace)
	if s.Cwd, s.CwdGiven, err = r.cwd(g, s.Workspace, dirs); err != nil {
		return domain.Session{}, err
	}
	if s.Cwd == "" {
		return domain.Session{}, missing
	}
	for _, path := range dirs.Additional {
		if !filepath.IsAbs(path) {
			if err := checkSyntax(path); err != nil {
				return domain.Session{}, named("additional directory", path, err)
			}
			return domain.Session{}, domain.Errorf(domain.InvalidArgument, "The additional directory %s is relative; send an absolute path", brief(path))
		}
		real, err := r.directory(g, "additional directory", path)
		if err != nil {
			return domain.Session{}, err
		}
		s.Additional = append(s.Additional, real)
	}
	return s, nil
}

// cwd returns the canonical working directory and its spelling for display.
func (r *Roots) cwd(g *guard, workspace string, dirs domain.Directories) (real, given string, err error) {
	path := dirs.Cwd
	switch {
	case path == "." || (path == "" && dirs.Lenient):
		return workspace, workspace, nil
	case path == "":
		return "", "", domain.Errorf(domain.InvalidArgument, "The working directory is missing; send cwd as an absolute path")
	}
	if err := checkSyntax(path); err != nil {
		return "", "", named("working directory", path, err)
	}
	if !filepath.IsAbs(path) {
		if path[0] == '~' || !dirs.Lenient || r.disk.conf.ProcessDir == "" {
			return "", "", domain.Errorf(domain.InvalidArgument, "The working directory %s is relative; send cwd as an absolute path", brief(path))
		}
		path = filepath.Join(r.disk.conf.ProcessDir, path)
	}
	if conf := r.disk.conf.ConfigDir; conf != "" && canonical(path) == canonical(conf) {
		return workspace, workspace, nil
	}
	if real, err = r.directory(g, "working directory", path); err != nil {
		return "", "", err
	}
	if !displayable(path) {
		return real, real, nil
	}
	return real, filepath.Clean(path), nil
}

// directory checks an absolute path that a client named and returns its
// canonical form. what says which of its paths it is.
func (r *Roots) directory(g *guard, what, path string) (string, error) {
	if err := checkSyntax(path); err != nil {
		return "", named(what, path, err)
	}
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return "", named(what, path, directoryError(err))
	}
	d, err := openPath(real)
	if err != nil {
		return "", named(what, path, directoryError(err))
	}
	_ = d.close()
	if filepath.Dir(real) == real {
		return "", named(what, path, domain.Errorf(domain.InvalidArgument, "it is the top of the file system, which would make everything a workspace; name a project's directory"))
	}
	if ban := g.rootBan(real); ban != "" {
		return "", named(what, path, domain.Errorf(domain.InvalidArgument, "it is forbidden by the agent's profile (it is or lies in %s)", ban))
	}
	return real, nil
}

// directoryError says why a path is no directory that can be used.
func directoryError(err error) error {
	switch {
	case errors.Is(err, iofs.ErrNotExist):
		return domain.WrapError(domain.InvalidArgument, err, "it does not exist")
	case errors.Is(err, errNotDir), errors.Is(err, syscall.ENOTDIR):
		return domain.WrapError(domain.InvalidArgument, err, "it is not a directory")
	case errors.Is(err, errIsLink), errors.Is(err, errMoved):
		return domain.WrapError(domain.InvalidArgument, err, "it changed while it was looked up; try again")
	case errors.Is(err, iofs.ErrPermission):
		return domain.WrapError(domain.InvalidArgument, err, "the system does not permit to open it")
	}
	return domain.WrapError(domain.InvalidArgument, err, reason(err))
}

// named puts which path it was before why it cannot be used.
func named(what, path string, err error) error {
	var e *domain.Error
	if !errors.As(err, &e) {
		return err
	}
	return domain.WrapError(domain.InvalidArgument, e.Err, "The "+what+" "+printable(brief(path))+" cannot be used: "+e.Msg)
}

// workspace makes the agent's workspace if it is missing, readable for its
// owner alone, and returns its canonical path.
func (r *Roots) workspace(agent domain.Agent) (string, error) {
	path := agent.Workspace
	if path == "" {
		return "", domain.Errorf(domain.InvalidArgument, "The agent %s has no workspace directory configured", agent.Alias)
	}
	if !filepath.IsAbs(path) {
		return "", domain.Errorf(domain.InvalidArgument, "The workspace %s of agent %s is relative; configure an absolute path", brief(path), agent.Alias)
	}
	err := os.MkdirAll(path, 0o700)
	var real string
	if err == nil {
		real, err = filepath.EvalSymlinks(path)
	}
	if err != nil {
		return "", named("workspace of agent "+agent.Alias+",", path, directoryError(err))
	}
	for _, own := range []string{r.disk.conf.DataDir, r.disk.conf.ConfigDir} {
		if own != "" && real == canonical(own) {
			return "", domain.Errorf(domain.InvalidArgument,
				"The workspace of agent %s is our own data or configuration directory; configure another", agent.Alias)
		}
	}
	if filepath.Dir(real) == real {
		return "", domain.Errorf(domain.InvalidArgument, "The workspace of agent %s is the top of the file system; configure another", agent.Alias)
	}
	return real, nil
}

// Canonical returns the form that directories are compared in. What does not
// exist keeps its name below what does; a relative path is only cleaned.
func (r *Roots) Canonical(path string) string {
	if !filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	return canonical(path)
}
