package fs

import (
	"slices"
	"strings"
	"unicode"
)

// protection says how a name is guarded.
type protection int

const (
	ordinary  protection = iota
	askOnly              // asks wherever somebody can be asked
	protected            // asks each time; without anyone to ask it is denied
)

// protectedDirs hold what starts programs or steers tools, at any depth.
// ".git" has rules of its own.
var protectedDirs = []string{
	".vscode", ".idea", ".zed", ".fleet", ".devcontainer", ".cursor", ".windsurf", ".claude", ".codex", ".gemini", ".kiro", ".roo", ".continue",
	".opencode", ".berth", ".husky", ".vim", ".emacs.d", ".oh-my-zsh",
}

// protectedPaths and protectedFilePaths are such directories and files that go
// by more than one name: what a desktop, a service manager or another version control starts by
// itself. A session may have the home directory as its root.
var protectedPaths = []string{
	".local/share/systemd", ".local/share/dbus-1", ".local/share/applications", "library/launchagents", "library/launchdaemons",
}

var protectedFilePaths = []string{".hg/hgrc"}

// protectedFiles do so by themselves, at any depth.
var protectedFiles = []string{
	".git", ".gitmodules", ".gitconfig", ".mcp.json", ".envrc", ".ripgreprc", ".npmrc", ".pre-commit-config.yaml",
	".bashrc", ".bash_profile", ".bash_login", ".bash_logout", ".bash_aliases", ".profile",
	".zshrc", ".zshenv", ".zprofile", ".zlogin", ".zlogout", ".kshrc", ".cshrc", ".tcshrc", ".login", ".logout",
	".inputrc", ".xprofile", ".xinitrc", ".xsession", ".xsessionrc", ".pam_environment",
	".vimrc", ".gvimrc", ".nvimrc", ".exrc", ".emacs", ".dir-locals.el", ".gdbinit", ".lldbinit", ".tmux.conf", ".screenrc", ".selected_editor",
	".forward", ".procmailrc", ".mailcap", ".rhosts", ".shosts", ".k5login", ".hgrc", ".direnvrc", ".curlrc", ".wgetrc", ".psqlrc", ".sqliterc",
	".irbrc", ".pryrc", ".ghci", ".rprofile", ".yarnrc", ".yarnrc.yml", ".pnpmfile.cjs", "lefthook.yml", ".lefthook.yml", "opencode.json",
}

// gitDirs and gitFiles are what in a .git directory makes git run programs.
var (
	gitDirs  = []string{"hooks"}
	gitFiles = []string{"config", "config.worktree", "commondir", "gitdir", "info/attributes"}
)

// askedDirs are asked about below level full; at level full they are ordinary.
var askedDirs = []string{".github/workflows"}

// ProtectedLists are the names whose files start programs or loosen rules. A
// sandbox keeps them from being written, also before they exist.
type ProtectedLists struct {
	Files    []string // names of files or links, or ends of their paths, at any depth; a directory named .git is not meant
	Dirs     []string // names of directories, or ends of their paths, with slashes, at any depth, with everything in them
	GitDirs  []string // names of directories, at any depth below one named .git
	GitFiles []string // ends of paths, with slashes, at any depth below a directory named .git
	AskDirs  []string // ends of paths of directories, with slashes, at any depth; ordinary at level full
}

// ProtectedNames returns the lists that the file tools go by. The tools
// compare more loosely than byte by byte: case is folded, and characters that
// some file system drops are left out.
func ProtectedNames() ProtectedLists {
	return ProtectedLists{
		Files: slices.Concat(protectedFiles, protectedFilePaths), Dirs: slices.Concat(protectedDirs, protectedPaths),
		GitDirs: slices.Clone(gitDirs), GitFiles: slices.Clone(gitFiles), AskDirs: slices.Clone(askedDirs),
	}
}

// protectionOf judges a canonical path: root is the directory of the session
// it lies in ("" outside every root), names is the rest. Whether the file
// exists makes no difference.
//
// Inside the root every name counts. Of the root's own path only the last two
// names do, save for .git: a session opened in .vscode or .claude/skills is
// inside a protected directory, one whose project merely lies somewhere below
// ~/.cursor is not.
func protectionOf(root string, names []string) protection {
	above, _ := components(root)
	all := make([]string, 0, len(above)+len(names))
	for _, n := range above {
		all = append(all, plainName(n))
	}
	start := len(all)
	for _, n := range names {
		all = append(all, plainName(n))
	}
	if gitProtected(all, start) {
		return protected
	}
	all = all[max(0, start-2):]
	if len(names) == 0 || len(all) == 0 {
		return ordinary
	}
	if slices.Contains(protectedFiles, all[len(all)-1]) {
		return protected
	}
	for i, n := range all {
		if slices.Contains(protectedDirs, n) {
			return protected
		}
		in := func(path string) bool { return hasNames(all[i:], path) }
		if slices.ContainsFunc(protectedPaths, in) || slices.ContainsFunc(protectedFilePaths, in) {
			return protected
		}
		if slices.ContainsFunc(askedDirs, in) {
			return askOnly
		}
	}
	return ordinary
}

// gitProtected knows what in a .git directory, also one of a submodule or a
// worktree below it, makes git run programs.
func gitProtected(names []string, start int) bool {
	git := slices.Index(names, ".git")
	if git < 0 {
		return false
	}
	in := names[git+1:]
	if len(in) == 0 {
		return start < len(names) // .git itself, as a file or a link
	}
	for i := range in {
		if slices.Contains(gitDirs, in[i]) {
			return true
		}
	}
	return slices.ContainsFunc(gitFiles, func(file string) bool {
		n := strings.Count(file, "/") + 1
		return len(in) >= n && hasNames(in[len(in)-n:], file)
	})
}

// hasNames reports whether names begins with those of a path with slashes.
func hasNames(names []string, path string) bool {
	want := strings.Split(path, "/")
	return len(names) >= len(want) && slices.Equal(names[:len(want)], want)
}

// PlainName is a name as the tools compare it with protected ones. It is no
// name of a file.
func PlainName(name string) string { return plainName(name) }

// plainName is a name as the most forgiving file system would compare it:
// case folded, code points dropped that HFS+ ignores, NTFS's stream suffix,
// trailing dots and spaces and short form of .git undone. It is only ever
// compared with protected names.
func plainName(name string) string {
	if i := strings.IndexByte(name, ':'); i > 0 {
		name = name[:i]
	}
	name = strings.Map(func(r rune) rune {
		if ignorable(r) {
			return -1
		}
		return fold(r)
	}, name)
	if name != "." && name != ".." {
		name = strings.TrimRight(name, ". ")
	}
	if name == "git~1" {
		return ".git"
	}
	return name
}

// fold maps a letter to the smallest of those that differ from it in case
// alone, in lower case if it is ASCII: K, k and the Kelvin sign become k.
func fold(r rune) rune {
	least := r
	for f := unicode.SimpleFold(r); f != r; f = unicode.SimpleFold(f) {
		least = min(least, f)
	}
	if least >= 'A' && least <= 'Z' {
		return least + 'a' - 'A'
	}
	return least
}

// ignorable reports whether a code point is invisible and may be dropped by a
// file system that compares names.
func ignorable(r rune) bool {
	switch {
	case r < 0xAD:
		return false
	case r == 0xAD, r == 0x034F, r == 0x061C, r == 0x115F, r == 0x1160, r == 0x3164, r == 0xFEFF, r == 0xFFA0,
		r >= 0x17B4 && r <= 0x17B5, r >= 0x180B && r <= 0x180F, r >= 0x200B && r <= 0x200F,
		r >= 0x202A && r <= 0x202E, r >= 0x2060 && r <= 0x206F, r >= 0xFE00 && r <= 0xFE0F,
		r >= 0xFFF0 && r <= 0xFFF8, r >= 0x1D173 && r <= 0x1D17A, r >= 0xE0000 && r <= 0xE0FFF:
		return true
	}
	return false
}
