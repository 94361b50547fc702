package bootstrap

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/berth-dev/berth/adapters/jsonrpc/acp1"
	"github.com/berth-dev/berth/bootstrap/internal/config"
	"github.com/berth-dev/berth/core/domain"
)

// Keys looks after the keys of providers that a person stored: what the
// commands login and logout do. An agent that runs sees each change at its
// next request.
type Keys struct {
	cfg *Config
	app *App
}

// KeyHolder is a provider that takes a key.
type KeyHolder struct {
	Name   string
	Type   string
	Server string // the address that gets the key
	// Source is where its key comes from now, in words; "" when it has none.
	Source string
	Stored bool     // the key is one that Store put there
	Agents []string // the enabled agents whose model it serves
}

const (
	// keyringPatience is how long a person may take to unlock the keyring.
	keyringPatience = time.Minute
	// checkLimit bounds the question whether a provider takes a key.
	checkLimit = 15 * time.Second
)

// OpenKeys loads the configuration for Keys. It refuses a process that an
// agent's command started.
func OpenKeys(o LoadOptions, opts ...Option) (*Keys, error) {
	if InsideCommand(o.Env) {
		return nil, domain.Errorf(domain.Denied, "keys cannot be changed by a command that an agent runs; do it in a terminal of your own")
	}
	if o.Keyring == nil {
		o.Keyring = newKeyring(keyringPatience)
	}
	cfg, err := LoadConfig(o)
	if err != nil {
		return nil, err
	}
	quiet := *cfg
	quiet.Store.Driver, quiet.Store.Required = "memory", false
	quiet.Log.Level, quiet.Log.File = "off", ""
	app, err := New(&quiet, opts...)
	if err != nil {
		return nil, err
	}
	return &Keys{cfg: cfg, app: app}, nil
}

// Close closes what OpenKeys opened.
func (k *Keys) Close() error { return k.app.Stop(context.Background()) }

// Providers returns the providers that need a key or are configured and can
// have one: the known types first, in their order.
func (k *Keys) Providers() []KeyHolder {
	var names []string
	for _, t := range config.ProviderTypes() {
		names = append(names, t.Name)
	}
	names = append(names, slices.Sorted(maps.Keys(k.cfg.Providers))...)
	var list []KeyHolder
	for i, name := range names {
		p, ok := k.cfg.LookupProvider(name)
		_, configured := k.cfg.Providers[name]
		if ok && p.TakesKey() && (configured || p.NeedsKey()) && slices.Index(names, name) == i {
			list = append(list, k.holder(p))
		}
	}
	return list
}

// Provider returns one provider that can have a key. The error says which
// there are; it does not repeat the name, which may be a key in its place.
func (k *Keys) Provider(name string) (KeyHolder, error) {
	if p, ok := k.cfg.LookupProvider(name); ok && p.TakesKey() {
		return k.holder(p), nil
	}
	var names []string
	for _, p := range k.Providers() {
		names = append(names, p.Name)
	}
	return KeyHolder{}, domain.Errorf(domain.InvalidArgument,
		"no provider of this name takes a key; those that do: %s (another one has to be configured first, under [providers])", strings.Join(names, ", "))
}

func (k *Keys) holder(p config.Provider) KeyHolder {
	h := KeyHolder{Name: p.Name, Type: p.Type, Server: p.BaseURL}
	switch source := p.KeySource(); source {
	case config.KeyInFile:
		h.Source, h.Stored = "stored in "+k.cfg.Credentials().Path(), true
	case config.KeyInKeyring:
		h.Source, h.Stored = "stored in the keyring", true
	case config.KeyInSetting:
		h.Source = "written out as providers." + p.Name + ".api_key"
	case "":
	default:
		h.Source = source
		if variable, ok := strings.CutPrefix(source, "env:"); ok {
			h.Source = "the environment variable " + variable
		}
		if _, err := p.Key(); err != nil && !strings.HasPrefix(source, "keyring:") {
			h.Source += ", which cannot be read"
		}
	}
	for _, a := range k.app.p.Agents.All() {
		if a.Enabled && a.Model.Provider == p.Name {
			h.Agents = append(h.Agents, a.Alias)
		}
	}
	return h
}

// Agent returns the provider of an agent's model; alias "" is the default
// agent, or the only one. ok is false when it takes no key.
func (k *Keys) Agent(alias string) (h KeyHolder, ok bool) {
	agents := k.app.p.Agents
	if alias == "" {
		alias = agents.Default()
	}
	if all := agents.All(); alias == "" && len(all) == 1 {
		alias = all[0].Alias
	}
	for _, a := range agents.All() {
		if a.Alias == alias {
			p, found := k.cfg.LookupProvider(a.Model.Provider)
			if found && p.TakesKey() {
				return k.holder(p), true
			}
		}
	}
	return KeyHolder{}, false
}

// Check asks the provider whether it takes the key, and returns the number of
// models it then offers. AuthRequired when it does not take it; any other
// error says that it could not be asked.
func (k *Keys) Check(ctx context.Context, name, key string) (models int, err error) {
	ctx, cancel := context.WithTimeout(ctx, checkLimit)
	defer cancel()
	list, err := probe(ctx, k.app.p.Models, name, key)
	return len(list), err
}

// prober is what the models of configured providers can be asked.
type prober interface {
	Probe(ctx context.Context, provider, key string) (models []string, err error)
}

// probe asks a provider by whatever opens its models.
func probe(ctx context.Context, models any, provider, key string) ([]string, error) {
	p, ok := models.(prober)
	if !ok {
		return nil, domain.Errorf(domain.Unsupported, "the models of this program cannot be asked without cost")
	}
	return p.Probe(ctx, provider, key)
}

// Store stores a key: in the keyring where one works and file is not wanted,
// else in a file for the user alone. It returns where, in words.
func (k *Keys) Store(name, key string, file bool) (where string, err error) {
	p, ok := k.cfg.LookupProvider(name)
	if !ok {
		return "", fmt.Errorf("provider %q is not configured", name)
	}
	return k.cfg.Credentials().Put(p, key, file)
}

// Remove removes a stored key and reports whether there was one.
func (k *Keys) Remove(name string) (bool, error) {
	p, ok := k.cfg.LookupProvider(name)
	if !ok {
		return false, fmt.Errorf("provider %q is not configured", name)
	}
	return k.cfg.Credentials().Remove(p)
}

// keys is what clients may ask of keys.
func (a *App) keys() acp1.KeyService {
	return keyService{cfg: a.now.config, models: a.p.Models, tell: func(err error) {
		a.p.Observer.Observe(context.Background(), domain.Trouble{Where: "a key could not be checked", Err: err})
	}}
}

// login is how clients may start this program to store a key.
func (a *App) login() acp1.Login {
	if len(a.opts.login) == 0 {
		return acp1.Login{}
	}
	path, err := os.Executable()
	if err != nil {
		path = ""
	}
	return acp1.Login{Command: path, Args: a.opts.login}
}

// keyService is what clients may ask of keys, over the configuration.
type keyService struct {
	cfg    func() *Config
	models any // may be a prober
	tell   func(error)
}

// Check asks the model's provider whether it takes the key. Only a wrong or a
// missing key is an error: whoever cannot be reached says nothing of the key.
func (s keyService) Check(ctx context.Context, ref domain.ModelRef) error {
	ctx, cancel := context.WithTimeout(ctx, checkLimit)
	defer cancel()
	_, err := probe(ctx, s.models, ref.Provider, "")
	switch {
	case domain.HasCode(err, domain.AuthRequired):
		return err
	case err != nil && !domain.HasCode(err, domain.Unsupported):
		s.tell(err)
	}
	return nil
}

// Forgets reports whether the model's provider takes its key from where login
// stores it, or would.
func (s keyService) Forgets(ref domain.ModelRef) bool {
	p, ok := s.cfg().LookupProvider(ref.Provider)
	return ok && p.TakesKey() && !p.APIKey.IsSet()
}

// Forget removes the stored key of the model's provider, if there is one.
func (s keyService) Forget(_ context.Context, ref domain.ModelRef) error {
	p, ok := s.cfg().LookupProvider(ref.Provider)
	if !ok {
		return nil
	}
	_, err := s.cfg().Credentials().Remove(p)
	var coded *domain.Error
	if err != nil && !errors.As(err, &coded) {
		return domain.WrapError(domain.Unavailable, err, "the stored key could not be removed; run: berth logout "+p.Name)
	}
	return err
}
