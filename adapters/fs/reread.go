package fs

import (
	"context"
	"encoding/hex"
	"errors"
	iofs "io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/berth-dev/berth/core/domain"
)

// Read returns the bytes of a file that was stored, delivered or shown before,
// if it holds them still. A copy in an uploads directory is found wherever the
// session works by now: its name says what it must hold. Any other file is
// read under the session's rules as they are now.
func (b *Blobs) Read(ctx context.Context, s domain.Session, a domain.Attachment) ([]byte, error) {
	if a.Size > maxWhole {
		return nil, errLarge(a.Size)
	}
	var want stamp
	if raw, err := hex.DecodeString(a.SHA256); err != nil || copy(want[:], raw) != len(want) {
		return nil, domain.Errorf(domain.Conflict, "%s has no hash to be known by", a.Path)
	}
	raw, err := b.reread(ctx, s, a)
	switch {
	case errors.Is(err, iofs.ErrNotExist), domain.HasCode(err, domain.NotFound):
		return nil, domain.WrapError(domain.NotFound, err, a.Path+" does not exist any more")
	case err != nil:
		return nil, err
	case int64(len(raw)) != a.Size, stampOf(raw) != want:
		return nil, domain.Errorf(domain.Conflict, "%s holds something else by now", a.Path)
	}
	return raw, nil
}

func (b *Blobs) reread(ctx context.Context, s domain.Session, a domain.Attachment) ([]byte, error) {
	if at, name, ok := storedAt(a); ok {
		return rereadCopy(at, name)
	}
	sp, err := b.disk.spaceFor(s)
	if err != nil {
		return nil, err
	}
	defer sp.drop()
	t, f, err := sp.openFile(ctx, a.Path)
	if err != nil {
		return nil, err
	}
	defer t.close()
	switch {
	case t.refusal() != "", t.outside:
		return nil, domain.Errorf(domain.Denied, "%s may not be read any more", a.Path)
	case f == nil:
		return nil, domain.Errorf(domain.NotFound, "%s does not exist", a.Path)
	}
	defer func() { _ = f.Close() }()
	return rereadAll(f, t.info)
}

// storedAt splits the path of a copy we stored: an uploads directory, and a
// name made of the content's hash.
func storedAt(a domain.Attachment) (at, name string, ok bool) {
	at, name = filepath.Split(a.Path)
	at = filepath.Clean(at)
	stem, _, _ := strings.Cut(name, ".")
	return at, name, filepath.IsAbs(at) && filepath.Base(at) == uploads && stem == a.SHA256 && stem != ""
}

// rereadCopy reads a copy, through no link.
func rereadCopy(at, name string) ([]byte, error) {
	d, err := openPath(canonical(filepath.Dir(at)))
	if err != nil {
		return nil, missingIf(err)
	}
	defer func() { _ = d.close() }()
	u, err := d.sub(uploads)
	if err != nil {
		return nil, missingIf(err)
	}
	defer func() { _ = u.close() }()
	f, i, err := u.open(name)
	if err != nil {
		return nil, missingIf(err)
	}
	defer func() { _ = f.Close() }()
	return rereadAll(f, i)
}

// missingIf makes an error that says there is something else in a file's place
// one that says the file is gone.
func missingIf(err error) error {
	if errors.Is(err, errIsLink) || errors.Is(err, errNotDir) || errors.Is(err, errMoved) {
		return domain.WrapError(domain.NotFound, err, "it is gone")
	}
	return err
}

func rereadAll(f *os.File, i info) ([]byte, error) {
	if !i.mode.IsRegular() {
		return nil, domain.Errorf(domain.Conflict, "it is %s by now", kindOf(i.mode))
	}
	raw, err := readWhole(f, i.size)
	if domain.HasCode(err, domain.TooLarge) {
		return nil, domain.WrapError(domain.Conflict, err, "it has grown")
	}
	return raw, err
}
