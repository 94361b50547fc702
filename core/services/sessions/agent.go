package sessions

import (
	"strings"

	"github.com/berth-dev/berth/core/domain"
	"github.com/berth-dev/berth/core/ports"
)

// choose finds the agent of a new session: the one the client named, else the
// key's, else the connection's, else the default, else the only one. Whatever
// step chose it, it must exist, be enabled and be one the client may use: a bad default is an error,
// never a fall-through.
func (s *Service) choose(c ports.Client, req domain.NewSession) (domain.Agent, error) {
	alias, where := req.Agent, "the request"
	if keyed := keyAgent(req.Key); keyed != "" {
		if alias != "" && alias != keyed {
			return domain.Agent{}, domain.Errorf(domain.InvalidArgument,
				"The session key %q belongs to agent %q but the request names agent %q; send one of them", req.Key, keyed, alias)
		}
		alias, where = keyed, "the session key"
	}
	if alias == "" {
		alias, where = strings.TrimSpace(req.FallbackAgent), "the connection"
	}
	rights := c.Info().Rights
	if alias == "" && rights != nil && len(rights.Agents) == 1 {
		alias, where = rights.Agents[0], "the client's rights"
	}
	if alias == "" {
		alias, where = s.p.Agents.Default(), "acp.default_agent"
	}
	if alias == "" {
		all := s.p.Agents.All()
		if len(all) != 1 {
			return domain.Agent{}, domain.Errorf(domain.InvalidArgument,
				"The agents %s are configured; name one in agentAlias or set acp.default_agent", s.aliases())
		}
		alias, where = all[0].Alias, "the configuration"
	}
	if !rights.Agent(alias) {
		return domain.Agent{}, deniedAgent(c, alias)
	}
	return s.enabled(alias, where)
}

// keyAgent returns the alias of a key of the form "agent:<alias>:<name>".
func keyAgent(key string) string {
	rest, ok := strings.CutPrefix(key, "agent:")
	if !ok {
		return ""
	}
	alias, _, ok := strings.Cut(rest, ":")
	if !ok {
		return ""
	}
	return alias
}

func (s *Service) enabled(alias, where string) (domain.Agent, error) {
	a, ok := s.p.Agents.Agent(alias)
	switch {
	case !ok:
		return domain.Agent{}, domain.Errorf(domain.InvalidArgument,
			"The agent %q named by %s is not configured; configured: %s", alias, where, s.aliases())
	case !a.Enabled:
		return domain.Agent{}, domain.Errorf(domain.InvalidArgument,
			"The agent %q named by %s is disabled; set agents.%s.enabled or name another", alias, where, alias)
	}
	return a, nil
}

// onlyEnabled returns the single agent that is enabled.
func (s *Service) onlyEnabled() (domain.Agent, bool) {
	var found []domain.Agent
	for _, a := range s.p.Agents.All() {
		if a.Enabled {
			found = append(found, a)
		}
	}
	if len(found) != 1 {
		return domain.Agent{}, false
	}
	return s.p.Agents.Agent(found[0].Alias)
}

func (s *Service) aliases() string {
	var names []string
	for _, a := range s.p.Agents.All() {
		names = append(names, a.Alias)
	}
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}

// owner finds the agent of a stored session: its own if it is still enabled,
// else the default, else the only enabled one.
func (s *Service) owner(alias string) (domain.Agent, error) {
	if a, ok := s.p.Agents.Agent(alias); ok && a.Enabled {
		return a, nil
	}
	if def := s.p.Agents.Default(); def != "" {
		return s.enabled(def, "acp.default_agent")
	}
	if only, ok := s.onlyEnabled(); ok {
		return only, nil
	}
	return domain.Agent{}, domain.Errorf(domain.InvalidArgument,
		"The session's agent %q is gone or disabled and no default says which to use; set acp.default_agent (configured: %s)", alias, s.aliases())
}
