package domain

import (
	"strings"
	"time"
)

// Entry is a record in its place in a session's journal.
type Entry struct {
	Seq    Seq
	At     time.Time // UTC, microseconds; when it was appended
	Record Record
}

// Record is one step of a session, written down. Members: UserSaid,
// AssistantSaid, CallBegan, PermissionGiven, CallFinished, PlanSet, TitleSet,
// ClientEvent, TurnFinished, Unknown.
//
//sumtype:decl
type Record interface{ isRecord() }

// UserSaid opens a turn. It is durable before the first tool of the turn
// starts and before the turn is answered.
type UserSaid struct {
	Turn   TurnID
	ID     MessageID
	Blocks []Block // blobs already replaced by Attachment
}

// AssistantSaid is one model reply.
type AssistantSaid struct {
	Turn   TurnID
	Model  ModelRef
	Parts  []MessagePart // in the order they were streamed
	Calls  []ModelCall
	Opaque *Opaque
	Finish FinishReason // "" when the reply was not complete
	// Truncated marks the partial text of a reply that was cancelled, cut or
	// failed. Calls is then empty.
	Truncated bool
	Usage     Usage
	Window    int64 // the model's context window then; 0 when unknown
}

// MessagePart is a run of text or of thought in a reply.
type MessagePart struct {
	ID      MessageID
	Thought bool
	Text    string
}

// CallBegan is the intent of a tool call, durable before the call has any
// effect. Update is what the client was told.
type CallBegan struct {
	Turn   TurnID
	Call   ModelCall
	Update CallOpened
}

// PermissionGiven is the answer to one permission request, with the rules it
// made, if any.
type PermissionGiven struct {
	Turn    TurnID
	Call    CallID
	Outcome Outcome
	Option  string
	Rules   []Rule
}

// CallFinished is how a call ended. Interrupted marks a closing written
// later, because the process ended before the call's own result was stored:
// its effects are unknown.
type CallFinished struct {
	Turn        TurnID
	Call        CallID
	Failed      bool
	Interrupted bool
	Text        string // what the model reads
	Content     []CallContent
	Locations   []Location
	RawOutput   []byte
}

// PlanSet replaces the agent's plan.
type PlanSet struct {
	Turn    TurnID
	Entries []PlanEntry
}

// TitleSet names the session. A store applies it to the session's row in the
// same transaction.
type TitleSet struct{ Title string }

// ClientEvent is an inbound session/update or session/event.
type ClientEvent struct {
	Type     string
	Payload  []byte // JSON, as sent
	ForModel bool   // give it to the model with the next prompt
}

// TurnFinished closes a turn. A turn without it was interrupted.
type TurnFinished struct {
	Turn        TurnID
	Stop        Stop // 0 when Failure is set or Interrupted
	Failure     *Failure
	Interrupted bool
	Usage       Usage // of all requests of the turn
}

// Failure is an error as the journal keeps it.
type Failure struct {
	Code Code
	Msg  string
}

// Unknown is a record of a kind this version does not know. It is kept as it
// is and takes part in nothing.
type Unknown struct {
	Kind    string
	Version int
	Payload []byte
}

func (UserSaid) isRecord()        {}
func (AssistantSaid) isRecord()   {}
func (CallBegan) isRecord()       {}
func (PermissionGiven) isRecord() {}
func (CallFinished) isRecord()    {}
func (PlanSet) isRecord()         {}
func (TitleSet) isRecord()        {}
func (ClientEvent) isRecord()     {}
func (TurnFinished) isRecord()    {}
func (Unknown) isRecord()         {}

// Text returns the answer in a reply: its parts without thoughts, joined.
func (r AssistantSaid) Text() string {
	var b strings.Builder
	for _, p := range r.Parts {
		if !p.Thought {
			b.WriteString(p.Text)
		}
	}
	return b.String()
}
