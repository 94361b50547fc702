package sqlite

import "golang.org/x/sys/unix"

// networkFileSystem returns the name of the network file system a directory
// lies on, "" for a local one. A write-ahead log needs memory shared by all
// who use it, which machines do not have.
func networkFileSystem(dir string) string {
	var st unix.Statfs_t
	if unix.Statfs(dir, &st) != nil {
		return ""
	}
	switch uint32(st.Type) {
	case unix.NFS_SUPER_MAGIC:
		return "NFS"
	case unix.SMB_SUPER_MAGIC, unix.SMB2_SUPER_MAGIC, unix.CIFS_SUPER_MAGIC:
		return "SMB"
	case unix.AFS_SUPER_MAGIC, unix.CODA_SUPER_MAGIC, unix.NCP_SUPER_MAGIC, unix.CEPH_SUPER_MAGIC:
		return "a cluster"
	}
	return ""
}
