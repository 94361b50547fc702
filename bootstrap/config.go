package bootstrap

import (
	"io"
	"os"
	"time"

	"github.com/berth-dev/berth/adapters/keyring"
	"github.com/berth-dev/berth/bootstrap/internal/config"
	"github.com/berth-dev/berth/core/domain"
)

// Config is everything Berth was told, validated: see LoadConfig. An embedder
// may also fill one himself. The settings and how they are read live in
// internal/config; its table of keys is where to add one.
type Config = config.Config

// The parts of a Config.
type (
	ACPConfig       = config.ACP
	LogConfig       = config.Log
	StoreConfig     = config.Store
	GatewayConfig   = config.Gateway
	BridgeConfig    = config.Bridge
	AgentConfig     = config.Agent
	ProviderConfig  = config.Provider
	ModelConfig     = config.Model
	ProfileConfig   = config.Profile
	RuleConfig      = config.Rule
	LimitsConfig    = config.Limits
	MCPServerConfig = config.MCPServer
)

// LoadOptions say where LoadConfig looks: flags, environment, directories.
type LoadOptions = config.Options

// ConfigError is why a configuration was refused: all problems with their
// places.
type ConfigError = config.Error

// ConfigProblem is one problem of a ConfigError.
type ConfigProblem = config.Problem

// ConfigSetting is one value with its origin, as "config list" shows it.
type ConfigSetting = config.Setting

// Secret is a value that prints as a mask; Reveal is the only way to it.
type Secret = config.Secret

// Keyring reads keyring:NAME secrets.
type Keyring = config.Keyring

// ProviderType is a kind of model provider, and whether this build has it.
type ProviderType = config.ProviderType

// LoadConfig reads the configuration: defaults, file, environment, flags, the
// later beating the earlier. A missing file is an empty one. The error is a
// *ConfigError, or says why the file could not be read.
func LoadConfig(o LoadOptions) (*Config, error) {
	return config.Load(hosted(o))
}

// hosted gives options what only a host can know.
func hosted(o LoadOptions) LoadOptions {
	o.TryRule = tryRule
	if o.Keyring == nil {
		o.Keyring = newKeyring(0)
	}
	return o
}

// newKeyring is the system's key store, which is asked only when a key is
// needed that it has. Each question takes at most wait; 0 is the limit of a
// request.
func newKeyring(wait time.Duration) Keyring {
	return keyring.New(keyring.Config{Wait: wait, Bus: os.Getenv("DBUS_SESSION_BUS_ADDRESS")})
}

// NewSecret returns a secret that holds value itself.
func NewSecret(value string) Secret { return config.NewSecret(value) }

// ProviderTypes returns every provider type.
func ProviderTypes() []ProviderType { return config.ProviderTypes() }

// DefaultModel returns the model of a start without configuration, by the
// keys in env ("NAME=value"). ok is false when there is none.
func DefaultModel(env []string) (ref domain.ModelRef, ok bool) { return config.DefaultModel(env) }

// ConfigPath writes where the configuration file is, or would be.
func ConfigPath(w io.Writer, o LoadOptions, asJSON bool) error { return config.Path(w, o, asJSON) }

// ConfigList writes every setting with its value and origin, secrets masked.
func ConfigList(w io.Writer, o LoadOptions, asJSON bool) error { return config.List(w, o, asJSON) }

// ConfigGet writes the value of the setting at a dotted path, or all settings
// of a table.
func ConfigGet(w io.Writer, o LoadOptions, path string, asJSON bool) error {
	return config.Get(w, o, path, asJSON)
}

// ConfigValidate loads the configuration and writes warnings and the verdict.
// Settings that have no effect in this version are among the warnings.
func ConfigValidate(w io.Writer, o LoadOptions, asJSON bool) error {
	return config.Validate(w, hosted(o), asJSON, withoutEffect)
}

// ConfigChange is a setting for ConfigSet to write: its dotted path, and its
// value as text.
type ConfigChange = config.Change

// ConfigSet changes settings of the file, keeping comments and order, and
// returns the file's path. The outcome is judged with all changes made, and
// nothing is written unless it is valid.
func ConfigSet(o LoadOptions, changes ...ConfigChange) (file string, err error) {
	if InsideCommand(o.Env) {
		return "", domain.Errorf(domain.Denied, "settings cannot be changed by a command that an agent runs; do it in a terminal of your own")
	}
	return config.Set(hosted(o), changes...)
}

// ConfigSpelledOut reports whether value would be a secret itself in the
// setting at a dotted path, and no reference to one.
func ConfigSpelledOut(path, value string) bool { return config.SpelledOut(path, value) }

// ConfigSchema writes the JSON schema of the file.
func ConfigSchema(w io.Writer) error { return config.Schema(w) }

// ConfigDocs writes docs/configuration.md.
func ConfigDocs(w io.Writer) error { return config.Docs(w) }
