package shellpolicy

import (
	"path"
	"slices"
	"strings"
)

// judge finds out what the command does, and where it leaves the shell.
func (c *call) judge() ends {
	e := both(c.sc.dirs)
	c.peel()
	if len(c.words) == 0 {
		return e
	}
	head := c.words[0]
	if !head.static || head.glob {
		why := head.why
		if head.glob {
			why = "it is a pattern"
		}
		c.raise(risk, "cannot be analysed: the command name is not known, "+why)
		if c.w.res.Opaque == "" {
			c.w.res.Opaque = c.why
		}
		return e
	}
	name, trusted := c.trusted(head.text)
	c.program(head.text, name, trusted)
	if strings.ContainsFunc(head.text, func(r rune) bool { return r >= 0x80 }) {
		c.raise(run, "the command name has characters that may look like others")
	}
	if !strings.Contains(head.text, "/") {
		if left, done := c.builtin(name); done {
			return left
		}
	}
	c.named(name, trusted)
	return e
}

// named judges a program by its name.
func (c *call) named(name string, trusted bool) {
	if why := forbiddenProgram(name); why != "" {
		c.w.forbid(why)
		return
	}
	if c.dangerous(name) || c.special(name) || c.changes(name) {
		c.unlessTrusted(trusted)
		c.prefix = rememberedWords(name, trusted, c.words)
		c.programFlags()
		return
	}
	if t, ok := readTool(name); ok {
		c.table(t)
		c.unlessTrusted(trusted)
		return
	}
	c.raise(run, "runs "+Escape(name)+", which may change things")
	c.prefix = rememberedWords(name, trusted, c.words)
	c.programFlags()
}

// unlessTrusted makes a program that only has the name of a known one unknown.
func (c *call) unlessTrusted(trusted bool) {
	if !trusted {
		c.raise(run, "runs a program of that name which is not the system's")
	}
}

// readTool returns the grammar of a program of the read list.
func readTool(name string) (tool, bool) {
	if t, ok := textTool(name); ok {
		return t, true
	}
	if t, ok := fileTool(name); ok {
		return t, true
	}
	return searchTool(name)
}

// trusted returns the base name of a program and whether it is the system's.
func (c *call) trusted(text string) (name string, trusted bool) {
	if !strings.Contains(text, "/") {
		return text, true
	}
	dir, base := path.Split(text)
	return base, slices.Contains(c.w.env.SystemPath, path.Clean(dir)) && path.Clean(text) == text
}

// program judges the file of a program named by a path, and our own program by
// any name.
func (c *call) program(text, name string, trusted bool) {
	c.judged[0] = true
	where := ""
	switch {
	case strings.Contains(text, "/") && !trusted:
		for _, p := range c.w.locate(c.sc, text) {
			where = p.Path
			if !installed(text) || p.Where == 0 {
				c.w.record(p, useRead)
			}
		}
		if where == "" {
			c.raise(risk, "cannot be analysed: the directory it runs in is not known")
		}
	case c.w.functions[name]:
		c.raise(risk, "calls a function of that name")
	}
	for _, own := range c.w.env.Own {
		if own != "" && (where == own || path.Base(own) == name) {
			c.w.forbid("commands of this agent itself are not for the agent to run")
		}
	}
}

// installed reports whether a program lies where systems install programs.
func installed(text string) bool {
	for _, dir := range []string{"/usr/", "/bin/", "/sbin/", "/opt/", "/nix/", "/snap/", "/Library/", "/Applications/"} {
		if strings.HasPrefix(path.Clean(text), dir) {
			return true
		}
	}
	return false
}
