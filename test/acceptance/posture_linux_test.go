package acceptance

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// Words of a posture that stand for the things that tries can do.
const (
	openFiles     = "files outside the roots"
	openMetadata  = "permissions, owners and times of files outside the roots"
	openProtected = "protected names inside the roots"
	openHidden    = "forbidden directories inside the roots"
	openNetwork   = "the network"
	openSockets   = "local sockets of other programs"
	openProcesses = "other processes of the user"
	openKernel    = "rarely used parts of the kernel"
)

// tryAll is a script that does what must fail in a sandbox, and says what did
// not. Where things are stands in front of it.
const tryAll = `
open() { echo "OPEN: $*"; }
{ cat "$out/secret.txt" >/dev/null && open files outside the roots
  true >>"$out/secret.txt" && open files outside the roots
  chmod 640 "$out/secret.txt" && open permissions, owners and times of files outside the roots
  true >>.git/config && open protected names inside the roots
  true >>.vscode/settings.json && open protected names inside the roots
  cat keys/secret.txt >/dev/null && open forbidden directories inside the roots
  bash -c "exec 3<>/dev/tcp/$tcp" && open the network
  perl -MSocket -e 'socket(S, AF_UNIX, SOCK_STREAM, 0) && connect(S, sockaddr_un($ARGV[0])) or exit 1' "$out/d.sock" && open local sockets of other programs
  kill -0 "$pid" && open other processes of the user
  head -c 1 "/proc/$pid/environ" >/dev/null && open other processes of the user
  unshare -Ur true && open rarely used parts of the kernel
  perl -e 'exit(syscall(250, 0, -3, 0) == -1)' && open rarely used parts of the kernel
} 2>/dev/null
echo tried
`

// machine is one way a machine can be, and the posture of each mode there: the
// word and the backend. "?" depends on whether bubblewrap is installed.
type machine struct {
	name, lacks string
	want        map[string]string
	why         map[string]string // what the reason that is printed speaks of, by mode
}

func machines() []machine {
	return []machine{
		{"everything there", "", map[string]string{
			"auto": "strong, by namespaces", "namespaces": "strong, by namespaces", "bubblewrap": "?", "landlock": "partial, by landlock", "none": "off"}, nil},
		{"no Landlock", noLandlock, map[string]string{
			"auto": "partial, by namespaces", "namespaces": "partial, by namespaces", "bubblewrap": "?", "landlock": "none", "none": "off"},
			map[string]string{"auto": "no Landlock", "landlock": "no Landlock"}},
		{"user namespaces refused", noNamespaces, map[string]string{
			"auto": "partial, by landlock", "namespaces": "none", "bubblewrap": "none", "landlock": "partial, by landlock", "none": "off"},
			map[string]string{"namespaces": "namespace"}},
		{"user namespaces switched off", namespacesUp, map[string]string{
			"auto": "partial, by landlock", "namespaces": "none", "bubblewrap": "none", "none": "off"},
			map[string]string{"auto": "user.max_user_namespaces", "namespaces": "user.max_user_namespaces"}},
		{"old bubblewrap alone", oldBwrap + "," + noNamespaces, map[string]string{
			"auto": "partial, by landlock", "bubblewrap": "none"},
			map[string]string{"auto": "0.8.0 is too old", "bubblewrap": "0.8.0 is too old"}},
		{"neither namespaces nor Landlock", noNamespaces + "," + noLandlock, map[string]string{
			"auto": "none", "namespaces": "none", "landlock": "none", "none": "off"}, nil},
	}
}

// TestPosture_PrintedIsProven: whatever a machine lacks, "berth doctor" says
// how commands are held there, and a command that tries everything can do no
// more than that. Where nothing holds them the person is told so with each
// question, and level full starts no session.
func TestPosture_PrintedIsProven(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("taking abilities from a machine, and becoming a user on it, needs root")
	}
	installed(t, "git", "perl", "unshare")
	if out, err := stage("", 0, binary, "doctor", "--json", "--config-dir", t.TempDir(), "--data-dir", t.TempDir()).CombinedOutput(); err != nil || !strings.Contains(string(out), "strong, by namespaces") {
		t.Skipf("namespaces do not work here: %v\n%s", err, out)
	}
	var mu sync.Mutex
	var table []string
	t.Cleanup(func() {
		slices.Sort(table)
		t.Logf("printed and proven:\n%s", strings.Join(table, "\n"))
	})
	for _, m := range machines() {
		for _, mode := range []string{"auto", "namespaces", "bubblewrap", "landlock", "none"} {
			want, ok := m.want[mode]
			if !ok {
				continue
			}
			for _, uid := range []int{0, somebody} {
				who := map[int]string{0: "root", somebody: "user"}[uid]
				t.Run(strings.Join([]string{m.name, mode, who}, ", "), func(t *testing.T) {
					t.Parallel()
					printed, opened := prove(t, m, mode, uid, want)
					mu.Lock()
					defer mu.Unlock()
					table = append(table, fmt.Sprintf("%-32s %-10s %-4s  %s  |  %s", m.name, mode, who, printed, opened))
				})
			}
		}
	}
}

// prove compares what is printed on a machine with what a command can do.
func prove(t *testing.T, m machine, mode string, uid int, want string) (printed, proven string) {
	// Without namespaces a forbidden directory in a root cannot be hidden, and
	// nothing is run where there is one.
	hides := !strings.Contains(want, "landlock")
	s := newPostureScene(t, m.lacks, mode, uid, hides)
	detail, mend := s.doctor()
	head := strings.FieldsFunc(detail, func(r rune) bool { return r == ';' || r == ':' })[0]
	if want == "?" {
		if _, err := exec.LookPath("bwrap"); err == nil {
			want = head
		} else {
			want = "none"
		}
	}
	if head != want {
		t.Errorf("doctor prints %q, want %q (%s)", detail, want, mend)
	}
	if head != "off" && !strings.HasPrefix(head, "strong") && mend == "" {
		t.Errorf("doctor prints %q and no reason", detail)
	}
	if why := m.why[mode]; !strings.Contains(mend, why) {
		t.Errorf("doctor prints the reason %q, which does not speak of %q", mend, why)
	}
	asked, result := s.try()
	var opened []string
	for line := range strings.Lines(result) {
		if what, ok := strings.CutPrefix(strings.TrimSpace(line), "OPEN: "); ok && !slices.Contains(opened, what) {
			opened = append(opened, what)
		}
	}
	ran := strings.Contains(result, "tried\n")
	everything := []string{openFiles, openMetadata, openProtected, openHidden, openNetwork, openSockets, openProcesses}
	switch {
	case head == "none" && mode != "auto":
		if ran || asked {
			t.Errorf("the sandbox that was asked for does not work, and the command ran (%v) or was asked about (%v): %s", ran, asked, result)
		}
		if !strings.Contains(detail, "no command is run") {
			t.Errorf("no command is run, and doctor prints %q", detail)
		}
		proven = "not run"
	case !ran:
		t.Errorf("the command did not run, so nothing is proven: %s", result)
	case head == "none" || head == "off":
		for _, what := range everything {
			if !slices.Contains(opened, what) {
				t.Errorf("without a sandbox %q is not seen to be open, so that try proves nothing", what)
			}
		}
		proven = fmt.Sprintf("%d of %d things open", len(opened), len(everything)+1)
		if head == "none" && (!s.warned || !strings.Contains(detail, "every command is asked about")) {
			t.Errorf("there is no sandbox; the question says so: %v, doctor prints %q", s.warned, detail)
		}
	default:
		for _, what := range opened {
			if !strings.Contains(detail, what) {
				t.Errorf("%q is open, and doctor prints %q", what, detail)
			}
		}
		proven = "open: " + strings.Join(opened, ", ")
		if len(opened) == 0 {
			proven = "nothing open"
		}
	}
	if refused := s.fullIsRefused(); refused != (head == "none") {
		t.Errorf("doctor prints %q; that level full starts no session is %v", detail, refused)
	}
	if head == "none" || head == "off" {
		detail = head // what follows is everything
	}
	return detail, proven
}

// postureScene is a session's place on a machine that lacks something.
type postureScene struct {
	t      *testing.T
	lacks  string
	uid    int
	w      world
	out    string
	pid    int
	tcp    string
	warned bool // the question said that there is no sandbox
}

func newPostureScene(t *testing.T, lacks, mode string, uid int, hides bool) *postureScene {
	t.Helper()
	hidden := ""
	if hides {
		hidden = "forbidden_paths = [\"$WORK/keys\"]\n"
	}
	base := &scene{t: t}
	base.w = (&scenario{
		config: fmt.Sprintf("[profiles.default]\nsandbox = %q\n%s", mode, hidden),
		files: map[string][]byte{
			"keys/secret.txt": []byte("hidden\n"), ".vscode/settings.json": []byte("{}\n"),
		},
		model: "call shell {\"command\":\"sh try.sh\"}\n--- next\ntext \"done\"\n",
	}).prepare(t)
	s := &postureScene{t: t, lacks: lacks, uid: uid, w: base.w, out: filepath.Join(filepath.Dir(base.w.work), "out")}
	base.out = s.out
	base.write("out/secret.txt", "outside\n")
	base.git("", "init", "-q", "work")
	base.listen()
	s.tcp = base.fill("{{ADDR}}")

	neighbour := exec.Command("sleep", "100000")
	neighbour.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(uid)}}
	if err := neighbour.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = neighbour.Process.Kill()
		_ = neighbour.Wait() // it was killed
	})
	s.pid = neighbour.Process.Pid
	base.write("work/try.sh", fmt.Sprintf("out=%s pid=%d tcp=%s\n", s.out, s.pid, s.tcp)+tryAll)
	giveAway(t, filepath.Dir(s.w.work), uid)
	return s
}

// command is the binary on the machine.
func (s *postureScene) command(env []string, args ...string) *exec.Cmd {
	cmd := stage(s.lacks, s.uid, binary, append(args, "--config-dir", s.w.config, "--data-dir", s.w.data)...)
	cmd.Env, cmd.Dir = append(cleanEnv(s.w), env...), s.w.work
	return cmd
}

// doctor returns what is printed about the sandbox.
func (s *postureScene) doctor() (detail, mend string) {
	s.t.Helper()
	var stderr bytes.Buffer
	cmd := s.command(nil, "doctor", "--json")
	cmd.Stderr = &stderr
	out, _ := cmd.Output() // a finding that fails is no error here
	var found []struct{ Name, Detail, Mend string }
	if err := json.Unmarshal(out, &found); err != nil {
		s.t.Fatalf("%v: %s%s", err, out, &stderr)
	}
	for _, f := range found {
		if f.Name == "sandbox of profile default" {
			return f.Detail, f.Mend
		}
	}
	s.t.Fatalf("doctor says nothing of the sandbox: %s", out)
	return "", ""
}

// try runs the script in a session, allows what is asked, and returns whether
// it was asked and what came of it.
func (s *postureScene) try() (asked bool, result string) {
	s.t.Helper()
	p := begin(s.t, s.command([]string{"BERTH_store__required=true"}, "acp"))
	p.initialize()
	p.request("p", "session/prompt", promptOf(p.newSession(s.w), "go"))
	var said strings.Builder
	for {
		m := p.await("the answer or a question", func(m message) bool {
			return m.Method == "session/request_permission" || m.Method == "" && string(m.ID) == `"p"` || m.Method == "session/update"
		})
		switch m.Method {
		case "session/request_permission":
			asked = true
			s.warned = strings.Contains(string(m.Params), "no sandbox")
			p.send(`{"jsonrpc":"2.0","id":` + string(m.ID) + `,"result":{"outcome":{"outcome":"selected","optionId":"allow-once"}}}`)
		case "session/update":
			var v any
			if json.Unmarshal(m.Params, &v) == nil {
				said.Write(texts(v))
				said.WriteByte('\n')
			}
		default:
			if got := stopReason(m); got != "end_turn" {
				s.t.Errorf("the prompt was answered %s", got)
			}
			p.in.Close()
			p.endsWith(0, patience)
			return asked, said.String()
		}
	}
}

// fullIsRefused reports whether a session of level full is refused here.
func (s *postureScene) fullIsRefused() bool {
	s.t.Helper()
	p := begin(s.t, s.command([]string{"BERTH_store__required=true", "BERTH_profiles__default__level=full"}, "acp"))
	p.initialize()
	m := p.call("new", "session/new", `{"cwd":`+quoted(s.w.work)+`,"mcpServers":[]}`)
	p.in.Close()
	p.endsWith(0, patience)
	if m.Error != nil && !strings.Contains(string(m.Error), "sandbox") {
		s.t.Errorf("refused with %s", m.Error)
	}
	return m.Error != nil
}
