package config

import (
	"strings"
	"sync"
)

// SecretValues returns the values of secrets that may stand in this process's
// memory, for the filters that keep them out of logs: those of settings and
// variables, and whatever was read from files, the keyring and Credentials so
// far. It never shrinks, and only its first call reads secret files, so that
// call is not for the start. A keyring is not asked.
func (c *Config) SecretValues() []string {
	var known []string
	if c.known != nil {
		known = c.known()
	} else {
		known = c.settled()
	}
	if c.revealed.all == nil {
		return known
	}
	return append(known[:len(known):len(known)], c.revealed.all()...)
}

// settled returns the values that can be read without a keyring.
func (c *Config) settled() []string {
	var values []string
	add := func(s Secret) {
		if s.inKeyring() {
			return
		}
		if v, err := s.Reveal(); err == nil && v != "" {
			values = append(values, v)
		}
	}
	for _, s := range c.settings {
		if secret, ok := s.value.(Secret); ok {
			add(secret)
		}
	}
	for _, key := range c.ambient.keys {
		add(key)
	}
	all, err := c.ambient.stored.read()
	if err != nil {
		return values // loading has warned of it
	}
	for _, name := range sortedNames(all) {
		if _, in := all[name].inKeyring(); !in {
			values = append(values, all[name].key)
		}
	}
	for _, v := range values {
		// Of a key of Amazon's every part by itself is secret.
		if strings.HasPrefix(v, "AKIA") || strings.HasPrefix(v, "ASIA") {
			values = append(values, strings.Split(v, ":")...)
		}
	}
	return values
}

// remember makes SecretValues collect what it can only once.
func (c *Config) remember() { c.known = sync.OnceValue(c.settled) }
