package shellpolicy

import "strings"

// wrapper is a program that runs the command behind its own arguments.
type wrapper struct {
	t        tool
	operands int // of its own, before the command
	assigns  bool
}

// wrapperOf returns the grammar of a wrapper.
func wrapperOf(name string) (wrapper, bool) {
	switch name {
	case "timeout":
		return wrapper{operands: 1, t: tool{short: "fk:ps:v", long: "foreground kill-after: preserve-status signal: verbose"}}, true
	case "nice":
		return wrapper{t: tool{short: "n:", digits: true, long: "adjustment:"}}, true
	case "ionice":
		return wrapper{t: tool{short: "c:n:tp~:P~:u~:", long: "class: classdata: ignore pid~: pgid~: uid~:"}}, true
	case "stdbuf":
		return wrapper{t: tool{short: "i:o:e:", long: "input: output: error:"}}, true
	case "nohup":
		return wrapper{t: tool{class: run, why: "may write its output to nohup.out"}}, true
	case "setsid":
		return wrapper{t: tool{class: risk, why: "outlives the command that started it", short: "cfw", long: "ctty fork wait"}}, true
	case "time":
		return wrapper{t: tool{short: "ao>pvf:q", long: "append output> portability verbose format: quiet"}}, true
	case "chrt":
		return wrapper{operands: 1, t: tool{class: run, why: "changes how it is scheduled", short: "abdfiormvRT:P:D:p~", long: "all-tasks batch deadline fifo idle other rr max pid~ reset-on-fork verbose sched-runtime: sched-period: sched-deadline:"}}, true
	case "env":
		return wrapper{assigns: true, t: tool{short: "i~u~:0vC~<S!:", long: "ignore-environment~ unset~: null debug chdir~< split-string!: block-signal~? default-signal~? ignore-signal~? list-signal-handling"}}, true
	case "command":
		return wrapper{t: tool{short: "p~vV"}}, true
	case "builtin":
		return wrapper{t: tool{}}, true
	case "exec":
		return wrapper{t: tool{short: "c~la:"}}, true
	case "busybox", "toybox", "coreutils":
		return wrapper{t: tool{class: run, why: "runs a program of another make than the system's"}}, true
	}
	return wrapper{}, false
}

// peel takes the wrappers off, one after the other. Rules that deny or ask see
// the command with them, too.
func (c *call) peel() {
	for len(c.words) > 0 && c.words[0].plain() {
		name, trusted := c.trusted(c.words[0].text)
		wr, ok := wrapperOf(name)
		if !ok || c.w.functions[name] || name == "builtin" && c.w.env.Dialect == Posix {
			return
		}
		rest, peeled := c.unwrap(name, wr)
		if !peeled {
			return
		}
		c.unlessTrusted(trusted)
		c.external = c.external || name != "command" && name != "builtin"
		c.forms = append(c.forms, known(c.words))
		c.words = c.words[rest:]
		c.texts, c.judged = map[int]bool{}, map[int]bool{}
	}
}

// known are the leading words that are known.
func known(words []word) []string {
	var list []string
	for _, d := range words {
		if !d.static {
			break
		}
		list = append(list, d.text)
	}
	return list
}

// unwrap judges the arguments of a wrapper and returns the index of the
// command behind them. peeled is false when there is none.
func (c *call) unwrap(name string, wr wrapper) (rest int, peeled bool) {
	o := &options{t: wr.t, at: 1, after: len(c.words)}
	left := wr.operands
	inspects := false
	for ; o.at < len(c.words); o.at++ {
		d := c.words[o.at]
		switch {
		case !d.static || d.glob:
			// The command, or an argument that decides where it begins.
			if left > 0 {
				c.raise(risk, notKnown(d))
			}
			return c.unwrapped(wr, o.at), true
		case d.text == "--" && o.after == len(c.words):
			o.after = o.at
		case d.flag() && o.at < o.after && strings.HasPrefix(d.text, "--"):
			c.longOption(o, d)
		case d.flag() && o.at < o.after && wr.t.digits && strings.Trim(d.text[1:], "0123456789") == "":
		case d.flag() && o.at < o.after:
			if name == "command" && strings.ContainsAny(d.text, "vV") {
				inspects = true
			}
			c.shortOptions(o, d)
		case wr.assigns && d.text == "-":
			c.raise(run, "runs without the environment")
		case wr.assigns && assignment(d.text):
			key, value, _ := strings.Cut(d.text, "=")
			c.variable(key, literal(value))
		case left > 0:
			left--
		case inspects:
			return 0, false
		default:
			return c.unwrapped(wr, o.at), true
		}
	}
	return 0, false
}

// unwrapped takes over what is known of the wrapper.
func (c *call) unwrapped(wr wrapper, rest int) int {
	if wr.t.class > read {
		c.raise(wr.t.class, wr.t.why)
	}
	return rest
}

// assignment reports whether an argument of env sets a variable.
func assignment(s string) bool {
	at := strings.IndexByte(s, '=')
	return at > 0
}
