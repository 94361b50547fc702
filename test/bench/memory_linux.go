package main

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// resident returns the resident memory of a process in KiB.
func resident(_ context.Context, pid int) (float64, error) {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(raw)) {
		if rest, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			return strconv.ParseFloat(strings.Fields(rest)[0], 64)
		}
	}
	return 0, fmt.Errorf("process %d has no resident memory", pid)
}
