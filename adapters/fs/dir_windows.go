package fs

import (
	"errors"
	iofs "io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/windows"
)

// dir is an open directory. Every operation concerns one name directly inside
// it, a single component; os.Root sees to it that none of them leaves it.
type dir struct{ root *os.Root }

// openTop opens the top of the volume that path lies on.
func openTop(path string) (*dir, error) {
	r, err := os.OpenRoot(filepath.VolumeName(path) + `\`)
	if err != nil {
		return nil, err
	}
	return &dir{r}, nil
}

// sub opens the directory name. errIsLink or errNotDir when it is not one.
func (d *dir) sub(name string) (*dir, error) {
	fi, err := d.root.Lstat(name)
	switch {
	case err != nil:
		return nil, err
	case fi.Mode()&iofs.ModeSymlink != 0:
		return nil, errIsLink
	case !fi.IsDir():
		return nil, errNotDir // also a mount point or another reparse point
	}
	r, err := d.root.OpenRoot(name)
	if err != nil {
		return nil, err
	}
	return &dir{r}, nil
}

// again returns a second, independent handle of the same directory.
func (d *dir) again() (*dir, error) {
	r, err := d.root.OpenRoot(".")
	if err != nil {
		return nil, err
	}
	return &dir{r}, nil
}

// stat describes the directory itself.
func (d *dir) stat() (info, error) {
	f, err := d.root.Open(".")
	if err != nil {
		return info{}, err
	}
	defer func() { _ = f.Close() }()
	return infoOf(f)
}

// lstat describes name, which may be a link. Only regular files and
// directories get an id.
func (d *dir) lstat(name string) (info, error) {
	fi, err := d.root.Lstat(name)
	if err != nil {
		return info{}, err
	}
	i := info{mode: fi.Mode(), size: fi.Size(), mtime: fi.ModTime().UnixNano()}
	if !fi.Mode().IsRegular() && !fi.IsDir() {
		return i, nil
	}
	f, err := d.root.Open(name)
	if err != nil {
		return i, nil //nolint:nilerr // described as far as it can be
	}
	defer func() { _ = f.Close() }()
	return infoOf(f)
}

// statPath describes what a path leads to, links followed.
func statPath(path string) (info, error) {
	f, err := os.Open(path)
	if err != nil {
		return info{}, err
	}
	defer func() { _ = f.Close() }()
	return infoOf(f)
}

// readlink returns the text of the link name; errMoved when it is not one.
func (d *dir) readlink(name string) (string, error) {
	fi, err := d.root.Lstat(name)
	if err != nil {
		return "", err
	}
	if fi.Mode()&iofs.ModeSymlink == 0 {
		return "", errMoved
	}
	return d.root.Readlink(name)
}

// open opens name for reading; a link is not followed. The caller must look
// at the returned info before it reads.
func (d *dir) open(name string) (*os.File, info, error) {
	fi, err := d.root.Lstat(name)
	switch {
	case err != nil:
		return nil, info{}, err
	case fi.Mode()&iofs.ModeSymlink != 0:
		return nil, info{}, errMoved
	}
	f, err := d.root.Open(name)
	if err != nil {
		return nil, info{}, err
	}
	inf, err := infoOf(f)
	if err != nil {
		_ = f.Close()
		return nil, info{}, err
	}
	return f, inf, nil
}

// create makes the new file name for writing; it must not exist.
func (d *dir) create(name string, perm uint32) (*os.File, error) {
	return d.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, os.FileMode(perm))
}

// mkdir makes the directory name.
func (d *dir) mkdir(name string, perm uint32) error { return d.root.Mkdir(name, os.FileMode(perm)) }

// remove removes the file or link name.
func (d *dir) remove(name string) error { return d.root.Remove(name) }

// rmdir removes the empty directory name.
func (d *dir) rmdir(name string) error { return d.root.Remove(name) }

// rename puts from in the place of to, which is replaced if it exists.
func (d *dir) rename(from, to string) error { return d.root.Rename(from, to) }

// renameTo puts from in the place of name in another directory, which is
// replaced if it exists. The system has no such call for two open directories
// here, so their paths are used: a directory that is exchanged in that moment
// is not noticed.
func (d *dir) renameTo(from string, to *dir, name string) error {
	if d == to {
		return d.rename(from, name)
	}
	return os.Rename(filepath.Join(d.root.Name(), from), filepath.Join(to.root.Name(), name))
}

// settle gives what is called from a name in the directory to, which must not
// exist there.
func (d *dir) settle(from string, to *dir, name string) error {
	if d == to {
		err := d.root.Link(from, name)
		switch {
		case err == nil:
			return d.root.Remove(from)
		case errors.Is(err, iofs.ErrExist):
			return err
		}
	}
	if _, lerr := to.root.Lstat(name); lerr == nil {
		return iofs.ErrExist
	} else if !errors.Is(lerr, iofs.ErrNotExist) {
		return lerr
	}
	return d.renameTo(from, to, name)
}

// otherDevice reports whether an error says that a name cannot move there
// because that is another volume.
func otherDevice(err error) bool { return errors.Is(err, windows.ERROR_NOT_SAME_DEVICE) }

// mount is unknown here; the walk enters no reparse point anyway.
func (d *dir) mount() uint64 { return 0 }

// mayWrite reports whether the system would let us write to the file name.
func (d *dir) mayWrite(name string) bool {
	f, err := d.root.OpenFile(name, os.O_WRONLY, 0)
	if err != nil {
		return false
	}
	return f.Close() == nil
}

// readable opens the directory for listing.
func (d *dir) readable() (*os.File, error) { return d.root.Open(".") }

// sync has nothing to do: Windows keeps directory entries in its own journal.
func (d *dir) sync() error { return nil }

func (d *dir) close() error { return d.root.Close() }

func infoOf(f *os.File) (info, error) {
	fi, err := f.Stat()
	if err != nil {
		return info{}, err
	}
	var h windows.ByHandleFileInformation
	if err := windows.GetFileInformationByHandle(windows.Handle(f.Fd()), &h); err != nil {
		return info{}, err
	}
	return info{
		id:   fileID{uint64(h.VolumeSerialNumber), uint64(h.FileIndexHigh)<<32 | uint64(h.FileIndexLow)},
		mode: fi.Mode(), size: fi.Size(), links: uint64(h.NumberOfLinks), mtime: fi.ModTime().UnixNano(),
	}, nil
}

// sameOwner is always true: ownership is not carried over here.
func sameOwner(iofs.FileInfo, info) bool { return true }
