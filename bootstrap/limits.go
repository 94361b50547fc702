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
		if _, known := info.Cost(domain.Usage{}); known || info.Offline {
			continue
		}
		for setting, limit := range map[string]domain.MicroUSD{
			"max_cost_per_session": a.MaxCostPerSession, "max_cost_per_day": a.MaxCostPerDay,
		} {
			if limit > 0 {
				obs.Observe(context.Background(), domain.Trouble{Where: fmt.Sprintf(
					"agents.%s.%s cannot be kept: the prices of %s are not known; set input_price and output_price in providers.%s.models.%q",
					a.Alias, setting, a.Model, a.Model.Provider, a.Model.Model)})
			}
		}
	}
}
