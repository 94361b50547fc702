//go:build !linux

package main

import "errors"

// usage is what a process uses. Sizes are in KiB.
type usage struct {
	rss, anon, pss float64
	fds, threads   int
	children       int
	cpu            float64
}

// usageOf is not measured here.
func usageOf(int) (usage, error) {
	return usage{}, errors.New("the daemon's figures need /proc, as Linux has it")
}

func machineLoad() string { return "unknown" }
