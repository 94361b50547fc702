//go:build unix

package exec

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/berth-dev/berth/adapters/exec/sandbox"
	"github.com/berth-dev/berth/core/domain"
	"github.com/berth-dev/berth/core/ports"
)

// TestMain lets the test binary be the helper that holds commands.
func TestMain(m *testing.M) {
	if code, mine := Supervise(os.Args); mine {
		os.Exit(code)
	}
	if sandbox.IsHelper(os.Args) {
		sandbox.Main()
	}
	// Most of these tests wait for processes, not for the processor.
	flag.Parse()
	if flag.Lookup("test.parallel").Value.String() == strconv.Itoa(runtime.GOMAXPROCS(0)) {
		_ = flag.Set("test.parallel", "12")
	}
	os.Exit(m.Run())
}

// rig is a session over a small tree: ws is the working directory, agent the
// workspace, out lies outside.
type rig struct {
	t       testing.TB
	base    string
	conf    Config
	profile Profile
	session domain.Session
	set     ports.Toolset
	tools   map[string]ports.Tool
	// analysis is what the analyser says about every line.
	analysis Analysis
	posture  domain.Posture
}

func newRig(t testing.TB) *rig {
	t.Helper()
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{t: t, base: base, posture: domain.Posture{Word: domain.PostureOff}}
	for _, dir := range []string{"ws/sub", "agent", "out"} {
		if err := os.MkdirAll(r.at(dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	r.profile = Profile{Level: domain.LevelSupervised, ShellEnv: DefaultShellEnv()}
	r.analysis = Analysis{Access: domain.Access{Class: domain.AccessRun, Commands: []domain.SimpleCommand{{Words: []string{"test"}, Class: domain.AccessRun, Exact: true}}}}
	r.session = domain.Session{ID: "s1", Agent: "default", Cwd: r.at("ws"), Workspace: r.at("agent")}
	var mu sync.Mutex
	n := 0
	r.conf = Config{
		Shell: FindShell(), Environ: os.Environ(), SystemPath: SystemPath(),
		Profile: func(string) Profile { return r.profile },
		Analyze: func(_ context.Context, _ domain.Session, _, _ string, _ bool) Analysis { return r.analysis },
		Judge:   r.judge, Roots: func(s domain.Session) []string { return s.Roots() },
		Confiner: &posed{r, Plain{Helper: SelfHelper()}}, Clock: time.Now, join: time.Minute, // only what hangs takes so long
		IDs: func() string {
			mu.Lock()
			defer mu.Unlock()
			n++
			return fmt.Sprintf("%08d", n)
		},
	}
	return r
}

// boxes keeps one sandbox for each mode: trying one out takes a while.
var (
	boxesMu sync.Mutex
	boxes   = map[string]*sandbox.Sandbox{}
)

// boxed makes the commands of the rig run in a sandbox.
func (r *rig) boxed(mode string) *rig {
	r.t.Helper()
	boxesMu.Lock()
	box := boxes[mode]
	if box == nil {
		box = sandbox.New(sandbox.Config{Mode: mode, Home: "/nonexistent/home", Path: os.Getenv("PATH"), Protected: []string{".git/hooks/"}})
		boxes[mode] = box
	}
	boxesMu.Unlock()
	if p := box.Posture(context.Background()); !p.Confined() {
		r.t.Skipf("no sandbox %s here: %s", mode, p.Reason)
	}
	r.conf.Confiner = Sandboxed{Of: func(string) *sandbox.Sandbox { return box }, Otherwise: Plain{Helper: SelfHelper()}}
	return r
}

// posed is a confiner that confines nothing and says what the rig wants.
type posed struct {
	r *rig
	Confiner
}

func (p *posed) Posture(context.Context, string) domain.Posture { return p.r.posture }

// judge is the path rules: ws and agent are inside, below out is outside,
// anything named forbidden is.
func (r *rig) judge(_ context.Context, s domain.Session, dir, name string) domain.Place {
	if dir == "" {
		dir = s.Cwd
	}
	if !filepath.IsAbs(name) {
		name = filepath.Join(dir, name)
	}
	p := domain.Place{Path: filepath.Clean(name), Where: domain.WhereOutside}
	if real, err := filepath.EvalSymlinks(p.Path); err == nil {
		p.Path, p.Exists = real, true
		info, err := os.Stat(real)
		p.Dir = err == nil && info.IsDir()
	}
	for _, root := range s.Roots() {
		if within(p.Path, root) {
			p.Where = domain.WhereInside
		}
	}
	p.Protected = filepath.Base(p.Path) == "config"
	if filepath.Base(p.Path) == "forbidden" {
		p.Where, p.Why = domain.WhereForbidden, "it is forbidden"
	}
	return p
}

func (r *rig) at(path string) string { return filepath.Join(r.base, filepath.FromSlash(path)) }

func (r *rig) write(path, text string) {
	r.t.Helper()
	if err := os.WriteFile(r.at(path), []byte(text), 0o755); err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) open() *rig {
	r.t.Helper()
	set, err := NewSource(r.conf).Open(r.t.Context(), r.session, nil)
	if err != nil {
		r.t.Fatal(err)
	}
	r.set, r.tools = set, map[string]ports.Tool{}
	for _, tool := range set.Tools() {
		r.tools[tool.Spec().Name] = tool
	}
	r.t.Cleanup(func() {
		if err := set.Close(); err != nil {
			r.t.Errorf("Close: %v", err)
		}
	})
	return r
}

func (r *rig) call(tool string, args any) domain.ToolCall {
	r.t.Helper()
	raw, err := json.Marshal(args)
	if err != nil {
		r.t.Fatal(err)
	}
	return domain.ToolCall{Session: r.session.ID, Turn: "t", ID: "c", Name: tool, Args: raw}
}

type args map[string]any

func (r *rig) prepare(tool string, a args) ports.Prepared {
	r.t.Helper()
	p, err := r.tools[tool].Prepare(context.Background(), r.call(tool, a))
	if err != nil {
		r.t.Fatalf("Prepare %v: %v", a, err)
	}
	return p
}

// run runs a call to its end.
func (r *rig) run(tool string, a args) domain.ToolResult {
	r.t.Helper()
	return r.runCtx(context.Background(), tool, a, func(domain.ToolProgress) {})
}

func (r *rig) runCtx(ctx context.Context, tool string, a args, report func(domain.ToolProgress)) domain.ToolResult {
	r.t.Helper()
	p := r.prepare(tool, a)
	defer func() {
		if err := p.Close(); err != nil {
			r.t.Errorf("Close: %v", err)
		}
	}()
	res, err := p.Run(ctx, report)
	if err != nil {
		r.t.Fatalf("Run %v: %v", a, err)
	}
	return res
}

func (r *rig) shell(line string) domain.ToolResult {
	r.t.Helper()
	return r.run("shell", args{"command": line})
}

// raw is the numbers of a result.
func (r *rig) raw(res domain.ToolResult) facts {
	r.t.Helper()
	var f facts
	if err := json.Unmarshal(res.RawOutput, &f); err != nil {
		r.t.Fatalf("raw output %s: %v", res.RawOutput, err)
	}
	return f
}

// out is the output of a result without its status line.
func out(res domain.ToolResult) string { return body(res.Text) }

func statusOf(res domain.ToolResult) string {
	first, _, _ := strings.Cut(res.Text, "\n")
	return first
}

// eventually waits until something is so.
func (r *rig) eventually(what string, ok func() bool) {
	r.t.Helper()
	for deadline := time.Now().Add(time.Minute); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			r.t.Fatalf("never: %s", what)
		}
	}
}
