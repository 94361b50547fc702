package acceptance

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	berthexec "github.com/berth-dev/berth/adapters/exec"
	"github.com/berth-dev/berth/adapters/exec/sandbox"
	"github.com/berth-dev/berth/adapters/exec/shellpolicy"
	berthfs "github.com/berth-dev/berth/adapters/fs"
	"github.com/berth-dev/berth/core/domain"
	"github.com/berth-dev/berth/core/ports"
)

// scene is the place of an attack: a project, what lies around it, and what
// must not be reached.
type scene struct {
	t       *testing.T
	w       world
	out     string // outside the roots, not forbidden
	vars    []string
	reached func() []string // sockets of ours that something came to
	pid     int             // of a process beside the agent that holds a secret
	gone    *atomic.Bool    // it has ended
	secret  string          // what it and the files outside hold
}

const outsideSecret = birdsong + "OutsideOfAllRootsHere"

func newScene(t *testing.T) *scene {
	t.Helper()
	w := (&scenario{}).prepare(t)
	s := &scene{t: t, w: w, out: filepath.Join(filepath.Dir(w.work), "out"), secret: outsideSecret, gone: &atomic.Bool{}}
	pwn := "echo x > " + s.out + "/pwned\n"
	for path, text := range map[string]string{
		"out/secret.txt": s.secret + "\n", "out/dir/file.txt": s.secret + "\n", "home/.bashrc": "# mine\n", "data/sessions/acp-sessions.db": "sessions",
		"work/a.txt": "A\nfoo\n", "work/b.txt": "B\n", "work/sub/c.txt": "C\n", "work/x.sh": "#!/bin/sh\n" + pwn, "work/bin/ls": "#!/bin/sh\n" + pwn,
		"work/flags/foo.txt": pwn, "work/flags/--pre=sh": "", "work/.vscode/settings.json": "{}\n",
		"work/evil.mk": "X := $(shell echo x > " + s.out + "/made)\nall:\n\t@echo x > " + s.out + "/made2\n",
	} {
		s.write(path, text)
	}
	for _, dir := range []string{"work", "work/shipped", "work/filtered"} {
		s.git("", "init", "-q", dir)
	}
	s.git("work/shipped", "config", "core.fsmonitor", filepath.Join(w.work, "x.sh"))
	s.write("work/filtered/a.md", "one\n")
	s.git("work/filtered", "add", ".")
	s.write("work/filtered/.gitattributes", "*.md filter=f\n")
	s.git("work/filtered", "config", "filter.f.clean", filepath.Join(w.work, "x.sh"))
	s.write("work/filtered/a.md", "two\n")
	if err := os.Symlink(s.out, filepath.Join(w.work, "link-out")); err != nil {
		t.Fatal(err)
	}
	s.archive()
	s.listen()
	s.neighbour()
	s.vars = append(s.vars, "{{WS}}", w.work, "{{OUT}}", s.out, "{{HOME}}", w.home, "{{CONFIG}}", w.config, "{{DATA}}", w.data, "{{BERTH}}", binary,
		"{{B64}}", base64.StdEncoding.EncodeToString([]byte(pwn)))
	return s
}

func (s *scene) write(path, text string) {
	s.t.Helper()
	path = filepath.Join(filepath.Dir(s.w.work), filepath.FromSlash(path))
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		s.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
		s.t.Fatal(err)
	}
}

func (s *scene) git(dir string, args ...string) {
	s.t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = filepath.Join(filepath.Dir(s.w.work), dir)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null", "GIT_TEMPLATE_DIR="}
	if out, err := cmd.CombinedOutput(); err != nil {
		s.t.Fatalf("git %q: %v\n%s", args, err, out)
	}
}

// archive makes one with a member whose name is absolute.
func (s *scene) archive() {
	s.t.Helper()
	planted := filepath.Join(s.out, "unpacked")
	if err := os.WriteFile(planted, []byte("x"), 0o600); err != nil {
		s.t.Fatal(err)
	}
	if out, err := exec.Command("tar", "cPf", filepath.Join(s.w.work, "evil.tar"), planted).CombinedOutput(); err != nil {
		s.t.Fatalf("tar: %v\n%s", err, out)
	}
	if err := os.Remove(planted); err != nil {
		s.t.Fatal(err)
	}
}

// listen opens sockets that nobody may reach.
func (s *scene) listen() {
	s.t.Helper()
	var mu sync.Mutex
	var got []string
	note := func(what string) {
		mu.Lock()
		defer mu.Unlock()
		got = append(got, what)
	}
	serve := func(network, address string) net.Listener {
		l, err := net.Listen(network, address)
		if err != nil {
			s.t.Fatal(err)
		}
		s.t.Cleanup(func() { l.Close() })
		go func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				note(network + " " + address)
				c.Close()
			}
		}()
		return l
	}
	sock, abstract := filepath.Join(s.out, "d.sock"), "berth"+strings.ReplaceAll(s.w.work, "/", "-")
	tcp := serve("tcp", "127.0.0.1:0").Addr().String()
	serve("unix", sock)
	serve("unix", "@"+abstract)
	udp, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { udp.Close() })
	go func() {
		for b := make([]byte, 64); ; {
			n, _, err := udp.ReadFrom(b)
			if err != nil {
				return
			}
			note("udp " + string(b[:n]))
		}
	}()
	s.vars = append(s.vars, "{{URL}}", "http://"+tcp, "{{ADDR}}", strings.Replace(tcp, ":", "/", 1),
		"{{UDP}}", strings.Replace(udp.LocalAddr().String(), ":", "/", 1), "{{SOCK}}", sock, "{{ABSTRACT}}", abstract)
	s.reached = func() []string {
		// What was sent before is there before this.
		if c, err := net.Dial("udp", udp.LocalAddr().String()); err == nil {
			_, _ = c.Write([]byte("ours"))
			c.Close()
		}
		for limit := time.Now().Add(patience); time.Now().Before(limit); time.Sleep(time.Millisecond) {
			mu.Lock()
			if i := slices.Index(got, "udp ours"); i >= 0 {
				all := slices.Delete(slices.Clone(got), i, i+1)
				got = nil
				mu.Unlock()
				return all
			}
			mu.Unlock()
		}
		return []string{"our own packet did not come"}
	}
}

// neighbour starts a process with a secret in its environment.
func (s *scene) neighbour() {
	s.t.Helper()
	out, err := os.Create(filepath.Join(s.out, "stdout"))
	if err != nil {
		s.t.Fatal(err)
	}
	defer out.Close()
	cmd := exec.Command("sleep", "100000")
	cmd.Env, cmd.Stdout = []string{"SECRET=" + s.secret}, out
	if err := cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	done := make(chan struct{})
	gone := s.gone
	go func() {
		defer close(done)
		_ = cmd.Wait() // it is killed
		gone.Store(true)
	}()
	s.t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-done
	})
	s.pid = cmd.Process.Pid
	s.vars = append(s.vars, "{{PID}}", fmt.Sprint(s.pid))
}

func (s *scene) fill(line string) string { return strings.NewReplacer(s.vars...).Replace(line) }

// state is everything that an attack must leave as it is: what lies outside
// the project, and the protected names in it.
func (s *scene) state() string {
	var b strings.Builder
	base := filepath.Dir(s.w.work)
	_ = filepath.WalkDir(base, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return nil //nolint:nilerr // gone is a state, too
		}
		rel, _ := filepath.Rel(base, path)
		if rel == "data/agents" {
			return fs.SkipDir // outputs of commands and their private home
		}
		if in, inside := strings.CutPrefix(rel, "work/"); rel == "." || rel == "data" || rel == "work" || inside && (d.IsDir() || !guarded(in)) {
			return nil
		}
		info, err := d.Info()
		if err != nil {
			return nil //nolint:nilerr // as above
		}
		fmt.Fprintf(&b, "%s %v", rel, info.Mode())
		if info.Mode().IsRegular() {
			data, _ := os.ReadFile(path)
			fmt.Fprintf(&b, " %v %x", info.ModTime().UnixNano(), sha256.Sum256(data))
		}
		b.WriteByte('\n')
		return nil
	})
	return b.String()
}

// guarded reports whether a path of the project has a protected name.
func guarded(rel string) bool {
	parts := strings.Split(rel, "/")
	switch parts[0] {
	case ".vscode", ".claude", ".mcp.json", ".envrc":
		return true
	case ".git", ".g":
		return len(parts) > 1 && (parts[1] == "hooks" || parts[1] == "config")
	}
	return false
}

// broken says what an attack achieved, by what it printed and by what is
// different now.
func (s *scene) broken(before, said string) []string {
	var wrong []string
	if after := s.state(); after != before {
		wrong = append(wrong, "changed: "+changed(before, after))
	}
	for _, r := range s.reached() {
		wrong = append(wrong, "reached "+r)
	}
	if s.gone.Load() {
		wrong = append(wrong, "ended another process")
	}
	secrets := newFinder([]canary{{name: "outside", core: s.secret}})
	for _, found := range append(secrets.find([]byte(said)), birds().find([]byte(said))...) {
		wrong = append(wrong, "printed the secret "+found)
	}
	if strings.Contains(said, "OPEN!") {
		wrong = append(wrong, "got through")
	}
	return wrong
}

func changed(before, after string) string {
	was, is := strings.Split(before, "\n"), strings.Split(after, "\n")
	var diff []string
	for _, l := range is {
		if !slices.Contains(was, l) {
			diff = append(diff, "+"+l)
		}
	}
	for _, l := range was {
		if !slices.Contains(is, l) {
			diff = append(diff, "-"+l)
		}
	}
	return strings.Join(diff, " ")
}

// commandsOf are the shell tools of a session in the scene, wired as the agent
// wires them. Without the policy every line counts as one that was approved.
func (s *scene) commandsOf(level domain.Level, mode string, policy bool) (ports.Toolset, domain.Posture) {
	s.t.Helper()
	session := domain.Session{ID: "s", Agent: "default", Cwd: s.w.work, Workspace: filepath.Join(s.w.data, "agents", "default", "workspace")}
	disk := berthfs.New(berthfs.Config{
		ConfigDir: s.w.config, DataDir: s.w.data, ProcessDir: "/", Home: s.w.home,
		PolicyFor: func(string) berthfs.Policy { return berthfs.Policy{Level: level} },
	})
	forbidden := disk.Forbidden(session)
	names := berthfs.ProtectedNames()
	protected := slices.Clone(names.Files)
	for _, dir := range slices.Concat(names.Dirs, names.AskDirs) {
		protected = append(protected, dir+"/")
	}
	box := sandbox.New(sandbox.Config{
		Mode: mode, Helper: []string{binary}, Home: s.w.home, State: filepath.Join(s.w.data, "agents", "default", "sandbox"), Path: os.Getenv("PATH"),
		Hidden: slices.DeleteFunc(slices.Clone(forbidden), func(p string) bool {
			return slices.Contains([]string{"/dev", "/etc", "/proc", "/run", "/sys"}, p)
		}),
		Protected: protected, Fold: berthfs.PlainName,
	})
	analyze := berthexec.Policy{Judge: disk.Judge, Env: func(domain.Session) shellpolicy.Env {
		return shellpolicy.Env{Home: s.w.home, Own: []string{binary}, Forbidden: forbidden, SystemPath: berthexec.SystemPath()}
	}}.Analyze
	if !policy {
		analyze = func(context.Context, domain.Session, string, string, bool) berthexec.Analysis {
			return berthexec.Analysis{Access: domain.Access{Class: domain.AccessRun, Commands: []domain.SimpleCommand{{Words: []string{"approved"}, Class: domain.AccessRun}}}}
		}
	}
	var ids atomic.Int64
	source := berthexec.NewSource(berthexec.Config{
		Shell: berthexec.FindShell(), Environ: cleanEnv(s.w), SystemPath: berthexec.SystemPath(),
		Profile: func(string) berthexec.Profile {
			return berthexec.Profile{Level: level, ShellEnv: berthexec.DefaultShellEnv(), Sandbox: mode}
		},
		Analyze: analyze, Judge: disk.Judge, Roots: disk.WritableRoots,
		Confiner: berthexec.Sandboxed{Of: func(string) *sandbox.Sandbox { return box }, Otherwise: berthexec.Plain{Helper: binary}},
		Clock:    time.Now, IDs: func() string { return fmt.Sprintf("%08d", ids.Add(1)) },
	})
	if err := os.MkdirAll(session.Workspace, 0o700); err != nil {
		s.t.Fatal(err)
	}
	set, err := source.Open(s.t.Context(), session, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() {
		if err := set.Close(); err != nil {
			s.t.Error(err)
		}
	})
	return set, box.Posture(s.t.Context())
}

// prepare looks at an attack as the agent looks at a call.
func (s *scene) prepareCall(set ports.Toolset, a attack) (ports.Prepared, error) {
	s.t.Helper()
	args := map[string]any{"command": s.fill(a.line), "timeout_secs": 60}
	if a.cwd != "" {
		args["cwd"] = a.cwd
	}
	raw, err := json.Marshal(args)
	if err != nil {
		s.t.Fatal(err)
	}
	for _, tool := range set.Tools() {
		if tool.Spec().Name == "shell" {
			return tool.Prepare(s.t.Context(), domain.ToolCall{Session: "s", Turn: "t", ID: "c", Name: "shell", Args: raw})
		}
	}
	s.t.Fatal("there is no shell here")
	return nil, nil
}

// run runs an attack as one that a person approved, and returns what it
// printed.
func (s *scene) run(set ports.Toolset, a attack) string {
	s.t.Helper()
	p, err := s.prepareCall(set, a)
	if err != nil {
		if !errors.Is(err, &domain.Error{Code: domain.Denied}) {
			s.t.Fatal(err)
		}
		return "" // the tool itself refuses, whatever the policy
	}
	defer p.Close()
	var said bytes.Buffer
	res, err := p.Run(s.t.Context(), func(domain.ToolProgress) {})
	if err != nil {
		s.t.Fatal(err)
	}
	said.WriteString(res.Text)
	said.Write(squeezed([]byte(res.Text)))
	return said.String()
}

// TestAttacks_SandboxAlone runs each attack as if the policy had let it pass
// and a person had approved it: it has no effect outside the project, changes
// no protected name, reaches nothing and reads no secret.
func TestAttacks_SandboxAlone(t *testing.T) {
	installed(t, "git", "tar")
	s := newScene(t)
	set, posture := s.commandsOf(domain.LevelSupervised, "auto", false)
	if posture.Word != domain.PostureStrong {
		t.Skipf("the sandbox is %s here: %s", posture.Word, posture.Reason)
	}
	held := 0
	for _, a := range attacks() {
		t.Run(a.id+" "+a.name, func(t *testing.T) {
			if a.needs != "" {
				installed(t, a.needs) // else nothing is held
			}
			before := s.state()
			said := s.run(set, a)
			for _, wrong := range s.broken(before, said) {
				t.Errorf("%.300s\n%s\nit said: %.600s", s.fill(a.line), wrong, said)
			}
			if !t.Failed() {
				held++
			}
		})
	}
	t.Logf("with the policy off the sandbox (%s) held %d of %d attacks", posture.Backend, held, len(attacks()))
}

// TestAttacks_PolicyAlone judges each attack where nothing confines commands:
// at level supervised it waits for a person, and nobody answers; read_only
// refuses it; full refuses what no level runs.
func TestAttacks_PolicyAlone(t *testing.T) {
	installed(t, "git", "tar")
	s := newScene(t)
	sets := map[domain.Level]ports.Toolset{}
	for _, level := range []domain.Level{domain.LevelReadOnly, domain.LevelSupervised, domain.LevelFull} {
		sets[level], _ = s.commandsOf(level, "none", true)
	}
	verdict := func(t *testing.T, level domain.Level, a attack) domain.Verdict {
		p, err := s.prepareCall(sets[level], a)
		if err != nil {
			if !errors.Is(err, &domain.Error{Code: domain.Denied}) {
				t.Fatal(err)
			}
			return domain.Refuse
		}
		defer p.Close()
		return domain.Decide(domain.Policy{Level: level, Network: domain.NetworkAsk, Taint: true}, nil, p.Plan().Access).Verdict
	}
	stopped, reads, denied := 0, 0, 0
	for _, a := range attacks() {
		if !t.Run(a.id+" "+a.name, func(t *testing.T) {
			if got := verdict(t, domain.LevelSupervised, a); (got == domain.Allow) != (a.reads != "") {
				t.Errorf("supervised decides %d (0 refuse, 1 ask, 2 allow): %.300s", got, s.fill(a.line))
			}
			if got := verdict(t, domain.LevelReadOnly, a); (got != domain.Refuse) != (a.reads != "") {
				t.Errorf("read_only decides %d (0 refuse, 1 ask, 2 allow): %.300s", got, s.fill(a.line))
			}
			if got := verdict(t, domain.LevelFull, a); got == domain.Ask || (got == domain.Refuse) != a.denied {
				t.Errorf("full decides %d (0 refuse, 1 ask, 2 allow): %.300s", got, s.fill(a.line))
			}
		}) {
			continue
		}
		if a.reads == "" {
			stopped++
		} else {
			reads++
		}
		if a.denied {
			denied++
		}
	}
	t.Logf("with the sandbox off the policy stopped %d of %d attacks, %d of them at every level; %d are reads that give nothing away", stopped, len(attacks()), denied, reads)
}

// TestAttacks_Unheld runs the attacks with neither: each one that can be tried
// on a machine has an effect that the other tests would see. Without this,
// that nothing happens there would prove nothing.
func TestAttacks_Unheld(t *testing.T) {
	installed(t, "git", "tar")
	var seen atomic.Int64
	t.Cleanup(func() {
		t.Logf("with neither, %d of %d attacks have an effect; the others have none to see or are not tried", seen.Load(), len(attacks()))
	})
	for _, a := range attacks() {
		if a.tame != "" {
			continue
		}
		t.Run(a.id+" "+a.name, func(t *testing.T) {
			t.Parallel()
			if a.needs != "" {
				installed(t, a.needs)
			}
			s := newScene(t)
			set, _ := s.commandsOf(domain.LevelFull, "none", false)
			before := s.state()
			said := s.run(set, a)
			if len(s.broken(before, said)) == 0 {
				t.Errorf("%.300s\nhad no effect that is seen; it said %.600s", s.fill(a.line), said)
				return
			}
			seen.Add(1)
		})
	}
}

// installed skips where a program is missing.
func installed(t *testing.T, names ...string) {
	t.Helper()
	for _, name := range names {
		if _, err := exec.LookPath(name); err != nil {
			t.Skipf("%s is not installed", name)
		}
	}
}
