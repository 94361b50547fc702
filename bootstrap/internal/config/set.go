package config

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/berth-dev/berth/bootstrap/internal/tomltree"
)

// Change is a setting to write: a dotted path and the value as text, as on a
// command line.
type Change struct{ Path, Value string }

// edit is a Change that was understood.
type edit struct {
	key  *key
	path []string
	node *tomltree.Node
}

// Set makes changes to the file and keeps everything else in it as it is:
// comments, order, line ends. The changes are judged together, so settings
// that need each other can be made in any order; either all are written, by
// one replacement of the file, or none. That happens only when the outcome is
// a valid configuration, and only if nobody changed the file meanwhile; a
// missing file is created for its owner alone. It returns the path of the
// file.
//
// The outcome is judged without flags and variables: the file must be valid
// by itself, whatever overrides this process happens to have.
func Set(o Options, changes ...Change) (file string, err error) {
	l := &loader{opts: o, env: environment(o.Env), cfg: &Config{}}
	l.home = homeDir(o, l.env)
	dir, _, err := l.configDir()
	if err != nil {
		return "", err
	}
	if dir == "" {
		return "", errNoHome
	}
	edits, err := l.edits(changes, dir)
	if err != nil {
		return "", err
	}
	file = filepath.Join(dir, "config.toml")
	old, found, err := readConfig(file)
	if err != nil {
		return "", err
	}
	l.cfg.ConfigFile = file
	if _, err := l.parse(old); err != nil {
		return "", err
	}
	text := old
	for _, e := range edits {
		if text, err = splice(text, e.path, literal(e.node)); err != nil {
			return "", fmt.Errorf("%s: %w", file, err)
		}
	}
	if err := validText(o, dir, text); err != nil {
		return "", together(err, o, dir, old)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("%s: cannot be created: %w", dir, cause(err))
	}
	if now, still, err := readConfig(file); err != nil || still != found || !bytes.Equal(now, old) {
		return "", fmt.Errorf("%s: was changed by someone else meanwhile; nothing was written, try again", file)
	}
	return file, replaceFile(file, text)
}

// edits resolves the changes and checks each value by itself.
func (l *loader) edits(changes []Change, dir string) ([]edit, error) {
	table := keys()
	var edits []edit
	for _, c := range changes {
		k, p, err := resolveDotted(table, c.Path)
		if err != nil {
			return nil, err
		}
		if i := slices.IndexFunc(p, isPlaceholder); i >= 0 {
			return nil, fmt.Errorf("%s: write a name in place of %s", c.Path, p[i])
		}
		name := tomltree.JoinKeys(p)
		if slices.ContainsFunc(edits, func(e edit) bool { return slices.Equal(e.path, p) }) {
			return nil, fmt.Errorf("%s: is given twice", name)
		}
		n, err := nodeOf(k.kind, c.Value)
		if err != nil {
			return nil, fmt.Errorf("%s: %s", name, sentence(err.Error(), k.expects()))
		}
		if _, err := k.kind.parse(n, place{home: l.home, dir: dir, env: l.env}); err != nil && !k.unsets(n) {
			return nil, fmt.Errorf("%s: %s", name, sentence(err.Error(), k.expects()))
		}
		edits = append(edits, edit{k, p, n})
	}
	return edits, nil
}

// together adds what to do when values that are each fit for their setting do
// not fit each other or the file: the rest of what they need belongs into the
// same command. A file that was not valid before has other worries.
func together(err error, o Options, dir string, old []byte) error {
	if validText(o, dir, old) != nil {
		return err
	}
	return fmt.Errorf("%w\nsettings that need each other are set by one command: berth config set PATH VALUE PATH VALUE", err)
}

// SpelledOut reports whether value would be a secret itself, and no reference
// to one, in the setting at a dotted path. A path that names no setting holds
// no secret.
func SpelledOut(path, value string) bool {
	k, _, err := resolveDotted(keys(), path)
	if err != nil || value == "" {
		return false
	}
	kind, ok := k.kind.(secrets)
	if !ok {
		return false
	}
	switch ref, _, _ := strings.Cut(value, ":"); ref {
	case "env", "file", "keyring":
		return false
	}
	v, err := kind.literal(value)
	if err != nil {
		return !kind.url
	}
	return v.(Secret).open().shown != value // of an address without a key all is shown
}

// splice edits the text behind its byte order mark, if it has one.
func splice(old []byte, path []string, lit string) ([]byte, error) {
	body := tomltree.TrimBOM(old)
	text, err := tomltree.Set(body, path, lit)
	if err != nil {
		return nil, err
	}
	return slices.Concat(old[:len(old)-len(body)], text), nil
}

// validText loads text as if it stood in the file.
func validText(o Options, dir string, text []byte) error {
	env := slices.DeleteFunc(slices.Clone(o.Env), func(kv string) bool {
		name, _, _ := strings.Cut(kv, "=")
		return isOverride(name)
	})
	_, err := Load(Options{ConfigDir: dir, Env: env, Home: o.Home, Dir: o.Dir, Keyring: o.Keyring, TryRule: o.TryRule, content: text})
	return err
}

// literal writes a value as TOML.
func literal(n *tomltree.Node) string {
	switch n.Kind {
	case tomltree.String:
		return tomltree.Quote(n.Text)
	case tomltree.Array:
		items := make([]string, len(n.Items))
		for i, c := range n.Items {
			items[i] = literal(c)
		}
		return "[" + strings.Join(items, ", ") + "]"
	case tomltree.Table:
		members := make([]string, len(n.Items))
		for i, c := range n.Items {
			members[i] = tomltree.JoinKeys([]string{c.Key}) + " = " + literal(c)
		}
		return "{" + strings.Join(members, ", ") + "}"
	}
	return n.Text
}
