package sandbox

import (
	"encoding/binary"
	"path"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// scanLimit bounds the directories of a root that are looked through for
	// protected names before a command, and remembered. A root that holds more
	// is not opened: what is not found could be changed.
	scanLimit = 200_000
	// afterwards is how many times as many are looked through after it: it
	// may have made them to hide something.
	afterwards = 5
)

// guarded is a protected name that exists.
type guarded struct {
	path string // absolute
	id   identity
	dir  bool
	pin  bool // a git directory: what is in it may change, its name may not
}

// scan is what was found in some roots.
type scan struct {
	found []guarded
	whole bool // the limit was not reached
}

// opened reports whether path was approved for the call, or lies in what was.
func opened(path string, approved []string) bool { return withinAny(path, approved) }

// holdsOpened reports whether something below path was approved.
func holdsOpened(dir string, approved []string) bool {
	for _, a := range approved {
		if a != dir && within(a, dir) {
			return true
		}
	}
	return false
}

// place is a directory that is still to be looked through.
type place struct {
	rel   string   // in the root; "" is the root
	above []string // folded
	git   bool     // in a git directory
	split bool     // protected, but something in it was approved: guard the rest one by one
}

// listing is what a directory held when it was read. It holds still as long as
// the directory is the same and was not changed.
type listing struct {
	id      identity
	changed unix.Timespec
	found   []guarded
	next    []place
}

// still returns what is remembered of a directory if it is as it was.
func still(rootFD int, p place, known map[string]listing) (listing, bool) {
	l, ok := known[p.rel]
	if !ok || l.next == nil {
		return l, false
	}
	rel := p.rel
	if rel == "" {
		rel = "."
	}
	var st unix.Stat_t
	if unix.Fstatat(rootFD, rel, &st, unix.AT_SYMLINK_NOFOLLOW) != nil {
		return l, false
	}
	return l, l.id == identity{uint64(st.Dev), st.Ino} && l.changed == st.Ctim
}

// scanRoot looks through at most limit directories of root for protected
// names, nearest to the root first. What was approved, and all below it, is
// left out.
func (n *names) scanRoot(root string, approved []string, limit int) (scan, error) {
	known := n.index.of(root)
	if len(approved) > 0 {
		known = nil
	}
	seen := make(map[string]listing, len(known))
	fd, err := unix.Openat2(unix.AT_FDCWD, root, &unix.OpenHow{Flags: unix.O_PATH | unix.O_DIRECTORY | unix.O_CLOEXEC, Resolve: noLinks})
	if err != nil {
		return scan{}, err
	}
	defer unix.Close(fd)
	s := scan{whole: true}
	next := []place{{}}
	buf := make([]byte, 32<<10)
	for count := 0; len(next) > 0; count++ {
		if count == limit {
			s.whole = false
			break
		}
		p := next[0]
		next = next[1:]
		l, ok := still(fd, p, known)
		if !ok {
			if l, err = n.look(fd, root, p, approved, buf); err != nil {
				continue // it went away, or cannot be read; then a command cannot read it either
			}
		}
		if len(seen) <= n.limit {
			seen[p.rel] = l
		}
		s.found = append(s.found, l.found...)
		next = append(next, l.next...)
	}
	if len(approved) == 0 && len(seen) <= n.limit {
		n.index.set(root, seen)
	}
	return s, nil
}

// look reads one directory.
func (n *names) look(rootFD int, root string, p place, approved []string, buf []byte) (listing, error) {
	rel := p.rel
	if rel == "" {
		rel = "."
	}
	fd, err := unix.Openat2(rootFD, rel, &unix.OpenHow{
		Flags: unix.O_RDONLY | unix.O_DIRECTORY | unix.O_CLOEXEC | unix.O_NOFOLLOW, Resolve: noLinks | unix.RESOLVE_BENEATH,
	})
	if err != nil {
		return listing{}, err
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return listing{}, err
	}
	l := listing{id: identity{uint64(st.Dev), st.Ino}, changed: st.Ctim, next: []place{}}
	if time.Since(time.Unix(st.Ctim.Unix())) < n.settled {
		l.changed = unix.Timespec{} // too fresh to be told from a change that comes now
	}
	err = entries(fd, buf, func(name string, kind byte) {
		// Most files are of no interest, and folding a name costs.
		isDir := kind == unix.DT_DIR || kind == unix.DT_UNKNOWN
		if !isDir && !p.git && !p.split && !odd(name) && !n.isPlain(name) {
			return
		}
		full := path.Join(root, p.rel, name)
		if opened(full, approved) {
			return
		}
		folded := n.fold(name)
		in := place{rel: path.Join(p.rel, name), above: append(p.above[:len(p.above):len(p.above)], folded), git: p.git}
		guard := p.split || p.git && gitProtects(p.above, folded) || !p.git && n.protects(p.above, folded)
		git := !p.git && folded == gitName
		if !guard && !git {
			if isDir && (p.git && gitHolds(p.above, folded) || !p.git && !dependencies(folded)) {
				l.next = append(l.next, in)
			}
			return
		}
		var st unix.Stat_t
		if unix.Fstatat(fd, name, &st, unix.AT_SYMLINK_NOFOLLOW) != nil {
			return
		}
		g := guarded{path: full, id: identity{uint64(st.Dev), st.Ino}, dir: st.Mode&unix.S_IFMT == unix.S_IFDIR}
		switch {
		case git && g.dir && !p.split:
			g.pin, in.git = true, true
			l.next = append(l.next, in)
		case g.dir && holdsOpened(full, approved):
			g.pin, in.split = true, true
			l.next = append(l.next, in)
		}
		l.found = append(l.found, g)
	})
	return l, err
}

// isPlain reports whether a name is that of a protected file which does not
// begin with a dot.
func (n *names) isPlain(name string) bool {
	return slices.ContainsFunc(n.plain, func(p string) bool { return strings.EqualFold(p, name) })
}

// odd reports whether a name can be a protected one: most begin with a dot,
// or look as if they did to some file system.
func odd(name string) bool {
	if name[0] == '.' || strings.Contains(name, "~") {
		return true
	}
	for i := range len(name) {
		if name[i] >= 0x80 {
			return true
		}
	}
	return false
}

// entries calls f for each entry of an open directory.
func entries(fd int, buf []byte, f func(name string, kind byte)) error {
	for {
		n, err := unix.ReadDirent(fd, buf)
		if err == unix.EINTR {
			continue
		}
		if err != nil || n <= 0 {
			return err
		}
		// struct linux_dirent64: inode 8, offset 8, length 2, type 1, name.
		for rest := buf[:n]; len(rest) > 19; {
			size := int(binary.NativeEndian.Uint16(rest[16:]))
			kind := rest[18]
			name := rest[19:size]
			if i := strings.IndexByte(string(name), 0); i >= 0 {
				name = name[:i]
			}
			if string(name) != "." && string(name) != ".." {
				f(string(name), kind)
			}
			rest = rest[size:]
		}
	}
}
