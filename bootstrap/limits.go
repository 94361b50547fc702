package bootstrap

import (
	"context"
	"fmt"

	"github.com/berth-dev/berth/core/domain"
	"github.com/berth-dev/berth/core/ports"
)

// warnOfLimits tells of limits of cost that cannot be kept, because nobody
// knows the prices of the agent's model. Nothing is looked up where no limit is
// set: starts are to be quick.
func warnOfLimits(agents ports.Agents, models ports.Models, obs ports.Observer) {
	for _, a := range agents.All() {
		if !a.Enabled || a.MaxCostPerSession == 0 && a.MaxCostPerDay == 0 {
			continue
		}
		info := models.Describe(a.Model)
		if info.Offline {
			continue
		}
		for _, note := range unkept(a, info) {
			obs.Observe(context.Background(), domain.Trouble{Where: note})
		}
	}
}

// unkept says which limits of cost of an agent cannot be kept.
func unkept(a domain.Agent, info domain.ModelInfo) []string {
	if _, known := info.Cost(domain.Usage{}); known {
		return nil
	}
	var notes []string
	for _, l := range []struct {
		setting string
		limit   domain.MicroUSD
	}{{"max_cost_per_session", a.MaxCostPerSession}, {"max_cost_per_day", a.MaxCostPerDay}} {
		if l.limit > 0 {
			notes = append(notes, fmt.Sprintf(
				"agents.%s.%s cannot be kept: the prices of %s are not known; set input_price and output_price in providers.%s.models.%q",
				a.Alias, l.setting, a.Model, a.Model.Provider, a.Model.Model))
		}
	}
	return notes
}

// disappoints says which settings of an agent do nothing with its model.
func disappoints(a domain.Agent, info domain.ModelInfo) []string {
	notes := unkept(a, info)
	if a.Thoughts != "" && a.Thoughts != domain.ThoughtsOff && !info.Thoughts {
		notes = append(notes, fmt.Sprintf(
			"agents.%s.thought_level does nothing: as far as known %s does not think; if it does, set thoughts = true in providers.%s.models.%q",
			a.Alias, a.Model, a.Model.Provider, a.Model.Model))
	}
	return notes
}
