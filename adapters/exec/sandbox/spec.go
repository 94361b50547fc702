package sandbox

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/berth-dev/berth/core/domain"
)

// check refuses a spec that no backend could run.
func (spec Spec) check() error {
	wrong := func(format string, args ...any) error {
		return domain.Errorf(domain.InvalidArgument, format, args...)
	}
	if len(spec.Argv) == 0 || !filepath.IsAbs(spec.Argv[0]) {
		return wrong("a command needs the absolute path of its program")
	}
	if !clean(spec.Dir) {
		return wrong("the working directory %q is not an absolute path", spec.Dir)
	}
	for _, list := range [][]string{spec.Argv, spec.Env} {
		if slices.ContainsFunc(list, func(s string) bool { return strings.ContainsRune(s, 0) }) {
			return wrong("an argument or a variable holds a zero byte")
		}
	}
	for _, list := range [][]string{spec.Writable, spec.Readable, spec.Extra} {
		for _, p := range list {
			if !clean(p) || p == "/" {
				return wrong("%q cannot be opened for a command: it is not an absolute, clean path below /", p)
			}
		}
	}
	return nil
}

// clean reports whether path is absolute and in its shortest form.
func clean(path string) bool { return filepath.IsAbs(path) && filepath.Clean(path) == path }

// within reports whether path is dir or lies in it. Both are clean.
func within(path, dir string) bool {
	return path == dir || dir == "/" || strings.HasPrefix(path, dir) && path[len(dir)] == '/'
}

// withinAny reports whether path lies in one of dirs.
func withinAny(path string, dirs []string) bool {
	return slices.ContainsFunc(dirs, func(d string) bool { return within(path, d) })
}
