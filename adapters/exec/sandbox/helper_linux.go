package sandbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"
)

// The descriptors of the helper, after the standard streams.
const (
	orderFD = 3 // the order, a file in memory
	hostFD  = 4 // a socket to the host: reports out, its end is the host's end
)

// Main is the helper. It never returns. It leaves by the plain system call:
// there is nothing to flush, and somebody waits.
func Main() {
	if os.Args[0] == probeMarker {
		probeMain()
	}
	unix.CloseOnExec(orderFD)
	unix.CloseOnExec(hostFD)
	h := &helper{host: os.NewFile(hostFD, "host")}
	if err := h.run(); err != nil {
		h.report(failure(err))
		syscall.Exit(126)
	}
	syscall.Exit(h.code)
}

// helper is the state of the helper's process.
type helper struct {
	order order
	host  *os.File
	exe   int // our own image, for the probe
	code  int
	// ending is set by the one that ends us, which reaps all that is left.
	ending atomic.Bool
}

// killed is the exit code of what was killed.
const killed = 128 + int(unix.SIGKILL)

// deniedError is a failure that lies in what the spec named.
type deniedError struct{ error }

func failure(err error) report {
	r := report{Failed: err.Error()}
	var denied deniedError
	r.Denied = errors.As(err, &denied)
	r.Missing = errors.Is(err, errNoProgram)
	return r
}

func (h *helper) report(r report) {
	if raw, err := json.Marshal(r); err == nil {
		h.host.Write(raw) // a host that is gone needs no report
	}
}

// run builds the command's world, starts the command and waits for it.
func (h *helper) run() error {
	raw, err := io.ReadAll(io.NewSectionReader(os.NewFile(orderFD, "order"), 0, 1<<30))
	if err != nil {
		return fmt.Errorf("reading the order: %w", err)
	}
	if err := json.Unmarshal(raw, &h.order); err != nil {
		return fmt.Errorf("reading the order: %w", err)
	}
	o := &h.order
	if h.exe, err = unix.Open("/proc/self/exe", unix.O_PATH|unix.O_CLOEXEC, 0); err != nil {
		return fmt.Errorf("opening our own program: %w", err)
	}
	if o.Namespaces {
		if err := ownNamespaces(o); err != nil {
			return err
		}
	}
	if !o.Namespaces {
		if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
			return fmt.Errorf("adopting the processes of the command: %w", err)
		}
	}
	if err := enterDir(o); err != nil {
		return err
	}
	c, err := newChild(o, h.exe)
	if err != nil {
		return err
	}
	// What the command could send us must not end us.
	signal.Ignore(
		unix.SIGTERM, unix.SIGINT, unix.SIGHUP, unix.SIGQUIT, unix.SIGUSR1, unix.SIGUSR2, unix.SIGPIPE, unix.SIGTTIN, unix.SIGTTOU,
		unix.SIGTSTP, unix.SIGALRM, unix.SIGVTALRM, unix.SIGXCPU, unix.SIGXFSZ,
	)
	pid, err := c.start()
	if err != nil {
		return err
	}
	h.watch()
	return h.wait(pid)
}

// enterDir goes to the command's working directory.
func enterDir(o *order) error {
	fd, err := unix.Open(o.Dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return deniedError{fmt.Errorf("the working directory: %w", err)}
	}
	defer unix.Close(fd)
	if err := o.DirID.check(fd); err != nil {
		return fmt.Errorf("the working directory: %w", err)
	}
	if err := unix.Fchdir(fd); err != nil {
		return deniedError{fmt.Errorf("the working directory: %w", err)}
	}
	return nil
}

// ownNamespaces makes the namespaces we were started in ours.
func ownNamespaces(o *order) error {
	if err := mapIDs(o.UID, o.GID); err != nil {
		return err
	}
	// Nobody in the namespaces looks into us: our memory knows what is outside.
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return fmt.Errorf("closing our memory: %w", err)
	}
	if err := loopbackUp(); err != nil {
		return err
	}
	return buildView(o)
}

// mapIDs makes our own ids known in the user namespace under the same
// numbers, so that a file's owner is who it was.
func mapIDs(uid, gid int) error {
	for _, w := range []struct{ file, text string }{
		{"setgroups", "deny"},
		{"uid_map", fmt.Sprintf("%d %d 1", uid, uid)},
		{"gid_map", fmt.Sprintf("%d %d 1", gid, gid)},
	} {
		if err := os.WriteFile("/proc/self/"+w.file, []byte(w.text), 0); err != nil {
			return fmt.Errorf("mapping our ids: %w", err)
		}
	}
	return nil
}

// watch does what the host says, and ends us when the host ends or closes its
// side. It ends with the process.
func (h *helper) watch() {
	go func() {
		var order [1]byte
		for {
			if n, err := h.host.Read(order[:]); n == 0 || err != nil {
				break
			}
			h.signal(syscall.Signal(order[0]))
		}
		if !h.ending.CompareAndSwap(false, true) {
			return
		}
		if !h.order.Namespaces {
			endDescendants()
		}
		h.takeBack()
		h.report(report{Code: killed, Signal: int(unix.SIGKILL)})
		syscall.Exit(killed)
	}()
}

// signal sends sig to all that runs here.
func (h *helper) signal(sig syscall.Signal) {
	if h.order.Namespaces {
		unix.Kill(-1, sig)
		return
	}
	for _, p := range descendants() {
		unix.Kill(p, sig)
	}
}

// wait reaps until the command's first process ends, and reports how it did.
// What else still runs ends here: with us, or by our hand.
func (h *helper) wait(pid int) error {
	for {
		var ws unix.WaitStatus
		got, err := unix.Wait4(-1, &ws, 0, nil)
		if err == unix.EINTR {
			continue
		}
		if err == nil && got != pid {
			continue
		}
		if !h.ending.CompareAndSwap(false, true) {
			select {} // the command is being killed; watch ends us
		}
		if err != nil {
			return fmt.Errorf("waiting for the command: %w", err)
		}
		r := report{Code: ws.ExitStatus()}
		if ws.Signaled() {
			r = report{Code: 128 + int(ws.Signal()), Signal: int(ws.Signal())}
		}
		h.code = r.Code
		r.Left = h.left()
		if !h.order.Namespaces {
			endDescendants()
		}
		h.report(r)
		runtime.KeepAlive(h.host)
		return nil
	}
}

// left counts the processes that the command left behind and that still run.
func (h *helper) left() int {
	for {
		if got, err := unix.Wait4(-1, nil, unix.WNOHANG, nil); err != unix.EINTR && got <= 0 {
			return len(descendants())
		}
	}
}

// loopbackUp gives the network namespace its own localhost, which test suites
// need. With the host's network it is up already.
func loopbackUp() error {
	s, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("the loopback interface: %w", err)
	}
	defer unix.Close(s)
	ifr, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	if err := unix.IoctlIfreq(s, unix.SIOCGIFFLAGS, ifr); err != nil {
		return nil // no such interface in this kernel
	}
	if ifr.Uint16()&unix.IFF_UP != 0 {
		return nil
	}
	ifr.SetUint16(ifr.Uint16() | unix.IFF_UP)
	if err := unix.IoctlIfreq(s, unix.SIOCSIFFLAGS, ifr); err != nil {
		return fmt.Errorf("the loopback interface: %w", err)
	}
	return nil
}
