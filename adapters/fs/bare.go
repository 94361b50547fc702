package fs

import (
	"context"
	"errors"
	iofs "io/fs"

	"github.com/berth-dev/berth/core/domain"
)

// resolveName resolves a path to the name itself: a link that is the last name
// is the target, not what it leads to. The target has a name, unless it is a
// root or the top of the file system.
func (sp *space) resolveName(ctx context.Context, path string) (*target, error) {
	return sp.retry(ctx, path, func() (*target, error) {
		t, err := sp.follow(path, &walk{sp: sp, asked: path, bare: true})
		if err != nil || t.name != "" || t.blocked() || len(t.names) == 0 {
			return t, err
		}
		// The path climbed to a directory, which is found again by its name.
		again := t.path
		t.close()
		if t, err = sp.follow(again, &walk{sp: sp, asked: path, bare: true}); err == nil && t.name == "" && !t.blocked() {
			t.close()
			return nil, errMoved
		}
		return t, err
	})
}

// changeable says why a name may be neither moved nor deleted, whoever is
// asked; "" when it may.
func (sp *space) changeable(t *target) string {
	switch {
	case t.refusal() != "":
		return t.refusal()
	case t.name == "" || sp.holdsRoot(t.path) || t.found && t.info.mode.IsDir() && sp.isRoot(t.info.id):
		return t.show + " is a directory of this session, the home directory, or holds one of them; it is never moved or deleted"
	}
	return ""
}

// inspected is what a name was when a call was prepared, as far as the call
// depends on it.
type inspected struct {
	raw   []byte // of a regular file of at most maxWhole bytes
	whole bool   // raw is the content
	link  string // of a symbolic link
}

// inspect looks at a found target that is no directory. It sets t.ban when the
// file turns out to be a forbidden one.
func (sp *space) inspect(ctx context.Context, t *target) (inspected, error) {
	var in inspected
	switch {
	case t.info.mode&iofs.ModeSymlink != 0:
		var err error
		if in.link, err = t.dir.readlink(t.name); errors.Is(err, iofs.ErrNotExist) {
			err = errMoved
		}
		return in, err
	case !t.info.mode.IsRegular() || t.info.size > maxWhole && t.info.links < 2:
		return in, nil
	}
	f, err := sp.open(ctx, t)
	if errors.Is(err, iofs.ErrPermission) {
		return in, nil // what may be unlinked need not be readable
	}
	if err != nil || f == nil {
		return in, err
	}
	defer func() { _ = f.Close() }()
	if t.info.size > maxWhole {
		return in, nil
	}
	in.raw, err = readWhole(f, t.info.size)
	in.whole = err == nil
	if domain.HasCode(err, domain.TooLarge) {
		err = nil
	}
	return in, err
}

// still fails with errChanged unless the target's name is what it was when it
// was inspected.
func (in *inspected) still(t *target) error {
	now, err := t.dir.lstat(t.name)
	switch {
	case errors.Is(err, iofs.ErrNotExist):
		return errGone
	case err != nil:
		return err
	case now.id != t.info.id || now.mode != t.info.mode || now.size != t.info.size:
		return errChanged
	case t.info.mode&iofs.ModeSymlink != 0:
		if link, err := t.dir.readlink(t.name); err != nil || link != in.link {
			return errChanged
		}
	case in.whole:
		f, i, err := t.dir.open(t.name)
		if err != nil {
			return errChanged
		}
		defer func() { _ = f.Close() }()
		if raw, err := readWhole(f, i.size); err != nil || i.id != t.info.id || stampOf(raw) != stampOf(in.raw) {
			return errChanged
		}
	case now.mtime != t.info.mtime:
		return errChanged
	}
	return nil
}

var errGone = domain.Errorf(domain.NotFound, "it was moved or deleted by someone else just now")

// describe says what kind of thing a target is, with its size.
func (in *inspected) describe(t *target) string {
	switch mode := t.info.mode; {
	case mode&iofs.ModeSymlink != 0:
		return "symbolic link to " + printable(in.link)
	case mode.IsRegular() && in.whole && notText(in.raw, false) != "":
		return "binary file, " + bytesWords(t.info.size)
	case mode.IsRegular():
		return "file, " + bytesWords(t.info.size)
	case mode.IsDir():
		return "directory"
	}
	return kindOf(t.info.mode)
}

// text is the content as a person reads it; false when it is not text, or too
// much of it.
func (in *inspected) text() ([]byte, bool) {
	if !in.whole || len(in.raw) > maxDiff || notText(in.raw, false) != "" {
		return nil, false
	}
	return newDoc(in.raw).text, true
}

func shownText(text string) []domain.CallContent {
	return []domain.CallContent{domain.ContentBlock{Block: domain.Text{Text: text}}}
}

// merge makes one access of those of both ends of a move.
func merge(a, b domain.Access) domain.Access {
	a.Paths = append(a.Paths, b.Paths...)
	a.Outside = a.Outside || b.Outside
	a.Protected = a.Protected || b.Protected
	if a.Forbidden == "" {
		a.Forbidden = b.Forbidden
	}
	if a.Scope != b.Scope {
		a.Scope = "" // no one root says where it happens
	}
	return a
}

// guardedBy adds what lies in a directory to the access that its own name
// asks for.
func guardedBy(a *domain.Access, s *survey, level domain.Level) {
	switch s.guarded {
	case protected:
		a.Protected = true
	case askOnly:
		a.Protected = a.Protected || level != domain.LevelFull
	case ordinary:
	}
	if a.Forbidden == "" && s.ban != "" {
		a.Forbidden = "it holds " + s.ban + ", which is forbidden to tools by the agent's profile"
	}
}
