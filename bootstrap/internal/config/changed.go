package config

import (
	"reflect"
	"slices"

	"github.com/berth-dev/berth/bootstrap/internal/tomltree"
)

// Changed returns the keys of the settings that differ between two
// configurations, sorted. A secret differs when its reference or its literal
// value does; what a file or a keyring holds behind a reference is not asked.
func (c *Config) Changed(from *Config) []string {
	before := make(map[string]*setting, len(from.settings))
	for _, s := range from.settings {
		before[s.id] = s
	}
	var keys []string
	for _, s := range c.settings {
		if old := before[s.id]; old == nil && s.value != nil || old != nil && !sameValue(s.value, old.value) {
			keys = append(keys, tomltree.JoinKeys(s.path))
		}
		delete(before, s.id)
	}
	for _, s := range before {
		if s.value != nil {
			keys = append(keys, tomltree.JoinKeys(s.path))
		}
	}
	slices.Sort(keys)
	return keys
}

func sameValue(a, b any) bool {
	x, isSecret := a.(Secret)
	y, both := b.(Secret)
	if isSecret && both {
		return x.Equal(y)
	}
	return isSecret == both && reflect.DeepEqual(a, b)
}
