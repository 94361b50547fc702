package shellpolicy

import (
	"slices"
	"strings"
)

// git judges git. Only listed forms are reads, and those only inside a
// read-only sandbox, because a repository's own settings make git run
// programs.
func (c *call) git() {
	c.w.res.Git = true
	foreign := c.otherRepository(c.sc.dirs.only(c.w.env.Cwd))
	at := 1
	for ; at < len(c.words); at++ {
		d := c.words[at]
		switch {
		case !d.plain():
			c.raise(risk, "cannot be analysed: what git is to do is not known")
			c.w.opaqueBecause(c.why)
			return
		case !d.flag():
			c.subcommand(at, d.text, foreign)
			return
		case d.text == "-C" && at+1 < len(c.words):
			at++
			c.judged[at] = true
			c.uses(c.words[at], useRead)
			foreign = true
			for _, p := range c.w.locate(c.sc, c.words[at].text) {
				foreign = !c.words[at].plain() || c.otherRepository(p.Path)
			}
		case slices.Contains([]string{"--no-pager", "-P", "--no-optional-locks", "--literal-pathspecs", "--no-replace-objects"}, d.text):
			c.texts[at] = true
		case d.text == "--version" || d.text == "-v":
			return
		default:
			c.raise(risk, "overrides the configuration of git: "+d.text)
			if !strings.Contains(d.text, "=") {
				at++ // the value, at most one word too many of what is a risk anyway
			}
		}
	}
	c.raise(run, "runs git without a command")
}

// otherRepository reports whether git in dir may find another repository than
// the one of the session's directory.
func (c *call) otherRepository(dir string) bool {
	cwd := c.w.env.Cwd
	if dir == "" || !below(cwd, dir) {
		return true
	}
	for dir != cwd {
		for _, name := range []string{"/.git", "/HEAD"} {
			if c.w.judge("", dir+name).Exists {
				return true
			}
		}
		dir = dir[:strings.LastIndexByte(dir, '/')]
	}
	return false
}

// subcommand judges what git is told to do.
func (c *call) subcommand(at int, name string, foreign bool) {
	c.start = at + 1
	c.judged[at] = true
	if !c.gitRead(name) {
		c.gitChange(name)
		return
	}
	switch {
	case !c.w.env.ReadOnlySandbox:
		c.raise(run, "git may run programs that the repository names")
	case foreign:
		c.raise(run, "the repository may not be the session's, and git may run programs that it names")
	}
	if c.class == read {
		if why := c.w.settings(); why != "" {
			c.raise(run, "git may run programs: "+why)
		}
	}
	for _, d := range c.words[c.start:] {
		if strings.Contains(d.text, "%G") {
			c.raise(run, "checks signatures, which runs a program")
		}
	}
}

// gitRead judges the forms of git that read; false when name has none.
func (c *call) gitRead(name string) bool {
	switch name {
	case "branch", "tag":
		if c.gitList(name); c.class > read {
			c.gitOptions(name)
		}
	case "remote":
		return c.gitRemote()
	case "stash", "worktree", "reflog":
		return c.gitSub(name)
	case "config":
		c.gitConfig()
	default:
		t, ok := gitTool(name)
		if ok {
			c.table(t)
		}
		return ok
	}
	return true
}

// gitList judges git branch and git tag, which list or make something.
func (c *call) gitList(name string) {
	listing := false
	for _, d := range c.words[c.start:] {
		option, _, _ := strings.Cut(d.text, "=")
		listing = listing || slices.Contains([]string{"--list", "--contains", "--no-contains", "--merged", "--no-merged", "--points-at"}, option) ||
			name == "tag" && option == "-l"
	}
	t := tool{text: -1, short: "arvq", long: "all remotes list verbose quiet show-current contains? no-contains? merged? no-merged? sort: format: " +
		"points-at: column? no-column color? no-color abbrev? no-abbrev ignore-case"}
	if name == "tag" {
		t.short = "ln?i"
	}
	c.table(t)
	for i, d := range c.words[c.start:] {
		if !d.flag() && !listing && c.texts[c.start+i] {
			if prev := c.words[c.start+i-1].text; prev != "--sort" && prev != "--format" {
				c.raise(run, "makes a "+name)
			}
		}
	}
}

// gitRemote judges git remote.
func (c *call) gitRemote() bool {
	words := texts(c.words[c.start:])
	switch {
	case len(words) == 0, len(words) == 1 && (words[0] == "-v" || words[0] == "--verbose"):
		return true
	case words[0] == "get-url":
		c.start++
		c.table(tool{text: -1, long: "push all"})
		return true
	}
	return false
}

// gitSub judges the forms of git stash, worktree and reflog that list.
func (c *call) gitSub(name string) bool {
	sub := ""
	if len(c.words) > c.start {
		sub = c.words[c.start].text
	}
	what := name + " " + sub
	switch {
	case what == "stash list":
		c.start++
		c.table(tool{short: gitLogShort, long: gitLogLong, digits: true, strict: true})
	case what == "stash show":
		c.start++
		c.table(tool{short: gitDiffShort, long: gitDiffLong, strict: true})
	case what == "worktree list":
		c.start++
		c.table(tool{short: "vz", long: "porcelain verbose"})
	case what == "reflog show", name == "reflog" && (sub == "" || strings.HasPrefix(sub, "-")):
		if sub == "show" {
			c.start++
		}
		c.table(tool{short: gitLogShort, long: gitLogLong, digits: true, strict: true})
	default:
		return false
	}
	return true
}

// gitConfig judges git config: asking for one key that holds no secret is a
// read; everything else writes a file that makes git run programs.
func (c *call) gitConfig() {
	get, global := false, false
	var operands []string
	for i := c.start; i < len(c.words); i++ {
		d := c.words[i]
		switch {
		case !d.plain():
			c.raise(risk, notKnown(d))
		case d.text == "--get" || d.text == "--get-all" || d.text == "get" && i == c.start:
			get = true
		case d.text == "--list" || d.text == "-l" || d.text == "list" && i == c.start || d.text == "--get-regexp":
			get = true
			c.raise(run, "shows settings that may hold secrets")
		case d.text == "--global" || d.text == "--system":
			global = true
			c.raise(run, "uses settings outside the session's directories")
		case slices.Contains([]string{"--local", "--bool", "--int", "--path", "--show-origin", "--show-scope", "-z", "--null", "--name-only"}, d.text):
		case (d.text == "-f" || d.text == "--file") && i+1 < len(c.words):
			i++
			c.judged[i] = true
			c.uses(c.words[i], useWrite)
			c.w.res.Protected = true
			c.raise(run, "uses settings of another file")
		case d.flag():
			c.raise(run, "has an option that is not known: "+d.text)
			operands = append(operands, d.text, d.text)
		default:
			c.texts[i] = true
			operands = append(operands, d.text)
		}
	}
	if len(operands) > 0 && secretKey(operands[0]) {
		c.raise(run, "shows a setting that may hold a secret")
	}
	if get || len(operands) == 1 {
		return
	}
	c.raise(run, "changes the settings of git")
	name := ".git/config"
	if global {
		name = c.w.env.Home + "/.gitconfig"
	}
	if c.w.touch(c.sc, name, useWrite) == nil || !global {
		c.w.res.Protected = true
	}
}

// secretKey reports whether a setting may hold a secret.
func secretKey(key string) bool {
	key = strings.ToLower(key)
	for _, part := range []string{"token", "password", "passwd", "secret", "header", "cookie", "key", "credential", "url", "proxy", "user.signing"} {
		if strings.Contains(key, part) {
			return true
		}
	}
	return false
}

// texts are the values of words.
func texts(words []word) []string {
	var list []string
	for _, d := range words {
		list = append(list, d.text)
	}
	return list
}

// GitEnv returns the environment in which git runs no program that a
// repository names by fsmonitor, hooks, pager, signatures, credentials or
// transports, never asks, takes no locks and fetches nothing: NAME=value each.
// It cannot switch off external diffs, textconv and clean filters (an empty
// diff.external makes git diff fail): the agent's own calls add --no-ext-diff
// and --no-textconv and run where the sandbox holds them; for commands the
// analysis looks at the repository's settings.
func GitEnv() []string {
	settings := [][2]string{
		{"core.fsmonitor", "false"}, {"core.hooksPath", "/dev/null"}, {"core.pager", "cat"}, {"core.sshCommand", "false"}, {"core.askPass", ""},
		{"core.editor", "false"}, {"sequence.editor", "false"}, {"credential.helper", ""}, {"protocol.ext.allow", "never"},
		{"log.showSignature", "false"}, {"gpg.program", "false"}, {"gpg.ssh.program", "false"}, {"gpg.x509.program", "false"},
		{"submodule.recurse", "false"}, {"safe.bareRepository", "explicit"}, {"gc.auto", "0"}, {"maintenance.auto", "false"}, {"status.submoduleSummary", "false"},
	}
	env := []string{
		"GIT_OPTIONAL_LOCKS=0", "GIT_TERMINAL_PROMPT=0", "GIT_PAGER=cat", "GIT_NO_LAZY_FETCH=1", "GIT_EDITOR=false", "GIT_ASKPASS=",
		"GIT_CONFIG_COUNT=" + itoa(len(settings)),
	}
	for i, s := range settings {
		env = append(env, "GIT_CONFIG_KEY_"+itoa(i)+"="+s[0], "GIT_CONFIG_VALUE_"+itoa(i)+"="+s[1])
	}
	return env
}
