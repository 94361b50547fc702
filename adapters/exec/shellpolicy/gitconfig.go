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

// settings says what in the settings of the session's repository may make a
// reading git start programs or look at other files; "" when nothing does. A
// repository whose settings lie outside the roots is left to the sandbox,
// which does not show it.
func (w *walker) settings() string {
	git := w.judge("", w.env.Cwd+"/.git")
	if !git.Exists || git.Where != domain.WhereInside {
		return ""
	}
	places := []domain.Place{git}
	if !git.Dir { // a worktree or submodule: the file says where the rest is
		text, _ := readSome(git.Path)
		link, found := strings.CutPrefix(strings.TrimSpace(text), "gitdir:")
		if !found {
			return ".git is no repository"
		}
		places = []domain.Place{w.judge(w.env.Cwd, strings.TrimSpace(link))}
		if common, ok := readSome(places[0].Path + "/commondir"); ok && places[0].Where == domain.WhereInside {
			places = append(places, w.judge(places[0].Path, strings.TrimSpace(common)))
		}
	}
	for _, p := range places {
		if p.Where != domain.WhereInside {
			continue
		}
		for _, name := range []string{"config", "config.worktree"} {
			text, ok := readSome(path.Join(p.Path, name))
			if !ok {
				continue
			}
			if key := activeSetting(text); key != "" {
				return "the settings of the repository have " + Escape(cut(key, 80))
			}
		}
	}
	return ""
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
// a git that reads in the environment of GitEnv.
func activeSetting(text string) string {
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
		if !harmlessSetting(section, key) {
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
