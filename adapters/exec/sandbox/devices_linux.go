package sandbox

import (
	"errors"
	"fmt"
	"strconv"

	"golang.org/x/sys/unix"
)

// devices makes a /dev of what every program may use.
func (v *view) devices(m *mount) error {
	sources := map[string]int{}
	for _, name := range []string{"null", "zero", "full", "random", "urandom", "tty"} {
		fd, err := v.device(name)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		sources[name] = fd
	}
	if err := v.mountFS(m, "tmpfs", unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NOEXEC, "mode=0755", "size=65536"); err != nil {
		return err
	}
	for name, tree := range sources {
		if err := v.attach(tree, &mount{Path: m.Path + "/" + name}); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		unix.Close(tree)
	}
	dir, err := v.directory(m.Path, false)
	if err != nil {
		return err
	}
	defer unix.Close(dir)
	for _, l := range [][2]string{
		{"fd", "/proc/self/fd"}, {"stdin", "/proc/self/fd/0"}, {"stdout", "/proc/self/fd/1"}, {"stderr", "/proc/self/fd/2"}, {"ptmx", "pts/ptmx"},
	} {
		if err := unix.Symlinkat(l[1], dir, l[0]); err != nil {
			return err
		}
	}
	if err := v.mountFS(&mount{Path: m.Path + "/shm"}, "tmpfs", plainAttrs, "mode=01777", "size="+strconv.FormatInt(m.Size, 10)); err != nil {
		return err
	}
	return v.mountFS(&mount{Path: m.Path + "/pts"}, "devpts", unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NOEXEC, "ptmxmode=0666", "mode=0620")
}

// device takes a device file of the machine; only such a mount may hold one.
func (v *view) device(name string) (int, error) {
	fd, err := unix.Open("/dev/"+name, unix.O_PATH|unix.O_CLOEXEC|unix.O_NOFOLLOW, 0)
	if err != nil {
		return -1, err
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return -1, err
	}
	if st.Mode&unix.S_IFMT != unix.S_IFCHR || unix.Major(st.Rdev) != 1 && name != "tty" {
		return -1, errors.New("it is no device of this name")
	}
	return cloneTree(fd, unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NOEXEC)
}
