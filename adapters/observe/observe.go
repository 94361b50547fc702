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
	"strings"
	"sync"
	"sync/atomic"
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
	Out   io.Writer // where lines go, usually stderr
	Level string    // trace, debug, info, warn, error, off
	JSON  bool      // else for people
	Color bool      // for people on a terminal
	// Secrets are the values to mask; nil for none. It is asked for each line;
	// what it returns may only grow, at its end.
	Secrets func() []string
}

// Logger is an Observer that logs, and the logger of bootstrap.
type Logger struct {
	log  atomic.Pointer[zerolog.Logger]
	ring diode.Writer
	once sync.Once
}

var _ ports.Observer = (*Logger)(nil)

// New returns a logger. It fails when the level is none.
func New(c Config) (*Logger, error) {
	level, err := parseLevel(c.Level)
	if err != nil {
		return nil, err
	}
	l := &Logger{}
	var out io.Writer = &masker{out: c.Out, secrets: c.Secrets}
	if !c.JSON {
		out = zerolog.ConsoleWriter{Out: out, NoColor: !c.Color, TimeFormat: time.DateTime}
	}
	l.ring = diode.NewWriter(out, ring, 0, func(missed int) {
		fmt.Fprintf(c.Out, "%d log lines were dropped because nobody reads them fast enough\n", missed)
	})
	log := zerolog.New(l.ring).Level(level).With().Timestamp().Logger()
	l.log.Store(&log)
	return l, nil
}

func parseLevel(name string) (zerolog.Level, error) {
	level, err := zerolog.ParseLevel(name)
	switch {
	case name == "off":
		return zerolog.Disabled, nil
	case err != nil:
		return level, fmt.Errorf("log level %q is none of trace, debug, info, warn, error, off", name)
	}
	return level, nil
}

// SetLevel changes the least severe entries that are written, from the next
// one on. It fails when the level is none.
func (l *Logger) SetLevel(name string) error {
	level, err := parseLevel(name)
	if err != nil {
		return err
	}
	log := l.Log().Level(level)
	l.log.Store(&log)
	return nil
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
func (l *Logger) Log() *zerolog.Logger { return l.log.Load() }

// fields adds text fields, given as name and value in turn, and leaves out
// those without a value.
func fields(e *zerolog.Event, pairs ...string) *zerolog.Event {
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			e = e.Str(pairs[i], pairs[i+1])
		}
	}
	return e
}

// named gives a model's name; of none it gives "".
func named(ref domain.ModelRef) string {
	if ref == (domain.ModelRef{}) {
		return ""
	}
	return ref.String()
}

// excerpt cuts a peer's text.
func excerpt(s string) string {
	const most = 100
	if len(s) > most {
		return strings.ToValidUTF8(s[:most], "") + "…"
	}
	return s
}

// Observe logs one event.
func (l *Logger) Observe(_ context.Context, ev domain.Event) {
	switch ev := ev.(type) {
	case domain.TurnBegan:
		fields(l.Log().Debug(), "session", string(ev.Session), "turn", string(ev.Turn)).Msg("turn began")
	case domain.TurnDone:
		l.turnDone(ev)
	case domain.StepDone:
		// Only Debug: a failure is told once at each level, and above with its turn.
		fields(l.Log().Debug().Err(ev.Err), "session", string(ev.Session), "turn", string(ev.Turn), "model", named(ev.Model)).Dur("ms", ev.Duration).
			Int64("in", ev.Usage.Input).Int64("out", ev.Usage.Output).Msg("model request")
	case domain.CallDone:
		fields(l.Log().Debug(), "session", string(ev.Session), "turn", string(ev.Turn), "tool", ev.Tool, "call", string(ev.Call), "status", string(ev.Status)).
			Dur("ms", ev.Duration).Msg("tool call")
	case domain.PermissionDone:
		fields(l.Log().Debug(), "session", string(ev.Session), "turn", string(ev.Turn), "tool", ev.Tool, "call", string(ev.Call), "option", ev.Option).Bool("asked", ev.Asked).
			Dur("ms", ev.Duration).Msg("permission")
	case domain.SessionOpened:
		fields(l.Log().Info(), "session", string(ev.Session), "how", ev.How).Msg("session opened")
	case domain.SessionReleased:
		fields(l.Log().Info(), "session", string(ev.Session), "how", ev.How).Msg("session released")
	case domain.Escalated:
		l.Log().Warn().Str("session", string(ev.Session)).Str("call", string(ev.Call)).Str("urgency", ev.Urgency).
			Str("summary", ev.Summary).Msg("the agent calls for a human")
	case domain.Noted:
		fields(l.Log().Info(), "session", string(ev.Session)).Msg(ev.What)
	case domain.PeerConnected:
		fields(l.Log().Info(), "connection", ev.Connection, "request", ev.Request, "remote", ev.Remote, "principal", ev.Principal,
			"transport", ev.Transport, "protocol", ev.Protocol).Msg("client connected")
	case domain.PeerGone:
		fields(l.Log().Info().Err(ev.Err), "connection", ev.Connection, "transport", ev.Transport).Dur("ms", ev.Duration).Msg("client gone")
	case domain.PeerRefused:
		// The path is the peer's own text, of any length.
		fields(l.Log().Warn(), "request", ev.Request, "remote", ev.Remote, "method", excerpt(ev.Method), "path", excerpt(ev.Path), "why", ev.Why).
			Int("status", ev.Status).Msg("request refused")
	case domain.Trouble:
		fields(l.Log().Error().Err(ev.Err), "session", string(ev.Session)).Msg(ev.Where)
	}
}

func (l *Logger) turnDone(ev domain.TurnDone) {
	e, stop, cause := l.Log().Info(), ev.Stop.String(), ""
	if ev.Err != nil {
		e, stop = l.Log().Error().Err(ev.Err), ""
	}
	if ev.Stop == domain.StopCancelled && ev.Cause != nil {
		cause = ev.Cause.Error()
	}
	fields(e, "cause", cause, "session", string(ev.Session), "turn", string(ev.Turn), "agent", ev.Agent, "stop", stop).Dur("ms", ev.Duration).
		Int("requests", ev.Requests).Int("calls", ev.Calls).
		Int64("in", ev.Usage.Input).Int64("out", ev.Usage.Output).Msg("turn done")
}
