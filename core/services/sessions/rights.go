package sessions

import (
	"slices"
	"strings"

	"github.com/berth-dev/berth/core/domain"
	"github.com/berth-dev/berth/core/ports"
)

// mayUse refuses a client a session of which it may not know, and an agent that
// it may not use.
func mayUse(c ports.Client, row domain.Session, agent domain.Agent) error {
	rights := c.Info().Rights
	if !rights.Agent(agent.Alias) {
		return deniedAgent(c, agent.Alias)
	}
	if !rights.Session(row) {
		return denied(row.ID)
	}
	return nil
}

func denied(id domain.SessionID) error {
	return domain.Errorf(domain.Denied, "Session %s is not one that this client may use: its agent or its directories are beyond its rights", id).
		With("sessionId", string(id))
}

func deniedAgent(c ports.Client, alias string) error {
	return domain.Errorf(domain.Denied, "The agent %q is not one that this client may use; it may use %s", alias, strings.Join(c.Info().Rights.Agents, ", "))
}

// mayHave refuses a client directories that its rights do not cover.
func mayHave(c ports.Client, dirs domain.Session) error {
	rights := c.Info().Rights
	all := append([]string{dirs.Cwd}, dirs.Additional...)
	if i := slices.IndexFunc(all, func(d string) bool { return !rights.Directory(d) }); i >= 0 {
		return domain.Errorf(domain.Denied, "The directory %s is not one that this client may use; it may use what lies below %s",
			all[i], strings.Join(rights.Roots, ", "))
	}
	return nil
}
