package config

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/core/domain"
)

// options returns Options for a fresh home whose config.toml holds doc; with
// doc "" there is no file.
func options(t *testing.T, doc string, env ...string) Options {
	t.Helper()
	home := t.TempDir()
	dir := filepath.Join(home, ".config", "berth")
	if doc != "" {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "config.toml"), []byte(doc), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return Options{Home: home, Env: env, Dir: home}
}

// mustLoad loads doc, which must be valid.
func mustLoad(t *testing.T, doc string, env ...string) *Config {
	t.Helper()
	c, err := Load(options(t, doc, env...))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// problems loads o, which must fail with an *Error, and returns its lines
// with the home directory written as ~.
func problems(t *testing.T, o Options) []string {
	t.Helper()
	c, err := Load(o)
	var e *Error
	if !errors.As(err, &e) {
		t.Fatalf("error %v, want an *Error", err)
	}
	if c != nil {
		t.Error("a configuration came with the error")
	}
	lines := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		lines[i] = strings.ReplaceAll(p.String(), o.Home, "~")
	}
	return lines
}

func TestLoad_NoFile(t *testing.T) {
	o := options(t, "")
	c, err := Load(o)
	if err != nil {
		t.Fatal(err)
	}
	if c.FileFound || c.ConfigFile != filepath.Join(o.Home, ".config/berth/config.toml") || c.DataDir != filepath.Join(o.Home, ".local/share/berth") {
		t.Errorf("file %v %s, data %s", c.FileFound, c.ConfigFile, c.DataDir)
	}
	wantACP := ACP{
		MaxSessions: 10, SessionTimeout: time.Hour, Dialect: "auto", Busy: "auto", QueueLimit: 8,
		MaxMessageBytes: 64 << 20, MaxPromptBlobBytes: 32 << 20,
	}
	if diff := cmp.Diff(wantACP, c.ACP); diff != "" {
		t.Errorf("acp (-want +got):\n%s", diff)
	}
	wantGateway := Gateway{
		Listen: "127.0.0.1:8080", Auth: "token", AllowedOrigins: []string{}, AllowedHosts: []string{},
		MaxMessageBytes: 32 << 20, MaxConnections: 1024, MaxConnectionsPerToken: 20, MaxSessions: 4096,
		PingInterval: 30 * time.Second, DetachGrace: 15 * time.Minute, Drain: 30 * time.Second,
	}
	if diff := cmp.Diff(wantGateway, c.Gateway); diff != "" {
		t.Errorf("gateway (-want +got):\n%s", diff)
	}
	wantAgents := map[string]Agent{"default": {Alias: "default", Enabled: true, Profile: "default", Skills: []string{}, MaxTurnRequests: 100}}
	if diff := cmp.Diff(wantAgents, c.Agents); diff != "" {
		t.Errorf("agents (-want +got):\n%s", diff)
	}
	p := c.Profiles["default"]
	if len(c.Profiles) != 1 || p.Level != domain.LevelSupervised || p.Network != "ask" || p.Sandbox != "auto" ||
		p.Limits != (Limits{OutputBytes: 1 << 20, Wall: 2 * time.Minute, Processes: 256}) || !slices.Contains(p.ShellEnv, "PATH") {
		t.Errorf("profiles: %+v", c.Profiles)
	}
	if !cmp.Equal(c.Store, Store{Driver: "sqlite"}) || c.Log != (Log{Format: "console"}) || !cmp.Equal(c.Bridge, Bridge{Protocol: "acp"}) || c.Version != 1 {
		t.Errorf("store %+v, log %+v, bridge %+v, version %d", c.Store, c.Log, c.Bridge, c.Version)
	}
	if len(c.Providers)+len(c.MCPServers)+len(c.Warnings) != 0 {
		t.Errorf("providers %v, servers %v, warnings %v", c.Providers, c.MCPServers, c.Warnings)
	}
	if c.LogLevel(true) != "info" || c.LogLevel(false) != "warn" {
		t.Error("log level by deployment")
	}
	if got := c.SessionStore(); got != filepath.Join(c.DataDir, "sessions/acp-sessions.db") {
		t.Errorf("session store %s", got)
	}
	if got := c.AgentWorkspace("default"); got != filepath.Join(c.DataDir, "agents/default/workspace") {
		t.Errorf("agent workspace %s", got)
	}
}

// everything sets every key of the table to something that is not its
// default, so that a key whose field is never filled shows.
const everything = `
version = 1
data_dir = "~/data"
[acp]
default_agent = "main"
max_sessions = 11
session_timeout_secs = 60
dialect = "zeroclaw"
busy = "queue"
queue_limit = 0
max_message_bytes = "1 MiB"
max_prompt_blob_bytes = 2_048
experimental_v2 = true
[log]
level = "debug"
format = "json"
file = "logs/berth.log"
[store]
driver = "postgres"
dsn = "env:DSN"
required = true
[gateway]
listen = "0.0.0.0:9000"
auth = "token"
allowed_origins = ["https://Editor.example:8443"]
allowed_hosts = ["Berth.example", "10.0.0.1", "::1"]
tls_cert = "/tls/cert.pem"
tls_key = "/tls/key.pem"
insecure = true
max_message_bytes = 4096
max_connections = 3
max_connections_per_token = 2
max_sessions = 4
ping_interval_secs = 5
detach_grace_secs = 0
drain_secs = 6
[bridge]
url = "wss://host.example/acp/"
token = "tok"
protocol = "openclaw"
tls_fingerprint = "SHA256:AA:bb:00112233445566778899aabbccddeeff00112233445566778899aabbccdd"
[telemetry]
endpoint = "https://collector.example:4318/"
header = "Api-Key: t"
service = "berth-lab"
sample = 0.25
content = true
[agents.main]
enabled = false
model = "lab/org/model-1.5"
profile = "strict"
workspace = "~/ws"
system_prompt = "Be brief."
skills = ["/skills", "more"]
mcp_servers = []
title = "Main"
description = "The main one"
max_turn_requests = 7
max_output_tokens = 8
max_cost_per_session = 1.5
max_cost_per_day = 20
thought_level = "high"
[providers.lab]
type = "openai-compatible"
base_url = "http://127.0.0.1:8000/v1/"
api_key = "file:keys/lab"
headers = { X-Team = "red", "X-Other" = "env:OTHER" }
timeout_secs = 30
max_retries = 0
fallback = ["openai/gpt-x", "lab/b"]
ca_file = "lab.pem"
[providers.lab.models."gpt-4.1"]
context_window = 1000
max_output_tokens = 100
input_price = 2
output_price = 8.5
cache_read_price = 0.5
cache_write_price = 3
images = true
audio = false
thoughts = true
[providers.play]
type = "scripted"
script = "play.txt"
[profiles.strict]
level = "read_only"
allowed_roots = ["~/src"]
forbidden_paths = ["/secret", "!~/.config"]
deny = ["web_fetch", {rule = "shell(git push)", match = ["git push origin"], not_match = ["git status"]}]
always_ask = ["write_file"]
auto_approve = ["read_file"]
network = "deny"
taint = true
sandbox = "none"
shell_env = ["PATH", "MY_*"]
client_terminal = true
[profiles.strict.limits]
output_bytes = "64 KiB"
wall_secs = 9
processes = 10
memory_bytes = "2 GiB"
[mcp_servers.local]
enabled = false
type = "stdio"
command = "srv"
args = ["-x", ""]
env = { API_KEY = "k", lower = "" }
timeout_secs = 3
[mcp_servers.far]
type = "sse"
url = "https://mcp.example/x?key=abc"
headers = { Authorization = "Bearer t" }
`

// secretsAsText makes Secrets comparable: the mask says that one is set, the
// reference which one.
func secretsAsText() cmp.Option {
	return cmp.Transformer("secret", func(s Secret) string { return s.String() + s.Ref() })
}

func TestLoad_Everything(t *testing.T) {
	o := options(t, everything, "DSN=postgres://u:p@h/db")
	c, err := Load(o)
	if err != nil {
		t.Fatal(err)
	}
	in := func(p string) string { return filepath.Join(o.Home, p) }
	set := NewSecret("x")
	ref := func(s string) Secret { return secretOf(secretBox{ref: s}) }
	want := &Config{
		ConfigDir: in(".config/berth"), ConfigFile: in(".config/berth/config.toml"), FileFound: true, DataDir: in("data"), Version: 1,
		ACP: ACP{DefaultAgent: "main", MaxSessions: 11, SessionTimeout: time.Minute, Dialect: "zeroclaw", Busy: "queue", MaxMessageBytes: 1 << 20, MaxPromptBlobBytes: 2048, ExperimentalV2: true},
		Log: Log{Level: "debug", Format: "json", File: in(".config/berth/logs/berth.log")}, Store: Store{Driver: "postgres", DSN: ref("env:DSN"), Required: true},
		Gateway: Gateway{
			Listen: "0.0.0.0:9000", Auth: "token", AllowedOrigins: []string{"https://editor.example:8443"}, AllowedHosts: []string{"berth.example", "10.0.0.1", "::1"},
			TLSCert: "/tls/cert.pem", TLSKey: "/tls/key.pem", Insecure: true, MaxMessageBytes: 4096, MaxConnections: 3, MaxConnectionsPerToken: 2, MaxSessions: 4, PingInterval: 5 * time.Second, Drain: 6 * time.Second,
		},
		Telemetry: Telemetry{Endpoint: "https://collector.example:4318", Header: set, Service: "berth-lab", Sample: 0.25, Content: true},
		Bridge:    Bridge{URL: "wss://host.example/acp", Token: set, Protocol: "openclaw", TLSFingerprint: "aabb00112233445566778899aabbccddeeff00112233445566778899aabbccdd"},
		Agents: map[string]Agent{"main": {
			Alias: "main", Model: domain.ModelRef{Provider: "lab", Model: "org/model-1.5"}, Profile: "strict", Workspace: in("ws"), SystemPrompt: "Be brief.",
			Skills: []string{"/skills", in(".config/berth/more")}, MCPServers: []string{}, Title: "Main", Description: "The main one",
			MaxTurnRequests: 7, MaxOutputTokens: 8, MaxCostPerSession: 1.5, MaxCostPerDay: 20, ThoughtLevel: "high",
		}},
		Providers: map[string]Provider{
			"lab": {
				Name: "lab", Type: "openai-compatible", BaseURL: "http://127.0.0.1:8000/v1", APIKey: ref("file:keys/lab"), Headers: map[string]Secret{"X-Team": set, "X-Other": ref("env:OTHER")},
				Timeout: 30 * time.Second, Fallback: []domain.ModelRef{{Provider: "openai", Model: "gpt-x"}, {Provider: "lab", Model: "b"}}, CAFile: in(".config/berth/lab.pem"),
				Models: map[string]Model{"gpt-4.1": {ID: "gpt-4.1", ContextWindow: 1000, MaxOutputTokens: 100, InputPrice: 2, OutputPrice: 8.5, CacheReadPrice: 0.5, CacheWritePrice: 3, Images: new(true), Audio: new(false), Thoughts: new(true)}},
			},
			"play": {Name: "play", Type: "scripted", Script: in(".config/berth/play.txt"), Timeout: 2 * time.Minute, MaxRetries: 3, Fallback: []domain.ModelRef{}},
		},
		Profiles: map[string]Profile{
			"default": mustLoad(t, "").Profiles["default"],
			"strict": {
				Name: "strict", Level: domain.LevelReadOnly, AllowedRoots: []string{in("src")}, ForbiddenPaths: []string{"/secret", "!" + in(".config")},
				Deny:      []Rule{{Rule: "web_fetch"}, {Rule: "shell(git push)", Match: []string{"git push origin"}, NotMatch: []string{"git status"}}},
				AlwaysAsk: []Rule{{Rule: "write_file"}}, AutoApprove: []Rule{{Rule: "read_file"}},
				Network: "deny", Taint: true, Sandbox: "none", ShellEnv: []string{"PATH", "MY_*"},
				Limits: Limits{OutputBytes: 64 << 10, Wall: 9 * time.Second, Processes: 10, MemoryBytes: 2 << 30}, ClientTerminal: true,
			},
		},
		MCPServers: map[string]MCPServer{
			"local": {Name: "local", Type: "stdio", Command: "srv", Args: []string{"-x", ""}, Env: map[string]Secret{"API_KEY": set, "lower": set}, Timeout: 3 * time.Second},
			"far":   {Name: "far", Enabled: true, Type: "sse", Args: []string{}, URL: set, Headers: map[string]Secret{"Authorization": set}, Timeout: 10 * time.Second},
		},
	}
	skip := cmp.FilterPath(func(p cmp.Path) bool {
		f := p.Last().String()
		return slices.Contains([]string{".settings", ".ambient", ".home", ".Warnings", ".revealed", ".known", ".stored"}, f)
	}, cmp.Ignore())
	if diff := cmp.Diff(want, c, skip, secretsAsText(), cmp.AllowUnexported(Config{}, Provider{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	// "allowed, but will disappoint": the agent is off, OTHER is not set, the authorities are not there.
	if len(c.Warnings) != 3 {
		t.Errorf("warnings: %q", c.Warnings)
	}
	forbidden := c.ForbiddenPaths("strict")
	for path, want := range map[string]bool{"/etc": true, in(".ssh"): true, in(".config"): false, in(".config/berth"): true, in("data"): true, "/secret": true} {
		if slices.Contains(forbidden, path) != want {
			t.Errorf("%s forbidden: %v, want %v", path, !want, want)
		}
	}
}

// TestKeys_TableIsSound checks what the code takes for granted of the table.
func TestKeys_TableIsSound(t *testing.T) {
	set := map[string]bool{}
	for _, s := range mustLoad(t, everything, "DSN=x", "OTHER=x").settings {
		if s.origin.Layer == FromFile {
			set[s.key.path] = true
		}
	}
	seen := map[string]bool{}
	for _, k := range keys() {
		if seen[k.path] {
			t.Errorf("%s stands twice in the table", k.path)
		}
		seen[k.path] = true
		if !strings.HasSuffix(k.doc, ".") || k.at == nil || k.kind == nil {
			t.Errorf("%s is not complete", k.path)
		}
		if k.def != "" && k.defaultValue() == nil {
			t.Errorf("%s: its default %q is not accepted", k.path, k.def)
		}
		if !set[k.path] && k.path != "bridge.token_file" { // excludes bridge.token
			t.Errorf("%s is not set by the document with everything", k.path)
		}
	}
}

func TestLoad_HarnessConfig(t *testing.T) {
	c := mustLoad(t, "[acp]\nmax_sessions = 2000\n\n[providers.fake]\ntype = \"openai-compatible\"\nbase_url = \"http://127.0.0.1:9/v1\"\napi_key = \"x\"\n\n[agents.default]\nmodel = \"fake/fake-instant\"\n")
	if m, ok := c.AgentModel("default"); !ok || m.String() != "fake/fake-instant" || c.ACP.MaxSessions != 2000 {
		t.Errorf("model %v, sessions %d", m, c.ACP.MaxSessions)
	}
	if key, err := c.Providers["fake"].APIKey.Reveal(); key != "x" || err != nil {
		t.Errorf("key %q, %v", key, err)
	}
}

func TestLoad_Precedence(t *testing.T) {
	doc := "[acp]\nmax_sessions = 2\nqueue_limit = 2\ndialect = \"acp\"\n"
	o := options(t, doc, "BERTH_ACP__MAX_SESSIONS=3", "BERTH_ACP__QUEUE_LIMIT=3")
	o.Flags = map[string]string{"acp.max_sessions": "4"}
	c, err := Load(o)
	if err != nil {
		t.Fatal(err)
	}
	if c.ACP.MaxSessions != 4 || c.ACP.QueueLimit != 3 || c.ACP.Dialect != "acp" || c.ACP.Busy != "auto" {
		t.Errorf("%+v", c.ACP)
	}
	for path, want := range map[string]string{
		"acp.max_sessions": "--max-sessions",
		"acp.queue_limit":  "$BERTH_ACP__QUEUE_LIMIT",
		"acp.dialect":      c.ConfigFile + ":4:11",
		"acp.busy":         "default",
	} {
		if o, ok := c.Origin(path); !ok || o.String() != want {
			t.Errorf("origin of %s: %q, want %q", path, o, want)
		}
	}
	if _, ok := c.Origin("acp.nothing"); ok {
		t.Error("a setting that does not exist has an origin")
	}
}

func TestLoad_EnvSpellings(t *testing.T) {
	for _, tt := range []struct {
		name string
		env  string
		doc  string
		got  func(*Config) any
		want any
	}{
		{"upper case", "BERTH_ACP__DEFAULT_AGENT=main", "", func(c *Config) any { return c.ACP.DefaultAgent }, "main"},
		{"lower case path", "BERTH_acp__default_agent=main", "", func(c *Config) any { return c.ACP.DefaultAgent }, "main"},
		{"mixed case", "Berth_Acp__Default_Agent=main", "", func(c *Config) any { return c.ACP.DefaultAgent }, "main"},
		{"empty is not set", "BERTH_ACP__MAX_SESSIONS=", "[acp]\nmax_sessions=5", func(c *Config) any { return c.ACP.MaxSessions }, 5},
		{"empty is not set, even for no key", "BERTH_NO__KEY=", "", func(c *Config) any { return c.ACP.MaxSessions }, 10},
		{"one underscore is none of ours", "BERTH_ACP_MAX_SESSIONS=x", "", func(c *Config) any { return c.ACP.MaxSessions }, 10},
		{"bootstrap names", "BERTH_ACP_BRIDGE_TOKEN=x", "", func(c *Config) any { return c.Bridge.Token.IsSet() }, false},
		{"decimal with a zero before it", "BERTH_ACP__MAX_SESSIONS=010", "", func(c *Config) any { return c.ACP.MaxSessions }, 10},
		{"size with unit", "BERTH_ACP__MAX_MESSAGE_BYTES=2 mib", "", func(c *Config) any { return c.ACP.MaxMessageBytes }, int64(2 << 20)},
		{"size without unit", "BERTH_ACP__MAX_MESSAGE_BYTES=4096", "", func(c *Config) any { return c.ACP.MaxMessageBytes }, int64(4096)},
		{"boolean", "BERTH_STORE__REQUIRED=YES", "", func(c *Config) any { return c.Store.Required }, true},
		{"number", "BERTH_AGENTS__DEFAULT__MAX_COST_PER_DAY=2.5", "", func(c *Config) any { return c.Agents["default"].MaxCostPerDay }, 2.5},
		{"list with commas", "BERTH_GATEWAY__ALLOWED_HOSTS=a.example, b.example", "", func(c *Config) any { return c.Gateway.AllowedHosts }, []string{"a.example", "b.example"}},
		{"list as TOML", `BERTH_GATEWAY__ALLOWED_HOSTS=["a.example","b.example"]`, "", func(c *Config) any { return c.Gateway.AllowedHosts }, []string{"a.example", "b.example"}},
		{"rules as TOML", `BERTH_PROFILES__DEFAULT__DENY=["shell(a,b)", {rule="x"}]`, "", func(c *Config) any { return c.Profiles["default"].Deny }, []Rule{{Rule: "shell(a,b)"}, {Rule: "x"}}},
		{"makes an agent", "BERTH_AGENTS__MAIN__TITLE=Main", "", func(c *Config) any { return slices.Sorted(maps.Keys(c.Agents)) }, []string{"main"}},
		{"makes a provider", "BERTH_PROVIDERS__OPENAI__BASE_URL=http://h/v1", "", func(c *Config) any { return c.Providers["openai"].BaseURL }, "http://h/v1"},
		{"adds to a free map, case kept", "BERTH_MCP_SERVERS__GIT__ENV__Api_Key=v", "[mcp_servers.git]\ncommand='g'\nenv={OTHER='o'}", func(c *Config) any { return slices.Sorted(maps.Keys(c.MCPServers["git"].Env)) }, []string{"Api_Key", "OTHER"}},
		{"two underscores in a free map's key", "BERTH_MCP_SERVERS__GIT__ENV__A__B=v", "[mcp_servers.git]\ncommand='g'", func(c *Config) any { return slices.Sorted(maps.Keys(c.MCPServers["git"].Env)) }, []string{"A__B"}},
		{"model id, case and dots kept", "BERTH_PROVIDERS__OLLAMA__MODELS__Qwen3.5:4B__CONTEXT_WINDOW=9", "", func(c *Config) any { return c.Providers["ollama"].Models["Qwen3.5:4B"].ContextWindow }, int64(9)},
		{"path relative to the working directory", "BERTH_LOG__FILE=x.log", "", func(c *Config) any { return filepath.Base(filepath.Dir(c.Log.File)) != "berth" }, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := mustLoad(t, tt.doc, tt.env)
			if got := tt.got(c); !reflect.DeepEqual(got, tt.want) {
				t.Errorf("got %#v, want %#v", got, tt.want)
			}
		})
	}
}

func TestLoad_EnvSameKeyTwice(t *testing.T) {
	c := mustLoad(t, "", "BERTH_ACP__QUEUE_LIMIT=3", "BERTH_acp__queue_limit=3")
	if c.ACP.QueueLimit != 3 {
		t.Errorf("limit %d", c.ACP.QueueLimit)
	}
	got := problems(t, options(t, "", "BERTH_ACP__QUEUE_LIMIT=3", "BERTH_acp__queue_limit=4"))
	want := []string{"environment variable BERTH_acp__queue_limit: acp.queue_limit: BERTH_ACP__QUEUE_LIMIT sets this to another value; keep one of the two"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestLoad_KeysOfFreeMapsAreVerbatim(t *testing.T) {
	c := mustLoad(t, `
[mcp_servers.git]
command = "git-mcp"
[mcp_servers.git.env]
API_KEY = "a"
api_key = "b"
"with.dot" = "c"
"Ünïcode" = "d"
[providers.ollama.models]
"gpt-4.1".context_window = 1
"GPT-4.1".context_window = 2
"org/model:Q4_K".context_window = 3
[providers.ollama.headers]
X-Api-Key = "e"
`)
	env := map[string]string{}
	for k, s := range c.MCPServers["git"].Env {
		env[k], _ = s.Reveal()
	}
	if diff := cmp.Diff(map[string]string{"API_KEY": "a", "api_key": "b", "with.dot": "c", "Ünïcode": "d"}, env); diff != "" {
		t.Errorf("env (-want +got):\n%s", diff)
	}
	models := map[string]int64{}
	for id, m := range c.Providers["ollama"].Models {
		models[id] = m.ContextWindow
	}
	if diff := cmp.Diff(map[string]int64{"gpt-4.1": 1, "GPT-4.1": 2, "org/model:Q4_K": 3}, models); diff != "" {
		t.Errorf("models (-want +got):\n%s", diff)
	}
	if v, _ := c.Providers["ollama"].Headers["X-Api-Key"].Reveal(); v != "e" {
		t.Errorf("headers: %v", c.Providers["ollama"].Headers)
	}
}

func TestLoad_Flags(t *testing.T) {
	o := options(t, "[agents.a]\n[agents.b]\nmodel='openai/x'\n")
	o.Flags = map[string]string{"agents.<alias>.model": "offline/offline", "acp.default_agent": "b"}
	o.DataDir = "rel"
	c, err := Load(o)
	if err != nil {
		t.Fatal(err)
	}
	if c.Agents["a"].Model.Provider != "offline" || c.Agents["b"].Model.Provider != "offline" || len(c.Agents) != 2 {
		t.Errorf("--model sets every agent's: %+v", c.Agents)
	}
	if c.DataDir != filepath.Join(o.Dir, "rel") {
		t.Errorf("data dir %s is not relative to the working directory", c.DataDir)
	}
	o = options(t, "")
	o.Flags = map[string]string{"agents.<alias>.model": "offline/offline"}
	if c, err = Load(o); err != nil || c.Agents["default"].Model.Provider != "offline" {
		t.Errorf("--model without a file: %v", err)
	}
	o.Flags = map[string]string{"acp.max_sessions": "many", "log.levl": "x", "agents.<alias>.model": "x", "store.driver": "postgress"}
	want := []string{
		`flag --max-sessions: acp.max_sessions: "many" is not an integer; allowed: an integer from 1 to 100000 (default 10)`,
		`flag --model: agents.default.model: "x" names no provider; allowed: "<provider>/<model>"`,
		`flag log.levl: "log.levl" names no setting; did you mean log.level?`,
		`flag store.driver: store.driver: "postgress" is not allowed; did you mean "postgres"? allowed: sqlite, postgres, memory (default sqlite)`,
	}
	if diff := cmp.Diff(want, problems(t, o)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestLoad_Warnings: what is allowed and will disappoint is said, with its
// place and without a value.
func TestLoad_Warnings(t *testing.T) {
	const key = "[providers.openai]\napi_key = "
	for name, c := range map[string]struct{ doc, want string }{
		"a variable that is not set":     {key + `"env:NOT_SET"`, "config.toml:2:11: providers.openai.api_key: the environment variable NOT_SET is not set"},
		"a variable as shells have it":   {key + `"$CANARY_KEY"`, "config.toml:2:11: providers.openai.api_key: is taken as it stands"},
		"a variable in braces":           {key + `"${CANARY_KEY}"`, "write env:NAME"},
		"a key with a dollar":            {key + `"$canary-1/2"`, ""},
		"several agents, none is chosen": {"[agents.a]\n[agents.b]\n", "(a, b)"},
		"several agents, one is chosen":  {"[acp]\ndefault_agent = \"b\"\n[agents.a]\n[agents.b]\n", ""},
		"authorities that are not there": {"[providers.openai]\nca_file = \"none.pem\"\n", "config.toml:2:11: providers.openai.ca_file: "},
		"one agent":                      {"[agents.a]\n", ""},
	} {
		t.Run(name, func(t *testing.T) {
			cfg, err := Load(options(t, c.doc))
			if err != nil {
				t.Fatal(err)
			}
			got := strings.Join(cfg.Warnings, "\n")
			if !strings.Contains(got, c.want) || (got == "") != (c.want == "") || strings.Contains(strings.ToLower(got), "canary") {
				t.Errorf("warnings %q, want %q", got, c.want)
			}
		})
	}
}
