//go:build unix

package exec

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	osexec "os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// endLimit is how long the processes a command left behind may take to
	// die before the host goes after them itself.
	endLimit = 300 * time.Millisecond
	// closeLimit is how long Close waits for what was killed.
	closeLimit = 3 * time.Second
)

// plainProcess is a command without a sandbox, alone in a session of its own.
// With a helper, that is the parent of everything the command starts: it
// tells how the command ended and ends the rest.
type plainProcess struct {
	cmd      *osexec.Cmd
	helped   bool
	clean    bool     // the helper told that nothing is left
	lifeline *os.File // open as long as the helper shall let the command run
	status   *os.File // what the helper tells
	theirs   []*os.File

	mu     sync.Mutex
	killed bool
	reaped chan struct{} // closed when cmd was waited for
}

func newPlain(helper string, s Spec) (Process, error) {
	p := &plainProcess{cmd: command(s), reaped: make(chan struct{})}
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if helper == "" {
		return p, nil
	}
	if len(os.Args) > 0 && os.Args[0] == superviseName {
		// We are what was to be the helper and went on as a program: starting
		// another would never end.
		return nil, errors.New("exec: this program was started as the helper of a command and did not call Supervise")
	}
	life, lifeline, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("exec: pipe to the helper: %w", err)
	}
	status, tell, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("exec: pipe from the helper: %w", err), life.Close(), lifeline.Close())
	}
	p.helped, p.lifeline, p.status, p.theirs = true, lifeline, status, []*os.File{life, tell}
	p.cmd.Args = append([]string{superviseName, strconv.FormatInt(s.Limits.MemoryBytes, 10), p.cmd.Path}, p.cmd.Args...)
	p.cmd.Path = helper
	p.cmd.ExtraFiles = p.theirs
	return p, nil
}

// Start starts the command, or the helper that does.
func (p *plainProcess) Start(out *os.File) error {
	p.cmd.Stdout, p.cmd.Stderr = out, out
	err := p.cmd.Start()
	for _, f := range p.theirs {
		_ = f.Close()
	}
	p.theirs = nil
	if err != nil {
		return err
	}
	go func() { // ends with the process; Close waits for it
		_ = p.cmd.Wait() // how it ended is in its ProcessState
		close(p.reaped)
	}()
	return nil
}

// Wait returns when the command has ended.
func (p *plainProcess) Wait() (End, error) {
	if !p.helped {
		<-p.reaped
		end := endOf(p.cmd.ProcessState.Sys().(syscall.WaitStatus))
		end.Left = len(p.family().kill())
		return end, nil
	}
	end, known, err := p.listen()
	limit := time.NewTimer(endLimit)
	defer limit.Stop()
	select {
	case <-p.reaped:
		if !known { // someone killed the helper
			end = endOf(p.cmd.ProcessState.Sys().(syscall.WaitStatus))
			end.Left = len(p.family().kill())
		}
	case <-limit.C:
		_ = p.Kill()
		_ = p.Kill()
	}
	return end, err
}

// listen reads what the helper tells until the command has ended.
func (p *plainProcess) listen() (end End, known bool, err error) {
	lines := bufio.NewScanner(p.status)
	for lines.Scan() {
		word, rest, _ := strings.Cut(lines.Text(), " ")
		n, _ := strconv.Atoi(rest)
		switch word {
		case "exit":
			end, known = End{Code: n}, true
		case "signal":
			end, known = End{Code: 128 + n, Signal: syscall.Signal(n)}, true
		case "error":
			return End{Code: 126}, true, syscall.Errno(n)
		case "left":
			end.Left = n
			p.mu.Lock()
			p.clean = known && orphansAdopted
			p.mu.Unlock()
			return end, known, nil
		}
	}
	return end, known, nil
}

// family is what is known of the command's processes. What we start is the
// leader of a session, whose number stays its own as long as one of it lives.
func (p *plainProcess) family() family {
	f := family{root: p.cmd.Process.Pid, session: p.cmd.Process.Pid, spare: p.helped}
	if closed(p.reaped) {
		f.root = 0 // the number may be another's by now
	}
	return f
}

// Terminate sends SIGTERM to everything the command started, and wakes what
// is stopped so that it hears it.
func (p *plainProcess) Terminate() error {
	p.family().signal(syscall.SIGTERM)
	p.family().signal(syscall.SIGCONT)
	return nil
}

// Kill ends everything. The helper does it when its lifeline is cut; if it
// cannot, because someone stopped it, asking again goes past it.
func (p *plainProcess) Kill() error {
	p.mu.Lock()
	first := !p.killed
	p.killed = true
	p.mu.Unlock()
	if p.helped && first {
		return p.lifeline.Close()
	}
	p.family().kill()
	if p.helped {
		p.family().killRoot()
	}
	return nil
}

// Close waits until nothing lives.
func (p *plainProcess) Close() error {
	defer p.release()
	if p.cmd.Process == nil {
		return nil
	}
	if p.helped {
		_ = p.Kill()
	}
	limit := time.NewTimer(closeLimit)
	defer limit.Stop()
	again := time.NewTicker(endLimit)
	defer again.Stop()
	for {
		select {
		case <-p.reaped:
			if !p.clean {
				p.family().kill()
			}
			return nil
		case <-again.C:
			_ = p.Kill()
		case <-limit.C:
			return fmt.Errorf("exec: process %d does not end", p.cmd.Process.Pid)
		}
	}
}

// release closes our ends of the pipes.
func (p *plainProcess) release() {
	for _, f := range p.theirs {
		_ = f.Close()
	}
	if p.helped {
		p.mu.Lock()
		cut := p.killed
		p.killed = true
		p.mu.Unlock()
		if !cut {
			_ = p.lifeline.Close()
		}
		_ = p.status.Close()
	}
}

// endOf translates what the system says.
func endOf(ws syscall.WaitStatus) End {
	if ws.Signaled() {
		return End{Code: 128 + int(ws.Signal()), Signal: ws.Signal()}
	}
	return End{Code: ws.ExitStatus()}
}

// signalName is the name of a signal, such as SIGKILL.
func signalName(sig syscall.Signal) string {
	if name := unix.SignalName(sig); name != "" {
		return name
	}
	return "signal " + strconv.Itoa(int(sig))
}
