package shellpolicy

import (
	"slices"
	"strings"
)

func shell(name string) bool {
	switch name {
	case "sh", "bash", "dash", "zsh", "ksh", "mksh", "fish", "csh", "tcsh", "ash", "rbash", "pwsh", "powershell", "nu", "elvish", "xonsh":
		return true
	}
	return false
}

// shell judges a shell inside the shell.
func (c *call) shell() {
	c.raise(risk, "runs another shell")
	text := false
	for i := 1; i < len(c.words); i++ {
		d := c.words[i]
		switch {
		case !d.static:
			return
		case d.flag():
			text = text || d.text[1] != '-' && strings.Contains(d.text, "c")
			if d.text == "-o" || d.text == "+o" || d.text == "-O" || d.text == "--rcfile" || d.text == "--init-file" {
				i++
			}
		case text:
			c.texts[i] = c.script(d.text)
			return
		default:
			return
		}
	}
	c.raise(risk, "runs another shell with what it is given")
}

func interpreter(name string) bool {
	for _, p := range []string{"python", "pypy", "perl", "ruby", "php", "lua", "node", "tclsh", "guile", "java"} {
		if rest, found := strings.CutPrefix(name, p); found && strings.Trim(rest, "0123456789.") == "" {
			return true
		}
	}
	switch name {
	case "awk", "gawk", "mawk", "nawk", "osascript", "Rscript", "R", "ghci", "runghc", "scala", "groovy", "julia", "nodejs", "ts-node", "tsx", "irb", "bc", "dc",
		"sqlite3", "ed", "ex", "vi", "vim", "nvim", "emacs", "gdb", "m4", "wish", "expect", "jshell", "iex", "elixir", "erl", "clojure", "bb", "racket", "sbcl", "octave", "jrunscript":
		return true
	}
	return false
}

// interpreter judges programs that run code: that of a file of the project is
// the project's own; that of the line or of a stream is opaque.
func (c *call) interpreter(name string) {
	c.fixed = true
	if strings.HasSuffix(name, "awk") {
		c.awk()
		return
	}
	if len(c.words) == 2 && slices.Contains([]string{"--version", "-V", "-version"}, c.words[1].text) {
		c.fixed = false
		c.raise(run, "asks "+name+" for its version")
		return
	}
	script := 0
	for i, d := range c.words[1:] {
		if !d.plain() {
			c.raise(risk, notKnown(d))
			return
		}
		if d.flag() && !slices.Contains([]string{"-u", "-B", "-s", "-S", "-I", "-m", "-w", "-W", "-v", "-V", "--version", "--test"}, d.text) {
			c.raise(risk, "may run text given by "+d.text)
			for j := i + 2; j < len(c.words); j++ {
				c.judged[j] = true // code is no path; it is searched all the same
			}
			return
		}
		if !d.flag() || d.text == "--version" || d.text == "--test" {
			script = i + 1
			break
		}
	}
	switch {
	case script == 0, c.words[script].text == "-", c.sc.stdin == stdinPipe && script == 0:
		c.raise(risk, "runs what it reads from its input")
	case c.words[script-1].text == "-m" && slices.Contains([]string{"pip", "ensurepip", "venv", "http.server", "webbrowser", "smtpd", "urllib", "ftplib"}, c.words[script].text):
		c.network("installs packages or uses the network")
	case slices.Contains([]string{"sqlite3", "ed", "ex", "vi", "vim", "nvim", "emacs", "gdb", "m4", "bc", "dc", "expect", "osascript"}, name):
		c.raise(risk, "runs a program that can run others")
	default:
		c.raise(run, "runs a script")
	}
}

// awk judges awk: its program is text unless it comes from a file.
func (c *call) awk() {
	for i, d := range c.words[1:] {
		if d.text == "-f" || strings.HasPrefix(d.text, "--file") {
			c.raise(run, "runs a script")
			return
		}
		if !d.flag() && (i == 0 || c.words[i].text != "-F" && c.words[i].text != "-v") {
			c.judged[i+1] = true
			c.texts[i+1] = !strings.Contains(d.text, `"`) // a pattern is no path
			break
		}
	}
	c.raise(risk, "runs a program in its own language, which can run others")
}
