//go:build unix

package exec

import (
	"os"
	"strings"
	"testing"
)

func TestShell(t *testing.T) {
	for name, c := range map[string]struct {
		args   args
		failed bool
		status string // contained
		out    string // exactly
		code   int
		signal string
	}{
		"output":                {args{"command": "echo hello"}, false, "exit code 0", "hello\n", 0, ""},
		"both streams in order": {args{"command": "echo a; echo b >&2; echo c; echo d >&2"}, false, "exit code 0", "a\nb\nc\nd\n", 0, ""},
		"no output":             {args{"command": "true"}, false, "exit code 0", "(no output)", 0, ""},
		"exit code":             {args{"command": "echo x; exit 3"}, true, "exit code 3", "x\n", 3, ""},
		"not found":             {args{"command": "no_such_program_of_berth 2>/dev/null"}, true, "exit code 127", "(no output)", 127, ""},
		"killed by itself":      {args{"command": "kill -SEGV $$"}, true, "killed by SIGSEGV", "(no output)", 139, "SIGSEGV"},
		"a part was killed":     {args{"command": "{ sh -c 'kill -KILL $$'; } 2>/dev/null; exit $?"}, true, "exit code 137 (what SIGKILL leaves)", "(no output)", 137, ""},
		"nothing to read":       {args{"command": "read x; echo \"$? [$x]\"; cat"}, false, "exit code 0", "1 []\n", 0, ""},
		"no terminal":           {args{"command": "test -t 0 || test -t 1 || test -t 2; echo $?; (: </dev/tty) 2>/dev/null || echo none"}, false, "exit code 0", "1\nnone\n", 0, ""},
		"pagers are off":        {args{"command": "echo $PAGER $GIT_PAGER $TERM $BERTH_SHELL"}, false, "exit code 0", "cat cat dumb 1\n", 0, ""},
		"exact bytes":           {args{"command": "printf '%s|' '  two  blanks' \"tab\there\" 'ünï 漢 \\n'"}, false, "exit code 0", "  two  blanks|tab\there|ünï 漢 \\n|", 0, ""},
		"several lines":         {args{"command": "cat <<'X'\n$HOME\nX\necho end"}, false, "exit code 0", "$HOME\nend\n", 0, ""},
		"a directory":           {args{"command": "basename \"$PWD\"; basename \"$(pwd -P)\"", "cwd": "sub"}, false, "exit code 0", "sub\nsub\n", 0, ""},
		"no state":              {args{"command": "cd sub; X=1; echo ${Y-none}"}, false, "exit code 0", "none\n", 0, ""},
		"claims are nothing":    {args{"command": "echo ok", "approved": true, "sandbox": "off"}, false, "exit code 0", "ok\n", 0, ""},
		"exec into another":     {args{"command": "exec sh -c 'exit 9'"}, true, "exit code 9", "(no output)", 9, ""},
		"set -e":                {args{"command": "set -e; false; echo never"}, true, "exit code 1", "(no output)", 1, ""},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t).open()
			res := r.run("shell", c.args)
			f := r.raw(res)
			if res.Failed != c.failed || !strings.Contains(statusOf(res), c.status) || out(res) != c.out {
				t.Errorf("failed %t, text %q", res.Failed, res.Text)
			}
			if f.ExitCode == nil || *f.ExitCode != c.code || f.Signal != c.signal || f.TimedOut || f.Truncated {
				t.Errorf("raw output %s", res.RawOutput)
			}
		})
	}
}

// TestDescriptors proves that a command gets its three streams and nothing
// else, also of what this process inherited itself.
func TestDescriptors(t *testing.T) {
	if _, err := os.Stat("/proc/self/fd"); err != nil {
		t.Skip("needs /proc to list descriptors")
	}
	r := newRig(t).open()
	f, err := os.Open(r.base)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	leak(t, f)
	res := r.shell("ls /proc/$$/fd; :")
	if got := strings.Join(strings.Fields(out(res)), " "); got != "0 1 2" {
		t.Errorf("descriptors %q", got)
	}
}
