package config

// serverKeys are the settings of mcp_servers.<name>.
func serverKeys() []key {
	return []key{
		{
			path: "mcp_servers.<name>.enabled", kind: bools{}, def: "true",
			doc: "Whether agents may use the server.",
			at:  func(t *target) any { return &t.server.Enabled },
		},
		{
			path: "mcp_servers.<name>.type", kind: oneOf{"stdio", "http", "sse"},
			doc: "Transport. Without it `stdio` for a command and `http` for an address.",
			at:  func(t *target) any { return &t.server.Type },
		},
		{
			path: "mcp_servers.<name>.command", kind: texts{},
			doc: "Program to start. Either this or `url` is needed.",
			at:  func(t *target) any { return &t.server.Command },
		},
		{
			path: "mcp_servers.<name>.args", kind: lists{texts{allowEmpty: true}}, def: "[]",
			doc: "Its arguments. Others can see them in the process list: keys belong into `env`.",
			at:  func(t *target) any { return &t.server.Args },
		},
		{
			path: "mcp_servers.<name>.env.<VARIABLE>", kind: secrets{inMap: true},
			doc: "An environment variable given to the program.",
			at:  func(t *target) any { return secretSlot{&t.server.Env, t.verbatim} },
		},
		{
			path: "mcp_servers.<name>.url", kind: secrets{url: true},
			doc: "Address of a server that runs already. It is handled as a secret, because such addresses often hold one.",
			at:  func(t *target) any { return &t.server.URL },
		},
		{
			path: "mcp_servers.<name>.headers.<Header>", kind: secrets{inMap: true},
			doc: "A header sent with each request.",
			at:  func(t *target) any { return secretSlot{&t.server.Headers, t.verbatim} },
		},
		{
			path: "mcp_servers.<name>.timeout_secs", kind: ints{1, 3600}, def: "10",
			doc: "Seconds the server may take to start and list its tools.",
			at:  func(t *target) any { return &t.server.Timeout },
		},
	}
}
