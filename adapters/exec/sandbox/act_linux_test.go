package sandbox

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// act is what this binary does inside a sandbox: it tries one thing and ends
// with 0 if it worked, with 1 and the error if not.
func act(what string, args []string) int {
	do, ok := acts()[what]
	if !ok {
		fmt.Println("no such act")
		return 3
	}
	if err := do(args); err != nil {
		fmt.Println(err)
		return 1
	}
	return 0
}

func raw(number uintptr, args ...uintptr) error {
	var a [6]uintptr
	copy(a[:], args)
	if _, _, e := syscall.Syscall6(number, a[0], a[1], a[2], a[3], a[4], a[5]); e != 0 {
		return e
	}
	return nil
}

func acts() map[string]func([]string) error {
	return map[string]func([]string) error{
		"tcp": func(a []string) error { return dial("tcp", a[0]) },
		"udp": func(a []string) error { return dial("udp", a[0]) },
		"unix": func(a []string) error {
			return dial("unix", a[0])
		},
		"resolve": func(a []string) error {
			_, err := net.LookupHost(a[0])
			return err
		},
		"ptrace": func(a []string) error {
			pid, _ := strconv.Atoi(a[0])
			return raw(unix.SYS_PTRACE, unix.PTRACE_ATTACH, uintptr(pid))
		},
		"vm-read": func(a []string) error {
			pid, _ := strconv.Atoi(a[0])
			return raw(unix.SYS_PROCESS_VM_READV, uintptr(pid), 0, 0, 0, 0, 0)
		},
		"kill": func(a []string) error {
			pid, _ := strconv.Atoi(a[0])
			return unix.Kill(pid, 0)
		},
		"tiocsti": func([]string) error {
			b := byte('x')
			return raw(unix.SYS_IOCTL, 0, unix.TIOCSTI, uintptr(unsafe.Pointer(&b)))
		},
		"tty": func([]string) error {
			f, err := os.OpenFile("/dev/tty", os.O_RDWR, 0)
			if err == nil {
				f.Close()
			}
			return err
		},
		"unshare":     func([]string) error { return unix.Unshare(unix.CLONE_NEWUSER) },
		"clone":       func([]string) error { return cloneInto(unix.CLONE_NEWUSER) },
		"clone-net":   func([]string) error { return cloneInto(unix.CLONE_NEWNET) },
		"clone3":      func([]string) error { return raw(unix.SYS_CLONE3, 0, 0) },
		"setns":       func([]string) error { return raw(unix.SYS_SETNS, 0, 0) },
		"mount":       func([]string) error { return unix.Mount("x", "/tmp", "tmpfs", 0, "") },
		"umount":      func([]string) error { return unix.Unmount("/tmp", unix.MNT_DETACH) },
		"fsopen":      func([]string) error { _, err := unix.Fsopen("tmpfs", 0); return err },
		"open-tree":   func([]string) error { _, err := unix.OpenTree(unix.AT_FDCWD, "/", 0); return err },
		"pivot-root":  func([]string) error { return unix.PivotRoot(".", ".") },
		"chroot":      func([]string) error { return unix.Chroot("/") },
		"io-uring":    func([]string) error { return raw(unix.SYS_IO_URING_SETUP, 1, 0) },
		"keyctl":      func([]string) error { return raw(unix.SYS_KEYCTL, 0, ^uintptr(2), 0) },
		"add-key":     func([]string) error { return raw(unix.SYS_ADD_KEY) },
		"bpf":         func([]string) error { return raw(unix.SYS_BPF) },
		"perf":        func([]string) error { return raw(unix.SYS_PERF_EVENT_OPEN) },
		"userfaultfd": func([]string) error { return raw(unix.SYS_USERFAULTFD) },
		"module":      func([]string) error { return raw(unix.SYS_INIT_MODULE) },
		"kexec":       func([]string) error { return raw(unix.SYS_KEXEC_LOAD) },
		"reboot":      func([]string) error { return raw(unix.SYS_REBOOT) },
		"handle":      func([]string) error { return raw(unix.SYS_OPEN_BY_HANDLE_AT) },
		"packet":      func([]string) error { return socketOf(unix.AF_PACKET, unix.SOCK_RAW, 0) },
		"vsock":       func([]string) error { return socketOf(unix.AF_VSOCK, unix.SOCK_STREAM, 0) },
		"alg":         func([]string) error { return socketOf(unix.AF_ALG, unix.SOCK_SEQPACKET, 0) },
		"netlink":     func([]string) error { return socketOf(unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_KOBJECT_UEVENT) },
		"raw":         func([]string) error { return socketOf(unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_ICMP) },
		"mknod":       func(a []string) error { return unix.Mknod(a[0], unix.S_IFBLK|0o600, int(unix.Mkdev(8, 0))) },
		"setuid": func([]string) error {
			if err := unix.Setresuid(4711, 4711, 4711); err != nil {
				return err
			}
			return nil
		},
		"sysctl": func([]string) error { return os.WriteFile("/proc/sys/kernel/core_pattern", []byte("core"), 0) },
		"descriptors": func([]string) error {
			list, err := os.ReadDir("/proc/self/fd")
			if err != nil {
				return err
			}
			for _, e := range list {
				fd, _ := strconv.Atoi(e.Name())
				if flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); fd > 2 && err == nil && flags&unix.FD_CLOEXEC == 0 {
					return nil // one that we did not open
				}
			}
			return unix.EBADF
		},
		"forks": func(a []string) error {
			most, _ := strconv.Atoi(a[0])
			n := 0
			for n < most && exec.Command("/bin/sleep", "100").Start() == nil {
				n++
			}
			fmt.Println(n)
			return nil
		},
		"serve": func([]string) error {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				return err
			}
			go func() {
				if c, err := l.Accept(); err == nil {
					c.Close()
				}
			}()
			return dial("tcp", l.Addr().String())
		},
		"host":      host,
		"replaced":  replaced,
		"forgetful": forgetful,
	}
}

func cloneInto(flags uintptr) error {
	cmd := exec.Command("/bin/true")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: flags}
	return cmd.Run()
}

func socketOf(family, kind, protocol int) error {
	fd, err := unix.Socket(family, kind, protocol)
	if err == nil {
		unix.Close(fd)
	}
	return err
}

func dial(network, address string) error {
	c, err := net.Dial(network, address)
	if err != nil {
		return err
	}
	defer c.Close()
	c.Write([]byte("x")) // a packet is only seen by its arrival
	return nil
}

// host is a host that starts a command, says so, and waits to be killed.
func host(args []string) error {
	s := New(Config{Mode: args[0], Protected: []string{".envrc"}})
	s.breaks.bwrap = os.Getenv("BERTH_TEST_BWRAP")
	p, err := s.Command(Spec{
		Argv: []string{"/bin/bash", "-c", args[2]}, Dir: args[1], Writable: []string{args[1]}, Env: []string{"PATH=/usr/bin:/bin"},
	})
	if err != nil {
		return err
	}
	out, err := p.Cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := p.Start(); err != nil {
		return err
	}
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		fmt.Println(lines.Text())
		if strings.Contains(lines.Text(), "ready") {
			break
		}
	}
	select {}
}

// replaced is a host whose own file becomes another program.
func replaced(args []string) error {
	root, self := args[0], args[1]
	if err := os.WriteFile(self+".new", []byte("#!/bin/sh\necho planted\n"), 0o755); err != nil {
		return err
	}
	if err := os.Rename(self+".new", self); err != nil {
		return err
	}
	p, err := New(Config{Mode: Namespaces}).Command(Spec{Argv: []string{"/bin/echo", "still ours"}, Dir: root, Writable: []string{root}})
	if err != nil {
		return err
	}
	defer p.Close()
	p.Cmd.Stdout = os.Stdout
	if err := p.Start(); err != nil {
		return err
	}
	_, err = p.Wait()
	return err
}

// forgetful is a program that starts commands and forgets to call Main; its
// helper ends up here again.
func forgetful(args []string) error {
	f, err := os.OpenFile(args[0], os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	f.WriteString("start\n")
	f.Close()
	dir := filepath.Dir(args[0])
	s := New(Config{Mode: None, Helper: []string{"/proc/self/exe", "act", "forgetful", args[0]}})
	p, err := s.Command(Spec{Argv: []string{"/bin/true"}, Dir: dir, Writable: []string{dir}})
	if err != nil {
		return err
	}
	defer p.Close()
	if err := p.Start(); err != nil {
		return err
	}
	_, err = p.Wait()
	return err
}
