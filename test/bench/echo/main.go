// Command echo is what the benchmark measures Berth against: the smallest
// honest ACP agent the standard library makes. It relays an OpenAI-compatible
// stream as message chunks, one goroutine a turn, and keeps sessions as lines
// of JSON in a directory. It has no tools, no permissions and no checks, and
// what it writes is not safe from a crash.
//
//	echo -url http://127.0.0.1:1234/v1 -dir DIRECTORY
package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
)

// frame is a JSON-RPC message of any kind.
type frame struct {
	Version string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id,omitempty"`
	Method  string          `json:"method,omitempty"`
	Params  json.RawMessage `json:"params,omitempty"`
	Result  any             `json:"result,omitempty"`
	Error   *failure        `json:"error,omitempty"`
}

type failure struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
}

type line struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

type session struct {
	lines  []line
	cancel context.CancelFunc
}

type agent struct {
	url, dir string

	out      sync.Mutex
	enc      *json.Encoder
	mu       sync.Mutex
	sessions map[string]*session
	turns    sync.WaitGroup
}

func main() {
	url := flag.String("url", "", "base URL of the model's endpoint")
	dir := flag.String("dir", ".", "directory of sessions")
	flag.Parse()
	a := &agent{url: *url, dir: *dir, enc: json.NewEncoder(os.Stdout), sessions: map[string]*session{}}
	if err := a.serve(); err != nil {
		fmt.Fprintln(os.Stderr, "echo:", err)
		os.Exit(1)
	}
}

func (a *agent) serve() error {
	in := bufio.NewScanner(os.Stdin)
	in.Buffer(make([]byte, 64<<10), 64<<20)
	for in.Scan() {
		var f frame
		if err := json.Unmarshal(in.Bytes(), &f); err != nil {
			return err
		}
		a.handle(f)
	}
	a.turns.Wait()
	return in.Err()
}

type params struct {
	SessionID string `json:"sessionId"`
	Prompt    []struct {
		Text string `json:"text"`
	} `json:"prompt"`
}

func (a *agent) handle(f frame) {
	var p params
	if len(f.Params) > 0 {
		if err := json.Unmarshal(f.Params, &p); err != nil {
			a.fail(f.ID, err)
			return
		}
	}
	switch f.Method {
	case "initialize":
		a.answer(f.ID, map[string]any{"protocolVersion": 1, "agentCapabilities": map[string]any{"loadSession": true}, "authMethods": []any{}})
	case "session/new":
		a.mu.Lock()
		id := fmt.Sprintf("echo-%d-%d", os.Getpid(), len(a.sessions))
		a.sessions[id] = &session{}
		a.mu.Unlock()
		a.answer(f.ID, map[string]any{"sessionId": id})
	case "session/load":
		if err := a.load(p.SessionID); err != nil {
			a.fail(f.ID, err)
			return
		}
		a.answer(f.ID, map[string]any{})
	case "session/prompt":
		a.turns.Go(func() { a.prompt(f.ID, p) })
	case "session/cancel":
		a.mu.Lock()
		if s := a.sessions[p.SessionID]; s != nil && s.cancel != nil {
			s.cancel()
		}
		a.mu.Unlock()
	default:
		if len(f.ID) > 0 {
			a.fail(f.ID, errors.New("no such method"))
		}
	}
}

func (a *agent) send(f frame) {
	f.Version = "2.0"
	a.out.Lock()
	defer a.out.Unlock()
	if err := a.enc.Encode(f); err != nil {
		fmt.Fprintln(os.Stderr, "echo:", err)
	}
}

func (a *agent) answer(id json.RawMessage, result any) { a.send(frame{ID: id, Result: result}) }

func (a *agent) fail(id json.RawMessage, err error) {
	a.send(frame{ID: id, Error: &failure{-32603, err.Error()}})
}

type update struct {
	SessionID string `json:"sessionId"`
	Update    chunk  `json:"update"`
}

type chunk struct {
	Kind    string `json:"sessionUpdate"`
	Content text   `json:"content"`
}

type text struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

func (a *agent) say(id, kind, words string) {
	raw, err := json.Marshal(update{id, chunk{kind, text{"text", words}}})
	if err != nil {
		fmt.Fprintln(os.Stderr, "echo:", err)
		return
	}
	a.send(frame{Method: "session/update", Params: raw})
}

func (a *agent) prompt(id json.RawMessage, p params) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	a.mu.Lock()
	s := a.sessions[p.SessionID]
	if s != nil {
		s.cancel = cancel
	}
	a.mu.Unlock()
	if s == nil || len(p.Prompt) == 0 {
		a.fail(id, errors.New("no such session"))
		return
	}
	err := a.keep(p.SessionID, s, line{"user", p.Prompt[0].Text})
	var reply string
	if err == nil {
		reply, err = a.relay(ctx, p.SessionID, s)
	}
	if ctx.Err() != nil {
		a.answer(id, map[string]any{"stopReason": "cancelled"})
		return
	}
	if err == nil {
		err = a.keep(p.SessionID, s, line{"assistant", reply})
	}
	if err != nil {
		a.fail(id, err)
		return
	}
	a.answer(id, map[string]any{"stopReason": "end_turn"})
}

// relay asks the model and passes every chunk on.
func (a *agent) relay(ctx context.Context, id string, s *session) (string, error) {
	body, err := json.Marshal(map[string]any{"model": "m", "stream": true, "messages": s.lines})
	if err != nil {
		return "", err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, a.url+"/chat/completions", bytes.NewReader(body))
	if err != nil {
		return "", err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	var all strings.Builder
	in := bufio.NewScanner(resp.Body)
	for in.Scan() {
		data, ok := bytes.CutPrefix(in.Bytes(), []byte("data: "))
		if !ok || bytes.Equal(data, []byte("[DONE]")) {
			continue
		}
		var event struct {
			Choices []struct {
				Delta struct {
					Content string `json:"content"`
				} `json:"delta"`
			} `json:"choices"`
		}
		if err := json.Unmarshal(data, &event); err != nil {
			return "", err
		}
		for _, c := range event.Choices {
			if c.Delta.Content != "" {
				all.WriteString(c.Delta.Content)
				a.say(id, "agent_message_chunk", c.Delta.Content)
			}
		}
	}
	return all.String(), in.Err()
}

func (a *agent) file(id string) string { return filepath.Join(a.dir, filepath.Base(id)+".jsonl") }

// keep appends a line to the session and its file.
func (a *agent) keep(id string, s *session, l line) error {
	s.lines = append(s.lines, l)
	f, err := os.OpenFile(a.file(id), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	return errors.Join(json.NewEncoder(f).Encode(l), f.Close())
}

// load replays a session's file.
func (a *agent) load(id string) error {
	raw, err := os.ReadFile(a.file(id))
	if err != nil {
		return err
	}
	s := &session{}
	for part := range bytes.Lines(raw) {
		var l line
		if err := json.Unmarshal(part, &l); err != nil {
			return err
		}
		s.lines = append(s.lines, l)
		kind := "agent_message_chunk"
		if l.Role == "user" {
			kind = "user_message_chunk"
		}
		a.say(id, kind, l.Content)
	}
	a.mu.Lock()
	a.sessions[id] = s
	a.mu.Unlock()
	return nil
}
