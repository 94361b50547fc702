//go:build !linux

package sandbox

import (
	"errors"
	"os/exec"
	"slices"
	"syscall"

	"github.com/berth-dev/berth/core/domain"
)

// state is what the host keeps of a command.
type state struct{}

// system is what the plan of a command needs to know of this machine.
type system struct{ home string }

// prepare makes the process of a checked spec. There is no helper here: the
// command is our own child, the leader of a session or group of its own.
func (s *Sandbox) prepare(by backend, spec Spec) (*Process, error) {
	argv, err := s.confine(by, &spec)
	if err != nil {
		return nil, err
	}
	return &Process{Cmd: &exec.Cmd{
		Path: argv[0], Args: argv, Dir: spec.Dir, Env: append(slices.Clone(spec.Env), EnvMarker+"="+string(by)), SysProcAttr: ownGroup(),
	}}, nil
}

// Start starts the command.
func (p *Process) Start() error {
	if err := p.Cmd.Start(); err != nil {
		return domain.WrapError(domain.Unavailable, err, "the command could not be started")
	}
	return nil
}

// Wait waits for the end of the command and ends what is left of its group.
// A command that ran and failed is no error.
func (p *Process) Wait() (Result, error) {
	err := p.Cmd.Wait()
	p.Close()
	if p.Cmd.ProcessState == nil {
		return Result{}, domain.WrapError(domain.Unavailable, err, "the command was lost")
	}
	res := Result{Code: p.Cmd.ProcessState.ExitCode()}
	if sig, ok := signalOf(p.Cmd.ProcessState); ok {
		res.Code, res.Signal = 128+int(sig), sig
	}
	if errors.Is(err, exec.ErrWaitDelay) {
		return res, err
	}
	return res, nil
}

// Signal passes a signal on to the processes of the command's group.
func (p *Process) Signal(sig syscall.Signal) error { return signalGroup(p.Cmd.Process, sig) }

// Kill ends the processes of the command's group.
func (p *Process) Kill() error { return signalGroup(p.Cmd.Process, syscall.SIGKILL) }

// Close ends what is left of the command's group.
func (p *Process) Close() {
	if p.Cmd.Process != nil {
		signalGroup(p.Cmd.Process, syscall.SIGKILL)
	}
}
