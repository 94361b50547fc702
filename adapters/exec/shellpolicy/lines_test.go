package shellpolicy

import (
	"math/rand"
	"strings"
)

// lineMaker makes lines of shell from a seed: mostly reads, with everything
// mixed in that can turn one into something else.
type lineMaker struct{ r *rand.Rand }

func newLineMaker(seed int64) lineMaker {
	return lineMaker{rand.New(rand.NewSource(seed))} //nolint:gosec // lines for tests
}

func (m lineMaker) of(list ...string) string { return list[m.r.Intn(len(list))] }

func (m lineMaker) chance(percent int) bool { return m.r.Intn(100) < percent }

func (m lineMaker) line() string {
	var b strings.Builder
	for n := 1 + m.r.Intn(3); n > 0; n-- {
		b.WriteString(m.command())
		if n > 1 {
			b.WriteString(m.of("; ", " && ", " || ", " | ", "\n", " | ", " && ", " & "))
		}
	}
	line := b.String()
	switch m.r.Intn(16) {
	case 0:
		return "if " + line + "; then " + m.command() + "; else " + m.command() + "; fi"
	case 1:
		return "for f in a.txt b.txt; do " + line + "; done"
	case 2:
		return "(" + line + ")"
	case 3:
		return "{ " + line + "; }"
	case 4:
		return "! " + line
	case 5:
		return "case a.txt in *.txt) " + line + ";; *) true;; esac"
	case 6:
		return "cd " + m.of("src", "sub", "..", "link-src", "nested", "nosuch", "link-etc", ".") + m.of(" && ", "; ") + line
	}
	return line
}

func (m lineMaker) command() string {
	c := m.of("", "", "", "", "", "", "LC_ALL=C ", "TZ=UTC ", "FOO=1 ", "nice ", "timeout 5 ", "env ", "command ", "time ", "stdbuf -o0 ", "/usr/bin/", "\\") +
		m.tool()
	for n := m.r.Intn(3); n > 0; n-- {
		c += " " + m.flag()
	}
	for n := m.r.Intn(3); n > 0; n-- {
		c += " " + m.operand()
	}
	if m.chance(12) {
		c += m.of(" 2>/dev/null", " >/dev/null", " 2>&1", " < a.txt", " > out.txt", " >> a.txt", " <<< word", " &> /dev/null", " < link-etc/hostname", " >| x", " <> a.txt")
	}
	return c
}

func (m lineMaker) tool() string {
	switch m.r.Intn(4) {
	case 0:
		return m.of("git status", "git log", "git diff", "git show", "git branch", "git tag", "git remote", "git ls-files", "git rev-parse", "git grep TODO",
			"git blame", "git config", "git stash list", "git describe", "git -C src status", "git -C nested log", "git shortlog", "git cat-file -p")
	case 1:
		return m.of("find", "rg TODO", "grep A", "sed -n 1,2p", "sed -n", "jq .", "test -f", "[ -d src ]", "echo", "printf %s", "sort", "uniq", "xxd", "date", "hostname", "which ls", "type ls")
	}
	return m.of("ls", "cat", "head", "tail", "wc", "nl", "tac", "rev", "cut -c1", "tr a b", "comm", "join", "paste", "fold", "fmt", "expand", "column", "egrep A", "stat", "file", "du",
		"df", "pwd", "true", "false", "basename", "dirname", "realpath", "readlink", "uname", "whoami", "id", "printenv", "cmp", "diff", "sha1sum", "sha256sum", "md5sum", "cksum",
		"od", "hexdump", "strings", "base64", "seq 3", "nproc")
}

func (m lineMaker) flag() string {
	return m.of("-a", "-l", "-n", "-n1", "-n 1", "-r", "-R", "-c", "-i", "-v", "-s", "-S", "-x", "-o", "-f", "-L", "-la", "-1", "-q", "-z", "-e", "-d", "-p", "-C", "-T", "-m",
		"--help", "--version", "--color=never", "--all", "--outp=x", "--output=out.txt", "--rec", "--pre=sh", "--follow", "--list", "--stat", "--no-ext-diff", "--textconv",
		"--files0-from=list.txt", "--compress-program=./trap.sh", "-name '*.go'", "-name *.go", "-type f", "-print", "-delete", "-exec ./trap.sh {} +", "-fprint out.txt",
		"-maxdepth 1", "-newer a.txt", "--", "-O", "-O./trap.sh", "--get core.bare", "--oneline", "-p", "--cached", "-w", "-u", "--files", "--hidden", "--no-index", "-D", "--show-toplevel")
}

func (m lineMaker) operand() string {
	return m.of("a.txt", "b.txt", "src", ".", "./*", "*", "*.txt", "src/*.go", "./src/*", "README.md", "sub/c.txt", "\"a.txt\"", "'b.txt'", "a\\.txt", "{a,b}.txt", "nosuch",
		"../secret.txt", "link-etc/hostname", "link-out/secret.txt", "link-src/x.go", "~/.ssh/id_rsa", "$HOME/.bashrc", "\"$PWD/a.txt\"", "/etc/hostname", "$X", "$(cat a.txt)",
		"HEAD", "main", "1", "A", "--pre=./trap.sh", "-rf", "many/*", "[ab].txt", "$'a.txt'", "a{1..2}.txt", "\"$?\"", "<(ls)", "-", "/dev/null", "~", "'a b'", "nested", "$((1+1))")
}
