package bootstrap

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"github.com/berth-dev/berth/adapters/observe"
)

// liveLog is what a reload changes about the log. The zero value is a log that
// was given by an option, which stays as it is.
type liveLog struct {
	logger *observe.Logger
	file   *logFile // nil: it goes to standard error
}

// reopen opens the file by its name again: what rotates logs has renamed it.
func (l liveLog) reopen() error {
	if l.file == nil {
		return nil
	}
	return l.file.reopen()
}

// level sets the least severe entries that are written.
func (l liveLog) level(name string) error {
	if l.logger == nil {
		return nil
	}
	return l.logger.SetLevel(name)
}

// logFile is a file that entries are appended to. It may be written to, opened
// again and closed at the same time.
type logFile struct {
	path string
	mu   sync.Mutex
	now  *os.File
}

func openLogFile(path string) (*logFile, error) {
	l := &logFile{path: path}
	return l, l.reopen()
}

// Write appends one entry.
func (l *logFile) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.now.Write(p)
}

// reopen opens the file that has the name now. When it cannot be opened, the
// one before stays.
func (l *logFile) reopen() error {
	if err := os.MkdirAll(filepath.Dir(l.path), 0o700); err != nil {
		return fmt.Errorf("log.file: %w", err)
	}
	f, err := os.OpenFile(l.path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("log.file: %w", err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	before := l.now
	l.now = f
	if before != nil {
		_ = before.Close() // nothing is buffered
	}
	return nil
}

// Close closes the file.
func (l *logFile) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.now.Close()
}
