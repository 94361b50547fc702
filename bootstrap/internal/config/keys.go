package config

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/berth-dev/berth/bootstrap/internal/tomltree"
)

// Version is the version of the file format this build writes and reads.
const Version = 1

// key is one setting.
type key struct {
	// path is the dotted name. A segment in angle brackets stands for a name
	// or, in verbatimSegments, for a key that is kept as it is written.
	path string
	kind kind
	// def is the default as a person would write it in a variable or flag;
	// "" for none.
	def string
	// flag is the command line flag that sets it, with its dashes; "" when
	// there is none.
	flag string
	doc  string // one sentence or two, without the default and the range
	// at returns a pointer to the field the value goes to.
	at func(*target) any

	segs []string // path, split; set by keys
}

// keys returns the whole table, in the order of the documentation. It is
// built on each call: nothing happens at import, and nobody can change it.
func keys() []key {
	table := slices.Concat(processKeys(), gatewayKeys(), telemetryKeys(), agentKeys(), providerKeys(), profileKeys(), serverKeys())
	for i := range table {
		table[i].segs = strings.Split(table[i].path, ".")
	}
	return table
}

// verbatim segments are keys of free maps: any case, dots allowed. All other
// bracketed segments are names.
func isVerbatim(segment string) bool {
	switch segment {
	case "<VARIABLE>", "<Header>", "<model>":
		return true
	}
	return false
}

func isPlaceholder(segment string) bool { return strings.HasPrefix(segment, "<") }

// nameRule is what names must look like, for messages.
const nameRule = "lower-case letters, digits and single underscores, starting with a letter, at most 63 characters"

// validName reports whether s may name an agent, provider, profile or server.
func validName(s string) bool {
	if s == "" || len(s) > 63 || s[0] < 'a' || s[0] > 'z' || strings.Contains(s, "__") {
		return false
	}
	return strings.IndexFunc(s, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '_')
	}) < 0
}

// checkVerbatim says what is wrong with a key of a free map, or "".
func checkVerbatim(segment, s string) string {
	switch {
	case !utf8.ValidString(s) || strings.IndexFunc(s, unicode.IsControl) >= 0:
		return "holds a control character"
	case s == "":
		return "is empty"
	case segment == "<VARIABLE>" && strings.Contains(s, "="):
		return "holds a '='; allowed: the name of an environment variable"
	case segment == "<Header>" && strings.IndexFunc(s, notHeaderRune) >= 0:
		return "is no header name; allowed: letters, digits and hyphens"
	}
	return ""
}

func notHeaderRune(r rune) bool {
	return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("!#$%&'*+-.^_`|~", r))
}

// match compares a path with the key's pattern. n is how many segments agree
// from the left; the path is inside the pattern when n is its length, and is
// the key when the pattern ends there too.
func (k *key) match(path []string) (n int, whole bool) {
	for n < len(path) && n < len(k.segs) && (k.segs[n] == path[n] || isPlaceholder(k.segs[n])) {
		n++
	}
	return n, n == len(path) && n == len(k.segs)
}

// lookup finds the key at path. inside is a key that lies below path when
// path is a table, nil otherwise.
func lookup(table []key, path []string) (exact, inside *key) {
	for i := range table {
		n, whole := table[i].match(path)
		if n < len(path) {
			continue
		}
		if whole {
			return &table[i], nil
		}
		if inside == nil {
			inside = &table[i]
		}
	}
	return nil, inside
}

// resolve finds the key that loose segments name, as they come from a dotted
// path or from the name of an environment variable. Segments that stand for a
// key of a free map take as many of them as it needs, joined by sep. fold
// makes everything else lower-case first. Names are not checked.
func resolve(table []key, segs []string, sep string, fold bool) (*key, []string) {
	for i := range table {
		if path, ok := table[i].fit(segs, sep, fold); ok {
			return &table[i], path
		}
	}
	return nil, nil
}

// fit maps loose segments to the key's pattern.
func (k *key) fit(segs []string, sep string, fold bool) ([]string, bool) {
	pattern := k.segs
	if len(segs) < len(pattern) {
		return nil, false
	}
	extra := len(segs) - len(pattern) // what the free map's key takes besides its own
	path := make([]string, 0, len(pattern))
	for _, p := range pattern {
		if isVerbatim(p) {
			path = append(path, strings.Join(segs[:1+extra], sep))
			segs, extra = segs[1+extra:], 0
			continue
		}
		s := segs[0]
		if fold {
			s = strings.ToLower(s)
		}
		if s != p && !isPlaceholder(p) {
			return nil, false
		}
		path, segs = append(path, s), segs[1:]
	}
	return path, extra == 0
}

// suggest returns the full path of a key that was probably meant by path, or
// "". It looks among the neighbours first, then for the same last segment
// anywhere.
func suggest(table []key, path []string) string {
	parent, last := path[:len(path)-1], path[len(path)-1]
	if s := nearest(last, childNames(table, parent)); s != "" {
		return tomltree.JoinKeys(append(slices.Clone(parent), s))
	}
	for i := range table {
		segs := table[i].segs
		if end := segs[len(segs)-1]; end == last && !isPlaceholder(end) {
			return table[i].path
		}
	}
	return ""
}

// childNames lists the fixed segments that may stand in the table at parent.
func childNames(table []key, parent []string) []string {
	var names []string
	for i := range table {
		if n, whole := table[i].match(parent); n == len(parent) && !whole {
			if s := table[i].segs[n]; !isPlaceholder(s) && !slices.Contains(names, s) {
				names = append(names, s)
			}
		}
	}
	return names
}
