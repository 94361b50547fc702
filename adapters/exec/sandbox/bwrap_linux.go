package sandbox

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// bwrapNeeds is the first version of bubblewrap that does not follow links of
// the sandboxed side when it prepares mounts.
const bwrapNeeds = "0.12.0"

// findBwrap finds a bubblewrap that can be trusted: in a directory of the
// system, owned by root or us, and not too old. It returns its path, or why
// there is none.
func (s *Sandbox) findBwrap(ctx context.Context) (path, why string) {
	candidates := []string{"/usr/bin/bwrap", "/usr/local/bin/bwrap", "/bin/bwrap", "/run/wrappers/bin/bwrap", "/run/current-system/sw/bin/bwrap"}
	if s.breaks.bwrap != "" {
		candidates = []string{s.breaks.bwrap}
	}
	for _, c := range candidates {
		real, err := filepath.EvalSymlinks(c)
		if err != nil {
			continue
		}
		var st unix.Stat_t
		if unix.Stat(real, &st) != nil || st.Mode&unix.S_IFMT != unix.S_IFREG || st.Mode&0o111 == 0 {
			continue
		}
		if st.Uid != 0 && int(st.Uid) != os.Getuid() || st.Mode&0o022 != 0 {
			return "", real + " can be changed by others and is not used"
		}
		cmd := exec.CommandContext(ctx, real, "--version")
		cmd.Env = []string{}
		out, err := cmd.Output()
		version, ok := bwrapVersion(out)
		if err != nil || !ok {
			return "", real + " does not tell its version"
		}
		if !version.atLeast(bwrapNeeds) {
			return "", "bubblewrap " + version.String() + " is too old: before " + bwrapNeeds + " it follows links that a command planted; install a newer one"
		}
		return real, ""
	}
	return "", "bubblewrap is not installed; install version " + bwrapNeeds + " or later"
}

// versionOf is a version of three numbers.
type versionOf [3]int

func bwrapVersion(out []byte) (versionOf, bool) {
	fields := bytes.Fields(out)
	if len(fields) != 2 || string(fields[0]) != "bubblewrap" {
		return versionOf{}, false
	}
	return parseVersion(string(fields[1]))
}

func parseVersion(text string) (versionOf, bool) {
	var v versionOf
	parts := strings.Split(text, ".")
	if len(parts) != len(v) {
		return v, false
	}
	for i, part := range parts {
		n, err := strconv.Atoi(part)
		if err != nil || n < 0 {
			return v, false
		}
		v[i] = n
	}
	return v, true
}

func (v versionOf) atLeast(least string) bool {
	l, _ := parseVersion(least)
	for i := range v {
		if v[i] != l[i] {
			return v[i] > l[i]
		}
	}
	return true
}

func (v versionOf) String() string {
	return strconv.Itoa(v[0]) + "." + strconv.Itoa(v[1]) + "." + strconv.Itoa(v[2])
}

// wrapped is the order for the helper inside bubblewrap, which built the view
// already.
func (s *Sandbox) wrapped(spec *Spec, p *plan) order {
	o := s.namespaced(spec, p)
	o.Namespaces, o.Nested = false, true
	o.Mounts, o.PIDMax = nil, 0
	return o
}

// selfFD is where bubblewrap finds our own binary, after the helper's two.
const selfFD = 5

// wrap makes p's command one that bubblewrap starts. Sources are given as
// descriptors that we opened, so no link planted meanwhile is followed.
func (s *Sandbox) wrap(p *Process) {
	args := []string{
		"bwrap", "--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--die-with-parent", "--new-session", "--clearenv",
		"--uid", strconv.Itoa(s.system.uid), "--gid", strconv.Itoa(s.system.gid), "--cap-drop", "ALL", "--disable-userns",
	}
	if !p.spec.Network {
		args = append(args, "--unshare-net")
	}
	files := append([]*os.File{}, p.Cmd.ExtraFiles...)
	self, err := unix.Open("/proc/self/exe", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err == nil {
		f := os.NewFile(uintptr(self), "self")
		files = append(files, f)
		p.child = append(p.child, f)
	}
	for _, m := range p.plan.mounts {
		args = append(args, bwrapArgs(m, func(path string, id identity) (int, bool) {
			fd, err := unix.Openat2(unix.AT_FDCWD, path, &unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: noLinks})
			if err != nil {
				return 0, false
			}
			f := os.NewFile(uintptr(fd), path)
			p.child = append(p.child, f)
			if id.check(fd) != nil {
				return 0, false
			}
			files = append(files, f)
			return len(files) + 2, true
		})...)
	}
	args = append(args, "--remount-ro", "/", "--chdir", "/", "--", "/proc/self/fd/"+strconv.Itoa(selfFD), marker)
	p.Cmd.Path, p.Cmd.Args, p.Cmd.ExtraFiles = s.system.bwrap, args, files
}

// bwrapArgs are the arguments for one step. open gives the number that a
// source has in the new process.
func bwrapArgs(m mount, open func(path string, id identity) (int, bool)) []string {
	bind := func(source string, readOnly bool) []string {
		fd, ok := open(source, m.ID)
		switch {
		case !ok && m.Optional:
			return nil
		case !ok:
			// Fails there, with a message that names it.
			return []string{"--ro-bind", source, m.Path}
		case readOnly:
			return []string{"--ro-bind-fd", strconv.Itoa(fd), m.Path}
		}
		return []string{"--bind-fd", strconv.Itoa(fd), m.Path}
	}
	switch m.Kind {
	case mountEmpty:
		return []string{"--perms", strconv.FormatInt(int64(m.Mode), 8), "--size", strconv.FormatInt(m.Size, 10), "--tmpfs", m.Path}
	case mountBind:
		return bind(m.Source, m.ReadOnly)
	case mountCopy:
		return bind(m.Source, true) // a copy that is forgotten could not be told from one that is kept
	case mountLink:
		return []string{"--symlink", m.Source, m.Path}
	case mountCover:
		if _, dir, _ := exists(m.Path); dir {
			return []string{"--perms", "0111", "--size", "4096", "--tmpfs", m.Path, "--remount-ro", m.Path}
		}
		return []string{"--ro-bind", "/dev/null", m.Path}
	case mountGuard:
		return bind(m.Path, true)
	case mountPin:
		return bind(m.Path, false)
	case mountProc:
		return []string{"--proc", m.Path}
	case mountDev:
		return []string{"--dev", m.Path}
	}
	return nil
}
