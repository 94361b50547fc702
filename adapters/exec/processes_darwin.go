package exec

import (
	"os"

	"golang.org/x/sys/unix"
)

// stateZombie is SZOMB of the system's process states.
const stateZombie = 5

// processes returns the processes of the system.
func processes() []proc {
	all, err := unix.SysctlKinfoProcSlice("kern.proc.all")
	if err != nil {
		return nil
	}
	list := make([]proc, 0, len(all))
	for i := range all {
		pid := int(all[i].Proc.P_pid)
		session, _ := unix.Getsid(pid) // 0 when it is gone
		list = append(list, proc{
			pid: pid, parent: int(all[i].Eproc.Ppid), group: int(all[i].Eproc.Pgid), session: session,
			dead: all[i].Proc.P_stat == stateZombie,
		})
	}
	return list
}

const orphansAdopted = false

// adoptOrphans cannot be done here: what leaves its parents is found by its
// session and its group alone.
func adoptOrphans() {}

// closeOnExec has nothing to do: a Go program starts others with the
// descriptors it names, and what it inherited itself is closed by range
// elsewhere only.
func closeOnExec(int) {}

func limitMemory(int, uint64) {}

func widen(*os.File) {}
