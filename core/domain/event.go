package domain

import "time"

// Event is something an operator may want to see or count. Members:
// TurnBegan, TurnDone, StepDone, CallDone, PermissionDone, Trouble,
// SessionOpened, SessionReleased, Escalated, Noted, PeerConnected, PeerGone,
// PeerRefused.
//
//sumtype:decl
type Event interface{ isEvent() }

// Events are facts about what happened, not what was said. The fields marked
// "said" are the exception: they are for traces whose operator asked for them,
// and no log, metric or other observer may pass them on.

// TurnBegan is observed when a turn's task starts.
type TurnBegan struct {
	Session SessionID
	Turn    TurnID
	Trace   Trace   // what the client sent with the prompt; zero when nothing
	Prompt  []Block // said
}

// TurnDone is observed when a turn has ended.
type TurnDone struct {
	Session  SessionID
	Turn     TurnID
	Stop     Stop // 0 when Err is set
	Cause    error
	Err      error
	Duration time.Duration
	Usage    Usage
	Requests int // model requests made
	Calls    int // tool calls made

	Agent     string        // "" when there is none
	Waited    time.Duration // part of Duration: behind other turns of the session
	FirstText time.Duration // from the start to the first text; 0 when there was none
	Text      string        // said: the outcome's
}

// StepDone is observed when one model reply has ended.
type StepDone struct {
	Session  SessionID
	Turn     TurnID
	Model    ModelRef // who answered
	Usage    Usage
	Duration time.Duration
	Err      error

	Agent     string
	Asked     ModelRef      // who was asked; another than Model after a fallback
	Retries   int           // attempts that failed before one that answered or was the last
	Cost      *MicroUSD     // nil when unknown
	FirstText time.Duration // from the start to the first text; 0 when there was none
	Finish    FinishReason  // "" when the reply is not complete
	Summary   bool          // the reply is a compaction's summary
}

// CallDone is observed when a tool call has ended.
type CallDone struct {
	Session  SessionID
	Turn     TurnID
	Call     CallID
	Tool     string
	Status   CallStatus
	Duration time.Duration

	Unknown bool   // there is no such tool: Tool is what the model wrote
	Args    []byte // said: by the model, one JSON object
	Result  string // said: what the model is told
}

// PermissionDone is observed when a permission was decided.
type PermissionDone struct {
	Session  SessionID
	Turn     TurnID
	Call     CallID
	Tool     string
	Verdict  Verdict
	Asked    bool
	Outcome  Outcome
	Option   string
	Duration time.Duration
}

// SessionOpened and SessionReleased are observed when a session enters and
// leaves memory. How is "new", "load", "resume", "reset", "restore"; or "close",
// "stop", "idle", "disconnect", "delete", "shutdown".
type SessionOpened struct {
	Session SessionID
	How     string
}

// SessionReleased is the counterpart of SessionOpened.
type SessionReleased struct {
	Session SessionID
	How     string
}

// Trouble is something that went wrong and was dealt with: an update after
// its turn was sealed, a tool that outlived its turn, a panic.
type Trouble struct {
	Session SessionID
	Where   string // "turns: late update", ...
	Err     error
}

// Escalated is an agent that called for a human. Summary is the model's own
// text, made Visible.
type Escalated struct {
	Session SessionID
	Turn    TurnID
	Call    CallID
	Urgency string // low, normal, high
	Summary string
}

// Noted is something that an operator wants to read and nobody has to act on:
// what a reload changed, that the process finishes its turns to end.
type Noted struct {
	Session SessionID // "" when it concerns all
	What    string
}

// PeerConnected and PeerGone are observed when a gateway's connection begins
// and ends. Neither they nor PeerRefused hold a credential or a query.
type PeerConnected struct {
	Connection string // id
	Request    string // id of the request that opened it
	Remote     string // address
	Principal  string // whose token it was
	Transport  string // "websocket", "http"
	Protocol   string // sub-protocol agreed; "" for none
}

// PeerGone is the counterpart of PeerConnected.
type PeerGone struct {
	Connection string
	Transport  string
	Duration   time.Duration
	Err        error // why, unless the client ended it in an orderly way
}

// PeerRefused is a request that a gateway turned away.
type PeerRefused struct {
	Request string // id
	Remote  string // address
	Method  string
	Path    string
	Status  int // of the answer
	Why     string
}

func (TurnBegan) isEvent()       {}
func (TurnDone) isEvent()        {}
func (StepDone) isEvent()        {}
func (CallDone) isEvent()        {}
func (PermissionDone) isEvent()  {}
func (SessionOpened) isEvent()   {}
func (SessionReleased) isEvent() {}
func (Trouble) isEvent()         {}
func (Escalated) isEvent()       {}
func (Noted) isEvent()           {}
func (PeerConnected) isEvent()   {}
func (PeerGone) isEvent()        {}
func (PeerRefused) isEvent()     {}
