package config

import (
	"encoding/hex"
	"slices"
	"strings"

	"github.com/spf13/viper"
)

// layers decides which setting wins: a flag beats a variable, that beats the
// file, that beats the default. viper does it, and only it is used of viper:
//
//   - its keys are lower-cased and split at a delimiter, which would corrupt
//     the keys of free maps and model ids with dots. So every setting is one
//     flat key, made safe by settingID.
//   - its values keep no origin. So a value is the *setting itself.
//   - its environment pass knows upper-case names only and its writer spills
//     overrides into the file. So env.go reads the environment and set.go
//     edits the file.
type layers struct {
	v   *viper.Viper
	ids []string // of everything put; viper's own list of keys is costly
}

func newLayers() *layers {
	return &layers{v: viper.NewWithOptions(viper.KeyDelimiter("\x00")), ids: make([]string, 0, 96)}
}

// put adds a setting to its layer. Variables must be put before flags: viper
// has one layer for overrides, and the later one stays.
func (l *layers) put(s *setting) {
	l.ids = append(l.ids, s.id)
	switch s.origin.Layer {
	case FromDefault:
		l.v.SetDefault(s.id, s)
	case FromFile:
		_ = l.v.MergeConfigMap(map[string]any{s.id: s}) // it has no error to return
	default:
		l.v.Set(s.id, s)
	}
}

// winners returns the setting that applies for every key, sorted by id.
func (l *layers) winners() []*setting {
	slices.Sort(l.ids)
	ids := slices.Compact(l.ids)
	all := make([]*setting, 0, len(ids))
	for _, id := range ids {
		all = append(all, l.v.Get(id).(*setting))
	}
	return all
}

// settingID returns a key for viper that is unique for a path and already
// lower-case. Segments that are not plain names are spelled in hexadecimal.
func settingID(path []string) string {
	var b strings.Builder
	for i, s := range path {
		if i > 0 {
			b.WriteByte('.')
		}
		if isPlain(s) {
			b.WriteString(s)
		} else {
			b.WriteByte('%')
			b.WriteString(hex.EncodeToString([]byte(s)))
		}
	}
	return b.String()
}

func isPlain(s string) bool {
	for i := range len(s) {
		if c := s[i]; !(c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '_' || c == '-') {
			return false
		}
	}
	return s != ""
}
