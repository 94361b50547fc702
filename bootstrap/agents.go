package bootstrap

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/berth-dev/berth/bootstrap/internal/config"
	"github.com/berth-dev/berth/core/domain"
	"github.com/berth-dev/berth/core/ports"
)

// offlineModel is what an agent uses when nobody chose a model and none can
// be found.
var offlineModel = domain.ModelRef{Provider: "offline", Model: "offline"}

// agents is ports.Agents over the configuration.
type agents struct {
	cfg      *config.Config
	override domain.ModelRef // --model: every agent's
	find     func() domain.ModelRef
}

var _ ports.Agents = (*agents)(nil)

func newAgents(cfg *config.Config, override domain.ModelRef, find func() domain.ModelRef) *agents {
	return &agents{cfg: cfg, override: override, find: sync.OnceValue(find)}
}

// Agent returns one agent. The first time it may look for a local model, for
// at most 300 ms.
func (a *agents) Agent(alias string) (domain.Agent, bool) {
	c, ok := a.cfg.Agents[alias]
	if !ok {
		return domain.Agent{}, false
	}
	agent := a.build(c)
	if agent.Model == (domain.ModelRef{}) {
		agent.Model = a.find()
	}
	return agent, true
}

// All returns every agent. A model that would have to be looked for is named
// as the built-in one.
func (a *agents) All() []domain.Agent {
	all := make([]domain.Agent, 0, len(a.cfg.Agents))
	for _, c := range a.cfg.Agents {
		agent := a.build(c)
		if agent.Model == (domain.ModelRef{}) {
			agent.Model = offlineModel
		}
		all = append(all, agent)
	}
	slices.SortFunc(all, func(x, y domain.Agent) int { return strings.Compare(x.Alias, y.Alias) })
	return all
}

// Default returns acp.default_agent.
func (a *agents) Default() string { return a.cfg.ACP.DefaultAgent }

// build turns configuration into the core's agent. Model is left zero when
// nothing says which.
func (a *agents) build(c config.Agent) domain.Agent {
	model := a.override
	if model == (domain.ModelRef{}) {
		model, _ = a.cfg.AgentModel(c.Alias)
	}
	p := a.cfg.Profiles[c.Profile]
	return domain.Agent{
		Alias: c.Alias, Title: c.Title, Description: c.Description, Enabled: c.Enabled,
		Model: model, Workspace: a.cfg.AgentWorkspace(c.Alias), Prompt: c.SystemPrompt,
		Skills: slices.Clone(c.Skills),
		Policy: domain.Policy{
			Level: p.Level, Deny: toolRules(p.Deny), AlwaysAsk: toolRules(p.AlwaysAsk), AutoApprove: toolRules(p.AutoApprove),
			Network: domain.NetworkMode(p.Network), Taint: p.Taint,
		},
		MaxTurnRequests: c.MaxTurnRequests, MaxOutputTokens: c.MaxOutputTokens, Thoughts: domain.ThoughtLevel(c.ThoughtLevel),
		MaxCostPerSession: domain.Dollars(c.MaxCostPerSession), MaxCostPerDay: domain.Dollars(c.MaxCostPerDay),
	}
}

// ollamaWait bounds the look for a local Ollama.
const ollamaWait = 300 * time.Millisecond

// findOllama asks an Ollama for its newest model, and falls back to the
// built-in model when none answers in time. base is the server's address
// without a path.
func findOllama(base string) domain.ModelRef {
	ctx, cancel := context.WithTimeout(context.Background(), ollamaWait)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, base+"/api/tags", nil)
	if err != nil {
		return offlineModel
	}
	client := &http.Client{Transport: &http.Transport{Proxy: nil}}
	defer client.CloseIdleConnections()
	resp, err := client.Do(req)
	if err != nil {
		return offlineModel
	}
	defer resp.Body.Close()
	var tags struct {
		Models []struct {
			Name string `json:"name"`
		} `json:"models"`
	}
	if resp.StatusCode != http.StatusOK || json.NewDecoder(http.MaxBytesReader(nil, resp.Body, 4<<20)).Decode(&tags) != nil {
		return offlineModel
	}
	for _, m := range tags.Models {
		if m.Name != "" {
			return domain.ModelRef{Provider: "ollama", Model: m.Name}
		}
	}
	return offlineModel
}
