package config

import (
	"github.com/berth-dev/berth/core/domain"
)

// Key returns the provider's API key as of now: that of its setting or its
// usual variable, else the one that "berth login" stored. It is "" without an
// error when there is none. Errors that are coded AuthRequired are fit to show.
func (p Provider) Key() (string, error) {
	if p.APIKey.IsSet() {
		return p.APIKey.Reveal()
	}
	key, err := p.stored.key(p)
	if err != nil && !p.NeedsKey() {
		return "", nil // loading has warned of it, and this one may do without
	}
	return key, err
}

// TakesKey reports whether a key could be stored for the provider: it is a
// server with an address.
func (p Provider) TakesKey() bool {
	return server(p.BaseURL) != ""
}

// The sources of a provider's key, as KeySource names them, besides references
// such as "env:NAME".
const (
	KeyInSetting = "setting" // written out in the configuration or an override
	KeyInFile    = "file"    // of Credentials
	KeyInKeyring = "keyring" // named by Credentials
)

// KeySource says where the provider's key comes from: a reference, or one of
// the constants; "" when there is none. No key is read.
func (p Provider) KeySource() string {
	if p.APIKey.IsSet() {
		if ref := p.APIKey.Ref(); ref != "" {
			return ref
		}
		return KeyInSetting
	}
	all, err := p.stored.read()
	if err != nil {
		return ""
	}
	_, e, ok := of(all, p)
	if _, in := e.inKeyring(); in {
		return KeyInKeyring
	}
	if ok {
		return KeyInFile
	}
	return ""
}

// Credentials are the keys that "berth login" stored.
func (c *Config) Credentials() *Credentials { return c.ambient.stored }

// storedModel is the default model of the first provider that a stored key is
// for, in the order of ProviderTypes. A file that cannot be read is none: the
// warnings say so.
func (a ambient) storedModel(configured map[string]Provider) (domain.ModelRef, bool) {
	all, err := a.stored.read()
	if err != nil || len(all) == 0 {
		return domain.ModelRef{}, false
	}
	for _, t := range ProviderTypes() {
		if t.DefaultModel == "" || t.BaseURL == "" {
			continue
		}
		for _, name := range sortedNames(configured) {
			p := configured[name]
			if _, _, ok := of(all, p); ok && p.Type == t.Name && p.NeedsKey() && !p.APIKey.IsSet() {
				return domain.ModelRef{Provider: name, Model: t.DefaultModel}, true
			}
		}
		if _, shadowed := configured[t.Name]; shadowed || !t.Implicit {
			continue
		}
		if _, _, ok := of(all, Provider{Name: t.Name, Type: t.Name, BaseURL: t.BaseURL}); ok {
			return domain.ModelRef{Provider: t.Name, Model: t.DefaultModel}, true
		}
	}
	return domain.ModelRef{}, false
}

// fromKeyring reads an entry of the keyring. The error is coded and says what
// to do instead.
func fromKeyring(k Keyring, name string) (string, error) {
	if k == nil {
		return "", domain.Errorf(domain.AuthRequired, "%s%s cannot be read: there is no keyring here; use env:NAME or file:PATH", keyringRef, name)
	}
	v, err := k.Get(name)
	if err != nil {
		return "", domain.Errorf(domain.AuthRequired, "%s%s cannot be read: %w", keyringRef, name, err)
	}
	return trimLineEnd(v), nil
}
