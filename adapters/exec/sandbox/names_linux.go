package sandbox

import (
	"slices"
	"strings"
	"time"
)

// names are the protected names of a configuration in the form that a walk
// asks for.
type names struct {
	fold  func(string) string
	rules map[string][][]string // last name -> the names above it, nearest last
	plain []string              // those last names of files that do not begin with a dot
	index index
	limit int // scanLimit
	// settled is how long ago a directory must have been changed, when it is
	// read, for its time of change to tell the next change from this one. Some
	// file systems count in twos of seconds.
	settled time.Duration
}

func namesOf(cfg *Config) *names {
	n := &names{fold: cfg.Fold, rules: map[string][][]string{}, limit: scanLimit, settled: 3 * time.Second}
	if n.fold == nil {
		n.fold = strings.ToLower
	}
	for _, rule := range cfg.Protected {
		parts := strings.Split(strings.Trim(rule, "/"), "/")
		for i := range parts {
			parts[i] = n.fold(parts[i])
		}
		last := len(parts) - 1
		n.rules[parts[last]] = append(n.rules[parts[last]], parts[:last])
		if parts[last][0] != '.' && !strings.HasSuffix(rule, "/") {
			n.plain = append(n.plain, parts[last])
		}
	}
	return n
}

// protects reports whether the folded name, in a directory whose folded path
// in the root is above, is protected. What lies in a protected directory is
// not asked for.
func (n *names) protects(above []string, name string) bool {
	for _, rule := range n.rules[name] {
		if len(rule) <= len(above) && slices.Equal(above[len(above)-len(rule):], rule) {
			return true
		}
	}
	return false
}

// What git calls the parts of its directory.
const (
	gitName    = ".git"
	hooksName  = "hooks"
	configName = "config"
)

// gitProtects reports whether the folded name in a git directory, or in one
// of a submodule or worktree below it, makes git run programs or look
// elsewhere.
func gitProtects(above []string, name string) bool {
	switch name {
	case hooksName, configName, "config.worktree", "commondir", "gitdir":
		return true
	case "attributes":
		return len(above) > 0 && above[len(above)-1] == "info"
	}
	return false
}

// gitHolds reports whether the folded directory in a git directory can hold
// protected names. A branch may be called config, so refs are not looked at.
func gitHolds(above []string, name string) bool {
	if above[len(above)-1] == gitName {
		return name == "info" || name == "modules" || name == "worktrees"
	}
	switch name {
	case "objects", "refs", "logs", "lfs":
		return false
	}
	return true
}

// dependencies reports whether a directory holds what package managers put
// there. It is not looked into: it holds thousands of foreign files whose
// names mean nothing where they are, and package managers must be able to
// write them.
func dependencies(name string) bool {
	switch name {
	case "node_modules", "bower_components", "vendor", "target", ".venv", "venv", "site-packages":
		return true
	}
	return false
}
