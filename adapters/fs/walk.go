package fs

import (
	"errors"
	iofs "io/fs"
	"path/filepath"
	"slices"

	"github.com/berth-dev/berth/core/domain"
)

const (
	maxLinks = 40     // symbolic links on one way
	maxSteps = 16_384 // directories opened on one way
)

// walk is one way through the tree, from a root on. base is where names
// begin; outside of every root that is the top of the file system, in which
// case root is nil.
type walk struct {
	sp    *space
	asked string // for messages

	root  *root
	base  string // canonical path of the start
	start *dir   // the start, not ours to close
	top   *dir   // ours: the top of the file system, when the walk is outside

	cur   *dir     // where we are; start, or ours to close
	names []string // from the start to cur
	bans  []string // bans[i] holds in names[:i]; one longer than names

	todo    []string // what is left to walk
	name    string   // what is being walked
	dirOnly bool     // the target must be a directory
	links   int
	steps   int

	// bare makes a link that is the last name the target itself.
	bare bool
	// judging goes on where a tool's walk ends for policy's sake, and takes
	// what is not there for what may be there in a moment.
	judging bool
	left    bool // the way led out of the roots
}

// walk follows a path from the root it names, or from the working directory.
// errMoved means the tree changed meanwhile.
func (sp *space) walk(path string) (*target, error) {
	return sp.follow(path, &walk{sp: sp, asked: path})
}

// follow takes the way of a path with a fresh walk.
func (sp *space) follow(path string, w *walk) (*target, error) {
	if err := checkSyntax(path); err != nil {
		return nil, err
	}
	full, err := expandHome(path, sp.disk.conf.Home)
	if err != nil {
		return nil, err
	}
	defer w.release()
	var t *target
	if filepath.IsAbs(full) {
		// A name in a forbidden directory is refused as it stands, even if a
		// link there, such as /proc/self/cwd, would lead out of it.
		if clean := filepath.Clean(full); sp.guard.named(clean) != "" {
			return w.end(clean), nil
		}
		_, w.dirOnly = components(full)
		t, err = w.jump(full)
	} else {
		w.todo, w.dirOnly = components(full)
		t, err = w.begin(&sp.roots[0], w.todo)
	}
	if t == nil && err == nil {
		t, err = w.run()
	}
	if err != nil && w.ban() != "" {
		// What lies in a forbidden directory is not told, not even its absence.
		return w.end(join(w.base, append(append(slices.Clone(w.names), w.name), w.todo...)...)), nil
	}
	return t, err
}

// release closes what the walk still holds.
func (w *walk) release() {
	w.leave(nil)
	if w.top != nil {
		_ = w.top.close()
		w.top = nil
	}
}

// leave makes next the current directory and closes the one before.
func (w *walk) leave(next *dir) {
	if w.cur != nil && w.cur != w.start {
		_ = w.cur.close()
	}
	w.cur = next
}

// begin starts over at a root.
func (w *walk) begin(r *root, todo []string) (*target, error) {
	if r.h == nil {
		return nil, systemError(r.given, r.err)
	}
	w.leave(r.h.dir)
	w.root, w.base, w.start = r, r.path, r.h.dir
	w.names, w.bans, w.todo = nil, []string{r.ban}, todo
	return nil, nil
}

// jump starts over at an absolute path. It ends the walk with a target when
// the path leads out and policy ends it there.
func (w *walk) jump(path string) (*target, error) {
	if r, names, ok := w.sp.locate(path); ok {
		return w.begin(r, names)
	}
	names, _ := components(path)
	w.left = true
	if w.sp.pol.Level != domain.LevelFull && !w.judging {
		return w.end(join(topOf(path), names...)), nil
	}
	if w.top == nil {
		top, err := openTop(path)
		if err != nil {
			return nil, systemError(topOf(path), err)
		}
		w.top = top
	}
	w.leave(w.top)
	w.root, w.base, w.start = nil, topOf(path), w.top
	w.names, w.bans, w.todo = nil, []string{""}, names
	return nil, nil
}

func topOf(path string) string {
	return filepath.VolumeName(path) + string(filepath.Separator)
}

// ban is what forbids the directory we are in.
func (w *walk) ban() string {
	if len(w.bans) == 0 {
		return ""
	}
	return w.bans[len(w.bans)-1]
}

// run takes the steps that are left.
func (w *walk) run() (*target, error) {
	for len(w.todo) > 0 {
		name := w.todo[0]
		w.name, w.todo = name, w.todo[1:]
		if name == ".." {
			if t, err := w.up(); t != nil || err != nil {
				return t, err
			}
			continue
		}
		if t, err := w.step(name); t != nil || err != nil {
			return t, err
		}
	}
	return w.arrive("", info{}, true)
}

// step takes one name: into a directory, through a link, or to the target.
func (w *walk) step(name string) (*target, error) {
	last := len(w.todo) == 0
	if !last {
		sub, err := w.sub(name)
		if err == nil {
			return nil, w.enter(name, sub)
		}
		switch {
		case errors.Is(err, iofs.ErrNotExist):
			return w.absent(name)
		case errors.Is(err, errIsLink):
			return w.follow(name)
		case errors.Is(err, errMoved):
			return nil, errMoved
		case errors.Is(err, errNotDir) && w.judging:
			return w.absent(name)
		case errors.Is(err, errNotDir):
			return nil, domain.Errorf(domain.InvalidArgument, "%s: %s is not a directory", brief(w.asked), brief(w.at(name)))
		}
		return nil, systemError(brief(w.at(name)), err)
	}
	i, err := w.cur.lstat(name)
	switch {
	case errors.Is(err, iofs.ErrNotExist):
		return w.absent(name)
	case err != nil:
		return nil, systemError(brief(w.at(name)), err)
	case i.mode&iofs.ModeSymlink != 0 && !w.bare:
		return w.follow(name)
	case i.mode&iofs.ModeSymlink != 0 && w.dirOnly:
		return nil, domain.Errorf(domain.InvalidArgument, "%s is a symbolic link; without the slash at the end the link itself is meant", brief(w.at(name)))
	case w.dirOnly && !i.mode.IsDir() && !w.judging:
		return nil, domain.Errorf(domain.InvalidArgument, "%s is not a directory, but the path ends as one", brief(w.at(name)))
	}
	return w.arrive(name, i, true)
}

// sub opens a directory below cur, within the budget.
func (w *walk) sub(name string) (*dir, error) {
	if w.steps++; w.steps > maxSteps {
		return nil, domain.Errorf(domain.InvalidArgument, "the way there is too long")
	}
	return w.cur.sub(name)
}

// enter goes into a directory just opened.
func (w *walk) enter(name string, sub *dir) error {
	i, err := sub.stat()
	if err != nil {
		_ = sub.close()
		return err
	}
	w.leave(sub)
	w.names = append(w.names, name)
	ban, own := w.sp.guard.object(i.id)
	if ban == "" && !own {
		ban = w.ban()
	}
	w.bans = append(w.bans, ban)
	return nil
}

// up goes to the directory that holds cur. It walks the names again instead
// of opening "..", which may lead elsewhere by now.
func (w *walk) up() (*target, error) {
	if len(w.names) == 0 {
		if w.root == nil {
			return nil, nil // above the top is the top
		}
		return w.jump(join(filepath.Dir(w.base), w.todo...))
	}
	again := w.names[:len(w.names)-1]
	w.leave(w.start)
	w.names, w.bans = nil, w.bans[:1]
	for _, name := range again {
		sub, err := w.sub(name)
		if errors.Is(err, errIsLink) || errors.Is(err, errNotDir) || errors.Is(err, iofs.ErrNotExist) {
			err = errMoved // it was a directory a moment ago
		}
		if err != nil {
			return nil, err
		}
		if err := w.enter(name, sub); err != nil {
			return nil, err
		}
	}
	return nil, nil
}

// follow puts the text of a link in the place of its name.
func (w *walk) follow(name string) (*target, error) {
	if w.links++; w.links > maxLinks {
		return nil, domain.Errorf(domain.InvalidArgument, "%s leads through more than %d symbolic links; they may form a loop", brief(w.asked), maxLinks)
	}
	text, err := w.cur.readlink(name)
	if errors.Is(err, iofs.ErrNotExist) {
		err = errMoved
	}
	if err != nil {
		return nil, err
	}
	if text == "" || halfAbsolute(text) {
		return nil, domain.Errorf(domain.Denied, "%s is a symbolic link to %q, which cannot be followed", brief(w.at(name)), text)
	}
	names, dirOnly := components(text)
	if len(w.todo) == 0 && dirOnly {
		w.dirOnly = true
	}
	if filepath.IsAbs(text) {
		return w.jump(join(text, w.todo...))
	}
	w.todo = append(slices.Clip(names), w.todo...)
	return nil, nil
}

// absent is a target that does not exist: name is the first missing part.
func (w *walk) absent(name string) (*target, error) {
	if slices.Contains(w.todo, "..") {
		if w.judging {
			w.todo, _ = components(filepath.Join(append([]string{name}, w.todo...)...))
			return nil, nil
		}
		return nil, domain.Errorf(domain.NotFound, "%s does not exist", brief(w.at(name)))
	}
	return w.arrive(name, info{}, false)
}

// at names something in cur for a message.
func (w *walk) at(name string) string {
	if w.root != nil {
		return join(w.root.given, append(slices.Clone(w.names), name)...)
	}
	return join(w.base, append(slices.Clone(w.names), name)...)
}
