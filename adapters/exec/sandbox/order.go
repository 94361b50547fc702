package sandbox

// marker is how our binary knows that it was started as the helper.
const marker = "berth-sandbox-helper"

// probeMarker is the name under which our binary runs as the probe.
const probeMarker = "berth-sandbox-probe"

// IsHelper reports whether args, a whole command line, ask for Main.
func IsHelper(args []string) bool {
	return len(args) > 0 && (args[0] == marker || args[0] == probeMarker || args[len(args)-1] == marker)
}

// order is what the host tells the helper. It travels in memory, never in
// arguments or the environment, which others can see.
type order struct {
	Namespaces bool // we are the first process of new namespaces
	Nested     bool // somebody else built the view: only restrict and run
	UID, GID   int  // ours, outside
	Mounts     []mount
	Argv, Env  []string
	Dir        string
	DirID      identity // what Dir must be
	Self       bool     // run the probe of our own binary with Argv
	Restrict   restrict
	Limits     Limits
	PIDMax     int // limit of process numbers in our PID namespace; 0 leaves it
	After      *after
}

// after is what the helper needs to take protected names back when the host
// has ended before the command did.
type after struct {
	Protected []string
	Approved  []string
	Roots     []afterRoot
}

// afterRoot is what was protected in a root before the command.
type afterRoot struct {
	Root  string
	Known []identity
}

// identity is what makes a file the same file. The zero value is unknown.
type identity struct{ Dev, Ino uint64 }

// restrict says what the command's process gives up before it starts.
type restrict struct {
	Caps   bool     // all capabilities
	ABI    int      // version of Landlock to use; 0 does without
	Read   []string // what Landlock lets be read and run
	Write  []string // what it lets be written
	Device []string // where device files may be used
	// IDs are what paths among these must be, if they lie here.
	IDs    map[string]identity
	TCP    bool // Landlock also denies TCP
	Filter bool // the list of denied system calls
	Inet   bool // the filter also denies internet sockets
	Unix   bool // and local sockets, but for pairs
}

// mount is one step in building what the command sees. Steps are done in
// order.
type mount struct {
	Kind mountKind
	Path string // where it is seen
	// Source is what is seen there: a path outside, the text of a link, the
	// lower layer of a copy.
	Source   string
	ReadOnly bool
	Optional bool     // what is missing or cannot be done is left out
	Replace  bool     // whatever lies at Path is a thing of earlier commands and may go
	ID       identity // what Source must be, if known
	Mode     uint32
	Size     int64  // of a tmpfs, in bytes
	Keep     string // where a copy keeps its changes; "" forgets them
}

type mountKind string

const (
	mountEmpty mountKind = "empty" // a new, empty tmpfs
	mountBind  mountKind = "bind"
	mountCopy  mountKind = "copy" // an overlay: changes go elsewhere
	mountLink  mountKind = "link"
	mountCover mountKind = "cover" // hides what is there, if it is there
	mountGuard mountKind = "guard" // makes what is there read-only and immovable
	mountPin   mountKind = "pin"   // makes what is there immovable
	mountProc  mountKind = "proc"
	mountDev   mountKind = "dev"
)

// report is what the helper tells the host when it ends.
type report struct {
	Failed  string // why the command was not started; "" when it was
	Missing bool   // because there is no such program
	Denied  bool   // because of what the spec named
	Code    int
	Signal  int
	Left    int // processes that it left behind
}
