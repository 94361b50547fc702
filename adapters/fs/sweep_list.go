package fs

import (
	"context"
	iofs "io/fs"
	"slices"
	"strings"
)

// dirent is an entry as a directory tells it: the type may be unknown.
type dirent struct {
	name string
	mode iofs.FileMode // type bits; modeUnknown when the directory does not say
}

// modeUnknown stands for a type that has to be looked up.
const modeUnknown = iofs.ModeIrregular | iofs.ModeDevice

// list reads a directory, judges its names and puts the work in it on the
// stack. It takes the place over.
func (s *sweeper) list(p *spot, into *node) error {
	names, whole, err := s.entriesOf(p)
	if err != nil {
		_ = p.dir.close()
		return err
	}
	var t tally
	if p.rules != nil {
		p.rules = s.rulesIn(p, names, &t)
	}
	work := s.judge(p, names, &t)
	p.left.Store(int64(len(work)))
	if len(work) == 0 {
		_ = p.dir.close()
	}
	items := make([]item, len(work))
	for i := range work {
		items[i].sub, work[i].into = work[i].sub, &items[i]
	}
	s.order.Lock()
	into.items, into.tally, into.listed = items, t, true
	s.advance()
	s.order.Unlock()
	s.mu.Lock()
	slices.Reverse(work)
	s.stack = append(s.stack, work...)
	if len(work) > 1 {
		s.wake.Broadcast()
	}
	s.mu.Unlock()
	if !whole {
		s.exhaust("entries")
	}
	return nil
}

// entriesOf reads the names in a directory, sorted; whole is false when the
// budget ran out.
func (s *sweeper) entriesOf(p *spot) (names []dirent, whole bool, err error) {
	if s.names == nil {
		s.names = make([]byte, 32<<10)
	}
	whole = true
	err = p.dir.each(s.names, func(list []dirent) bool {
		names = append(names, list...)
		if s.ctx.Err() != nil {
			return false
		}
		whole = s.entries.Add(int64(len(list))) <= s.max.entries
		return whole
	})
	if err == nil && s.ctx.Err() != nil {
		err = context.Cause(s.ctx)
	}
	slices.SortFunc(names, func(a, b dirent) int { return strings.Compare(a.name, b.name) })
	return names, whole, err
}

// judge makes work of the names that are wanted, and counts the others.
func (s *sweeper) judge(p *spot, names []dirent, t *tally) []task {
	var work []task
	var run []leaf
	flush := func() {
		if len(run) > 0 {
			work = append(work, task{in: p, run: run})
			run = nil
		}
	}
	for _, e := range names {
		if s.ctx.Err() != nil {
			break // what is left of the work will not begin either
		}
		if e.name[0] == '.' && (e.name == ".git" || !s.hidden) {
			if e.name != ".git" {
				t.hidden++
			}
			continue
		}
		if e.mode == modeUnknown {
			i, err := p.dir.lstat(e.name)
			if err != nil {
				continue
			}
			e.mode = i.mode.Type()
		}
		full := p.above + e.name
		path := full[s.cut:]
		if s.bans != nil && s.forbids(path) {
			t.pass(passedForbidden, path)
			continue
		}
		if p.rules.ignored(full, e.name, e.mode.IsDir()) {
			t.ignored++
			continue
		}
		if s.visitor.keep(path, e.mode) {
			if run == nil {
				run = make([]leaf, 0, min(runLength, len(names)))
			}
			if run = append(run, leaf{path, e.mode}); len(run) == runLength {
				flush()
			}
		}
		if e.mode.IsDir() && s.visitor.enter(path) {
			flush()
			work = append(work, task{in: p, name: e.name, sub: &node{}})
		}
	}
	flush()
	return work
}

// forbids reports whether a path from the start is forbidden by its name.
func (s *sweep) forbids(path string) bool {
	return slices.ContainsFunc(s.bans, func(ban string) bool { return sameCase(path, ban) == ban })
}

// passing says why something was passed over.
type passing int

const (
	passedGone passing = iota // it is not what it was a moment ago: nothing to tell
	passedForbidden
	passedDevice
	passedUnreadable
	passedDeep
	passedRules // an ignore file that was not honoured
)

// maxPassed is how many paths of one kind are kept to be named.
const maxPassed = 5

// tally is what a sweep passed over.
type tally struct {
	paths   [passedRules + 1][]string // the first of each kind
	counts  [passedRules + 1]int
	hidden  int
	ignored int

	files   int // files that were read
	binary  int
	large   int
	links   int
	special int
}

// pass counts one path.
func (t *tally) pass(why passing, path string) {
	if t.counts[why]++; len(t.paths[why]) < maxPassed {
		t.paths[why] = append(t.paths[why], path)
	}
}

// add puts what came later in order into t.
func (t *tally) add(o tally) {
	for why, n := range o.counts {
		if n > 0 {
			t.counts[why] += n
			t.paths[why] = append(t.paths[why], o.paths[why]...)
			t.paths[why] = t.paths[why][:min(len(t.paths[why]), maxPassed)]
		}
	}
	t.hidden += o.hidden
	t.ignored += o.ignored
	t.files += o.files
	t.binary += o.binary
	t.large += o.large
	t.links += o.links
	t.special += o.special
}

// words says what was passed over, by paths below prefix; "" when nothing
// was. Hidden and ignored names are not part of it.
func (t *tally) words(prefix string) string {
	var parts []string
	for why, words := range [...]string{
		passedForbidden: "forbidden", passedDevice: "on another device", passedUnreadable: "cannot be opened",
		passedDeep: "too deep", passedRules: "ignore file too large to be honoured",
	} {
		if t.counts[why] == 0 {
			continue
		}
		names := make([]string, 0, maxPassed+1)
		for _, p := range t.paths[why] {
			names = append(names, printable(prefix+p))
		}
		if more := t.counts[why] - len(names); more > 0 {
			names = append(names, plural(more, "other"))
		}
		parts = append(parts, strings.Join(names, ", ")+" ("+words+")")
	}
	for _, c := range []struct {
		n         int
		one, rest string
	}{
		{t.binary, "binary file", ""},
		{t.large, "file", " of more than " + bytesWords(maxSwept)},
		{t.links, "symbolic link", ""},
		{t.special, "special file", ""},
	} {
		if c.n > 0 {
			parts = append(parts, plural(c.n, c.one)+c.rest)
		}
	}
	return strings.Join(parts, "; ")
}
