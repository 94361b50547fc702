package config

import (
	"path/filepath"
	"slices"
	"strings"
)

// ForbiddenPaths returns the absolute paths nobody may use under a profile,
// at any level: the built-in ones and those of the profile, less the built-in
// ones it takes away, and always the configuration and data directories. What
// stays usable inside them, the session's own agent workspace and the
// harmless devices of /dev, is for the path policy to know.
func (c *Config) ForbiddenPaths(profile string) []string {
	list := defaultForbidden(c.home)
	for _, p := range c.Profiles[profile].ForbiddenPaths {
		if gone, ok := strings.CutPrefix(p, "!"); ok {
			list = slices.DeleteFunc(list, func(s string) bool { return s == gone })
		} else if !slices.Contains(list, p) {
			list = append(list, p)
		}
	}
	for _, dir := range []string{c.ConfigDir, c.DataDir} {
		if dir != "" && !slices.Contains(list, dir) {
			list = append(list, dir)
		}
	}
	return list
}

// forbiddenText lists the built-in forbidden paths as a person reads them.
func forbiddenText() []string {
	return []string{"`/etc`", "`/proc`", "`/sys`", "`/boot`", "`/run`", "`/var/run`", "`/root` unless it is the running user's home", "`/dev` except the harmless devices", "`~/.ssh`", "`~/.gnupg`", "`~/.aws`", "`~/.config`"}
}

// defaultForbidden returns the built-in forbidden paths.
func defaultForbidden(home string) []string {
	list := []string{"/etc", "/proc", "/sys", "/boot", "/run", "/var/run", "/dev"}
	if home != "/root" {
		list = append(list, "/root")
	}
	if home != "" {
		for _, name := range []string{".ssh", ".gnupg", ".aws", ".config"} {
			list = append(list, filepath.Join(home, name))
		}
	}
	return list
}
