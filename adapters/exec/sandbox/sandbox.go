package sandbox

import (
	"context"
	"os"
	"os/exec"
	"slices"
	"syscall"

	"github.com/berth-dev/berth/core/domain"
)

// The modes a profile can ask for.
const (
	Auto       = "auto"       // the strongest that works
	None       = "none"       // the operator's choice to have no sandbox
	Namespaces = "namespaces" // own namespaces, Landlock and seccomp
	Bubblewrap = "bubblewrap" // the same by bwrap, 0.12.0 or later
	Landlock   = "landlock"   // Landlock and seccomp alone
	Seatbelt   = "seatbelt"   // sandbox-exec of macOS
)

// EnvMarker is the variable that every command finds in its environment; its
// value is the backend. It is a hint for our own command line, no proof.
const EnvMarker = "BERTH_SANDBOX"

// Config is what all commands of an agent have in common. Paths are absolute.
type Config struct {
	// Mode is one of the modes above; "" is Auto.
	Mode string
	// Helper runs our own binary in such a way that it ends up in Main; it
	// gets the marker as one more argument. Empty means the running image
	// itself, whatever became of its name since.
	Helper []string
	// Home is the home directory of the user, as commands know it. They find
	// a private one in its place.
	Home string
	// State is a directory of ours that keeps what commands write below Home
	// (caches of tool chains above all) for the next one of the same project,
	// by which the first root is meant. It must not be used by agents that
	// shall not meet. A .gitconfig in State/home is what the home of a project
	// begins with. Empty means that each command starts with an empty home.
	State string
	// Path is the PATH whose tool chains commands can use, as far as they lie
	// outside the directories of the system.
	Path string
	// Hidden are files and directories that no command sees, though they lie
	// in something it sees: forbidden paths, our own directories.
	Hidden []string
	// Protected are names that commands cannot change or make, at any depth of
	// the roots. A name that ends in a slash is a directory with all in it;
	// "a/b/" is a directory b in an a. What makes git run programs is known
	// here and need not be listed.
	Protected []string
	// Fold makes names equal that some file system takes for equal; nil
	// means lower case.
	Fold func(name string) string
}

// Limits of one command. Zero means none.
type Limits struct {
	Processes   int   // processes and threads in all; see Posture for who it cannot hold
	MemoryBytes int64 // data of each process, and the private /tmp
	FileBytes   int64 // size of each file written
	OpenFiles   int   // descriptors of each process
	CPUSeconds  int64 // processor time of each process
}

// Spec is one command. Paths are absolute and canonical.
type Spec struct {
	Argv []string // Argv[0] is the path of a program
	Dir  string   // working directory; in a root or in what was opened
	// DirFile is Dir, opened when the command was looked at; nil takes what
	// has the name by then. It may be closed after Command.
	DirFile *os.File
	Env     []string // the whole environment; nothing is inherited
	// Writable are the roots. They are looked up when the command starts, and
	// a root that was replaced by a link or by another directory since is an
	// error, not a way out.
	Writable []string
	// ReadOnly makes the roots and everything else read-only, but for a
	// private /tmp.
	ReadOnly bool
	// Readable and Extra are opened besides the roots, Extra for writing too:
	// what the policy allowed at level full. Of a path that does not exist
	// the nearest existing directory is opened.
	Readable, Extra []string
	// AllowProtected are protected paths that a person approved for this very
	// call, each with everything below it.
	AllowProtected []string
	// Network lets the command use the network of the host, and with it
	// whatever listens on its own addresses.
	Network bool
	Limits  Limits

	self   bool     // run the probe of our own binary in place of Argv
	hidden []string // hidden besides those of the configuration
}

// Result is how a command ended.
type Result struct {
	Code   int            // exit code; 128 plus the signal after one
	Signal syscall.Signal // the signal that ended it, or 0
	Left   int            // processes that it left behind and that were ended
	// Undone are protected paths that the command made and that were removed
	// again. They did not exist before.
	Undone []string
	// Kept is the directory that holds copies of what was undone, in case a
	// person made it meanwhile; "" when there is nothing.
	Kept string
}

// Sandbox confines commands. Its methods may be called at any time from any
// goroutine.
type Sandbox struct {
	cfg     Config
	breaks  breaks
	trying  chan struct{} // holds one token while the posture is being found
	tried   bool          // the posture is known and stays
	posture domain.Posture
	chosen  backend
	system  system
}

// breaks takes abilities of the machine away, for tests.
type breaks struct {
	namespaces bool
	landlock   bool
	seccomp    bool
	bwrap      string // the program to take for bwrap; "" finds it
}

// backend starts commands in one way.
type backend string

// New returns a sandbox; nothing is tried or started yet.
func New(cfg Config) *Sandbox {
	if cfg.Mode == "" {
		cfg.Mode = Auto
	}
	return &Sandbox{cfg: cfg, trying: make(chan struct{}, 1)}
}

// Posture says how commands are confined here. The first call tries it out,
// which takes a few process starts, unless an earlier process did and nothing
// changed since. Its context bounds that; the answer stays, save one that was
// cut short.
func (s *Sandbox) Posture(ctx context.Context) domain.Posture {
	select {
	case s.trying <- struct{}{}:
		defer func() { <-s.trying }()
	case <-ctx.Done():
		return none("it was not tried to the end: " + context.Cause(ctx).Error())
	}
	if s.tried {
		return s.posture
	}
	s.lookAround()
	dependsOn := s.dependsOn()
	if p, ok := s.recall(dependsOn); ok && p.Posture.Confined() {
		s.posture, s.chosen, s.tried = p.Posture, p.Backend, true
		return s.posture
	}
	posture, chosen := s.choose(ctx)
	if ctx.Err() != nil && posture.Word != domain.PostureOff {
		return none("it was not tried to the end: " + context.Cause(ctx).Error())
	}
	s.posture, s.chosen, s.tried = posture, chosen, true
	s.keep(proof{For: dependsOn, Posture: posture, Backend: chosen})
	return s.posture
}

// Known returns the posture, and whether it is known without trying: this
// process tried, an earlier one did and nothing changed since, or nothing is
// to be tried. It starts nothing and does not wait.
func (s *Sandbox) Known() (domain.Posture, bool) {
	select {
	case s.trying <- struct{}{}:
		defer func() { <-s.trying }()
	default:
		return domain.Posture{}, false
	}
	p := s.posture
	switch {
	case s.tried:
	case s.cfg.Mode == None:
		p, _ = s.choose(context.Background())
	default:
		s.lookAround()
		kept, ok := s.recall(s.dependsOn())
		if !ok {
			return domain.Posture{}, false
		}
		p = kept.Posture
	}
	p.Lacks = slices.Clone(p.Lacks)
	return p, true
}

// none is the posture where nothing confines.
func none(reason string) domain.Posture {
	return domain.Posture{Word: domain.PostureNone, Lacks: everything(), Reason: reason}
}

// Command prepares a command; Process.Start starts it. The error is coded
// Unavailable when the sandbox that was asked for does not work here, Denied
// when a path must not be opened, InvalidArgument when spec is wrong. The
// process must be closed, started or not.
func (s *Sandbox) Command(spec Spec) (*Process, error) {
	p := s.Posture(context.Background())
	if p.Word == domain.PostureNone {
		return nil, &domain.Error{Code: domain.Unavailable, Msg: "commands cannot be confined here: " + p.Reason}
	}
	if err := spec.check(); err != nil {
		return nil, err
	}
	return s.prepare(s.chosen, spec)
}

// Process is a command that was prepared. It is used by one goroutine; Signal
// and Kill may be called from any once Start returned.
type Process struct {
	// Cmd is the helper that starts the command. Set its standard streams and
	// WaitDelay before Start; leave the rest alone. Its process is the one to
	// measure and to kill: when it ends, all that the command started ends.
	Cmd *exec.Cmd
	state
}
