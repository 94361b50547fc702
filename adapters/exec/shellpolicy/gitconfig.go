package shellpolicy

import (
	"io"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/berth-dev/berth/core/domain"
)

// maxSettings is how much of a file of settings is read.
const maxSettings = 256 << 10

// settings says what in the settings of the session's repository, or of a
// submodule of it, may make a reading git start programs or look at other
// files; "" when nothing does. A repository whose settings lie outside the
// roots is left to the sandbox, which does not show it.
func (w *walker) settings() string {
	seen := map[string]bool{}
	return w.repository(w.env.Cwd, seen)
}

// repository is settings for the repository whose work tree is dir. seen are
// the work trees looked at so far.
func (w *walker) repository(dir string, seen map[string]bool) string {
	sub := len(seen) > 0
	if seen[dir] {
		return ""
	}
	if seen[dir] = true; len(seen) > maxSubmodules {
		return "the repository has too many submodules to look at"
	}
	git := w.judge("", dir+"/.git")
	if !git.Exists || git.Where != domain.WhereInside {
		return ""
	}
	if !git.Dir { // a worktree or submodule: the file says where the rest is
		text, _ := readSome(git.Path)
		link, found := strings.CutPrefix(strings.TrimSpace(text), "gitdir:")
		if !found {
			return ".git is no repository"
		}
		if git = w.judge(dir, strings.TrimSpace(link)); git.Where != domain.WhereInside {
			return ""
		}
	}
	places := []domain.Place{git}
	if common, ok := readSome(git.Path + "/commondir"); ok { // its settings lie there
		places = append(places, w.judge(git.Path, strings.TrimSpace(common)))
	}
	sha256 := false
	for _, p := range places {
		if p.Where != domain.WhereInside {
			continue
		}
		for _, name := range []string{"config", "config.worktree"} {
			text, ok := readSome(path.Join(p.Path, name))
			if !ok {
				continue
			}
			if key := activeSetting(text, sub); key != "" {
				return "the settings of the repository have " + Escape(cut(key, 80))
			}
			sha256 = sha256 || strings.Contains(strings.ToLower(text), "sha256")
		}
	}
	return w.submodules(dir, git.Path+"/index", sha256, seen)
}

// readSome reads a file that is not too large; a larger one comes without its
// end, which makes it one that is not understood.
func readSome(name string) (text string, ok bool) {
	info, err := os.Stat(name)
	if err != nil || !info.Mode().IsRegular() {
		return "", false
	}
	f, err := os.Open(name) //nolint:gosec // the path rules said that it lies in a root
	if err != nil {
		return "", false
	}
	defer f.Close() //nolint:errcheck // read only
	raw, err := io.ReadAll(io.LimitReader(f, maxSettings+1))
	if err != nil || len(raw) > maxSettings {
		return "[too]\nlarge", true
	}
	return string(raw), true
}

// activeSetting returns the first setting that is not known to be harmless for
// a git that reads in the environment of GitEnv. The repository of a submodule
// may say where its work tree is: git says so itself.
func activeSetting(text string, submodule bool) string {
	section := ""
	for _, line := range strings.Split(text, "\n") {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "[") {
			end := strings.LastIndexByte(line, ']')
			if end < 0 {
				return line
			}
			name, _, _ := strings.Cut(line[1:end], " ")
			section = strings.ToLower(name)
			line = strings.TrimSpace(line[end+1:])
		}
		if line == "" || line[0] == '#' || line[0] == ';' {
			continue
		}
		key, _, _ := strings.Cut(line, "=")
		key = strings.ToLower(strings.TrimSpace(key))
		if !harmlessSetting(section, key) && !(submodule && section == "core" && key == "worktree") {
			return section + "." + key
		}
	}
	return ""
}

// harmlessSetting reports whether a setting neither starts a program nor names
// a file in a git that reads.
func harmlessSetting(section, key string) bool {
	switch section {
	case "core":
		return slices.Contains([]string{
			"repositoryformatversion", "filemode", "bare", "logallrefupdates", "ignorecase", "precomposeunicode", "symlinks", "autocrlf", "safecrlf",
			"eol", "quotepath", "abbrev", "compression", "untrackedcache", "preloadindex", "sparsecheckout", "sparsecheckoutcone", "commentchar",
			"whitespace", "longpaths", "protecthfs", "protectntfs", "fscache", "sharedrepository", "multipackindex", "commitgraph",
			"fsmonitor", "hookspath", "pager", "sshcommand", "askpass", "editor", // GitEnv has other values for these
		}, key)
	case "diff":
		return slices.Contains([]string{"algorithm", "renames", "renamelimit", "context", "colormoved", "mnemonicprefix", "noprefix", "submodule", "ignoresubmodules", "indentheuristic", "wserrorhighlight"}, key)
	case "log":
		return key != "mailmap"
	case "gpg":
		return key == "format" || key == "program"
	case "extensions":
		return slices.Contains([]string{"objectformat", "refstorage", "worktreeconfig", "partialclone", "noop", "preciousobjects"}, key)
	case "user", "author", "committer", "branch", "remote", "color", "push", "pull", "fetch", "init", "rebase", "rerere", "advice", "status", "commit", "gc", "maintenance",
		"submodule", "credential", "tag", "column", "lfs", "http", "url", "merge", "feature", "index", "pack", "receive", "transfer", "safe", "stash", "versionsort", "format", "svn-remote", "gui":
		return true
	}
	return false
}
