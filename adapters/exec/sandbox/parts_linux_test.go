package sandbox

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestBwrapVersion(t *testing.T) {
	tests := []struct {
		out  string
		ok   bool
		used bool
	}{
		{"bubblewrap 0.8.0\n", true, false},
		{"bubblewrap 0.11.9\n", true, false},
		{"bubblewrap 0.12.0\n", true, true},
		{"bubblewrap 0.12.1", true, true},
		{"bubblewrap 1.0.0", true, true},
		{"bubblewrap 0.12", false, false},
		{"bubblewrap 0.12.0-rc1", false, false},
		{"bwrap 1.0.0", false, false},
		{"bubblewrap -1.99.0", false, false},
		{"", false, false},
	}
	for _, tt := range tests {
		v, ok := bwrapVersion([]byte(tt.out))
		if ok != tt.ok || ok && v.atLeast(bwrapNeeds) != tt.used {
			t.Errorf("%q: %v %v", tt.out, v, ok)
		}
	}
}

func TestBwrapArgs(t *testing.T) {
	open := func(path string, id identity) (int, bool) { return 7, path != "/gone" && id.Ino != 666 }
	tests := []struct {
		name string
		m    mount
		want string
	}{
		{"root", mount{Kind: mountBind, Path: "/w", Source: "/w"}, "--bind-fd 7 /w"},
		{"system", mount{Kind: mountBind, Path: "/usr", Source: "/usr", ReadOnly: true}, "--ro-bind-fd 7 /usr"},
		{"missing tool", mount{Kind: mountBind, Path: "/gone", Source: "/gone", Optional: true}, ""},
		{"replaced root", mount{Kind: mountBind, Path: "/w", Source: "/w", ID: identity{1, 666}}, "--ro-bind /w /w"},
		{"cache", mount{Kind: mountCopy, Path: "/h/.cache/x", Source: "/h/.cache/x", Keep: "/k"}, "--ro-bind-fd 7 /h/.cache/x"},
		{"link", mount{Kind: mountLink, Path: "/bin", Source: "usr/bin"}, "--symlink usr/bin /bin"},
		{"scratch", mount{Kind: mountEmpty, Path: "/tmp", Mode: 0o1777, Size: 4096}, "--perms 1777 --size 4096 --tmpfs /tmp"},
		{"hidden directory", mount{Kind: mountCover, Path: "/usr"}, "--perms 0111 --size 4096 --tmpfs /usr --remount-ro /usr"},
		{"hidden file", mount{Kind: mountCover, Path: "/no/file"}, "--ro-bind /dev/null /no/file"},
		{"protected", mount{Kind: mountGuard, Path: "/w/.vscode"}, "--ro-bind-fd 7 /w/.vscode"},
		{"repository", mount{Kind: mountPin, Path: "/w/.git"}, "--bind-fd 7 /w/.git"},
		{"processes", mount{Kind: mountProc, Path: "/proc"}, "--proc /proc"},
		{"devices", mount{Kind: mountDev, Path: "/dev"}, "--dev /dev"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := strings.Join(bwrapArgs(tt.m, open), " "); got != tt.want {
				t.Errorf("%q, want %q", got, tt.want)
			}
		})
	}
}

func TestToolChain(t *testing.T) {
	s := New(Config{Home: "/home/a", Hidden: []string{"/home/a/.config", "/srv/tools/secret"}})
	tests := map[string]string{
		"/home/a/sdk/go1.26/bin":             "/home/a/sdk/go1.26",
		"/home/a/bin":                        "/home/a/bin",
		"/home/a/.local/bin":                 "/home/a/.local/bin",
		"/home/a/.cargo/bin":                 "/home/a/.cargo/bin",
		"/home/a/.nvm/versions/node/v22/bin": "/home/a/.nvm/versions/node/v22",
		"/srv/tools/bin":                     "/srv/tools/bin",
		"/srv/go/bin":                        "/srv/go",
		"/srv/bin":                           "/srv/bin",
		"/bin":                               "/bin",
		"/home/bin":                          "/home/bin",
		"/srv/scripts":                       "/srv/scripts",
	}
	for dir, want := range tests {
		if got := s.toolChain(dir); got != want {
			t.Errorf("%s: %s, want %s", dir, got, want)
		}
	}
}

func TestHiddenToolsStayHidden(t *testing.T) {
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	home := filepath.Join(base, "home")
	for _, p := range []string{"home/.config/tool/bin/x", "home/.cargo/bin/x", "home/.cache/pip/x", "opt/t/bin/x"} {
		write(t, filepath.Join(base, p), "")
	}
	s := New(Config{
		Home: home, Hidden: []string{filepath.Join(home, ".config"), filepath.Join(home, ".cache")},
		Path: strings.Join([]string{filepath.Join(home, ".config/tool/bin"), filepath.Join(base, "opt/t/bin"), "/usr/bin", "."}, ":"),
	})
	var got []string
	for _, m := range append(s.toolMounts(nil), s.cacheMounts(nil, "")...) {
		rel, _ := filepath.Rel(base, m.Path)
		got = append(got, rel)
		if m.Kind == mountBind && !m.ReadOnly {
			t.Errorf("%s can be written", rel)
		}
	}
	if want := []string{"home/.cargo/bin", "opt/t"}; !slices.Equal(got, want) {
		t.Errorf("shown: %v, want %v", got, want)
	}
}

func TestPlainConfig(t *testing.T) {
	n := namesOf(&Config{})
	tests := []struct {
		name, text string
		ok         bool
	}{
		{"of git init", "[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = false\n\tlogallrefupdates = true\n", true},
		{"of git clone", "[core]\n\tbare = false\n[remote \"origin\"]\n\turl = https://example.test/x.git\n\tfetch = +refs/heads/*:refs/remotes/origin/*\n[branch \"main\"]\n\tremote = origin\n\tmerge = refs/heads/main\n", true},
		{"of a submodule", "[core]\n\tworktree = ../../../sub\n", true},
		{"work tree elsewhere", "[core]\n\tworktree = /home/a\n", false},
		{"work tree above", "[core]\n\tworktree = ../../../../..\n", false},
		{"monitor", "[core]\n\tfsmonitor = ./x\n", false},
		{"monitor on the line of its section", "[core] fsmonitor = ./x\n", false},
		{"hooks path", "[core]\n\thooksPath = x\n", false},
		{"include", "[include]\n\tpath = x\n", false},
		{"alias", "[alias]\n\ts = !x\n", false},
		{"filter", "[filter \"x\"]\n\tclean = x\n", false},
		{"pager", "[core]\n\tpager = x\n", false},
		{"transport that runs programs", "[remote \"o\"]\n\turl = ext::sh -c x\n", false},
		{"remote that is an option", "[remote \"o\"]\n\turl = --upload-pack=x\n", false},
		{"upload pack", "[remote \"o\"]\n\tuploadpack = x\n", false},
		{"line that goes on", "[core]\n\tbare = \\\nfalse\n", false},
		{"dotted section", "[core.x]\n\tbare = true\n", false},
		{"empty", "", true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := n.plainConfig(tt.text, ".git/modules/m"); got != tt.ok {
				t.Errorf("%v, want %v", got, tt.ok)
			}
		})
	}
}

func TestFilterFits(t *testing.T) {
	if auditArch == 0 {
		t.Skip("no filter for this processor")
	}
	for _, r := range []restrict{{}, {Unix: true}, {Inet: true}, {Inet: true, Unix: true}} {
		p := filterFor(&r)
		if len(p) > 4096 {
			t.Errorf("%d instructions", len(p))
		}
		for i, ins := range p {
			if end := i + 1 + int(max(ins.Jt, ins.Jf)); end > len(p)-1 && i < len(p)-1 {
				t.Errorf("instruction %d jumps to %d of %d", i, end, len(p))
			}
		}
	}
}
