package shellpolicy

import "strings"

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
	for i := c.start; i < len(c.words); i++ {
		text := c.words[i].text
		switch {
		case name == "reset" && strings.HasPrefix(text, "--har"), name == "checkout" && (text == "-f" || strings.HasPrefix(text, "--forc")):
			c.raise(risk, "throws changes away")
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

// next is the first argument of a subcommand.
func (c *call) next() string {
	if c.start < len(c.words) {
		return c.words[c.start].text
	}
	return ""
}
