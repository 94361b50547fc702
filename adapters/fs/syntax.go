package fs

import (
	"path/filepath"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/berth-dev/berth/core/domain"
)

// Limits on a path as it is asked for.
const (
	maxPathBytes      = 32 << 10
	maxPathComponents = 4096
)

// checkSyntax refuses what is no path at all. It looks at the text alone:
// nothing is decoded, trimmed or expanded, and on Unix a backslash is an
// ordinary character.
func checkSyntax(path string) error {
	switch {
	case path == "":
		return domain.Errorf(domain.InvalidArgument, "The path is empty; name a file or directory")
	case len(path) > maxPathBytes:
		return domain.Errorf(domain.InvalidArgument, "The path is %d bytes long; at most %d are allowed", len(path), maxPathBytes)
	case strings.IndexByte(path, 0) >= 0:
		return domain.Errorf(domain.InvalidArgument, "The path holds a NUL character")
	case !utf8.ValidString(path):
		return domain.Errorf(domain.InvalidArgument, "The path is not valid UTF-8")
	case strings.Count(path, "/") >= maxPathComponents:
		return domain.Errorf(domain.InvalidArgument, "The path has more than %d parts", maxPathComponents)
	case filepath.Separator == '/' && driveLetter(path):
		return domain.Errorf(domain.InvalidArgument,
			"%s is a Windows path and this is not a Windows system; use the path as this system names it", brief(path))
	case halfAbsolute(path):
		return domain.Errorf(domain.InvalidArgument, "%s depends on a current drive or directory; use an absolute path or one below the working directory", brief(path))
	}
	return nil
}

// halfAbsolute reports whether a path is neither absolute nor relative, as
// \x and C:x are on Windows.
func halfAbsolute(path string) bool {
	return !filepath.IsAbs(path) && (isSeparator(path[0]) || filepath.VolumeName(path) != "")
}

// driveLetter reports whether path starts like C:\ or C:/.
func driveLetter(path string) bool {
	if len(path) < 2 || path[1] != ':' || (len(path) > 2 && path[2] != '\\' && path[2] != '/') {
		return false
	}
	c := path[0] | 0x20
	return c >= 'a' && c <= 'z'
}

// expandHome puts home in the place of a leading "~". Another user's home is
// never looked up: a later program might read the name otherwise.
func expandHome(path, home string) (string, error) {
	if path[0] != '~' {
		return path, nil
	}
	rest := path[1:]
	switch {
	case rest != "" && !isSeparator(rest[0]):
		return "", domain.Errorf(domain.Denied,
			"%s: a name beginning with ~ is taken for a user's home and refused; for a file of that name write ./%s", brief(path), brief(path))
	case home == "":
		return "", domain.Errorf(domain.InvalidArgument, "%s: there is no home directory here; use an absolute path", brief(path))
	}
	return home + rest, nil
}

func isSeparator(c byte) bool { return c == '/' || c == filepath.Separator }

// components splits a path into its names, leaving out empty ones and ".".
// The second result tells whether the path can only mean a directory.
func components(path string) (names []string, dirOnly bool) {
	path = path[len(filepath.VolumeName(path)):]
	last := ""
	for part := range strings.FieldsFuncSeq(path, func(r rune) bool { return r < utf8.RuneSelf && isSeparator(byte(r)) }) {
		last = part
		if part != "." {
			names = append(names, part)
		}
	}
	dirOnly = last == "." || last == ".." || (path != "" && isSeparator(path[len(path)-1]))
	return names, dirOnly
}

// below reports whether path is dir or lies in it, and what is left of path
// then. Both are clean and absolute; names are compared, never prefixes of
// names.
func below(dir, path string) (rest string, ok bool) {
	switch {
	case !strings.HasPrefix(path, dir):
		return "", false
	case len(path) == len(dir):
		return "", true
	case isSeparator(dir[len(dir)-1]): // the top of the file system
		return path[len(dir):], true
	case isSeparator(path[len(dir)]):
		return path[len(dir)+1:], true
	}
	return "", false
}

// join puts names below an absolute directory.
func join(dir string, names ...string) string {
	for _, n := range names {
		if !isSeparator(dir[len(dir)-1]) {
			dir += string(filepath.Separator)
		}
		dir += n
	}
	return dir
}

// brief shortens a path for a message.
func brief(path string) string {
	const most = 200
	if len(path) <= most {
		return path
	}
	cut := most
	for cut > 0 && !utf8.RuneStart(path[cut]) {
		cut--
	}
	return path[:cut] + "…"
}

// printable shortens and quotes a name that would disturb a line of text.
func printable(name string) string {
	clean := strings.ToValidUTF8(name, "\uFFFD")
	if clean == name && !strings.ContainsFunc(name, func(r rune) bool {
		return r < 0x20 || r == 0x7F || ignorable(r) || r == '\u2028' || r == '\u2029' || (r >= 0x80 && r < 0xA0)
	}) {
		return name
	}
	return strconv.Quote(name)
}
