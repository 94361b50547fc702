package sandbox

import (
	"errors"
	"fmt"
	"math"
	"os"
	"runtime"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

var errNoProgram = errors.New("there is no such program")

// child is all that the command's process needs between its fork and its
// program. It is made before, because after the fork nothing may be allocated:
// the process has one thread of a Go program and no Go runtime.
//
// The rights are given up there and not in the helper, so that the helper
// keeps its own: it outlives a fork bomb and can always end the command.
type child struct {
	path    *byte
	argv    **byte
	envp    **byte
	exe     int // runs this in place of path unless -1
	rlimits []rlimit
	caps    bool
	lastCap uintptr
	ruleset int
	filter  *unix.SockFprog
	fail    [2]int // a pipe that tells which step failed; closed by success
	header  unix.CapUserHeader
	nothing [2]unix.CapUserData
	action  [4]uint64 // a sigaction of zeros: the default
	message [2]uint64 // step, error
	empty   [1]byte

	keep []any // what the pointers above point into
}

type rlimit struct {
	resource uintptr
	value    unix.Rlimit
}

// The steps that can fail, in order.
const (
	stepSession uint64 = iota
	stepLimits
	stepCaps
	stepPrivileges
	stepLandlock
	stepDescriptors
	stepSignals
	stepFilter
	stepProgram
)

var stepNames = [...]string{
	"a session of its own", "the limits", "giving up capabilities", "giving up privileges", "Landlock",
	"closing descriptors", "resetting signals", "the system call filter", "starting the program",
}

// newChild prepares o's command.
func newChild(o *order, exe int) (*child, error) {
	c := &child{exe: -1, ruleset: -1, caps: o.Restrict.Caps, rlimits: rlimitsOf(o)}
	path, args := o.Argv[0], o.Argv
	if o.Self {
		c.exe = exe
		args = append([]string{probeMarker}, o.Argv...)
	}
	argv, err := syscall.SlicePtrFromStrings(args)
	if err != nil {
		return nil, err
	}
	envp, err := syscall.SlicePtrFromStrings(o.Env)
	if err != nil {
		return nil, err
	}
	if c.path, err = syscall.BytePtrFromString(path); err != nil {
		return nil, err
	}
	c.argv, c.envp = &argv[0], &envp[0]
	if c.ruleset, err = rulesetFor(&o.Restrict, c.exe); err != nil {
		return nil, err
	}
	if o.Restrict.Filter {
		program := filterFor(&o.Restrict)
		c.filter = &unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}
		c.keep = append(c.keep, program)
	}
	c.header.Version = unix.LINUX_CAPABILITY_VERSION_3
	c.lastCap = lastCap()
	if err := unix.Pipe2(c.fail[:], unix.O_CLOEXEC); err != nil {
		return nil, fmt.Errorf("a pipe: %w", err)
	}
	c.keep = append(c.keep, argv, envp)
	return c, nil
}

// lastCap is the number of the last capability this kernel knows.
func lastCap() uintptr {
	last := uintptr(unix.CAP_LAST_CAP)
	for ; last < 63; last++ {
		if _, _, e := syscall.RawSyscall(unix.SYS_PRCTL, unix.PR_CAPBSET_READ, last+1, 0); e != 0 {
			break
		}
	}
	return last
}

// start makes the process and returns its number once its program runs.
func (c *child) start() (int, error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	// No signal may reach a handler of the Go runtime in the new process.
	var all, old uint64
	all = math.MaxUint64
	syscall.RawSyscall6(unix.SYS_RT_SIGPROCMASK, unix.SIG_SETMASK, uintptr(unsafe.Pointer(&all)), uintptr(unsafe.Pointer(&old)), 8, 0, 0)
	pid, errno := c.fork()
	syscall.RawSyscall6(unix.SYS_RT_SIGPROCMASK, unix.SIG_SETMASK, uintptr(unsafe.Pointer(&old)), 0, 8, 0, 0)
	runtime.KeepAlive(c)
	unix.Close(c.fail[1])
	if errno != 0 {
		return 0, fmt.Errorf("starting the command: %w", errno)
	}
	var raw [16]byte
	n, err := readFull(c.fail[0], raw[:])
	unix.Close(c.fail[0])
	if c.ruleset >= 0 {
		unix.Close(c.ruleset)
	}
	if err != nil {
		return 0, fmt.Errorf("starting the command: %w", err)
	}
	if n == 0 {
		return pid, nil
	}
	step, code := *(*uint64)(unsafe.Pointer(&raw[0])), *(*uint64)(unsafe.Pointer(&raw[8]))
	unix.Wait4(pid, nil, 0, nil)
	err = syscall.Errno(code)
	if step == stepProgram {
		if err == unix.ENOENT || err == unix.ENOTDIR {
			return 0, errNoProgram
		}
		return 0, deniedError{fmt.Errorf("the program cannot be run: %w", err)}
	}
	return 0, fmt.Errorf("%s: %w", stepNames[min(step, stepProgram)], err)
}

func readFull(fd int, b []byte) (int, error) {
	n := 0
	for n < len(b) {
		got, err := unix.Read(fd, b[n:])
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return n, err
		}
		if got == 0 {
			break
		}
		n += got
	}
	return n, nil
}

// fork makes the new process, which never returns from here. The child has a
// copy of our memory of its own, so it can use this stack; it must not call
// anything that might grow the stack or wake the scheduler.
//
//go:norace
//go:nosplit
//go:noinline
func (c *child) fork() (int, syscall.Errno) {
	pid, _, e := syscall.RawSyscall6(unix.SYS_CLONE, uintptr(unix.SIGCHLD), 0, 0, 0, 0, 0)
	if e != 0 || pid != 0 {
		return int(pid), e
	}
	step := c.restrict(&e)
	c.message[0], c.message[1] = step, uint64(e)
	syscall.RawSyscall(unix.SYS_WRITE, uintptr(c.fail[1]), uintptr(unsafe.Pointer(&c.message)), 16)
	for {
		syscall.RawSyscall(unix.SYS_EXIT_GROUP, 127, 0, 0)
	}
}

// restrict gives everything up and becomes the program. It returns the step
// that failed and sets why.
//
//go:norace
//go:nosplit
//go:noinline
func (c *child) restrict(e *syscall.Errno) uint64 {
	if _, _, *e = syscall.RawSyscall(unix.SYS_SETSID, 0, 0, 0); *e != 0 {
		return stepSession
	}
	for i := range c.rlimits {
		r := &c.rlimits[i]
		if _, _, *e = syscall.RawSyscall6(unix.SYS_PRLIMIT64, 0, r.resource, uintptr(unsafe.Pointer(&r.value)), 0, 0, 0); *e != 0 {
			return stepLimits
		}
	}
	if c.caps {
		if _, _, *e = syscall.RawSyscall6(unix.SYS_PRCTL, unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0, 0); *e != 0 {
			return stepCaps
		}
		for i := uintptr(0); i <= c.lastCap; i++ {
			// Without CAP_SETPCAP the bounding set stays, and with
			// no_new_privs nothing can be had from it.
			syscall.RawSyscall6(unix.SYS_PRCTL, unix.PR_CAPBSET_DROP, i, 0, 0, 0, 0)
		}
		if _, _, *e = syscall.RawSyscall(unix.SYS_CAPSET, uintptr(unsafe.Pointer(&c.header)), uintptr(unsafe.Pointer(&c.nothing)), 0); *e != 0 {
			return stepCaps
		}
	}
	if _, _, *e = syscall.RawSyscall6(unix.SYS_PRCTL, unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0, 0); *e != 0 {
		return stepPrivileges
	}
	if c.ruleset >= 0 {
		if _, _, *e = syscall.RawSyscall(unix.SYS_LANDLOCK_RESTRICT_SELF, uintptr(c.ruleset), 0, 0); *e != 0 {
			return stepLandlock
		}
	}
	if _, _, *e = syscall.RawSyscall(unix.SYS_CLOSE_RANGE, 3, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC); *e != 0 {
		return stepDescriptors
	}
	for sig := uintptr(1); sig <= 64; sig++ {
		if sig != uintptr(unix.SIGKILL) && sig != uintptr(unix.SIGSTOP) {
			syscall.RawSyscall6(unix.SYS_RT_SIGACTION, sig, uintptr(unsafe.Pointer(&c.action)), 0, 8, 0, 0)
		}
	}
	c.message[0] = 0
	if _, _, *e = syscall.RawSyscall6(unix.SYS_RT_SIGPROCMASK, unix.SIG_SETMASK, uintptr(unsafe.Pointer(&c.message)), 0, 8, 0, 0); *e != 0 {
		return stepSignals
	}
	if c.filter != nil {
		if _, _, *e = syscall.RawSyscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0, uintptr(unsafe.Pointer(c.filter))); *e != 0 {
			return stepFilter
		}
	}
	if c.exe >= 0 {
		_, _, *e = syscall.RawSyscall6(unix.SYS_EXECVEAT, uintptr(c.exe), uintptr(unsafe.Pointer(&c.empty)),
			uintptr(unsafe.Pointer(c.argv)), uintptr(unsafe.Pointer(c.envp)), unix.AT_EMPTY_PATH, 0)
	} else {
		_, _, *e = syscall.RawSyscall(unix.SYS_EXECVE, uintptr(unsafe.Pointer(c.path)), uintptr(unsafe.Pointer(c.argv)), uintptr(unsafe.Pointer(c.envp)))
	}
	return stepProgram
}

// rlimitsOf are the limits of the command's process.
func rlimitsOf(o *order) []rlimit {
	var all []rlimit
	add := func(resource int, n int64) {
		if n <= 0 {
			return
		}
		var have unix.Rlimit
		want := uint64(n)
		if unix.Getrlimit(resource, &have) == nil {
			want = min(want, have.Max)
		}
		all = append(all, rlimit{uintptr(resource), unix.Rlimit{Cur: want, Max: want}})
	}
	l := o.Limits
	if l.Processes > 0 {
		n := int64(l.Processes)
		if !o.Namespaces {
			// Counted with all that the user runs; what runs now is not the command's.
			n += int64(threadsOf(os.Getuid()))
		}
		add(unix.RLIMIT_NPROC, n)
	}
	// Data, not address space: many runtimes reserve far more than they use.
	add(unix.RLIMIT_DATA, l.MemoryBytes)
	add(unix.RLIMIT_FSIZE, l.FileBytes)
	add(unix.RLIMIT_NOFILE, int64(l.OpenFiles))
	add(unix.RLIMIT_CPU, l.CPUSeconds)
	return append(all, rlimit{uintptr(unix.RLIMIT_CORE), unix.Rlimit{}})
}
