package config

import (
	"fmt"
	"io"
	"strings"
)

// Docs writes docs/configuration.md.
func Docs(w io.Writer) error {
	var b strings.Builder
	b.WriteString(docsHead)
	section := ""
	for _, k := range keys() {
		if s := sectionOf(&k); s != section {
			section = s
			fmt.Fprintf(&b, "\n## %s\n%s\n| key | default | meaning | allowed |\n|---|---|---|---|\n", title(s), sectionText(s))
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", k.path, defText(&k), docText(&k), cell(k.kind.allowed()))
	}
	b.WriteString(docsTypes())
	_, err := io.WriteString(w, b.String())
	return err
}

func sectionOf(k *key) string {
	segs := k.segs
	if len(segs) == 1 {
		return ""
	}
	return segs[0]
}

func title(section string) string {
	switch section {
	case "":
		return "Top level"
	case "agents":
		return "`agents.<alias>`"
	case "providers", "profiles", "mcp_servers":
		return "`" + section + ".<name>`"
	}
	return "`" + section + "`"
}

func sectionText(section string) string {
	switch section {
	case "agents":
		return "\nWith no agent at all there is one named `default`. Names are " + nameRule + ".\n"
	case "providers":
		return "\nThe types anthropic, openai, gemini, openrouter, ollama and offline can be used by their own name without an entry here: `model = \"openai/<model>\"`. Prices override the built-in catalogue.\n"
	case "profiles":
		return "\nThere is always a profile named `default`.\n"
	case "mcp_servers":
		return "\nA server is started by `command`, or reached by `url`.\n"
	}
	return ""
}

func defText(k *key) string {
	switch {
	case k.def == "":
		return "–"
	case k.def == "[]":
		return "none"
	}
	return "`" + k.def + "`"
}

func docText(k *key) string {
	s := cell(k.doc)
	if k.flag != "" {
		s += " Flag `" + k.flag + "`."
	}
	return s
}

func cell(s string) string { return strings.ReplaceAll(s, "|", "\\|") }

func docsTypes() string {
	var b strings.Builder
	b.WriteString("\n## Provider types\n\n| type | address | key from | default model |\n|---|---|---|---|\n")
	for _, t := range ProviderTypes() {
		address := code(t.BaseURL)
		if len(t.Hosts) > 0 {
			address = "`https://" + strings.Join(t.Hosts, "`, `https://") + "`"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", t.Name, address, code(t.KeyEnv), code(t.DefaultModel))
	}
	b.WriteString("\nThe key of a variable goes to the addresses of its type alone. `bedrock` makes its address from `AWS_REGION`, and its key from `" + accessKeyEnv + "`, `" + secretKeyEnv + "` and `" + sessionTokenEnv + "` where there is no `" + bearerEnv + "`; in `api_key` such a key is written `ID:SECRET` or `ID:SECRET:TOKEN`.\n")
	return b.String()
}

func code(s string) string {
	if s == "" {
		return "–"
	}
	return "`" + s + "`"
}

const docsHead = `# Configuration

This page is generated from the table of settings in the source; ` + "`berth config list`" + ` shows the same with the
values in use.

**Nothing needs to be configured.** Without a file there is one agent, ` + "`default`" + `. Its model is the default one of
the provider whose key is set, in the order ` + "`ANTHROPIC_API_KEY`, `OPENAI_API_KEY`, `GEMINI_API_KEY`, `OPENROUTER_API_KEY`" + `;
else the provider of a key that ` + "`berth login`" + ` stored ([keys.md](keys.md)), in the same order;
else an Ollama that answers at its default address; else the built-in ` + "`offline`" + ` model.

## Where

| | first that is given |
|---|---|
| configuration directory, holds ` + "`config.toml`" + ` | ` + "`--config-dir`, `$BERTH_CONFIG_DIR`, `$XDG_CONFIG_HOME/berth`, `~/.config/berth`" + ` |
| data directory | ` + "`--data-dir`, `$BERTH_DATA_DIR`, `data_dir` in the file, `$XDG_DATA_HOME/berth`, `~/.local/share/berth`" + ` |

A value comes from the first of: flag, environment, file, default. ` + "`berth config list`" + ` shows which one it was.

## The file

It is [TOML](https://toml.io). Paths may begin with ` + "`~/`" + `; relative ones are relative to the configuration directory.
Keys that do not exist, values of another type and values out of range stop the start with file, line, key and what
is allowed: all of them together, and nothing is replaced by a default in silence. A file that other users may write
to is refused. ` + "`berth config schema`" + ` prints a JSON schema for editors.

` + "`berth config set PATH VALUE [PATH VALUE]...`" + ` changes settings, keeps comments and order, and writes only what is
valid, all of it at once. Settings that need each other are set by one command:

` + "```sh" + `
berth config set providers.local.type openai-compatible providers.local.base_url http://127.0.0.1:8000/v1
berth config set providers.local.api_key -   # asks for the value, and does not show it
` + "```" + `

A value of ` + "`-`" + ` is read from standard input, one line. What is written on the command line itself can be seen by other
users and stays in the shell's history, so give a secret that way, or as ` + "`env:NAME` or `file:PATH`" + `. Settings that are valid
and do nothing in this version are warnings of ` + "`berth config validate`" + `.

` + "```toml" + `
[providers.local]
type = "openai-compatible"
base_url = "http://127.0.0.1:8000/v1"
api_key = "env:LOCAL_KEY"

[agents.default]
model = "local/qwen3-coder"

[profiles.default]
always_ask = ["write_file"]

[mcp_servers.git]
command = "git-mcp"
env = { GIT_TOKEN = "file:~/.secrets/git" }
` + "```" + `

## Environment

` + "`BERTH_`" + ` and the path of the setting with ` + "`__`" + ` for each dot, in any letter case, overrides a setting:
` + "`BERTH_ACP__MAX_SESSIONS=20`, `BERTH_acp__default_agent=main`, `BERTH_PROVIDERS__LOCAL__BASE_URL=…`" + `. Keys of
` + "`env`, `headers` and `models`" + ` keep their case: ` + "`BERTH_MCP_SERVERS__GIT__ENV__GIT_TOKEN`" + `. Lists are written with commas or as
a TOML array. An empty variable counts as not set. A variable with ` + "`__`" + ` that names no setting stops the start.
` + "`BERTH_CONFIG_DIR`, `BERTH_DATA_DIR`, `BERTH_GATEWAY_TOKEN`, `BERTH_ACP_BRIDGE_TOKEN` and `BERTH_SHELL`" + ` are no
overrides.

## Secrets

Keys, tokens, and the values of ` + "`env` and `headers`" + ` may be written out, but better are references: ` + "`env:NAME`" + ` reads a
variable of the process, ` + "`file:PATH`" + ` a file (its last line end is dropped) each time it is used, ` + "`keyring:NAME`" + ` the
system's key store, under the service ` + "`berth`" + `, each time it is used. Secrets are never printed, logged, or passed to a client, a model or a
child process, save the MCP server they are configured for. [keys.md](keys.md) has more, and ` + "`berth login`" + `.
`
