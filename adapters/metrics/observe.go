package metrics

import (
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/berth-dev/berth/core/domain"
)

// count counts one event. The caller holds the mutex.
func (m *Metrics) count(ev domain.Event) {
	switch ev := ev.(type) {
	case domain.TurnBegan, domain.Noted: // what runs is looked up
	case domain.TurnDone:
		m.turnDone(ev)
	case domain.StepDone:
		m.stepDone(ev)
	case domain.CallDone:
		tool := ev.Tool
		if ev.Unknown {
			tool = "unknown"
		}
		m.at(m.calls, tool, string(ev.Status)).add(1)
		m.at(m.callSeconds, tool).took(ev.Duration)
	case domain.PermissionDone:
		m.at(m.permissions, permission(ev)).add(1)
		if ev.Asked {
			m.at(m.permissionWait).took(ev.Duration)
		}
	case domain.SessionOpened:
		m.at(m.opened, ev.How).add(1)
	case domain.SessionReleased:
		m.at(m.released, ev.How).add(1)
	case domain.Trouble:
		m.at(m.troubles).add(1)
	case domain.PeerConnected:
		m.at(m.connections, ev.Transport).add(1)
		m.at(m.connected, ev.Transport).add(1)
	case domain.PeerGone:
		m.at(m.connections, ev.Transport).add(-1)
		m.at(m.connectedSeconds, ev.Transport).took(ev.Duration)
	case domain.PeerRefused:
		m.at(m.refused, strconv.Itoa(ev.Status), ev.Why).add(1)
	case domain.Escalated:
		m.at(m.escalations, ev.Urgency).add(1)
	}
}

func (m *Metrics) turnDone(ev domain.TurnDone) {
	outcome := ev.Stop.String()
	if ev.Err != nil {
		outcome = "failed"
		m.at(m.turnFailures, code(ev.Err)).add(1)
	}
	if ev.Stop == domain.StopCancelled {
		m.at(m.turnCauses, cause(ev.Cause)).add(1)
	}
	m.at(m.turns, ev.Agent, outcome).add(1)
	m.at(m.turnSeconds).took(ev.Duration)
	m.at(m.turnWait).took(ev.Waited)
	m.first(m.turnFirst, ev.FirstText)
}

func (m *Metrics) stepDone(ev domain.StepDone) {
	model := named(ev.Model)
	m.at(m.requests, model, stepOutcome(ev.Err)).add(1)
	m.at(m.requestSeconds, model).took(ev.Duration)
	m.first(m.requestFirst, ev.FirstText, model)
	for kind, n := range map[string]int64{
		"input": ev.Usage.Input, "output": ev.Usage.Output, "thought": ev.Usage.Thought,
		"cached_read": ev.Usage.CachedRead, "cached_write": ev.Usage.CachedWrite,
	} {
		if n > 0 {
			m.at(m.tokens, model, kind).add(float64(n))
		}
	}
	if ev.Cost != nil && *ev.Cost > 0 {
		m.at(m.cost, ev.Agent, model).add(float64(*ev.Cost) / 1e6)
	}
	asked := named(ev.Asked)
	if ev.Retries > 0 {
		m.at(m.retries, asked).add(float64(ev.Retries))
	}
	if ev.Asked != ev.Model && ev.Asked != (domain.ModelRef{}) {
		m.at(m.fallbacks, asked, model).add(1)
	}
}

// first adds how long the first text took, if there was one.
func (m *Metrics) first(v *vec, d time.Duration, labels ...string) {
	if d > 0 {
		m.at(v, labels...).took(d)
	}
}

// named is a model's name; "" of none.
func named(ref domain.ModelRef) string {
	if ref == (domain.ModelRef{}) {
		return ""
	}
	return ref.String()
}

// code is the code of an error as a value of a label.
func code(err error) string { return strings.ReplaceAll(domain.CodeOf(err).String(), " ", "_") }

// stepOutcome says how a request to a model ended.
func stepOutcome(err error) string {
	var c *domain.Cause
	switch {
	case err == nil:
		return "ok"
	case errors.As(err, &c):
		return "cancelled"
	}
	return code(err)
}

// cause is who cancelled a turn.
func cause(err error) string {
	for _, c := range []struct {
		cause *domain.Cause
		name  string
	}{
		{domain.CancelledByClient, "client"}, {domain.RequestCancelled, "request"}, {domain.Disconnected, "disconnected"},
		{domain.SessionClosed, "session_closed"}, {domain.ProcessEnding, "shutdown"},
	} {
		if errors.Is(err, c.cause) {
			return c.name
		}
	}
	return other
}

// permission is how a permission was decided.
func permission(ev domain.PermissionDone) string {
	switch {
	case !ev.Asked && ev.Verdict == domain.Allow:
		return "allowed_by_policy"
	case !ev.Asked:
		return "refused_by_policy"
	case ev.Outcome == domain.Withdrawn:
		return "cancelled"
	case ev.Outcome == domain.Selected && strings.HasPrefix(ev.Option, "allow"):
		return "allowed"
	case ev.Outcome == domain.Selected:
		return "rejected"
	}
	return "unanswered"
}
