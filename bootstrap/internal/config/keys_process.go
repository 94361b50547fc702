package config

import "slices"

// processKeys are the settings of every process.
func processKeys() []key {
	return slices.Concat(
		[]key{
			{
				path: "version", kind: ints{1, Version}, def: "1",
				doc: "Version of this file's format. A file without it is of the current version; older ones are migrated and the old file is kept beside the new one.",
				at:  func(t *target) any { return &t.cfg.Version },
			},
			{
				path: "data_dir", kind: paths{}, flag: "--data-dir",
				doc: "Directory of sessions, uploads and agent workspaces. Without it `$XDG_DATA_HOME/berth`, else `~/.local/share/berth`. `$BERTH_DATA_DIR` and the flag come first.",
				at:  func(t *target) any { return &t.cfg.DataDir },
			},
		},
		acpKeys(), logKeys(), storeKeys(),
	)
}

func acpKeys() []key {
	return []key{
		{
			path: "acp.default_agent", kind: names{}, flag: "--agent",
			doc: "Alias used when `session/new` names no agent.",
			at:  func(t *target) any { return &t.cfg.ACP.DefaultAgent },
		},
		{
			path: "acp.max_sessions", kind: ints{1, 100_000}, def: "10", flag: "--max-sessions",
			doc: "Active sessions of a stdio process or of one connection.",
			at:  func(t *target) any { return &t.cfg.ACP.MaxSessions },
		},
		{
			path: "acp.session_timeout_secs", kind: ints{1, 604_800}, def: "3600", flag: "--session-timeout",
			doc: "Seconds after which an idle session leaves memory; the next request brings it back unseen. Without a store nothing is evicted. Also the longest wait for a permission answer.",
			at:  func(t *target) any { return &t.cfg.ACP.SessionTimeout },
		},
		{
			path: "acp.dialect", kind: oneOf{"auto", "acp", "zeroclaw"}, def: "auto", flag: "--dialect",
			doc: "Dialect spoken; `auto` decides per connection by what the client sends with `initialize`.",
			at:  func(t *target) any { return &t.cfg.ACP.Dialect },
		},
		{
			path: "acp.busy", kind: oneOf{"auto", "queue", "reject"}, def: "auto",
			doc: "What happens to a prompt that arrives during a turn; `auto` queues in the acp dialect and rejects in zeroclaw.",
			at:  func(t *target) any { return &t.cfg.ACP.Busy },
		},
		{
			path: "acp.queue_limit", kind: ints{0, 1000}, def: "8",
			doc: "Prompts that may wait behind a running turn, per session.",
			at:  func(t *target) any { return &t.cfg.ACP.QueueLimit },
		},
		{
			path: "acp.max_message_bytes", kind: sizes{1 << 10, 1 << 30}, def: "64 MiB",
			doc: "Longest inbound message on stdio.",
			at:  func(t *target) any { return &t.cfg.ACP.MaxMessageBytes },
		},
		{
			path: "acp.max_prompt_blob_bytes", kind: sizes{1, 1 << 30}, def: "32 MiB",
			doc: "All blobs of one prompt together, decoded. Each single one may have at most 10 MiB.",
			at:  func(t *target) any { return &t.cfg.ACP.MaxPromptBlobBytes },
		},
		{
			path: "acp.experimental_v2", kind: bools{}, def: "false",
			doc: "Speak `protocolVersion: 2` to a client that asks for it.",
			at:  func(t *target) any { return &t.cfg.ACP.ExperimentalV2 },
		},
	}
}

func logKeys() []key {
	return []key{
		{
			path: "log.level", kind: oneOf{"trace", "debug", "info", "warn", "error", "off"}, flag: "--log-level",
			doc: "Least severe entries that are written. Without it `info` for the daemon and `warn` for a stdio process.",
			at:  func(t *target) any { return &t.cfg.Log.Level },
		},
		{
			path: "log.format", kind: oneOf{"console", "json"}, def: "console",
			doc: "Form of an entry: for people, or one JSON object a line.",
			at:  func(t *target) any { return &t.cfg.Log.Format },
		},
		{
			path: "log.file", kind: paths{},
			doc: "File that entries are appended to, in place of stderr.",
			at:  func(t *target) any { return &t.cfg.Log.File },
		},
	}
}

func storeKeys() []key {
	return []key{
		{
			path: "store.driver", kind: oneOf{"sqlite", "postgres", "memory"}, def: "sqlite",
			doc: "Where sessions are kept. Sessions are never deleted automatically; `memory` forgets them at exit.",
			at:  func(t *target) any { return &t.cfg.Store.Driver },
		},
		{
			path: "store.dsn", kind: secrets{},
			doc: "Connection string of a Postgres database; only for that driver.",
			at:  func(t *target) any { return &t.cfg.Store.DSN },
		},
		{
			path: "store.required", kind: bools{}, def: "false",
			doc: "Refuse to start when the store cannot be opened. Otherwise the process runs in memory and says so.",
			at:  func(t *target) any { return &t.cfg.Store.Required },
		},
	}
}
