package domain

// Level is how much an agent may do without asking.
type Level string

// The levels (risk profiles).
const (
	LevelReadOnly   Level = "read_only"
	LevelSupervised Level = "supervised"
	LevelFull       Level = "full"
)

// AccessClass says what kind of effect a call has.
type AccessClass int

// The access classes. The zero value is the most careful one that can still
// be allowed.
const (
	AccessUnknown AccessClass = iota // nothing is known about it: asks, but at level full
	AccessNone                       // no effect outside the session (update_plan)
	AccessRead                       // reads inside the roots, or a command proven to do no more
	AccessEdit                       // changes files inside the roots
	AccessRun                        // a command that changes things inside the roots, builds or tests, or whose program is unknown
	AccessRisk                       // a command whose effects nobody can bound: never remembered
	AccessFetch                      // reads from the network
)

// SimpleCommand is one simple command of a shell line.
type SimpleCommand struct {
	// Words is the argument list after quote removal, without wrappers such as
	// env and timeout, as far as it is known before the line runs; nil when
	// even the program is not. The first is the base name of a program of the
	// system, and a path as it is written for any other.
	Words []string
	// More is set when Words are only the first words of the command.
	More bool
	// Forms are further argument lists the same command has, such as those
	// with its wrappers. Rules that deny or ask look at these too.
	Forms [][]string
	Class AccessClass
	// Exact is set when exactly this argument list may be remembered.
	Exact bool
	// Prefix is how many leading words name program and subcommand where that
	// much may be remembered; 0 where it may not.
	Prefix int
}

// Access is what a prepared call would touch, as the tool's own resolver
// found it. The permission decision is made on it and on nothing else.
type Access struct {
	Class AccessClass
	Tool  string
	// Scope is what an "always" answer covers: for edits the canonical root
	// the file lies in, for commands the canonical directory they run in, for
	// fetches the host. Empty means it cannot be remembered.
	Scope string
	// Commands are the simple commands of a shell line, in order. An answer or
	// a rule about one of them says nothing about the others.
	Commands []SimpleCommand
	// Paths are the canonical paths concerned, for display and audit.
	Paths []string
	// Outside is set when a path lies outside every root of the session.
	Outside bool
	// Protected is set for names that are asked for each time and never
	// remembered, such as .git/config; full and read_only deny them.
	Protected bool
	// Network is set when the call reaches the network.
	Network bool
	// Foreign is set by the engine when text from the network or from a
	// foreign server entered the turn before this call.
	Foreign bool
	// Unconfined, when not empty, says why no sandbox would hold the command.
	Unconfined string
	// Forbidden, when not empty, says why policy denies this whatever anyone
	// answers. It is told to the model.
	Forbidden string
	// Reason tells the person why the question is asked, when it is not
	// plain from the call.
	Reason string
}

// OptionKind is what choosing an option means (ACP v1 "Permission options").
type OptionKind string

// The option kinds.
const (
	AllowOnce    OptionKind = "allow_once"
	AllowAlways  OptionKind = "allow_always"
	RejectOnce   OptionKind = "reject_once"
	RejectAlways OptionKind = "reject_always"
)

// Allows reports whether the kind lets the call run.
func (k OptionKind) Allows() bool { return k == AllowOnce || k == AllowAlways }

// PermissionOption is one answer offered to the person.
type PermissionOption struct {
	ID   string // "allow-once", "allow-always", "allow-always-prefix", "reject-once", "reject-always"
	Name string // says exactly what it covers
	Kind OptionKind
}

// PermissionRequest asks a client whether one call may run.
type PermissionRequest struct {
	Session SessionID
	Turn    TurnID
	Call    CallOpened // as announced, with the diff or command
	Reason  string     // why it is asked; may be empty
	Options []PermissionOption
}

// Outcome is how a permission request ended.
type Outcome int

// The outcomes. The zero value is a refusal.
const (
	Unanswered Outcome = iota // error, unknown option, disconnect: refused
	Selected                  // one of the offered options was chosen
	Withdrawn                 // the client answered "cancelled"
)

// Decision is a client's answer. Only Selected with an offered option of an
// allowing kind lets a call run.
type Decision struct {
	Outcome Outcome
	Option  string // the chosen option's id, when Selected
	Note    string // why there is no answer, for the model and the log
}
