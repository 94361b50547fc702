package domain

// ToolKind groups tools for display, as ACP v1 names them ("Tool kinds").
type ToolKind string

// The tool kinds.
const (
	KindRead       ToolKind = "read"
	KindEdit       ToolKind = "edit"
	KindDelete     ToolKind = "delete"
	KindMove       ToolKind = "move"
	KindSearch     ToolKind = "search"
	KindExecute    ToolKind = "execute"
	KindThink      ToolKind = "think"
	KindFetch      ToolKind = "fetch"
	KindSwitchMode ToolKind = "switch_mode"
	KindOther      ToolKind = "other"
)

// CallStatus is where a tool call stands. It only moves forward: pending,
// in progress, then one of the two final ones.
type CallStatus string

// The call statuses, as ACP v1 names them.
const (
	CallPending    CallStatus = "pending"
	CallInProgress CallStatus = "in_progress"
	CallCompleted  CallStatus = "completed"
	CallFailed     CallStatus = "failed"
)

// Final reports whether no other status may follow.
func (s CallStatus) Final() bool { return s == CallCompleted || s == CallFailed }

// ToolSpec describes a tool to the model.
type ToolSpec struct {
	Name        string   // stable, [a-z_][a-z0-9_]*, at most 64 bytes
	Description string   // what it does and when to use it, for the model
	Schema      []byte   // JSON Schema of the arguments, an object
	Kind        ToolKind // for display before a call is prepared
	// ReadOnly tools have no effects; calls of one reply that are all
	// read-only run in parallel.
	ReadOnly bool
}

// ToolCall is one call as the model asked for it.
type ToolCall struct {
	Session SessionID
	Turn    TurnID
	ID      CallID
	Name    string
	Args    []byte // one JSON object
}

// Location is a place in a file that a call concerns.
type Location struct {
	Path string // absolute
	Line int    // 1-based; 0 when the whole file is meant
}

// CallContent is shown inside a tool call. Members: ContentBlock, Diff,
// FileContent.
//
//sumtype:decl
type CallContent interface{ isCallContent() }

// ContentBlock shows ordinary content.
type ContentBlock struct{ Block Block }

// Diff shows one file's change. For a new file Created is true and OldText
// is empty; for a deleted one NewText is empty.
type Diff struct {
	Path    string // absolute
	OldText string
	NewText string
	Created bool
}

// FileContent shows what a file holds: a picture, or a file that is delivered
// to the client. What is kept of it names the file only; the bytes are read
// again when it is shown again.
type FileContent struct {
	File Attachment // of a delivery the copy in uploads, and its attachment: uri
	// Title is what a delivery is called; "" for a picture.
	Title string
	// Delivered tells a delivery from a picture.
	Delivered bool
	// Data are the bytes that File.SHA256 speaks of, on their way to a client.
	// Stores leave them out.
	Data []byte
}

func (ContentBlock) isCallContent() {}
func (Diff) isCallContent()         {}
func (FileContent) isCallContent()  {}

// ToolPlan is what a prepared call is going to do, before it does anything.
type ToolPlan struct {
	Title     string // short and specific; the raw command for commands
	Kind      ToolKind
	Locations []Location
	Content   []CallContent // preview, such as the diff of an edit
	Access    Access        // what the permission decision is made on
}

// ToolProgress is an intermediate report of a running call. A nil Content
// leaves what is shown unchanged.
type ToolProgress struct {
	Title   string
	Content []CallContent
}

// ToolResult is how a call ended. A failure is a result too: Failed is set
// and Text tells the model what went wrong and what to do instead.
type ToolResult struct {
	Failed    bool
	Text      string        // what the model reads
	Content   []CallContent // what the client shows; nil means Text
	Locations []Location    // when they differ from the plan's
	RawOutput []byte        // JSON for the client, short; may be nil
	Plan      []PlanEntry   // set by update_plan: the session's new plan
	// Foreign is set when the result holds text from the network or from a
	// foreign server: what follows in the turn may have been steered by it.
	Foreign bool
}

// PlanEntry is one line of the agent's plan (ACP v1 "Agent plan").
type PlanEntry struct {
	Content  string
	Priority string // high, medium, low
	Status   string // pending, in_progress, completed
}
