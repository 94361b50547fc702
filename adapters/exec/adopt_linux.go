package exec

import (
	"math"
	"os"

	"golang.org/x/sys/unix"
)

// orphansAdopted says that adoptOrphans does what it says.
const orphansAdopted = true

// adoptOrphans makes this process the parent of all descendants whose own
// parent ends.
func adoptOrphans() { _ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) }

// closeOnExec keeps descriptors from first on out of what is started, also
// those that came with this process.
func closeOnExec(first int) {
	_ = unix.CloseRange(uint(first), math.MaxInt32, unix.CLOSE_RANGE_CLOEXEC)
}

// limitMemory bounds the data of a process and of each it starts.
func limitMemory(pid int, bytes uint64) {
	_ = unix.Prlimit(pid, unix.RLIMIT_DATA, &unix.Rlimit{Cur: bytes, Max: bytes}, nil)
}

// widen lets a pipe hold more, so that the command and we take turns less
// often.
func widen(pipe *os.File) { _, _ = unix.FcntlInt(pipe.Fd(), unix.F_SETPIPE_SZ, 256<<10) }
