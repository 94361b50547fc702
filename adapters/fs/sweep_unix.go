//go:build unix

package fs

import (
	"errors"
	iofs "io/fs"

	"golang.org/x/sys/unix"
)

// listable opens the directory name so that it can be listed; "." is d
// itself. errIsLink or errNotDir when it is not one.
func (d *dir) listable(name string) (*dir, error) {
	fd, err := openat(d.fd, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NONBLOCK, 0)
	switch {
	case err == nil:
		return &dir{fd}, nil
	case errors.Is(err, unix.ELOOP), errors.Is(err, unix.EMLINK), errors.Is(err, unix.ENOTDIR):
		return nil, errNotDir
	}
	return nil, err
}

// slurp reads the regular file name into buf, or into a larger one. judge is
// told what was opened before a byte is read, and again with the first bytes
// of it; an error from it ends the reading.
func (d *dir) slurp(name string, buf []byte, judge func(i info, head []byte) error) ([]byte, error) {
	fd, err := openat(d.fd, name, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY, 0)
	switch {
	case errors.Is(err, unix.ELOOP), errors.Is(err, unix.EMLINK):
		return buf[:0], errMoved
	case err != nil:
		return buf[:0], err
	}
	defer func() { _ = unix.Close(fd) }()
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return buf[:0], err
	}
	i := infoOf(&st)
	if !i.mode.IsRegular() {
		return buf[:0], errMoved
	}
	return fill(buf, i, judge, func(b []byte) (int, error) {
		for {
			n, err := unix.Read(fd, b)
			if !errors.Is(err, unix.EINTR) {
				return max(n, 0), err
			}
		}
	})
}

// typeOf is the type in a directory entry.
func typeOf(t uint8) iofs.FileMode {
	switch t {
	case unix.DT_REG:
		return 0
	case unix.DT_DIR:
		return iofs.ModeDir
	case unix.DT_LNK:
		return iofs.ModeSymlink
	case unix.DT_FIFO:
		return iofs.ModeNamedPipe
	case unix.DT_SOCK:
		return iofs.ModeSocket
	case unix.DT_CHR:
		return iofs.ModeDevice | iofs.ModeCharDevice
	case unix.DT_BLK:
		return iofs.ModeDevice
	}
	return modeUnknown
}
