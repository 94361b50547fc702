package main

import (
	"os"
	"strings"
	"sync"
)

// agentLog takes what the agent says on its standard error: shown at once, or
// kept for the case that the agent ends without an answer.
type agentLog struct {
	shown bool
	mu    sync.Mutex
	kept  []byte
}

// keptLog is how much of the log is kept, in bytes; the newest counts.
const keptLog = 8 << 10

func (l *agentLog) Write(b []byte) (int, error) {
	if l.shown {
		return os.Stderr.Write(b)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.kept = append(l.kept, b...); len(l.kept) > keptLog {
		l.kept = append(l.kept[:0], l.kept[len(l.kept)-keptLog:]...)
	}
	return len(b), nil
}

// take returns what was kept.
func (l *agentLog) take() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := strings.TrimSpace(string(l.kept))
	l.kept = nil
	return s
}
