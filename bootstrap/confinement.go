package bootstrap

import (
	"context"

	"github.com/berth-dev/berth/core/domain"
)

// tryConfinement finds out how each agent's commands are held before the first
// client asks, and tells the operator what holds them less than it could. It
// ends early with the context.
func (a *App) tryConfinement(ctx context.Context) {
	told := map[string]bool{}
	for _, agent := range a.p.Agents.All() {
		if !agent.Enabled {
			continue
		}
		p := a.p.Sandbox.Posture(ctx, agent.Alias)
		if ctx.Err() != nil {
			return
		}
		name := a.cfg.Agents[agent.Alias].Profile
		note := confinementNote(sandboxFinding(name, a.cfg.Profiles[name], p))
		if note != "" && !told[note] {
			told[note] = true
			a.p.Observer.Observe(ctx, domain.Noted{What: note})
		}
	}
}

// confinementNote is what the log of a daemon says of a finding; "" when there
// is nothing to say.
func confinementNote(f Finding) string {
	if f.State == FindingOK {
		return ""
	}
	note := f.Name + ": " + f.Detail
	if f.Mend != "" {
		note += " (" + f.Mend + ")"
	}
	return note
}
