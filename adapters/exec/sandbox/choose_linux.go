package sandbox

import (
	"context"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/berth-dev/berth/core/domain"
)

// choose finds the backend of the configured mode and tries it out.
func (s *Sandbox) choose(ctx context.Context) (domain.Posture, backend) {
	// A program that forgot to call Main would start itself again for ever.
	if IsHelper(os.Args) {
		return none("this process was started to be the helper of a sandbox, but its program does not call sandbox.Main first"), plain
	}
	var candidates []backend
	switch s.cfg.Mode {
	case None:
		return domain.Posture{Word: domain.PostureOff, Lacks: everything()}, plain
	case Auto:
		candidates = []backend{byNamespaces, byBubblewrap, byLandlock}
	case Namespaces, Bubblewrap, Landlock:
		candidates = []backend{backend(s.cfg.Mode)}
	case Seatbelt:
		return none("seatbelt is a sandbox of macOS; set sandbox to auto"), plain
	default:
		return none("there is no sandbox called " + strconv.Quote(s.cfg.Mode)), plain
	}
	best, chosen := none(""), plain
	var reasons []string
	for _, by := range candidates {
		p := s.try(ctx, by)
		if p.Word == domain.PostureStrong {
			return p, by
		}
		if p.Word == domain.PosturePartial && best.Word == domain.PostureNone {
			best, chosen = p, by
		}
		reasons = append(reasons, string(by)+": "+p.Reason)
	}
	best.Reason = strings.Join(reasons, "; ")
	return best, chosen
}

// lookAround finds out what this machine has.
func (s *Sandbox) lookAround() { s.system = s.look() }

// look finds out what the kernel offers.
func (s *Sandbox) look() system {
	m := system{names: namesOf(&s.cfg), uid: os.Getuid(), gid: os.Getgid(), filter: auditArch != 0 && !s.breaks.seccomp, pidMax: kernelAtLeast(6, 14)}
	if !s.breaks.landlock {
		m.abi = landlockABI()
	}
	return m
}

// kernelAtLeast compares the version of the running kernel.
func kernelAtLeast(major, minor int) bool {
	var u unix.Utsname
	if unix.Uname(&u) != nil {
		return false
	}
	parts := strings.SplitN(unix.ByteSliceToString(u.Release[:]), ".", 3)
	if len(parts) < 2 {
		return false
	}
	a, err1 := strconv.Atoi(parts[0])
	b, err2 := strconv.Atoi(strings.TrimRight(parts[1], "-+abcdefghijklmnopqrstuvwxyz"))
	return err1 == nil && err2 == nil && (a > major || a == major && b >= minor)
}

// threadsOf counts the threads of a user.
func threadsOf(uid int) int {
	dir, err := os.Open("/proc")
	if err != nil {
		return 0
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(-1)
	n := 0
	for _, name := range names {
		if _, err := strconv.Atoi(name); err != nil {
			continue
		}
		var st unix.Stat_t
		if unix.Stat("/proc/"+name, &st) != nil || int(st.Uid) != uid {
			continue
		}
		if raw, err := os.ReadFile("/proc/" + name + "/status"); err == nil {
			if _, rest, ok := strings.Cut(string(raw), "\nThreads:"); ok {
				line, _, _ := strings.Cut(rest, "\n")
				threads, _ := strconv.Atoi(strings.TrimSpace(line))
				n += threads
			}
		}
	}
	return n
}
