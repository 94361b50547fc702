package peer

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	acp "github.com/coder/acp-go-sdk"
)

// patience is how long a test waits for one thing. It only matters when
// something is wrong.
const patience = time.Minute

// slack is what a promised time may be exceeded by on a machine that is busy
// with much else.
const slack = 20 * time.Second

// home is a directory with configuration, data and a project of its own.
type home struct {
	config, data, project string
}

// newHome makes a home whose only agent plays a script; with an empty script
// there is no configuration at all.
func newHome(t *testing.T, script string, files map[string]string) home {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	h := home{filepath.Join(dir, "config"), filepath.Join(dir, "data"), filepath.Join(dir, "project")}
	for _, d := range []string{h.config, h.project} {
		if err := os.Mkdir(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if script != "" {
		config := "version = 1\n\n[providers.play]\ntype = \"scripted\"\nscript = \"play.script\"\n\n[agents.main]\nmodel = \"play/script\"\n"
		write(t, filepath.Join(h.config, "config.toml"), config)
		write(t, filepath.Join(h.config, "play.script"), script)
	}
	for name, text := range files {
		write(t, filepath.Join(h.project, name), text)
	}
	return h
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// read returns a file of the project, "" when there is none.
func (h home) read(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(h.project, name))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	return string(b)
}

// peer is a running agent and the client that drives it. It implements
// acp.Client.
type peer struct {
	*acp.ClientSideConnection
	acp.Client // what this client does not offer: nil, so that a call of it fails loudly
	t          *testing.T
	home       home
	cmd        *exec.Cmd
	stdin      interface{ Close() error }
	stderr     *bytes.Buffer
	exited     chan error
	init       acp.InitializeResponse

	permit func(context.Context, acp.RequestPermissionRequest) (acp.RequestPermissionResponse, error)

	mu      sync.Mutex
	updates []acp.SessionNotification
	asked   []acp.RequestPermissionRequest
	buffers map[string]string // nil: the client offers no files
	wrote   []string
	changed chan struct{} // closed and replaced when an update comes
}

// start runs the agent of a home and initializes the connection. configure,
// when not nil, changes the peer before.
func start(t *testing.T, h home, configure func(*peer)) *peer {
	t.Helper()
	p := &peer{t: t, home: h, exited: make(chan error, 1), changed: make(chan struct{}), stderr: &bytes.Buffer{}, permit: choose(acp.PermissionOptionKindAllowOnce)}
	if configure != nil {
		configure(p)
	}
	// The agent outlives t.Context by its own end; stop or kill ends it.
	p.cmd = exec.CommandContext(context.WithoutCancel(t.Context()), binary, "acp", "--config-dir", h.config, "--data-dir", h.data)
	p.cmd.Dir = h.project
	p.cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + h.project, "SYSTEMROOT=" + os.Getenv("SYSTEMROOT"), "GORACE=halt_on_error=1", "BERTH_store__required=true"} // a loaded machine may take longer than initialize waits
	p.cmd.Stderr = p.stderr
	stdin, err := p.cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p.stdin = stdin
	p.ClientSideConnection = acp.NewClientSideConnection(p, stdin, stdout)
	p.SetLogger(slog.New(slog.DiscardHandler)) // it reports every end of a connection
	go func() {
		<-p.Done() // Wait closes the pipe, so all of it has to be read first
		p.exited <- p.cmd.Wait()
	}()
	t.Cleanup(p.stop)
	p.init, err = p.Initialize(p.ctx(), acp.InitializeRequest{
		ProtocolVersion: acp.ProtocolVersionNumber,
		ClientInfo:      &acp.Implementation{Name: "peer", Version: "1"},
		ClientCapabilities: acp.ClientCapabilities{
			Fs: acp.FileSystemCapabilities{ReadTextFile: p.buffers != nil, WriteTextFile: p.buffers != nil},
		},
	})
	if err != nil {
		t.Fatalf("initialize: %v\n%s", err, p.stderr)
	}
	return p
}

// ctx bounds one wait.
func (p *peer) ctx() context.Context {
	ctx, cancel := context.WithTimeout(p.t.Context(), patience)
	p.t.Cleanup(cancel)
	return ctx
}

// stop ends the agent's input and demands a clean exit within three seconds, and
// the slack.
func (p *peer) stop() {
	if p.cmd == nil {
		return
	}
	if err := p.stdin.Close(); err != nil && !errors.Is(err, os.ErrClosed) {
		p.t.Errorf("close the agent's input: %v", err)
	}
	const limit = 3*time.Second + slack
	select {
	case err := <-p.exited:
		if err != nil {
			p.t.Errorf("the agent exited with %v\n%s", err, p.stderr)
		}
	case <-time.After(limit):
		p.t.Errorf("the agent did not exit within %s of the end of its input", limit)
		if err := p.cmd.Process.Kill(); err != nil {
			p.t.Log(err)
		}
		<-p.exited
	}
	p.cmd = nil
}

// kill ends the agent as a crash would.
func (p *peer) kill() {
	if err := p.cmd.Process.Kill(); err != nil {
		p.t.Fatal(err)
	}
	<-p.exited
	p.cmd = nil
}

// session opens a session in the home's project.
func (p *peer) session() acp.SessionId {
	p.t.Helper()
	s, err := p.NewSession(p.ctx(), acp.NewSessionRequest{Cwd: p.home.project, McpServers: []acp.McpServer{}})
	if err != nil {
		p.t.Fatalf("session/new: %v\n%s", err, p.stderr)
	}
	return s.SessionId
}

// prompt plays one turn to its end.
func (p *peer) prompt(id acp.SessionId, text string) acp.StopReason {
	p.t.Helper()
	r, err := p.Prompt(p.ctx(), acp.PromptRequest{SessionId: id, Prompt: []acp.ContentBlock{acp.TextBlock(text)}})
	if err != nil {
		p.t.Fatalf("session/prompt: %v\n%s", err, p.stderr)
	}
	return r.StopReason
}

// turn is a prompt that runs beside the test.
type turn struct {
	stop acp.StopReason
	err  error
}

// begin starts a prompt and returns where its end will be told.
func (p *peer) begin(ctx context.Context, id acp.SessionId, text string) <-chan turn {
	end := make(chan turn, 1)
	go func() {
		r, err := p.Prompt(ctx, acp.PromptRequest{SessionId: id, Prompt: []acp.ContentBlock{acp.TextBlock(text)}})
		end <- turn{r.StopReason, err}
	}()
	return end
}

// await waits for the end of a turn.
func (p *peer) await(end <-chan turn) turn {
	p.t.Helper()
	select {
	case r := <-end:
		return r
	case <-time.After(patience):
		p.t.Fatalf("the turn did not end\n%s", p.stderr)
		return turn{}
	}
}

// until waits for an update that matches.
func (p *peer) until(what string, match func(acp.SessionUpdate) bool) {
	p.t.Helper()
	deadline := time.After(patience)
	for {
		p.mu.Lock()
		found := slices.ContainsFunc(p.updates, func(n acp.SessionNotification) bool { return match(n.Update) })
		changed := p.changed
		p.mu.Unlock()
		if found {
			return
		}
		select {
		case <-changed:
		case <-deadline:
			p.t.Fatalf("no %s\n%s", what, p.stderr)
		}
	}
}

// text joins what the agent said in a session, from the n-th update on.
func (p *peer) text(id acp.SessionId, from int) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	var b strings.Builder
	for _, n := range p.updates[from:] {
		if m := n.Update.AgentMessageChunk; m != nil && n.SessionId == id && m.Content.Text != nil {
			b.WriteString(m.Content.Text.Text)
		}
	}
	return b.String()
}

func (p *peer) count() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.updates)
}

// lastStatus is the newest status of the only tool call.
func (p *peer) lastStatus() acp.ToolCallStatus {
	p.mu.Lock()
	defer p.mu.Unlock()
	var last acp.ToolCallStatus
	for _, n := range p.updates {
		switch u := n.Update; {
		case u.ToolCall != nil:
			last = u.ToolCall.Status
		case u.ToolCallUpdate != nil && u.ToolCallUpdate.Status != nil:
			last = *u.ToolCallUpdate.Status
		}
	}
	return last
}

// SessionUpdate notes an update.
func (p *peer) SessionUpdate(_ context.Context, n acp.SessionNotification) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.updates = append(p.updates, n)
	close(p.changed)
	p.changed = make(chan struct{})
	return nil
}

// RequestPermission asks the test.
func (p *peer) RequestPermission(ctx context.Context, r acp.RequestPermissionRequest) (acp.RequestPermissionResponse, error) {
	p.mu.Lock()
	p.asked = append(p.asked, r)
	p.mu.Unlock()
	return p.permit(ctx, r)
}

// ReadTextFile serves a buffer.
func (p *peer) ReadTextFile(_ context.Context, r acp.ReadTextFileRequest) (acp.ReadTextFileResponse, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	text, ok := p.buffers[r.Path]
	if !ok {
		return acp.ReadTextFileResponse{}, &acp.RequestError{Code: -32002, Message: "Resource not found: " + r.Path}
	}
	return acp.ReadTextFileResponse{Content: text}, nil
}

// WriteTextFile replaces a buffer.
func (p *peer) WriteTextFile(_ context.Context, r acp.WriteTextFileRequest) (acp.WriteTextFileResponse, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.buffers[r.Path] = r.Content
	p.wrote = append(p.wrote, r.Path)
	return acp.WriteTextFileResponse{}, nil
}

// choose answers a permission request with the first option of a kind.
func choose(kind acp.PermissionOptionKind) func(context.Context, acp.RequestPermissionRequest) (acp.RequestPermissionResponse, error) {
	return func(_ context.Context, r acp.RequestPermissionRequest) (acp.RequestPermissionResponse, error) {
		for _, o := range r.Options {
			if o.Kind == kind {
				return acp.RequestPermissionResponse{Outcome: acp.NewRequestPermissionOutcomeSelected(o.OptionId)}, nil
			}
		}
		return acp.RequestPermissionResponse{}, errors.New("no option of kind " + string(kind))
	}
}
