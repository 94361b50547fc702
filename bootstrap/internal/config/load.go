package config

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/berth-dev/berth/bootstrap/internal/tomltree"
)

// Options say where to look. The zero value looks nowhere but at the home
// directory of the account: the environment is given, never read.
type Options struct {
	ConfigDir string // of --config-dir; "" when not given
	DataDir   string // of --data-dir; "" when not given
	// Flags are the flags that were given, by the path of the setting each
	// one overrides: {"acp.max_sessions": "5"}. A path with a placeholder,
	// such as "agents.<alias>.model", sets the key of every entry.
	Flags map[string]string
	Env   []string // os.Environ()
	Home  string   // the user's home directory; "" finds it
	// Dir is what relative paths in flags and variables are relative to; ""
	// for the working directory of the process.
	Dir     string
	Keyring Keyring // reads keyring:NAME; nil when there is none
	// TryRule says what is wrong with a rule of a profile's list deny,
	// always_ask or auto_approve. Nil tries nothing; what loads for a host sets
	// its own.
	TryRule func(list string, r Rule) error

	content []byte // read instead of the file, by Set
	place   bool   // nothing of the file but data_dir is wanted, by LoadDataDir
}

// setting is one value with its origin. value is nil when the key is unset.
type setting struct {
	key    *key
	path   []string
	id     string
	value  any
	origin Origin
}

// loader is one Load.
type loader struct {
	opts   Options
	env    environment
	home   string
	cwd    string
	cfg    *Config
	table  []key
	layers *layers
	report report
	// named are the entries of agents, providers, profiles and mcp_servers
	// that something speaks of, and where it first does.
	named map[string]map[string]Origin
	// envSet remembers what a variable set, to find two that disagree.
	envSet map[string]envValue
}

// Load reads the configuration. A missing file is an empty one. The error is
// an *Error that lists every problem with its place, or says why the file
// could not be read; there is no partial result.
func Load(o Options) (*Config, error) {
	l := &loader{
		opts: o, env: environment(o.Env), cfg: &Config{revealed: newRevealed()}, table: keys(), layers: newLayers(),
		named: map[string]map[string]Origin{"agents": {}, "providers": {}, "profiles": {}, "mcp_servers": {}},
	}
	l.home = homeDir(o, l.env)
	l.cfg.home = l.home
	dir, explicit, err := l.configDir()
	if err != nil {
		return nil, err
	}
	if dir != "" {
		l.cfg.ConfigDir, l.cfg.ConfigFile = dir, filepath.Join(dir, "config.toml")
	}
	root, err := l.readFile()
	switch {
	case o.place:
		root = onlyDataDir(root)
	case err != nil:
		return nil, err
	}
	if explicit && !l.cfg.FileFound {
		l.cfg.Warnings = append(l.cfg.Warnings, l.cfg.ConfigFile+" does not exist; running on defaults")
	}
	if root != nil {
		l.walk(root, nil)
	}
	l.readEnv()
	l.readFlags()
	l.addImplied()
	l.addDefaults()
	l.build()
	l.check()
	if err := l.report.err(); err != nil {
		return nil, err
	}
	return l.cfg, nil
}

// LoadDataDir is Load as if nothing stood in the file but data_dir, if that can
// be read.
func LoadDataDir(o Options) (*Config, error) {
	o.place = true
	return Load(o)
}

// onlyDataDir is the file without its other settings; nil when there is nothing
// else.
func onlyDataDir(root *tomltree.Node) *tomltree.Node {
	if root == nil {
		return nil
	}
	for _, n := range root.Items {
		if n.Key == "data_dir" {
			only := *root
			only.Items = []*tomltree.Node{n}
			return &only
		}
	}
	return nil
}

// walk reads one table of the file.
func (l *loader) walk(t *tomltree.Node, path []string) {
	for _, n := range t.Items {
		p := append(path[:len(path):len(path)], n.Key)
		exact, inside := lookup(l.table, p)
		switch {
		case exact != nil:
			if l.validSegment(exact, p, l.at(n.KeyAt)) {
				l.add(exact, p, n, l.at(n.At), l.cfg.ConfigDir)
			}
		case inside == nil:
			l.unknown(p, l.at(n.KeyAt))
		case n.Kind != tomltree.Table:
			l.report.add(l.at(n.At), tomltree.JoinKeys(p), "is %v; allowed: a table of %s", n.Kind, tableOf(inside, len(p)))
		case l.validSegment(inside, p, l.at(n.KeyAt)):
			l.walk(n, p)
		}
	}
}

// tableOf says what stands in the table at depth n of the key's path.
func tableOf(k *key, n int) string {
	if seg := k.segs[n]; isPlaceholder(seg) {
		return "entries named by you"
	}
	return "settings such as " + k.path
}

// validSegment checks the last segment of path where it is chosen by the
// person, and notes new entries.
func (l *loader) validSegment(k *key, path []string, o Origin) bool {
	i := len(path) - 1
	seg := k.segs[i]
	switch {
	case !isPlaceholder(seg):
		return true
	case isVerbatim(seg):
		if msg := checkVerbatim(seg, path[i]); msg != "" {
			l.report.add(o, tomltree.JoinKeys(path), "the key %s", msg)
			return false
		}
	case !validName(path[i]):
		l.report.add(o, tomltree.JoinKeys(path), "%s is not a name; allowed: %s", quote(path[i]), nameRule)
		return false
	default:
		l.note(path, o)
	}
	return true
}

// note records an entry of a named table.
func (l *loader) note(path []string, o Origin) {
	if entries := l.named[path[0]]; entries != nil && len(path) > 1 {
		if _, known := entries[path[1]]; !known {
			entries[path[1]] = o
		}
	}
}

// add checks one value and puts it into its layer.
func (l *loader) add(k *key, path []string, n *tomltree.Node, o Origin, dir string) {
	s := &setting{key: k, path: path, id: settingID(path), origin: o}
	if !k.unsets(n) {
		v, err := k.kind.parse(n, place{home: l.home, dir: dir, env: l.env, keyring: l.opts.Keyring, note: l.cfg.revealed.note})
		if err != nil {
			l.report.add(o, tomltree.JoinKeys(path), "%s", sentence(err.Error(), k.expects()))
			return
		}
		s.value = v
	}
	l.note(path, o)
	l.layers.put(s)
}

// unsets reports whether a value means "as if it were not there": an empty
// string where the key has no default.
func (k *key) unsets(n *tomltree.Node) bool {
	return n.Kind == tomltree.String && n.Text == "" && k.def == "" && !strings.HasSuffix(k.path, ">")
}

// expects says what a key accepts, and its default.
func (k *key) expects() string {
	if k.def == "" || k.def == "[]" {
		return "allowed: " + k.kind.allowed()
	}
	return "allowed: " + k.kind.allowed() + " (default " + k.def + ")"
}

// unknown reports a key that is none.
func (l *loader) unknown(path []string, o Origin) {
	msg := "unknown key"
	if s := suggest(l.table, path); s != "" {
		msg += "; did you mean " + s + "?"
	}
	if names := childNames(l.table, path[:len(path)-1]); len(names) > 0 {
		slices.Sort(names)
		msg = sentence(msg, "allowed here: "+strings.Join(names, ", "))
	}
	l.report.add(o, tomltree.JoinKeys(path), "%s", msg)
}

// readFlags applies the flags.
func (l *loader) readFlags() {
	if l.opts.DataDir != "" {
		l.flag("data_dir", l.opts.DataDir)
	}
	for _, path := range sortedNames(l.opts.Flags) {
		l.flag(path, l.opts.Flags[path])
	}
}

func (l *loader) flag(path, text string) {
	k, p, err := l.resolvePath(path)
	if err != nil {
		l.report.add(Origin{Layer: FromFlag, Name: path}, "", "%v", err)
		return
	}
	o := Origin{Layer: FromFlag, Name: k.flagName()}
	if len(p) > 1 && isPlaceholder(p[1]) {
		for _, name := range l.entries(p[0]) {
			each := slices.Clone(p)
			each[1] = name
			l.addText(k, each, text, o)
		}
		return
	}
	l.addText(k, p, text, o)
}

// flagName returns the key's flag, or its path where it has none and an
// embedder sets it.
func (k *key) flagName() string {
	if k.flag != "" {
		return k.flag
	}
	return k.path
}

// addText adds a value given as text, by a variable or a flag.
func (l *loader) addText(k *key, path []string, text string, o Origin) {
	n, err := nodeOf(k.kind, text)
	if err != nil {
		l.report.add(o, tomltree.JoinKeys(path), "%s", sentence(err.Error(), k.expects()))
		return
	}
	l.add(k, path, n, o, l.workdir())
}

// resolvePath finds the key that a dotted path names. Segments may be quoted
// as in TOML; the key of a free map may also be written with bare dots.
func (l *loader) resolvePath(path string) (*key, []string, error) {
	return resolveDotted(l.table, path)
}

func resolveDotted(table []key, path string) (*key, []string, error) {
	segs, err := splitPath(path)
	if err != nil {
		return nil, nil, err
	}
	if k, p := resolve(table, segs, ".", false); k != nil {
		for i, seg := range k.segs {
			if isPlaceholder(seg) && !isVerbatim(seg) && p[i] != seg && !validName(p[i]) {
				return nil, nil, fmt.Errorf("%s is not a name; allowed: %s", quote(p[i]), nameRule)
			}
		}
		return k, p, nil
	}
	msg := quote(path) + " names no setting"
	if s := suggest(table, segs); s != "" {
		msg += "; did you mean " + s + "?"
	}
	return nil, nil, errors.New(msg)
}

// splitPath splits a dotted path at the dots outside quotes.
func splitPath(path string) ([]string, error) {
	var segs []string
	for rest := path; ; {
		var seg string
		if rest != "" && (rest[0] == '"' || rest[0] == '\'') {
			end := strings.IndexByte(rest[1:], rest[0])
			if end < 0 {
				return nil, fmt.Errorf("%s: a quote is not closed", quote(path))
			}
			seg, rest = rest[1:1+end], rest[2+end:]
			if rest != "" && rest[0] != '.' {
				return nil, fmt.Errorf("%s: a dot is missing after a quoted part", quote(path))
			}
			rest = strings.TrimPrefix(rest, ".")
			segs = append(segs, seg)
			if rest == "" {
				return segs, nil
			}
			continue
		}
		var more bool
		seg, rest, more = strings.Cut(rest, ".")
		segs = append(segs, seg)
		if !more {
			return segs, nil
		}
	}
}
