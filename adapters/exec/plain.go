package exec

import (
	"context"
	"os"
	osexec "os/exec"
	"runtime"
	"strconv"

	"github.com/berth-dev/berth/core/domain"
)

// Plain is the Confiner that confines nothing, as for sandbox = "none". It
// still holds the processes of a command together, as far as the system lets
// it.
type Plain struct {
	// Helper is the path of a program that calls Supervise before anything
	// else: our own binary. It ends what a command leaves behind, and
	// everything when the host dies. "" does without: processes that left both
	// their parents and their session are then not found again.
	Helper string
}

var _ Confiner = Plain{}

// Posture says that there is no sandbox because nobody wants one.
func (Plain) Posture(context.Context, string) domain.Posture {
	return domain.Posture{Word: domain.PostureOff}
}

// Known says the same.
func (p Plain) Known(agent string) (domain.Posture, bool) {
	return p.Posture(context.Background(), agent), true
}

// Command returns the plain command.
func (p Plain) Command(_ context.Context, s Spec) (Process, error) {
	return newPlain(p.Helper, s)
}

// SelfHelper returns the path to run this program again by, also when its
// file was replaced since. The program must call Supervise first thing.
func SelfHelper() string {
	if _, err := os.Stat("/proc/self/exe"); err == nil {
		return "/proc/self/exe"
	}
	path, err := os.Executable()
	if err != nil {
		return ""
	}
	return path
}

// command is the plain command of a spec. Where the system lets us, it
// starts in the directory that is open, whatever has its name by now.
func command(s Spec) *osexec.Cmd {
	dir := s.Dir
	if s.DirFile != nil && runtime.GOOS == "linux" {
		dir = "/proc/self/fd/" + strconv.Itoa(int(s.DirFile.Fd()))
	}
	return &osexec.Cmd{Path: s.Argv[0], Args: s.Argv, Env: s.Env, Dir: dir}
}
