package shellpolicy

import (
	"slices"
	"strings"

	"github.com/berth-dev/berth/core/domain"
)

// find judges find: starting points, then an expression.
func (c *call) find() {
	at := 1
	for ; at < len(c.words); at++ {
		switch text := c.words[at].text; {
		case text == "-H" || text == "-P" || strings.HasPrefix(text, "-O") && number(text[2:]):
			continue
		case text == "-L":
			c.raise(run, "follows links")
			continue
		}
		break
	}
	from := at
	for ; at < len(c.words) && !expression(c.words[at]); at++ {
		d := c.words[at]
		c.judged[at] = true
		if d.glob && !safeStart(d.pattern) {
			c.raise(run, "a file name could become an option: "+d.from)
		}
		c.opens(d)
		c.walks(d)
	}
	starts := c.words[from:at]
	if len(starts) == 0 {
		starts = []word{literal(".")}
		c.opens(starts[0])
		c.walks(starts[0])
	}
	for at < len(c.words) {
		at = c.findTerm(at, starts)
	}
}

// expression reports whether a word begins the expression of find.
func expression(d word) bool {
	return d.plain() && (len(d.text) > 1 && d.text[0] == '-' || d.text == "(" || d.text == ")" || d.text == "!" || d.text == ",")
}

// findTerm judges one term of an expression and returns where the next begins.
func (c *call) findTerm(at int, starts []word) int {
	d := c.words[at]
	if !d.plain() {
		c.raise(risk, notKnown(d))
		return at + 1
	}
	name := d.text
	arity, reads := findArity(name)
	switch {
	case strings.HasPrefix(name, "-fprint") || name == "-fls":
		if at+1 < len(c.words) {
			c.judged[at+1] = true
			c.raise(run, "writes to the file given by "+name)
			c.uses(c.words[at+1], useWrite)
		}
		if name == "-fprintf" && at+2 < len(c.words) {
			c.texts[at+2] = true
			return at + 3
		}
		return at + 2
	case name == "-delete":
		c.raise(risk, "deletes what it finds")
		for _, s := range starts {
			c.deletesTree(s)
		}
		return at + 1
	case slices.Contains([]string{"-exec", "-execdir", "-ok", "-okdir"}, name):
		return c.findExec(at)
	case arity < 0:
		c.raise(run, "has an option that is not known: "+name)
		return at + 1
	}
	for i := at + 1; i <= at+arity && i < len(c.words); i++ {
		c.single(c.words[i])
		if reads {
			c.judged[i] = true
			c.opens(c.words[i])
		} else {
			c.texts[i] = true
		}
	}
	return at + arity + 1
}

// deletesTree forbids deleting everything below the home directory or what
// holds the session's directories.
func (c *call) deletesTree(d word) {
	for _, p := range c.w.locate(c.sc, d.text) {
		if p.Root && p.Where != domain.WhereInside {
			c.w.record(p, useRemove)
		}
	}
}

// findExec judges the command that find runs.
func (c *call) findExec(at int) int {
	c.raise(risk, "runs a command for what it finds")
	end := at + 1
	for end < len(c.words) && c.words[end].text != ";" && !(c.words[end].text == "+" && c.words[end-1].text == "{}") {
		end++
	}
	c.nested(c.words[at+1 : end])
	return end + 1
}

// findArity returns how many arguments a test or action of find has, -1 when
// it is not known to be harmless, and whether they are files that it looks at.
func findArity(name string) (arity int, reads bool) {
	switch name {
	case "(", ")", "!", ",", "-a", "-and", "-o", "-or", "-not", "-true", "-false", "-print", "-print0", "-ls", "-prune", "-quit", "-depth", "-d",
		"-mount", "-xdev", "-empty", "-nouser", "-nogroup", "-readable", "-writable", "-executable", "-daystart", "-noleaf",
		"-ignore_readdir_race", "-noignore_readdir_race", "-warn", "-nowarn", "-help", "-version", "--help", "--version":
		return 0, false
	case "-name", "-iname", "-path", "-ipath", "-wholename", "-iwholename", "-regex", "-iregex", "-lname", "-ilname", "-type", "-xtype", "-size",
		"-mtime", "-atime", "-ctime", "-mmin", "-amin", "-cmin", "-user", "-group", "-uid", "-gid", "-perm", "-maxdepth", "-mindepth", "-links",
		"-inum", "-fstype", "-printf", "-regextype", "-used":
		return 1, false
	case "-samefile", "-newer", "-anewer", "-cnewer":
		return 1, true
	}
	if kind, found := strings.CutPrefix(name, "-newer"); found && len(kind) == 2 && strings.Contains("aBcm", kind[:1]) && strings.Contains("aBcmt", kind[1:]) {
		return 1, kind[1] != 't'
	}
	return -1, false
}
