//go:build unix && !linux

package main

import (
	"context"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
)

// resident returns the resident memory of a process in KiB, as ps tells it.
func resident(ctx context.Context, pid int) (float64, error) {
	out, err := exec.CommandContext(ctx, "ps", "-o", "rss=", "-p", strconv.Itoa(pid)).Output()
	if err != nil {
		return 0, fmt.Errorf("ps: %w", err)
	}
	return strconv.ParseFloat(strings.TrimSpace(string(out)), 64)
}
