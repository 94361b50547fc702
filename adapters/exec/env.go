package exec

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/berth-dev/berth/adapters/exec/shellpolicy"
)

// systemPath is the PATH of commands when the profile passes none.
const systemPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// DefaultShellEnv returns the names of the variables that commands get when
// a profile does not say otherwise.
func DefaultShellEnv() []string {
	return []string{"COLUMNS", "HOME", "LANG", "LC_*", "LINES", "LOGNAME", "NO_COLOR", "PATH", "SHELL", "TERM", "TMPDIR", "TZ", "USER"}
}

// Marker is the variable that tells a program that it runs as a command of
// ours; its value is 1.
const Marker = "BERTH_SHELL"

// environment builds the environment of a command: what the profile lets
// through, and what keeps programs from waiting for a person. It is never
// what this process has.
func environment(environ, allow, hidden, system []string, dir string, roots []string, read bool) []string {
	vars := map[string]string{"PATH": systemPath}
	for _, kv := range environ {
		name, value, ok := strings.Cut(kv, "=")
		if ok && name != "" && passes(name, allow) && !slices.Contains(hidden, name) && !secretName(name) && !opensDoors(name) {
			vars[name] = value
		}
	}
	for _, kv := range quiet() {
		vars[kv[0]] = kv[1]
	}
	vars["PWD"] = dir
	vars[Marker] = "1"
	if read {
		// What was judged by its name is what the system has by that name.
		vars["PATH"] = joinPath(system, outsideOf(vars["PATH"], roots))
		for _, kv := range shellpolicy.GitEnv() {
			name, value, _ := strings.Cut(kv, "=")
			vars[name] = value
		}
	}
	list := make([]string, 0, len(vars))
	for name, value := range vars {
		list = append(list, name+"="+value)
	}
	slices.Sort(list)
	return list
}

// quiet is what keeps programs from waiting for a person, from paging and
// from holding their output back.
func quiet() [][2]string {
	return [][2]string{
		{"TERM", "dumb"}, {"NO_COLOR", "1"},
		{"PAGER", "cat"}, {"GIT_PAGER", "cat"}, {"MANPAGER", "cat"}, {"SYSTEMD_PAGER", "cat"}, {"AWS_PAGER", ""},
		{"EDITOR", "false"}, {"VISUAL", "false"}, {"GIT_EDITOR", "false"}, {"GIT_SEQUENCE_EDITOR", "false"},
		{"GIT_TERMINAL_PROMPT", "0"}, {"GIT_ASKPASS", "false"}, {"SSH_ASKPASS", "false"}, {"SSH_ASKPASS_REQUIRE", "never"},
		{"GCM_INTERACTIVE", "never"}, {"DEBIAN_FRONTEND", "noninteractive"}, {"PYTHONUNBUFFERED", "1"},
		{"npm_config_yes", "true"}, {"npm_config_update_notifier", "false"}, {"PIP_NO_INPUT", "1"},
	}
}

// passes reports whether a list of names, some of them ending in *, holds
// name.
func passes(name string, allow []string) bool {
	return slices.ContainsFunc(allow, func(a string) bool {
		if prefix, ok := strings.CutSuffix(a, "*"); ok {
			return strings.HasPrefix(name, prefix)
		}
		return name == a
	})
}

// secretName reports whether a variable is likely to hold a secret.
func secretName(name string) bool {
	name = strings.ToUpper(name)
	for _, part := range []string{"TOKEN", "SECRET", "PASSWORD", "PASSWD", "PASSPHRASE", "CREDENTIAL", "APIKEY", "API_KEY", "PRIVATE_KEY", "ACCESS_KEY", "AUTH", "COOKIE", "SESSION_KEY"} {
		if strings.Contains(name, part) {
			return true
		}
	}
	return strings.HasSuffix(name, "_KEY") || strings.HasSuffix(name, "_PAT") || strings.HasSuffix(name, "_DSN")
}

// opensDoors reports whether a variable changes what a shell or the loader
// does, or leads to a socket outside: no profile passes these.
func opensDoors(name string) bool {
	switch name {
	case "BASH_ENV", "ENV", "SHELLOPTS", "BASHOPTS", "PS4", "IFS", "CDPATH", "GLOBIGNORE", "PROMPT_COMMAND",
		"SSH_AUTH_SOCK", "SSH_AGENT_PID", "GPG_AGENT_INFO", "DBUS_SESSION_BUS_ADDRESS", "WAYLAND_DISPLAY", "DISPLAY", "XAUTHORITY", "DOCKER_HOST":
		return true
	}
	for _, prefix := range []string{"BASH_FUNC_", "LD_", "DYLD_", "GIT_CONFIG", "BERTH_"} {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}

// outsideOf leaves those directories of a PATH out that are not absolute, or
// in which whoever can write to a root could have put a program.
func outsideOf(path string, roots []string) []string {
	var keep []string
	for _, dir := range filepath.SplitList(path) {
		real, err := filepath.EvalSymlinks(dir)
		if !filepath.IsAbs(dir) || err != nil {
			continue
		}
		if !slices.ContainsFunc(roots, func(root string) bool { return within(filepath.Clean(dir), root) || within(real, root) }) {
			keep = append(keep, dir)
		}
	}
	return keep
}

// joinPath makes a PATH of directories, each once.
func joinPath(lists ...[]string) string {
	var all []string
	for _, dir := range slices.Concat(lists...) {
		if !slices.Contains(all, dir) {
			all = append(all, dir)
		}
	}
	if len(all) == 0 {
		return systemPath
	}
	return strings.Join(all, string(filepath.ListSeparator))
}
