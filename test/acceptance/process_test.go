package acceptance

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/berth-dev/berth/adapters/jsonrpc"
	"github.com/berth-dev/berth/adapters/jsonrpc/transcript"
	"github.com/berth-dev/berth/bootstrap"
	"github.com/berth-dev/berth/core/domain"
)

// patience bounds everything that a test waits for. It matters only when
// something is wrong, so it is long enough for a machine that is busy with much
// else.
const patience = time.Minute

// slack is added to the times that a process promises. A process of its own is
// as late as the machine it shares; that a promise is kept to the moment is
// seen where time is not real, as in TestEnding_InTime.
const slack = 20 * time.Second

// agentProcess is an agent serving on pipes: the built binary, or an App of
// this process. Everything it writes to standard output must be JSON-RPC.
type agentProcess struct {
	t      *testing.T
	cmd    *exec.Cmd // nil in process
	in     io.WriteCloser
	out    io.ReadCloser // the reading end, for tests that end it early
	stderr *logBuffer
	lines  chan message
	done   chan struct{} // closed when the agent has ended
	status int           // how it ended; read after done
	read   chan struct{} // closed when its output has ended
	seen   []message     // that were passed over
	kept   *leaks
	world  world                   // where it runs; the zero value is not looked at
	end    context.CancelCauseFunc // in process: tells it to end, as a signal does
}

func newAgentProcess(t *testing.T) *agentProcess {
	return &agentProcess{
		t: t, stderr: &logBuffer{}, lines: make(chan message, 1<<16),
		done: make(chan struct{}), read: make(chan struct{}), kept: newLeaks(),
	}
}

// serveIn starts an agent in one of the modes.
func serveIn(t *testing.T, w world, mode string) *agentProcess {
	t.Helper()
	if mode == "stdio" {
		return launch(t, w, nil, []string{"BERTH_store__required=true"})
	}
	return serve(t, w)
}

// serve starts an agent in this process.
func serve(t *testing.T, w world, opts ...bootstrap.Option) *agentProcess {
	t.Helper()
	cfg, err := bootstrap.LoadConfig(bootstrap.LoadOptions{ConfigDir: w.config, DataDir: w.data, Home: w.home, Env: cleanEnv(w), Flags: map[string]string{"store.required": "true"}})
	if err != nil {
		t.Fatal(err)
	}
	p := newAgentProcess(t)
	p.world = w
	app, err := bootstrap.New(cfg, append(opts, bootstrap.WithLog(p.stderr))...)
	if err != nil {
		t.Fatal(err)
	}
	toAgent, in := io.Pipe()
	out, fromAgent := io.Pipe()
	p.in, p.out = in, out
	ctx, end := context.WithCancelCause(context.Background())
	p.end = end
	go p.readAll()
	go func() {
		defer close(p.done)
		defer end(nil)
		err := app.Serve(ctx, jsonrpc.NewStdio(toAgent, fromAgent, int(cfg.ACP.MaxMessageBytes)))
		fromAgent.Close()
		if told := new(domain.Cause); errors.As(err, &told) {
			err = nil // as it was told to
		}
		if err = errors.Join(err, app.Stop(context.Background())); err != nil {
			p.status = 1
			fmt.Fprintln(p.stderr, err)
		}
	}()
	t.Cleanup(p.cleanUp)
	return p
}

// launch starts "berth acp" in a world, with further arguments and variables
// ("NAME=value").
func launch(t *testing.T, w world, args, env []string) *agentProcess {
	t.Helper()
	cmd := exec.Command(binary, append([]string{"acp", "--config-dir", w.config, "--data-dir", w.data}, args...)...)
	cmd.Env = append(cleanEnv(w), env...)
	p := begin(t, cmd)
	p.world = w
	return p
}

// cleanEnv is the environment without anybody's keys and settings, save the
// canaries.
func cleanEnv(w world) []string {
	return append(slices.DeleteFunc(os.Environ(), func(kv string) bool {
		name, _, _ := strings.Cut(kv, "=")
		return !isCanary(name) && (strings.HasSuffix(name, "_API_KEY") || strings.HasPrefix(name, "BERTH_"))
	}), "HOME="+w.home)
}

// begin starts a command that serves, and ends it with the test.
func begin(t *testing.T, cmd *exec.Cmd) *agentProcess {
	t.Helper()
	p := newAgentProcess(t)
	p.cmd = cmd
	if cmd.Stderr == nil {
		cmd.Stderr = p.stderr
	}
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, outEnd, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	p.in, p.out = in, out
	cmd.Stdout = outEnd
	err = cmd.Start()
	outEnd.Close()
	if err != nil {
		t.Fatal(err)
	}
	go p.readAll()
	go func() {
		defer close(p.done)
		_ = cmd.Wait() // the status tells
		p.status = cmd.ProcessState.ExitCode()
	}()
	t.Cleanup(p.cleanUp)
	return p
}

// cleanUp ends the agent and joins what reads it.
func (p *agentProcess) cleanUp() {
	p.in.Close()
	select {
	case <-p.done:
	case <-time.After(patience):
		p.t.Error("the agent did not end")
		if p.cmd != nil {
			_ = p.cmd.Process.Kill()
		}
		<-p.done
	}
	p.out.Close()
	<-p.read
	checkLeaks(p.t, p.kept, p.world, p.stderr.String())
}

// rest returns what was passed over and what came until the agent's end.
func (p *agentProcess) rest() []message {
	for m := range p.lines {
		p.seen = append(p.seen, m)
	}
	return p.seen
}

func (p *agentProcess) readAll() {
	defer close(p.read)
	defer close(p.lines)
	for r := bufio.NewReaderSize(p.out, 1<<16); ; {
		line, err := r.ReadBytes('\n')
		if len(line) > 0 {
			p.kept.frame(transcript.Frame{Dir: transcript.ToClient, Data: line})
			var m message
			if jerr := json.Unmarshal(line, &m); jerr != nil || m.JSONRPC != "2.0" || line[len(line)-1] != '\n' {
				p.t.Errorf("standard output carries what is no message: %.200q", line)
			}
			p.lines <- m
		}
		if err != nil {
			return
		}
	}
}

func (p *agentProcess) send(lines ...string) {
	p.t.Helper()
	if _, err := io.WriteString(p.in, strings.Join(lines, "\n")+"\n"); err != nil {
		p.t.Fatalf("send: %v\n%s", err, p.stderr)
	}
}

func (p *agentProcess) request(id, method, params string) {
	p.t.Helper()
	p.send(`{"jsonrpc":"2.0","id":"` + id + `","method":"` + method + `","params":` + params + `}`)
}

// await returns the next message that is wanted.
func (p *agentProcess) await(what string, want func(message) bool) message {
	p.t.Helper()
	for i, m := range p.seen {
		if want(m) {
			p.seen = slices.Delete(p.seen, i, i+1)
			return m
		}
	}
	limit := time.After(patience)
	for {
		select {
		case m, open := <-p.lines:
			if !open {
				p.t.Fatalf("the agent ended before %s; it said:\n%s", what, p.stderr)
			}
			if want(m) {
				return m
			}
			p.seen = append(p.seen, m)
		case <-limit:
			p.t.Fatalf("%s did not come; the log:\n%s", what, p.stderr)
		}
	}
}

// answer returns the response to a request.
func (p *agentProcess) answer(id string) message {
	p.t.Helper()
	return p.await("the answer to "+id, func(m message) bool { return m.Method == "" && string(m.ID) == `"`+id+`"` })
}

// call sends a request and returns its response.
func (p *agentProcess) call(id, method, params string) message {
	p.t.Helper()
	p.request(id, method, params)
	return p.answer(id)
}

// initialize opens the connection and returns whether sessions are kept.
func (p *agentProcess) initialize() (keeps bool) {
	p.t.Helper()
	m := p.call("init", "initialize", `{"protocolVersion":1,"clientCapabilities":{}}`)
	var res struct {
		Capabilities struct {
			LoadSession bool `json:"loadSession"`
		} `json:"agentCapabilities"`
	}
	if err := json.Unmarshal(m.Result, &res); err != nil {
		p.t.Fatalf("initialize: %s", m.Error)
	}
	return res.Capabilities.LoadSession
}

// newSession opens a session and returns its id.
func (p *agentProcess) newSession(w world) string {
	p.t.Helper()
	m := p.call("new", "session/new", `{"cwd":`+quoted(w.work)+`,"mcpServers":[]}`)
	id := sessionOf(m)
	if id == "" {
		p.t.Fatalf("session/new: %s", m.Error)
	}
	return id
}

// sessionOf is the session that a response to session/new tells of; "" when
// it is an error.
func sessionOf(m message) string {
	var res struct {
		SessionID string `json:"sessionId"`
	}
	_ = json.Unmarshal(m.Result, &res)
	return res.SessionID
}

func promptOf(session, text string) string {
	return `{"sessionId":"` + session + `","prompt":[{"type":"text","text":` + quoted(text) + `}]}`
}

// stopReason is how a prompt was answered; the error when it was one.
func stopReason(m message) string {
	var res struct {
		StopReason string `json:"stopReason"`
	}
	if json.Unmarshal(m.Result, &res) != nil {
		return string(m.Error)
	}
	return res.StopReason
}

func quoted(text string) string {
	b, _ := json.Marshal(text) // a string always encodes
	return string(b)
}

// exit waits for the process to end by itself and returns its status.
func (p *agentProcess) exit(limit time.Duration) (int, error) {
	select {
	case <-p.done:
		return p.status, nil
	case <-time.After(limit):
		return -1, errors.New("the agent still runs")
	}
}

// endsWith checks the status of a process that has been told to end, and that
// it does so within the time it promises, and the slack.
func (p *agentProcess) endsWith(status int, promise time.Duration) {
	p.t.Helper()
	start := time.Now()
	got, err := p.exit(promise + slack)
	took := time.Since(start).Round(time.Millisecond)
	if err != nil || got != status {
		p.t.Errorf("after %v: status %d, %v; want %d; it said:\n%s", took, got, err, status, p.stderr)
	}
	p.t.Logf("it ended after %v; promised are %v", took, promise)
	for _, word := range []string{"panic", "goroutine ", "DATA RACE"} {
		if strings.Contains(p.stderr.String(), word) {
			p.t.Errorf("the log tells of an internal fault:\n%s", p.stderr)
		}
	}
}
