package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/berth-dev/berth/bootstrap/internal/tomltree"
)

// maxFile bounds the configuration file.
const maxFile = 1 << 20

// cause returns the bare reason of a file error, for messages that name the
// path themselves.
func cause(err error) error {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		return pe.Err
	}
	return err
}

// readConfig returns the bytes of the configuration file. A file that does
// not exist gives no bytes and found false; every other obstacle is an error,
// because running on defaults would hide the operator's rules.
func readConfig(path string) (data []byte, found bool, err error) {
	info, err := os.Stat(path) // first: opening a pipe that nobody writes to would hang
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, false, nil
	case errors.Is(err, syscall.ENOTDIR):
		return nil, false, fmt.Errorf("%s: a part of this path is a file, not a directory", path)
	case err != nil:
		return nil, false, fmt.Errorf("%s: cannot be read: %w", path, cause(err))
	case info.IsDir():
		return nil, false, fmt.Errorf("%s: is a directory; it should be a TOML file, or not exist", path)
	case !info.Mode().IsRegular():
		return nil, false, fmt.Errorf("%s: is not a regular file", path)
	case othersMayWrite(info):
		return nil, false, fmt.Errorf("%s: can be written by other users, who could make berth run their programs; run: chmod go-w %s", path, path)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, false, fmt.Errorf("%s: cannot be read: %w", path, cause(err))
	}
	defer f.Close()
	data, err = io.ReadAll(io.LimitReader(f, maxFile+1))
	switch {
	case err != nil:
		return nil, false, fmt.Errorf("%s: cannot be read: %w", path, cause(err))
	case len(data) > maxFile:
		return nil, false, fmt.Errorf("%s: is longer than %s", path, sizeText(maxFile))
	case bytes.HasPrefix(data, []byte{0xff, 0xfe}), bytes.HasPrefix(data, []byte{0xfe, 0xff}):
		return nil, false, fmt.Errorf("%s: is UTF-16; save it as UTF-8", path)
	}
	return data, true, nil
}

// readFile reads, parses and, if it is old, migrates the file. The tree is
// nil when there is no file.
func (l *loader) readFile() (*tomltree.Node, error) {
	data, found, err := l.opts.content, l.opts.content != nil, error(nil)
	if !found && l.cfg.ConfigFile != "" {
		data, found, err = readConfig(l.cfg.ConfigFile)
	}
	if err != nil || !found {
		return nil, err
	}
	l.cfg.FileFound = true
	root, err := l.parse(data)
	if err != nil {
		return nil, err
	}
	version, ok := fileVersion(root)
	switch {
	case !ok || version == Version:
		return root, nil // a version that is no number is reported like any other value
	case version > Version:
		return nil, &Error{[]Problem{{Origin: l.at(root.Member("version").At), Key: "version", Message: fmt.Sprintf(
			"%d is newer than this build of berth, which reads versions up to %d; update berth, or use the file that an older one left beside it", version, Version)}}}
	case version < 1:
		return root, nil // out of range, reported like any other value
	}
	m := migration{file: l.cfg.ConfigFile, from: int(version), steps: steps(), dry: l.opts.content != nil || l.opts.place}
	data, warning, err := m.run(data)
	if err != nil {
		return nil, err
	}
	if warning != "" {
		l.cfg.Warnings = append(l.cfg.Warnings, warning)
	}
	return l.parse(data)
}

func (l *loader) parse(data []byte) (*tomltree.Node, error) {
	root, err := tomltree.Parse(tomltree.TrimBOM(data))
	var se *tomltree.SyntaxError
	if errors.As(err, &se) {
		return nil, &Error{[]Problem{{Origin: l.at(se.Pos), Message: se.Msg}}}
	}
	return root, err
}

// at is the origin of a place in the file.
func (l *loader) at(pos tomltree.Pos) Origin {
	return Origin{Layer: FromFile, File: l.cfg.ConfigFile, At: pos}
}

// fileVersion returns the version a file says it has. Without the key it is
// the current one; ok is false when the value is no number.
func fileVersion(root *tomltree.Node) (v int64, ok bool) {
	n := root.Member("version")
	if n == nil {
		return Version, true
	}
	if n.Kind != tomltree.Integer {
		return 0, false
	}
	v, err := n.Int()
	return v, err == nil
}

// replaceFile writes data to path so that a reader sees the old bytes or the
// new ones, whatever happens in between. A symbolic link stays one and its
// target is replaced. Mode bits are kept; a new file is for its owner alone.
func replaceFile(path string, data []byte) error {
	mode := fs.FileMode(0o600)
	if target, err := filepath.EvalSymlinks(path); err == nil {
		path = target
		if info, err := os.Stat(path); err == nil {
			mode = info.Mode().Perm()
		}
	}
	tmp, err := os.CreateTemp(filepath.Dir(path), ".config-*.tmp")
	if err != nil {
		return fmt.Errorf("%s: cannot be replaced: %w", path, cause(err))
	}
	defer os.Remove(tmp.Name()) // gone after the rename
	_, err = tmp.Write(data)
	err = errors.Join(err, tmp.Chmod(mode), tmp.Sync(), tmp.Close())
	if err == nil {
		err = os.Rename(tmp.Name(), path)
	}
	if err != nil {
		return fmt.Errorf("%s: cannot be replaced: %w", path, cause(err))
	}
	return syncDir(filepath.Dir(path))
}

// syncDir makes a rename in dir durable where the system can.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return nil // the rename itself has happened
	}
	defer d.Close()
	_ = d.Sync() // not supported on every system; the file's own bytes are safe
	return nil
}
