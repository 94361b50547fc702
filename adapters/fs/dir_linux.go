package fs

import "golang.org/x/sys/unix"

// dirFlags open a directory only to go through it, which needs no right to
// list it.
const dirFlags = unix.O_PATH

// mount identifies the mount that the directory lies on; 0 when the system
// does not tell. A bind mount has a device in common with what is around it.
func (d *dir) mount() uint64 {
	var st unix.Statx_t
	if unix.Statx(d.fd, "", unix.AT_EMPTY_PATH, unix.STATX_MNT_ID, &st) != nil || st.Mask&unix.STATX_MNT_ID == 0 {
		return 0
	}
	return st.Mnt_id
}
