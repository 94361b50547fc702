//go:build unix

package bootstrap

import (
	"os"
	"syscall"
)

// systemPath returns the directories of the system's programs which nobody
// but the system's owner can change.
func systemPath() []string {
	var dirs []string
	for _, dir := range []string{"/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"} {
		info, err := os.Stat(dir)
		if err != nil || !info.IsDir() || info.Mode().Perm()&0o022 != 0 {
			continue
		}
		if st, ok := info.Sys().(*syscall.Stat_t); ok && st.Uid == 0 {
			dirs = append(dirs, dir)
		}
	}
	return dirs
}
