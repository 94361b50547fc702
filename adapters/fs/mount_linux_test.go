package fs

import "golang.org/x/sys/unix"

// mountScratch mounts an empty file system.
func mountScratch(path string) error { return unix.Mount("scratch", path, "tmpfs", 0, "size=1m") }
