//go:build linux && (amd64 || arm64)

package sandbox

import "golang.org/x/sys/unix"

// deniedCalls are the system calls that no command gets: they reach into
// other processes, into the kernel, or into namespaces and mounts.
func deniedCalls() []uintptr {
	return append([]uintptr{
		// other processes
		unix.SYS_PTRACE, unix.SYS_PROCESS_VM_READV, unix.SYS_PROCESS_VM_WRITEV, unix.SYS_PROCESS_MADVISE, unix.SYS_KCMP, unix.SYS_PIDFD_GETFD,
		// keys of the session
		unix.SYS_KEYCTL, unix.SYS_ADD_KEY, unix.SYS_REQUEST_KEY,
		// large and often broken parts of the kernel
		unix.SYS_BPF, unix.SYS_PERF_EVENT_OPEN, unix.SYS_USERFAULTFD,
		unix.SYS_IO_URING_SETUP, unix.SYS_IO_URING_ENTER, unix.SYS_IO_URING_REGISTER,
		// namespaces and mounts
		unix.SYS_SETNS, unix.SYS_MOUNT, unix.SYS_UMOUNT2, unix.SYS_PIVOT_ROOT, unix.SYS_FSOPEN, unix.SYS_FSCONFIG, unix.SYS_FSMOUNT,
		unix.SYS_FSPICK, unix.SYS_OPEN_TREE, unix.SYS_MOVE_MOUNT, unix.SYS_MOUNT_SETATTR, sysOpenTreeAttr,
		unix.SYS_OPEN_BY_HANDLE_AT, unix.SYS_FANOTIFY_INIT,
		// the machine
		unix.SYS_KEXEC_LOAD, unix.SYS_KEXEC_FILE_LOAD, unix.SYS_INIT_MODULE, unix.SYS_FINIT_MODULE, unix.SYS_DELETE_MODULE,
		unix.SYS_REBOOT, unix.SYS_SWAPON, unix.SYS_SWAPOFF, unix.SYS_ACCT, unix.SYS_QUOTACTL, unix.SYS_QUOTACTL_FD, unix.SYS_SYSLOG,
		unix.SYS_SETTIMEOFDAY, unix.SYS_CLOCK_SETTIME, unix.SYS_SETHOSTNAME, unix.SYS_SETDOMAINNAME, unix.SYS_VHANGUP,
	}, archCalls()...)
}

// sysOpenTreeAttr has this number on every architecture.
const sysOpenTreeAttr = 467

const newNamespaces = unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWNET | unix.CLONE_NEWIPC |
	unix.CLONE_NEWUTS | unix.CLONE_NEWCGROUP | unix.CLONE_NEWTIME

// Where the kernel's struct seccomp_data has its members; arguments are 64 bits.
const (
	dataNumber = 0
	dataArch   = 4
	dataArgs   = 16
)

const (
	allowed = unix.SECCOMP_RET_ALLOW
	noPerm  = unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)
	noCall  = unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS)
)

// program is a filter in the making.
type program []unix.SockFilter

func (p *program) add(code uint16, jt, jf uint8, k uint32) {
	*p = append(*p, unix.SockFilter{Code: code, Jt: jt, Jf: jf, K: k})
}

func (p *program) load(offset uint32) { p.add(unix.BPF_LD|unix.BPF_W|unix.BPF_ABS, 0, 0, offset) }
func (p *program) ret(what uint32)    { p.add(unix.BPF_RET|unix.BPF_K, 0, 0, what) }

// when answers what if the loaded word satisfies op.
func (p *program) when(op uint16, k, what uint32) {
	p.add(unix.BPF_JMP|op|unix.BPF_K, 0, 1, k)
	p.ret(what)
}

// call adds a part for one system call, which must always answer.
func (p *program) call(number uintptr, part func(*program)) {
	var body program
	part(&body)
	p.add(unix.BPF_JMP|unix.BPF_JEQ|unix.BPF_K, 0, uint8(len(body)), uint32(number))
	*p = append(*p, body...)
}

// arg loads the low half of an argument. It is enough for what is compared
// here: int arguments, of which the kernel itself ignores the rest.
func (p *program) arg(n uint32) { p.load(dataArgs + 8*n) }

// filterFor is the filter of r. It denies what is listed and allows the rest:
// a list of what is allowed would break programs nobody thought of.
func filterFor(r *restrict) []unix.SockFilter {
	var p program
	p.load(dataArch)
	p.add(unix.BPF_JMP|unix.BPF_JEQ|unix.BPF_K, 1, 0, auditArch)
	p.ret(unix.SECCOMP_RET_KILL_PROCESS) // calls of another architecture have other numbers
	p.load(dataNumber)
	if foreignCalls != 0 {
		p.when(unix.BPF_JGE, foreignCalls, noCall)
	}
	for _, number := range deniedCalls() {
		p.when(unix.BPF_JEQ, uint32(number), noPerm)
	}
	// Its flags lie in memory, where no filter can look; C libraries then use
	// clone.
	p.when(unix.BPF_JEQ, unix.SYS_CLONE3, noCall)
	for _, number := range []uintptr{unix.SYS_CLONE, unix.SYS_UNSHARE} {
		p.call(number, func(p *program) {
			p.arg(0)
			p.when(unix.BPF_JSET, newNamespaces, noPerm)
			p.ret(allowed)
		})
	}
	p.call(unix.SYS_IOCTL, func(p *program) {
		p.arg(1)
		p.when(unix.BPF_JEQ, unix.TIOCSTI, noPerm)
		p.when(unix.BPF_JEQ, tiocLinux, noPerm)
		p.ret(allowed)
	})
	p.call(unix.SYS_SOCKET, func(p *program) {
		p.arg(0)
		families := []uint32{}
		if !r.Unix {
			families = append(families, unix.AF_UNIX)
		}
		if !r.Inet {
			families = append(families, unix.AF_INET, unix.AF_INET6)
		}
		for _, family := range families {
			p.when(unix.BPF_JEQ, family, allowed)
		}
		// The routing part of netlink tells programs their interfaces.
		p.add(unix.BPF_JMP|unix.BPF_JEQ|unix.BPF_K, 1, 0, unix.AF_NETLINK)
		p.ret(noPerm)
		p.arg(2)
		p.when(unix.BPF_JEQ, unix.NETLINK_ROUTE, allowed)
		p.ret(noPerm)
	})
	p.ret(allowed)
	return p
}

// tiocLinux can paste into a text console.
const tiocLinux = 0x541C
