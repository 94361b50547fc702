package sandbox

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/berth-dev/berth/core/domain"
)

// layer is a path that policy put into the command's view, or took out.
type layer struct {
	path   string
	rank   int // at the same path the higher rank counts
	mount  mount
	write  bool
	hidden bool
}

const (
	rankReadable = iota
	rankExtra
	rankRoot
	rankHidden
)

// plan is what a command will see.
type plan struct {
	mounts []mount
	write  []string // what can be written, besides our own private places
	ids    map[string]identity
	read   []string // what can be read, besides the system
	before []rooted // what is protected in what can be written
	files  []*os.File
}

// rooted is what was found in one root.
type rooted struct {
	root string
	scan scan
}

func (p *plan) close() {
	for _, f := range p.files {
		f.Close()
	}
	p.files = nil
}

// layers opens the paths of spec, so that they stay what they are, and sorts
// them: what lies deeper comes later.
func (s *Sandbox) layers(p *plan, spec *Spec) ([]layer, error) {
	var all []layer
	add := func(path string, rank int) error {
		l, err := s.layer(p, path, rank, !spec.ReadOnly && rank != rankReadable)
		if err == nil {
			all = append(all, l)
		}
		return err
	}
	for _, path := range spec.Writable {
		if err := add(path, rankRoot); err != nil {
			return nil, err
		}
	}
	for rank, list := range map[int][]string{rankReadable: spec.Readable, rankExtra: spec.Extra} {
		for _, path := range list {
			if withinAny(path, s.cfg.Hidden) || withinAny(path, []string{"/proc", "/sys", "/dev"}) {
				return nil, domain.Errorf(domain.Denied, "%s is forbidden and is not opened for commands", path)
			}
			if s.ownPlace(path) {
				continue
			}
			if err := add(path, rank); err != nil {
				return nil, err
			}
		}
	}
	for _, path := range slices.Concat(s.cfg.Hidden, spec.hidden) {
		if _, _, ok := exists(path); ok {
			all = append(all, layer{path: path, rank: rankHidden, hidden: true, mount: mount{Kind: mountCover, Path: path}})
		}
	}
	slices.SortStableFunc(all, func(a, b layer) int {
		return cmp.Or(cmp.Compare(strings.Count(a.path, "/"), strings.Count(b.path, "/")), cmp.Compare(a.path, b.path), -cmp.Compare(a.rank, b.rank))
	})
	return slices.CompactFunc(all, func(a, b layer) bool { return a.path == b.path }), nil
}

// ownPlace reports whether a path is, or would come to lie in, a directory
// that everybody on the system uses and of which the command has its own:
// opening that would show it the files and sockets of all other programs.
func (s *Sandbox) ownPlace(path string) bool {
	if s.chosen == byLandlock {
		return false // it has none at that name
	}
	for at := path; at != "/"; at = filepath.Dir(at) {
		if slices.Contains([]string{"/tmp", "/var/tmp", "/dev/shm"}, at) {
			return true
		}
		if _, _, ok := exists(at); ok {
			return false
		}
	}
	return false
}

// layer opens one path.
func (s *Sandbox) layer(p *plan, path string, rank int, write bool) (layer, error) {
	var fd int
	var err error
	for {
		fd, err = unix.Openat2(unix.AT_FDCWD, path, &unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: noLinks})
		if err != unix.ENOENT || rank == rankRoot {
			break
		}
		path = filepath.Dir(path)
		if path == "/" {
			return layer{}, domain.Errorf(domain.Denied, "the top of the file system is not opened for commands")
		}
	}
	if err != nil {
		return layer{}, domain.Errorf(domain.Denied, "%s cannot be opened for a command: %v", path, err)
	}
	p.files = append(p.files, os.NewFile(uintptr(fd), path))
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return layer{}, domain.Errorf(domain.Denied, "%s cannot be opened for a command: %v", path, err)
	}
	id := identity{uint64(st.Dev), st.Ino}
	p.ids[path] = id
	kind := st.Mode & unix.S_IFMT
	if rank == rankRoot && kind != unix.S_IFDIR {
		return layer{}, domain.Errorf(domain.Denied, "%s is no directory", path)
	}
	return layer{path: path, rank: rank, write: write, mount: mount{
		Kind: mountBind, Path: path, Source: path, ReadOnly: !write, ID: id, Replace: within(path, s.cfg.Home) && s.cfg.Home != "",
	}}, nil
}

// plan works out the view of a command. keep is where its copies of caches
// stay.
func (s *Sandbox) plan(spec *Spec, keep string) (*plan, error) {
	p := &plan{ids: map[string]identity{}}
	layers, err := s.layers(p, spec)
	if err != nil {
		p.close()
		return nil, err
	}
	var covered []string
	for _, l := range layers {
		if l.hidden {
			continue
		}
		covered = append(covered, l.path)
		p.read = append(p.read, l.path)
		if l.write {
			p.write = append(p.write, l.path)
		}
	}
	size := scratchSize(spec.Limits.MemoryBytes)
	scratch := func(path string, mode uint32) {
		if !slices.Contains(covered, path) {
			p.mounts = append(p.mounts, mount{Kind: mountEmpty, Path: path, Mode: mode, Size: size})
		}
	}
	scratch("/tmp", 0o1777)
	scratch("/var/tmp", 0o1777)
	p.mounts = append(p.mounts, systemMounts(spec.Network)...)
	p.mounts = append(p.mounts, mount{Kind: mountProc, Path: "/proc"}, mount{Kind: mountDev, Path: "/dev", Size: size})
	if home := s.cfg.Home; home != "" && !withinAny(home, covered) {
		if dir := s.private(spec); dir != "" {
			p.mounts = append(p.mounts, mount{Kind: mountBind, Path: home, Source: filepath.Join(dir, "home")})
		} else {
			scratch(home, 0o700)
		}
	}
	p.mounts = append(p.mounts, s.toolMounts(covered)...)
	p.mounts = append(p.mounts, s.cacheMounts(covered, keep)...)
	for _, l := range layers {
		p.mounts = append(p.mounts, l.mount)
	}
	if err := s.guard(p, spec); err != nil {
		p.close()
		return nil, err
	}
	return p, nil
}

// guard makes what is protected in the writable paths read-only.
func (s *Sandbox) guard(p *plan, spec *Spec) error {
	n := s.system.names
	seen := map[string]bool{}
	for i, root := range p.write {
		if withinAny(root, p.write[:i]) {
			continue // found in the root above it
		}
		if _, dir, _ := exists(root); !dir {
			continue
		}
		found, err := n.scanRoot(root, spec.AllowProtected, n.limit)
		if err != nil {
			return domain.Errorf(domain.Denied, "%s cannot be opened for a command: %v", root, err)
		}
		if !found.whole && slices.Contains(spec.Writable, root) {
			return domain.Errorf(domain.Denied, "%s cannot be opened for a command that writes: it holds more than %d directories, too many to find what is protected in them; "+
				"delete directories that are not needed, or use a smaller working directory", root, n.limit)
		}
		p.before = append(p.before, rooted{root, found})
		for _, g := range found.found {
			if seen[g.path] || withinAny(g.path, s.cfg.Hidden) {
				continue
			}
			seen[g.path] = true
			kind := mountGuard
			if g.pin {
				kind = mountPin
			}
			p.mounts = append(p.mounts, mount{Kind: kind, Path: g.path})
		}
	}
	return nil
}

// scratchSize is how much a private place in memory may hold: the limit of
// the command, or a quarter of the machine's memory.
func scratchSize(limit int64) int64 {
	if limit > 0 {
		return limit
	}
	var info unix.Sysinfo_t
	if unix.Sysinfo(&info) != nil {
		return 1 << 30
	}
	return max(int64(info.Totalram)*int64(info.Unit)/4, 256<<20)
}

// namespaced is the order for a command in namespaces.
func (s *Sandbox) namespaced(spec *Spec, p *plan) order {
	o := s.order(spec)
	o.Namespaces = true
	o.Mounts = p.mounts
	o.Restrict.Read = []string{"/"}
	o.Restrict.Write = slices.Concat(p.write, []string{"/tmp", "/var/tmp", "/dev/shm"})
	if s.cfg.Home != "" {
		o.Restrict.Write = append(o.Restrict.Write, s.cfg.Home)
	}
	o.Restrict.Device = []string{"/dev"}
	if spec.Limits.Processes > 0 && s.system.pidMax && s.system.uid == 0 {
		// The kernel counts processes of everybody but root. Numbers below 300
		// are given out only once, so that many stay usable besides the limit.
		o.PIDMax = spec.Limits.Processes + 301
	}
	return o
}

// order is what the orders of all backends have in common.
func (s *Sandbox) order(spec *Spec) order {
	o := order{
		UID: s.system.uid, GID: s.system.gid,
		Argv: spec.Argv, Env: append(slices.Clone(spec.Env), fmt.Sprintf("%s=%s", EnvMarker, s.chosen)),
		Dir: spec.Dir, Self: spec.self, Limits: spec.Limits,
		Restrict: restrict{Caps: true, ABI: s.system.abi, Filter: s.system.filter, Unix: spec.ReadOnly},
	}
	if spec.DirFile != nil {
		o.DirID, _ = identify(int(spec.DirFile.Fd()))
	}
	return o
}
