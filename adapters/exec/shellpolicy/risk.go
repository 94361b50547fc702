package shellpolicy

import (
	"slices"
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

func itoa(n int) string { return strconv.Itoa(n) }

// maxInner is how many texts may be judged inside one another.
const maxInner = 4

// network makes the command one that needs the network.
func (c *call) network(why string) {
	c.w.res.Network = true
	c.raise(risk, why)
}

// opaqueBecause records why it cannot be told what the line runs.
func (w *walker) opaqueBecause(why string) {
	if w.res.Opaque == "" {
		w.res.Opaque = why
	}
}

// nested judges a command that another one runs. It appears among the commands
// of the line, for rules that deny or ask.
func (c *call) nested(words []word) {
	if len(words) == 0 || c.w.inner >= maxInner {
		return
	}
	outer := c.w.current
	c.w.inner++
	n := c.w.newCall(c.sc, c.from)
	n.words, n.external = words, true
	c.w.current = n
	n.judge()
	n.finish()
	c.w.inner--
	c.w.current = outer
}

// script judges a text that the command runs as shell, and reports whether it
// could be read.
func (c *call) script(text string) bool {
	if gate(text) != "" || c.w.inner >= maxInner {
		return false
	}
	file, err := parse(c.w.ctx, text, c.w.env.Dialect)
	if err != nil {
		return false
	}
	outer, line := c.w.current, c.w.line
	c.w.inner++
	c.w.line = text
	c.w.survey(file)
	c.w.stmts(scope{dirs: c.sc.dirs, background: c.sc.background}, file.Stmts)
	c.w.inner--
	c.w.current, c.w.line = outer, line
	return true
}

// dangerous judges programs whose effects nobody can bound; false when name is
// none of them.
func (c *call) dangerous(name string) bool {
	switch {
	case networkClient(name):
		c.network("uses the network")
	case installer(name):
		c.installs(name)
	case shell(name):
		c.shell()
	case interpreter(name):
		c.interpreter(name)
	case runsOthers(name):
		c.runsOthers(name)
	case container(name):
		c.container()
	default:
		return c.archive(name)
	}
	return true
}

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

func shell(name string) bool {
	switch name {
	case "sh", "bash", "dash", "zsh", "ksh", "mksh", "fish", "csh", "tcsh", "ash", "rbash", "pwsh", "powershell", "nu", "elvish", "xonsh":
		return true
	}
	return false
}

// shell judges a shell inside the shell.
func (c *call) shell() {
	c.raise(risk, "runs another shell")
	text := false
	for i := 1; i < len(c.words); i++ {
		d := c.words[i]
		switch {
		case !d.static:
			return
		case d.flag():
			text = text || d.text[1] != '-' && strings.Contains(d.text, "c")
			if d.text == "-o" || d.text == "+o" || d.text == "-O" || d.text == "--rcfile" || d.text == "--init-file" {
				i++
			}
		case text:
			c.texts[i] = c.script(d.text)
			return
		default:
			return
		}
	}
	c.raise(risk, "runs another shell with what it is given")
}

func interpreter(name string) bool {
	for _, p := range []string{"python", "pypy", "perl", "ruby", "php", "lua", "node", "tclsh", "guile", "java"} {
		if rest, found := strings.CutPrefix(name, p); found && strings.Trim(rest, "0123456789.") == "" {
			return true
		}
	}
	switch name {
	case "awk", "gawk", "mawk", "nawk", "osascript", "Rscript", "R", "ghci", "runghc", "scala", "groovy", "julia", "nodejs", "ts-node", "tsx", "irb", "bc", "dc",
		"sqlite3", "ed", "ex", "vi", "vim", "nvim", "emacs", "gdb", "m4", "wish", "expect", "jshell", "iex", "elixir", "erl", "clojure", "bb", "racket", "sbcl", "octave", "jrunscript":
		return true
	}
	return false
}

// interpreter judges programs that run code: that of a file of the project is
// the project's own; that of the line or of a stream is opaque.
func (c *call) interpreter(name string) {
	c.fixed = true
	if strings.HasSuffix(name, "awk") {
		c.awk()
		return
	}
	script := 0
	for i, d := range c.words[1:] {
		if !d.plain() {
			c.raise(risk, notKnown(d))
			return
		}
		if d.flag() && !slices.Contains([]string{"-u", "-B", "-s", "-S", "-I", "-m", "-w", "-W", "-v", "-V", "--version", "--test"}, d.text) {
			c.raise(risk, "may run text given by "+d.text)
			for j := i + 2; j < len(c.words); j++ {
				c.judged[j] = true // code is no path; it is searched all the same
			}
			return
		}
		if !d.flag() || d.text == "--version" || d.text == "--test" {
			script = i + 1
			break
		}
	}
	switch {
	case script == 0, c.words[script].text == "-", c.sc.stdin == stdinPipe && script == 0:
		c.raise(risk, "runs what it reads from its input")
	case c.words[script-1].text == "-m" && slices.Contains([]string{"pip", "ensurepip", "venv", "http.server", "webbrowser", "smtpd", "urllib", "ftplib"}, c.words[script].text):
		c.network("installs packages or uses the network")
	case slices.Contains([]string{"sqlite3", "ed", "ex", "vi", "vim", "nvim", "emacs", "gdb", "m4", "bc", "dc", "expect", "osascript"}, name):
		c.raise(risk, "runs a program that can run others")
	default:
		c.raise(run, "runs a script")
	}
}

// awk judges awk: its program is text unless it comes from a file.
func (c *call) awk() {
	for i, d := range c.words[1:] {
		if d.text == "-f" || strings.HasPrefix(d.text, "--file") {
			c.raise(run, "runs a script")
			return
		}
		if !d.flag() && (i == 0 || c.words[i].text != "-F" && c.words[i].text != "-v") {
			c.judged[i+1] = true
			c.texts[i+1] = !strings.Contains(d.text, `"`) // a pattern is no path
			break
		}
	}
	c.raise(risk, "runs a program in its own language, which can run others")
}

func runsOthers(name string) bool {
	switch name {
	case "xargs", "parallel", "sem", "watch", "script", "entr", "flock", "strace", "ltrace", "valgrind", "perf", "taskset", "numactl", "unbuffer", "faketime",
		"cpulimit", "proot", "fakeroot", "dbus-run-session", "setarch", "linux32", "linux64", "prlimit", "choom", "hyperfine", "nodemon", "reflex",
		"watchexec", "direnv", "dotenv", "op", "doppler", "chpst", "softlimit", "torsocks", "tsocks", "proxychains", "runcon", "xvfb-run", "screen", "tmux",
		"socklog", "daemonize", "start-stop-daemon", "daemon", "dtach", "abduco", "at-spi", "run-parts", "find2perl", "gnome-terminal", "xterm", "open", "xdg-open", "lesspipe", "less", "more", "man", "pg", "most":
		return true
	}
	return false
}

// runsOthers judges programs that run a command made from their arguments or
// their input.
func (c *call) runsOthers(name string) {
	c.raise(risk, "runs other commands")
	spec := tool{short: "0a:d:E:e?I:i?L:l?n:P:prs:tx", long: "null arg-file: delimiter: eof? replace? max-lines? max-args: max-procs: interactive " +
		"no-run-if-empty max-chars: verbose exit show-limits process-slot-var:"}
	if name != "xargs" {
		spec = tool{}
	}
	for i := 1; i < len(c.words); i++ {
		d := c.words[i]
		if !d.static {
			return
		}
		if !d.flag() {
			c.nested(c.words[i:])
			if name == "xargs" || i+1 < len(c.words) && shell(c.words[i].text) {
				return
			}
			if i+1 < len(c.words) && !c.words[i+1].flag() && c.words[i+1].static {
				c.nested(c.words[i+1:]) // the first operand may be the program's own
			}
			return
		}
		if marks, found := shortMarks(spec.short, d.text[1]); found && len(d.text) == 2 && strings.Contains(marks, ":") {
			i++
		}
	}
}

func container(name string) bool {
	switch name {
	case "docker", "podman", "nerdctl", "lxc", "lxc-attach", "lxd", "crictl", "ctr", "buildah", "docker-compose", "podman-compose", "singularity", "apptainer", "vagrant", "qemu-system-x86_64", "virsh", "limactl", "colima":
		return true
	}
	return false
}

// container judges container tools: they work outside the sandbox, so that a
// mount of what is forbidden, or of everything, is a way out.
func (c *call) container() {
	c.network("runs something outside the sandbox")
	for i, d := range c.words {
		text := d.text
		switch {
		case strings.HasPrefix(text, "--privileged"), text == "--pid=host", strings.Contains(text, "docker.sock"):
			c.w.forbid("containers with the rights of the host are a way out of the sandbox")
		case text == "-v" || text == "--volume" || text == "--mount" || text == "--bind":
			if i+1 < len(c.words) {
				c.mount(c.words[i+1].text)
			}
		case strings.HasPrefix(text, "-v"):
			c.mount(text[2:])
		case strings.HasPrefix(text, "--volume="), strings.HasPrefix(text, "--mount="):
			_, value, _ := strings.Cut(text, "=")
			c.mount(value)
		}
	}
}

func (c *call) mount(spec string) {
	for _, part := range strings.FieldsFunc(spec, func(r rune) bool { return r == ':' || r == ',' || r == '=' }) {
		if !strings.HasPrefix(part, "/") && !strings.HasPrefix(part, "~") {
			continue
		}
		for _, p := range c.w.locate(c.sc, c.homed(part)) {
			if p.Root && p.Where != inside {
				c.w.forbid("a container that mounts " + p.Path + " is a way out of the sandbox")
			}
		}
	}
}

// archive judges tools that unpack files of any name.
func (c *call) archive(name string) bool {
	switch name {
	case "tar", "bsdtar", "gtar":
		c.tar()
	case "unzip", "7z", "7za", "unrar", "cpio", "pax", "ar", "unar":
		list := len(c.words) > 1 && (c.words[1].text == "-l" || c.words[1].text == "l")
		if list {
			c.raise(run, "reads an archive")
		} else {
			c.raise(risk, "unpacks an archive, which may overwrite anything")
		}
	default:
		return false
	}
	return true
}

func (c *call) tar() {
	c.raise(run, "makes or reads an archive")
	for i, d := range c.words[1:] {
		letters := strings.TrimPrefix(d.text, "-")
		switch {
		case strings.HasPrefix(d.text, "--"):
			for _, p := range []string{"--to-c", "--use-c", "--checkpoint-a", "--rsh", "--info-s", "--new-v", "--rmt", "--ex", "--get", "--delete", "--remove-f"} {
				if strings.HasPrefix(d.text, p) {
					c.raise(risk, "unpacks an archive or runs a program: "+d.text)
				}
			}
		case i == 0 || d.flag():
			if strings.ContainsAny(letters, "xIF") {
				c.raise(risk, "unpacks an archive or runs a program: "+d.text)
			}
		}
	}
}

// forbiddenProgram says why a program is refused at every level; "" for all
// others.
func forbiddenProgram(name string) string {
	switch name {
	case "sudo", "sudoedit", "su", "doas", "pkexec", "runuser", "machinectl", "run0", "sg", "newgrp", "setpriv", "capsh", "setcap", "gosu", "su-exec":
		return name + " changes whose rights a command has, which is refused"
	case "unshare", "nsenter", "chroot", "mount", "umount", "pivot_root", "switch_root", "bwrap", "firejail", "fusermount", "fusermount3", "losetup", "kexec", "systemd-nspawn", "sandbox-exec":
		return name + " changes what holds commands, which is refused"
	case "crontab", "at", "batch", "atd", "cron", "systemctl", "systemd-run", "launchctl", "loginctl", "service", "update-rc.d", "chkconfig", "initctl", "rc-update", "rc-service":
		return name + " makes things run later, outside the sandbox, which is refused"
	case "shutdown", "reboot", "halt", "poweroff", "init", "telinit":
		return name + " stops the system, which is refused"
	case "iptables", "ip6tables", "nft", "ufw", "firewall-cmd", "pfctl", "ipfw", "ebtables", "arptables":
		return name + " changes the firewall, which is refused"
	case "insmod", "modprobe", "rmmod", "sysctl", "useradd", "usermod", "userdel", "groupadd", "adduser", "deluser", "passwd", "chpasswd", "chsh", "chfn", "visudo", "vipw",
		"dscl", "csrutil", "spctl", "nvram", "efibootmgr", "grub-install", "update-grub", "setenforce", "apparmor_parser", "killall5":
		return name + " changes the system, which is refused"
	case "fdisk", "sfdisk", "cfdisk", "parted", "wipefs", "blkdiscard", "cryptsetup", "lvm", "pvcreate", "vgcreate", "lvcreate", "swapon", "swapoff", "hdparm", "dmsetup", "mdadm", "badblocks", "diskutil", "tune2fs", "debugfs":
		return name + " works on disks, which is refused"
	}
	if strings.HasPrefix(name, "mkfs") || strings.HasPrefix(name, "fsck.") {
		return name + " works on disks, which is refused"
	}
	return ""
}

// programFlags looks for options that name a program or the text of one,
// whatever the tool.
func (c *call) programFlags() {
	for i, d := range c.words {
		if i == 0 || c.texts[i] || !d.static {
			continue
		}
		option, _, _ := strings.Cut(strings.TrimLeft(d.text, "-"), "=")
		if d.flag() {
			switch option {
			case "exec", "execdir", "exec-batch", "toolexec", "vettool", "command", "eval", "shell", "script-shell", "compress-program",
				"use-compress-program", "to-command", "pre", "rsh", "upload-pack", "receive-pack", "extcmd", "editor", "pager", "interpreter",
				"launcher", "wrapper", "require", "loader", "import", "init-command", "before-command", "ldflags", "gccgoflags", "overlay", "modfile":
				if option != "ldflags" || strings.Contains(d.text, "extld") {
					c.raise(risk, "runs a program or text given by "+cut(d.text, 80))
				}
			case "config":
				if path := c.words[0].text; path == "cargo" {
					c.raise(risk, "overrides the configuration of "+path)
				}
			}
			continue
		}
		if key, _, found := strings.Cut(d.text, "="); found && riskyVariable(key) != "" && !strings.Contains(key, "/") {
			c.raise(risk, riskyVariable(key))
		}
	}
}

// rememberedWords is how many words of a command name a program and what it is
// told to do, where that much may be remembered.
func rememberedWords(name string, trusted bool, words []word) int {
	list := known(words)
	if !trusted || len(list) == 0 {
		return 0
	}
	sub := ""
	if len(list) > 1 && syntax.ValidName(strings.ReplaceAll(list[1], "-", "_")) {
		sub = list[1]
	}
	allowed := func(subs ...string) int {
		if sub != "" && slices.Contains(subs, sub) {
			return 2
		}
		return 0
	}
	switch name {
	case "go":
		return allowed("test", "build", "vet", "fmt", "list", "doc", "version")
	case "cargo":
		return allowed("test", "build", "check", "clippy", "fmt", "doc", "bench")
	case "npm", "pnpm", "yarn", "bun":
		if (sub == "run" || sub == "run-script") && len(list) > 2 && !strings.HasPrefix(list[2], "-") {
			return 3
		}
		return allowed("test")
	case "git":
		return allowed("add", "commit", "stash", "switch", "checkout", "restore", "mv", "branch", "tag")
	case "make", "gmake", "just", "task", "dotnet":
		if sub != "" {
			return 2
		}
	case "pytest", "gofmt", "tsc", "mypy", "black", "rustfmt", "goimports", "golangci-lint":
		return 1
	case "ruff":
		return allowed("check", "format")
	}
	return 0
}
