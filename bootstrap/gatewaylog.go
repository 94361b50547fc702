package bootstrap

import (
	"context"
	"errors"
	"log"
	"strings"

	"github.com/berth-dev/berth/core/domain"
	"github.com/berth-dev/berth/core/ports"
)

// quietLog is where the HTTP server's own complaints go. Those about what
// strangers send are many and nobody's trouble; a handler that panicked is.
func quietLog(o ports.Observer) *log.Logger { return log.New(serverLog{o}, "", 0) }

type serverLog struct{ observer ports.Observer }

// Write takes one line.
func (l serverLog) Write(line []byte) (int, error) {
	if text := strings.TrimSpace(string(line)); strings.Contains(text, "panic") || strings.Contains(text, "Accept error") {
		first, _, _ := strings.Cut(text, "\n")
		l.observer.Observe(context.Background(), domain.Trouble{Where: "gateway", Err: errors.New(first)})
	}
	return len(line), nil
}
