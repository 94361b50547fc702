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
	children := map[int][]int{}
	dir, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(-1)
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		raw, err := os.ReadFile("/proc/" + name + "/stat")
		if err != nil {
			continue
		}
		// The command's name stands in parentheses and may hold any byte.
		_, rest, ok := strings.Cut(string(raw[max(0, strings.LastIndexByte(string(raw), ')')):]), " ")
		if fields := strings.Fields(rest); ok && len(fields) > 1 {
			if ppid, err := strconv.Atoi(fields[1]); err == nil {
				children[ppid] = append(children[ppid], pid)
			}
		}
	}
	var all []int
	next := []int{os.Getpid()}
	for len(next) > 0 {
		kids := children[next[0]]
		next = append(next[1:], kids...)
		all = append(all, kids...)
	}
	return all
}
