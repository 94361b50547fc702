package exec

import (
	"os"
	osexec "os/exec"
	"syscall"
)

// plainProcess is a command without a sandbox.
type plainProcess struct{ cmd *osexec.Cmd }

func newPlain(_ string, s Spec) (Process, error) { return &plainProcess{command(s)}, nil }

// Start starts the command.
func (p *plainProcess) Start(out *os.File) error {
	p.cmd.Stdout, p.cmd.Stderr = out, out
	return p.cmd.Start()
}

// Wait waits for the command.
func (p *plainProcess) Wait() (End, error) {
	err := p.cmd.Wait()
	if p.cmd.ProcessState == nil {
		return End{}, err
	}
	return End{Code: p.cmd.ProcessState.ExitCode()}, nil
}

// Terminate does nothing: nothing here can be asked to end.
func (p *plainProcess) Terminate() error { return nil }

// Kill ends the command.
func (p *plainProcess) Kill() error { return p.cmd.Process.Kill() }

// Close has nothing to wait for.
func (p *plainProcess) Close() error { return nil }

// Supervise is not used here.
func Supervise([]string) (code int, mine bool) { return 0, false }

func signalName(sig syscall.Signal) string { return sig.String() }

// killTree is not needed: there is no sandbox here.
func killTree(int) {}

// drain has nothing to do: without deadlines everything was read.
func drain(*os.File, func([]byte)) {}

func widen(*os.File) {}

func rootsOwn(os.FileInfo) bool { return false }
