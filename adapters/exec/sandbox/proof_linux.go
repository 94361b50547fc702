package sandbox

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// switches are files whose content decides what a kernel lets us do.
func switches() []string {
	return []string{
		"/proc/sys/kernel/random/boot_id", "/proc/version", "/sys/kernel/security/lsm", "/proc/self/uid_map", "/proc/self/gid_map",
		"/proc/sys/user/max_user_namespaces", "/proc/sys/user/max_pid_namespaces", "/proc/sys/user/max_mnt_namespaces", "/proc/sys/user/max_net_namespaces",
		"/proc/sys/kernel/unprivileged_userns_clone", "/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "/proc/sys/kernel/yama/ptrace_scope",
		"/proc/self/attr/current",
	}
}

// statusLines are the lines of /proc/self/status that say what we may do.
func statusLines() []string {
	return []string{"Uid:", "Gid:", "Groups:", "CapEff:", "CapBnd:", "NoNewPrivs:", "Seccomp:", "Seccomp_filters:"}
}

// dependsOn digests what a proof depends on; "" where that cannot be told.
func (s *Sandbox) dependsOn() string {
	var self unix.Stat_t
	if err := unix.Stat("/proc/self/exe", &self); err != nil {
		return ""
	}
	h := sha256.New()
	fmt.Fprintln(h, self.Dev, self.Ino, self.Size, self.Mtim, self.Ctim)
	for _, name := range switches() {
		text, _ := readBrief(name) // one that is not there is as good as another answer
		fmt.Fprintf(h, "%s %q\n", name, text)
	}
	for _, ns := range []string{"user", "mnt", "pid", "net"} {
		to, _ := os.Readlink("/proc/self/ns/" + ns)
		fmt.Fprintln(h, ns, to)
	}
	status, err := readBrief("/proc/self/status")
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(status)) {
		for _, want := range statusLines() {
			if strings.HasPrefix(line, want) {
				fmt.Fprint(h, line)
			}
		}
	}
	fmt.Fprintf(h, "%q %q %q %q %q %q %q %+v %d %t %t %q\n",
		s.cfg.Mode, s.cfg.Helper, s.cfg.Home, s.cfg.State, s.cfg.Path, s.cfg.Hidden, s.cfg.Protected, s.breaks, s.system.abi, s.system.filter, s.system.pidMax, s.system.bwrap)
	return hex.EncodeToString(h.Sum(nil))
}

// readBrief reads a file of the kernel's that is one short answer: in one read,
// with nothing of what files need that one waits for. A start does a score of
// them.
func readBrief(name string) ([]byte, error) {
	fd, err := unix.Open(name, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	buf := make([]byte, 8<<10)
	n, err := unix.Read(fd, buf)
	if err != nil {
		return nil, err
	}
	return buf[:n], nil
}
