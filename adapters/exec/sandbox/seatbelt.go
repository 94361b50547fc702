package sandbox

import (
	"path/filepath"
	"regexp"
	"strings"
)

// seatbeltProfile is the profile of sandbox-exec for a command: everything is
// denied but what is listed. Later rules win, so what is hidden and protected
// comes last. private is the command's directory for temporary files.
//
// The rules on names work by pattern and so hold for files that do not exist
// yet; letter case is ignored, as the file system does.
func (s *Sandbox) seatbeltProfile(spec *Spec, private string) string {
	var b strings.Builder
	line := func(parts ...string) { b.WriteString(strings.Join(parts, "") + "\n") }
	line("(version 1)")
	line("(deny default)")
	line("(allow process-exec process-fork)")
	line("(allow signal (target same-sandbox))")
	line("(allow process-info* (target same-sandbox))")
	line("(allow sysctl-read)")
	line("(allow mach-lookup (global-name \"com.apple.system.opendirectoryd.libinfo\") (global-name \"com.apple.system.notification_center\") (global-name \"com.apple.system.logger\"))")
	line("(allow ipc-posix-shm-read* ipc-posix-sem)")
	line("(allow file-read-metadata)")
	line("(allow file-read* (literal \"/\"))")
	paths := func(what string, list []string) {
		for _, p := range list {
			line("(allow ", what, " (subpath ", quoted(p), "))")
		}
	}
	paths("file-read*", seatbeltSystem())
	for _, dir := range filepath.SplitList(s.cfg.Path) {
		if clean(dir) && dir != "/" {
			paths("file-read*", []string{dir})
		}
	}
	if s.cfg.Home != "" {
		for _, name := range seatbeltTools() {
			paths("file-read*", []string{filepath.Join(s.cfg.Home, name)})
		}
	}
	line("(allow file-read* file-write* (literal \"/dev/null\") (literal \"/dev/zero\") (literal \"/dev/tty\") (literal \"/dev/dtracehelper\"))")
	line("(allow file-read* (literal \"/dev/random\") (literal \"/dev/urandom\") (subpath \"/dev/fd\"))")
	paths("file-read*", spec.Readable)
	paths("file-read*", spec.Writable)
	paths("file-read*", spec.Extra)
	if !spec.ReadOnly {
		paths("file-write*", spec.Writable)
		paths("file-write*", spec.Extra)
	}
	paths("file-read* file-write*", []string{private})
	if spec.Network {
		line("(allow network*)")
		line("(allow system-socket)")
		line("(allow mach-lookup (global-name \"com.apple.dnssd.service\") (global-name \"com.apple.SecurityServer\") (global-name \"com.apple.trustd.agent\"))")
		line("(deny network-outbound (remote unix-socket))")
	} else {
		// Test suites talk to themselves.
		line("(allow network-bind network-inbound (local ip \"localhost:*\"))")
		line("(deny network-outbound)")
	}
	for _, h := range s.cfg.Hidden {
		line("(deny file* (subpath ", quoted(h), "))")
	}
	// A root may lie in a hidden directory, as an agent's workspace does.
	for _, r := range spec.Writable {
		if withinAny(r, s.cfg.Hidden) {
			paths("file-read*", []string{r})
			if !spec.ReadOnly {
				paths("file-write*", []string{r})
			}
		}
	}
	for _, pattern := range s.seatbeltNames() {
		line("(deny file-write* (regex #", quoted(pattern), "))")
	}
	for _, p := range spec.AllowProtected {
		paths("file-write*", []string{p})
	}
	return b.String()
}

// seatbeltNames are patterns for what is protected.
func (s *Sandbox) seatbeltNames() []string {
	git := nameIn(".git")
	below := git + "/(" + anyCase("modules") + "/.*/|" + anyCase("worktrees") + "/[^/]*/)?"
	all := []string{git + "$", git + "/(.*/)?" + anyCase("hooks") + "(/.*)?$", below + anyCase("info/attributes") + "$"}
	for _, name := range []string{"config", "config.worktree", "commondir", "gitdir"} {
		all = append(all, below+anyCase(name)+"$")
	}
	for _, rule := range s.cfg.Protected {
		all = append(all, nameIn(strings.Trim(rule, "/"))+"(/.*)?$")
	}
	return all
}

// nameIn is a pattern for a name, or several with slashes between them, at
// any depth and in any letter case.
func nameIn(name string) string { return "/" + anyCase(name) }

// anyCase is a pattern for a text in any letter case.
func anyCase(text string) string {
	var b strings.Builder
	for _, r := range text {
		lower, upper := strings.ToLower(string(r)), strings.ToUpper(string(r))
		if lower != upper {
			b.WriteString("[" + lower + upper + "]")
		} else {
			b.WriteString(regexp.QuoteMeta(string(r)))
		}
	}
	return b.String()
}

// quoted is a string in a profile.
func quoted(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(s) + `"`
}

// seatbeltSystem are directories of the system and of its tool chains.
func seatbeltSystem() []string {
	return []string{
		"/usr", "/bin", "/sbin", "/System", "/Library/Apple", "/Library/Developer", "/Library/Frameworks", "/Library/Java", "/Library/Preferences/Logging",
		"/Applications/Xcode.app", "/opt/homebrew", "/opt/local", "/nix/store", "/private/var/db/timezone", "/private/var/db/dyld", "/private/var/select",
		"/private/etc/ssl", "/private/etc/hosts", "/private/etc/passwd", "/private/etc/protocols", "/private/etc/services", "/private/etc/resolv.conf",
		"/private/etc/localtime", "/private/etc/bashrc", "/private/etc/profile", "/private/etc/zshrc", "/private/etc/paths", "/private/etc/manpaths",
	}
}

// seatbeltTools are directories below the home that hold tool chains and
// what those fetched.
func seatbeltTools() []string {
	return []string{
		"go/bin", "go/pkg/mod", "sdk", ".cargo/bin", ".cargo/registry", ".cargo/git", ".rustup", ".nvm", ".volta", ".fnm", ".bun/bin", ".deno/bin", ".asdf",
		".pyenv", ".rbenv", ".sdkman", ".local/bin", ".local/lib", ".m2/repository", ".gradle/caches", ".npm/_cacache", "Library/Caches/go-build",
	}
}
