package sandbox

import (
	"fmt"
	"os"
	"path"
	"time"

	"golang.org/x/sys/unix"
)

// after is nil when the command can write to no root.
func (p *Process) after() *after {
	if len(p.plan.before) == 0 {
		return nil
	}
	a := &after{Protected: p.box.cfg.Protected, Approved: p.spec.AllowProtected}
	for _, r := range p.plan.before {
		known := make([]identity, len(r.scan.found))
		for i, g := range r.scan.found {
			known[i] = g.id
		}
		a.Roots = append(a.Roots, afterRoot{r.root, known})
	}
	return a
}

// abandoned reports whether the host is gone, and did not just say that it is
// enough.
func (h *helper) abandoned() bool {
	fds := []unix.PollFd{{Fd: int32(h.host.Fd())}} //nolint:gosec // a descriptor
	for {
		_, err := unix.Poll(fds, 0)
		if err != unix.EINTR {
			return err == nil && fds[0].Revents&unix.POLLHUP != 0
		}
	}
}

// endWait is how long what was killed may take to be gone.
const endWait = 10 * time.Second

// takeBack does what the host does after a command: what was made of protected
// names goes out of the way. Nobody is there to be told, so nothing is
// deleted.
func (h *helper) takeBack() {
	a := h.order.After
	if a == nil || !h.abandoned() {
		return
	}
	if h.order.Namespaces {
		unix.Kill(-1, unix.SIGKILL)
		for end := time.Now().Add(endWait); time.Now().Before(end); {
			if _, err := unix.Wait4(-1, nil, 0, nil); err == unix.ECHILD {
				break
			}
		}
	}
	u := &undoing{names: namesOf(&Config{Protected: a.Protected}), aside: true}
	for _, r := range a.Roots {
		before := rooted{root: r.Root}
		for _, id := range r.Known {
			before.scan.found = append(before.scan.found, guarded{id: id})
		}
		u.root(before, a.Approved)
	}
}

// maxAside is how many names are tried for one that is moved out of the way.
const maxAside = 100

// moveAside gives a name another one that means nothing to any program.
func moveAside(root *os.Root, rel string) bool {
	dir, name := path.Split(rel)
	for i := range maxAside {
		to := fmt.Sprintf("%sundone-%d-%s", dir, i, name)
		if _, err := root.Lstat(to); err == nil {
			continue
		}
		return root.Rename(rel, to) == nil
	}
	return false
}
