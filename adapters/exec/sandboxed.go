package exec

import (
	"context"
	"os"
	"sync"
	"syscall"

	"github.com/berth-dev/berth/adapters/exec/sandbox"
	"github.com/berth-dev/berth/core/domain"
)

// Sandboxed is the Confiner that puts commands into real sandboxes.
type Sandboxed struct {
	// Of returns the sandbox of an agent's commands, as of now. It is asked
	// again for each call and must keep what it made.
	Of func(agent string) *sandbox.Sandbox
	// Otherwise runs the commands that nobody wants to be confined, and those
	// that nothing can confine once someone allowed them.
	Otherwise Plain
}

var _ Confiner = Sandboxed{}

// Posture returns how the agent's sandbox holds commands.
func (b Sandboxed) Posture(ctx context.Context, agent string) domain.Posture {
	return b.Of(agent).Posture(ctx)
}

// Known returns how the agent's sandbox holds commands, if that is known.
func (b Sandboxed) Known(agent string) (domain.Posture, bool) { return b.Of(agent).Known() }

// Command prepares a command in the sandbox of its session's agent.
func (b Sandboxed) Command(ctx context.Context, s Spec) (Process, error) {
	box := b.Of(s.Session.Agent)
	posture := box.Posture(ctx)
	switch {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case posture.Confined():
	case s.Confined:
		return nil, domain.Errorf(domain.Unavailable, "The sandbox does not work any more (%s); call again, and the user is asked about running without one", posture.Reason)
	default:
		return b.Otherwise.Command(ctx, s)
	}
	p, err := box.Command(sandbox.Spec{
		Argv: s.Argv, Env: s.Env, Dir: s.Dir, DirFile: s.DirFile, Writable: s.Roots, ReadOnly: s.ReadOnly, Network: s.Network,
		Readable: s.Readable, Extra: s.Extra, AllowProtected: s.AllowProtected,
		Limits: sandbox.Limits{Processes: s.Limits.Processes, MemoryBytes: s.Limits.MemoryBytes},
	})
	if err != nil {
		return nil, err
	}
	return &boxed{p: p, doubt: box.Doubt}, nil
}

// boxed is a command in a sandbox.
type boxed struct {
	p       *sandbox.Process
	doubt   func() // the sandbox could not be built
	started bool

	mu    sync.Mutex
	asked bool // Kill was called
	over  bool // Wait has returned
}

// Start starts the command.
func (b *boxed) Start(out *os.File) error {
	b.p.Cmd.Stdout, b.p.Cmd.Stderr = out, out
	err := b.p.Start()
	b.started = err == nil
	return err
}

// Wait waits for the end of everything in the sandbox, which comes with the
// end of the command.
func (b *boxed) Wait() (End, error) {
	r, err := b.p.Wait()
	if domain.HasCode(err, domain.Unavailable) {
		b.doubt()
	}
	b.mu.Lock()
	b.over = true
	b.mu.Unlock()
	return End{Code: r.Code, Signal: r.Signal, Left: r.Left, Undone: r.Undone, Kept: r.Kept}, err
}

// Terminate asks everything in the sandbox to end.
func (b *boxed) Terminate() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.over {
		return nil
	}
	return b.p.Signal(syscall.SIGTERM)
}

// Kill ends the sandbox. Asked again, it ends what is in it one by one: where
// the helper does that, someone may have stopped the helper.
func (b *boxed) Kill() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.over {
		return nil
	}
	if b.asked {
		killTree(b.p.Cmd.Process.Pid)
	}
	b.asked = true
	return b.p.Kill()
}

// Close gives up what the sandbox took. What was started has ended by now.
func (b *boxed) Close() error {
	if !b.started {
		b.p.Close()
	}
	return nil
}
