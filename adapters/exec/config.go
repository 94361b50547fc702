package exec

import (
	"context"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/berth-dev/berth/core/domain"
	"github.com/berth-dev/berth/core/ports"
)

// Config is what the shell tools need to know about the host. Functions
// answer as of now and may be called from several goroutines.
type Config struct {
	// Shell runs the lines. It must be what Analyze parses.
	Shell Shell
	// Environ is the environment of this process, as os.Environ gives it.
	Environ []string
	// Hidden are names of variables that no profile can pass on, such as those
	// that hold the keys of providers. Names that look like secrets are never
	// passed anyway. nil hides none.
	Hidden func() []string
	// SystemPath are the directories that commands proven to read look for
	// programs in first, as SystemPath returns them.
	SystemPath []string
	// Profile returns the risk profile of an agent.
	Profile func(agent string) Profile
	// Analyze finds out what a line would do in dir, a canonical directory in
	// the session's roots. held says that what is judged a read will run where
	// it can neither write nor reach the network.
	Analyze func(ctx context.Context, s domain.Session, dir, line string, held bool) Analysis
	// Judge says what the path rules make of a path that a command in dir
	// names; dir "" is the session's working directory.
	Judge func(ctx context.Context, s domain.Session, dir, path string) domain.Place
	// Roots returns the roots of a session that can be used now, canonical.
	Roots func(domain.Session) []string
	// Confiner puts commands into the sandbox.
	Confiner Confiner
	Clock    ports.Clock
	IDs      ports.IDs

	settle, join time.Duration // 0: settle, joinLimit
}

// Shell is a program that runs command lines.
type Shell struct {
	Path string   // absolute; "" when there is none
	Args []string // before the line
	Bash bool     // it is bash; else a POSIX sh
}

// FindShell returns the shell of this system: bash if it is at one of its
// usual places, else sh. PATH is not asked: a project may have put something
// there.
func FindShell() Shell {
	for _, path := range []string{"/bin/bash", "/usr/bin/bash", "/usr/local/bin/bash", "/opt/homebrew/bin/bash", "/run/current-system/sw/bin/bash"} {
		if runnable(path) {
			return Shell{Path: path, Args: []string{"--noprofile", "--norc", "-c"}, Bash: true}
		}
	}
	if runnable("/bin/sh") {
		return Shell{Path: "/bin/sh", Args: []string{"-c"}}
	}
	return Shell{}
}

func (c *Config) hidden() []string {
	if c.Hidden == nil {
		return nil
	}
	return c.Hidden()
}

// Profile is the part of a risk profile that concerns commands.
type Profile struct {
	Level   domain.Level
	Network domain.NetworkMode
	// ShellEnv are the names of the variables that commands get; a * at the
	// end covers every name that begins so.
	ShellEnv []string
	// Sandbox is the backend that was asked for: "auto", "none" or a name. A
	// named one that is missing runs nothing.
	Sandbox string
	Limits  Limits
}

// Limits bound one command. Zero values are the defaults of CONTRACT
// section 8.
type Limits struct {
	OutputBytes int64         // of output that a model sees at most; 1 MiB
	Wall        time.Duration // when the call does not say; 2 minutes
	Processes   int           // at once; 256
	MemoryBytes int64         // 0: no limit
}

func (l Limits) withDefaults() Limits {
	if l.OutputBytes <= 0 {
		l.OutputBytes = 1 << 20
	}
	if l.Wall <= 0 {
		l.Wall = 2 * time.Minute
	}
	if l.Processes <= 0 {
		l.Processes = 256
	}
	return l
}

// Analysis is what is known about a line before it runs.
type Analysis struct {
	// Access is what the permission decision is made on. Its Tool, Scope,
	// Foreign and Unconfined are filled in later.
	Access domain.Access
	// Decisive is the worst simple command as it is written; "" when the line
	// is one command.
	Decisive string
	// Git is set when git is among the commands.
	Git bool
	// Reads and Writes are the canonical paths outside the roots that the line
	// names to read or to write, and the protected ones it writes.
	Reads, Writes []string
}

// Spec is a command that is to be confined. Paths are canonical.
type Spec struct {
	Session domain.Session
	Argv    []string // Argv[0] is the absolute path of a program
	Env     []string // all of it
	Dir     string   // in a root
	// DirFile is Dir, opened when the command was looked at. It stays open
	// until the command has started.
	DirFile *os.File
	// Confined is set when the command was decided on as one in a sandbox: it
	// is not run without.
	Confined bool
	// ReadOnly commands write nothing, not even in the roots.
	ReadOnly bool
	// Network is set when the command may reach the network.
	Network bool
	// Roots are the directories it may write to.
	Roots []string
	// Readable and Extra are opened besides the roots, Extra for writing too.
	Readable, Extra []string
	// AllowProtected are the protected names this command may change.
	AllowProtected []string
	Limits         Limits
}

// Confiner makes the processes of commands, in a sandbox where there is one.
type Confiner interface {
	ports.Sandbox
	// Command prepares a command; nothing is started. A domain.Error tells the
	// model why it cannot be run.
	Command(context.Context, Spec) (Process, error)
}

// Process is one command and all that it starts.
type Process interface {
	// Start starts the command with both of its streams going to out and
	// nothing to read.
	Start(out *os.File) error
	// Wait returns when the command itself has ended, and what it left behind
	// was told to end too. It is called once, after Start.
	Wait() (End, error)
	// Terminate asks the command and all that it started to end. Terminate
	// and Kill may be called from any goroutine between Start and Close.
	Terminate() error
	// Kill ends all of them, whatever they do about it; it does not wait.
	// Called again it tries harder.
	Kill() error
	// Close waits until nothing of the command lives, and gives up what it
	// took. It is called once, started or not, after Wait has returned. An
	// error says what is left.
	Close() error
}

// End is how a command ended.
type End struct {
	Code   int            // exit code; 128 plus the signal after one
	Signal syscall.Signal // the signal that ended the command itself, or 0
	Left   int            // processes that it left behind and that were ended
	Undone []string       // protected paths that it made and that were removed again
	Kept   string         // the directory with copies of those; "" when there is none
}

// within reports whether path is dir or lies below it; both are clean.
func within(path, dir string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && filepath.IsLocal(rel)
}

// runnable reports whether path is a program.
func runnable(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0
}
