package fs

import (
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/berth-dev/berth/core/domain"
)

// Limits on a glob pattern.
const (
	maxPatternBytes = 4096
	maxAlternatives = 256 // after its braces are written out
)

// meta are the characters that make a name of a pattern one that is matched.
const meta = `*?[{\`

// globs is a glob pattern, with its braces written out. Paths are matched
// from the directory the pattern is about, with slashes.
type globs struct {
	alts     []globAlt
	dirsOnly bool // the pattern ends in a slash
	dotted   bool // a name in it begins with a dot
}

// globAlt is one alternative. Its work for one path is bounded by the product
// of the lengths.
type globAlt struct {
	pattern string
	ending  string   // what names end in, when that is all: "**/*.go"
	literal []string // the names it begins with
	depth   int      // names that a path it matches has; 0 when it may be any number
}

// splitPattern takes the leading names off a pattern that are no patterns, as
// the path to begin at; "" when there are none. One name is always left.
func splitPattern(pattern string) (base, rest string) {
	if filepath.Separator == '\\' {
		pattern = filepath.ToSlash(pattern)
	}
	cut := 0
	for {
		i := strings.IndexByte(pattern[cut:], '/')
		if i < 0 || strings.ContainsAny(pattern[cut:cut+i], meta) || strings.Trim(pattern[cut+i:], "/") == "" {
			return pattern[:cut], pattern[cut:]
		}
		cut += i + 1
	}
}

// parseGlob reads a pattern.
func parseGlob(pattern string) (*globs, error) {
	switch {
	case pattern == "":
		return nil, domain.Errorf(domain.InvalidArgument, "the pattern is empty; **/* means every file")
	case len(pattern) > maxPatternBytes:
		return nil, domain.Errorf(domain.InvalidArgument, "the pattern is %d bytes long; at most %d are allowed", len(pattern), maxPatternBytes)
	case strings.IndexByte(pattern, 0) >= 0 || !utf8.ValidString(pattern):
		return nil, domain.Errorf(domain.InvalidArgument, "the pattern holds a NUL character or is not valid UTF-8")
	case !doublestar.ValidatePattern(pattern):
		return nil, domain.Errorf(domain.InvalidArgument,
			"%s is not a valid pattern: a [, { or \\ in it is not closed; put a \\ before a character that is meant as it is", brief(pattern))
	}
	g := &globs{}
	pattern, g.dirsOnly = strings.CutSuffix(pattern, "/")
	list, ok := expandBraces(pattern, maxAlternatives)
	if !ok {
		return nil, domain.Errorf(domain.InvalidArgument, "the braces of the pattern stand for more than %d patterns; use fewer", maxAlternatives)
	}
	for _, p := range list {
		a, err := newGlobAlt(p)
		if err != nil {
			return nil, err
		}
		g.alts = append(g.alts, a)
		g.dotted = g.dotted || strings.HasPrefix(a.pattern, ".") || strings.Contains(a.pattern, "/.")
	}
	return g, nil
}

func newGlobAlt(pattern string) (globAlt, error) {
	var names []string
	deep := false
	for name := range strings.SplitSeq(pattern, "/") {
		switch {
		case name == "..":
			return globAlt{}, domain.Errorf(domain.InvalidArgument, "%s: a pattern cannot climb with .. after its first * or ?; give the directory to begin at as path", brief(pattern))
		case name == "", name == ".":
		case name == "**" && len(names) > 0 && names[len(names)-1] == "**":
		default:
			deep = deep || name == "**"
			names = append(names, name)
		}
	}
	a := globAlt{pattern: strings.Join(names, "/")}
	if a.pattern == "" {
		return a, domain.Errorf(domain.InvalidArgument, "%s names nothing to look for; **/* means every file", brief(pattern))
	}
	if !deep {
		a.depth = len(names)
	}
	for _, n := range names[:len(names)-1] {
		if strings.ContainsAny(n, meta) {
			break
		}
		a.literal = append(a.literal, n)
	}
	if end, ok := strings.CutPrefix(a.pattern, "**/*"); ok && end != "" && !strings.ContainsAny(end, meta+"/") {
		a.ending = end
	}
	return a, nil
}

// match reports whether the pattern matches a path.
func (g *globs) match(path string) bool {
	for i := range g.alts {
		a := &g.alts[i]
		if a.ending != "" {
			if strings.HasSuffix(path, a.ending) {
				return true
			}
		} else if doublestar.MatchUnvalidated(a.pattern, path) {
			return true
		}
	}
	return false
}

// below reports whether the pattern may match something below a directory.
func (g *globs) below(dir string) bool {
	return slices.ContainsFunc(g.alts, func(a globAlt) bool { return a.below(dir) })
}

func (a *globAlt) below(dir string) bool {
	if a.depth > 0 && strings.Count(dir, "/")+1 >= a.depth {
		return false
	}
	for _, want := range a.literal {
		name, rest, more := strings.Cut(dir, "/")
		if name != want {
			return false
		}
		if !more {
			return true
		}
		dir = rest
	}
	return true
}

// expandBraces writes the alternatives of a valid pattern out; false when
// they are more than most.
func expandBraces(pattern string, most int) ([]string, bool) {
	open, end, commas := firstBraces(pattern)
	if open < 0 {
		return []string{pattern}, true
	}
	var all []string
	from := open + 1
	for _, comma := range append(commas, end) {
		list, ok := expandBraces(pattern[:open]+pattern[from:comma]+pattern[end+1:], most-len(all))
		if !ok || len(all)+len(list) > most {
			return nil, false
		}
		all = append(all, list...)
		from = comma + 1
	}
	return all, true
}

// firstBraces finds the first { of a pattern, its } and the commas between
// that belong to it; open is -1 when there is none.
func firstBraces(p string) (open, end int, commas []int) {
	open = -1
	depth, set := 0, false
	for i := 0; i < len(p); i++ {
		switch c := p[i]; {
		case c == '\\':
			i++
		case set:
			set = c != ']'
		case c == '[':
			set = true
		case c == '{':
			if depth++; open < 0 {
				open = i
			}
		case c == ',' && depth == 1:
			commas = append(commas, i)
		case c == '}' && depth > 0:
			if depth--; depth == 0 {
				return open, i, commas
			}
		}
	}
	return -1, 0, nil
}
