package fs

import (
	"bytes"
	"strings"
)

// Limits on what is taken from an ignore file.
const (
	maxIgnoreBytes = 256 << 10
	maxIgnoreRules = 4096
)

// ignores are the ignore rules that hold in one directory: those of its own
// files and, by up, those of the directories above. Paths are those from the
// session's root, with slashes.
//
// .ignore files are asked first, the deepest before the others; then, up to
// the directory that holds the repository, .gitignore files in the same order,
// and its .git/info/exclude last. Of one file the last rule that matches
// counts.
type ignores struct {
	up      *ignores
	from    int // bytes of a path that lie above this directory
	own     *ruleset
	git     *ruleset
	exclude *ruleset
	repo    bool // a repository of its own: the rules of outer ones end here
}

// ignored reports whether the rules leave a name out. It is false for no
// rules at all.
func (g *ignores) ignored(path, name string, dir bool) bool {
	for l := g; l != nil; l = l.up {
		if v := l.own.match(path, l.from, name, dir); v != noRule {
			return v == leaveOut
		}
	}
	for l := g; l != nil; l = l.up {
		if v := l.git.match(path, l.from, name, dir); v != noRule {
			return v == leaveOut
		}
		if v := l.exclude.match(path, l.from, name, dir); v != noRule {
			return v == leaveOut
		}
		if l.repo {
			break
		}
	}
	return false
}

// verdict is what a set of rules says about a name.
type verdict int

const (
	noRule verdict = iota
	leaveOut
	takeIn
)

// rule is one line of an ignore file.
type rule struct {
	takeIn   bool // it began with !
	dirOnly  bool
	anchored bool   // the pattern is about the path, not the name
	literal  string // what a path begins with, taken off the pattern
	pattern  string
}

// ruleset is an ignore file. Most rules are plain names, endings or paths and
// are looked up; the rest are tried one by one.
type ruleset struct {
	rules  []rule
	tables [2]ruleTable // for anything, and for directories
	others []int        // numbers of rules that are in no table
}

// ruleTable finds the last rule for a name, for the rest of a name from its
// last dot ("*.go") and for a path. Rules are numbered from 1.
type ruleTable struct{ names, ends, paths map[string]int }

// put adds a rule to one map of a table.
func put(m *map[string]int, key string, number int) {
	if *m == nil {
		*m = map[string]int{}
	}
	(*m)[key] = number
}

// parseIgnore reads an ignore file.
func parseIgnore(raw []byte) *ruleset {
	r := &ruleset{}
	raw = bytes.TrimPrefix(raw, bom)
	for line := range bytes.Lines(raw) {
		if len(r.rules) == maxIgnoreRules {
			break
		}
		text := strings.TrimSuffix(strings.TrimSuffix(string(line), "\n"), "\r")
		if text != "" && text[0] != '#' {
			r.add(trimSpaces(text))
		}
	}
	return r
}

// trimSpaces takes spaces off the end, save escaped ones.
func trimSpaces(s string) string {
	end := 0 // after the last character that stays
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' {
			if i++; i == len(s) {
				return s // a lone backslash ends it: nothing is trimmed
			}
			end = i + 1
		} else if s[i] != ' ' {
			end = i + 1
		}
	}
	return s[:end]
}

// add takes one rule in.
func (r *ruleset) add(text string) {
	var n rule
	if text, n.takeIn = strings.CutPrefix(text, "!"); text == "" {
		return
	}
	if text, n.dirOnly = strings.CutSuffix(text, "/"); text == "" {
		return
	}
	n.anchored = strings.IndexByte(text, '/') >= 0
	text = strings.TrimPrefix(text, "/")
	n.pattern = text
	r.rules = append(r.rules, n)
	number, t := len(r.rules), &r.tables[0]
	if n.dirOnly {
		t = &r.tables[1]
	}
	special := strings.IndexAny(text, `*?[\`)
	switch {
	case special < 0 && n.anchored:
		put(&t.paths, text, number)
	case special < 0:
		put(&t.names, text, number)
	case !n.anchored && special == 0 && strings.HasPrefix(text, "*.") && !strings.ContainsAny(text[2:], `*?[\.`):
		put(&t.ends, text[1:], number)
	default:
		if n.anchored {
			r.rules[number-1].literal, r.rules[number-1].pattern = text[:special], text[special:]
		}
		r.others = append(r.others, number)
	}
}

// match finds the last rule about a name, and so what becomes of it.
func (r *ruleset) match(path string, from int, name string, dir bool) verdict {
	if r == nil || len(r.rules) == 0 {
		return noRule
	}
	path = path[from:]
	best := 0
	tables := r.tables[:1]
	if dir {
		tables = r.tables[:]
	}
	for i := range tables {
		best = max(best, tables[i].names[name], tables[i].paths[path])
		if dot := strings.LastIndexByte(name, '.'); dot >= 0 {
			best = max(best, tables[i].ends[name[dot:]])
		}
	}
	for i := len(r.others) - 1; i >= 0 && r.others[i] > best; i-- {
		if r.rules[r.others[i]-1].match(path, name, dir) {
			best = r.others[i]
			break
		}
	}
	switch {
	case best == 0:
		return noRule
	case r.rules[best-1].takeIn:
		return takeIn
	}
	return leaveOut
}

func (n *rule) match(path, name string, dir bool) bool {
	if n.dirOnly && !dir {
		return false
	}
	if !n.anchored {
		return wild(n.pattern, name)
	}
	rest, ok := strings.CutPrefix(path, n.literal)
	return ok && wild(n.pattern, rest)
}

// rulesIn adds the ignore files of a directory to the rules above it.
func (s *sweeper) rulesIn(p *spot, names []dirent, t *tally) *ignores {
	g := &ignores{up: p.rules, from: len(p.above)}
	for _, e := range names {
		switch e.name {
		case ".ignore":
			g.own = s.ruleFile(p.dir, e, p.above[s.cut:], t)
		case ".gitignore":
			g.git = s.ruleFile(p.dir, e, p.above[s.cut:], t)
		case ".git":
			g.repo = true
			g.exclude = s.exclude(p.dir, p.above[s.cut:], t)
		}
	}
	if g.own == nil && g.git == nil && !g.repo {
		return p.rules
	}
	return g
}

// exclude reads .git/info/exclude below a directory.
func (s *sweeper) exclude(d *dir, above string, t *tally) *ruleset {
	for _, name := range []string{".git", "info"} {
		sub, err := d.sub(name)
		if err != nil {
			return nil
		}
		defer func() { _ = sub.close() }()
		d, above = sub, above+name+"/"
	}
	return s.ruleFile(d, dirent{name: "exclude"}, above, t)
}

// ruleFile reads one ignore file. A link is not followed, as git does not
// follow it either, and what cannot be read has no rules.
func (s *sweeper) ruleFile(d *dir, e dirent, above string, t *tally) *ruleset {
	if e.mode.Type() != 0 && e.mode != modeUnknown {
		return nil
	}
	var err error
	s.buf, err = d.slurp(e.name, s.buf, func(i info, _ []byte) error {
		if i.size > maxIgnoreBytes {
			return errLarge(i.size)
		}
		return s.mayRead(i)
	})
	if err != nil {
		if i, lerr := d.lstat(e.name); lerr == nil && i.size > maxIgnoreBytes {
			t.pass(passedRules, above+e.name)
		}
		return nil
	}
	return parseIgnore(s.buf)
}
