package sandbox

import (
	"path"
	"strings"

	"golang.org/x/sys/unix"
)

// open opens a path of the new tree without following links.
func (v *view) open(p string, flags uint64) (int, error) {
	rel := strings.TrimPrefix(p, "/")
	if rel == "" {
		rel = "."
	}
	return unix.Openat2(v.base, rel, &unix.OpenHow{
		Flags: unix.O_PATH | unix.O_CLOEXEC | unix.O_NOFOLLOW | flags, Resolve: noLinks | unix.RESOLVE_BENEATH,
	})
}

// directory opens a directory of the new tree and makes what is missing.
func (v *view) directory(p string, replace bool) (int, error) {
	fd, err := v.open(p, unix.O_DIRECTORY)
	if err == nil || p == "/" {
		return fd, err
	}
	parent, perr := v.directory(path.Dir(p), replace)
	if perr != nil {
		return -1, perr
	}
	defer unix.Close(parent)
	name := path.Base(p)
	if err != unix.ENOENT {
		if !replace {
			return -1, err
		}
		if err := unix.Unlinkat(parent, name, 0); err != nil && err != unix.ENOENT {
			return -1, err
		}
	}
	if err := unix.Mkdirat(parent, name, 0o755); err != nil && err != unix.EEXIST {
		return -1, err
	}
	return unix.Openat(parent, name, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
}

// file is like directory, for a file to mount a file on.
func (v *view) file(p string, replace bool) (int, error) {
	parent, err := v.directory(path.Dir(p), replace)
	if err != nil {
		return -1, err
	}
	defer unix.Close(parent)
	name := path.Base(p)
	var st unix.Stat_t
	err = unix.Fstatat(parent, name, &st, unix.AT_SYMLINK_NOFOLLOW)
	if err == nil && st.Mode&unix.S_IFMT == unix.S_IFLNK && replace {
		if err := unix.Unlinkat(parent, name, 0); err != nil {
			return -1, err
		}
		err = unix.ENOENT
	}
	if err == unix.ENOENT {
		fd, err := unix.Openat(parent, name, unix.O_CREAT|unix.O_EXCL|unix.O_WRONLY|unix.O_CLOEXEC, 0o600)
		if err != nil {
			return -1, err
		}
		unix.Close(fd)
	}
	return unix.Openat(parent, name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
}
