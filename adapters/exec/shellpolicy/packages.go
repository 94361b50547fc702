package shellpolicy

import (
	"slices"
	"strings"
)

func networkClient(name string) bool {
	switch name {
	case "curl", "wget", "wget2", "aria2c", "http", "https", "httpie", "xh", "ssh", "scp", "sftp", "rsync", "ftp", "lftp", "tftp", "telnet", "nc", "ncat",
		"netcat", "socat", "ping", "ping6", "traceroute", "tracepath", "mtr", "dig", "nslookup", "host", "drill", "whois", "getent", "nmap", "openssl",
		"gh", "hub", "glab", "aws", "gcloud", "gsutil", "az", "doctl", "kubectl", "oc", "helm", "terraform", "tofu", "pulumi", "ansible", "ansible-playbook",
		"fly", "flyctl", "heroku", "vercel", "netlify", "wrangler", "firebase", "psql", "mysql", "mariadb", "mongo", "mongosh", "redis-cli", "smbclient",
		"mail", "sendmail", "mutt", "msmtp", "rclone", "s3cmd", "ssh-keyscan", "ssh-copy-id", "ssh-add", "ssh-agent", "gpg", "gpg2", "twine", "svn", "hg", "bzr",
		"fossil", "rdesktop", "w3m", "lynx", "links", "elinks", "youtube-dl", "yt-dlp", "websocat", "mosh", "autossh", "sshpass", "ngrok", "cloudflared", "tailscale":
		return true
	}
	return false
}

func installer(name string) bool {
	switch name {
	case "npm", "npx", "pnpm", "pnpx", "yarn", "bun", "bunx", "pip", "pip2", "pip3", "pipx", "uv", "uvx", "poetry", "pipenv", "pdm", "conda", "mamba", "gem", "bundle",
		"bundler", "cargo", "go", "apt", "apt-get", "aptitude", "dpkg", "rpm", "dnf", "yum", "zypper", "pacman", "apk", "brew", "port", "snap", "flatpak", "nix",
		"nix-env", "nix-shell", "guix", "composer", "mix", "rebar3", "opam", "cabal", "stack", "luarocks", "cpan", "cpanm", "rustup", "corepack", "nvm", "asdf",
		"mise", "volta", "easy_install", "winget", "choco", "scoop", "deno":
		return true
	}
	return false
}

// installs judges package managers: what builds and tests runs the project's
// own code, anything else fetches code.
func (c *call) installs(name string) {
	sub := ""
	for _, d := range c.words[1:] {
		if d.plain() && !strings.HasPrefix(d.text, "-") && !strings.HasPrefix(d.text, "+") {
			sub = d.text
			break
		}
		if !d.static {
			c.raise(risk, notKnown(d))
			return
		}
	}
	builds := false
	switch name {
	case "go":
		builds = slices.Contains([]string{"test", "build", "vet", "fmt", "list", "version", "doc", "env", "fix", "clean", "help", "run", "tool"}, sub)
		for _, d := range c.words[1:] {
			builds = builds && !(sub == "run" && strings.Contains(d.text, "@")) && !(sub == "env" && (strings.HasPrefix(d.text, "-w") || strings.HasPrefix(d.text, "-u")))
		}
	case "cargo":
		builds = slices.Contains([]string{"test", "t", "build", "b", "check", "c", "clippy", "fmt", "doc", "bench", "run", "r", "clean", "tree", "metadata", "version"}, sub)
	case "npm", "pnpm", "yarn", "bun":
		builds = slices.Contains([]string{"test", "t", "tst", "run", "run-script", "ls", "list", "start", "build", "lint", "why", "explain", "help"}, sub) ||
			strings.HasPrefix(sub, "test") || sub == "" && name == "npm"
	case "pip", "pip2", "pip3", "gem", "brew", "conda", "apt", "dpkg", "rpm", "rustup", "poetry", "uv":
		builds = slices.Contains([]string{"list", "show", "freeze", "check", "help", "--version", "info"}, sub)
	case "mix", "stack", "cabal", "rebar3", "deno":
		builds = slices.Contains([]string{"test", "compile", "build", "check", "fmt", "lint"}, sub)
	}
	if builds || len(c.words) == 2 && c.words[1].text == "--version" {
		c.raise(run, "runs the project's own code")
		return
	}
	if name == "go" && sub == "generate" {
		c.raise(risk, "runs the commands that source files name")
		return
	}
	c.network("installs or runs packages")
}
