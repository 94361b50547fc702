package sandbox

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// bait is what the probe tries to reach. It exists, and whoever is not
// confined can reach it.
type bait struct {
	Root      string // a root: writing here must work
	Outside   string // a file outside the roots
	Hidden    string // a file in a hidden directory inside the root
	Protected string // a protected file inside the root
	Hooks     string // a directory of hooks inside the root
	Ports     [2]int // TCP and UDP on 127.0.0.1
	Unix      string // a listener's path
	Abstract  string // a listener's name, without the zero byte
	Host      int    // our process
}

// probeMain does what must fail and tells what did not. It never returns.
func probeMain() {
	var b bait
	if len(os.Args) < 2 || json.Unmarshal([]byte(os.Args[1]), &b) != nil {
		syscall.Exit(2)
	}
	raw, err := json.Marshal(b.escapes())
	if err != nil {
		syscall.Exit(2)
	}
	unix.Write(1, raw)
	syscall.Exit(0)
}

// attempt is one thing that must fail, and what is open if it does not.
type attempt struct {
	lack string
	name string
	try  func() error // nil means that it worked
}

// escapes tries everything and returns what worked: what is lacking, and by
// what that was seen.
func (b *bait) escapes() map[string][]string {
	open := map[string][]string{}
	for _, a := range b.attempts() {
		if a.try() == nil {
			open[a.lack] = append(open[a.lack], a.name)
		}
	}
	// What must work: a sandbox in which nothing works proves nothing.
	if err := os.WriteFile(filepath.Join(b.Root, "written"), []byte("x"), 0o600); err != nil {
		open[useless] = append(open[useless], "writing in a root: "+err.Error())
	}
	if _, err := os.ReadDir("/usr"); err != nil {
		open[useless] = append(open[useless], "reading the system: "+err.Error())
	}
	return open
}

// useless is what is said of a sandbox in which commands cannot work.
const useless = "useless"

func (b *bait) attempts() []attempt {
	return []attempt{
		{lackFiles, "read a file outside", func() error { return tryOpen(b.Outside, unix.O_RDONLY) }},
		{lackFiles, "write a file outside", func() error { return tryOpen(b.Outside, unix.O_WRONLY) }},
		{lackFiles, "make a file outside", func() error { return tryOpen(b.Outside+".new", unix.O_WRONLY|unix.O_CREAT) }},
		{lackFiles, "make a file in /usr", func() error { return tryOpen("/usr/.berth-probe", unix.O_WRONLY|unix.O_CREAT) }},
		{lackFiles, "inherit a descriptor", inherited},
		{lackMetadata, "chmod a file outside", func() error { return os.Chmod(b.Outside, 0o600) }},
		{lackMetadata, "touch a file outside", func() error { return unix.Utimes(b.Outside, make([]unix.Timeval, 2)) }},
		{lackHidden, "read a hidden file", func() error { return tryOpen(b.Hidden, unix.O_RDONLY) }},
		{lackProtected, "write a protected file", func() error { return tryOpen(b.Protected, unix.O_WRONLY) }},
		{lackProtected, "make a hook", func() error { return tryOpen(filepath.Join(b.Hooks, "pre-commit"), unix.O_WRONLY|unix.O_CREAT) }},
		{lackProtected, "move a repository away", func() error {
			git := filepath.Dir(b.Hooks)
			if err := os.Rename(git, git+"-moved"); err != nil {
				return err
			}
			return os.Rename(git+"-moved", git)
		}},
		{lackNetwork, "connect by TCP", func() error {
			return tryConnect(unix.SOCK_STREAM, &unix.SockaddrInet4{Port: b.Ports[0], Addr: [4]byte{127, 0, 0, 1}})
		}},
		{lackNetwork, "send by UDP", func() error { return trySend(b.Ports[1]) }},
		{lackSockets, "connect to a socket's path", func() error { return tryConnect(unix.SOCK_STREAM, &unix.SockaddrUnix{Name: b.Unix}) }},
		{lackSockets, "connect to an abstract socket", func() error { return tryConnect(unix.SOCK_STREAM, &unix.SockaddrUnix{Name: "@" + b.Abstract}) }},
		{lackProcesses, "signal another process", func() error { return unix.Kill(b.Host, 0) }},
		{lackProcesses, "read another process's environment", func() error { return tryOpen(fmt.Sprintf("/proc/%d/environ", b.Host), unix.O_RDONLY) }},
		{lackProcesses, "signal the first process", func() error {
			if os.Getppid() == 1 {
				return unix.EPERM // the first process of a namespace cannot be ended from within it
			}
			return unix.Kill(os.Getppid(), 0)
		}},
		{lackProcesses, "read the helper's memory", func() error { return tryOpen(fmt.Sprintf("/proc/%d/mem", os.Getppid()), unix.O_RDONLY) }},
		{lackKernel, "gain privileges", func() error {
			if n, err := unix.PrctlRetInt(unix.PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0); err != nil || n != 1 {
				return nil
			}
			return unix.EPERM
		}},
		{lackKernel, "use a capability", capable},
		{lackKernel, "make a user namespace", func() error { return unix.Unshare(unix.CLONE_NEWUSER) }},
		{lackKernel, "mount", func() error { return unix.Mount("none", "/tmp", "tmpfs", 0, "") }},
		{lackKernel, "trace", func() error { return tryCall(unix.SYS_PTRACE, 0x4206, 1, 0) }}, // PTRACE_SEIZE
		{lackKernel, "use the keyring", func() error { return tryCall(unix.SYS_KEYCTL, 0, ^uintptr(2), 0) }},
		{lackKernel, "use io_uring", func() error { return tryKernel(unix.SYS_IO_URING_SETUP) }},
		{lackKernel, "use bpf", func() error { return tryKernel(unix.SYS_BPF) }},
		{lackKernel, "use userfaultfd", func() error { return tryKernel(unix.SYS_USERFAULTFD) }},
		{lackKernel, "use perf", func() error { return tryKernel(unix.SYS_PERF_EVENT_OPEN) }},
		{lackKernel, "use a packet socket", func() error {
			_, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW, 0)
			return err
		}},
		{lackKernel, "type into the terminal", func() error {
			b := byte('x')
			_, _, e := syscall.Syscall(unix.SYS_IOCTL, 0, unix.TIOCSTI, uintptr(unsafe.Pointer(&b)))
			if e == unix.EPERM {
				return e
			}
			return nil // any other answer comes from the terminal's driver, not from the filter
		}},
	}
}

func tryOpen(path string, flags int) error {
	fd, err := unix.Open(path, flags|unix.O_CLOEXEC|unix.O_NONBLOCK, 0o600)
	if err == nil {
		unix.Close(fd)
	}
	return err
}

// inherited fails unless a descriptor besides the standard streams was open
// when the program began. The runtime's own are made without being inherited.
func inherited() error {
	for fd := 3; fd < 256; fd++ {
		flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0)
		if err == nil && flags&unix.FD_CLOEXEC == 0 {
			return nil
		}
	}
	return unix.EBADF
}

func tryConnect(kind int, to unix.Sockaddr) error {
	family := unix.AF_UNIX
	if _, ok := to.(*unix.SockaddrInet4); ok {
		family = unix.AF_INET
	}
	fd, err := unix.Socket(family, kind|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return unix.Connect(fd, to)
}

// trySend sends a packet. That it left proves nothing: it counts as failed
// only if the network said so. The host looks whether it arrived.
func trySend(port int) error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	unix.Sendto(fd, []byte("x"), 0, &unix.SockaddrInet4{Port: port, Addr: [4]byte{127, 0, 0, 1}})
	return unix.EPERM
}

func tryCall(number, a, b, c uintptr) error {
	if _, _, e := syscall.Syscall(number, a, b, c); e != 0 {
		return e
	}
	return nil
}

// tryKernel calls something with no arguments that make sense: only the
// filter's answer counts as a failure.
func tryKernel(number uintptr) error {
	_, _, e := syscall.Syscall6(number, 0, 0, 0, 0, 0, 0)
	if e == unix.EPERM || e == unix.ENOSYS {
		return e
	}
	return nil
}

// capable fails unless the process has a capability.
func capable() error {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if err := unix.Capget(&header, &data[0]); err != nil {
		return nil
	}
	for _, d := range data {
		if d.Effective|d.Permitted|d.Inheritable != 0 {
			return nil
		}
	}
	return unix.EPERM
}
