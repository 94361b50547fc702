package config

import (
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/berth-dev/berth/core/domain"
)

// target is what the fields of one setting belong to. Only the struct that
// the setting's path leads to is set.
type target struct {
	cfg      *Config
	agent    *Agent
	provider *Provider
	model    *Model
	profile  *Profile
	server   *MCPServer
	verbatim string // the key in a free map
}

// maybe is a field that is nil unless its setting was given.
type maybe struct{ to **bool }

// secretSlot is a field's place in a map of secrets.
type secretSlot struct {
	in  *map[string]Secret
	key string
}

// addImplied notes the entries that exist without being configured.
func (l *loader) addImplied() {
	if len(l.named["agents"]) == 0 {
		l.named["agents"]["default"] = Origin{}
	}
	if _, ok := l.named["profiles"]["default"]; !ok {
		l.named["profiles"]["default"] = Origin{}
	}
}

// addDefaults gives every key of every entry its default, or nothing.
func (l *loader) addDefaults() {
	for i := range l.table {
		k := &l.table[i]
		path := k.segs
		switch {
		case len(path) < 2 || !isPlaceholder(path[1]):
			l.addDefault(k, path)
		case !strings.Contains(strings.Join(path[2:], "."), "<"):
			for name := range l.named[path[0]] {
				each := append([]string{path[0], name}, path[2:]...)
				l.addDefault(k, each)
			}
		}
	}
}

func (l *loader) addDefault(k *key, path []string) {
	l.layers.put(&setting{key: k, path: path, id: settingID(path), value: k.defaultValue()})
}

// defaultValue parses the default. It is part of the table and always sound;
// a test parses them all.
func (k *key) defaultValue() any {
	if k.def == "" {
		return nil
	}
	n, err := nodeOf(k.kind, k.def)
	if err != nil {
		return nil
	}
	v, err := k.kind.parse(n, place{})
	if err != nil {
		return nil
	}
	return v
}

// fillDefaults sets the defaults of a struct that is not in the file.
func fillDefaults(t *target, table []key) {
	for i := range table {
		if v := table[i].defaultValue(); v != nil {
			assign(table[i].at(t), v)
		}
	}
}

// build fills the Config from the winning settings.
func (l *loader) build() {
	c := l.cfg
	c.settings = l.layers.winners()
	c.ambient = ambientOf(l.env)
	c.ambient.stored = &Credentials{keyring: l.opts.Keyring, note: c.revealed.note}
	agents, providers, profiles, servers := map[string]*Agent{}, map[string]*Provider{}, map[string]*Profile{}, map[string]*MCPServer{}
	for name := range l.named["agents"] {
		agents[name] = &Agent{Alias: name}
	}
	for name := range l.named["providers"] {
		providers[name] = &Provider{Name: name}
	}
	for name := range l.named["profiles"] {
		profiles[name] = &Profile{Name: name}
	}
	for name := range l.named["mcp_servers"] {
		servers[name] = &MCPServer{Name: name}
	}
	models := map[string]map[string]*Model{}
	for _, s := range c.settings {
		if s.value == nil {
			continue
		}
		t := target{cfg: c, verbatim: s.path[len(s.path)-1]}
		switch s.path[0] {
		case "agents":
			t.agent = agents[s.path[1]]
		case "providers":
			t.provider = providers[s.path[1]]
			if len(s.path) == 5 {
				t.model = modelOf(models, s.path[1], s.path[3])
			}
		case "profiles":
			t.profile = profiles[s.path[1]]
		case "mcp_servers":
			t.server = servers[s.path[1]]
		}
		assign(s.key.at(&t), s.value)
	}
	for name, byID := range models {
		providers[name].Models = values(byID)
	}
	for _, p := range providers {
		p.complete(c.ambient)
	}
	for _, s := range servers {
		s.complete()
	}
	c.Agents, c.Providers, c.Profiles, c.MCPServers = values(agents), values(providers), values(profiles), values(servers)
	if c.DataDir == "" {
		c.DataDir = xdgDir(l.env, "XDG_DATA_HOME", l.home, ".local", "share")
	}
	if c.DataDir != "" {
		c.ambient.stored.path = filepath.Join(c.DataDir, "credentials.toml")
	}
	c.remember()
}

// complete fills in what the way to reach a server implies.
func (s *MCPServer) complete() {
	if s.Type != "" {
		return
	}
	if s.URL.IsSet() {
		s.Type = "http"
	} else {
		s.Type = "stdio"
	}
}

func modelOf(models map[string]map[string]*Model, provider, id string) *Model {
	if models[provider] == nil {
		models[provider] = map[string]*Model{}
	}
	if models[provider][id] == nil {
		models[provider][id] = &Model{ID: id}
	}
	return models[provider][id]
}

func values[T any](m map[string]*T) map[string]T {
	out := make(map[string]T, len(m))
	for k, v := range m {
		out[k] = *v
	}
	return out
}

// assign puts a parsed value into a field. Integers become counts, sizes or
// seconds as the field wants.
func assign(field, v any) {
	switch f := field.(type) {
	case *int:
		*f = int(v.(int64))
	case *int64:
		*f = v.(int64)
	case *time.Duration:
		*f = time.Duration(v.(int64)) * time.Second
	case *float64:
		*f = v.(float64)
	case *bool:
		*f = v.(bool)
	case *string:
		*f = v.(string)
	case *Secret:
		*f = v.(Secret)
	case *domain.Level:
		*f = domain.Level(v.(string))
	case *domain.ModelRef:
		*f = v.(domain.ModelRef)
	case *[]string:
		*f = items[string](v)
	case *[]domain.ModelRef:
		*f = items[domain.ModelRef](v)
	case *[]Rule:
		*f = items[Rule](v)
	case maybe:
		on := v.(bool)
		*f.to = &on
	case secretSlot:
		if *f.in == nil {
			*f.in = map[string]Secret{}
		}
		(*f.in)[f.key] = v.(Secret)
	default:
		panic(fmt.Sprintf("config: no way to set a %T", field)) // a key of the table; a test sets them all
	}
}

func items[T any](v any) []T {
	list := v.([]any)
	out := make([]T, len(list))
	for i, item := range list {
		out[i] = item.(T)
	}
	return out
}
