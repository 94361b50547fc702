package sandbox

import "golang.org/x/sys/unix"

const (
	auditArch = unix.AUDIT_ARCH_X86_64
	// foreignCalls is where the numbers of the x32 interface begin.
	foreignCalls = 0x40000000
)

func archCalls() []uintptr {
	return []uintptr{unix.SYS_IOPL, unix.SYS_IOPERM, unix.SYS_CREATE_MODULE, unix.SYS_NFSSERVCTL, unix.SYS__SYSCTL, unix.SYS_LOOKUP_DCOOKIE}
}
