// Package observe turns what happens inside into log lines, by zerolog. It is
// the only place that decides what a log line is; the core knows events.
//
// Logging never blocks the one who observes: lines go through a bounded ring,
// and when the reader of stderr does not read, the oldest are dropped and
// counted. Known secret values are masked in every line.
package observe

import (
	"context"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/rs/zerolog"
	"github.com/rs/zerolog/diode"

	"github.com/berth-dev/berth/core/domain"
	"github.com/berth-dev/berth/core/ports"
)

// ring is how many lines may wait for a slow reader.
const ring = 1024

// closeLimit is how long Close waits for waiting lines to be written.
const closeLimit = 200 * time.Millisecond

// Config is what a Logger is built from.
type Config struct {
	Out     io.Writer       // where lines go, usually stderr
	Level   string          // trace, debug, info, warn, error, off
	JSON    bool            // else for people
	Color   bool            // for people on a terminal
	Secrets func() []string // values to mask; may be nil; asked once, at the first line
}

// Logger is an Observer that logs, and the logger of bootstrap.
type Logger struct {
	log  zerolog.Logger
	ring diode.Writer
	once sync.Once
}

var _ ports.Observer = (*Logger)(nil)

// New returns a logger. It fails when the level is none.
func New(c Config) (*Logger, error) {
	level, err := zerolog.ParseLevel(c.Level)
	switch {
	case c.Level == "off":
		level = zerolog.Disabled
	case err != nil:
		return nil, fmt.Errorf("log level %q is none of trace, debug, info, warn, error, off", c.Level)
	}
	l := &Logger{}
	var out io.Writer = &masker{out: c.Out, secrets: c.Secrets}
	if !c.JSON {
		out = zerolog.ConsoleWriter{Out: out, NoColor: !c.Color, TimeFormat: time.DateTime}
	}
	l.ring = diode.NewWriter(out, ring, 0, func(missed int) {
		fmt.Fprintf(c.Out, "%d log lines were dropped because nobody reads them fast enough\n", missed)
	})
	l.log = zerolog.New(l.ring).Level(level).With().Timestamp().Logger()
	return l, nil
}

// Close writes what waits, for a bounded time.
func (l *Logger) Close() error {
	l.once.Do(func() {
		done := make(chan struct{})
		go func() { // joined below, or left behind by a reader that does not read
			defer close(done)
			_ = l.ring.Close()
		}()
		limit := time.NewTimer(closeLimit)
		defer limit.Stop()
		select {
		case <-done:
		case <-limit.C:
		}
	})
	return nil
}

// Log returns the logger itself.
func (l *Logger) Log() *zerolog.Logger { return &l.log }

// Observe logs one event.
func (l *Logger) Observe(_ context.Context, ev domain.Event) {
	switch ev := ev.(type) {
	case domain.TurnBegan:
		l.log.Debug().Str("session", string(ev.Session)).Str("turn", string(ev.Turn)).Msg("turn began")
	case domain.TurnDone:
		l.turnDone(ev)
	case domain.StepDone:
		e := l.log.Debug() // a failure is told once, with its turn
		if ev.Err != nil {
			e = e.Err(ev.Err)
		}
		e.Str("session", string(ev.Session)).Str("model", ev.Model.String()).Dur("ms", ev.Duration).
			Int64("in", ev.Usage.Input).Int64("out", ev.Usage.Output).Msg("model request")
	case domain.CallDone:
		l.log.Debug().Str("session", string(ev.Session)).Str("tool", ev.Tool).Str("call", string(ev.Call)).
			Str("status", string(ev.Status)).Dur("ms", ev.Duration).Msg("tool call")
	case domain.PermissionDone:
		l.log.Debug().Str("session", string(ev.Session)).Str("tool", ev.Tool).Bool("asked", ev.Asked).
			Str("option", ev.Option).Dur("ms", ev.Duration).Msg("permission")
	case domain.SessionOpened:
		l.log.Info().Str("session", string(ev.Session)).Str("how", ev.How).Msg("session opened")
	case domain.SessionReleased:
		l.log.Info().Str("session", string(ev.Session)).Str("how", ev.How).Msg("session released")
	case domain.Trouble:
		l.log.Error().Err(ev.Err).Str("session", string(ev.Session)).Msg(ev.Where)
	}
}

func (l *Logger) turnDone(ev domain.TurnDone) {
	e := l.log.Info()
	if ev.Err != nil {
		e = l.log.Error().Err(ev.Err)
	}
	if ev.Stop == domain.StopCancelled && ev.Cause != nil {
		e = e.Str("cause", ev.Cause.Error())
	}
	e.Str("session", string(ev.Session)).Str("stop", ev.Stop.String()).Dur("ms", ev.Duration).
		Int("requests", ev.Requests).Int("calls", ev.Calls).
		Int64("in", ev.Usage.Input).Int64("out", ev.Usage.Output).Msg("turn done")
}
