package metrics

import (
	"bytes"
	"os"
	"strconv"
)

// ticks is how many of the kernel's clock ticks make a second, in what it
// shows to programs: the same on every architecture.
const ticks = 100

// askSystem reads the kernel's files about this process. One that cannot be
// read leaves all of it unknown.
func (p *process) askSystem() {
	stat, err := os.ReadFile("/proc/self/stat")
	if err != nil {
		return
	}
	// The program's name, the second field, may hold blanks and parentheses.
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	const first, utime, stime, rss = 3, 14, 15, 24
	if len(fields) <= rss-first {
		return
	}
	number := func(i int) float64 {
		n, _ := strconv.ParseFloat(string(fields[i-first]), 64)
		return n
	}
	dir, err := os.Open("/proc/self/fd")
	if err != nil {
		return
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return
	}
	p.system = true
	p.cpu = (number(utime) + number(stime)) / ticks
	p.resident = number(rss) * float64(os.Getpagesize())
	p.fds = float64(len(names) - 1) // without the one that was opened to look
}
