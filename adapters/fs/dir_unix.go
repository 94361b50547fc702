//go:build unix

package fs

import (
	"errors"
	iofs "io/fs"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// dir is an open directory. Every operation concerns one name directly inside
// it, a single component, and follows no link.
type dir struct{ fd int }

// openTop opens the top of the file system.
func openTop(string) (*dir, error) { return openDirAt(unix.AT_FDCWD, "/") }

func openDirAt(at int, name string) (*dir, error) {
	fd, err := openat(at, name, dirFlags|unix.O_DIRECTORY, 0)
	if err != nil {
		return nil, err
	}
	return &dir{fd}, nil
}

// openat opens without following a final link, closed on exec.
func openat(at int, name string, flags int, perm uint32) (int, error) {
	for {
		fd, err := unix.Openat(at, name, flags|unix.O_CLOEXEC|unix.O_NOFOLLOW, perm)
		if !errors.Is(err, unix.EINTR) {
			return fd, err
		}
	}
}

// sub opens the directory name. errIsLink or errNotDir when it is not one.
func (d *dir) sub(name string) (*dir, error) {
	s, err := openDirAt(d.fd, name)
	switch {
	case err == nil:
		return s, nil
	case errors.Is(err, unix.ELOOP), errors.Is(err, unix.EMLINK), errors.Is(err, unix.ENOTDIR):
		// Linux says ENOTDIR for a link too.
		inf, lerr := d.lstat(name)
		switch {
		case lerr != nil:
			return nil, lerr
		case inf.mode&iofs.ModeSymlink != 0:
			return nil, errIsLink
		case inf.mode.IsDir():
			return nil, errMoved
		}
		return nil, errNotDir
	}
	return nil, err
}

// again returns a second, independent handle of the same directory.
func (d *dir) again() (*dir, error) {
	fd, err := unix.FcntlInt(uintptr(d.fd), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	return &dir{fd}, nil
}

// stat describes the directory itself.
func (d *dir) stat() (info, error) {
	var st unix.Stat_t
	err := unix.Fstat(d.fd, &st)
	return infoOf(&st), err
}

// lstat describes name, which may be a link.
func (d *dir) lstat(name string) (info, error) {
	var st unix.Stat_t
	for {
		err := unix.Fstatat(d.fd, name, &st, unix.AT_SYMLINK_NOFOLLOW)
		if !errors.Is(err, unix.EINTR) {
			return infoOf(&st), err
		}
	}
}

// statPath describes what a path leads to, links followed.
func statPath(path string) (info, error) {
	var st unix.Stat_t
	for {
		err := unix.Stat(path, &st)
		if !errors.Is(err, unix.EINTR) {
			return infoOf(&st), err
		}
	}
}

// readlink returns the text of the link name; errMoved when it is not one.
func (d *dir) readlink(name string) (string, error) {
	buf := make([]byte, 4096) // PATH_MAX, more than any link can hold
	n, err := unix.Readlinkat(d.fd, name, buf)
	if errors.Is(err, unix.EINVAL) {
		return "", errMoved
	}
	if err != nil {
		return "", err
	}
	return string(buf[:n]), nil
}

// open opens name for reading. It never blocks, whatever name is, and the
// caller must look at the returned info before it reads.
func (d *dir) open(name string) (*os.File, info, error) {
	fd, err := openat(d.fd, name, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY, 0)
	switch {
	case errors.Is(err, unix.ELOOP), errors.Is(err, unix.EMLINK):
		return nil, info{}, errMoved
	case err != nil:
		return nil, info{}, err
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		_ = unix.Close(fd)
		return nil, info{}, err
	}
	inf := infoOf(&st)
	if inf.mode.IsRegular() {
		// Left non-blocking, the file would be offered to the poller in vain.
		if err := unix.SetNonblock(fd, false); err != nil {
			_ = unix.Close(fd)
			return nil, info{}, err
		}
	}
	return os.NewFile(uintptr(fd), name), inf, nil
}

// create makes the new file name for writing; it must not exist.
func (d *dir) create(name string, perm uint32) (*os.File, error) {
	fd, err := openat(d.fd, name, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL, perm)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), name), nil
}

// mkdir makes the directory name.
func (d *dir) mkdir(name string, perm uint32) error { return unix.Mkdirat(d.fd, name, perm) }

// remove removes the file or link name.
func (d *dir) remove(name string) error { return unix.Unlinkat(d.fd, name, 0) }

// rmdir removes the empty directory name.
func (d *dir) rmdir(name string) error { return unix.Unlinkat(d.fd, name, unix.AT_REMOVEDIR) }

// rename puts from in the place of to, which is replaced if it exists and is
// not a directory. A link at to is replaced, not followed.
func (d *dir) rename(from, to string) error { return unix.Renameat(d.fd, from, d.fd, to) }

// renameTo puts from in the place of name in another directory, which is
// replaced if it exists and is not a directory. No link is followed.
func (d *dir) renameTo(from string, to *dir, name string) error {
	return unix.Renameat(d.fd, from, to.fd, name)
}

// settle gives what is called from a name in the directory to, which must not
// exist there. In one step where the system can, so that a process that is
// killed never leaves both.
func (d *dir) settle(from string, to *dir, name string) error {
	err := renameNew(d.fd, from, to.fd, name)
	if err == nil || errors.Is(err, iofs.ErrExist) {
		return err
	}
	err = unix.Linkat(d.fd, from, to.fd, name, 0)
	switch {
	case err == nil:
		return d.remove(from)
	case errors.Is(err, iofs.ErrExist):
		return err
	}
	// Some file systems have no hard links, and directories never have; there
	// the two steps stay two.
	if _, lerr := to.lstat(name); lerr == nil {
		return iofs.ErrExist
	} else if !errors.Is(lerr, iofs.ErrNotExist) {
		return lerr
	}
	return d.renameTo(from, to, name)
}

// otherDevice reports whether an error says that a name cannot move there
// because that is another file system.
func otherDevice(err error) bool { return errors.Is(err, unix.EXDEV) }

// mayWrite reports whether the system would let us write to the file name.
func (d *dir) mayWrite(name string) bool {
	return unix.Faccessat(d.fd, name, unix.W_OK, unix.AT_EACCESS) == nil
}

// readable opens the directory for listing.
func (d *dir) readable() (*os.File, error) {
	fd, err := openat(d.fd, ".", unix.O_RDONLY|unix.O_DIRECTORY, 0)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), "."), nil
}

// sync makes the directory's entries durable. A directory that cannot be
// opened or synced is left to the system.
func (d *dir) sync() error {
	f, err := d.readable()
	if err != nil {
		return nil //nolint:nilerr // a directory may be writable and not readable
	}
	defer func() { _ = f.Close() }()
	err = f.Sync()
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOTSUP) || errors.Is(err, unix.EROFS) {
		return nil
	}
	return err
}

func (d *dir) close() error { return unix.Close(d.fd) }

func infoOf(st *unix.Stat_t) info {
	i := info{
		id: fileID{uint64(st.Dev), uint64(st.Ino)}, size: st.Size, links: uint64(st.Nlink),
		mtime: st.Mtim.Nano(), ctime: st.Ctim.Nano(), uid: st.Uid, gid: st.Gid,
		mode: iofs.FileMode(st.Mode & 0o777),
	}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFDIR:
		i.mode |= iofs.ModeDir
	case unix.S_IFLNK:
		i.mode |= iofs.ModeSymlink
	case unix.S_IFIFO:
		i.mode |= iofs.ModeNamedPipe
	case unix.S_IFSOCK:
		i.mode |= iofs.ModeSocket
	case unix.S_IFCHR:
		i.mode |= iofs.ModeDevice | iofs.ModeCharDevice
	case unix.S_IFBLK:
		i.mode |= iofs.ModeDevice
	case unix.S_IFREG:
	default:
		i.mode |= iofs.ModeIrregular
	}
	if st.Mode&unix.S_ISUID != 0 {
		i.mode |= iofs.ModeSetuid
	}
	if st.Mode&unix.S_ISGID != 0 {
		i.mode |= iofs.ModeSetgid
	}
	if st.Mode&unix.S_ISVTX != 0 {
		i.mode |= iofs.ModeSticky
	}
	return i
}

// sameOwner reports whether a file belongs to whom another one did.
func sameOwner(fi iofs.FileInfo, was info) bool {
	st, ok := fi.Sys().(*syscall.Stat_t)
	return ok && st.Uid == was.uid && st.Gid == was.gid
}
