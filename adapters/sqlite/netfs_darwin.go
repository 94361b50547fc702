package sqlite

import "golang.org/x/sys/unix"

// networkFileSystem returns the name of the network file system a directory
// lies on, "" for a local one. A write-ahead log needs memory shared by all
// who use it, which machines do not have.
func networkFileSystem(dir string) string {
	var st unix.Statfs_t
	if unix.Statfs(dir, &st) != nil || st.Flags&unix.MNT_LOCAL != 0 {
		return ""
	}
	return unix.ByteSliceToString(st.Fstypename[:])
}
