package sandbox

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// system is what the plan of a command needs to know of this machine.
type system struct {
	uid, gid int
	abi      int // Landlock
	filter   bool
	pidMax   bool // a PID namespace has its own limit of process numbers
	bwrap    string
	names    *names
}

// systemDirs hold programs and what they need, and nothing of a person.
func systemDirs() []string {
	return []string{
		"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/opt", "/nix/store", "/gnu/store", "/snap",
		"/run/current-system", "/var/lib/gems", "/sw",
	}
}

// etcFiles are what ordinary programs read in /etc. The rest stays unseen.
func etcFiles(network bool) []string {
	all := []string{
		"ld.so.cache", "ld.so.conf", "ld.so.conf.d", "ld.so.preload", "alternatives", "passwd", "group", "nsswitch.conf", "hosts", "host.conf",
		"gai.conf", "protocols", "services", "networks", "localtime", "timezone", "locale.conf", "locale.alias", "os-release", "debian_version", "lsb-release",
		"mime.types", "magic", "bash.bashrc", "inputrc", "terminfo", "fonts", "profile", "gitconfig", "ca-certificates",
		"ssl/certs", "ssl/cert.pem", "ssl/openssl.cnf", "pki/tls/certs", "pki/tls/cert.pem", "pki/tls/openssl.cnf", "pki/ca-trust", "crypto-policies",
		"java", "maven", "perl", "python3", "R", "papersize",
	}
	if network {
		// Those that name registries may hold keys to them.
		all = append(all, "resolv.conf", "npmrc", "pip.conf")
	}
	return all
}

// toolHomes are directories below the home that hold programs. They are
// shown as they are and cannot be written.
func toolHomes() []string {
	return []string{
		".local/bin", ".local/lib", ".local/share/mise", ".local/share/fnm", ".local/share/uv", ".local/share/pnpm/global",
		"bin", "go/bin", "sdk", ".cargo/bin", ".rustup", ".nvm", ".volta", ".fnm", ".bun/bin", ".deno/bin", ".asdf", ".pyenv", ".rbenv", ".nodenv", ".jenv",
		".sdkman", ".ghcup", ".opam", ".elan", ".juliaup", ".dotnet", ".local/pipx", ".poetry", ".krew/bin",
	}
}

// cacheHomes are directories below the home where tool chains keep what they
// fetched or built. They are shown as copies: a command that could change
// them would have its code run outside, by the next build.
func cacheHomes() []string {
	return []string{
		"go/pkg/mod", ".cache/go-build", ".cargo/registry", ".cargo/git", ".npm/_cacache", ".m2/repository", ".gradle/caches", ".gradle/wrapper",
		".cache/pip", ".cache/uv", ".cache/yarn", ".cache/node/corepack", ".local/share/pnpm/store", ".nuget/packages",
		".cache/ms-playwright", ".cache/puppeteer", ".cache/bazelisk", ".ivy2/cache", ".cache/coursier", ".stack", ".cabal/packages", ".gem/ruby",
		".bundle/cache", ".pub-cache", ".cache/zig", ".hex", ".mix",
	}
}

// exists reports whether a path names anything, and whether that is a link or
// a directory.
func exists(path string) (link, dir, ok bool) {
	info, err := os.Lstat(path)
	if err != nil {
		return false, false, false
	}
	return info.Mode()&os.ModeSymlink != 0, info.IsDir(), true
}

// systemMounts show the system, read-only.
func systemMounts(network bool) []mount {
	var all []mount
	links := map[string]bool{}
	show := func(path string) {
		link, _, ok := exists(path)
		if !ok {
			return
		}
		if !link {
			all = append(all, mount{Kind: mountBind, Path: path, Source: path, ReadOnly: true, Optional: true})
			return
		}
		target, err := os.Readlink(path)
		if err != nil {
			return
		}
		all = append(all, mount{Kind: mountLink, Path: path, Source: target})
		links[path] = true
	}
	dirs := systemDirs()
	for _, d := range dirs {
		show(d)
	}
	for _, name := range etcFiles(network) {
		path := "/etc/" + name
		show(path)
		if !links[path] {
			continue
		}
		// A link out of the shown directories, such as the resolver's file in
		// /run: show what it names, at its own place.
		real, err := filepath.EvalSymlinks(path)
		if err == nil && !withinAny(real, dirs) && !within(real, "/etc") && !within(real, "/proc") {
			all = append(all, mount{Kind: mountBind, Path: real, Source: real, ReadOnly: true, Optional: true})
		}
	}
	return all
}

// toolMounts show tool chains outside the system: those of the home and those
// that PATH names. covered says what lies in a root and is seen anyway.
func (s *Sandbox) toolMounts(covered []string) []mount {
	var all []mount
	hidden := func(path string) bool { return withinAny(path, s.cfg.Hidden) }
	seen := slices.Concat(systemDirs(), covered)
	add := func(path string) {
		real, err := filepath.EvalSymlinks(path)
		if err != nil || withinAny(path, seen) && real == path || hidden(path) || hidden(real) {
			return
		}
		if !withinAny(path, seen) && real != path && withinAny(real, seen) {
			all = append(all, mount{Kind: mountLink, Path: path, Source: real, Optional: true, Replace: true})
			return
		}
		seen = append(seen, path)
		all = append(all, mount{Kind: mountBind, Path: path, Source: real, ReadOnly: true, Optional: true, Replace: true})
	}
	if s.cfg.Home != "" {
		for _, name := range toolHomes() {
			add(filepath.Join(s.cfg.Home, name))
		}
	}
	for _, dir := range filepath.SplitList(s.cfg.Path) {
		if !clean(dir) || withinAny(dir, seen) || dir == "/" {
			continue
		}
		add(s.toolChain(dir))
	}
	return all
}

// toolChain is the directory of the tool chain whose programs lie in dir:
// the one above bin, unless that may hold more than tools.
func (s *Sandbox) toolChain(dir string) string {
	base, above := filepath.Base(dir), filepath.Dir(dir)
	if base != "bin" && base != "sbin" {
		return dir
	}
	// Directly below / or below a home is no place of one tool chain.
	if above == "/" || filepath.Dir(above) == "/" || s.cfg.Home != "" && (within(s.cfg.Home, above) || filepath.Dir(above) == s.cfg.Home && strings.HasPrefix(filepath.Base(above), ".")) {
		return dir
	}
	for _, h := range s.cfg.Hidden {
		if within(h, above) {
			return dir
		}
	}
	return above
}

// cacheMounts show caches of the home as copies. keep is where their changes
// stay; "" forgets them.
func (s *Sandbox) cacheMounts(covered []string, keep string) []mount {
	if s.cfg.Home == "" {
		return nil
	}
	var all []mount
	for _, name := range cacheHomes() {
		path := filepath.Join(s.cfg.Home, name)
		real, err := filepath.EvalSymlinks(path)
		if err != nil || withinAny(path, covered) || withinAny(real, s.cfg.Hidden) || strings.ContainsAny(real+keep, ":,\\") {
			continue
		}
		if _, dir, ok := exists(real); !ok || !dir {
			continue
		}
		m := mount{Kind: mountCopy, Path: path, Source: real, Optional: true, Replace: true}
		if keep != "" {
			m.Keep = filepath.Join(keep, strings.ReplaceAll(name, "/", "+"))
		}
		all = append(all, m)
	}
	return all
}
