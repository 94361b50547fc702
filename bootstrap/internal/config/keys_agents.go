package config

// agentKeys are the settings of agents.<alias>.
func agentKeys() []key {
	return []key{
		{
			path: "agents.<alias>.enabled", kind: bools{}, def: "true",
			doc: "Whether sessions may use the agent.",
			at:  func(t *target) any { return &t.agent.Enabled },
		},
		{
			path: "agents.<alias>.model", kind: models{}, flag: "--model",
			doc: "Model the agent asks. Without it the model is chosen as for a start without a file.",
			at:  func(t *target) any { return &t.agent.Model },
		},
		{
			path: "agents.<alias>.profile", kind: names{}, def: "default",
			doc: "Risk profile: an entry of `profiles`.",
			at:  func(t *target) any { return &t.agent.Profile },
		},
		{
			path: "agents.<alias>.workspace", kind: paths{},
			doc: "The agent's own directory. Without it `<data dir>/agents/<alias>/workspace`; created on first use.",
			at:  func(t *target) any { return &t.agent.Workspace },
		},
		{
			path: "agents.<alias>.system_prompt", kind: texts{},
			doc: "Instructions in place of the built-in ones.",
			at:  func(t *target) any { return &t.agent.SystemPrompt },
		},
		{
			path: "agents.<alias>.skills", kind: lists{paths{}}, def: "[]",
			doc: "Directories with skills.",
			at:  func(t *target) any { return &t.agent.Skills },
		},
		{
			path: "agents.<alias>.mcp_servers", kind: lists{names{}},
			doc: "Entries of `mcp_servers` the agent uses; `[]` is none. Without it all enabled ones.",
			at:  func(t *target) any { return &t.agent.MCPServers },
		},
		{
			path: "agents.<alias>.title", kind: texts{},
			doc: "Name shown to people.",
			at:  func(t *target) any { return &t.agent.Title },
		},
		{
			path: "agents.<alias>.description", kind: texts{},
			doc: "What the agent is for, shown to people.",
			at:  func(t *target) any { return &t.agent.Description },
		},
		{
			path: "agents.<alias>.max_turn_requests", kind: ints{1, 100_000}, def: "100",
			doc: "Model requests of one turn, after which it stops with `max_turn_requests`.",
			at:  func(t *target) any { return &t.agent.MaxTurnRequests },
		},
		{
			path: "agents.<alias>.max_output_tokens", kind: ints{1, 100_000_000},
			doc: "Tokens of one reply. Without it the provider's default.",
			at:  func(t *target) any { return &t.agent.MaxOutputTokens },
		},
		{
			path: "agents.<alias>.max_cost_per_session", kind: floats{0, 1e9},
			doc: "US dollars a session may cost. Without it, or 0, no limit.",
			at:  func(t *target) any { return &t.agent.MaxCostPerSession },
		},
		{
			path: "agents.<alias>.max_cost_per_day", kind: floats{0, 1e9},
			doc: "US dollars the agent may cost in a day. Without it, or 0, no limit.",
			at:  func(t *target) any { return &t.agent.MaxCostPerDay },
		},
		{
			path: "agents.<alias>.thought_level", kind: oneOf{"off", "minimal", "low", "medium", "high", "xhigh"},
			doc: "How much the model reasons before it answers. Without it the model's default.",
			at:  func(t *target) any { return &t.agent.ThoughtLevel },
		},
	}
}
