package config

import (
	"errors"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"runtime"
	"strings"
)

// environment is a list of "NAME=value" as os.Environ returns it. Of repeated
// names the first counts.
type environment []string

// get returns the value of a variable.
func (e environment) get(name string) (string, bool) {
	if name == "" {
		return "", false
	}
	for _, kv := range e {
		if len(kv) > len(name) && kv[len(name)] == '=' && sameVariable(kv[:len(name)], name) {
			return kv[len(name)+1:], true
		}
	}
	return "", false
}

func sameVariable(a, b string) bool {
	return a == b || runtime.GOOS == "windows" && strings.EqualFold(a, b)
}

// homeDir returns the user's home directory, or "" when nobody knows it. An
// editor may start Berth with an empty environment, so the account database
// is asked when HOME is not set.
func homeDir(o Options, env environment) string {
	if o.Home != "" {
		return o.Home
	}
	name := "HOME"
	if runtime.GOOS == "windows" {
		name = "USERPROFILE"
	}
	if h, _ := env.get(name); filepath.IsAbs(h) {
		return h
	}
	if u, err := user.Current(); err == nil && filepath.IsAbs(u.HomeDir) {
		return u.HomeDir
	}
	return ""
}

// xdgDir returns $NAME/berth, or ~/<fallback>/berth, or "" without a home.
// The base directory specification says to ignore relative values.
func xdgDir(env environment, name, home string, fallback ...string) string {
	if base, _ := env.get(name); filepath.IsAbs(base) {
		return filepath.Join(base, "berth")
	}
	if home == "" {
		return ""
	}
	return filepath.Join(append(append([]string{home}, fallback...), "berth")...)
}

// errNoHome is for commands that cannot do without a configuration directory.
var errNoHome = errors.New("there is no home directory for the configuration; set HOME, BERTH_CONFIG_DIR or --config-dir")

// configDir finds the configuration directory. explicit is set when a flag or
// variable named it.
func (l *loader) configDir() (dir string, explicit bool, err error) {
	given, o := l.opts.ConfigDir, Origin{Layer: FromFlag, Name: "--config-dir"}
	if given == "" {
		o = Origin{Layer: FromEnv, Name: "BERTH_CONFIG_DIR"}
		given, _ = l.env.get(o.Name)
	}
	if given == "" {
		return xdgDir(l.env, "XDG_CONFIG_HOME", l.home, ".config"), false, nil
	}
	dir, err = absolute(given, place{home: l.home, dir: l.workdir()})
	if err != nil {
		return "", true, &Error{[]Problem{{Origin: o, Message: err.Error()}}}
	}
	return dir, true, nil
}

// workdir returns the directory that paths in flags and variables are
// relative to.
func (l *loader) workdir() string {
	if l.cwd == "" {
		if l.cwd = l.opts.Dir; l.cwd == "" {
			l.cwd, _ = os.Getwd()
		}
	}
	return l.cwd
}

// PrepareDataDir creates the data directory for its owner alone, and refuses
// one that others may write to: they could plant sessions in it.
func (c *Config) PrepareDataDir() error { return prepareDataDir(c.DataDir) }

func prepareDataDir(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("data directory %s: %w; choose another with data_dir or BERTH_DATA_DIR", dir, cause(err))
	}
	info, err := os.Stat(dir)
	if err != nil {
		return fmt.Errorf("data directory %s: %w", dir, cause(err))
	}
	if othersMayWrite(info) {
		return fmt.Errorf("data directory %s can be written by other users; run: chmod go-w %s", dir, dir)
	}
	return nil
}
