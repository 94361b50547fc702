package shellpolicy

import (
	"path"
	"slices"
	"strings"

	"github.com/berth-dev/berth/core/domain"
)

// builtin judges the commands of the shell itself. done is false when name is
// none of them.
func (c *call) builtin(name string) (left ends, done bool) {
	left = both(c.sc.dirs)
	if c.external && !slices.Contains([]string{"echo", "printf", "test", "[", "true", "false", "env"}, name) {
		return left, false
	}
	if c.w.env.Dialect == Posix && slices.Contains([]string{"pushd", "popd", "builtin", "source"}, name) {
		c.raise(risk, "is a command of some shells only")
		return both(dirs{lost: true}), true
	}
	switch name {
	case "cd", "pushd":
		return c.changeDir(name), true
	case "popd":
		c.fixed = true
		c.raise(run, "goes to a directory that is not known")
		return both(dirs{lost: true}), true
	case "echo":
		c.prints(1)
	case "printf":
		c.printf()
	case "test", "[":
		c.classicTest(name)
	case "true", "false", ":", "type", "command", "exec", "builtin", "times":
		c.prints(1)
	case "env":
		c.table(tool{short: "0", long: "null help version"})
	case "exit", "return", "break", "continue":
		c.control()
	case "set":
		c.set()
	case "eval":
		c.eval()
	case "source", ".":
		c.raise(risk, "runs a script in this shell")
	case "read", "wait", "shift", "umask", "ulimit", "getopts":
		c.fixed = true
		c.raise(run, "is a command of the shell that changes its state")
		c.subscripts()
	case "export", "declare", "typeset", "local", "readonly", "unset", "mapfile", "readarray", "let", "shopt", "enable", "hash",
		"alias", "unalias", "trap", "bind", "complete", "compgen", "compopt", "caller", "fc", "history", "logout", "suspend",
		"disown", "bg", "fg", "jobs", "dirs", "coproc", "nameref":
		c.raise(risk, "changes the environment of later commands")
		c.assignedByArgs()
	default:
		return left, false
	}
	return left, true
}

// prints takes the words from the given one on as text that is looked at by
// nobody.
func (c *call) prints(from int) {
	for i := from; i < len(c.words); i++ {
		c.texts[i] = true
		if c.words[i].glob {
			c.pattern(c.words[i], useRead)
		}
	}
}

// printf judges printf: -v sets a variable, whose subscript is evaluated.
func (c *call) printf() {
	if len(c.words) > 1 && strings.HasPrefix(c.words[1].text, "-") && c.words[1].text != "--" {
		c.fixed = true
		c.raise(run, "sets a variable")
		c.subscripts()
	}
	if len(c.words) > 1 && !c.words[1].static && !c.words[1].number {
		c.raise(risk, notKnown(c.words[1]))
	}
	c.prints(1)
}

// subscripts looks for what the shell would evaluate as a subscript.
func (c *call) subscripts() {
	for _, d := range c.words[1:] {
		if !d.static || strings.Contains(d.text, "[") {
			c.raise(risk, "evaluates text as a subscript")
		}
	}
}

// assignedByArgs judges NAME=value among the words of export and its like.
func (c *call) assignedByArgs() {
	for _, d := range c.words[1:] {
		if key, value, found := strings.Cut(d.text, "="); found && d.static {
			c.variable(key, literal(value))
		}
	}
	c.extras = nil
}

// control judges exit and its like, which take a number.
func (c *call) control() {
	for i, d := range c.words[1:] {
		c.texts[i+1] = true
		if !d.number && !(d.static && number(d.text)) {
			c.raise(run, "has an operand that is no number")
		}
	}
}

// set judges the options that only make a shell stop earlier or say more.
func (c *call) set() {
	c.fixed = true
	for i := 1; i < len(c.words); i++ {
		d := c.words[i]
		letters, found := strings.CutPrefix(d.text, "-")
		if !found || !d.plain() || letters == "" || strings.Trim(letters, "eux"+"o") != "" {
			c.raise(risk, "changes the environment of later commands")
			return
		}
		if strings.Contains(letters, "o") {
			if i+1 >= len(c.words) || !slices.Contains([]string{"pipefail", "errexit", "nounset", "xtrace"}, c.words[i+1].text) || strings.Count(letters, "o") > 1 {
				c.raise(risk, "changes the environment of later commands")
				return
			}
			i++
		}
	}
	if len(c.words) == 1 {
		c.raise(run, "prints every variable")
	}
}

// eval judges the text it runs as if it stood here, and remains a risk.
func (c *call) eval() {
	c.raise(risk, "runs text as a command")
	var parts []string
	for i, d := range c.words[1:] {
		if !d.static {
			return
		}
		c.texts[i+1] = true
		parts = append(parts, d.text)
	}
	c.script(strings.Join(parts, " "))
}

// classicTest judges test and [.
func (c *call) classicTest(name string) {
	words := c.words[1:]
	if name == "[" && len(words) > 0 && words[len(words)-1].text == "]" {
		words = words[:len(words)-1]
	}
	for i := range c.words {
		c.texts[i] = true
	}
	for i, d := range words {
		if d.glob {
			c.pattern(d, useRead)
		}
		if !d.static {
			continue
		}
		switch {
		case len(d.text) == 2 && d.text[0] == '-' && i+1 < len(words):
			c.unaryTest(d.text, words[i+1])
			if d.text == "-v" || d.text == "-R" {
				c.subscriptsOf(words)
			}
		case len(d.text) == 3 && d.text[0] == '-' && i > 0 && i+1 < len(words):
			c.binaryTest(d.text, words[i-1], words[i+1])
		}
	}
}

func (c *call) subscriptsOf(words []word) {
	for _, d := range words {
		if !d.static || strings.Contains(d.text, "[") {
			c.raise(risk, "evaluates text as a subscript")
		}
	}
}

// changeDir judges cd and pushd and returns where they lead.
func (c *call) changeDir(name string) ends {
	before := c.sc.dirs
	lost := ends{ok: dirs{lost: true}, fail: before}
	operand := literal(c.w.env.Home)
	seen := false
	for i, d := range c.words[1:] {
		switch {
		case d.static && (d.text == "-L" || d.text == "-P" || d.text == "--") && !seen:
			c.texts[i+1] = true
		case d.static && d.text == "-", seen, !d.plain(), d.flag(), strings.HasPrefix(d.text, "+"):
			c.raise(run, "goes to a directory that is not known")
			c.fixed = true
			return lost
		default:
			operand, seen = d, true
			c.judged[i+1] = true
		}
	}
	if !seen && (name == "pushd" || operand.text == "" || c.w.renamed["HOME"]) {
		c.raise(run, "goes to a directory that is not known")
		return lost
	}
	places := c.w.touch(c.sc, operand.text, useRead)
	if places == nil {
		c.raise(run, "goes to a directory that is not known")
		return lost
	}
	left := ends{ok: dirs{}, fail: before}
	certain := true
	for i, p := range places {
		left.ok.set = append(left.ok.set, c.arrive(p, i, operand.text, &left.ok))
		certain = certain && p.Exists && p.Dir && p.Where != domain.WhereForbidden
	}
	left.ok.set = sorted(left.ok.set)
	left.sure = certain
	return left
}

// arrive is the directory that cd leads to. Where a link was followed, the
// shell's idea of .. is not the system's, so anything may follow.
func (c *call) arrive(p domain.Place, i int, operand string, d *dirs) string {
	logical := path.Clean(operand)
	if !path.IsAbs(operand) {
		from := c.sc.dirs.set[i]
		if from == "" {
			from = c.w.env.Cwd
		}
		logical = path.Join(from, operand)
	}
	if logical != p.Path {
		d.lost = true
	}
	if p.Path == c.w.env.Cwd {
		return ""
	}
	return p.Path
}
