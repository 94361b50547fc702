package config

import (
	"path/filepath"
	"time"

	"github.com/berth-dev/berth/core/domain"
)

// Config is everything Berth was told, validated. It is not changed after
// Load; a reload makes a new one. It may be printed: secrets print as a mask.
type Config struct {
	ConfigDir  string // absolute; "" when there is no home directory
	ConfigFile string // <ConfigDir>/config.toml, whether it exists or not
	FileFound  bool
	DataDir    string // absolute; not created here, see PrepareDataDir

	Version int // of the file's format
	ACP     ACP
	Log     Log
	Store   Store
	Gateway Gateway
	Bridge  Bridge

	Telemetry Telemetry

	// Agents always holds at least one: "default" when none is configured.
	Agents map[string]Agent
	// Providers holds the configured ones only; see LookupProvider for those
	// that need no configuration.
	Providers map[string]Provider
	// Profiles always holds "default".
	Profiles   map[string]Profile
	MCPServers map[string]MCPServer

	// Warnings are sentences for the log: things that are allowed but will
	// not work as they stand.
	Warnings []string

	home     string
	settings []*setting // every value with its origin, sorted by id
	ambient  ambient
	revealed revealed
	known    func() []string // the secrets that need no keyring; nil in a Config nobody loaded
}

// ACP is the table acp.
type ACP struct {
	DefaultAgent       string // "" for none; may name an agent that does not exist
	MaxSessions        int
	SessionTimeout     time.Duration
	Dialect            string // auto, acp, zeroclaw
	Busy               string // auto, queue, reject
	QueueLimit         int
	MaxMessageBytes    int64
	MaxPromptBlobBytes int64
	ExperimentalV2     bool
}

// Log is the table log.
type Log struct {
	Level  string // "" leaves it to the deployment: info for the daemon, warn for stdio
	Format string // console, json
	File   string // absolute; "" for stderr
}

// Store is the table store.
type Store struct {
	Driver   string // sqlite, postgres, memory
	DSN      Secret // for postgres
	Required bool
}

// Gateway is the table gateway.
type Gateway struct {
	Listen          string // "host:port" or "unix:/path"
	Auth            string // token, none
	AllowedOrigins  []string
	AllowedHosts    []string
	TLSCert, TLSKey string // both or none
	Insecure        bool
	MaxMessageBytes int64
	MaxConnections  int
	// MaxConnectionsPerToken bounds those of one token.
	MaxConnectionsPerToken int
	MaxSessions            int
	PingInterval           time.Duration
	DetachGrace            time.Duration // 0 cancels a turn when its connection is lost
	Drain                  time.Duration
}

// Bridge is the table bridge.
type Bridge struct {
	URL            string
	Token          Secret
	TokenFile      string
	Protocol       string // acp, openclaw
	TLSFingerprint string // 64 lower-case hex digits, or ""
}

// Telemetry is the table telemetry.
type Telemetry struct {
	Endpoint string // "" for no traces
	Header   Secret // "Name: value"
	Service  string
	Sample   float64 // 0 to 1
	Content  bool
}

// Agent is one table agents.<alias>.
type Agent struct {
	Alias        string
	Enabled      bool
	Model        domain.ModelRef // zero: see Config.AgentModel
	Profile      string          // names an entry of Config.Profiles
	Workspace    string          // absolute; "" for the default, see Config.AgentWorkspace
	SystemPrompt string
	Skills       []string
	MCPServers   []string // nil: every enabled server; empty: none
	Title        string
	Description  string

	MaxTurnRequests   int
	MaxOutputTokens   int     // 0: the provider's default
	MaxCostPerSession float64 // US dollars; 0: no limit
	MaxCostPerDay     float64 // US dollars; 0: no limit
	ThoughtLevel      string  // "" leaves it to the model
}

// Provider is one table providers.<name>, with what its type implies filled
// in.
type Provider struct {
	Name       string
	Type       string // a name of ProviderTypes
	BaseURL    string // without a trailing slash; "" for types without a wire
	APIKey     Secret
	Headers    map[string]Secret
	Timeout    time.Duration // until the first byte of an answer
	MaxRetries int
	Models     map[string]Model // by id, verbatim
	Fallback   []domain.ModelRef
	CAFile     string // authorities to trust besides the system's, absolute; "" for none
	Script     string // for type scripted: the script file, absolute

	stored *Credentials // where Key looks last
}

// Model is what providers.<name>.models.<id> says about one model. Prices are
// US dollars per million tokens; 0 is unknown.
type Model struct {
	ID              string
	ContextWindow   int64
	MaxOutputTokens int64
	Images          *bool // nil leaves it to the catalogue
	Audio           *bool
	Thoughts        *bool
	InputPrice      float64
	OutputPrice     float64
	CacheReadPrice  float64
	CacheWritePrice float64
}

// Profile is one table profiles.<name>: what an agent may do.
type Profile struct {
	Name           string
	Level          domain.Level
	AllowedRoots   []string // absolute
	ForbiddenPaths []string // absolute, or "!" and an absolute path; see Config.ForbiddenPaths
	Deny           []Rule
	AlwaysAsk      []Rule
	AutoApprove    []Rule
	Network        string // ask, allow, deny
	Taint          bool
	Sandbox        string // auto, none, or a backend
	ShellEnv       []string
	Limits         Limits
	ClientTerminal bool
}

// Rule is an entry of deny, always_ask or auto_approve: a tool name, or a
// tool name with a pattern in parentheses. Match and NotMatch are examples
// the rule must and must not cover.
type Rule struct {
	Rule     string
	Match    []string
	NotMatch []string
}

// Limits bound one command.
type Limits struct {
	OutputBytes int64
	Wall        time.Duration
	Processes   int
	MemoryBytes int64 // 0: none
}

// MCPServer is one table mcp_servers.<name>. Either Command or URL is set.
type MCPServer struct {
	Name    string
	Enabled bool
	Type    string // stdio, http, sse
	Command string
	Args    []string
	Env     map[string]Secret
	URL     Secret
	Headers map[string]Secret
	Timeout time.Duration
}

// SessionStore returns the path of the session database.
func (c *Config) SessionStore() string {
	return filepath.Join(c.DataDir, "sessions", "acp-sessions.db")
}

// AgentWorkspace returns the absolute workspace directory of an agent.
func (c *Config) AgentWorkspace(alias string) string {
	if w := c.Agents[alias].Workspace; w != "" {
		return w
	}
	return filepath.Join(c.DataDir, "agents", alias, "workspace")
}

// LogLevel returns the level that applies: the configured one, else info for
// the daemon and warn for a stdio process.
func (c *Config) LogLevel(daemon bool) string {
	switch {
	case c.Log.Level != "":
		return c.Log.Level
	case daemon:
		return "info"
	}
	return "warn"
}
