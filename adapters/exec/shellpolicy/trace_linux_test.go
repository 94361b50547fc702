package shellpolicy

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// What is judged a read starts no program but those it names, writes nothing
// and opens nothing outside: each line is run for real and traced.
func TestReads_Traced(t *testing.T) {
	if testing.Short() {
		t.Skip("runs 500 commands under strace")
	}
	bash := needTracer(t)
	r := newRig(t)
	r.trap(t)
	m := newLineMaker(2026)
	var lines []string
	seen := map[string]bool{}
	for tried := 0; len(lines) < 500; tried++ {
		if tried > 200_000 {
			t.Fatalf("only %d lines in 200000 are reads", len(lines))
		}
		line := m.line()
		if a := r.analyze(t, line); a.ReadOnly() && !a.Outside && !seen[line] {
			seen[line] = true
			lines = append(lines, line)
		}
	}
	used := map[string]int{}
	for _, line := range lines {
		for _, c := range r.analyze(t, line).Commands {
			if len(c.Words) > 0 {
				used[c.Words[0]]++
			}
		}
	}
	t.Logf("%d lines, %d programs: %v", len(lines), len(used), used)
	if len(used) < 50 {
		t.Error("the lines use too few programs to show anything")
	}
	for batch := range slices.Chunk(lines, 50) {
		r.trace(t, bash, batch)
	}
}

// needTracer returns bash, or skips where nothing can be traced.
func needTracer(t *testing.T) string {
	t.Helper()
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("there is no bash")
	}
	if out, err := exec.Command("strace", "-f", "-y", "-o", os.DevNull, bash, "-c", "true").CombinedOutput(); err != nil {
		t.Skipf("strace cannot trace here: %v %s", err, out)
	}
	return bash
}

// trap makes the fixture a repository whose settings run programs, and plants
// file names that look like options.
func (r *rig) trap(t *testing.T) {
	r.must(t, os.WriteFile(r.ws+"/trap.sh", []byte("#!/bin/sh\ntouch trapped\n"), 0o755))
	r.must(t, os.WriteFile(r.ws+"/--pre=.trap.sh", nil, 0o600))
	r.must(t, os.WriteFile(r.ws+"/-exec", nil, 0o600))
	r.must(t, os.WriteFile(r.ws+"/.git/config", []byte("[core]\n\trepositoryformatversion = 0\n\tfsmonitor = ./trap.sh\n\tpager = ./trap.sh\n\thooksPath = .\n"+
		"[log]\n\tshowSignature = true\n[gpg]\n\tprogram = ./trap.sh\n"), 0o600))
	if git, err := exec.LookPath("git"); err == nil {
		for _, args := range [][]string{
			{"add", "a.txt", "src", "README.md"},
			{"-c", "user.name=x", "-c", "user.email=x@y.invalid", "commit", "-q", "--no-gpg-sign", "-m", "first"}, {"tag", "v1"},
		} {
			cmd := exec.Command(git, args...)
			cmd.Dir, cmd.Env = r.ws, append(r.commandEnv(), "GIT_CONFIG_NOSYSTEM=1")
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("git %v: %v %s", args, err, out)
			}
		}
		r.must(t, os.WriteFile(r.ws+"/a.txt", []byte("A\nchanged\n"), 0o600))
	}
}

func (r *rig) commandEnv() []string {
	return append(GitEnv(), "HOME="+r.home, "PWD="+r.ws, "PATH=/usr/local/bin:/usr/bin:/bin", "LANG=C", "TERM=dumb")
}

// trace runs lines one after the other under one tracer; opening a mark says
// where the next begins.
func (r *rig) trace(t *testing.T, bash string, lines []string) {
	t.Helper()
	marks, out := t.TempDir(), filepath.Join(t.TempDir(), "trace")
	var script strings.Builder
	for i, line := range lines {
		mark := fmt.Sprintf("%s/%d", marks, i)
		r.must(t, os.WriteFile(mark, nil, 0o600))
		fmt.Fprintf(&script, ": <%s; %s --noprofile --norc -c '%s' </dev/null >/dev/null 2>&1\n", mark, bash, strings.ReplaceAll(line, "'", `'\''`))
	}
	driver := filepath.Join(marks, "driver")
	r.must(t, os.WriteFile(driver, []byte(script.String()), 0o600))
	cmd := exec.CommandContext(t.Context(), "strace", "-f", "-y", "-s", "4096", "-e", "signal=none", "-o", out,
		"-e", "trace=execve,open,openat,creat,unlink,unlinkat,rename,renameat,renameat2,mkdir,mkdirat,rmdir,link,linkat,symlink,symlinkat,chmod,fchmodat,"+
			"chown,fchownat,truncate,utimensat,mknod,mknodat,connect,setxattr",
		bash, "--noprofile", "--norc", driver)
	cmd.Dir, cmd.Env = r.ws, r.commandEnv()
	if text, err := cmd.CombinedOutput(); err != nil && cmd.ProcessState.ExitCode() < 0 {
		t.Fatalf("strace: %v %s", err, text)
	}
	f, err := os.Open(out)
	r.must(t, err)
	defer f.Close() //nolint:errcheck // read only
	r.check(t, f, marks, lines)
}

// call is one traced system call: its name, the text of its arguments, and
// its result.
type traced struct{ name, args, result string }

func (r *rig) check(t *testing.T, f *os.File, marks string, lines []string) {
	t.Helper()
	entry := regexp.MustCompile(`^\d+ +(\w+)\((.*)\) += (.*)$`)
	begun := regexp.MustCompile(`^(\d+) +(\w+)\((.*) <unfinished \.\.\.>$`)
	resumed := regexp.MustCompile(`^(\d+) +<\.\.\. \w+ resumed>(.*)\) += (.*)$`)
	quoted := regexp.MustCompile(`"((?:[^"\\]|\\.)*)"`)
	open := map[string]traced{}
	at, shells := -1, 0
	s := bufio.NewScanner(f)
	s.Buffer(nil, 1<<20)
	for s.Scan() {
		var c traced
		if m := begun.FindStringSubmatch(s.Text()); m != nil {
			open[m[1]] = traced{m[2], m[3], ""}
			continue
		} else if m := resumed.FindStringSubmatch(s.Text()); m != nil {
			c = open[m[1]]
			c.args, c.result = c.args+m[2], m[3]
		} else if m := entry.FindStringSubmatch(s.Text()); m != nil {
			c = traced{m[1], m[2], m[3]}
		} else {
			continue
		}
		if q := quoted.FindStringSubmatch(c.args); q != nil && strings.HasPrefix(q[1], marks+"/") && c.name == "openat" && !strings.HasSuffix(q[1], "driver") {
			_, _ = fmt.Sscanf(path.Base(q[1]), "%d", &at)
			shells = 0
			continue
		}
		if at < 0 {
			continue
		}
		if c.name == "execve" && shells == 0 {
			shells++ // the shell of the line
			continue
		}
		if why := r.surprise(t, c, lines[at]); why != "" {
			t.Errorf("%q\n\t%s: %s(%s) = %s", lines[at], why, c.name, cut(c.args, 200), c.result)
		}
	}
	if at != len(lines)-1 {
		t.Errorf("%d of %d lines ran", at+1, len(lines))
	}
}

// surprise says what a read must not do; "" when the call is none of it.
func (r *rig) surprise(t *testing.T, c traced, line string) string {
	if strings.HasPrefix(c.result, "-1") || strings.HasPrefix(c.result, "?") {
		return ""
	}
	switch c.name {
	case "execve":
		program := path.Base(strings.Trim(c.args[:strings.IndexByte(c.args, ',')], `"`))
		if !slices.Contains(r.programs(t, line), program) {
			return "starts " + program
		}
		return ""
	case "open", "openat":
	default:
		return "changes something"
	}
	file := strings.TrimSuffix(c.result[strings.IndexByte(c.result, '<')+1:], ">")
	switch {
	case file == "/dev/null":
	case strings.Contains(c.args, "O_WRONLY"), strings.Contains(c.args, "O_RDWR"), strings.Contains(c.args, "O_CREAT"), strings.Contains(c.args, "O_TRUNC"):
		return "writes " + file
	case below(r.base, file) && !below(r.ws, file):
		return "opens outside"
	case file == "/etc" && strings.Contains(c.args, "O_PATH"): // the name service looks for its files
	case below("/etc", file) && !systemFile(file):
		return "opens outside"
	}
	return ""
}

// systemFile reports whether programs read a file of /etc by themselves.
func systemFile(file string) bool {
	switch file {
	case "/etc/ld.so.cache", "/etc/ld.so.preload", "/etc/nsswitch.conf", "/etc/passwd", "/etc/group", "/etc/locale.alias", "/etc/localtime", "/etc/timezone",
		"/etc/magic", "/etc/magic.mime", "/etc/gitconfig", "/etc/host.conf", "/etc/resolv.conf", "/etc/hosts", "/etc/gai.conf":
		return true
	}
	return false
}

// programs are the names that the analysis of a line predicts, with the
// helpers of those that are scripts.
func (r *rig) programs(t *testing.T, line string) []string {
	var list []string
	for _, c := range r.analyze(t, line).Commands {
		for _, words := range append(c.Forms, c.Words) {
			if len(words) == 0 {
				continue
			}
			name := path.Base(words[0])
			list = append(list, name)
			switch name {
			case "egrep", "fgrep":
				list = append(list, "grep", "sh")
			case "which":
				list = append(list, "which.debianutils", "sh")
			}
		}
	}
	return list
}
