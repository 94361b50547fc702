package shellpolicy

// fileTool returns the grammar of the tools that look at files and the system.
func fileTool(name string) (t tool, ok bool) {
	switch name {
	case "ls":
		t = tool{short: "aAbBcCdDfFgGhHiI:klL~mnNopqQrR@sStT:uUvw:xXZ1",
			long: "all almost-all author escape block-size: ignore-backups color? directory dired classify? file-type format: full-time " +
				"group-directories-first no-group human-readable si dereference~ dereference-command-line " +
				"dereference-command-line-symlink-to-dir hide: hyperlink? indicator-style: inode ignore: kibibytes literal " +
				"hide-control-chars show-control-chars numeric-uid-gid quote-name quoting-style: reverse recursive@ size sort: time: " +
				"time-style: tabsize: width: context zero help version"}
	case "stat":
		t = tool{short: "Lc:ft", long: "dereference file-system format: printf: terse cached: help version"}
	case "file":
		t = tool{strict: true, short: "bcdEhiklLNnp~rs~S~vz~Z~0F:e:P:m~:C~f~:M~:",
			long: "brief checking-printout exclude: exclude-quiet: separator: no-dereference dereference mime mime-type mime-encoding apple " +
				"extension keep-going list no-buffer no-pad print0 preserve-date~ raw special-files~ no-sandbox~ uncompress~ " +
				"uncompress-noreport~ magic-file~: compile~ files-from~: parameter: debug help version"}
	case "du":
		t = tool{walk: true, dot: true, short: "aAbB:cd:DhHkL~lmPsSt:xX<0",
			long: "all apparent-size block-size: bytes total dereference-args max-depth: files0-from~: human-readable inodes dereference~ " +
				"count-links no-dereference null separate-dirs si summarize threshold: time? time-style: exclude-from< exclude: one-file-system help version"}
	case "df":
		t = tool{short: "aB:hHiklPt:Tvx:", long: "all block-size: human-readable si inodes local no-sync output? portability sync~ total type: print-type exclude-type: help version"}
	case "tree":
		t = tool{strict: true, walk: true, dot: true, short: "adfFgGhiI:JL:nNo>pP:qQrR~sStTuUvcxACDXl~",
			long: "noreport charset: filelimit: dirsfirst filesfirst metafirst matchdirs ignore-case prune si du timefmt: sort? inodes device gitignore help version"}
	case "realpath":
		t = tool{short: "eEmLPqsz", long: "canonicalize-existing canonicalize-missing canonicalize logical physical quiet relative-to< relative-base< strip no-symlinks zero help version"}
	case "readlink":
		t = tool{short: "femnqsvz", long: "canonicalize canonicalize-existing canonicalize-missing no-newline quiet silent verbose zero help version"}
	default:
		return plainTool(name)
	}
	return t, true
}

// plainTool returns the grammar of the tools that open nothing they are given.
func plainTool(name string) (t tool, ok bool) {
	switch name {
	case "pwd":
		t = tool{short: "LP", text: -1}
	case "basename":
		t = tool{short: "as:z", text: -1, long: "multiple suffix: zero help version"}
	case "dirname":
		t = tool{short: "z", text: -1, long: "zero help version"}
	case "uname":
		t = tool{short: "asnrvmpio", text: -1, long: "all kernel-name nodename kernel-release kernel-version machine processor hardware-platform operating-system help version"}
	case "arch", "whoami", "nproc":
		t = tool{text: -1, long: "all ignore: help version"}
	case "id", "groups":
		t = tool{short: "agGnruzZ", text: -1, long: "context group groups name real user zero help version"}
	case "which":
		t = tool{short: "as", text: -1}
	case "printenv":
		t = tool{short: "0", text: -1, long: "null help version"}
	case "seq":
		t = tool{short: "f:s:w", text: -1, digits: true, long: "format: separator: equal-width help version"}
	case "sleep":
		t = tool{text: -1, long: "help version"}
	default:
		return tool{}, false
	}
	return t, true
}
