package sandbox

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// stayers are ways of a program to outlive the one that started it. Each is a
// shell line that starts one or more processes which sleep under the name in
// $TAG.
func stayers() map[string]string {
	sleep := `exec -a "$TAG" sleep 300`
	bash := `bash -c '` + sleep + `'`
	lines := map[string]string{
		"background":         `(` + sleep + `) &`,
		"nohup":              `nohup ` + bash + ` >/dev/null 2>&1 &`,
		"disown":             bash + ` & disown`,
		"session":            `setsid -f ` + bash,
		"session of session": `setsid -f setsid -f setsid -f ` + bash,
		"double fork":        `( ( ` + sleep + ` ) & )`,
		"triple fork":        `( ( ( ` + sleep + ` ) & ) & )`,
		"ignores TERM":       `(trap '' TERM HUP INT QUIT; ` + sleep + `) &`,
		"ignores everything": `(for s in 1 2 3 5 6 10 12 13 14 15 20 21 22; do trap '' $s; done; ` + sleep + `) &`,
		"stopped":            bash + ` & sleep 0.02; kill -STOP $!`,
		"own group":          `set -m; ` + bash + ` &`,
		"holds the output":   `(` + sleep + `) & echo started`,
		"closed streams":     `(exec <&- >&- 2>&-; ` + sleep + `) &`,
		"many":               `for i in 1 2 3 4 5 6 7 8 9 10; do setsid -f ` + bash + `; done`,
		"chain":              `f() { if [ $1 -gt 0 ]; then (f $(($1-1))) & fi; ` + sleep + `; }; f 8 & sleep 0.05`,
		"respawns":           `setsid -f bash -c 'trap "" TERM; while :; do bash -c "exec -a $TAG sleep 0.05"; done'`,
		"exits with a code":  `setsid -f ` + bash + `; exit 3`,
		"kills itself":       `setsid -f ` + bash + `; kill -9 $$`,
		"in a pipe":          `yes | (` + sleep + `) &`,
		"reads a pipe":       `mkfifo p; (cat p; ` + sleep + `) & (` + sleep + `) &`,
		"other directory":    `cd /; setsid -f ` + bash,
		"low priority":       `nice -n 19 setsid -f ` + bash,
		"python daemon": `python3 -c 'import os,sys,time
if os.fork(): sys.exit()
os.setsid()
if os.fork(): os._exit(0)
os.execv("/bin/bash",["bash","-c","exec -a $TAG sleep 300"])'`,
		"perl daemon":    `perl -e 'use POSIX; fork and exit; setsid; fork and exit; exec "bash","-c","exec -a \$TAG sleep 300"'`,
		"coprocess":      `coproc ( ` + sleep + ` )`,
		"timeout":        `timeout 300 ` + bash + ` &`,
		"waits for more": `(while :; do (` + sleep + `); done) &`,
	}
	// The same once more with the command itself killed from outside.
	for name, line := range map[string]string{
		"hangs": sleep, "hangs deaf": `trap '' TERM INT HUP QUIT; ` + sleep,
	} {
		lines[name] = line
	}
	all := map[string]string{}
	for name, line := range lines {
		all[name] = line
		if strings.Contains(line, "exit 3") || strings.Contains(line, "kill -9 $$") {
			continue
		}
		all[name+", then sleeps"] = line + "\nexec -a \"$TAG\" sleep 300"
	}
	return all
}

// tagged lists the live processes that carry a tag.
func tagged(tag string) []string {
	var all []string
	dir, _ := os.ReadDir("/proc")
	for _, e := range dir {
		if _, err := strconv.Atoi(e.Name()); err != nil {
			continue
		}
		line, err := os.ReadFile("/proc/" + e.Name() + "/cmdline")
		if err == nil && strings.Contains(string(line), tag) {
			all = append(all, e.Name()+" "+strings.ReplaceAll(string(line), "\x00", " "))
		}
	}
	return all
}

// gone waits until no process carries the tag. On a quiet machine that takes
// some milliseconds.
func gone(t *testing.T, tag string) {
	t.Helper()
	began := time.Now()
	deadline := began.Add(30 * time.Second)
	for {
		left := tagged(tag)
		if len(left) == 0 {
			if took := time.Since(began); took > time.Second {
				t.Logf("gone after %v", took)
			}
			return
		}
		if time.Now().After(deadline) {
			t.Errorf("%d processes are left: %v", len(left), left)
			for _, l := range left {
				pid, _, _ := strings.Cut(l, " ")
				if n, err := strconv.Atoi(pid); err == nil {
					unix.Kill(n, unix.SIGKILL)
				}
			}
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
}

func TestLeftovers(t *testing.T) {
	withoutRace(t)
	lines := stayers()
	if len(lines) < 50 {
		t.Fatalf("only %d programs", len(lines))
	}
	for _, mode := range modes() {
		t.Run(mode, func(t *testing.T) {
			w := newWorld(t, mode)
			if mode != None {
				w.needs()
			}
			n := 0
			for name, line := range lines {
				n++
				tag := fmt.Sprintf("stayer-%d-%s-%d", os.Getpid(), mode, n)
				t.Run(name, func(t *testing.T) {
					t.Parallel()
					spec := w.spec(line)
					spec.Env = append(spec.Env, "TAG="+tag)
					p, err := w.box.Command(spec)
					if err != nil {
						t.Fatal(err)
					}
					defer p.Close()
					if err := p.Start(); err != nil {
						t.Fatal(err)
					}
					if strings.HasPrefix(name, "hangs") || strings.HasSuffix(name, "then sleeps") {
						running(t, tag)
						if err := p.Kill(); err != nil {
							t.Error(err)
						}
					}
					if _, err := p.Wait(); err != nil {
						t.Error(err)
					}
					gone(t, tag)
				})
			}
		})
	}
}

// running waits until a process carries the tag.
func running(t *testing.T, tag string) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); len(tagged(tag)) == 0; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the command does not run")
		}
	}
}

// TestHostKilled is the end of the host by SIGKILL while commands run.
func TestHostKilled(t *testing.T) {
	withoutRace(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, mode := range modes() {
		t.Run(mode, func(t *testing.T) {
			w := newWorld(t, mode)
			if mode != None {
				w.needs()
			}
			n := 0
			for name, line := range stayers() {
				if strings.HasPrefix(name, "hangs") || !strings.HasSuffix(name, "then sleeps") {
					continue
				}
				n++
				tag := fmt.Sprintf("orphan-%d-%s-%d", os.Getpid(), mode, n)
				t.Run(name, func(t *testing.T) {
					t.Parallel()
					// The command says "ready" once all its processes were started.
					line = strings.TrimSuffix(line, "exec -a \"$TAG\" sleep 300") + "echo ready\nexec -a \"$TAG\" sleep 300"
					cmd := exec.Command(self, "act", "host", mode, w.root, "export TAG="+tag+"\n"+line)
					cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
					out, err := cmd.StdoutPipe()
					if err != nil {
						t.Fatal(err)
					}
					if err := cmd.Start(); err != nil {
						t.Fatal(err)
					}
					lines := bufio.NewScanner(out)
					ready := false
					for !ready && lines.Scan() {
						ready = lines.Text() == "ready"
					}
					if !ready {
						cmd.Process.Kill()
						cmd.Wait()
						t.Fatal("the command did not get ready")
					}
					cmd.Process.Kill()
					cmd.Wait()
					gone(t, tag)
				})
			}
		})
	}
}

// TestHostKilledTakesBack: what a command made of protected names does not
// stay because the host was killed, and nothing is lost.
func TestHostKilledTakesBack(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, mode := range modes() {
		if mode == None || mode == Bubblewrap { // bubblewrap ends the helper with the host
			continue
		}
		t.Run(mode, func(t *testing.T) {
			w := newWorld(t, mode)
			w.needs()
			at := func(name string) string { return filepath.Join(w.root, name) }
			if err := os.MkdirAll(at("had/.git"), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(at(".envrc"), []byte("mine"), 0o600); err != nil {
				t.Fatal(err)
			}
			line := "mkdir -p had/.git/hooks new/.git/hooks sub; echo evil > had/.git/hooks/pre-commit; echo evil > new/.git/hooks/pre-commit; " +
				"echo evil > sub/.envrc; echo good > sub/file; echo ready; while :; do echo more > sub/.envrc; done"
			cmd := exec.Command(self, "act", "host", mode, w.root, line)
			cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
			out, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			lines := bufio.NewScanner(out)
			for lines.Scan() && lines.Text() != "ready" {
			}
			cmd.Process.Kill()
			cmd.Wait()
			deadline := time.Now().Add(20 * time.Second)
			for _, name := range []string{"had/.git/hooks/pre-commit", "new/.git/hooks/pre-commit", "sub/.envrc"} {
				for _, err := os.Lstat(at(name)); err == nil; _, err = os.Lstat(at(name)) {
					if time.Now().After(deadline) {
						t.Fatalf("%s is still there", name)
					}
					time.Sleep(5 * time.Millisecond)
				}
				dir, file := filepath.Split(at(name))
				if _, err := os.Lstat(dir + "undone-0-" + file); err != nil {
					t.Errorf("%s is lost: %v", name, err)
				}
			}
			for name, want := range map[string]string{".envrc": "mine", "sub/file": "good\n"} {
				if raw, err := os.ReadFile(at(name)); string(raw) != want {
					t.Errorf("%s: %q, %v", name, raw, err)
				}
			}
		})
	}
}

func TestSignalsArePassedOn(t *testing.T) {
	for _, mode := range modes() {
		t.Run(mode, func(t *testing.T) {
			w := newWorld(t, mode)
			if mode != None {
				w.needs()
			}
			tag := fmt.Sprintf("asked-%d-%s", os.Getpid(), mode)
			spec := w.spec(`trap 'wait; echo parent >> said; exit 9' TERM
				bash -c 'trap "echo child >> said; exit" TERM; echo > up1; while :; do sleep 0.01; done' &
				setsid bash -c 'trap "echo other >> said; exit" TERM; echo > up2; while :; do sleep 0.01; done' &
				(exec -a "$TAG" sleep 300) &
				while :; do sleep 0.01; done`)
			spec.Env = append(spec.Env, "TAG="+tag)
			p, err := w.box.Command(spec)
			if err != nil {
				t.Fatal(err)
			}
			defer p.Close()
			if err := p.Start(); err != nil {
				t.Fatal(err)
			}
			running(t, tag)
			for _, name := range []string{"up1", "up2"} {
				for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(5 * time.Millisecond) {
					if _, err := os.Stat(filepath.Join(w.root, name)); err == nil {
						break
					}
					if time.Now().After(deadline) {
						t.Fatal("the command does not run")
					}
				}
			}
			if err := p.Signal(syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
			res, err := p.Wait()
			if err != nil || res.Code != 9 {
				t.Errorf("%+v, %v", res, err)
			}
			if said := read(t, filepath.Join(w.root, "said")); !strings.Contains(said, "other\n") || !strings.Contains(said, "child\n") || !strings.HasSuffix(said, "parent\n") {
				t.Errorf("said %q", said)
			}
			gone(t, tag)
		})
	}
}
