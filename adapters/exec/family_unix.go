//go:build unix

package exec

import (
	"slices"
	"syscall"
)

// proc is one process of the system.
type proc struct {
	pid, parent, group, session int
	dead                        bool // it waits to be reaped
}

// family finds the processes of one command: all that descend from root, and
// all of a session.
type family struct {
	root    int // 0 when it is gone
	session int // 0 when it is not known
	spare   bool
}

// members returns the living processes of the family, root itself only when
// it is not spared.
func (f family) members() []int {
	all := processes()
	in := map[int]bool{}
	if f.root != 0 {
		in[f.root] = true
	}
	for grown := true; grown; {
		grown = false
		for _, p := range all {
			mine := f.root != 0 && in[p.parent] || f.session != 0 && (p.session == f.session || p.group == f.session)
			if mine && !in[p.pid] {
				in[p.pid] = true
				grown = true
			}
		}
	}
	var list []int
	for _, p := range all {
		if in[p.pid] && !p.dead && (p.pid != f.root || !f.spare) {
			list = append(list, p.pid)
		}
	}
	return list
}

// signal sends a signal to all members.
func (f family) signal(sig syscall.Signal) {
	for _, pid := range f.members() {
		_ = syscall.Kill(pid, sig) // it may be gone by now
	}
}

// kill ends all members and returns which there were. They are stopped
// first, until no new ones appear: what is stopped makes no children.
func (f family) kill() []int {
	var stopped []int
	for {
		fresh := false
		for _, pid := range f.members() {
			if !slices.Contains(stopped, pid) {
				stopped = append(stopped, pid)
				fresh = syscall.Kill(pid, syscall.SIGSTOP) == nil || fresh
			}
		}
		if !fresh {
			break
		}
	}
	for _, pid := range stopped {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
	return stopped
}

// killRoot ends a helper that does not do its work.
func (f family) killRoot() {
	if f.root != 0 {
		_ = syscall.Kill(f.root, syscall.SIGKILL)
	}
}

// killTree ends a process and all that descends from it.
func killTree(root int) {
	f := family{root: root, spare: true}
	f.kill()
	f.killRoot()
}
