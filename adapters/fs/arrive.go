package fs

import (
	"path/filepath"
	"slices"

	"github.com/berth-dev/berth/core/domain"
)

// arrive makes the target: name in cur, or cur itself when name is empty.
func (w *walk) arrive(name string, i info, found bool) (*target, error) {
	names := slices.Clone(w.names)
	if name != "" {
		names = append(names, name)
	}
	names = append(names, w.todo...)
	t := &target{name: name, found: found, info: i, root: w.root, names: names, path: join(w.base, names...), outside: w.root == nil}
	if w.judging && w.left && w.sp.pol.Level != domain.LevelFull {
		t.outside = true // a tool's walk would have ended there
	}
	if w.root == nil {
		// A way outside that came back in starts over from the root.
		if r, rest, ok := w.sp.locate(t.path); ok {
			if again, err := w.begin(r, rest); again != nil || err != nil {
				return again, err
			}
			return w.run()
		}
	}
	t.show = t.path
	if w.root != nil {
		t.show = join(w.root.given, names...)
	}
	if len(w.todo) > 0 {
		t.missing = append([]string{name}, w.todo[:len(w.todo)-1]...)
		t.name = w.todo[len(w.todo)-1]
	}
	if t.ban = w.banOf(t); t.ban != "" {
		return t, nil
	}
	if !found && w.dirOnly && !w.judging {
		return nil, domain.Errorf(domain.NotFound, "%s does not exist", brief(t.show))
	}
	return t, w.hand(t)
}

// banOf decides whether the target is forbidden: by a directory on the way,
// by what it is itself, or by its name alone when it does not exist yet.
func (w *walk) banOf(t *target) string {
	ban := w.ban()
	if t.found && t.name != "" {
		b, own := w.sp.guard.object(t.info.id)
		switch {
		case own:
			return ""
		case b != "":
			return b
		}
	}
	if ban == "" {
		ban = w.sp.guard.named(t.path)
	}
	return ban
}

// hand gives the current directory to the target.
func (w *walk) hand(t *target) error {
	if w.cur == w.start {
		d, err := w.start.again()
		if err != nil {
			return err
		}
		t.dir = d
		return nil
	}
	t.dir, w.cur = w.cur, nil
	return nil
}

// end is a target that policy keeps us from looking at.
func (w *walk) end(path string) *target {
	path = filepath.Clean(path)
	t := &target{path: path, show: path, ban: w.ban()}
	if t.ban == "" {
		t.ban = w.sp.guard.named(path)
	}
	root := w.root
	if root == nil || w.ban() == "" {
		root, _, _ = w.sp.locate(path)
	}
	if root == nil {
		t.outside = true
		return t
	}
	t.root = root
	if rest, in := below(root.path, path); in {
		t.names, _ = components(rest)
		t.show = join(root.given, t.names...)
	}
	return t
}
