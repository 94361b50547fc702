//go:build !linux

package fs

import (
	"errors"
	"io"
)

// each reads the directory, which must be listable, and hands its names over
// in parts, until f returns false.
func (d *dir) each(_ []byte, f func([]dirent) bool) error {
	open, err := d.readable()
	if err != nil {
		return err
	}
	defer func() { _ = open.Close() }()
	for {
		entries, err := open.ReadDir(256)
		list := make([]dirent, 0, len(entries))
		for _, e := range entries {
			list = append(list, dirent{e.Name(), e.Type()})
		}
		if len(list) > 0 && !f(list) {
			return nil
		}
		switch {
		case errors.Is(err, io.EOF), err == nil && len(entries) == 0:
			return nil
		case err != nil:
			return err
		}
	}
}
