package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// usage is what a process uses. Sizes are in KiB.
type usage struct {
	rss, anon, pss float64
	fds, threads   int
	children       int     // processes below it
	cpu            float64 // seconds
}

// usageOf asks the kernel.
func usageOf(pid int) (u usage, err error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return usage{}, err
	}
	u.rss, u.anon = field(status, "VmRSS:"), field(status, "RssAnon:")
	u.threads = int(field(status, "Threads:"))
	if rollup, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid)); err == nil {
		u.pss = field(rollup, "Pss:")
	}
	fds, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	if err != nil {
		return usage{}, err
	}
	u.fds = len(fds)
	tasks, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	if err != nil {
		return usage{}, err
	}
	for _, task := range tasks {
		if raw, err := os.ReadFile(task); err == nil {
			u.children += len(bytes.Fields(raw))
		}
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return usage{}, err
	}
	// utime and stime, counted from behind the name, which may hold blanks.
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	for _, i := range []int{11, 12} {
		ticks, err := strconv.ParseFloat(fields[i], 64)
		if err != nil {
			return usage{}, err
		}
		u.cpu += ticks / 100
	}
	return u, nil
}

// field is the number behind a name at the start of a line.
func field(file []byte, name string) float64 {
	for line := range strings.Lines(string(file)) {
		if rest, ok := strings.CutPrefix(line, name); ok {
			n, _ := strconv.ParseFloat(strings.Fields(rest)[0], 64)
			return n
		}
	}
	return 0
}

// machineLoad is the load average, as the kernel writes it.
func machineLoad() string {
	raw, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	return strings.Join(strings.Fields(string(raw))[:3], " ")
}
