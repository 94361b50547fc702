package sandbox

import (
	"bufio"
	"cmp"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// undoing takes back protected names that a command made.
type undoing struct {
	*names
	state  string // copies are kept below it; "" keeps none
	aside  bool   // names are moved out of the way in place of being removed
	undone []string
	kept   string
}

// root removes the protected names that were made in a root: those that
// exist now and did not before, by identity, so that what was only moved
// stays.
func (u *undoing) root(before rooted, approved []string) {
	after, err := u.scanRoot(before.root, approved, u.limit*afterwards)
	if err != nil {
		return
	}
	known := map[identity]bool{}
	for _, g := range before.scan.found {
		known[g.id] = true
	}
	root, err := os.OpenRoot(before.root)
	if err != nil {
		return
	}
	defer root.Close()
	for _, g := range after.found {
		if known[g.id] || g.pin {
			continue
		}
		rel, err := filepath.Rel(before.root, g.path)
		if err != nil {
			continue
		}
		u.one(root, rel, g)
	}
}

// remove takes one path away and keeps a copy: a person may have made it
// while the command ran.
func (u *undoing) remove(root *os.Root, rel string) {
	if u.aside && moveAside(root, rel) {
		return
	}
	if u.state != "" {
		u.keep(root, rel)
	}
	if root.RemoveAll(rel) == nil {
		u.undone = append(u.undone, filepath.Join(root.Name(), rel))
	}
}

// What is kept is bounded: it is there for mistakes, not as a store.
const (
	keepBytes = 1 << 20
	keepCalls = 50
)

// keep copies one path, as far as it holds files of ordinary size.
func (u *undoing) keep(root *os.Root, rel string) {
	if u.kept == "" {
		dir := filepath.Join(u.state, "undone")
		if os.MkdirAll(dir, 0o700) != nil {
			return
		}
		prune(dir)
		kept, err := os.MkdirTemp(dir, "")
		if err != nil {
			return
		}
		u.kept = kept
	}
	budget := int64(keepBytes)
	fs.WalkDir(root.FS(), filepath.ToSlash(rel), func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return nil
		}
		info, err := d.Info()
		if err != nil || !info.Mode().IsRegular() || info.Size() > budget {
			return nil
		}
		raw, err := root.ReadFile(name)
		if err != nil {
			return nil
		}
		budget -= int64(len(raw))
		to := filepath.Join(u.kept, name)
		if os.MkdirAll(filepath.Dir(to), 0o700) == nil {
			os.WriteFile(to, raw, 0o600)
		}
		return nil
	})
}

// prune removes the oldest of what was kept.
func prune(dir string) {
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) < keepCalls {
		return
	}
	age := func(e os.DirEntry) int64 {
		info, err := e.Info()
		if err != nil {
			return 0
		}
		return info.ModTime().UnixNano()
	}
	slices.SortFunc(entries, func(a, b os.DirEntry) int { return cmp.Compare(age(b), age(a)) })
	for _, e := range entries[keepCalls-1:] {
		os.RemoveAll(filepath.Join(dir, e.Name()))
	}
}

// one removes a new protected name, unless git made it and it is harmless.
func (u *undoing) one(root *os.Root, rel string, g guarded) {
	switch {
	case !g.dir && u.harmless(root, rel):
	case g.dir && u.fold(path.Base(rel)) == hooksName && u.inGit(rel):
		u.hooks(root, rel)
	default:
		u.remove(root, rel)
	}
}

// hooks empties a new directory of hooks but for the samples that git puts
// there, which never run.
func (u *undoing) hooks(root *os.Root, rel string) {
	dir, err := root.Open(rel)
	if err != nil {
		return
	}
	defer dir.Close()
	entries, _ := dir.Readdirnames(-1)
	slices.Sort(entries)
	for _, name := range entries {
		if !strings.HasSuffix(name, ".sample") && !(u.aside && strings.HasPrefix(name, "undone-")) {
			u.remove(root, path.Join(rel, name))
		}
	}
}

// inGit reports whether rel lies in a git directory.
func (n *names) inGit(rel string) bool {
	for dir := path.Dir(rel); dir != "."; dir = path.Dir(dir) {
		if n.fold(path.Base(dir)) == gitName {
			return true
		}
	}
	return false
}

// harmless reports whether a new file is one that git makes for a new
// repository, submodule or worktree and that makes it run nothing and look
// nowhere else.
func (n *names) harmless(root *os.Root, rel string) bool {
	info, err := root.Lstat(rel)
	if err != nil || !info.Mode().IsRegular() || info.Size() > 64<<10 {
		return false
	}
	f, err := root.Open(rel)
	if err != nil {
		return false
	}
	defer f.Close()
	raw, err := io.ReadAll(io.LimitReader(f, 64<<10))
	if err != nil {
		return false
	}
	text := string(raw)
	switch name := n.fold(path.Base(rel)); {
	case name == gitName:
		target, ok := strings.CutPrefix(strings.TrimSpace(text), "gitdir: ")
		return ok && n.insideGit(root, path.Dir(rel), target)
	case !n.inGit(rel):
		return false
	case name == "commondir":
		return strings.TrimSpace(text) == "../.."
	case name == "gitdir":
		// Names the worktree's .git file, for listing and pruning only.
		return !strings.Contains(strings.TrimSpace(text), "\n")
	case name == configName:
		return n.plainConfig(text, path.Dir(rel))
	}
	return false
}

// insideGit reports whether target, as said in dir, is a place below a git
// directory of the same root.
func (n *names) insideGit(root *os.Root, dir, target string) bool {
	if path.IsAbs(target) {
		rel, err := filepath.Rel(root.Name(), target)
		if err != nil {
			return false
		}
		target = rel
	} else {
		target = path.Join(dir, target)
	}
	if !filepath.IsLocal(target) || !n.inGit(target) {
		return false
	}
	return strings.Contains(target, "/modules/") || strings.Contains(target, "/worktrees/")
}

// plainConfig reports whether a git configuration holds only keys that say
// where a repository's parts and remotes are. dir is where it lies.
func (n *names) plainConfig(text, dir string) bool {
	section := ""
	lines := bufio.NewScanner(strings.NewReader(text))
	for lines.Scan() {
		line := strings.TrimSpace(lines.Text())
		switch {
		case line == "" || line[0] == '#' || line[0] == ';':
			continue
		case line[0] == '[':
			if strings.Count(line, "]") != 1 || line[len(line)-1] != ']' {
				return false
			}
			section, _, _ = strings.Cut(strings.ToLower(line[1:len(line)-1]), " ")
			continue
		case strings.HasSuffix(line, `\`):
			return false
		}
		key, value, _ := strings.Cut(line, "=")
		if !plainKey(section, strings.ToLower(strings.TrimSpace(key)), strings.Trim(strings.TrimSpace(value), `"`), dir) {
			return false
		}
	}
	return lines.Err() == nil
}

func plainKey(section, key, value, dir string) bool {
	switch section {
	case "core":
		if key == "worktree" {
			return filepath.IsLocal(path.Join(dir, value)) && !path.IsAbs(value)
		}
		return slices.Contains([]string{
			"repositoryformatversion", "filemode", "bare", "logallrefupdates", "ignorecase", "precomposeunicode", "symlinks", "autocrlf", "eol",
		}, key)
	case "extensions":
		return key == "objectformat" || key == "refstorage"
	case "init":
		return key == "defaultbranch"
	case "user":
		return key == "name" || key == "email"
	case "branch":
		return key == "remote" || key == "merge" || key == "rebase"
	case "remote", "submodule":
		// A transport such as ext:: runs programs.
		return (key == "url" || key == "fetch" || key == "active" || key == "tagopt") && !strings.Contains(value, "::") && !strings.HasPrefix(value, "-")
	}
	return false
}
