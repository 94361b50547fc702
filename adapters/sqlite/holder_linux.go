package sqlite

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// writeLock is the byte of the shared-memory file that stands for the write
// lock (SQLite's WAL-mode file format, section 2.2.1).
const writeLock = 120

// lockHolder names the process that holds the write lock, in brackets and with
// a space in front; "" when that cannot be seen. The kernel is asked by its
// list of all locks: opening and closing the file here would give up SQLite's
// own locks on it.
func lockHolder(path string) string {
	info, err := os.Stat(path + "-shm")
	if err != nil {
		return ""
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return ""
	}
	locks, err := os.ReadFile("/proc/locks")
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(locks)) {
		if pid := writerIn(strings.Fields(line), stat.Ino); pid > 0 && pid != os.Getpid() {
			return describe(pid)
		}
	}
	return ""
}

// writerIn returns the process of a line of /proc/locks that is about the write
// lock in a file: "1: POSIX  ADVISORY  WRITE 4711 08:01:1234 120 120".
func writerIn(fields []string, inode uint64) int {
	if len(fields) != 8 || fields[1] != "POSIX" || fields[3] != "WRITE" ||
		fields[5][strings.LastIndexByte(fields[5], ':')+1:] != strconv.FormatUint(inode, 10) {
		return 0
	}
	first, err := strconv.ParseInt(fields[6], 10, 64)
	if err != nil || first > writeLock {
		return 0
	}
	if last, err := strconv.ParseInt(fields[7], 10, 64); fields[7] != "EOF" && (err != nil || last < writeLock) {
		return 0
	}
	pid, _ := strconv.Atoi(fields[4]) // 0 for a process that cannot be seen from here
	return pid
}

// describe says which process has a number, and whether it is stopped.
func describe(pid int) string {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return fmt.Sprintf(" (process %d)", pid)
	}
	// "4711 (name) T …", and the name may hold anything.
	text := string(stat)
	open, shut := strings.IndexByte(text, '('), strings.LastIndexByte(text, ')')
	if open < 0 || shut < open || shut+2 >= len(text) {
		return fmt.Sprintf(" (process %d)", pid)
	}
	state := ""
	if c := text[shut+2]; c == 'T' || c == 't' {
		state = ", which is stopped"
	}
	return fmt.Sprintf(" (process %d, %q%s)", pid, text[open+1:shut], state)
}
