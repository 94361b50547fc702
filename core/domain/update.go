package domain

import "time"

// Update is one thing a client is told about a session, in order. Members:
// UserMessage, AgentText, AgentThought, CallOpened, CallChanged, PlanChanged,
// UsageChanged, InfoChanged, CommandsChanged, CompactionChanged,
// CompactionText, Notice, QueueChanged, TurnStarted, TurnEnded.
//
//sumtype:decl
type Update interface{ isUpdate() }

// UserMessage is one block of what the user sent. It is replayed, and told to
// observers: the client that sent it shows its own prompt.
type UserMessage struct {
	ID    MessageID
	Block Block
}

// AgentText is the next piece of an answer.
type AgentText struct {
	ID   MessageID
	Text string
}

// AgentThought is the next piece of the model's reasoning.
type AgentThought struct {
	ID   MessageID
	Text string
}

// CallOpened announces a tool call, once, before anything else names it.
type CallOpened struct {
	ID        CallID
	Name      string
	Title     string
	Kind      ToolKind
	Status    CallStatus
	Content   []CallContent
	Locations []Location
	RawInput  []byte // JSON; shortened when long
}

// CallChanged changes an announced call. Zero fields leave things as they
// are; Content and Locations replace the whole list when not nil.
type CallChanged struct {
	ID        CallID
	Status    CallStatus
	Title     string
	Content   []CallContent
	Locations []Location
	RawOutput []byte // JSON
}

// PlanChanged replaces the agent's plan.
type PlanChanged struct{ Entries []PlanEntry }

// UsageChanged tells how full the context is and what the session has cost.
type UsageChanged struct {
	Used int64 // tokens now in context
	Size int64 // the model's window in tokens; 0 when unknown (then it is not sent)
	// Cost is cumulative for the session; nil when prices are unknown.
	Cost *Cost
}

// Cost is an amount of money.
type Cost struct {
	Amount   float64
	Currency string // ISO 4217
}

// InfoChanged changes what lists show about the session.
type InfoChanged struct {
	Title     string // "" leaves it
	UpdatedAt time.Time
}

// CommandsChanged replaces the list of slash commands.
type CommandsChanged struct{ Commands []Command }

// Command is one slash command, without the slash.
type Command struct {
	Name        string
	Description string
	Hint        string // what to type after it; "" when it takes nothing
}

// CompactionChanged tells of a compaction of the conversation. The first one
// gives its place in the history; the last one has a final status.
type CompactionChanged struct {
	ID      CompactionID
	Status  CompactionStatus
	Summary string // replaces what was shown of it; only with CompactionDone
	Error   string // for people; only with CompactionFailed
}

// CompactionText is the next piece of a summary that is being written.
type CompactionText struct {
	ID   CompactionID
	Text string
}

// CompactionStatus is where a compaction stands.
type CompactionStatus string

// The compaction statuses, as ACP v1 names them.
const (
	CompactionRunning   CompactionStatus = "in_progress"
	CompactionDone      CompactionStatus = "completed"
	CompactionFailed    CompactionStatus = "failed"
	CompactionCancelled CompactionStatus = "cancelled"
)

// Final reports whether no other status may follow.
func (s CompactionStatus) Final() bool { return s != CompactionRunning }

// Notice is a message from the host, not from the model. It is never
// replayed.
type Notice struct {
	Severity string // info, warning, error
	Title    string
	Detail   string
	Reason   NoticeReason // "" where a program has nothing to do about it
}

// NoticeReason tells programs what a notice tells people.
type NoticeReason string

// The reasons of notices.
const (
	SessionTaken    NoticeReason = "SESSION_TAKEN"    // the client owns the session no more
	ObserverDropped NoticeReason = "OBSERVER_DROPPED" // the client observes the session no more
)

// QueueChanged tells an observer which turns are admitted. It is never replayed.
type QueueChanged struct {
	Running TurnID // "" when none is
	Queued  []QueuedTurn
	Ended   *TurnEnded // the turn whose end changed this; nil when none did
}

// TurnStarted and TurnEnded frame a turn for protocols that report it by
// updates. ACP v1 does not show them while a turn goes on.
type TurnStarted struct{ Turn TurnID }

// TurnEnded is the last update of its turn. A history has it of turns that did
// not end by themselves.
type TurnEnded struct {
	Turn TurnID
	Stop Stop   // 0 when it failed or was interrupted
	Why  string // for people, where Stop is 0 and no answer to the prompt says it
	// Past is set in a history: who reads that has no answer to the prompt.
	Past bool
}

func (UserMessage) isUpdate()       {}
func (AgentText) isUpdate()         {}
func (AgentThought) isUpdate()      {}
func (CallOpened) isUpdate()        {}
func (CallChanged) isUpdate()       {}
func (PlanChanged) isUpdate()       {}
func (UsageChanged) isUpdate()      {}
func (InfoChanged) isUpdate()       {}
func (CommandsChanged) isUpdate()   {}
func (CompactionChanged) isUpdate() {}
func (CompactionText) isUpdate()    {}
func (Notice) isUpdate()            {}
func (QueueChanged) isUpdate()      {}
func (TurnStarted) isUpdate()       {}
func (TurnEnded) isUpdate()         {}
