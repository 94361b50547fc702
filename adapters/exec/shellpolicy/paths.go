package shellpolicy

import (
	"path"
	"slices"
	"strings"

	"github.com/berth-dev/berth/core/domain"
)

// use is what a command does with a path.
type use int

const (
	useRead use = iota
	useWrite
	useRemove
	useAny // it is not known what
)

// judge looks one path up in one directory, once.
func (w *walker) judge(dir, name string) domain.Place {
	key := [2]string{dir, name}
	if p, ok := w.places[key]; ok {
		return p
	}
	if len(w.places) >= maxJudged {
		w.forbid("the command names too many files to judge; split it")
		return domain.Place{Path: name, Where: domain.WhereForbidden, Why: w.res.Forbidden}
	}
	asked := name
	if strings.HasPrefix(name, "~") { // the shell has expanded what it expands
		asked = "./" + name
	}
	p := w.paths.Judge(w.ctx, dir, asked)
	w.places[key] = p
	return p
}

// locate returns the places a path may be, one for each directory that the
// command may run in; nil when that is not known. Forbidden ones are among
// them.
func (w *walker) locate(sc scope, name string) []domain.Place {
	if strings.HasPrefix(name, "/") {
		return []domain.Place{w.judge("", name)}
	}
	if sc.dirs.lost {
		return nil
	}
	var list []domain.Place
	for _, dir := range sc.dirs.set {
		list = append(list, w.judge(dir, name))
	}
	return list
}

// touch records that a command uses a path and returns where it may be; nil
// when that is not known.
func (w *walker) touch(sc scope, name string, u use) []domain.Place {
	list := w.locate(sc, name)
	for _, p := range list {
		w.record(p, u)
	}
	return list
}

// record takes a path into account.
func (w *walker) record(p domain.Place, u use) {
	if p.Where == domain.WhereForbidden {
		w.forbid(forbiddenWhy(p))
		return
	}
	if !w.named[p.Path] {
		w.named[p.Path] = true
		w.res.Paths = append(w.res.Paths, p.Path)
	}
	outside := p.Where == domain.WhereOutside
	protected := p.Protected && u != useRead
	if outside {
		w.res.Outside = true
	}
	switch {
	case outside && u != useRead && (protected || persistent(p.Path)):
		w.forbid("what is written to " + p.Path + " would be run later, outside the sandbox")
	case u == useRemove && p.Root:
		w.forbid(p.Path + " holds a directory of the session, or is the home directory, and is never removed or moved")
	case protected:
		w.res.Protected = true
	}
	switch {
	case outside && u == useRead:
		w.res.Reads = append(w.res.Reads, p.Path)
	case outside, protected:
		w.res.Writes = append(w.res.Writes, p.Path)
	}
}

func forbiddenWhy(p domain.Place) string {
	if p.Why != "" {
		return p.Why
	}
	return p.Path + " is forbidden"
}

// persistent reports whether a file at path is run later by the system or by
// the person's desktop.
func persistent(path string) bool {
	for _, part := range []string{
		"/LaunchAgents/", "/LaunchDaemons/", "/autostart/", "/authorized_keys", "/cron", "/systemd/", "/init.d/", "/rc.local", "/Login Items/",
		"/.local/share/dbus-1/", "/.local/share/applications/", "/StartupItems/", "/profile.d/",
	} {
		if strings.Contains(path+"/", part) {
			return true
		}
	}
	return false
}

// opens judges an operand whose file is read.
func (c *call) opens(d word) { c.uses(d, useRead) }

// uses judges an operand that is a path. What is not known raises the class.
func (c *call) uses(d word, u use) {
	switch {
	case d.number:
		d.text = "0"
	case !d.static && d.why == shorthand:
		c.w.forbid("write the directory out instead of " + d.from)
		return
	case !d.static:
		c.raise(risk, notKnown(d))
		c.search(d)
		return
	case d.text == "":
		return
	case d.glob:
		c.pattern(d, u)
		return
	}
	if c.w.touch(c.sc, d.text, u) == nil {
		c.raise(risk, "cannot be analysed: the directory it runs in is not known")
	}
}

// pattern judges a pattern by the names that it matches now.
func (c *call) pattern(d word, u use) {
	list, ok := c.w.matches(c.sc, d.pattern)
	if !ok {
		c.raise(risk, "cannot be analysed: too many names match "+d.from)
		c.search(d)
		return
	}
	for _, m := range list {
		c.w.record(m.place, u)
		if strings.HasPrefix(m.name, "-") {
			c.raise(run, "the name "+m.name+" that matches "+d.from+" looks like an option")
		}
	}
	if len(list) == 0 && c.w.touch(c.sc, unescapeGlob(d.pattern), u) == nil {
		c.raise(risk, "cannot be analysed: the directory it runs in is not known")
	}
}

// walks judges a directory that a command goes through as a whole.
func (c *call) walks(d word) {
	if !d.static || d.glob {
		return
	}
	for _, p := range c.w.locate(c.sc, d.text) {
		if slices.ContainsFunc(c.w.env.Forbidden, func(f string) bool { return below(p.Path, f) && f != p.Path }) {
			c.raise(risk, "goes through a directory that holds forbidden ones: "+p.Path)
		}
	}
}

// below reports whether name is dir or lies in it; both are clean.
func below(dir, name string) bool {
	return name == dir || strings.HasPrefix(name, strings.TrimSuffix(dir, "/")+"/")
}

// search looks for forbidden paths in everything literal of a word, whatever
// the command makes of it: as a whole, after =, :, @ and the letter of an
// option, and in quotes.
func (c *call) search(d word) {
	for _, lit := range d.lits {
		lit = cut(lit, 64<<10)
		for _, piece := range strings.FieldsFunc(lit, func(r rune) bool { return strings.ContainsRune("=:,@ \t\n'\"`()[]{}<>;|&\\$", r) }) {
			c.piece(lit, piece)
			if len(piece) > 2 && piece[0] == '-' && piece[1] != '-' {
				c.piece(lit, piece[2:])
			}
		}
	}
}

func (c *call) piece(lit, piece string) {
	switch {
	case !strings.Contains(piece, "/") && piece != "~" && piece != "..":
		return
	case strings.HasPrefix(piece, "//") && strings.Contains(lit, ":"+piece) && !strings.Contains(lit, "file:"+piece):
		return // the rest of an address such as https://host/path
	case piece == "~" || strings.HasPrefix(piece, "~/"):
		piece = c.w.env.Home + piece[1:]
	}
	for _, p := range c.w.locate(c.sc, piece) {
		if p.Where == domain.WhereForbidden && !missing(p) {
			c.w.forbid(forbiddenWhy(p))
		}
	}
}

// missing reports whether a place is forbidden only because its name cannot be
// one.
func missing(p domain.Place) bool { return !path.IsAbs(p.Path) }
