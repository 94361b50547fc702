package peer

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	acp "github.com/coder/acp-go-sdk"
)

func TestInitialize(t *testing.T) {
	p := start(t, newHome(t, `text "Hello."`, nil), nil)
	if p.init.ProtocolVersion != acp.ProtocolVersionNumber {
		t.Errorf("protocol version %d, want %d", p.init.ProtocolVersion, acp.ProtocolVersionNumber)
	}
	if p.init.AgentInfo == nil || p.init.AgentInfo.Name != "berth" {
		t.Errorf("agent info %+v, want the name berth", p.init.AgentInfo)
	}
	if !p.init.AgentCapabilities.LoadSession {
		t.Error("sessions cannot be loaded")
	}
}

func TestPrompt_StreamsThenAnswers(t *testing.T) {
	p := start(t, newHome(t, "thought \"Hm.\"\ntext \"Hello, \"\ntext \"wörld 🌍.\"", nil), nil)
	id := p.session()
	if stop := p.prompt(id, "Say hello."); stop != acp.StopReasonEndTurn {
		t.Errorf("stop reason %q, want %q", stop, acp.StopReasonEndTurn)
	}
	// All of it, at the moment the answer is there: nothing may come later.
	if got := p.text(id, 0); got != "Hello, wörld 🌍." {
		t.Errorf("text %q", got)
	}
}

func TestToolCall_Permission(t *testing.T) {
	script := "call write_file {\"path\":\"a.txt\",\"content\":\"new\"}\n--- next\ntext \"On we go.\""
	tests := []struct {
		name   string
		answer acp.PermissionOptionKind
		file   string
		status acp.ToolCallStatus
	}{
		{"allowed", acp.PermissionOptionKindAllowOnce, "new", acp.ToolCallStatusCompleted},
		{"rejected", acp.PermissionOptionKindRejectOnce, "old", acp.ToolCallStatusFailed},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			h := newHome(t, script, map[string]string{"a.txt": "old"})
			p := start(t, h, func(p *peer) { p.permit = choose(test.answer) })
			id := p.session()
			if stop := p.prompt(id, "Write it."); stop != acp.StopReasonEndTurn {
				t.Errorf("stop reason %q, want %q", stop, acp.StopReasonEndTurn)
			}
			if got := h.read(t, "a.txt"); got != test.file {
				t.Errorf("the file holds %q, want %q", got, test.file)
			}
			if got := p.lastStatus(); got != test.status {
				t.Errorf("the call is %q, want %q", got, test.status)
			}
			if len(p.asked) != 1 || p.asked[0].SessionId != id {
				t.Errorf("asked %+v, want one question of the session", p.asked)
			}
			if got := p.text(id, 0); got != "On we go." {
				t.Errorf("text %q", got)
			}
		})
	}
}

func TestPermission_ShowsTheDiff(t *testing.T) {
	h := newHome(t, "call edit_file {\"path\":\"a.txt\",\"edits\":[{\"old_text\":\"two\",\"new_text\":\"2\"}]}\n--- next\ntext \"Done.\"", map[string]string{"a.txt": "one\ntwo\n"})
	p := start(t, h, nil)
	p.prompt(p.session(), "Make it a digit.")
	if len(p.asked) != 1 {
		t.Fatalf("asked %d times, want once", len(p.asked))
	}
	i := slices.IndexFunc(p.asked[0].ToolCall.Content, func(c acp.ToolCallContent) bool { return c.Diff != nil })
	if i < 0 {
		t.Fatalf("the question shows no diff: %+v", p.asked[0].ToolCall)
	}
	diff := p.asked[0].ToolCall.Content[i].Diff
	if diff.Path != filepath.Join(h.project, "a.txt") || diff.OldText == nil || *diff.OldText != "one\ntwo\n" || diff.NewText != "one\n2\n" {
		t.Errorf("diff %+v", diff)
	}
}

func TestFiles_GoThroughTheClientsBuffers(t *testing.T) {
	h := newHome(t, "call read_file {\"path\":\"a.txt\"}\n--- next\nexpect \"unsaved words\"\ncall write_file {\"path\":\"a.txt\",\"content\":\"new words\\n\"}\n--- next\ntext \"Done.\"", map[string]string{"a.txt": "words on disk\n"})
	path := filepath.Join(h.project, "a.txt")
	p := start(t, h, func(p *peer) { p.buffers = map[string]string{path: "unsaved words\n"} })
	id := p.session()
	if stop := p.prompt(id, "Improve it."); stop != acp.StopReasonEndTurn {
		t.Errorf("stop reason %q, want %q", stop, acp.StopReasonEndTurn)
	}
	if got := p.text(id, 0); got != "Done." {
		t.Errorf("text %q: the model did not see the buffer", got)
	}
	if p.buffers[path] != "new words\n" || !slices.Contains(p.wrote, path) {
		t.Errorf("buffer %q, written %v", p.buffers[path], p.wrote)
	}
}

func isText(u acp.SessionUpdate) bool { return u.AgentMessageChunk != nil }

func TestCancel_WhileStreaming(t *testing.T) {
	p := start(t, newHome(t, "chunks 100000 \"tick \" every 1ms\n--- next\ntext \"Here again.\"", nil), nil)
	id := p.session()
	end := p.begin(p.ctx(), id, "Go on for ever.")
	p.until("text", isText)
	if err := p.Cancel(p.ctx(), acp.CancelNotification{SessionId: id}); err != nil {
		t.Fatal(err)
	}
	if r := p.await(end); r.err != nil || r.stop != acp.StopReasonCancelled {
		t.Errorf("the turn ended with %q, %v; want %q", r.stop, r.err, acp.StopReasonCancelled)
	}
	n := p.count()
	if stop := p.prompt(id, "Are you there?"); stop != acp.StopReasonEndTurn {
		t.Errorf("the next turn ended with %q", stop)
	}
	if got := p.text(id, n); got != "Here again." {
		t.Errorf("after the cancel came %q", got)
	}
}

func TestCancel_WhileAsked(t *testing.T) {
	h := newHome(t, "call write_file {\"path\":\"a.txt\",\"content\":\"x\"}\n--- next\ntext \"Not here.\"", nil)
	asked := make(chan struct{})
	p := start(t, h, func(p *peer) {
		p.permit = func(ctx context.Context, _ acp.RequestPermissionRequest) (acp.RequestPermissionResponse, error) {
			close(asked)
			<-ctx.Done() // a person who does not answer
			return acp.RequestPermissionResponse{Outcome: acp.NewRequestPermissionOutcomeCancelled()}, nil
		}
	})
	id := p.session()
	end := p.begin(p.ctx(), id, "Write it.")
	<-asked
	if err := p.Cancel(p.ctx(), acp.CancelNotification{SessionId: id}); err != nil {
		t.Fatal(err)
	}
	if r := p.await(end); r.err != nil || r.stop != acp.StopReasonCancelled {
		t.Errorf("the turn ended with %q, %v; want %q", r.stop, r.err, acp.StopReasonCancelled)
	}
	if got := p.lastStatus(); got != acp.ToolCallStatusFailed {
		t.Errorf("the call is %q, want %q", got, acp.ToolCallStatusFailed)
	}
	if got := h.read(t, "a.txt"); got != "" {
		t.Errorf("the file was written: %q", got)
	}
}

// This client turns an ended context into session/cancel of its own accord.
func TestCancel_ByTheContextOfThePrompt(t *testing.T) {
	p := start(t, newHome(t, "chunks 100000 \"tick \" every 1ms\n--- next\ntext \"Fine.\"", nil), nil)
	id := p.session()
	ctx, cancel := context.WithCancel(p.ctx())
	end := p.begin(ctx, id, "Go on for ever.")
	p.until("text", isText)
	cancel()
	p.await(end) // it gives up waiting by itself
	if stop := p.prompt(id, "Are you there?"); stop != acp.StopReasonEndTurn {
		t.Errorf("the next turn ended with %q", stop)
	}
}

func TestLoad_AfterACrash(t *testing.T) {
	h := newHome(t, "--- next when \"first\"\ntext \"One.\"\n--- next when \"second\"\nexpect \"One.\"\ntext \"Two.\"", nil)
	p := start(t, h, nil)
	id := p.session()
	p.prompt(id, "the first")
	p.kill()

	p = start(t, h, nil)
	list, err := p.ListSessions(p.ctx(), acp.ListSessionsRequest{})
	if err != nil {
		t.Fatal(err)
	}
	if len(list.Sessions) != 1 || list.Sessions[0].SessionId != id || list.Sessions[0].Cwd != h.project {
		t.Errorf("sessions %+v, want %s in %s", list.Sessions, id, h.project)
	}
	if _, err := p.LoadSession(p.ctx(), acp.LoadSessionRequest{SessionId: id, Cwd: h.project, McpServers: []acp.McpServer{}}); err != nil {
		t.Fatal(err)
	}
	if got := p.text(id, 0); got != "One." {
		t.Errorf("replayed %q, want %q", got, "One.")
	}
	n := p.count()
	p.prompt(id, "the second")
	if got := p.text(id, n); got != "Two." {
		t.Errorf("text %q: the model did not know what was said before", got)
	}
}

func TestResume_ReplaysNothing(t *testing.T) {
	h := newHome(t, "--- next when \"first\"\ntext \"One.\"\n--- next when \"second\"\nexpect \"One.\"\ntext \"Two.\"", nil)
	p := start(t, h, nil)
	id := p.session()
	p.prompt(id, "the first")
	p.stop()

	p = start(t, h, nil)
	if _, err := p.ResumeSession(p.ctx(), acp.ResumeSessionRequest{SessionId: id, Cwd: h.project, McpServers: []acp.McpServer{}}); err != nil {
		t.Fatal(err)
	}
	if got := p.text(id, 0); got != "" {
		t.Errorf("resume replayed %q", got)
	}
	p.prompt(id, "the second")
	if got := p.text(id, 0); got != "Two." {
		t.Errorf("text %q", got)
	}
	if _, err := p.CloseSession(p.ctx(), acp.CloseSessionRequest{SessionId: id}); err != nil {
		t.Errorf("session/close: %v", err)
	}
}

func TestErrors(t *testing.T) {
	p := start(t, newHome(t, `error provider_rejected "the model does not exist"`, nil), nil)
	id := p.session()
	hello := []acp.ContentBlock{acp.TextBlock("hello")}
	tests := []struct {
		name string
		call func() error
		code int
		says string
	}{
		{"an unknown session", func() error {
			_, err := p.Prompt(p.ctx(), acp.PromptRequest{SessionId: "nobody", Prompt: hello})
			return err
		}, -32002, "nobody"},
		{"a directory that is missing", func() error {
			_, err := p.NewSession(p.ctx(), acp.NewSessionRequest{Cwd: filepath.Join(p.home.project, "missing"), McpServers: []acp.McpServer{}})
			return err
		}, -32602, "missing"},
		{"a session that never was", func() error {
			_, err := p.LoadSession(p.ctx(), acp.LoadSessionRequest{SessionId: "0b8ee6e1-0000-4000-8000-000000000000", Cwd: p.home.project, McpServers: []acp.McpServer{}})
			return err
		}, -32002, "0b8ee6e1"},
		{"a method of nobody", func() error {
			_, err := p.CallExtension(p.ctx(), "_nobody/knows", map[string]any{})
			return err
		}, -32601, "not found"},
		{"a provider that refuses", func() error {
			_, err := p.Prompt(p.ctx(), acp.PromptRequest{SessionId: id, Prompt: hello})
			return err
		}, 0, "the model does not exist"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			err := test.call()
			var e *acp.RequestError
			if !errors.As(err, &e) {
				t.Fatalf("error %v, want one of the protocol", err)
			}
			if test.code != 0 && e.Code != test.code {
				t.Errorf("code %d, want %d: %s", e.Code, test.code, e.Message)
			}
			if !strings.Contains(e.Message, test.says) {
				t.Errorf("message %q does not say %q", e.Message, test.says)
			}
			data, ok := e.Data.(map[string]any)
			if reason, _ := data["reason"].(string); !ok || reason == "" {
				t.Errorf("data %v gives no reason", e.Data)
			}
		})
	}
}

func TestOffline_WithoutConfiguration(t *testing.T) {
	p := start(t, newHome(t, "", map[string]string{"hello.txt": "the quick brown fox\n"}), nil)
	id := p.session()
	if stop := p.prompt(id, "read hello.txt"); stop != acp.StopReasonEndTurn {
		t.Errorf("stop reason %q, want %q", stop, acp.StopReasonEndTurn)
	}
	if got := p.lastStatus(); got != acp.ToolCallStatusCompleted {
		t.Errorf("the call is %q, want %q", got, acp.ToolCallStatusCompleted)
	}
	if got := p.text(id, 0); !strings.Contains(got, "quick brown fox") {
		t.Errorf("text %q", got)
	}
}

func TestSessions_RunBesideEachOther(t *testing.T) {
	p := start(t, newHome(t, "--- next when \"slow\"\ntext \"s\"\nhang\n--- next when \"fast\"\ntext \"fast\"", nil), nil)
	slow, fast := p.session(), p.session()
	end := p.begin(p.ctx(), slow, "slow")
	p.until("text", isText)
	if stop := p.prompt(fast, "fast"); stop != acp.StopReasonEndTurn {
		t.Errorf("stop reason %q", stop)
	}
	select {
	case r := <-end:
		t.Errorf("the slow turn was over before the fast one: %+v", r)
	default:
	}
	if err := p.Cancel(p.ctx(), acp.CancelNotification{SessionId: slow}); err != nil {
		t.Fatal(err)
	}
	if r := p.await(end); r.err != nil || r.stop != acp.StopReasonCancelled {
		t.Errorf("the slow turn ended with %q, %v", r.stop, r.err)
	}
}
