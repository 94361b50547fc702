package exec

import (
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"os"
	"path"
	"strings"

	"github.com/berth-dev/berth/core/domain"
)

const (
	// maxScripts is how many scripts of a line are pinned.
	maxScripts = 16
	// maxScript is the longest file that is taken for a script, in bytes.
	maxScript = 16 << 20
)

// script is a file of the project that a line runs: what was looked at is
// what is run.
type script struct {
	path string // canonical
	sum  [sha256.Size]byte
}

// scripts hashes the scripts in the roots that the commands run.
func (t *toolset) scripts(ctx context.Context, dir string, commands []domain.SimpleCommand) ([]script, error) {
	var list []script
	seen := map[string]bool{}
	for _, c := range commands {
		forms := append([][]string{c.Words}, c.Forms...)
		if len(c.Words) == 2 && c.Words[0] == "cd" {
			if p := t.conf.Judge(ctx, t.session, dir, c.Words[1]); p.Where == domain.WhereInside && p.Dir {
				dir = p.Path
			}
			continue
		}
		for _, words := range forms {
			for _, name := range append(rulesOf(words), scriptOf(words)) {
				if name == "" || len(list) == maxScripts {
					continue
				}
				p := t.conf.Judge(ctx, t.session, dir, name)
				if p.Where != domain.WhereInside || !p.Exists || p.Dir || seen[p.Path] {
					continue
				}
				seen[p.Path] = true
				sum, err := hashScript(p.Path)
				switch {
				case errors.Is(err, errNoScript):
					continue
				case err != nil:
					return nil, domain.WrapError(domain.NotFound, err, "The script "+visible(name, false)+" cannot be read: "+reasonOf(err))
				}
				list = append(list, script{p.Path, sum})
			}
		}
	}
	return list, nil
}

// scriptOf returns the file that a simple command runs, as far as its words
// tell; "" when it is a program of the system.
func scriptOf(words []string) string {
	if len(words) == 0 {
		return ""
	}
	if strings.Contains(words[0], "/") {
		if !interpreter(path.Base(words[0])) {
			return words[0]
		}
	} else if !interpreter(words[0]) {
		return ""
	}
	for _, w := range words[1:] {
		if strings.HasPrefix(w, "-") && w != "--" {
			continue
		}
		if w != "--" && w != "run" {
			return w
		}
	}
	return ""
}

// rulesOf returns the files that a program takes from its directory to know
// what to run, if it is one that does.
func rulesOf(words []string) []string {
	if len(words) == 0 {
		return nil
	}
	switch words[0] {
	case "make", "gmake":
		list := []string{"GNUmakefile", "makefile", "Makefile"}
		for i, w := range words[1:] {
			switch {
			case w == "-f" && i+2 < len(words):
				list = append(list, words[i+2])
			case strings.HasPrefix(w, "-f"), strings.HasPrefix(w, "--file="), strings.HasPrefix(w, "--makefile="):
				list = append(list, strings.TrimPrefix(w[strings.IndexByte(w, '=')+1:], "-f"))
			}
		}
		return list
	case "npm", "pnpm", "yarn", "bun":
		return []string{"package.json"}
	case "just":
		return []string{"justfile", "Justfile", ".justfile"}
	case "task":
		return []string{"Taskfile.yml", "Taskfile.yaml"}
	}
	return nil
}

// interpreter reports whether a program runs the file it is given.
func interpreter(name string) bool {
	name = strings.TrimRight(name, "0123456789.")
	switch name {
	case "sh", "bash", "dash", "zsh", "ksh", "fish", "source", ".", "python", "pypy", "node", "nodejs", "deno", "bun", "tsx",
		"ts-node", "ruby", "perl", "php", "lua", "luajit", "Rscript", "tclsh", "awk", "gawk", "osascript":
		return true
	}
	return name == ""
}

var errNoScript = errors.New("no script")

// hashScript hashes a regular file without following a link at its end.
func hashScript(name string) (sum [sha256.Size]byte, err error) {
	info, err := os.Lstat(name)
	if err != nil {
		return sum, err
	}
	if !info.Mode().IsRegular() || info.Size() > maxScript {
		return sum, errNoScript
	}
	f, err := os.Open(name)
	if err != nil {
		return sum, err
	}
	defer func() { _ = f.Close() }()
	h := sha256.New()
	if _, err := io.Copy(h, io.LimitReader(f, maxScript+1)); err != nil {
		return sum, err
	}
	return [sha256.Size]byte(h.Sum(nil)), nil
}

// changed returns the first script that is not what it was.
func changed(scripts []script) string {
	for _, s := range scripts {
		if sum, err := hashScript(s.path); err != nil || sum != s.sum {
			return s.path
		}
	}
	return ""
}
