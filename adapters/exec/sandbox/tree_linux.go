package sandbox

import (
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// endDescendants kills all that descends from us and waits for it. As their
// adoptive parent we get the orphans of those we kill, so killing children
// until there are none ends whole trees. They are stopped first, so that none
// starts more while it is being looked for.
func endDescendants() {
	for {
		all := descendants()
		for _, p := range all {
			unix.Kill(p, unix.SIGSTOP)
		}
		for _, p := range descendants() {
			unix.Kill(p, unix.SIGKILL)
		}
		reaped := false
		for {
			got, err := unix.Wait4(-1, nil, unix.WNOHANG, nil)
			if err == unix.EINTR {
				continue
			}
			if err != nil { // ECHILD: none is left
				return
			}
			if got == 0 {
				break
			}
			reaped = true
		}
		if !reaped {
			// Each was sent the signal; wait for one to go.
			if _, err := unix.Wait4(-1, nil, 0, nil); err == unix.ECHILD {
				return
			}
		}
	}
}

// descendants lists the processes below us, parents first.
func descendants() []int {
	children := childrenOf
	if _, err := os.Stat("/proc/thread-self/children"); err != nil {
		children = childrenByScan()
	}
	var all []int
	next := []int{os.Getpid()}
	for len(next) > 0 {
		kids := children(next[0])
		next = append(next[1:], kids...)
		all = append(all, kids...)
	}
	return all
}

// childrenOf asks the kernel for the children of a process.
func childrenOf(pid int) []int {
	dir := "/proc/" + strconv.Itoa(pid) + "/task"
	threads, err := os.ReadDir(dir)
	if err != nil {
		return nil
	}
	var all []int
	for _, thread := range threads {
		raw, err := os.ReadFile(dir + "/" + thread.Name() + "/children")
		if err != nil {
			continue
		}
		for _, field := range strings.Fields(string(raw)) {
			if kid, err := strconv.Atoi(field); err == nil {
				all = append(all, kid)
			}
		}
	}
	return all
}

// childrenByScan finds children by looking at every process, for kernels that
// do not tell.
func childrenByScan() func(int) []int {
	children := map[int][]int{}
	names, _ := os.ReadDir("/proc")
	for _, name := range names {
		pid, err := strconv.Atoi(name.Name())
		if err != nil {
			continue
		}
		raw, err := os.ReadFile("/proc/" + name.Name() + "/stat")
		if err != nil {
			continue
		}
		// The command's name stands in parentheses and may hold any byte; state
		// and parent follow.
		fields := strings.Fields(string(raw[strings.LastIndexByte(string(raw), ')')+1:]))
		if len(fields) < 2 {
			continue
		}
		if parent, err := strconv.Atoi(fields[1]); err == nil {
			children[parent] = append(children[parent], pid)
		}
	}
	return func(pid int) []int { return children[pid] }
}
