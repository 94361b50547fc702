package fs

import (
	"cmp"
	"context"
	"errors"
	iofs "io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/berth-dev/berth/core/domain"
)

// target is where a path leads. It holds the directory open that the last
// name lies in; close it once.
//
// When outside or ban is set and dir is nil, policy ended the walk: nothing
// was opened, and whether the path exists was not looked at.
type target struct {
	dir  *dir
	name string // in dir; "" when the target is dir itself
	// missing are directories to be made below dir, in order, before name can
	// exist. Then found is false.
	missing []string
	found   bool
	info    info // of name, when found

	root    *root    // the root it lies in; nil outside all of them
	names   []string // canonical names below the root
	path    string   // canonical
	show    string   // as the client would spell it
	outside bool
	ban     string // the forbidden path it is or lies in
}

func (t *target) close() {
	if t.dir != nil {
		_ = t.dir.close()
		t.dir = nil
	}
}

// blocked reports whether policy forbids even to look.
func (t *target) blocked() bool { return t.dir == nil }

// protection judges the target's name.
func (t *target) protection() protection { return t.protectionAs(t.names) }

// protectionAs judges other names in the target's place.
func (t *target) protectionAs(names []string) protection {
	if t.root != nil {
		if personaFile(t.root, names) {
			return protected
		}
		return protectionOf(t.root.path, names)
	}
	if len(t.names) == 0 { // policy ended the walk
		names, _ = components(t.path)
	}
	return protectionOf("", names)
}

// personaFile reports whether names below a root are IDENTITY.md or SOUL.md of
// the agent's workspace.
func personaFile(r *root, names []string) bool {
	if r.persona == "" || len(names) == 0 {
		return false
	}
	full := join(r.path, names...)
	last := plainName(filepath.Base(full))
	return filepath.Dir(full) == r.persona && (last == "identity.md" || last == "soul.md")
}

// access is what the permission decision is made on.
func (t *target) access(tool string, class domain.AccessClass, level domain.Level) domain.Access {
	a := domain.Access{Class: class, Tool: tool, Paths: []string{t.path}, Outside: t.outside}
	if t.ban != "" {
		a.Forbidden = forbiddenWords(t.show, t.ban)
	}
	if class == domain.AccessEdit {
		switch t.protection() {
		case protected:
			a.Protected = true
		case askOnly:
			// Where nobody is asked, the level itself was the answer.
			a.Protected = level != domain.LevelFull
		case ordinary:
		}
		if t.root != nil {
			a.Scope = t.root.path
			if t.root.readOnly {
				a.Protected = true
				a.Forbidden = cmp.Or(a.Forbidden, t.show+" belongs to the agent's skills, which tools may read and not change")
			}
		}
	}
	return a
}

// refusal says why nothing may be done with the target, whatever anyone
// answered; "" when something may.
func (t *target) refusal() string {
	switch {
	case t.ban != "":
		return forbiddenWords(t.show, t.ban)
	case t.blocked():
		return t.show + " lies outside the session's directories"
	}
	return ""
}

func forbiddenWords(show, ban string) string {
	if show == ban {
		return show + " is forbidden to tools by the agent's profile"
	}
	return show + " is forbidden to tools by the agent's profile (it belongs to " + ban + ")"
}

// display names the target in titles and messages: relative to the working
// directory when it lies in it.
func (sp *space) display(t *target) string {
	if t.root == &sp.roots[0] {
		if len(t.names) == 0 {
			return "."
		}
		return strings.Join(t.names, string(filepath.Separator))
	}
	return t.show
}

// tries bounds how often a path is walked when the tree changes under it.
const tries = 32

// resolve walks a path as a tool got it.
func (sp *space) resolve(ctx context.Context, path string) (*target, error) {
	return sp.retry(ctx, path, func() (*target, error) { return sp.walk(path) })
}

// retry walks until the tree holds still.
func (sp *space) retry(ctx context.Context, path string, walk func() (*target, error)) (*target, error) {
	for range tries {
		t, err := walk()
		if !errors.Is(err, errMoved) {
			return t, err
		}
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
	}
	return nil, domain.Errorf(domain.Denied, "%s keeps changing while it is looked up; try again", brief(path))
}

// openFile resolves a path and opens the regular file there, in one act. The
// file is nil when policy blocks the target or nothing is there yet.
func (sp *space) openFile(ctx context.Context, path string) (*target, *os.File, error) {
	var file *os.File
	t, err := sp.retry(ctx, path, func() (*target, error) {
		t, err := sp.walk(path)
		if err != nil || t.blocked() || !t.found {
			return t, err
		}
		if file, err = sp.open(ctx, t); err != nil {
			t.close()
			return nil, err
		}
		return t, nil
	})
	return t, file, err
}

// open opens a found target for reading. When the open file turns out to be a
// forbidden one, t.ban is set and no file is returned.
func (sp *space) open(ctx context.Context, t *target) (*os.File, error) {
	show := sp.display(t)
	if t.name == "" || t.info.mode.IsDir() {
		return nil, domain.Errorf(domain.InvalidArgument, "%s is a directory; list_directory shows what is in it", show)
	}
	if !t.info.mode.IsRegular() {
		return nil, domain.Errorf(domain.Denied, "%s is %s; only regular files can be read and written", show, kindOf(t.info.mode))
	}
	f, i, err := t.dir.open(t.name)
	switch {
	case errors.Is(err, errMoved), errors.Is(err, iofs.ErrNotExist):
		return nil, errMoved // it was there a moment ago
	case err != nil:
		return nil, systemError(show, err)
	case i.id != t.info.id || !i.mode.IsRegular():
		_ = f.Close()
		return nil, errMoved
	}
	t.info = i
	if ban, err := sp.guard.linked(ctx, i); err != nil || ban != "" {
		_ = f.Close()
		if err != nil {
			return nil, prefixed(show, err)
		}
		t.ban = ban
		return nil, nil
	}
	return f, nil
}

// prefixed puts the file's name before a coded message that does not begin
// with it already.
func prefixed(show string, err error) error {
	var e *domain.Error
	if errors.As(err, &e) && !strings.HasPrefix(e.Msg, show) {
		return domain.WrapError(e.Code, e.Err, show+": "+e.Msg)
	}
	return err
}

// systemError codes what the operating system answered about a path.
func systemError(show string, err error) error {
	switch {
	case errors.Is(err, iofs.ErrNotExist):
		return domain.WrapError(domain.NotFound, err, show+" does not exist")
	case errors.Is(err, iofs.ErrPermission):
		return domain.WrapError(domain.Denied, err, show+": the system does not permit it ("+reason(err)+")")
	}
	return domain.WrapError(domain.InvalidArgument, err, show+": "+reason(err))
}

// reason is the innermost words of a system error, without the names that
// wrappers put around it.
func reason(err error) string {
	var pe *iofs.PathError
	for errors.As(err, &pe) {
		err = pe.Err
	}
	return err.Error()
}
