package bootstrap

import (
	"testing"

	"github.com/berth-dev/berth/bootstrap/internal/config"
	"github.com/berth-dev/berth/core/domain"
	"github.com/berth-dev/berth/core/ports"
	"github.com/berth-dev/berth/core/ports/porttest"
)

func TestAgents_Conformance(t *testing.T) {
	porttest.Agents(porttest.T(t), porttest.AgentsHarness{
		Open: func(t porttest.TB, list []domain.Agent, def string) ports.Agents {
			cfg := &config.Config{DataDir: t.TempDir(), Agents: map[string]config.Agent{}, Profiles: map[string]config.Profile{}}
			cfg.ACP.DefaultAgent = def
			rules := func(names []domain.ToolRule) []config.Rule {
				var out []config.Rule
				for _, n := range names {
					out = append(out, config.Rule{Rule: n.Tool})
				}
				return out
			}
			for _, a := range list {
				cfg.Agents[a.Alias] = config.Agent{
					Alias: a.Alias, Title: a.Title, Description: a.Description, Enabled: a.Enabled, Model: a.Model,
					SystemPrompt: a.Prompt, Profile: a.Alias, MaxTurnRequests: 100,
				}
				cfg.Profiles[a.Alias] = config.Profile{
					Level: a.Policy.Level, Deny: rules(a.Policy.Deny), AlwaysAsk: rules(a.Policy.AlwaysAsk), AutoApprove: rules(a.Policy.AutoApprove),
				}
			}
			return newAgents(cfg, domain.ModelRef{}, func() domain.ModelRef { return offlineModel })
		},
	})
}
