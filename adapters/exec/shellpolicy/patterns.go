package shellpolicy

import (
	"os"
	"strings"

	"github.com/berth-dev/berth/core/domain"
)

// match is a name that a pattern makes.
type match struct {
	name  string // as the shell writes it
	place domain.Place
}

// matches returns what a pattern may become; ok is false when that is too
// much, or not known. It may return more than the shell does, never less.
func (w *walker) matches(sc scope, pattern string) (list []match, ok bool) {
	parts := strings.Split(pattern, "/")
	start := ""
	if parts[0] == "" {
		start, parts = "/", parts[1:]
	} else if sc.dirs.lost {
		return nil, false
	}
	roots := sc.dirs.set
	if start == "/" {
		roots = []string{""}
	}
	for _, dir := range roots {
		names := []string{start}
		for i, part := range parts {
			if names, ok = w.expandPart(dir, names, part, i == len(parts)-1); !ok {
				return nil, false
			}
		}
		for _, n := range names {
			list = append(list, match{n, w.judge(dir, n)})
		}
	}
	return list, true
}

// maxMatches is how many names a pattern may become.
const maxMatches = 1000

// expandPart replaces the names of directories by those of what matches in
// them.
func (w *walker) expandPart(dir string, names []string, part string, last bool) (next []string, ok bool) {
	if !hasGlob(part) {
		for _, n := range names {
			next = append(next, n+unescapeGlob(part)+slash(last))
		}
		return next, true
	}
	for _, n := range names {
		asked := n
		if n == "" {
			asked = "."
		}
		p := w.judge(dir, asked)
		if p.Where == domain.WhereForbidden { // nothing in it is looked at
			next = append(next, n+unescapeGlob(part)+slash(last))
			continue
		}
		if !p.Dir {
			continue
		}
		entries, err := os.ReadDir(p.Path)
		if err != nil {
			continue
		}
		for _, e := range entries {
			if !matchPart(part, e.Name()) {
				continue
			}
			if len(next) == maxMatches {
				return nil, false
			}
			next = append(next, n+e.Name()+slash(last))
		}
	}
	return next, true
}

func slash(last bool) string {
	if last {
		return ""
	}
	return "/"
}

// hasGlob reports whether a pattern means more than one name.
func hasGlob(pattern string) bool {
	for i := 0; i < len(pattern); i++ {
		switch pattern[i] {
		case '\\':
			i++
		case '*', '?':
			return true
		case '[':
			if strings.Contains(pattern[i:], "]") {
				return true
			}
		}
	}
	return false
}

// escapeGlob puts a backslash before what means something in a pattern.
func escapeGlob(s string) string {
	if !strings.ContainsAny(s, `*?[]\`) {
		return s
	}
	var b strings.Builder
	for i := range len(s) {
		if strings.IndexByte(`*?[]\`, s[i]) >= 0 {
			b.WriteByte('\\')
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// unescapeGlob undoes escapeGlob.
func unescapeGlob(s string) string { return dequote(s, `*?[]\`) }

// matchPart reports whether a name may match one part of a pattern. Brackets
// are taken to match everything.
func matchPart(pattern, name string) bool {
	if strings.HasPrefix(name, ".") && !strings.HasPrefix(pattern, ".") && !strings.HasPrefix(pattern, "[") {
		return false
	}
	if strings.ContainsAny(pattern, `[\`) {
		return true
	}
	return wild(pattern, name)
}

// wild matches * and ? by bytes; a ? also takes one character of several.
func wild(pattern, name string) bool {
	star, back := -1, 0
	p, n := 0, 0
	for n < len(name) {
		switch {
		case p < len(pattern) && pattern[p] == '*':
			star, back = p, n
			p++
		case p < len(pattern) && pattern[p] == '?':
			p++
			n++
			for n < len(name) && name[n]&0xC0 == 0x80 {
				n++
			}
		case p < len(pattern) && pattern[p] == name[n]:
			p++
			n++
		case star >= 0:
			back++
			p, n = star+1, back
		default:
			return false
		}
	}
	return strings.Trim(pattern[p:], "*") == ""
}
