package acpclient

import (
	"context"
	"errors"
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

// Child is an agent that was started. Frames is the transport over its standard
// streams; closing it closes the agent's input.
type Child struct {
	Frames jsonrpc.Frames
	cmd    *exec.Cmd
	exited chan struct{}
}

// Spawn starts an agent as a child process.
func Spawn(cmd Command) (*Child, error) {
	c := exec.Command(cmd.Path, cmd.Args...)
	c.Env, c.Dir, c.Stderr = cmd.Env, cmd.Dir, cmd.Stderr
	c.WaitDelay = exitWait
	apart(c)
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
	child := &Child{Frames: jsonrpc.NewStdio(out, stdin, 0), cmd: c, exited: make(chan struct{})}
	if cmd.Tap != nil {
		child.Frames = tapped{child.Frames, cmd.Tap}
	}
	go func() { // joined by End and Kill
		defer close(child.exited)
		_ = c.Wait() // its result is read from ProcessState
	}()
	return child, nil
}

// Exited is closed when the agent has ended.
func (c *Child) Exited() <-chan struct{} { return c.exited }

// ExitCode returns the exit code of an agent that has ended, -1 when a signal
// ended it.
func (c *Child) ExitCode() int { return c.cmd.ProcessState.ExitCode() }

// Kill ends the agent at once, as a crash would, and waits for it.
func (c *Child) Kill() error {
	err := c.cmd.Process.Kill()
	<-c.exited
	if errors.Is(err, os.ErrProcessDone) {
		return nil
	}
	return err
}

// End waits for an agent whose input is closed and kills it if it does not
// end within 5 s.
func (c *Child) End() {
	limit := time.NewTimer(exitWait)
	defer limit.Stop()
	select {
	case <-c.exited:
	case <-limit.C:
		_ = c.Kill()
	}
}

// Process is an agent that was started, and the connection to it.
type Process struct {
	*Client
	child *Child
}

// Start starts an agent as a child process and connects to it over its
// standard streams.
func Start(cmd Command, info Info, h Handlers) (*Process, error) {
	child, err := Spawn(cmd)
	if err != nil {
		return nil, err
	}
	return &Process{Client: Connect(child.Frames, info, h), child: child}, nil
}

// Stop closes the agent's input, waits for it to exit, and kills it if it
// does not. It returns the exit code, -1 when a signal ended it.
func (p *Process) Stop() int {
	if half, ok := p.child.Frames.(jsonrpc.CloseWriter); ok {
		_ = half.CloseWrite()
	}
	p.child.End()
	_ = p.Close()
	return p.child.ExitCode()
}

// Kill ends the agent at once, as a crash would.
func (p *Process) Kill() {
	_ = p.child.Kill()
	_ = p.Close()
}

// PID returns the agent's process id.
func (p *Process) PID() int { return p.child.cmd.Process.Pid }

// Interrupted calls cancel for the session when ctx ends, so that a turn ends
// with an answer, and heard before that. The returned function stops watching.
func (p *Process) Interrupted(ctx context.Context, id string, heard func()) (stop func() bool) {
	return context.AfterFunc(ctx, func() {
		heard()
		_ = p.Cancel(context.WithoutCancel(ctx), id)
	})
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

// CloseWrite closes the agent's input.
func (t tapped) CloseWrite() error {
	if half, ok := t.Frames.(jsonrpc.CloseWriter); ok {
		return half.CloseWrite()
	}
	return t.Close()
}
