package acpclient

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"

	"github.com/berth-dev/berth/adapters/jsonrpc"
)

// exitWait is how long a stopped agent may take before it is killed.
const exitWait = 5 * time.Second

// Command is an agent to start.
type Command struct {
	Path   string
	Args   []string
	Env    []string // nil inherits ours
	Dir    string
	Stderr io.Writer // nil discards
	// Tap, if set, sees every line in either direction: '>' to the agent, '<'
	// from it. It must not block.
	Tap func(dir byte, line []byte)
}

// Process is an agent that was started, and the connection to it.
type Process struct {
	*Client
	cmd    *exec.Cmd
	stdin  io.Closer
	exited chan struct{}
}

// Start starts an agent as a child process and connects to it over its
// standard streams.
func Start(cmd Command, info Info, h Handlers) (*Process, error) {
	c := exec.Command(cmd.Path, cmd.Args...)
	c.Env, c.Dir, c.Stderr = cmd.Env, cmd.Dir, cmd.Stderr
	c.WaitDelay = exitWait
	stdin, err := c.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", cmd.Path, err)
	}
	// An os.Pipe instead of StdoutPipe: Wait must not close what is still read.
	out, outEnd, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", cmd.Path, err)
	}
	c.Stdout = outEnd
	err = c.Start()
	outEnd.Close()
	if err != nil {
		out.Close()
		return nil, fmt.Errorf("start %s: %w", cmd.Path, err)
	}
	var frames jsonrpc.Frames = jsonrpc.NewStdio(out, stdin, 0)
	if cmd.Tap != nil {
		frames = tapped{frames, cmd.Tap}
	}
	p := &Process{Client: Connect(frames, info, h), cmd: c, stdin: stdin, exited: make(chan struct{})}
	go func() { // joined by Stop and Kill
		defer close(p.exited)
		_ = c.Wait() // its result is read from ProcessState
	}()
	return p, nil
}

// Stop closes the agent's input, waits for it to exit, and kills it if it
// does not. It returns the exit code, -1 when a signal ended it.
func (p *Process) Stop() int {
	_ = p.stdin.Close()
	limit := time.NewTimer(exitWait)
	defer limit.Stop()
	select {
	case <-p.exited:
	case <-limit.C:
		_ = p.cmd.Process.Kill()
		<-p.exited
	}
	_ = p.Close()
	return p.cmd.ProcessState.ExitCode()
}

// Kill ends the agent at once, as a crash would.
func (p *Process) Kill() {
	_ = p.cmd.Process.Kill()
	<-p.exited
	_ = p.Close()
}

// PID returns the agent's process id.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Interrupted calls cancel for the session when ctx ends, so that a turn ends
// with an answer. The returned function stops watching.
func (p *Process) Interrupted(ctx context.Context, id string) (stop func() bool) {
	return context.AfterFunc(ctx, func() { _ = p.Cancel(context.WithoutCancel(ctx), id) })
}

// tapped shows every frame to a function on its way.
type tapped struct {
	jsonrpc.Frames
	tap func(dir byte, line []byte)
}

// Read shows what the agent sent.
func (t tapped) Read() ([]byte, error) {
	frame, err := t.Frames.Read()
	if err == nil {
		t.tap('<', frame)
	}
	return frame, err
}

// Write shows what the agent is sent.
func (t tapped) Write(frame []byte) error {
	t.tap('>', frame)
	return t.Frames.Write(frame)
}
