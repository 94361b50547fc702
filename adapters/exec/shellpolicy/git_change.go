package shellpolicy

import (
	"slices"
	"strings"
)

// gitChange judges the forms of git that are no reads.
func (c *call) gitChange(name string) {
	switch name {
	case "push", "fetch", "pull", "clone", "ls-remote", "lfs", "svn", "p4", "fetch-pack", "send-pack", "http-fetch", "http-push", "send-email", "imap-send", "request-pull":
		c.network("uses the network: git " + name)
	case "submodule":
		c.network("may use the network and runs what the submodules say")
	case "remote":
		if next := c.next(); next == "show" || next == "update" || next == "prune" {
			c.network("uses the network: git remote " + next)
			return
		}
		c.raise(run, "changes the settings of git")
		c.w.touch(c.sc, ".git/config", useWrite)
		c.w.res.Protected = true
	case "add", "commit", "checkout", "switch", "stash", "restore", "mv", "rm", "merge", "cherry-pick", "revert", "reset", "tag", "branch",
		"init", "worktree", "apply", "am", "notes", "gc", "prune", "fsck", "reflog", "update-index", "read-tree", "write-tree",
		"commit-tree", "update-ref", "hash-object", "pack-refs", "repack", "format-patch", "bundle", "rebase", "sparse-checkout", "archive",
		"show-branch", "mktree", "pack-objects", "unpack-objects", "index-pack", "symbolic-ref", "checkout-index", "rerere", "replace":
		c.raise(run, "changes the repository")
		c.gitOptions(name)
	case "clean":
		c.raise(risk, "deletes files that are not in the repository")
	default:
		c.raise(risk, "git "+name+" may run other programs")
	}
}

// gitOptions judges options that make a changing command of git more than
// that, and finds the messages.
func (c *call) gitOptions(name string) {
	if c.discards(name) {
		c.raise(risk, "throws changes or commits away")
	}
	for i := c.start; i < len(c.words); i++ {
		text := c.words[i].text
		switch {
		case name == "rebase" && (strings.HasPrefix(text, "-x") || strings.HasPrefix(text, "--ex")), strings.HasPrefix(text, "--upload-pack"), strings.HasPrefix(text, "--remote"):
			c.raise(risk, "runs a program or text given by "+text)
		case strings.HasPrefix(text, "--set-upstream") || name == "branch" && (strings.HasPrefix(text, "-u") || text == "--track" || text == "-t"):
			c.w.touch(c.sc, ".git/config", useWrite)
			c.w.res.Protected = true
		case text == "--message" || len(text) > 1 && text[0] == '-' && text[1] != '-' && strings.HasSuffix(text, "m"):
			c.texts[i+1] = true
		case strings.HasPrefix(text, "--message=") || strings.HasPrefix(text, "-m"):
			c.texts[i] = true
		}
	}
}

// discards reports whether a command of git makes work disappear that is
// nowhere else, or hard to find again. Having allowed the command with any
// arguments does not cover that.
func (c *call) discards(name string) bool {
	args := c.words[c.start:]
	switch name {
	case "reset":
		return hasOption(args, "", "--hard", "--merge")
	case "checkout":
		return hasOption(args, "f", "--force", "--ours", "--theirs", "--pathspec-from-file") || c.overwrites(args)
	case "switch":
		return hasOption(args, "fC", "--force", "--discard-changes", "--force-create")
	case "restore":
		return !hasOption(args, "S", "--staged") || hasOption(args, "W", "--worktree")
	case "stash":
		return c.next() == "drop" || c.next() == "clear"
	case "branch":
		return hasOption(args, "DMCf", "--force")
	case "tag":
		return hasOption(args, "df", "--delete", "--force")
	case "worktree":
		return hasOption(args, "f", "--force")
	case "reflog":
		return c.next() == "expire" || c.next() == "delete"
	case "update-ref":
		return hasOption(args, "d", "--stdin")
	case "prune":
		return true
	}
	return false
}

// overwrites reports whether git checkout puts files in place of those that
// are there, in place of going to a branch.
func (c *call) overwrites(args []word) bool {
	if hasOption(args, "bB", "--orphan") {
		return hasOption(args, "B")
	}
	for _, d := range args {
		switch {
		case !d.plain() || d.text == "--":
			return true
		case !d.flag() && (strings.HasPrefix(d.text, ":") || c.w.judge(c.sc.dirs.only(c.w.env.Cwd), d.text).Exists):
			return true
		}
	}
	return false
}

// hasOption reports whether one of the options is among args: a letter of
// short, also in a group, or a long one, also when it is cut short.
func hasOption(args []word, short string, long ...string) bool {
	for _, d := range args {
		switch name, _, _ := strings.Cut(d.text, "="); {
		case name == "--":
			return false
		case strings.HasPrefix(name, "--"):
			if slices.ContainsFunc(long, func(l string) bool { return strings.HasPrefix(l, name) }) {
				return true
			}
		case d.flag() && strings.ContainsAny(name, short):
			return true
		}
	}
	return false
}

// next is the first argument of a subcommand.
func (c *call) next() string {
	if c.start < len(c.words) {
		return c.words[c.start].text
	}
	return ""
}
