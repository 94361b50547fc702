package config

import (
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestLoad_BadFiles holds the messages people see. "~" stands for the home
// directory, "F" for the configuration file.
func TestLoad_BadFiles(t *testing.T) {
	for _, tt := range []struct {
		name string
		doc  string
		want []string
	}{
		{"unknown key", "[acp]\nmax_sesions = 3\n", []string{
			"F:2:1: acp.max_sesions: unknown key; did you mean acp.max_sessions? allowed here: busy, default_agent, dialect, experimental_v2, max_message_bytes, max_prompt_blob_bytes, max_sessions, queue_limit, session_timeout_secs",
		}},
		{"key of another table", "max_sessions = 3\n", []string{
			"F:1:1: max_sessions: unknown key; did you mean acp.max_sessions? allowed here: acp, agents, bridge, data_dir, gateway, log, mcp_servers, profiles, providers, store, telemetry, version",
		}},
		{"unknown table, once for all of it", "[wat]\na = 1\nb = 2\n[wat.c]\n", []string{
			"F:1:2: wat: unknown key; allowed here: acp, agents, bridge, data_dir, gateway, log, mcp_servers, profiles, providers, store, telemetry, version",
		}},
		{"wrong case", "[ACP]\n", []string{
			"F:1:2: ACP: unknown key; did you mean acp? allowed here: acp, agents, bridge, data_dir, gateway, log, mcp_servers, profiles, providers, store, telemetry, version",
		}},
		{"unknown key of an entry", "[agents.a]\nmodle = \"openai/x\"\n", []string{
			"F:2:1: agents.a.modle: unknown key; did you mean agents.a.model? allowed here: description, enabled, max_cost_per_day, max_cost_per_session, max_output_tokens, max_turn_requests, mcp_servers, model, profile, skills, system_prompt, thought_level, title, workspace",
		}},
		{"unknown key of a model", "[providers.openai.models.\"gpt-4.1\"]\ncontext = 3\n", []string{
			"F:2:1: providers.openai.models.\"gpt-4.1\".context: unknown key; allowed here: audio, cache_read_price, cache_write_price, context_window, images, input_price, max_output_tokens, output_price, thoughts",
		}},
		{"integer out of range", "[acp]\nmax_sessions = 0\n", []string{
			"F:2:16: acp.max_sessions: 0 is out of range; allowed: an integer from 1 to 100000 (default 10)",
		}},
		{"string for integer", "[acp]\n  max_sessions = \"3\"\n", []string{
			"F:2:18: acp.max_sessions: is a string; allowed: an integer from 1 to 100000 (default 10)",
		}},
		{"float for integer", "[acp]\nmax_sessions = 3.0\n", []string{
			"F:2:16: acp.max_sessions: is a float; allowed: an integer from 1 to 100000 (default 10)",
		}},
		{"string for boolean", "[store]\nrequired = \"true\"\n", []string{
			"F:2:12: store.required: \"true\" is not a boolean; allowed: true, false (without quotes) (default false)",
		}},
		{"integer for string", "[acp]\ndialect = 1\n", []string{
			"F:2:11: acp.dialect: is an integer; allowed: auto, acp, zeroclaw (default auto)",
		}},
		{"value outside the list", "[acp]\ndialect = \"zeroclw\"\nbusy = \"sometimes\"\n", []string{
			"F:2:11: acp.dialect: \"zeroclw\" is not allowed; did you mean \"zeroclaw\"? allowed: auto, acp, zeroclaw (default auto)",
			"F:3:8: acp.busy: \"sometimes\" is not allowed; allowed: auto, queue, reject (default auto)",
		}},
		{"size", "[acp]\nmax_message_bytes = \"64 megs\"\nmax_prompt_blob_bytes = \"2 GiB\"\n", []string{
			"F:2:21: acp.max_message_bytes: \"64 megs\" is not a size; allowed: a number of bytes from 1 KiB to 1 GiB, such as 65536 or \"64 MiB\" (default 64 MiB)",
			"F:3:25: acp.max_prompt_blob_bytes: \"2 GiB\" is out of range; allowed: a number of bytes from 1 to 1 GiB, such as 65536 or \"64 MiB\" (default 32 MiB)",
		}},
		{"not a number", "[agents.a]\nmax_cost_per_day = nan\nmax_cost_per_session = -1\n", []string{
			"F:2:20: agents.a.max_cost_per_day: nan is out of range; allowed: a number from 0 to 1000000000",
			"F:3:24: agents.a.max_cost_per_session: -1 is out of range; allowed: a number from 0 to 1000000000",
		}},
		{"value for table", "acp = 3\n[agents]\nx = \"y\"\n", []string{
			"F:1:7: acp: is an integer; allowed: a table of settings such as acp.default_agent",
			"F:3:5: agents.x: is a string; allowed: a table of settings such as agents.<alias>.enabled",
		}},
		{"table for value", "[acp.max_sessions]\nx = 1\n", []string{
			"F:1:6: acp.max_sessions: is a table; allowed: an integer from 1 to 100000 (default 10)",
		}},
		{"array of tables", "[[agents]]\nmodel = \"openai/x\"\n", []string{
			"F:1:3: agents: is an array; allowed: a table of entries named by you",
		}},
		{"names", "[agents.My-Agent]\n[agents.a__b]\n[providers.\"1st\"]\n[profiles.\"\"]\n", []string{
			"F:1:9: agents.My-Agent: \"My-Agent\" is not a name; allowed: lower-case letters, digits and single underscores, starting with a letter, at most 63 characters",
			"F:2:9: agents.a__b: \"a__b\" is not a name; allowed: lower-case letters, digits and single underscores, starting with a letter, at most 63 characters",
			"F:3:12: providers.1st: \"1st\" is not a name; allowed: lower-case letters, digits and single underscores, starting with a letter, at most 63 characters",
			"F:4:11: profiles.\"\": \"\" is not a name; allowed: lower-case letters, digits and single underscores, starting with a letter, at most 63 characters",
		}},
		{"names that are not there", "[providers.local]\ntype = \"ollama\"\n[agents.a]\nmodel = \"locla/x\"\nprofile = \"strict\"\nmcp_servers = [\"git\"]\n", []string{
			"F:4:9: agents.a.model: there is no provider \"locla\"; did you mean \"local\"? allowed: local, anthropic, openai, gemini, openrouter, ollama, bedrock, offline",
			"F:5:11: agents.a.profile: there is no profile \"strict\"; allowed: default",
			"F:6:15: agents.a.mcp_servers: there is no MCP server \"git\"; none is configured",
		}},
		{"model without provider", "[agents.a]\nmodel = \"gpt-5\"\n", []string{
			"F:2:9: agents.a.model: \"gpt-5\" names no provider; allowed: \"<provider>/<model>\"",
		}},
		{"provider without type", "[providers.mine]\nbase_url = \"http://h\"\n", []string{
			"F:1:12: providers.mine.type: is missing; allowed: anthropic, openai, gemini, openrouter, ollama, openai-compatible, openai-responses, azure, bedrock, offline, scripted",
		}},
		{"provider without address", "[providers.mine]\ntype = \"openai-compatible\"\n", []string{
			"F:1:12: providers.mine.base_url: is missing; a provider of type openai-compatible has no address of its own",
		}},
		{"key in an address", "[providers.openai]\nbase_url = \"https://h/v1?api_key=sk-canary\"\n[bridge]\nurl = \"wss://user:canary@h/acp\"\n", []string{
			"F:2:12: providers.openai.base_url: holds the parameter \"api_key\"; keys have a setting of their own; allowed: a URL that begins with http:// or https://",
			"F:4:7: bridge.url: holds a user name or password; keys have a setting of their own; allowed: a URL that begins with ws:// or wss:// or http:// or https://, or unix:/path",
		}},
		{"secrets are not repeated", "[providers.openai]\napi_key = [\"sk-canary\"]\nheaders = {\"X y\" = \"canary\"}\n[mcp_servers.m]\nurl = \"sk-canary\"\n[mcp_servers.n]\ncommand = \"n\"\nenv = { A = \"env:sk-canary\", B = \"a\\nb\" }\n", []string{
			"F:2:11: providers.openai.api_key: is an array; allowed: text in quotes: env:NAME, file:PATH, keyring:NAME, or the secret itself",
			"F:3:12: providers.openai.headers.\"X y\": the key is no header name; allowed: letters, digits and hyphens",
			"F:5:7: mcp_servers.m.url: does not begin with http:// or https://; allowed: a URL that begins with http:// or https://, or env:NAME, file:PATH, keyring:NAME",
			"F:8:13: mcp_servers.n.env.A: does not name a variable after env:; allowed: text in quotes: env:NAME, file:PATH, keyring:NAME, or the secret itself",
			"F:8:34: mcp_servers.n.env.B: holds a control character, such as a line end; allowed: text in quotes: env:NAME, file:PATH, keyring:NAME, or the secret itself",
		}},
		{"servers", "[mcp_servers.a]\n[mcp_servers.b]\ncommand = \"b\"\nurl = \"http://b\"\n[mcp_servers.c]\nurl = \"http://c\"\nargs = [\"x\"]\n[mcp_servers.d]\ncommand = \"d\"\ntype = \"http\"\n", []string{
			"F:1:14: mcp_servers.a.command: is missing; a server needs a command to start, or a url to reach it",
			"F:4:7: mcp_servers.b.url: cannot stand beside command; a server has one or the other",
			"F:5:14: mcp_servers.c.command: is missing; args and env are for a server that is started",
			"F:10:8: mcp_servers.d.type: \"http\" does not fit a server that is started by a command; allowed: stdio",
		}},
		{"gateway for everyone", "[gateway]\nlisten = \":8080\"\nauth = \"none\"\n", []string{
			"F:2:10: gateway.listen: :8080 can be reached by others without TLS; set gateway.tls_cert and gateway.tls_key, or gateway.insecure = true",
			"F:3:8: gateway.auth: \"none\" is refused on :8080, which others can reach; use \"token\", or listen on 127.0.0.1",
		}},
		{"gateway values", "[gateway]\nlisten = \"8080\"\nauth = \"none\"\nallowed_origins = [\"https://h/path\"]\nallowed_hosts = [\"h:80\"]\ntls_cert = \"c\"\n", []string{
			"F:2:10: gateway.listen: \"8080\" is not an address; allowed: \"host:port\" or \"unix:/path\" (default 127.0.0.1:8080)",
			"F:4:19: gateway.allowed_origins: item 1 \"https://h/path\" is not an origin; allowed: a list, each item an origin such as \"https://editor.example:8443\"",
			"F:5:17: gateway.allowed_hosts: item 1 \"h:80\" is not a host name; allowed: a list, each item a host name without scheme and port",
			"F:6:12: gateway.tls_cert: needs gateway.tls_key beside it",
		}},
		{"store", "[store]\ndriver = \"postgres\"\n", []string{"F:2:10: store.driver: \"postgres\" needs a connection string in store.dsn"}},
		{"store dsn", "[store]\ndsn = \"x\"\n", []string{"F:2:7: store.dsn: is for the postgres driver; this one is sqlite"}},
		{"profile", "[profiles.p]\nforbidden_paths = [\"!/tmp\", \"!~/.config/berth\"]\ndeny = [\"\", \"shell(x\", {match = [\"y\"]}]\nshell_env = [\"OPENAI_API_KEY\"]\nalways_ask = [{rule = \"x\", mach = []}]\n", []string{
			"F:2:19: profiles.p.forbidden_paths: \"!/tmp\" takes away no built-in forbidden path; allowed: /etc, /proc, /sys, /boot, /run, /var/run, /dev, /root, ~/.ssh, ~/.gnupg, ~/.aws, ~/.config",
			"F:2:19: profiles.p.forbidden_paths: \"!~/.config/berth\" takes away one of berth's own directories, which are always forbidden",
			"F:3:8: profiles.p.deny: item 1 \"\" names no tool; allowed: a list, each item a tool name, a rule such as \"shell(git status)\", or {rule = \"…\", match = [\"…\"], not_match = [\"…\"]}",
			"F:4:13: profiles.p.shell_env: OPENAI_API_KEY holds a key, and keys are never passed to commands",
			"F:5:14: profiles.p.always_ask: item 1 has an unknown key \"mach\"; allowed: a list, each item a tool name, a rule such as \"shell(git status)\", or {rule = \"…\", match = [\"…\"], not_match = [\"…\"]}",
		}},
		{"bad TOML", "[acp]\nmax_sessions = \n", []string{"F:2:16: unexpected character U+000A at start of value"}},
		{"bad TOML without quotes", "[providers.openai]\napi_key = sk-canary\n", []string{"F:2:11: unexpected character U+0073 's' at start of value; text needs quotes, as in key = \"value\""}},
		{"repeated table", "[acp]\n[acp]\n", []string{"F:2:2: table acp already exists"}},
		{"newer version", "version = 2\n[new_table]\n", []string{
			"F:1:11: version: 2 is newer than this build of berth, which reads versions up to 1; update berth, or use the file that an older one left beside it",
		}},
		{"version out of range", "version = 0\n", []string{"F:1:11: version: 0 is out of range; allowed: 1 (default 1)"}},
		{"version of another type", "version = \"1\"\n", []string{"F:1:11: version: is a string; allowed: 1 (default 1)"}},
		{"paths", "data_dir = \"~bob/x\"\n[log]\nfile = \"a\\u0000b\"\n", []string{
			"F:1:12: data_dir: \"~bob/x\" names the home directory of another user; allowed: a path, absolute, beginning with ~/, or relative to the configuration directory",
			"F:3:8: log.file: holds a NUL character; allowed: a path, absolute, beginning with ~/, or relative to the configuration directory",
		}},
		{"byte order mark moves nothing", "\xef\xbb\xbfacp = 1\r\n", []string{"F:1:7: acp: is an integer; allowed: a table of settings such as acp.default_agent"}},
		{"quoted keys", "[\"acp\"]\n\"max sessions\" = 1\n'acp.dialect' = \"acp\"\n", []string{
			"F:2:1: acp.\"max sessions\": unknown key; did you mean acp.max_sessions? allowed here: busy, default_agent, dialect, experimental_v2, max_message_bytes, max_prompt_blob_bytes, max_sessions, queue_limit, session_timeout_secs",
			"F:3:1: acp.\"acp.dialect\": unknown key; allowed here: busy, default_agent, dialect, experimental_v2, max_message_bytes, max_prompt_blob_bytes, max_sessions, queue_limit, session_timeout_secs",
		}},
		{"a header that is none", "[telemetry]\nheader = \"hush\"\n", []string{
			"F:2:10: telemetry.header: is no header; write it as \"Name: value\"",
		}},
		{"two bridge tokens", "[bridge]\ntoken = \"a\"\ntoken_file = \"b\"\ntls_fingerprint = \"abc\"\n", []string{
			"F:3:14: bridge.token_file: cannot stand beside bridge.token; keep one of the two",
			"F:4:19: bridge.tls_fingerprint: \"abc\" is not a fingerprint; allowed: 64 hexadecimal digits, with or without colons",
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if runtime.GOOS == "windows" && strings.Contains(tt.name, "profile") {
				t.Skip("the built-in paths are Unix ones")
			}
			got := problems(t, options(t, tt.doc))
			for i, s := range got {
				got[i] = strings.ReplaceAll(s, filepath.Join("~", ".config", "berth", "config.toml"), "F")
				if strings.Contains(s, "canary") {
					t.Errorf("a secret is shown: %s", s)
				}
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestLoad_BadEnvironment(t *testing.T) {
	got := problems(t, options(t, "[acp]\nmax_sessions = 0\n",
		"BERTH_ACP__MAX_SESIONS=3", "BERTH_NO__SUCH__KEY=1", "BERTH_ACP__DIALECT=klingon",
		"BERTH_AGENTS__A-B__TITLE=x", "BERTH_PROVIDERS__OPENAI__API_KEY=env:sk-canary", "BERTH_VERSION=9", "BERTH_GATEWAY__ALLOWED_HOSTS=[x"))
	want := []string{
		"~/.config/berth/config.toml:2:16: acp.max_sessions: 0 is out of range; allowed: an integer from 1 to 100000 (default 10)",
		"environment variable BERTH_ACP__DIALECT: acp.dialect: \"klingon\" is not allowed; allowed: auto, acp, zeroclaw (default auto)",
		"environment variable BERTH_ACP__MAX_SESIONS: names no setting; did you mean BERTH_ACP__MAX_SESSIONS? (berth config list shows them all)",
		"environment variable BERTH_AGENTS__A-B__TITLE: agents.a-b: \"a-b\" is not a name; allowed: lower-case letters, digits and single underscores, starting with a letter, at most 63 characters",
		"environment variable BERTH_GATEWAY__ALLOWED_HOSTS: gateway.allowed_hosts: is no TOML array; allowed: a list, each item a host name without scheme and port",
		"environment variable BERTH_NO__SUCH__KEY: names no setting (berth config list shows them all)",
		"environment variable BERTH_PROVIDERS__OPENAI__API_KEY: providers.openai.api_key: does not name a variable after env:; allowed: text in quotes: env:NAME, file:PATH, keyring:NAME, or the secret itself",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestError_Text(t *testing.T) {
	o := options(t, "[acp]\nmax_sessions = 0\nqueue_limit = -1\n")
	_, err := Load(o)
	want := "2 problems in the configuration:\n" +
		"  ~/.config/berth/config.toml:2:16: acp.max_sessions: 0 is out of range; allowed: an integer from 1 to 100000 (default 10)\n" +
		"  ~/.config/berth/config.toml:3:15: acp.queue_limit: -1 is out of range; allowed: an integer from 0 to 1000 (default 8)"
	if got := strings.ReplaceAll(err.Error(), o.Home, "~"); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// TestLoad_Obstacles covers files that cannot be read as a configuration. Run
// on defaults would hide the operator's rules, so each one stops the start.
func TestLoad_Obstacles(t *testing.T) {
	write := func(t *testing.T, file, doc string, mode os.FileMode) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(doc), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(file, mode); err != nil {
			t.Fatal(err)
		}
	}
	for _, tt := range []struct {
		name string
		make func(t *testing.T, file string)
		want string
		unix bool
	}{
		{"a directory", func(t *testing.T, file string) {
			if err := os.MkdirAll(file, 0o700); err != nil {
				t.Fatal(err)
			}
		}, "F: is a directory; it should be a TOML file, or not exist", false},
		{"a file where the directory should be", func(t *testing.T, file string) {
			write(t, filepath.Dir(file), "x", 0o600)
		}, "F: a part of this path is a file, not a directory", true},
		{"not readable", func(t *testing.T, file string) { write(t, file, "", 0) }, "F: cannot be read: permission denied", true},
		{"a pipe", func(t *testing.T, file string) {
			if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
				t.Fatal(err)
			}
			if l, err := net.Listen("unix", file); err != nil {
				t.Skip("no socket here:", err)
			} else {
				t.Cleanup(func() { l.Close() })
			}
		}, "F: is not a regular file", true},
		{"written by everyone", func(t *testing.T, file string) { write(t, file, "", 0o666) },
			"F: can be written by other users, who could make berth run their programs; run: chmod go-w F", true},
		{"too long", func(t *testing.T, file string) { write(t, file, strings.Repeat("#\n", maxFile/2+1), 0o600) }, "F: is longer than 1 MiB", false},
		{"UTF-16", func(t *testing.T, file string) { write(t, file, "\xff\xfea\x00", 0o600) }, "F: is UTF-16; save it as UTF-8", false},
		{"dangling link is a missing file", func(t *testing.T, file string) {
			if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.Symlink("nowhere", file); err != nil {
				t.Skip(err)
			}
		}, "", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if tt.unix && runtime.GOOS == "windows" {
				t.Skip("of Unix file systems")
			}
			o := options(t, "")
			dir, err := os.MkdirTemp("", "b") // short: a socket's path is limited
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { os.RemoveAll(dir) })
			o.ConfigDir = filepath.Join(dir, "c")
			file := filepath.Join(o.ConfigDir, "config.toml")
			tt.make(t, file)
			if tt.name == "not readable" && os.Geteuid() == 0 {
				t.Skip("root reads everything")
			}
			got := ""
			if _, err := Load(o); err != nil {
				got = strings.ReplaceAll(err.Error(), file, "F")
			}
			if got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}
