package sessions

import (
	"context"
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

// foreign reports whether somebody else has the session and c may not know of
// every one. Then its rights, which depend on what is stored, are seen before
// who has the session is disturbed, or told of.
func (s *Service) foreign(c ports.Client, id domain.SessionID) bool {
	if r := c.Info().Rights; r == nil || r.Agents == nil && r.Roots == nil {
		return false
	}
	s.reg.mu.Lock()
	defer s.reg.mu.Unlock()
	sl := s.reg.slots[id]
	return sl != nil && sl.client != c
}

// mayTouch refuses a client a session that its rights do not cover.
func (s *Service) mayTouch(ctx context.Context, c ports.Client, id domain.SessionID) error {
	if c.Info().Rights == nil {
		return nil
	}
	row, err := s.p.Sessions.Load(ctx, id)
	if err == nil && !c.Info().Rights.Session(row) {
		err = denied(id)
	}
	return err
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

// hide replaces an error about directories that a client may not have in any
// case: whether they exist is not for it to know.
func (s *Service) hide(c ports.Client, dirs domain.Directories, err error) error {
	for _, dir := range append([]string{dirs.Cwd}, dirs.Additional...) {
		if dir == "" {
			continue
		}
		if no := mayHave(c, domain.Session{Cwd: s.p.Roots.Canonical(dir)}); no != nil {
			return no
		}
	}
	return err
}
