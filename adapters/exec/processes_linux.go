package exec

import (
	"bytes"
	"os"
	"strconv"
)

// processes returns the processes of the system as far as /proc shows them.
func processes() []proc {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	names, _ := dir.Readdirnames(-1) // what it gives is what there is
	_ = dir.Close()
	list := make([]proc, 0, len(names))
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		if p, ok := statOf(pid); ok {
			list = append(list, p)
		}
	}
	return list
}

// statOf reads one process. Its name may hold anything, so what follows it
// is found from the end.
func statOf(pid int) (proc, bool) {
	raw, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return proc{}, false
	}
	fields := bytes.Fields(raw[bytes.LastIndexByte(raw, ')')+1:])
	if len(fields) < 4 {
		return proc{}, false
	}
	number := func(i int) int {
		n, _ := strconv.Atoi(string(fields[i]))
		return n
	}
	state := fields[0][0]
	return proc{pid: pid, parent: number(1), group: number(2), session: number(3), dead: state == 'Z' || state == 'X'}, true
}
