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

// Set changes one setting of the file and keeps everything else in it as it
// is: comments, order, line ends. value is text as on a command line. The
// file is replaced only when the outcome is a valid configuration, and only
// if nobody changed it meanwhile; a missing file is created for its owner
// alone. It returns the path of the file.
//
// The outcome is judged without flags and variables: the file must be valid
// by itself, whatever overrides this process happens to have.
func Set(o Options, path, value string) (file string, err error) {
	k, p, err := resolveDotted(keys(), path)
	if err != nil {
		return "", err
	}
	if i := slices.IndexFunc(p, isPlaceholder); i >= 0 {
		return "", fmt.Errorf("%s: write a name in place of %s", path, p[i])
	}
	n, err := nodeOf(k.kind, value)
	if err != nil {
		return "", fmt.Errorf("%s: %s", tomltree.JoinKeys(p), sentence(err.Error(), k.expects()))
	}
	l := &loader{opts: o, env: environment(o.Env), cfg: &Config{}}
	l.home = homeDir(o, l.env)
	dir, _, err := l.configDir()
	if err != nil {
		return "", err
	}
	if dir == "" {
		return "", errNoHome
	}
	if _, err := k.kind.parse(n, place{home: l.home, dir: dir, env: l.env}); err != nil && !k.unsets(n) {
		return "", fmt.Errorf("%s: %s", tomltree.JoinKeys(p), sentence(err.Error(), k.expects()))
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
	text, err := splice(old, p, literal(n))
	if err != nil {
		return "", fmt.Errorf("%s: %w", file, err)
	}
	if err := validText(o, dir, text); err != nil {
		return "", err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("%s: cannot be created: %w", dir, cause(err))
	}
	if now, still, err := readConfig(file); err != nil || still != found || !bytes.Equal(now, old) {
		return "", fmt.Errorf("%s: was changed by someone else meanwhile; nothing was written, try again", file)
	}
	return file, replaceFile(file, text)
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
	_, err := Load(Options{ConfigDir: dir, Env: env, Home: o.Home, Dir: o.Dir, Keyring: o.Keyring, content: text})
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
