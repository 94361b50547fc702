package fs

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/berth-dev/berth/core/domain"
	"github.com/berth-dev/berth/core/ports"
)

// rig is a session over a small tree: ws (the working directory), agent (the
// agent workspace), out and ws-evil (outside), home, data and conf (ours).
type rig struct {
	t       testing.TB
	base    string
	conf    Config
	pol     Policy
	policy  domain.Policy // what Decide gets
	session domain.Session
	disk    *Disk
	client  ports.Client
	tools   map[string]ports.Tool
	set     ports.Toolset
}

// newRig makes the tree of the path fixture. The base is short, because a
// socket's path may not be long.
func newRig(t testing.TB) *rig {
	t.Helper()
	base, err := os.MkdirTemp("", "b")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(base) })
	base = canonical(base)
	r := &rig{t: t, base: base}
	r.write("ws/a.txt", "A")
	r.write("ws/src/main.go", "M")
	r.write("ws/private/p.txt", "SECRET")
	r.write("ws-evil/a.txt", "EVIL-A")
	r.write("ws-evil/secret.txt", "SECRET")
	r.write("out/secret.txt", "SECRET")
	r.write("a.txt", "BASE-A")
	r.write("agent/notes.md", "N")
	r.write("data/sessions/acp-sessions.db", "SECRET")
	r.write("conf/config.toml", "SECRET")
	r.write("home/.ssh/id_rsa", "SECRET")
	r.conf = Config{
		ConfigDir: r.at("conf"), DataDir: r.at("data"), ProcessDir: r.at("out"), Home: r.at("home"),
		PolicyFor: func(string) Policy { return r.pol },
	}
	r.pol = Policy{Level: domain.LevelSupervised, Forbidden: []string{r.at("ws/private")}}
	r.policy = domain.Policy{Level: domain.LevelSupervised, AutoApprove: []domain.ToolRule{{Tool: "write_file"}, {Tool: "edit_file"}, {Tool: "move_file"}, {Tool: "delete_file"}}}
	r.session = domain.Session{ID: "s1", Agent: "default", Cwd: r.at("ws"), CwdGiven: r.at("ws"), Workspace: r.at("agent")}
	return r
}

// open opens the session's tools.
func (r *rig) open() *rig {
	r.t.Helper()
	if r.disk == nil {
		r.disk = New(r.conf)
	}
	set, err := NewSource(r.disk).Open(context.Background(), r.session, r.client)
	if err != nil {
		r.t.Fatal(err)
	}
	r.set = set
	r.tools = map[string]ports.Tool{}
	for _, tool := range set.Tools() {
		r.tools[tool.Spec().Name] = tool
	}
	r.t.Cleanup(func() {
		_ = set.Close()
		if n := len(r.disk.handles); n != 0 {
			r.t.Errorf("%d directories stayed open", n)
		}
	})
	return r
}

func (r *rig) at(name string) string { return filepath.Join(r.base, filepath.FromSlash(name)) }

func (r *rig) write(name, text string) {
	r.t.Helper()
	path := r.at(name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		r.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) read(name string) string {
	r.t.Helper()
	raw, err := os.ReadFile(r.at(name))
	if err != nil {
		r.t.Fatal(err)
	}
	return string(raw)
}

func (r *rig) symlink(name, to string) {
	r.t.Helper()
	if err := os.MkdirAll(filepath.Dir(r.at(name)), 0o755); err != nil {
		r.t.Fatal(err)
	}
	if err := os.Symlink(to, r.at(name)); err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) absent(name string) {
	r.t.Helper()
	if _, err := os.Lstat(r.at(name)); err == nil {
		r.t.Errorf("%s exists", name)
	}
}

func (r *rig) names(dir string) []string {
	r.t.Helper()
	list, err := os.ReadDir(r.at(dir))
	if err != nil {
		r.t.Fatal(err)
	}
	var names []string
	for _, e := range list {
		names = append(names, e.Name())
	}
	return names
}

// args makes a call's arguments of names and values.
func args(pairs ...any) []byte {
	m := map[string]any{}
	for i := 0; i < len(pairs); i += 2 {
		m[pairs[i].(string)] = pairs[i+1]
	}
	raw, err := json.Marshal(m)
	if err != nil {
		panic(err)
	}
	return raw
}

// prepare prepares a call and closes it when the test ends.
func (r *rig) prepare(tool string, raw []byte) (ports.Prepared, error) {
	r.t.Helper()
	p, err := r.tools[tool].Prepare(context.Background(), domain.ToolCall{Session: r.session.ID, Name: tool, Args: raw})
	if err == nil {
		r.t.Cleanup(func() { _ = p.Close() })
	}
	return p, err
}

// answer is what became of a call.
type answer struct {
	verdict string // allow, ask, deny, not_found, error
	text    string
	plan    domain.ToolPlan
	result  domain.ToolResult
}

// call takes a call through permission and runs it when it is allowed.
func (r *rig) call(tool string, pairs ...any) answer {
	r.t.Helper()
	return r.callWith(tool, func(ports.Prepared) {}, pairs...)
}

// callWith does so and shows the prepared call before.
func (r *rig) callWith(tool string, see func(ports.Prepared), pairs ...any) answer {
	r.t.Helper()
	p, err := r.tools[tool].Prepare(context.Background(), domain.ToolCall{Session: r.session.ID, Name: tool, Args: args(pairs...)})
	if err != nil {
		a := answer{text: err.Error()}
		switch domain.CodeOf(err) {
		case domain.NotFound:
			a.verdict = "not_found"
		case domain.Denied, domain.TooLarge:
			a.verdict = "deny"
		case domain.InvalidArgument:
			a.verdict = "error"
		default:
			r.t.Fatalf("%s %s: uncoded error: %v", tool, args(pairs...), err)
		}
		return a
	}
	defer func() {
		if err := p.Close(); err != nil {
			r.t.Error(err)
		}
	}()
	see(p)
	a := answer{plan: p.Plan()}
	ruling := domain.Decide(r.policy, nil, a.plan.Access)
	switch ruling.Verdict {
	case domain.Refuse:
		a.verdict, a.text = "deny", ruling.Reason
		return a
	case domain.Ask:
		a.verdict = "ask"
		return a
	}
	if a.result, err = p.Run(context.Background(), nil); err != nil {
		r.t.Fatal(err)
	}
	a.text = a.result.Text
	if a.verdict = "allow"; a.result.Failed {
		a.verdict = "deny"
	}
	return a
}

// want fails unless the verdict is one of those.
func (a answer) want(t testing.TB, verdicts ...string) answer {
	t.Helper()
	for _, v := range verdicts {
		if a.verdict == v {
			return a
		}
	}
	t.Errorf("verdict %s (%s), want %s", a.verdict, a.text, strings.Join(verdicts, " or "))
	return a
}

// holds fails unless the text has all the parts.
func (a answer) holds(t testing.TB, parts ...string) answer {
	t.Helper()
	for _, p := range parts {
		if !strings.Contains(a.text, p) {
			t.Errorf("the answer does not say %q:\n%s", p, a.text)
		}
	}
	return a
}

// diff returns the one diff of a list.
func diffIn(t testing.TB, list []domain.CallContent) domain.Diff {
	t.Helper()
	if len(list) == 1 {
		if d, ok := list[0].(domain.Diff); ok {
			return d
		}
	}
	t.Fatalf("no diff in %#v", list)
	return domain.Diff{}
}

// editorClient is a client with buffers, as an editor has them. It passes the
// suite of ports.Files.
type editorClient struct {
	info domain.ClientInfo

	mu      sync.Mutex
	buffers map[string]string
	asked   []string // "read path", "write path"
	onRead  func(path string) error
	onWrite func(path string) error
	hang    bool
}

func newEditor() *editorClient {
	return &editorClient{info: domain.ClientInfo{ReadFiles: true, WriteFiles: true}, buffers: map[string]string{}}
}

func (e *editorClient) Send(context.Context, domain.SessionID, domain.Update) error { return nil }

func (e *editorClient) Ask(context.Context, domain.PermissionRequest) (domain.Decision, error) {
	return domain.Decision{}, nil
}

func (e *editorClient) Info() domain.ClientInfo { return e.info }

func (e *editorClient) Files() (ports.Files, bool) { return e, e.info.ReadFiles || e.info.WriteFiles }

func (e *editorClient) ReadText(ctx context.Context, _ domain.SessionID, path string) (string, error) {
	if e.hang {
		<-ctx.Done()
	}
	if ctx.Err() != nil {
		return "", context.Cause(ctx)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.asked = append(e.asked, "read "+path)
	if e.onRead != nil {
		if err := e.onRead(path); err != nil {
			return "", err
		}
	}
	text, ok := e.buffers[path]
	if !ok {
		return "", domain.Errorf(domain.NotFound, "no buffer %s", path)
	}
	return text, nil
}

func (e *editorClient) WriteText(ctx context.Context, _ domain.SessionID, path, text string) error {
	if e.hang {
		<-ctx.Done()
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.asked = append(e.asked, "write "+path)
	if e.onWrite != nil {
		if err := e.onWrite(path); err != nil {
			return err
		}
	}
	e.buffers[path] = text
	return nil
}

// tree lists everything below a directory, by relative path.
func tree(t testing.TB, base string) []string {
	t.Helper()
	var all []string
	err := filepath.WalkDir(base, func(p string, _ os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(base, p)
		all = append(all, filepath.ToSlash(rel))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}
