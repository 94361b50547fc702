package shellpolicy

import (
	"strconv"
	"strings"
)

func itoa(n int) string { return strconv.Itoa(n) }

// maxInner is how many texts may be judged inside one another.
const maxInner = 4

// network makes the command one that needs the network.
func (c *call) network(why string) {
	c.w.res.Network = true
	c.raise(risk, why)
}

// opaqueBecause records why it cannot be told what the line runs.
func (w *walker) opaqueBecause(why string) {
	if w.res.Opaque == "" {
		w.res.Opaque = why
	}
}

// nested judges a command that another one runs. It appears among the commands
// of the line, for rules that deny or ask.
func (c *call) nested(words []word) {
	if len(words) == 0 || c.w.inner >= maxInner {
		return
	}
	outer := c.w.current
	c.w.inner++
	n := c.w.newCall(c.sc, c.from)
	n.words, n.external = words, true
	c.w.current = n
	n.judge()
	n.finish()
	c.w.inner--
	c.w.current = outer
}

// script judges a text that the command runs as shell, and reports whether it
// could be read.
func (c *call) script(text string) bool {
	if gate(text) != "" || c.w.inner >= maxInner {
		return false
	}
	file, err := parse(c.w.ctx, text, c.w.env.Dialect)
	if err != nil {
		return false
	}
	outer, line := c.w.current, c.w.line
	c.w.inner++
	c.w.line = text
	c.w.survey(file)
	c.w.stmts(scope{dirs: c.sc.dirs, background: c.sc.background}, file.Stmts)
	c.w.inner--
	c.w.current, c.w.line = outer, line
	return true
}

// dangerous judges programs whose effects nobody can bound; false when name is
// none of them.
func (c *call) dangerous(name string) bool {
	switch {
	case networkClient(name):
		c.network("uses the network")
	case installer(name):
		c.installs(name)
	case shell(name):
		c.shell()
	case interpreter(name):
		c.interpreter(name)
	case runsOthers(name):
		c.runsOthers(name)
	case container(name):
		c.container()
	default:
		return c.archive(name)
	}
	return true
}

func runsOthers(name string) bool {
	switch name {
	case "xargs", "parallel", "sem", "watch", "script", "entr", "flock", "strace", "ltrace", "valgrind", "perf", "taskset", "numactl", "unbuffer", "faketime",
		"cpulimit", "proot", "fakeroot", "dbus-run-session", "setarch", "linux32", "linux64", "prlimit", "choom", "hyperfine", "nodemon", "reflex",
		"watchexec", "direnv", "dotenv", "op", "doppler", "chpst", "softlimit", "torsocks", "tsocks", "proxychains", "runcon", "xvfb-run", "screen", "tmux",
		"socklog", "daemonize", "start-stop-daemon", "daemon", "dtach", "abduco", "at-spi", "run-parts", "find2perl", "gnome-terminal", "xterm", "open", "xdg-open", "lesspipe", "less", "more", "man", "pg", "most":
		return true
	}
	return false
}

// runsOthers judges programs that run a command made from their arguments or
// their input.
func (c *call) runsOthers(name string) {
	c.raise(risk, "runs other commands")
	spec := tool{short: "0a:d:E:e?I:i?L:l?n:P:prs:tx", long: "null arg-file: delimiter: eof? replace? max-lines? max-args: max-procs: interactive " +
		"no-run-if-empty max-chars: verbose exit show-limits process-slot-var:"}
	if name != "xargs" {
		spec = tool{}
	}
	for i := 1; i < len(c.words); i++ {
		d := c.words[i]
		if !d.static {
			return
		}
		if !d.flag() {
			c.nested(c.words[i:])
			if name == "xargs" || i+1 < len(c.words) && shell(c.words[i].text) {
				return
			}
			if i+1 < len(c.words) && !c.words[i+1].flag() && c.words[i+1].static {
				c.nested(c.words[i+1:]) // the first operand may be the program's own
			}
			return
		}
		if marks, found := shortMarks(spec.short, d.text[1]); found && len(d.text) == 2 && strings.Contains(marks, ":") {
			i++
		}
	}
}

// programFlags looks for options that name a program or the text of one,
// whatever the tool.
func (c *call) programFlags() {
	for i, d := range c.words {
		if i == 0 || c.texts[i] || !d.static {
			continue
		}
		option, _, _ := strings.Cut(strings.TrimLeft(d.text, "-"), "=")
		if d.flag() {
			switch option {
			case "exec", "execdir", "exec-batch", "toolexec", "vettool", "command", "eval", "shell", "script-shell", "compress-program",
				"use-compress-program", "to-command", "pre", "rsh", "upload-pack", "receive-pack", "extcmd", "editor", "pager", "interpreter",
				"launcher", "wrapper", "require", "loader", "import", "init-command", "before-command", "ldflags", "gccgoflags", "overlay", "modfile":
				if option != "ldflags" || strings.Contains(d.text, "extld") {
					c.raise(risk, "runs a program or text given by "+cut(d.text, 80))
				}
			case "config":
				if path := c.words[0].text; path == "cargo" {
					c.raise(risk, "overrides the configuration of "+path)
				}
			}
			continue
		}
		if key, _, found := strings.Cut(d.text, "="); found && riskyVariable(key) != "" && !strings.Contains(key, "/") {
			c.raise(risk, riskyVariable(key))
		}
	}
}
