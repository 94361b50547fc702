package shellpolicy

import (
	"strings"

	"github.com/berth-dev/berth/core/domain"
)

const inside = domain.WhereInside

// special judges programs whose arguments are a language of their own; false
// when name is none of them.
func (c *call) special(name string) bool {
	switch name {
	case "find":
		c.find()
	case "git":
		c.git()
	case "sed", "gsed":
		c.sed()
	case "jq":
		c.jq()
	case "date":
		c.date()
	case "hostname":
		c.hostname()
	case "strings":
		t, _ := textTool(name)
		c.table(t)
		for _, d := range c.words[1:] {
			if strings.HasPrefix(d.text, "@") {
				c.raise(run, "takes more arguments from a file")
			}
		}
	case "tac":
		t, _ := textTool(name)
		c.table(t)
		if !c.namesFiles() {
			c.raise(run, "keeps its input in a file of its own")
		}
	case "fd", "fdfind":
		t, _ := searchTool(name)
		c.table(t)
		for i, d := range c.words {
			if d.text == "-x" || d.text == "-X" || d.text == "--exec" || d.text == "--exec-batch" {
				c.nested(c.words[i+1:])
			}
		}
	case "echo", "true", "false":
		c.prints(1)
	case "printf":
		c.prints(1)
	case "test", "[":
		c.classicTest(name)
	case "env":
		c.raise(run, "runs a command in another environment")
	default:
		return false
	}
	return true
}

// namesFiles reports whether a command has operands that were judged, and the
// standard input is none of them.
func (c *call) namesFiles() bool {
	for i := range c.judged {
		if i > 0 && c.words[i].text == "-" {
			return false
		}
	}
	return len(c.judged) > 1 // the program itself is one
}

// jq judges jq: its filter is text that can read other files by import.
func (c *call) jq() {
	c.table(tool{text: 1, short: "cCnrsjaSMehVRf%<L~:",
		long: "raw-output compact-output null-input slurp raw-input join-output ascii-output sort-keys color-output monochrome-output tab indent: " +
			"unbuffered stream stream-errors seq exit-status arg&: argjson&: slurpfile&< rawfile&< args jsonargs from-file%< library-path~: " +
			"raw-output0 build-configuration help version"})
	for i, d := range c.words {
		if c.texts[i] && (strings.Contains(d.text, "import") || strings.Contains(d.text, "include") || strings.Contains(d.text, "modulemeta")) {
			c.raise(run, "reads other files by its filter")
		}
	}
}

// date judges date: an operand that is no format sets the clock.
func (c *call) date() {
	c.table(tool{text: -1, strict: true, short: "d:I?RuIf~:r<s~:",
		long: "date: debug file~: iso-8601? rfc-email rfc-3339: reference< resolution set~: utc universal help version"})
	for i, d := range c.words[1:] {
		if !c.texts[i+1] || strings.HasPrefix(d.text, "-") || strings.HasPrefix(d.text, "+") || i > 0 && dateValue(c.words[i].text) {
			continue
		}
		c.raise(run, "may set the clock")
	}
}

func dateValue(flag string) bool {
	return flag == "-d" || flag == "--date" || flag == "--rfc-3339" || strings.HasPrefix(flag, "-u") && strings.HasSuffix(flag, "d")
}

// hostname judges hostname: an operand sets the name, and some options ask the
// network.
func (c *call) hostname() {
	c.table(tool{text: -1, short: "sI", long: "short all-ip-addresses help version"})
	for _, d := range c.words[1:] {
		if !d.flag() {
			c.raise(run, "may set the name of the system")
		}
	}
}

// sed judges sed. Printing lines by number is a read; editing by a plain
// script changes files at most; everything else may run commands.
func (c *call) sed() {
	var scripts []string
	quiet, inPlace, given := false, false, false
	for i := 1; i < len(c.words); i++ {
		d := c.words[i]
		switch {
		case !d.static:
			c.raise(risk, notKnown(d))
			return
		case d.text == "-n" || d.text == "--quiet" || d.text == "--silent":
			quiet = true
		case d.text == "-e" && i+1 < len(c.words):
			i++
			given = true
			c.texts[i] = true
			c.single(c.words[i])
			scripts = append(scripts, c.words[i].text)
		case d.text == "-ne" && i+1 < len(c.words):
			quiet, given = true, true
			i++
			c.texts[i] = true
			scripts = append(scripts, c.words[i].text)
		case strings.HasPrefix(d.text, "-i") || strings.HasPrefix(d.text, "--in-place"):
			inPlace = true
		case d.text == "-E" || d.text == "-r" || d.text == "-s" || d.text == "-u" || d.text == "-z" || d.text == "--regexp-extended" || d.text == "--posix":
		case d.flag():
			c.raise(risk, "may run a script given by "+d.text)
		case !given:
			given = true
			c.texts[i] = true
			c.single(d)
			scripts = append(scripts, d.text)
		default:
			c.sedFile(i, inPlace)
		}
	}
	c.sedScripts(scripts, quiet, inPlace)
}

func (c *call) sedFile(i int, inPlace bool) {
	d := c.words[i]
	c.judged[i] = true
	if d.glob && !safeStart(d.pattern) {
		c.raise(run, "a file name could become an option: "+d.from)
	}
	u := useRead
	if inPlace {
		u = useWrite
	}
	c.uses(d, u)
}

func (c *call) sedScripts(scripts []string, quiet, inPlace bool) {
	if inPlace {
		c.raise(run, "changes files in place")
	}
	for _, s := range scripts {
		switch {
		case quiet && linesOnly(s):
		case plainEdit(s):
			c.raise(run, "runs a script that edits text")
		default:
			c.raise(risk, "runs a script that may run commands or write files")
		}
	}
	if len(scripts) == 0 {
		c.raise(run, "runs sed without a script")
	}
}

// linesOnly reports whether a script of sed prints lines by number: 5p, 1,20p,
// $p, several behind semicolons.
func linesOnly(script string) bool {
	for _, s := range strings.Split(script, ";") {
		s, found := strings.CutSuffix(strings.TrimSpace(s), "p")
		if !found {
			return false
		}
		from, to, two := strings.Cut(s, ",")
		if !lineAddress(from) || two && !lineAddress(to) {
			return false
		}
	}
	return true
}

func lineAddress(s string) bool { return s == "$" || s != "" && strings.Trim(s, "0123456789") == "" }

// plainEdit reports whether a script of sed is one substitution that neither
// runs nor writes anything, or deletes or prints lines by number.
func plainEdit(script string) bool {
	if rest := strings.TrimRight(script, "dpq"); len(script)-len(rest) == 1 {
		from, to, two := strings.Cut(rest, ",")
		if lineAddress(from) && (!two || lineAddress(to)) {
			return true
		}
	}
	script = strings.TrimLeft(script, "0123456789,$")
	if len(script) < 4 || script[0] != 's' || strings.Contains(script, "\n") {
		return false
	}
	delim := script[1]
	if delim == '\\' || delim >= 'a' && delim <= 'z' || delim >= 'A' && delim <= 'Z' || delim >= 0x80 {
		return false
	}
	seen := 0
	for i := 2; i < len(script); i++ {
		switch script[i] {
		case '\\':
			i++
		case '[':
			if seen == 0 {
				return false // a delimiter in brackets is none, which is more than is followed here
			}
		case delim:
			if seen++; seen == 2 {
				return strings.Trim(script[i+1:], "gipI0123456789") == ""
			}
		}
	}
	return false
}

// changes judges the tools that change files in known ways; false when name is
// none of them.
func (c *call) changes(name string) bool {
	const writes = "changes files"
	t := tool{class: run, why: writes, use: useWrite}
	switch name {
	case "rm", "unlink", "shred", "srm", "trash":
		t = tool{class: run, why: "deletes files", use: useRemove, short: "r^R^fiIdvuz", tree: "deletes a tree", globbed: "deletes what a pattern matches",
			long: "recursive^ force interactive? one-file-system no-preserve-root^ preserve-root? dir verbose remove? zero"}
	case "rmdir":
		t = tool{class: run, why: "deletes directories", use: useRemove, short: "pv", long: "parents verbose ignore-fail-on-non-empty"}
	case "mkdir", "mkfifo":
		t.short, t.long = "pvm:Z", "parents verbose mode:"
	case "touch":
		t.short, t.long = "acmd:r<t:h", "date: reference< time: no-create no-dereference"
	case "truncate":
		t.short, t.long = "cos:r<", "size: reference< no-create io-blocks"
	case "tee":
		t.short, t.long = "aip", "append ignore-interrupts output-error?"
	case "cp", "install":
		t = tool{class: run, why: writes, use: useRead, last: true, short: "abdfHiLlnPpRrsS:t>TuvxZDm:o:g:c",
			long: "archive backup? force interactive dereference no-dereference link no-clobber preserve? recursive symbolic-link suffix: " +
				"target-directory> no-target-directory update? verbose one-file-system parents attributes-only reflink? sparse: mode: owner: group: strip-program!: directory"}
	case "mv":
		t = tool{class: run, why: writes, use: useRemove, last: true, short: "bfinS:t>TuvZ",
			long: "backup? force interactive no-clobber suffix: target-directory> no-target-directory update? verbose exchange strip-trailing-slashes"}
	case "ln":
		t = tool{class: run, why: writes, use: useAny, last: true, short: "bdFfiLnPrsS:t>Tv",
			long: "backup? directory force interactive logical no-dereference physical relative symbolic suffix: target-directory> no-target-directory verbose"}
	case "chmod", "chown", "chgrp":
		t.text, t.tree = 1, "changes a whole tree"
		t.short, t.long = "R^cfvhHLP", "recursive^ changes silent quiet verbose reference%< dereference no-dereference preserve-root no-preserve-root^ from:"
	case "kill":
		c.kill()
		return true
	case "dd":
		c.raise(run, writes)
		return true
	default:
		return false
	}
	c.table(t)
	return true
}

// kill judges kill: a signal to everything is refused.
func (c *call) kill() {
	c.raise(run, "ends a process")
	for i, d := range c.words[1:] {
		c.texts[i+1] = true
		if i > 0 && d.text == "-1" || d.text == "-0" && i > 0 || i == 0 && d.text == "-1" && len(c.words) == 2 {
			c.w.forbid("a signal to every process is refused")
		}
	}
}
