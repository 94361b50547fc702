package fs

import (
	"errors"
	iofs "io/fs"
)

// fileID is what a file is, whatever it is called: equal ids, same file.
type fileID struct{ dev, ino uint64 }

// info is what the system says about one directory entry or open file.
type info struct {
	id    fileID
	mode  iofs.FileMode
	size  int64
	links uint64 // names the file has; 0 when unknown
	mtime int64  // nanoseconds
	ctime int64  // nanoseconds; 0 when unknown
	uid   uint32
	gid   uint32
}

// same reports whether nothing has touched the file between two looks.
func (i info) same(o info) bool {
	return i.id == o.id && i.mode == o.mode && i.size == o.size && i.mtime == o.mtime && i.ctime == o.ctime
}

// The answers of a dir that the walk acts on.
var (
	// errIsLink: the name is a symbolic link and was not followed.
	errIsLink = errors.New("is a symbolic link")
	// errNotDir: the name is neither a directory nor a link.
	errNotDir = errors.New("not a directory")
	// errMoved: the tree changed between two steps; walk again.
	errMoved = errors.New("changed while it was looked up")
)

// kindOf names what a file is when it is not a regular one.
func kindOf(m iofs.FileMode) string {
	switch {
	case m.IsDir():
		return "a directory"
	case m&iofs.ModeSymlink != 0:
		return "a symbolic link"
	case m&iofs.ModeNamedPipe != 0:
		return "a named pipe"
	case m&iofs.ModeSocket != 0:
		return "a socket"
	case m&iofs.ModeDevice != 0:
		return "a device"
	case m.IsRegular():
		return "a regular file"
	}
	return "a special file"
}
