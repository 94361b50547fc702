package domain

// PostureWord says in a word how well commands are confined.
type PostureWord string

// The postures.
const (
	PostureStrong  PostureWord = "strong"  // namespaces, Landlock and seccomp
	PosturePartial PostureWord = "partial" // some of them; Lacks says what stays open
	PostureNone    PostureWord = "none"    // nothing works here: commands ask, or are refused
	PostureOff     PostureWord = "off"     // the operator chose to have no sandbox
)

// Posture is how the commands of an agent are confined, as trying it showed.
type Posture struct {
	Word    PostureWord
	Backend string   // namespaces, bubblewrap, landlock, seatbelt; "" when nothing confines
	Lacks   []string // what stays open, a few words each
	Reason  string   // why it is not stronger, and how to mend that; "" when strong
}

// Confined reports whether commands run in a sandbox.
func (p Posture) Confined() bool { return p.Word == PostureStrong || p.Word == PosturePartial }

// Where says on which side of the rules a path lies.
type Where int

// The sides. The zero value is the most careful one.
const (
	WhereForbidden Where = iota // never used, whatever anyone answers
	WhereOutside                // outside every root of the session
	WhereInside                 // in a root
)

// Place is what the path rules make of a path that a command names.
type Place struct {
	Path   string // canonical, links followed; as far as it exists
	Where  Where
	Why    string // for WhereForbidden: the reason, for the model
	Exists bool
	Dir    bool
	// Root is set when the path is a root of the session, the home directory,
	// or contains one of them: removing it removes that.
	Root bool
	// Protected is set when changing the path is asked for each time.
	Protected bool
}

// InstructionKind says who wrote an instruction, and how far it is trusted.
type InstructionKind string

// The kinds of instructions.
const (
	InstructionProject InstructionKind = "project" // AGENTS.md of a root: a hint from whoever wrote the project
	InstructionPersona InstructionKind = "persona" // IDENTITY.md and SOUL.md of the agent's workspace
	InstructionSkill   InstructionKind = "skill"   // one skill: its name and when to use it; the text is read on demand
)

// Instruction is one file that a session's model is told about.
type Instruction struct {
	Kind InstructionKind
	Path string // absolute
	Name string // of a skill
	Text string // what the model is told
	Cut  bool   // Text is only the beginning
}
