package conformance

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"
)

// patience bounds everything a test waits for. It matters only when something
// is wrong.
const patience = time.Minute

// slack is added to the times that an agent promises. A process of its own, and
// one with the race detector in it, is as late as the machine it shares.
const slack = 20 * time.Second

// agent is one started binary. Its output is kept byte by byte.
type agent struct {
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	stdout *tee
	ended  chan struct{} // closed when the process has ended
	killed bool
}

// launch says how a binary is started.
type launch struct {
	program string   // "": the binary
	args    []string // behind "acp" and the directories
	env     []string
	stderr  io.Writer // nil: none
}

// start runs the binary as an editor would: in a directory that is none of the
// session's, without the keys and settings of whoever runs the test.
func start(w world, l launch) (*agent, error) {
	if l.program == "" {
		l.program = binary
	}
	args := append([]string{"acp", "--config-dir", w.config, "--data-dir", w.data}, l.args...)
	a := &agent{cmd: exec.Command(l.program, args...), ended: make(chan struct{})}
	a.cmd.Dir = w.config
	a.cmd.Env = append(slices.DeleteFunc(os.Environ(), func(kv string) bool {
		return strings.Contains(kv, "_API_KEY=") || strings.HasPrefix(kv, "BERTH_")
	}), "HOME="+w.config, "GORACE=halt_on_error=1", "BERTH_store__required=true") // a loaded machine may take longer than initialize waits
	a.cmd.Env = append(a.cmd.Env, l.env...)
	a.cmd.Stderr = l.stderr
	var err error
	if a.stdin, err = a.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, outEnd, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	a.cmd.Stdout = outEnd
	err = a.cmd.Start()
	outEnd.Close()
	if err != nil {
		out.Close()
		return nil, err
	}
	a.stdout = &tee{r: out}
	go func() {
		defer close(a.ended)
		_ = a.cmd.Wait()
	}()
	return a, nil
}

// wait waits for the end of the process and returns its exit code; -1 when it
// had to be killed.
func (a *agent) wait(t *testing.T, within time.Duration) int {
	t.Helper()
	select {
	case <-a.ended:
		return a.cmd.ProcessState.ExitCode()
	case <-time.After(within):
		t.Errorf("the agent still runs after %v", within)
		a.kill()
		return -1
	}
}

func (a *agent) kill() {
	a.killed = true
	_ = a.cmd.Process.Kill()
	<-a.ended
}

// faults says what is wrong with the bytes of an agent: it writes JSON-RPC
// messages, one a line, and nothing else from the first byte to the last. A
// killed one may leave its last line unfinished.
func (a *agent) faults() []string {
	kept, whole := a.stdout.bytes()
	var bad []string
	for line := range bytes.Lines(kept) {
		body, ended := bytes.CutSuffix(line, []byte("\n"))
		var m struct {
			Version string `json:"jsonrpc"`
		}
		switch {
		case !ended && (a.killed || !whole):
		case !ended:
			bad = append(bad, fmt.Sprintf("standard output ends in the middle of a line: %.200q", body))
		case !utf8.Valid(body):
			bad = append(bad, fmt.Sprintf("standard output is not UTF-8: %.200q", body))
		case bytes.ContainsRune(body, '\r') || json.Unmarshal(body, &m) != nil || m.Version != "2.0":
			bad = append(bad, fmt.Sprintf("standard output holds what is no message: %.200q", body))
		}
	}
	return bad
}

// tee reads the agent's output and keeps a copy.
type tee struct {
	r     *os.File
	mu    sync.Mutex
	kept  bytes.Buffer
	whole bool // the end was reached
}

func (t *tee) Read(p []byte) (int, error) {
	n, err := t.r.Read(p)
	t.mu.Lock()
	t.kept.Write(p[:n])
	t.whole = t.whole || errors.Is(err, io.EOF)
	t.mu.Unlock()
	return n, err
}

func (t *tee) Close() error { return t.r.Close() }

// bytes returns what came so far, and whether that is all.
func (t *tee) bytes() (kept []byte, whole bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return bytes.Clone(t.kept.Bytes()), t.whole
}

// buffer collects a log that several goroutines write.
type buffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}
