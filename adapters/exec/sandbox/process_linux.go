package sandbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/berth-dev/berth/core/domain"
)

// The backends of Linux by their modes; plain is no confinement at all.
const (
	byNamespaces backend = Namespaces
	byBubblewrap backend = Bubblewrap
	byLandlock   backend = Landlock
	plain        backend = None
)

// state is what the host keeps of a command.
type state struct {
	box     *Sandbox
	by      backend
	spec    Spec
	plan    *plan
	host    *os.File // our end of the socket to the helper
	child   []*os.File
	slot    *os.File   // lock on the caches of this command
	remove  string     // a directory of this command alone
	closing sync.Mutex // guards done and the closing of host
	done    bool
}

// prepare makes the process of a checked spec.
func (s *Sandbox) prepare(by backend, spec Spec) (*Process, error) {
	p := &Process{state: state{box: s, by: by, spec: spec}}
	o, err := p.orderFor(by)
	if err == nil {
		err = p.command(by, o)
	}
	if err != nil {
		p.Close()
		return nil, err
	}
	return p, nil
}

// orderFor works out what by will make of the command.
func (p *Process) orderFor(by backend) (order, error) {
	s := p.box
	if by == plain {
		o := s.order(&p.spec)
		o.Restrict = restrict{}
		return o, nil
	}
	keep, err := p.lockSlot(by)
	if err != nil {
		return order{}, err
	}
	if p.plan, err = s.plan(&p.spec, keep); err != nil {
		return order{}, err
	}
	var o order
	switch by {
	case byLandlock:
		if o, err = p.landlocked(); err != nil {
			return o, err
		}
	case byBubblewrap:
		o = s.wrapped(&p.spec, p.plan)
	default:
		o = s.namespaced(&p.spec, p.plan)
	}
	o.After = p.after()
	return o, nil
}

// slots is how many commands at a time keep what they change in caches.
const slots = 8

// lockSlot takes a place for the changes of cache copies, which only one
// command at a time may use. Without one they are forgotten.
func (p *Process) lockSlot(by backend) (string, error) {
	dir := p.box.private(&p.spec)
	if dir == "" {
		return "", nil
	}
	if err := p.box.makePrivate(dir); err != nil {
		return "", err
	}
	if by != byNamespaces {
		return "", nil
	}
	for i := range slots {
		slot := filepath.Join(dir, "caches", strconv.Itoa(i))
		if err := os.MkdirAll(slot, 0o700); err != nil {
			return "", domain.WrapError(domain.Unavailable, err, "the sandbox cannot keep its files in "+dir)
		}
		f, err := os.OpenFile(filepath.Join(slot, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
		if err != nil {
			return "", domain.WrapError(domain.Unavailable, err, "the sandbox cannot keep its files in "+dir)
		}
		if unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) == nil {
			p.slot = f
			return slot, nil
		}
		f.Close()
	}
	return "", nil
}

// cloneFlags are the namespaces of a command.
func cloneFlags(network bool) uintptr {
	flags := uintptr(unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS)
	if !network {
		flags |= unix.CLONE_NEWNET
	}
	return flags
}

// helperCaps are the capabilities over its own namespaces that the helper
// keeps when it becomes our binary.
func helperCaps() []uintptr {
	return []uintptr{
		unix.CAP_SYS_ADMIN, unix.CAP_SETPCAP, unix.CAP_NET_ADMIN, unix.CAP_SYS_CHROOT, unix.CAP_KILL,
		unix.CAP_DAC_OVERRIDE, unix.CAP_FOWNER, unix.CAP_CHOWN, unix.CAP_FSETID,
	}
}

// command makes the exec.Cmd of the helper.
func (p *Process) command(by backend, o order) error {
	raw, err := json.Marshal(o)
	if err != nil {
		return fmt.Errorf("writing the order: %w", err)
	}
	fd, err := unix.MemfdCreate("order", unix.MFD_CLOEXEC)
	if err != nil {
		return domain.WrapError(domain.Unavailable, err, "no memory file for the command's order")
	}
	file := os.NewFile(uintptr(fd), "order")
	p.child = append(p.child, file)
	if _, err := file.Write(raw); err != nil {
		return domain.WrapError(domain.Unavailable, err, "no memory for the command's order")
	}
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return domain.WrapError(domain.Unavailable, err, "no socket to the command's helper")
	}
	p.host = os.NewFile(uintptr(pair[0]), "helper")
	p.child = append(p.child, os.NewFile(uintptr(pair[1]), "host"))

	p.Cmd = p.box.helperCmd()
	p.Cmd.Dir = "/"
	p.Cmd.Env = []string{"GOMAXPROCS=2", "GOGC=off", "GOTRACEBACK=none"}
	p.Cmd.ExtraFiles = p.child
	p.Cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	switch by {
	case byNamespaces:
		p.Cmd.SysProcAttr.Cloneflags = cloneFlags(p.spec.Network)
		p.Cmd.SysProcAttr.AmbientCaps = helperCaps()
	case byBubblewrap:
		p.box.wrap(p)
	}
	return nil
}

// helperCmd runs our own binary as the helper. The kernel's link to the
// running image leads to that image even if its name is another file by now.
func (s *Sandbox) helperCmd() *exec.Cmd {
	if len(s.cfg.Helper) > 0 {
		cmd := exec.Command(s.cfg.Helper[0], s.cfg.Helper[1:]...)
		cmd.Args = append(cmd.Args, marker)
		return cmd
	}
	return &exec.Cmd{Path: "/proc/self/exe", Args: []string{marker}}
}

// Start starts the command. It returns before the command runs; Wait tells
// whether it could.
func (p *Process) Start() error {
	err := p.Cmd.Start()
	for _, f := range p.child {
		f.Close()
	}
	p.child = nil
	if err != nil {
		return domain.WrapError(domain.Unavailable, err, "the command could not be started")
	}
	return nil
}

// Wait waits for the end of the command and of all that it started, and for
// the streams that Cmd copies. The error says that the command did not run:
// NotFound when there is no such program, Denied, or Unavailable. A command
// that ran and failed is no error.
func (p *Process) Wait() (Result, error) {
	werr := p.Cmd.Wait()
	rep, told := p.report()
	res := Result{Code: rep.Code, Signal: syscall.Signal(rep.Signal), Left: rep.Left}
	res.Undone, res.Kept = p.undo()
	p.Close()
	switch {
	case told && rep.Failed != "":
		return res, rep.err()
	case told:
	case p.Cmd.ProcessState == nil:
		return res, domain.WrapError(domain.Unavailable, werr, "the command was lost")
	default:
		// Killed from outside, before it could tell.
		ws, _ := p.Cmd.ProcessState.Sys().(syscall.WaitStatus)
		res.Code, res.Signal = 128+int(syscall.SIGKILL), syscall.SIGKILL
		if ws.Exited() && ws.ExitStatus() != res.Code {
			return res, domain.Errorf(domain.Unavailable, "the command's helper ended with code %d and told nothing", ws.ExitStatus())
		}
	}
	if errors.Is(werr, exec.ErrWaitDelay) {
		return res, werr
	}
	return res, nil
}

// err is the failure that the helper reported.
func (r report) err() error {
	switch {
	case r.Missing:
		return domain.Errorf(domain.NotFound, "%s", r.Failed)
	case r.Denied:
		return domain.Errorf(domain.Denied, "the command was not started: %s", r.Failed)
	}
	return domain.Errorf(domain.Unavailable, "the command was not started: %s", r.Failed)
}

// report reads what the helper told. The helper is gone by now, so there is
// no waiting.
func (p *Process) report() (report, bool) {
	var rep report
	raw := make([]byte, 16<<10)
	n, err := readFull(int(p.host.Fd()), raw)
	if err != nil || json.Unmarshal(raw[:n], &rep) != nil {
		return rep, false
	}
	return rep, true
}

// Signal sends a signal to all processes of the command.
func (p *Process) Signal(sig syscall.Signal) error {
	if sig == syscall.SIGKILL {
		return p.Kill()
	}
	_, err := p.host.Write([]byte{byte(sig)})
	return err
}

// Kill ends the command and all that it started.
func (p *Process) Kill() error {
	if p.by == byNamespaces || p.by == byBubblewrap {
		return p.Cmd.Process.Kill()
	}
	// Without a namespace the helper has to do it; the end of our side of the
	// socket makes it.
	p.closing.Lock()
	defer p.closing.Unlock()
	if p.done {
		return nil // Wait has seen its end
	}
	return unix.Shutdown(int(p.host.Fd()), unix.SHUT_WR)
}

// undo takes back what protected names the command made.
func (p *Process) undo() ([]string, string) {
	if p.plan == nil {
		return nil, ""
	}
	u := &undoing{names: p.box.system.names, state: p.box.cfg.State}
	for _, r := range p.plan.before {
		u.root(r, p.spec.AllowProtected)
	}
	return u.undone, u.kept
}

// Close ends the command if it still runs and lets go of everything. Wait
// closes too; closing again does nothing.
func (p *Process) Close() {
	p.closing.Lock()
	defer p.closing.Unlock()
	if p.done {
		return
	}
	p.done = true
	for _, f := range p.child {
		f.Close()
	}
	if p.host != nil {
		p.host.Close()
	}
	if p.plan != nil {
		p.plan.close()
	}
	if p.slot != nil {
		p.slot.Close()
	}
	if p.remove != "" {
		os.RemoveAll(p.remove)
	}
}
