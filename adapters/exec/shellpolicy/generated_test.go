package shellpolicy

import (
	"fmt"
	"strings"
	"testing"

	"github.com/berth-dev/berth/core/domain"
)

// readNames are the programs of the read list that a table describes.
func readNames() []string {
	return strings.Fields("cat head tail wc nl tac rev cut tr sort uniq comm join paste fold fmt expand unexpand column base64 od hexdump xxd strings " +
		"md5sum sha1sum sha256sum sha512sum b2sum cksum cmp diff ls stat file du df tree realpath readlink pwd basename dirname uname arch whoami nproc id groups " +
		"which printenv seq sleep grep egrep fgrep rg fd")
}

// usual is a command that makes a read of a program, to put an option into.
func usual(name string, t tool) (before, after string) {
	switch {
	case t.text > 0:
		return name, " x a.txt"
	case t.text < 0 || name == "df":
		return name, ""
	}
	return name, " a.txt"
}

// Every letter and every long name of every read tool, listed or not: what is
// listed without a mark that forbids it is a read, and nothing else is.
func TestTable_EveryOption(t *testing.T) {
	r := newRig(t)
	cases := 0
	check := func(line, marks string, listed bool) {
		t.Helper()
		cases++
		a := r.analyze(t, line)
		want := read
		switch {
		case strings.ContainsAny(marks, "!^"):
			want = risk
		case !listed, strings.ContainsAny(marks, "~>"):
			want = run
		}
		if a.Class != want || a.Forbidden != "" {
			t.Errorf("%q: class %d %q %q, want %d", line, a.Class, a.Reason, a.Forbidden, want)
		}
	}
	for _, name := range readNames() {
		tl, ok := readTool(name)
		if !ok {
			t.Fatalf("%s is no read tool", name)
		}
		before, after := usual(name, tl)
		if tl.text < 0 && name == "tr" {
			after = " a b"
		}
		for _, letter := range "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789" {
			marks, listed := shortMarks(tl.short, byte(letter)) //nolint:gosec // ASCII
			if tl.digits && letter >= '0' && letter <= '9' {
				marks, listed = "", true
			}
			option := " -" + string(letter)
			if strings.ContainsAny(marks, ":<>") {
				option += " b.txt"
			}
			tail := after
			if strings.Contains(marks, "%") {
				tail = " a.txt"
			}
			check(before+option+tail, marks, listed)
			if strings.ContainsAny(marks, ":<>") {
				check(before+" -"+string(letter)+"b.txt"+tail, marks, listed)
			}
		}
		for _, entry := range strings.Fields(tl.long) {
			full := strings.TrimRight(entry, ":?<>&%@~^!")
			if full == "no-*" {
				continue
			}
			marks := entry[len(full):]
			tail := after
			if strings.Contains(marks, "%") {
				tail = " a.txt"
			}
			if strings.ContainsAny(marks, ":<>") {
				check(before+" --"+full+"=b.txt"+tail, marks, true)
				check(before+" --"+full+" b.txt"+tail, marks, true)
			} else {
				check(before+" --"+full+tail, marks, true)
			}
			if !strings.HasPrefix(full, "no-") || !strings.Contains(tl.long, "no-*") {
				check(before+" --"+full+"x"+tail, "~", false)
			}
		}
	}
	t.Logf("%d cases", cases)
	if cases < 3000 {
		t.Errorf("only %d cases", cases)
	}
}

// The options of read tools that run something, write, follow or take names
// from elsewhere, in every spelling that the tools accept.
func TestTable_DangerousOptions(t *testing.T) {
	r := newRig(t)
	cases := 0
	never := func(line string) {
		t.Helper()
		cases++
		if a := r.analyze(t, line); a.ReadOnly() {
			t.Errorf("%q is judged a read", line)
		}
	}
	long := map[string][]string{
		"sort x":   {"compress-program=x", "output=x", "files0-from=x", "temporary-directory=x"},
		"rg x":     {"pre=x", "hostname-bin=x", "search-zip", "follow"},
		"fd x":     {"exec=x", "exec-batch=x", "list-details", "follow"},
		"file x":   {"compile", "magic-file=x", "preserve-date", "uncompress", "files-from=x"},
		"diff x":   {"to-file=x", "paginate", "recursive"},
		"du x":     {"files0-from=x", "dereference"},
		"wc x":     {"files0-from=x"},
		"date":     {"set=x", "file=x"},
		"grep x":   {"dereference-recursive", "directories=recurse", "devices=read", "file=/etc/passwd", "exclude-from=/etc/passwd"},
		"tail x":   {"follow", "retry", "pid=1"},
		"jq . x":   {"library-path=x", "rawfile=a"},
		"ls":       {"dereference"},
		"md5sum":   {"check"},
		"git diff": {"output=x", "ext-diff", "textconv", "no-index"},
		"git log":  {"output=x", "ext-diff", "textconv", "show-signature"},
		"git show": {"output=x", "ext-diff", "textconv", "show-signature"},
		"git grep": {"open-files-in-pager=x", "textconv", "no-index"},
	}
	for head, options := range long {
		for _, o := range options {
			name, value, _ := strings.Cut(o, "=")
			for n := len(name); n >= 3; n-- {
				never(head + " --" + name[:n])
				if value != "" {
					never(head + " --" + name[:n] + "=" + value)
					never(head + " --" + name[:n] + " " + value)
				}
				if short := name[:n]; !strings.HasPrefix(name, short) {
					break
				}
				if ambiguous(head, name[:n]) {
					break
				}
			}
		}
	}
	for head, letters := range map[string][]string{
		"sort x": {"o y", "oy", "T y", "uo y", "S 1"}, "fd x": {"x y", "X y", "l", "L", "Hx y"}, "rg x": {"z", "L", "nz"}, "file x": {"C", "m y", "f y", "p", "z", "bz"},
		"grep x y": {"R", "rR", "d recurse", "D read", "f /etc/passwd", "nf/etc/passwd"}, "tail x": {"f", "F"}, "du x": {"L", "sL"}, "ls": {"L", "lL"},
		"tree": {"o x", "R", "l", "ao x"}, "xxd x": {"r", "pr"}, "date": {"s x", "f x", "us x"}, "diff x y": {"r", "l", "Nr"}, "hostname": {"F x", "b", "f", "d", "A"},
		"sed p": {"i", "f x", "ni"}, "jq . x": {"L y", "L."}, "md5sum x": {"c"}, "git grep x": {"Ox", "O"}, "git tag": {"v x", "d x", "s x", "a x"}, "git branch": {"D x", "d x", "m x", "c x", "u x", "f x"},
	} {
		for _, l := range letters {
			never(head + " -" + l)
			program, rest, _ := strings.Cut(head, " ")
			if program != "git" {
				never(program + " -" + l + " " + rest)
			}
		}
	}
	for _, line := range []string{
		"uniq a.txt b.txt", "xxd a.txt b.txt", "uniq -- a.txt b.txt", "uniq *.txt", "date 010100002026", "hostname x", "find . -exec true {} +", "find . -execdir true ;", "find . -ok true \\;",
		"find . -okdir true \\;", "find . -delete", "find . -fprint x", "find . -fprint0 x", "find . -fprintf x y", "find . -fls x", "find -L .", "find . -follow", "find . -files0-from x",
		"git -c a=b status", "git --config-env=a=b status", "git --exec-path=. status", "git --git-dir=x status", "git --work-tree=x status", "git -C nested status", "git -C ../out status",
		"git -p log", "git --paginate log", "git diff --no-index a.txt b.txt", "git cat-file --textconv x", "git ls-remote", "git log --format=%G?", "git submodule status", "git unknown",
		"git branch x", "git tag x", "git remote add x y", "git remote update", "git stash", "git stash drop", "git config a.b c", "git config --unset a.b", "git config --list", "git config --get a.token",
		"git config --global --get user.name", "git worktree add x", "git reflog expire", "strings @x", "sort *", "rg x *", "cd many && cat *", "cd many; grep x *", "xargs cat", "printf -v x y",
		"test -v 'a[1]'", "[ -v 'a[$(x)]' ]", "[[ -v a[1] ]]", "[[ x -eq y ]]", "jq 'import \"a\" as $a; .' a.txt", "sed -n 1w/tmp/x a.txt", "sed -n 'e id' a.txt", "sed 's/a/b/w x' a.txt", "sed --expression=e a.txt",
	} {
		never(line)
	}
	t.Logf("%d cases", cases)
	if cases < 300 {
		t.Errorf("only %d cases", cases)
	}
}

// ambiguous reports whether an abbreviation means something else as well, so
// that the tool itself refuses it.
func ambiguous(head, short string) bool {
	t, _ := readTool(strings.Fields(head)[0])
	n := 0
	for _, e := range strings.Fields(t.long) {
		if strings.HasPrefix(e, short) {
			n++
		}
	}
	return n != 1
}

// Every wrapper around a command of every class: none makes it look better.
func TestWrappers_EveryClass(t *testing.T) {
	r := newRig(t)
	transparent := []string{"timeout 5", "timeout -s KILL 5s", "timeout --signal=KILL 5", "nice", "nice -n 5", "nice -5", "nice --adjustment=5", "ionice -c3", "ionice -c 2 -n 7", "stdbuf -oL", "stdbuf -o 0 -e0", "env",
		"env LC_ALL=C", "env TZ=UTC NO_COLOR=1", "command", "command --", "exec", "time", "time -p", "/usr/bin/time", "/usr/bin/timeout 5", "nice timeout 5", "env nice env", "command env command nice", "timeout 5 timeout 6 timeout 7"}
	others := []string{"nohup", "setsid", "setsid -f", "setsid -w", "chrt -b 0", "busybox", "toybox", "coreutils", "env -i", "env -u PATH", "env FOO=1", "env LD_PRELOAD=x", "env -C sub", "env -S", "command -p", "exec -a x", "exec -c",
		"timeout --bogus 5", "nice -z", "ionice -p 1", "\\time -o x", "/tmp/x/timeout 5", "xargs", "xargs -n 1", "watch", "watch -n 1", "parallel", "flock x", "strace", "strace -f", "script -c", "entr", "nice xargs", "sub/env"}
	commands := []struct {
		line  string
		class domain.AccessClass
		ban   bool
		flags func(Analysis) bool
	}{
		{"cat a.txt", read, false, nil},
		{"ls -la src", read, false, nil},
		{"rm a.txt", run, false, nil},
		{"make", run, false, nil},
		{"./ls", run, false, nil},
		{"sort -o x a.txt", run, false, nil},
		{"curl https://x.invalid", risk, false, func(a Analysis) bool { return a.Network }},
		{"rm -r build", risk, false, nil},
		{"python3 -c 1", risk, false, nil},
		{"sh -c ls", risk, false, nil},
		{"sudo ls", read, true, nil},
		{"cat /etc/passwd", read, true, nil},
		{"cp a.txt .git/hooks/x", run, false, func(a Analysis) bool { return a.Protected }},
		{"cat ../secret.txt", read, false, func(a Analysis) bool { return a.Outside }},
	}
	cases := 0
	for i, wrap := range append(transparent, others...) {
		for _, c := range commands {
			line := wrap + " " + c.line
			a := r.analyze(t, line)
			cases++
			switch {
			case c.ban && a.Forbidden == "":
				t.Errorf("%q is not forbidden", line)
			case !c.ban && a.Class < c.class:
				t.Errorf("%q: class %d, without the wrapper %d", line, a.Class, c.class)
			case !c.ban && i < len(transparent) && (a.Class != c.class || a.Forbidden != ""):
				t.Errorf("%q: class %d %q, the wrapper makes no difference to %d", line, a.Class, a.Reason+a.Forbidden, c.class)
			case i >= len(transparent) && wrap != "exec -a x" && a.ReadOnly():
				t.Errorf("%q is judged a read", line)
			case c.flags != nil && !c.flags(a):
				t.Errorf("%q: %+v", line, a)
			}
			if len(a.Commands) == 0 {
				t.Errorf("%q has no commands", line)
			}
		}
	}
	t.Log(fmt.Sprint(cases, " cases"))
}
