package sandbox

import (
	"errors"
	"fmt"
	"os"
	"path"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Attributes of every mount but those of device files.
const plainAttrs = unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV

// noLinks looks names up without following any link.
const noLinks = unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS

// view is the file system of the command in the making.
type view struct {
	base    int // root of the new tree
	store   string
	copies  int
	sources map[int]int // index of a mount: its tree, detached
}

// buildView makes the mounts of o the whole file system of this process.
//
// Everything from outside is taken as a detached tree before anything is
// covered, through descriptors that were opened without following links. So
// nobody who plants a link meanwhile can lead us elsewhere.
func buildView(o *order) error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("keeping mounts to ourselves: %w", err)
	}
	v := &view{sources: map[int]int{}}
	for i := range o.Mounts {
		if err := v.take(i, &o.Mounts[i]); err != nil {
			return fmt.Errorf("%s: %w", o.Mounts[i].Path, err)
		}
	}
	if err := v.begin(); err != nil {
		return fmt.Errorf("the new root: %w", err)
	}
	for i := range o.Mounts {
		m := &o.Mounts[i]
		if err := v.place(i, m); err != nil && !m.Optional {
			return fmt.Errorf("%s: %w", m.Path, err)
		}
	}
	if o.PIDMax > 0 {
		if err := v.limitPIDs(o.PIDMax); err != nil {
			return err
		}
	}
	// The devices and the root itself are ours, not the command's.
	for _, p := range []string{"dev", "proc", ""} {
		if err := v.lock(p); err != nil {
			return fmt.Errorf("/%s: %w", p, err)
		}
	}
	return v.enter()
}

// take opens what a bind shows.
func (v *view) take(i int, m *mount) error {
	if m.Kind != mountBind {
		return nil
	}
	fd, err := unix.Openat2(unix.AT_FDCWD, m.Source, &unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: noLinks})
	if err != nil {
		if m.Optional {
			return nil
		}
		return deniedError{err}
	}
	defer unix.Close(fd)
	if err := m.ID.check(fd); err != nil {
		return err
	}
	tree, err := cloneTree(fd, plainAttrs|readOnly(m.ReadOnly))
	if err != nil {
		if m.Optional {
			return nil
		}
		return err
	}
	v.sources[i] = tree
	return nil
}

// identify returns what fd is.
func identify(fd int) (identity, error) {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return identity{}, err
	}
	return identity{uint64(st.Dev), st.Ino}, nil
}

// check refuses fd if it is something else than id, unless id is unknown.
func (id identity) check(fd int) error {
	if id == (identity{}) {
		return nil
	}
	got, err := identify(fd)
	if err != nil {
		return err
	}
	if got != id {
		return deniedError{errors.New("it was replaced by something else since it was opened")}
	}
	return nil
}

// cloneTree makes a detached copy of the mounts at and below fd.
func cloneTree(fd int, attrs uint64) (int, error) {
	tree, err := unix.OpenTree(fd, "", unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_EMPTY_PATH|unix.AT_RECURSIVE)
	if err != nil {
		return -1, err
	}
	if attrs != 0 {
		err = unix.MountSetattr(tree, "", unix.AT_EMPTY_PATH|unix.AT_RECURSIVE, &unix.MountAttr{Attr_set: attrs})
		if err != nil {
			unix.Close(tree)
			return -1, err
		}
	}
	return tree, nil
}

func readOnly(yes bool) uint64 {
	if yes {
		return unix.MOUNT_ATTR_RDONLY
	}
	return 0
}

// begin puts the new root, and beside it a place for the changes of copies,
// over a directory that no command sees anyway.
func (v *view) begin() error {
	store, err := newFS("tmpfs", plainAttrs, "mode=0755")
	if err != nil {
		return err
	}
	for _, p := range []string{"/sys", "/proc", "/dev", "/boot"} {
		if err = unix.MoveMount(store, "", unix.AT_FDCWD, p, unix.MOVE_MOUNT_F_EMPTY_PATH); err == nil {
			v.store = p
			break
		}
	}
	if err != nil {
		return err
	}
	if err := os.Mkdir(v.store+"/root", 0o755); err != nil {
		return err
	}
	if v.base, err = newFS("tmpfs", plainAttrs, "mode=0755"); err != nil {
		return err
	}
	return unix.MoveMount(v.base, "", unix.AT_FDCWD, v.store+"/root", unix.MOVE_MOUNT_F_EMPTY_PATH)
}

// newFS makes a file system that is mounted nowhere yet. Options are
// "key=value"; one without a value is a flag.
func newFS(kind string, attrs int, options ...string) (int, error) {
	fs, err := unix.Fsopen(kind, unix.FSOPEN_CLOEXEC)
	if err != nil {
		return -1, err
	}
	defer unix.Close(fs)
	for _, o := range options {
		key, value, ok := strings.Cut(o, "=")
		if ok {
			err = unix.FsconfigSetString(fs, key, value)
		} else {
			err = unix.FsconfigSetFlag(fs, key)
		}
		if err != nil {
			return -1, fmt.Errorf("%s: %w", o, err)
		}
	}
	if err := unix.FsconfigCreate(fs); err != nil {
		return -1, err
	}
	return unix.Fsmount(fs, unix.FSMOUNT_CLOEXEC, attrs)
}

// place does one step.
func (v *view) place(i int, m *mount) error {
	switch m.Kind {
	case mountEmpty:
		return v.mountFS(m, "tmpfs", plainAttrs, fmt.Sprintf("mode=0%o", m.Mode), "size="+strconv.FormatInt(m.Size, 10))
	case mountProc:
		return v.mountFS(m, "proc", plainAttrs|unix.MOUNT_ATTR_NOEXEC)
	case mountDev:
		return v.devices(m)
	case mountLink:
		dir, err := v.directory(path.Dir(m.Path), m.Replace)
		if err != nil {
			return err
		}
		defer unix.Close(dir)
		return unix.Symlinkat(m.Source, dir, path.Base(m.Path))
	case mountBind:
		tree, ok := v.sources[i]
		if !ok {
			return nil // optional and missing
		}
		defer unix.Close(tree)
		return v.attach(tree, m)
	case mountCopy:
		tree, err := v.copy(m)
		if err != nil {
			return err
		}
		defer unix.Close(tree)
		return v.attach(tree, m)
	case mountCover, mountGuard, mountPin:
		return v.inPlace(m)
	}
	return fmt.Errorf("unknown step %q", m.Kind)
}

func (v *view) mountFS(m *mount, kind string, attrs int, options ...string) error {
	fs, err := newFS(kind, attrs, options...)
	if err != nil {
		return err
	}
	defer unix.Close(fs)
	return v.attach(fs, m)
}

// attach mounts a detached tree at m.Path, which is made if it is missing.
func (v *view) attach(tree int, m *mount) error {
	var st unix.Stat_t
	if err := unix.Fstat(tree, &st); err != nil {
		return err
	}
	var at int
	var err error
	if st.Mode&unix.S_IFMT == unix.S_IFDIR {
		at, err = v.directory(m.Path, m.Replace)
	} else {
		at, err = v.file(m.Path, m.Replace)
	}
	if err != nil {
		return err
	}
	defer unix.Close(at)
	return unix.MoveMount(tree, "", at, "", unix.MOVE_MOUNT_F_EMPTY_PATH|unix.MOVE_MOUNT_T_EMPTY_PATH)
}

// inPlace mounts something over a path that must exist; if it does not there
// is nothing to do.
func (v *view) inPlace(m *mount) error {
	at, err := v.open(m.Path, 0)
	if err == unix.ENOENT || err == unix.ENOTDIR {
		return nil
	}
	if err != nil {
		return err
	}
	defer unix.Close(at)
	var st unix.Stat_t
	if err := unix.Fstat(at, &st); err != nil {
		return err
	}
	if st.Mode&unix.S_IFMT == unix.S_IFLNK {
		return nil // a link cannot be mounted on, nor does it need it: what it names is hidden by itself
	}
	var tree int
	switch {
	case m.Kind != mountCover:
		tree, err = cloneTree(at, plainAttrs|readOnly(m.Kind == mountGuard))
	case st.Mode&unix.S_IFMT == unix.S_IFDIR:
		tree, err = newFS("tmpfs", plainAttrs, "mode=0111", "size=4096")
	default:
		tree, err = v.blank()
	}
	if err != nil {
		return err
	}
	defer unix.Close(tree)
	return unix.MoveMount(tree, "", at, "", unix.MOVE_MOUNT_F_EMPTY_PATH|unix.MOVE_MOUNT_T_EMPTY_PATH)
}

// blank is an empty file that nobody may open.
func (v *view) blank() (int, error) {
	name := v.store + "/blank"
	fd, err := unix.Open(name, unix.O_CREAT|unix.O_WRONLY|unix.O_CLOEXEC, 0)
	if err == nil {
		unix.Close(fd)
	} else if err != unix.EACCES {
		return -1, err
	}
	if fd, err = unix.Open(name, unix.O_PATH|unix.O_CLOEXEC, 0); err != nil {
		return -1, err
	}
	defer unix.Close(fd)
	return cloneTree(fd, plainAttrs|unix.MOUNT_ATTR_RDONLY)
}

// copy shows a directory that can be changed without changing it.
func (v *view) copy(m *mount) (int, error) {
	keep := m.Keep
	if keep == "" {
		keep = v.store + "/copy" + strconv.Itoa(v.copies)
		v.copies++
	}
	for _, d := range []string{keep + "/upper", keep + "/work"} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			return -1, err
		}
	}
	return newFS("overlay", plainAttrs, "lowerdir="+m.Source, "upperdir="+keep+"/upper", "workdir="+keep+"/work", "userxattr")
}

// limitPIDs bounds the process numbers of our namespace.
func (v *view) limitPIDs(most int) error {
	fd, err := unix.Openat(v.base, "proc/sys/kernel/pid_max", unix.O_WRONLY|unix.O_CLOEXEC|unix.O_NOFOLLOW, 0)
	if err != nil {
		return fmt.Errorf("the limit of processes: %w", err)
	}
	defer unix.Close(fd)
	if _, err := unix.Write(fd, []byte(strconv.Itoa(most))); err != nil {
		return fmt.Errorf("the limit of processes: %w", err)
	}
	return nil
}

// lock makes one mount of the new tree read-only.
func (v *view) lock(rel string) error {
	return unix.MountSetattr(v.base, rel, unix.AT_EMPTY_PATH|unix.AT_SYMLINK_NOFOLLOW, &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY})
}

// enter makes the new tree the root and lets go of all else.
func (v *view) enter() error {
	if err := unix.Fchdir(v.base); err != nil {
		return err
	}
	if err := unix.PivotRoot(".", "."); err != nil {
		return fmt.Errorf("changing the root: %w", err)
	}
	// The old root lies on top of the new one now.
	if err := unix.Unmount(".", unix.MNT_DETACH); err != nil {
		return fmt.Errorf("leaving the old root: %w", err)
	}
	unix.Close(v.base)
	return os.Chdir("/")
}
