package shellpolicy

import "strings"

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
