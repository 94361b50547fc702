package fs

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	iofs "io/fs"
	"os"

	"github.com/berth-dev/berth/core/domain"
)

// maxMissing bounds how many directories one call makes.
const maxMissing = 64

// errChanged: the file is not what it was when the call was prepared.
var errChanged = domain.Errorf(domain.Conflict, "the file was changed by someone else just now; read it again and repeat the change")

// place is where a file is put: an open directory and a name in it, with the
// directories that had to be made on the way.
type place struct {
	dir   *dir
	name  string
	chain []*dir   // the parents of what was made, outermost first; ours
	made  []string // names of directories made, outermost first
}

// placeFor makes the target's missing directories, below its directory and
// through no link, and returns where the file belongs.
func placeFor(t *target) (*place, error) {
	if len(t.missing) > maxMissing {
		return nil, domain.Errorf(domain.InvalidArgument, "%d directories would have to be made; at most %d are", len(t.missing), maxMissing)
	}
	p := &place{dir: t.dir, name: t.name}
	for _, name := range t.missing {
		err := p.dir.mkdir(name, 0o777)
		if err != nil && !errors.Is(err, iofs.ErrExist) {
			p.undo()
			return nil, err
		}
		sub, serr := p.dir.sub(name)
		if serr != nil {
			p.undo()
			return nil, domain.WrapError(domain.Conflict, serr, "the directory "+name+" was put there by someone else just now; try again")
		}
		if err == nil {
			p.made = append(p.made, name)
		} else {
			p.made = append(p.made, "") // there already; not ours to remove
		}
		p.chain = append(p.chain, p.dir)
		p.dir = sub
	}
	return p, nil
}

// undo removes the directories that were made, as far as they are empty, and
// closes the place.
func (p *place) undo() {
	for i := len(p.made) - 1; i >= 0; i-- {
		if p.made[i] == "" || p.chain[i].rmdir(p.made[i]) != nil {
			break
		}
	}
	p.close()
}

// sync makes the made directories durable.
func (p *place) sync() error {
	errs := []error{p.dir.sync()}
	for _, d := range p.chain {
		errs = append(errs, d.sync())
	}
	return errors.Join(errs...)
}

// close closes what was opened here; the target's own directory stays open.
func (p *place) close() {
	for i := range p.chain {
		if i > 0 {
			_ = p.chain[i].close()
		}
	}
	if len(p.chain) > 0 {
		_ = p.dir.close()
	}
	p.chain = nil
}

// put makes the file's content what it should be: as a new file with a random
// name in the same directory, durable before it takes the old one's place. old
// is the file that is replaced, open, and was its description then; nil when
// there must be none. The old file keeps its bytes under its other names.
func (p *place) put(content []byte, old *os.File, was info) error {
	tmp, err := p.temporary(content, old, was)
	if err != nil {
		return err
	}
	if old == nil {
		err = p.dir.settle(tmp, p.dir, p.name)
	} else if now, lerr := p.dir.lstat(p.name); lerr != nil || !now.same(was) {
		err = errChanged
	} else {
		err = p.dir.rename(tmp, p.name)
	}
	if err != nil {
		_ = p.dir.remove(tmp)
		if errors.Is(err, iofs.ErrExist) {
			return errChanged
		}
		return err
	}
	return nil
}

// temporary writes content into a new file and returns its name.
func (p *place) temporary(content []byte, old *os.File, was info) (name string, err error) {
	perm := uint32(0o666)
	if old != nil {
		perm = 0o600
	}
	f, name, err := p.dir.scratch(perm)
	if err != nil {
		return "", err
	}
	defer func() {
		if err != nil {
			_ = f.Close()
			_ = p.dir.remove(name)
		}
	}()
	if _, err := f.Write(content); err != nil {
		return "", err
	}
	if old != nil {
		if err := keepAttributes(f, old, was); err != nil {
			return "", err
		}
	}
	if err := f.Sync(); err != nil {
		return "", err
	}
	return name, f.Close()
}

// scratch creates a file with a name nobody can have guessed.
func (d *dir) scratch(perm uint32) (*os.File, string, error) {
	for {
		var b [12]byte
		_, _ = rand.Read(b[:]) // never fails
		name := ".berth-" + hex.EncodeToString(b[:]) + ".tmp"
		f, err := d.create(name, perm)
		if errors.Is(err, iofs.ErrExist) {
			continue
		}
		if errors.Is(err, iofs.ErrPermission) {
			return nil, "", domain.WrapError(domain.Denied, err,
				"its directory is not writable, and files are only ever replaced by a new file beside them")
		}
		return f, name, err
	}
}

// keepAttributes gives a new file the mode of the old one and, as far as the
// system lets us, its owner and extended attributes. A file that gets another
// owner loses the right to run as its owner.
func keepAttributes(f, old *os.File, was info) error {
	mode := was.mode & (iofs.ModePerm | iofs.ModeSetuid | iofs.ModeSetgid | iofs.ModeSticky)
	if st, err := f.Stat(); err == nil && !sameOwner(st, was) {
		if f.Chown(int(was.uid), int(was.gid)) != nil {
			_ = f.Chown(-1, int(was.gid))
			mode &^= iofs.ModeSetuid | iofs.ModeSetgid
		}
	}
	keepExtended(old, f)
	return f.Chmod(mode)
}
