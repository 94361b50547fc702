package config

import "strings"

// profileKeys are the settings of profiles.<name>.
func profileKeys() []key {
	return []key{
		{
			path: "profiles.<name>.level", kind: oneOf{"read_only", "supervised", "full"}, def: "supervised",
			doc: "`read_only` changes nothing, `supervised` asks before it does, `full` does not ask.",
			at:  func(t *target) any { return &t.profile.Level },
		},
		{
			path: "profiles.<name>.allowed_roots", kind: lists{paths{}}, def: "[]",
			doc: "More directories that file and shell tools may use.",
			at:  func(t *target) any { return &t.profile.AllowedRoots },
		},
		{
			path: "profiles.<name>.forbidden_paths", kind: lists{paths{negatable: true}}, def: "[]",
			doc: "Paths nobody may use at any level, added to the built-in ones (" + strings.Join(forbiddenText(), ", ") + ", the configuration and data directories). `!path` takes a built-in one away, never the last two.",
			at:  func(t *target) any { return &t.profile.ForbiddenPaths },
		},
		{
			path: "profiles.<name>.deny", kind: lists{rules{}}, def: "[]",
			doc: "Tools, or rules such as `{rule = \"shell(git push)\", match = [\"git push origin\"]}`, that are refused. Deny beats ask, ask beats remembered answers, those beat allow.",
			at:  func(t *target) any { return &t.profile.Deny },
		},
		{
			path: "profiles.<name>.always_ask", kind: lists{rules{}}, def: "[]",
			doc: "Tools or rules that are asked for each time.",
			at:  func(t *target) any { return &t.profile.AlwaysAsk },
		},
		{
			path: "profiles.<name>.auto_approve", kind: lists{rules{}}, def: "[]",
			doc: "Tools or rules that are allowed without a question.",
			at:  func(t *target) any { return &t.profile.AutoApprove },
		},
		{
			path: "profiles.<name>.network", kind: oneOf{"ask", "allow", "deny"}, def: "ask",
			doc: "Network calls of tools. `full` never asks, `deny` denies there too.",
			at:  func(t *target) any { return &t.profile.Network },
		},
		{
			path: "profiles.<name>.taint", kind: bools{}, def: "false",
			doc: "After foreign content entered a turn, network calls ask in `full` as well.",
			at:  func(t *target) any { return &t.profile.Taint },
		},
		{
			path: "profiles.<name>.sandbox", kind: oneOf{"auto", "none", "namespaces", "bubblewrap", "landlock", "seatbelt"}, def: "auto",
			doc: "Confinement of commands: `auto` is the strongest that works, a named one that is missing refuses to run commands, `none` is the operator's explicit choice.",
			at:  func(t *target) any { return &t.profile.Sandbox },
		},
		{
			path: "profiles.<name>.shell_env", kind: lists{variables{}},
			def: "COLUMNS, HOME, LANG, LC_*, LINES, LOGNAME, NO_COLOR, PATH, SHELL, TERM, TMPDIR, TZ, USER",
			doc: "Environment variables passed to commands; a `*` at the end covers every name that begins so. Variables that hold keys are never passed.",
			at:  func(t *target) any { return &t.profile.ShellEnv },
		},
		{
			path: "profiles.<name>.limits.output_bytes", kind: sizes{1 << 10, 1 << 30}, def: "1 MiB",
			doc: "Output of a command that the model sees; all of it goes to a file.",
			at:  func(t *target) any { return &t.profile.Limits.OutputBytes },
		},
		{
			path: "profiles.<name>.limits.wall_secs", kind: ints{1, 3600}, def: "120",
			doc: "Seconds a command may run; a call may ask for more, up to 3600.",
			at:  func(t *target) any { return &t.profile.Limits.Wall },
		},
		{
			path: "profiles.<name>.limits.processes", kind: ints{1, 1_000_000}, def: "256",
			doc: "Processes of a command.",
			at:  func(t *target) any { return &t.profile.Limits.Processes },
		},
		{
			path: "profiles.<name>.limits.memory_bytes", kind: sizes{1 << 20, 1 << 50},
			doc: "Memory of a command. Without it no limit.",
			at:  func(t *target) any { return &t.profile.Limits.MemoryBytes },
		},
		{
			path: "profiles.<name>.client_terminal", kind: bools{}, def: "false",
			doc: "Run `shell` in the client's terminal when it offers one.",
			at:  func(t *target) any { return &t.profile.ClientTerminal },
		},
	}
}
