package fs

import (
	"bytes"
	"encoding/binary"
	"errors"

	"golang.org/x/sys/unix"
)

// Places in an entry as getdents64 writes it.
const (
	direntLength = 16 // after inode and offset
	direntType   = 18
	direntName   = 19
)

// each reads the directory, which must be listable, and hands its names over
// in parts, until f returns false. buf is scratch space.
func (d *dir) each(buf []byte, f func([]dirent) bool) error {
	var list []dirent
	for {
		n, err := unix.Getdents(d.fd, buf)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil:
			return err
		case n == 0:
			return nil
		}
		list = list[:0]
		for b := buf[:n]; len(b) > direntName; {
			size := int(binary.NativeEndian.Uint16(b[direntLength:]))
			if size <= direntName || size > len(b) {
				return errors.New("the system returned a broken directory entry")
			}
			name := b[direntName:size]
			if end := bytes.IndexByte(name, 0); end >= 0 {
				name = name[:end]
			}
			if s := string(name); s != "." && s != ".." && s != "" {
				list = append(list, dirent{s, typeOf(b[direntType])})
			}
			b = b[size:]
		}
		if !f(list) {
			return nil
		}
	}
}
