package exec

import (
	"cmp"
	"errors"
	iofs "io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/berth-dev/berth/core/domain"
	"github.com/berth-dev/berth/core/ports"
)

const (
	// maxFile is the longest output that goes to a file, in bytes.
	maxFile = 256 << 20
	// maxFiles is how much the files of one session may hold together, in
	// bytes; the oldest go first.
	maxFiles = 512 << 20
	// outputsName is the directory below an agent's workspace.
	outputsName = "outputs"
	// outputsAge is how long the outputs of a session stay after its last one.
	outputsAge = 7 * 24 * time.Hour
)

// outputDir is where the outputs of one session go that are too long for a
// model: <workspace>/outputs/<session>/. The directory is made for the first
// of them. Commands can write to the workspace: it is opened each time, no
// name in it leads out of it, and no file is ever opened that was there
// before.
type outputDir struct {
	workspace string // canonical; "" when the session has none
	session   domain.SessionID
	clock     ports.Clock
	newID     ports.IDs

	mu    sync.Mutex
	held  int64 // bytes in files
	files []*outputFile
	swept bool
}

func (d *outputDir) dir() string { return filepath.Join(outputsName, string(d.session)) }

// outputFile is one output. All methods but path are called by one goroutine
// at a time.
type outputFile struct {
	of   *outputDir
	path string // "" when there is no file
	name string // below the workspace
	f    *os.File
	size int64
	why  string // why the file does not hold everything
	done bool
}

// create makes a new file. It never fails: without a file, why says so.
func (d *outputDir) create(name string) *outputFile {
	o := &outputFile{of: d, done: true}
	if d.workspace == "" {
		o.why = "the session has no workspace"
		return o
	}
	root, err := os.OpenRoot(d.workspace)
	if err != nil {
		o.why = reasonOf(err)
		return o
	}
	defer func() { _ = root.Close() }()
	d.sweepOnce(root)
	if err := root.MkdirAll(d.dir(), 0o700); err != nil {
		o.why = reasonOf(err)
		return o
	}
	o.name = filepath.Join(d.dir(), name+"-"+short(d.newID())+".txt")
	o.f, err = root.OpenFile(o.name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		o.why = reasonOf(err)
		return o
	}
	o.path, o.done = filepath.Join(d.workspace, o.name), false
	d.mu.Lock()
	d.files = append(d.files, o)
	d.mu.Unlock()
	return o
}

func short(id string) string {
	id = strings.ReplaceAll(id, "-", "")
	return id[:min(8, len(id))]
}

// write appends, as long as there is room.
func (o *outputFile) write(p []byte) {
	if o.done || o.why != "" {
		return
	}
	if room := maxFile - o.size; int64(len(p)) > room {
		p = wholeRunes(p[:room])
		o.why = "only its first 256 MiB were kept"
	}
	n, err := o.f.Write(p)
	o.size += int64(n)
	if err != nil {
		o.why = reasonOf(err)
	}
}

// close ends the file and makes room for it.
func (o *outputFile) close() {
	if o.done {
		return
	}
	o.done = true
	if err := o.f.Close(); err != nil && o.why == "" {
		o.why = reasonOf(err)
	}
	o.of.room(o)
}

// room removes the oldest files until all of them together are no longer
// than allowed.
func (d *outputDir) room(last *outputFile) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.held += last.size
	if d.held <= maxFiles {
		return
	}
	root, err := os.OpenRoot(d.workspace)
	if err != nil {
		return
	}
	defer func() { _ = root.Close() }()
	d.files = slices.DeleteFunc(d.files, func(f *outputFile) bool {
		if d.held <= maxFiles || f == last || !f.done {
			return false
		}
		if err := root.Remove(f.name); err != nil && !errors.Is(err, iofs.ErrNotExist) {
			return false
		}
		d.held -= f.size
		return true
	})
}

// sweepOnce removes the outputs of sessions that have had none for long.
func (d *outputDir) sweepOnce(root *os.Root) {
	d.mu.Lock()
	first := !d.swept
	d.swept = true
	d.mu.Unlock()
	if !first {
		return
	}
	f, err := root.Open(outputsName)
	if err != nil {
		return
	}
	entries, _ := f.ReadDir(10_000) // what is there; the rest another time
	_ = f.Close()
	old := d.clock().Add(-outputsAge)
	for _, e := range entries {
		info, err := e.Info()
		if err != nil || !e.IsDir() || e.Name() == string(d.session) || !domain.SessionID(e.Name()).Valid() || info.ModTime().After(old) {
			continue
		}
		_ = root.RemoveAll(filepath.Join(outputsName, e.Name())) // it goes with the next sweep otherwise
	}
}

// remove deletes the session's outputs.
func (d *outputDir) remove() error {
	if d.workspace == "" || !d.session.Valid() {
		return nil
	}
	root, err := os.OpenRoot(d.workspace)
	if errors.Is(err, iofs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return errors.Join(root.RemoveAll(d.dir()), root.Close())
}

// reasonOf is an error of the file system without the path it names.
func reasonOf(err error) string {
	var path *iofs.PathError
	return cmp.Or(func() string {
		if errors.As(err, &path) {
			return path.Err.Error()
		}
		return ""
	}(), err.Error())
}
