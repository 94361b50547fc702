package shellpolicy

import (
	"strings"

	"github.com/berth-dev/berth/core/domain"
)

// tool is the grammar of a program's arguments.
//
// short lists option letters, long option names separated by blanks. Behind
// each stand marks that say what it does:
//
//	:  takes a value, which is text
//	?  may have a value behind = or the letter, which is text
//	<  takes a path that is read
//	>  takes a path that is written
//	&  takes one more value before, which is text
//	%  stands for the operand that is text, such as the pattern of grep
//	@  goes through directories as a whole
//	~  makes more of the program than a read
//	^  makes it work on a whole tree
//	!  runs a program, or makes the program run text
type tool struct {
	class  domain.AccessClass // of the program without options; zero for a read
	why    string             // why it is no read
	short  string
	long   string
	digits bool // -5 is an option too
	text   int  // how many operands are text, from the first; all when negative
	most   int  // how many operands a read has; 0 for no limit
	// strict is set when an option could do harm, so that no file name may
	// come to stand for one.
	strict  bool
	walk    bool   // always goes through directories as a whole
	dot     bool   // without operands it does so with the current one
	use     use    // what it does with operands
	last    bool   // the last operand is written, the others are used as said
	tree    string // why ^ makes it a risk
	globbed string // why a pattern among the operands makes it a risk
}

// options is the state of one run over an argument list.
type options struct {
	t        tool
	at       int   // the word looked at
	operands []int // indexes of words
	after    int   // words from here on cannot be options
	patterns int   // how many operands that are text were given by options
	walks    bool
}

// table judges the command by the grammar of its arguments.
func (c *call) table(t tool) {
	if t.class > c.class {
		c.raise(t.class, t.why)
	}
	o := &options{t: t, at: c.start, after: len(c.words), walks: t.walk}
	for ; o.at < len(c.words); o.at++ {
		d := c.words[o.at]
		switch {
		case o.at > o.after || !strings.HasPrefix(d.text, "-") || len(d.text) < 2:
			o.operands = append(o.operands, o.at)
		case !d.static:
			c.raise(risk, notKnown(d))
		case d.text == "--":
			o.after = o.at
			c.texts[o.at] = true
		case strings.HasPrefix(d.text, "--"):
			c.longOption(o, d)
		case t.digits && strings.Trim(d.text[1:], "0123456789") == "":
			c.texts[o.at] = true
		default:
			c.shortOptions(o, d)
		}
	}
	c.tableOperands(o)
}

// longOption judges --name and --name=value.
func (c *call) longOption(o *options, d word) {
	name, value, has := strings.Cut(d.text[2:], "=")
	marks, found := longMarks(o.t.long, name)
	if !found {
		c.raise(run, "has an option that is not known: --"+name)
		return
	}
	if d.glob && (!has || !strings.HasPrefix(d.pattern, "--"+name+"=")) {
		c.raise(run, "has a pattern in an option: "+d.from)
	}
	takes := strings.ContainsAny(marks, ":<>")
	if has && !takes && !strings.Contains(marks, "?") {
		c.raise(run, "has an option that is not known: "+d.text)
	}
	c.option(o, "--"+name, marks, literal(value), has)
}

// longMarks finds an option by its name or an abbreviation of it. If several
// are meant, the marks are those of all.
func longMarks(long, name string) (marks string, found bool) {
	for _, entry := range strings.Fields(long) {
		full := strings.TrimRight(entry, ":?<>&%@~^!")
		switch {
		case full == name:
			return entry[len(full):], true
		case full == "no-*":
			if strings.HasPrefix(name, "no-") {
				return "", true
			}
		case name != "" && strings.HasPrefix(full, name):
			if found {
				marks += "~"
			}
			marks += entry[len(full):]
			found = true
		}
	}
	return marks, found
}

// shortOptions judges a cluster such as -la or -n5.
func (c *call) shortOptions(o *options, d word) {
	letters := d.text[1:]
	if d.glob {
		c.raise(run, "has a pattern in an option: "+d.from)
	}
	for i := range len(letters) {
		marks, found := shortMarks(o.t.short, letters[i])
		if !found {
			c.raise(run, "has an option that is not known: -"+letters[i:])
			return
		}
		rest := letters[i+1:]
		if strings.ContainsAny(marks, ":<>?") {
			c.option(o, "-"+letters[i:i+1], marks, literal(rest), rest != "")
			return
		}
		c.option(o, "-"+letters[i:i+1], marks, word{}, false)
	}
}

// shortMarks finds an option by its letter.
func shortMarks(short string, letter byte) (marks string, found bool) {
	const all = ":?<>&%@~^!"
	if strings.IndexByte(all, letter) >= 0 {
		return "", false
	}
	at := strings.IndexByte(short, letter)
	if at < 0 {
		return "", false
	}
	marks = short[at+1:]
	return marks[:len(marks)-len(strings.TrimLeft(marks, all))], true
}

// option judges one option; value is what stands attached to it, if has.
func (c *call) option(o *options, name, marks string, value word, has bool) {
	for _, m := range marks {
		switch m {
		case '!':
			c.raise(risk, "runs a program or text given by "+name)
		case '^':
			c.raise(risk, o.t.tree)
		case '~':
			c.raise(run, "has the option "+name)
		case '@':
			o.walks = true
		case '%':
			o.patterns++
		case '&':
			if has {
				c.raise(run, "has an option that is not known: "+name+"=")
			}
			c.nextValue(o)
		}
	}
	index := o.at
	if !has && strings.ContainsAny(marks, ":<>") {
		var ok bool
		if value, ok = c.nextValue(o); !ok {
			c.raise(run, "has an option without its value: "+name)
			return
		}
		index = o.at
	}
	switch {
	case strings.Contains(marks, "!"):
		if value.plain() && value.text != "" {
			c.script(value.text)
		}
	case strings.Contains(marks, "<"):
		c.judged[index] = true
		c.opens(value)
	case strings.Contains(marks, ">"):
		c.judged[index] = true
		c.raise(run, "writes to the file given by "+name)
		c.uses(value, useWrite)
	default:
		c.texts[index] = true
	}
}

// nextValue takes the next word as the value of an option.
func (c *call) nextValue(o *options) (value word, ok bool) {
	if o.at+1 >= len(c.words) {
		return word{}, false
	}
	o.at++
	value = c.words[o.at]
	c.single(value)
	c.texts[o.at] = true
	return value, true
}

// single judges a pattern where one word is meant: it must not become several.
func (c *call) single(d word) {
	if !d.glob {
		return
	}
	if list, ok := c.w.matches(c.sc, d.pattern); !ok || len(list) > 1 || len(list) == 1 && strings.HasPrefix(list[0].name, "-") {
		c.raise(run, "has a pattern that several names match: "+d.from)
	}
}

// tableOperands judges the operands.
func (c *call) tableOperands(o *options) {
	t := o.t
	texts := max(0, t.text-o.patterns)
	if t.text < 0 {
		texts = len(o.operands)
	}
	opened := 0
	for n, i := range o.operands {
		d := c.words[i]
		if d.glob && t.strict && i < o.after && !safeStart(d.pattern) {
			c.raise(run, "a file name could become an option: "+d.from)
		}
		if d.glob && t.most > 0 {
			c.raise(run, "a pattern may become several operands, one of which is written: "+d.from)
		}
		if d.glob && t.globbed != "" {
			c.raise(risk, t.globbed)
		}
		if n < texts {
			c.texts[i] = true
			if d.glob {
				c.pattern(d, useRead)
			}
			continue
		}
		opened++
		c.judged[i] = true
		u := t.use
		if t.last && n > 0 && n == len(o.operands)-1 || t.most > 0 && n >= t.most {
			u = useWrite
			if t.class == 0 {
				c.raise(run, "writes to its operand "+d.from)
			}
		}
		c.uses(d, u)
		if o.walks {
			c.walks(d)
		}
	}
	if t.dot && opened == 0 || o.walks && opened == 0 {
		c.opens(literal("."))
		c.walks(literal("."))
	}
	if t.last && len(o.operands) > 1 {
		c.into(o.operands)
	}
}

// into judges the names that copying several things into a directory makes.
func (c *call) into(operands []int) {
	dest := c.words[operands[len(operands)-1]]
	if !dest.plain() {
		return
	}
	for _, p := range c.w.locate(c.sc, dest.text) {
		if !p.Dir {
			continue
		}
		for _, i := range operands[:len(operands)-1] {
			name := strings.TrimRight(c.words[i].text, "/")
			if name = name[strings.LastIndexByte(name, '/')+1:]; name != "" && c.words[i].static {
				c.w.touch(c.sc, strings.TrimRight(dest.text, "/")+"/"+name, useWrite)
			}
		}
	}
}

// safeStart reports whether no name that a pattern makes can be an option.
func safeStart(pattern string) bool {
	return strings.HasPrefix(pattern, "./") || strings.HasPrefix(pattern, "../") || strings.HasPrefix(pattern, "/")
}
