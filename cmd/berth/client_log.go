package main

import (
	"bytes"
	"os"
	"strings"
	"sync"
)

// agentLog takes what the agent says on its standard error: shown at once, or
// kept for the case that the agent ends without an answer.
type agentLog struct {
	shown bool
	// told, if set, is given every whole line, and reports whether it has told
	// the person what the line says: then it is neither shown nor kept.
	told func(line string) bool
	mu   sync.Mutex
	kept []byte
	part []byte // of a line, for told
}

// keptLog is how much of the log is kept, in bytes; the newest counts.
const keptLog = 8 << 10

func (l *agentLog) Write(b []byte) (int, error) {
	if l.told == nil {
		return l.put(b)
	}
	l.part = append(l.part, b...) // one goroutine writes
	for {
		end := bytes.IndexByte(l.part, '\n') + 1
		if end == 0 && len(l.part) < keptLog {
			return len(b), nil
		}
		line := l.part
		if end > 0 {
			line = line[:end]
		}
		l.part = l.part[len(line):]
		if l.told(string(bytes.TrimRight(line, "\r\n"))) {
			continue
		}
		if _, err := l.put(line); err != nil {
			return len(b), err
		}
	}
}

func (l *agentLog) put(b []byte) (int, error) {
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
