package porttest

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"github.com/berth-dev/berth/core/domain"
	"github.com/berth-dev/berth/core/ports"
)

// mutant is one fault and the case that must notice it.
type mutant struct {
	fault, kills string
	run          func(TB)
}

// killed runs a suite over its mutants and demands that each is noticed, and
// that each case notices at least one.
func killed(t *testing.T, cases []string, mutants []mutant) {
	t.Helper()
	for _, m := range mutants {
		t.Run(m.fault, func(t *testing.T) {
			failures := Record(t, m.run)
			if !slices.ContainsFunc(failures, func(f string) bool { return strings.Contains(f, m.kills+":") }) {
				t.Errorf("%s does not notice; failed: %q", m.kills, failures)
			}
		})
	}
	for _, c := range cases {
		if !slices.ContainsFunc(mutants, func(m mutant) bool { return m.kills == c }) {
			t.Errorf("no fault is known that %s notices", c)
		}
	}
}

func namesOf[H any](checks []check[H]) []string {
	var names []string
	for _, c := range checks {
		names = append(names, c.name)
	}
	return names
}

// noteTool is a small tool: it keeps a note in memory. Fields switch faults on.
type noteTool struct {
	mu      sync.Mutex
	note    string
	looks   int
	reading bool
	started chan struct{}
	fault   string
}

func (n *noteTool) Spec() domain.ToolSpec {
	s := domain.ToolSpec{
		Name: "set_note", Description: "Puts a text where it can be read again.", Kind: domain.KindEdit,
		Schema: []byte(`{"type":"object","properties":{"text":{"type":"string"}},"required":["text"],"additionalProperties":false}`),
	}
	if n.reading {
		s.Name, s.ReadOnly, s.Kind = "get_note", true, domain.KindRead
	}
	switch n.fault {
	case "bad name":
		s.Name = "Set Note"
	case "no schema":
		s.Schema = []byte(`{}`)
	case "changing spec":
		n.looks++
		s.Description += strings.Repeat("!", n.looks)
	}
	return s
}

func (n *noteTool) Prepare(_ context.Context, call domain.ToolCall) (ports.Prepared, error) {
	var args map[string]any
	if err := json.Unmarshal(call.Args, &args); err != nil || args == nil {
		if n.fault == "uncoded" {
			return nil, errors.New("no")
		}
		return nil, domain.Errorf(domain.InvalidArgument, "the arguments are not one JSON object")
	}
	text, ok := args["text"].(string)
	delete(args, "text")
	if len(args) > 0 && n.fault != "lenient" {
		return nil, domain.Errorf(domain.InvalidArgument, "unknown arguments %v", slices.Collect(maps.Keys(args)))
	}
	if !ok && n.fault != "lenient" {
		return nil, domain.Errorf(domain.InvalidArgument, "the argument text must be a string")
	}
	if n.fault == "early" {
		n.set(text)
	}
	p := &noted{n: n, text: text}
	return p, nil
}

func (n *noteTool) set(text string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.note += text
}

func (n *noteTool) state() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.note
}

type noted struct {
	n    *noteTool
	text string
	mu   sync.Mutex
	ran  bool
}

func (p *noted) Plan() domain.ToolPlan {
	plan := domain.ToolPlan{
		Title: "Note " + p.text, Kind: domain.KindEdit, Locations: []domain.Location{{Path: "/note", Line: 1}},
		Content: []domain.CallContent{domain.Diff{Path: "/note", OldText: "a", NewText: "b"}},
		Access:  domain.Access{Class: domain.AccessEdit, Tool: "set_note", Scope: "/", Paths: []string{"/note"}},
	}
	if p.n.reading {
		plan.Kind, plan.Content = domain.KindRead, nil
		plan.Access = domain.Access{Class: domain.AccessRead, Tool: "get_note", Paths: []string{"/note"}}
	}
	switch p.n.fault {
	case "relative path":
		plan.Locations[0].Path = "note"
	case "no tool in access":
		plan.Access.Tool = ""
	case "moving plan":
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.ran {
			plan.Title += " (done)"
		}
	}
	return plan
}

func (p *noted) Run(ctx context.Context, _ func(domain.ToolProgress)) (domain.ToolResult, error) {
	if p.text == "stuck" {
		close(p.n.started)
		if p.n.fault == "deaf" {
			ctx = context.WithoutCancel(ctx)
			return domain.ToolResult{Text: "done"}, nil
		}
		<-ctx.Done()
		return domain.ToolResult{}, context.Cause(ctx)
	}
	if ctx.Err() != nil && p.n.fault != "after cancel" {
		return domain.ToolResult{}, context.Cause(ctx)
	}
	p.mu.Lock()
	again := p.ran
	p.ran = true
	p.mu.Unlock()
	if again && p.n.fault != "twice" {
		return domain.ToolResult{}, errors.New("ran already")
	}
	if !p.n.reading || p.n.fault == "reader writes" {
		p.n.set(p.text)
	}
	if p.n.fault == "silent" {
		return domain.ToolResult{}, nil
	}
	return domain.ToolResult{Text: "noted"}, nil
}

func (p *noted) Close() error { return nil }

func noteHarness(fault string, reading bool) ToolHarness {
	return ToolHarness{Open: func(TB) ToolFixture {
		n := &noteTool{fault: fault, reading: reading, started: make(chan struct{})}
		call := domain.ToolCall{Session: "s", Name: n.Spec().Name, Args: []byte(`{"text":"x"}`)}
		stuck := call
		stuck.Args = []byte(`{"text":"stuck"}`)
		return ToolFixture{
			Tool: n, Call: call, State: n.state, Stuck: &stuck, Started: n.started,
			Wrong: map[string]string{"a number": `{"text":1}`},
		}
	}}
}

func TestToolMutants(t *testing.T) {
	for _, reading := range []bool{false, true} {
		if failures := Record(t, func(tb TB) { Tool(tb, noteHarness("", reading)) }); len(failures) > 0 {
			t.Errorf("the reference fails: %q", failures)
		}
	}
	with := func(fault string, reading bool) func(TB) {
		return func(tb TB) { Tool(tb, noteHarness(fault, reading)) }
	}
	killed(t, namesOf(toolChecks()), []mutant{
		{"a name with a space", "tool-spec", with("bad name", false)},
		{"an empty schema", "tool-spec", with("no schema", false)},
		{"a spec that changes", "tool-spec-stable", with("changing spec", false)},
		{"a relative location", "tool-plan", with("relative path", false)},
		{"access that names no tool", "tool-plan", with("no tool in access", false)},
		{"a plan that follows the run", "tool-plan-stable", with("moving plan", false)},
		{"an effect while preparing", "tool-prepare-harmless", with("early", false)},
		{"no answer", "tool-run", with("silent", false)},
		{"runs twice", "tool-run-once", with("twice", false)},
		{"a read-only tool that writes", "tool-read-only", with("reader writes", true)},
		{"runs after a cancel", "tool-run-cancelled", with("after cancel", false)},
		{"does not hear the cancel", "tool-run-stuck", with("deaf", false)},
		{"swallows what it does not know", "tool-wrong-args", with("lenient", false)},
		{"an error without a code", "tool-wrong-args", with("uncoded", false)},
	})
}

// buffers is a client's buffers in memory. fault switches one thing.
type buffers struct {
	mu      sync.Mutex
	texts   map[string]string
	last    string
	refuses bool
	hangs   bool
	fault   string
}

func (b *buffers) ReadText(ctx context.Context, _ domain.SessionID, path string) (string, error) {
	if b.hangs && b.fault == "deaf" {
		return "", nil
	}
	if b.hangs {
		<-ctx.Done()
		if b.fault == "hides the cause" {
			return "", ctx.Err()
		}
		return "", context.Cause(ctx)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	text, ok := b.texts[path]
	switch {
	case !ok && b.fault == "missing is empty":
		return "", nil
	case !ok:
		return "", domain.Errorf(domain.NotFound, "no %s", path)
	case b.fault == "LF only":
		return strings.ReplaceAll(text, "\r\n", "\n"), nil
	case b.fault == "mixed up":
		return b.texts[b.last], nil
	}
	return text, nil
}

func (b *buffers) WriteText(ctx context.Context, _ domain.SessionID, path, text string) error {
	if b.hangs {
		<-ctx.Done()
		return context.Cause(ctx)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.refuses {
		switch b.fault {
		case "success anyway":
			return nil
		case "uncoded":
			return errors.New("no")
		}
		return domain.Errorf(domain.Unavailable, "the client says no")
	}
	if _, had := b.texts[path]; !had && b.fault == "only what exists" {
		return domain.Errorf(domain.NotFound, "no %s", path)
	}
	if b.fault == "ends every file" && !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	b.texts[path], b.last = text, path
	return nil
}

func TestFilesMutants(t *testing.T) {
	with := func(fault string) func(TB) {
		return func(tb TB) {
			Files(tb, FilesHarness{Open: func(TB) FilesFixture {
				b := &buffers{texts: map[string]string{}, fault: fault}
				return FilesFixture{
					Files: b, Session: "s", Path: func(name string) string { return "/p/" + name },
					Put: func(p, text string) { b.texts[p], b.last = text, p },
					Got: func(p string) (string, bool) {
						text, ok := b.texts[p]
						return text, ok
					},
					Refuse: func() { b.refuses = true }, Hang: func() { b.hangs = true },
				}
			}})
		}
	}
	if failures := Record(t, with("")); len(failures) > 0 {
		t.Errorf("the reference fails: %q", failures)
	}
	killed(t, namesOf(filesChecks()), []mutant{
		{"line ends are unified", "files-read", with("LF only")},
		{"a missing file is empty", "files-read-missing", with("missing is empty")},
		{"a line end is added", "files-write", with("ends every file")},
		{"only existing files", "files-write-new", with("only what exists")},
		{"a refusal is success", "files-write-refused", with("success anyway")},
		{"a refusal has no code", "files-write-refused", with("uncoded")},
		{"answers are mixed up", "files-several", with("mixed up")},
		{"hides the cause", "files-cancelled", with("hides the cause")},
		{"answers what it never got", "files-cancelled", with("deaf")},
	})
}

// treeRoots is Roots over a tree in memory: names to "dir", "file", or a
// link's target.
type treeRoots struct {
	t     map[string]string
	f     RootsFixture
	fault string
}

const treeDir, treeFile = "dir", "file"

func (r *treeRoots) real(p string) string {
	p = path.Clean(p)
	for dir := p; dir != "/" && dir != "."; dir = path.Dir(dir) {
		if to, ok := r.t[dir]; ok && to != treeDir && to != treeFile {
			return r.real(to + strings.TrimPrefix(p, dir))
		}
	}
	return p
}

func (r *treeRoots) Canonical(p string) string {
	if r.fault == "only existing" && r.t[r.real(p)] == "" {
		return ""
	}
	if r.fault == "keeps the spelling" {
		return p
	}
	return r.real(p)
}

func (r *treeRoots) check(what, p string) (string, error) {
	bad := func(why string) error { return domain.Errorf(domain.InvalidArgument, "%s %s %s", what, p, why) }
	if r.fault == "wrong code" {
		bad = func(why string) error { return domain.Errorf(domain.NotFound, "%s %s %s", what, p, why) }
	}
	real := r.real(p)
	switch {
	case !strings.HasPrefix(p, "/"):
		return "", bad("is relative")
	case len(p) > 8192, strings.Contains(p, "\x00"), !utf8.ValidString(p):
		return "", bad("is no path")
	case real == "/":
		return "", bad("is the top")
	case r.t[real] == "":
		return "", bad("does not exist")
	case r.t[real] == treeFile:
		return "", bad("is a file")
	}
	if r.fault == "nothing is forbidden" || below(real, r.f.Agent.Workspace) {
		return real, nil
	}
	for _, f := range []string{r.f.Forbidden, r.f.DataDir, r.f.ConfigDir} {
		if below(real, f) {
			return "", bad("is forbidden")
		}
	}
	return real, nil
}

func below(p, dir string) bool { return p == dir || strings.HasPrefix(p, dir+"/") }

func (r *treeRoots) Resolve(_ context.Context, a domain.Agent, d domain.Directories) (domain.Session, error) {
	s := domain.Session{Workspace: a.Workspace}
	if r.fault != "no workspace" {
		r.t[a.Workspace] = treeDir
	}
	if r.fault == "names an agent" {
		s.Agent = a.Alias
	}
	cwd := d.Cwd
	switch {
	case cwd == "." || (cwd == "" && d.Lenient) || (cwd != "" && path.IsAbs(cwd) && r.real(cwd) == r.f.ConfigDir):
		s.Cwd, s.CwdGiven = a.Workspace, a.Workspace
		if r.fault == "the process directory" {
			s.Cwd = r.f.ProcessDir
		}
	default:
		if d.Lenient && cwd != "" && !path.IsAbs(cwd) && !strings.Contains(cwd, ":") || r.fault == "always lenient" && cwd == "sub" {
			cwd = r.f.ProcessDir + "/" + cwd
		}
		real, err := r.check("cwd", cwd)
		if err != nil && r.fault == "falls back" {
			real, err = a.Workspace, nil
		}
		if err != nil {
			return s, err
		}
		s.Cwd, s.CwdGiven = real, path.Clean(cwd)
		if r.fault == "forgets the spelling" {
			s.CwdGiven = real
		}
		if r.fault == "lower case" {
			s.Cwd = strings.ToLower(real)
		}
		if r.fault == "escapes" {
			s.Cwd = strings.ReplaceAll(real, " ", "%20")
		}
	}
	for _, p := range d.Additional {
		real, err := r.check("additional directory", p)
		if err != nil && r.fault == "drops silently" {
			continue
		}
		if err != nil {
			return s, err
		}
		s.Additional = append(s.Additional, real)
	}
	return s, nil
}

func TestRootsMutants(t *testing.T) {
	with := func(fault string) func(TB) {
		return func(tb TB) {
			Roots(tb, RootsHarness{Open: func(TB) RootsFixture {
				r := &treeRoots{t: map[string]string{}, fault: fault}
				r.f = RootsFixture{
					Roots: r, Base: "/base", DataDir: "/base/data", ConfigDir: "/base/conf", ProcessDir: "/base/proc", Forbidden: "/base/ban",
					Agent:     domain.Agent{Alias: "default", Workspace: "/base/data/agents/default/workspace"},
					Mkdir:     func(p string) { r.t[p] = treeDir },
					Rmdir:     func(p string) { delete(r.t, p) },
					WriteFile: func(p string) { r.t[p] = treeFile },
					Link:      func(p, to string) { r.t[p] = to },
					Exists:    func(p string) bool { return r.t[p] != "" },
				}
				for _, p := range []string{"/base", "/base/data", "/base/conf", "/base/proc", "/base/ban"} {
					r.t[p] = treeDir
				}
				return r.f
			}})
		}
	}
	if failures := Record(t, with("")); len(failures) > 0 {
		t.Errorf("the reference fails: %q", failures)
	}
	killed(t, namesOf(rootsChecks()), []mutant{
		{"odd names are escaped", "roots-plain", with("escapes")},
		{"letter case is lost", "roots-spelling", with("lower case")},
		{"compares spellings", "roots-spelling", with("keeps the spelling")},
		{"forgets the spelling", "roots-link", with("forgets the spelling")},
		{"no workspace is made", "roots-workspace", with("no workspace")},
		{"a placeholder is the process directory", "roots-placeholder", with("the process directory")},
		{"always lenient", "roots-lenient", with("always lenient")},
		{"falls back to the workspace", "roots-refused", with("falls back")},
		{"the wrong code", "roots-refused", with("wrong code")},
		{"nothing is forbidden", "roots-forbidden", with("nothing is forbidden")},
		{"drops extra roots", "roots-additional", with("drops silently")},
		{"sets more than directories", "roots-only-directories", with("names an agent")},
		{"forgets what is gone", "roots-gone", with("only existing")},
	})
}

// blobMap is Blobs in memory.
type blobMap struct {
	files map[string][]byte
	fault string
}

const blobCwd = "/p"

func (b *blobMap) Store(ctx context.Context, _ domain.Session, blobs []domain.Resource) ([]domain.Attachment, error) {
	if ctx.Err() != nil && b.fault != "after cancel" {
		return nil, context.Cause(ctx)
	}
	if len(blobs) == 0 && b.fault == "marks nothing" {
		b.files[blobCwd+"/uploads/.empty"] = nil
	}
	total := 0
	for i, r := range blobs {
		total += len(r.Blob)
		if len(r.Blob) > domain.MaxBlobBytes || total > domain.DefaultPromptBlobs || (len(r.Blob) == domain.MaxBlobBytes && b.fault == "one too few") {
			if b.fault == "checks as it writes" {
				b.put(blobs[:i])
			}
			return nil, domain.Errorf(domain.TooLarge, "too large")
		}
	}
	return b.put(blobs), nil
}

func (b *blobMap) put(blobs []domain.Resource) []domain.Attachment {
	var out []domain.Attachment
	for _, r := range blobs {
		sum := sha256.Sum256(r.Blob)
		a := domain.Attachment{SHA256: hex.EncodeToString(sum[:]), MIME: r.MIME, URI: r.URI, Size: int64(len(r.Blob)), Name: "blob"}
		a.Path = blobCwd + "/uploads/" + a.SHA256 + ".bin"
		switch b.fault {
		case "named by the client":
			a.Path = path.Join(blobCwd, "uploads", path.Base(r.URI))
		case "one file each":
			a.Path = fmt.Sprintf("%s/uploads/%s.%d", blobCwd, a.SHA256, len(b.files))
		case "text only":
			r.Blob = []byte(strings.ToValidUTF8(string(r.Blob), "?"))
		case "a program":
			a.Path = strings.TrimSuffix(a.Path, ".bin") + path.Ext(r.URI)
		}
		if _, had := b.files[a.Path]; !had || b.fault != "trusts names" {
			b.files[a.Path] = r.Blob
		}
		out = append(out, a)
	}
	if b.fault == "backwards" {
		slices.Reverse(out)
	}
	return out
}

func (b *blobMap) Read(_ context.Context, _ domain.Session, a domain.Attachment) ([]byte, error) {
	raw, ok := b.files[a.Path]
	sum := sha256.Sum256(raw)
	switch {
	case !ok && b.fault == "reads what is gone":
		return nil, nil
	case !ok:
		return nil, domain.Errorf(domain.NotFound, "no %s", a.Path)
	case hex.EncodeToString(sum[:]) != a.SHA256 && b.fault != "reads anything":
		return nil, domain.Errorf(domain.Conflict, "%s has changed", a.Path)
	case b.fault == "reads half":
		return raw[:len(raw)/2], nil
	}
	return raw, nil
}

func (b *blobMap) Remove(_ context.Context, _ domain.Session, gone []domain.Attachment) error {
	for _, a := range gone {
		raw, ok := b.files[a.Path]
		if !ok && b.fault == "must be there" {
			return domain.Errorf(domain.NotFound, "no %s", a.Path)
		}
		sum := sha256.Sum256(raw)
		if b.fault == "removes all it is told" || ok && hex.EncodeToString(sum[:]) == a.SHA256 {
			delete(b.files, a.Path)
		}
	}
	return nil
}

func TestBlobsMutants(t *testing.T) {
	with := func(fault string) func(TB) {
		return func(tb TB) {
			Blobs(tb, BlobsHarness{Open: func(TB) BlobsFixture {
				b := &blobMap{files: map[string][]byte{blobCwd + "/a.txt": []byte("a")}, fault: fault}
				return BlobsFixture{
					Blobs: b, Session: domain.Session{ID: "s", Cwd: blobCwd}, Limit: domain.DefaultPromptBlobs,
					Files:  func() map[string][]byte { return maps.Clone(b.files) },
					Damage: func(p string) { b.files[p] = []byte("damaged") },
				}
			}})
		}
	}
	if failures := Record(t, with("")); len(failures) > 0 {
		t.Errorf("the reference fails: %q", failures)
	}
	killed(t, namesOf(blobsChecks()), []mutant{
		{"bytes are changed", "blobs-store", with("text only")},
		{"answers in another order", "blobs-order", with("backwards")},
		{"the client chooses the name", "blobs-name", with("named by the client")},
		{"the client chooses the suffix", "blobs-name", with("a program")},
		{"a new file each time", "blobs-again", with("one file each")},
		{"trusts the name", "blobs-forged", with("trusts names")},
		{"checks while it writes", "blobs-too-large", with("checks as it writes")},
		{"the limit is one too few", "blobs-limit", with("one too few")},
		{"writes something for nothing", "blobs-none", with("marks nothing")},
		{"goes on after a cancel", "blobs-cancelled", with("after cancel")},
		{"reads half of it", "blobs-read", with("reads half")},
		{"shows what somebody else wrote", "blobs-read-changed", with("reads anything")},
		{"what is gone is empty", "blobs-read-gone", with("reads what is gone")},
		{"a missing file is an error", "blobs-remove", with("must be there")},
		{"removes all it is told", "blobs-remove-foreign", with("removes all it is told")},
	})
}
