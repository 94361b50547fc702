package config

import (
	"slices"
	"strings"

	"github.com/berth-dev/berth/bootstrap/internal/tomltree"
)

// envPrefix begins the names of Berth's variables.
const envPrefix = "BERTH_"

// envValue is what a variable gave a key.
type envValue struct{ name, text string }

// readEnv applies the overrides of the environment: BERTH_ and the path of a
// setting with "__" for each dot, in any letter case. Empty values count as
// not set. Names without "__" are never overrides; that leaves BERTH_DATA_DIR
// and the other names that are read before there is a configuration.
func (l *loader) readEnv() {
	if v, _ := l.env.get("BERTH_DATA_DIR"); v != "" {
		k, path, _ := l.resolvePath("data_dir")
		l.addText(k, path, v, Origin{Layer: FromEnv, Name: "BERTH_DATA_DIR"})
	}
	for _, kv := range l.env {
		name, value, _ := strings.Cut(kv, "=")
		if value != "" && isOverride(name) {
			l.override(name, strings.Split(name[len(envPrefix):], "__"), value)
		}
	}
}

// isOverride reports whether a variable overrides a setting or means to.
func isOverride(name string) bool {
	return len(name) >= len(envPrefix) && strings.EqualFold(name[:len(envPrefix)], envPrefix) && strings.Contains(name[len(envPrefix):], "__")
}

func (l *loader) override(name string, segs []string, value string) {
	o := Origin{Layer: FromEnv, Name: name}
	k, path := resolve(l.table, segs, "__", true)
	if k == nil {
		lower := make([]string, len(segs))
		for i, s := range segs {
			lower[i] = strings.ToLower(s)
		}
		msg := "names no setting"
		if s := suggest(l.table, lower); s != "" {
			msg += "; did you mean " + envName(s) + "?"
		}
		l.report.add(o, "", "%s", msg+" (berth config list shows them all)")
		return
	}
	for i := range path {
		if !l.validSegment(k, path[:i+1], o) {
			return
		}
	}
	id := settingID(path)
	if l.envSet == nil {
		l.envSet = map[string]envValue{}
	}
	if prev, twice := l.envSet[id]; twice && prev.text != value {
		l.report.add(o, tomltree.JoinKeys(path), "%s sets this to another value; keep one of the two", prev.name)
		return
	}
	l.envSet[id] = envValue{name, value}
	l.addText(k, path, value, o)
}

// envName returns the variable that overrides a setting.
func envName(path string) string {
	return envPrefix + strings.ToUpper(strings.ReplaceAll(path, ".", "__"))
}

// entries lists the names of a named table in order.
func (l *loader) entries(section string) []string {
	if section == "agents" && len(l.named[section]) == 0 {
		return []string{"default"}
	}
	return sortedNames(l.named[section])
}

// sortedNames returns the keys of a map in order.
func sortedNames[V any](m map[string]V) []string {
	names := make([]string, 0, len(m))
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
