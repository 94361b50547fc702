package acceptance

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// corpusFile holds the cases of malformed and hostile input. Those that need
// no more than the peer are played in adapters/jsonrpc; here are the ones that
// need a session, a running turn or an open question.
const corpusFile = "../../adapters/jsonrpc/testdata/protocol-bad-input.jsonl"

// stateless are cases in a peer's state that still need the agent.
var stateless = []string{"PR-075", "PR-076"}

const corpusModel = `--- next when "hold"
text "holding"
hang
--- next when "write"
call write_file {"path":"effect.txt","content":"once\n"}
--- next when "write"
text "over"
--- next when "risky"
call write_file {"path":".envrc","content":"once\n"}
--- next when "risky"
text "over"
--- next always
refute "root:x:0"
text "fine"
`

type stateCase struct {
	ID, Description string
	Input           struct {
		Transport, State string
		Send             []struct{ Text string }
	}
	Expected struct {
		Replies []map[string]json.RawMessage
		Assert  []string
	}
}

// TestCorpus_WithASession plays the cases whose state is past initialize
// against the built binary.
func TestCorpus_WithASession(t *testing.T) {
	data, err := os.ReadFile(corpusFile)
	if err != nil {
		t.Fatal(err)
	}
	ran := 0
	for line := range bytes.Lines(data) {
		var c stateCase
		var kind struct {
			ID    string
			Input struct{ Transport, State string }
		}
		if err := json.Unmarshal(line, &kind); err != nil {
			t.Fatal(err)
		}
		past := kind.Input.State != "fresh" && kind.Input.State != "initialized"
		if strings.HasPrefix(kind.Input.Transport, "ws") || !past && !slices.Contains(stateless, kind.ID) {
			continue // WebSocket cases wait for the daemon
		}
		if err := json.Unmarshal(line, &c); err != nil {
			t.Fatal(err)
		}
		ran++
		t.Run(c.ID, func(t *testing.T) {
			t.Parallel()
			playState(t, c)
		})
	}
	if ran != 19 {
		t.Errorf("%d cases ran, want 19", ran)
	}
}

// agentLine is one line of the agent.
type agentLine struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Result json.RawMessage `json:"result"`
	Error  *struct {
		Code int `json:"code"`
	} `json:"error"`
}

// corpusAgent is a running agent and what it has said.
type corpusAgent struct {
	t     *testing.T
	w     world
	in    *os.File
	lines chan agentLine
	sid   string
	pid   string
	done  map[string]agentLine // responses by id
}

func startCorpusAgent(t *testing.T) *corpusAgent {
	s := &scenario{model: corpusModel}
	a := &corpusAgent{t: t, w: s.prepare(t), lines: make(chan agentLine, 256), done: map[string]agentLine{}}
	cmd := exec.Command(binary, "acp", "--config-dir", a.w.config, "--data-dir", a.w.data)
	cmd.Env = append(os.Environ(), "BERTH_store__required=true")
	cmd.Stderr = os.Stderr
	inRead, inWrite, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdin = inRead
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	inRead.Close()
	a.in = inWrite
	read := make(chan struct{})
	go func() {
		defer close(read)
		defer close(a.lines)
		for dec := json.NewDecoder(out); ; {
			var l agentLine
			if dec.Decode(&l) != nil {
				return
			}
			a.lines <- l
		}
	}()
	t.Cleanup(func() {
		inWrite.Close()
		<-read
		if err := cmd.Wait(); err != nil {
			t.Errorf("the agent ended with %v", err)
		}
	})
	return a
}

func (a *corpusAgent) send(line string) {
	if _, err := a.in.WriteString(line + "\n"); err != nil {
		a.t.Fatal(err)
	}
}

// until reads on until ok says that enough has come.
func (a *corpusAgent) until(what string, ok func(agentLine) bool) {
	a.t.Helper()
	limit := time.After(patience)
	for {
		select {
		case l, open := <-a.lines:
			if !open {
				a.t.Fatalf("the agent ended before %s", what)
			}
			if l.Method == "" {
				if _, twice := a.done[string(l.ID)]; twice && string(l.ID) != "null" {
					a.t.Errorf("a second response to %s", l.ID)
				}
				a.done[string(l.ID)] = l
			}
			if ok(l) {
				return
			}
		case <-limit:
			a.t.Fatalf("%s did not come", what)
		}
	}
}

func (a *corpusAgent) answered(id string) agentLine {
	a.t.Helper()
	if _, have := a.done[id]; !have {
		a.until("the answer to "+id, func(l agentLine) bool { return l.Method == "" && string(l.ID) == id })
	}
	return a.done[id]
}

// promptID is the id of the prompt that a state leaves open.
const promptID = "open-prompt"

// reach brings the agent to a state.
func (a *corpusAgent) reach(state string) {
	a.send(`{"jsonrpc":"2.0","id":"i","method":"initialize","params":{"protocolVersion":1,"clientCapabilities":{}}}`)
	a.answered(`"i"`)
	if state == "initialized" {
		return
	}
	cwd, _ := json.Marshal(a.w.work)
	a.send(`{"jsonrpc":"2.0","id":"n","method":"session/new","params":{"cwd":` + string(cwd) + `,"mcpServers":[]}}`)
	var res struct {
		SessionID string `json:"sessionId"`
	}
	if err := json.Unmarshal(a.answered(`"n"`).Result, &res); err != nil {
		a.t.Fatal(err)
	}
	a.sid = res.SessionID
	text := map[string]string{"prompt_running": "hold", "permission_pending": "write", "permission_pending_risky": "risky"}[state]
	if text == "" {
		return
	}
	a.prompt(promptID, text)
	a.until("the state", func(l agentLine) bool {
		if l.Method == "session/request_permission" {
			a.pid = string(l.ID)
		}
		return a.pid != "" || text == "hold" && l.Method == "session/update"
	})
}

func (a *corpusAgent) prompt(id, text string) {
	a.send(`{"jsonrpc":"2.0","id":"` + id + `","method":"session/prompt","params":{"sessionId":"` + a.sid + `","prompt":[{"type":"text","text":"` + text + `"}]}}`)
}

func playState(t *testing.T, c stateCase) {
	a := startCorpusAgent(t)
	a.reach(c.Input.State)
	fill := strings.NewReplacer("{{WS}}", a.w.work, "{{SID}}", a.sid, "{{PID}}", a.pid, "{{PROMPT_ID}}", promptID)
	for _, s := range c.Input.Send {
		a.send(fill.Replace(s.Text))
	}
	a.send(`{"jsonrpc":"2.0","id":"probe","method":"_probe/none"}`)
	if l := a.answered(`"probe"`); l.Error == nil || l.Error.Code != -32601 {
		t.Errorf("the probe was answered %+v", l)
	}
	if c.ID == "PR-086" || c.ID == "PR-087" {
		a.busy(c.ID)
		return
	}
	for _, want := range c.Expected.Replies {
		id := fill.Replace(string(want["id"]))
		if got := a.answered(id); !stateReply(got, want) {
			t.Errorf("%s: %s was answered result %s error %+v, want %s", c.Description, id, got.Result, got.Error, want)
		}
	}
	a.afterwards(c)
	// Nothing else may have been answered, to nobody's request in particular.
	known := []string{`"i"`, `"n"`, `"probe"`, `"after"`, `"` + promptID + `"`}
	for _, want := range c.Expected.Replies {
		known = append(known, fill.Replace(string(want["id"])))
	}
	for id, l := range a.done {
		if !slices.Contains(known, id) {
			t.Errorf("%s: an answer nobody expects: id %s, result %s, error %+v", c.Description, id, l.Result, l.Error)
		}
	}
}

// stateReply compares a response with what the case expects.
func stateReply(got agentLine, want map[string]json.RawMessage) bool {
	if options, ok := want["any_of"]; ok {
		var list []map[string]json.RawMessage
		return json.Unmarshal(options, &list) == nil &&
			slices.ContainsFunc(list, func(o map[string]json.RawMessage) bool { return stateReply(got, o) })
	}
	if code, ok := want["error_code"]; ok {
		var n int
		return json.Unmarshal(code, &n) == nil && got.Error != nil && got.Error.Code == n
	}
	var fields map[string]json.RawMessage
	if json.Unmarshal(want["result"], &fields) != nil { // "object"
		return got.Error == nil && bytes.HasPrefix(got.Result, []byte("{"))
	}
	var have map[string]json.RawMessage
	if got.Error != nil || json.Unmarshal(got.Result, &have) != nil {
		return false
	}
	for k, v := range fields {
		if !bytes.Equal(have[k], v) {
			return false
		}
	}
	return true
}

// busy checks the two cases that meet a running prompt: it keeps its own
// answer and can still be cancelled.
func (a *corpusAgent) busy(id string) {
	if id == "PR-087" {
		// The running prompt has the same id, so two answers bear it: the
		// refusal of the second request came before the probe's answer.
		own := `"` + promptID + `"`
		if got, ok := a.done[own]; !ok || got.Error == nil || got.Error.Code != -32600 && got.Error.Code != -32601 {
			a.t.Errorf("the repeated id was answered %+v", got)
		}
		delete(a.done, own)
	}
	a.send(`{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":"` + a.sid + `"}}`)
	if got := a.answered(`"` + promptID + `"`); got.Error != nil || !strings.Contains(string(got.Result), `"cancelled"`) {
		a.t.Errorf("the first prompt was answered %s %+v", got.Result, got.Error)
	}
	if id == "PR-086" { // queued, and cancelled with the first
		if got := a.answered("2"); got.Error != nil {
			a.t.Errorf("the queued prompt was answered %+v", got.Error)
		}
	}
}

// afterwards checks what the case asserts besides replies.
func (a *corpusAgent) afterwards(c stateCase) {
	t := a.t
	switch c.Input.State {
	case "permission_pending", "permission_pending_risky":
		if got := a.answered(`"` + promptID + `"`); got.Error != nil {
			t.Errorf("the prompt was answered with %+v", got.Error)
		}
		data, err := os.ReadFile(filepath.Join(a.w.work, "effect.txt"))
		_, rerr := os.Stat(filepath.Join(a.w.work, ".envrc"))
		if ran := err == nil || rerr == nil; ran != (c.ID == "PR-097") {
			t.Errorf("the tool ran: %v", ran)
		} else if ran && string(data) != "once\n" {
			t.Errorf("the effect is %q", data)
		}
	case "session":
		if _, err := os.Stat(filepath.Join(a.w.work, "uploads")); err == nil {
			t.Error("uploads were written")
		}
		a.prompt("after", "hello")
		if got := a.answered(`"after"`); !strings.Contains(string(got.Result), `"fine"`) {
			t.Errorf("the session answered %s %+v", got.Result, got.Error)
		}
	}
}
