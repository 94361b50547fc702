package domain

import (
	"errors"
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
// Streamed, AssistantSaid, CallBegan, PermissionGiven, CallFinished, PlanSet, TitleSet,
// ClientEvent, Compacted, TurnFinished, Unknown.
//
//sumtype:decl
type Record interface{ isRecord() }

// UserSaid opens a turn. It is durable before the first tool of the turn
// starts and before the turn is answered.
type UserSaid struct {
	Turn   TurnID
	ID     MessageID
	Blocks []Block // blobs already replaced by Attachment
	// Command is the slash command that the host answers itself; "" when the
	// model does. A model is told nothing of such a turn.
	Command string
}

// AssistantSaid is one model reply, or what the host answered to a command.
type AssistantSaid struct {
	Turn   TurnID
	Agent  string // alias of the agent it was said for, whose money it cost
	Model  ModelRef
	Parts  []MessagePart // in the order they were streamed
	Calls  []ModelCall
	Opaque *Opaque
	Finish FinishReason // "" when the reply was not complete
	// Truncated marks the partial text of a reply that was cancelled, cut or
	// failed. Calls is then empty.
	Truncated bool
	Usage     Usage
	Cost      *MicroUSD // of the request; nil when unknown
	Window    int64     // the model's context window then; 0 when unknown
	Estimate  int64     // what Usage.Input was guessed to become, uncorrected; 0 when it was not
}

// Streamed is what a client was shown of a reply since the last Streamed of it.
// It counts until the reply itself is journalled, or the turn's end; so a
// process that dies in the middle of a reply leaves what its user has read.
type Streamed struct {
	Turn  TurnID
	Agent string
	Model ModelRef
	Parts []MessagePart // in order; a part goes on where the last one with its id ended
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
	Text        string // what the tool says to the model
	// Limit is how many bytes of Text the model is shown; 0 is all. It is set
	// for a result that would take too much of the model's window.
	Limit     int64
	Content   []CallContent
	Locations []Location
	RawOutput []byte
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

// Compacted makes what the model is shown of the journal before it shorter.
// Nothing is taken from the journal itself, so a client that loads the session
// still sees all of it. Positions are those of records: 0 changes nothing.
type Compacted struct {
	Turn TurnID
	ID   CompactionID
	// Agent and Model are who was asked for the summary; zero when nobody was.
	Agent string
	Model ModelRef
	// Trimmed is up to where outputs of tools are shown shortened and without
	// media, and so are long prompts.
	Trimmed Seq
	// Through is up to where everything is left out, and Summary shown in its
	// place. The newest prompt always stays.
	Through Seq
	// Largest is how many bytes of any output of a tool are shown; 0 is all.
	Largest int64
	Summary string
	// Plain is why the model did not write the summary; nil when it did or
	// when there is none.
	Plain *Failure
	// Cancelled is set when it was given up; then it changes nothing.
	Cancelled bool
	// Before and After are the estimated tokens of the request; Window is the
	// model's context window then, 0 when unknown.
	Before, After, Window int64
	Usage                 Usage // of the request for the summary
	Cost                  *MicroUSD
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

// FailureOf is what is kept of an error: its code and the message meant for
// people; never the detail of an uncoded one.
func FailureOf(err error) *Failure {
	var e *Error
	if errors.As(err, &e) {
		return &Failure{Code: e.Code, Msg: e.Msg}
	}
	return &Failure{Code: Internal, Msg: "an internal error; the log has the details"}
}

// Unknown is a record of a kind this version does not know. It is kept as it
// is and takes part in nothing.
type Unknown struct {
	Kind    string
	Version int
	Payload []byte
}

func (UserSaid) isRecord()        {}
func (Streamed) isRecord()        {}
func (AssistantSaid) isRecord()   {}
func (CallBegan) isRecord()       {}
func (PermissionGiven) isRecord() {}
func (CallFinished) isRecord()    {}
func (PlanSet) isRecord()         {}
func (TitleSet) isRecord()        {}
func (ClientEvent) isRecord()     {}
func (Compacted) isRecord()       {}
func (TurnFinished) isRecord()    {}
func (Unknown) isRecord()         {}

// Text returns the answer in a reply: its parts without thoughts, joined.
func (r AssistantSaid) Text() string { return r.join(false) }

// join returns the text, or the thought; that of one part is not copied.
func (r AssistantSaid) join(thought bool) string {
	texts := make([]string, 0, 1)
	for _, p := range r.Parts {
		if p.Thought == thought {
			texts = append(texts, p.Text)
		}
	}
	return strings.Join(texts, "")
}

// Spending returns whose money a record cost and how much; 0 when nothing or
// nobody knows.
func Spending(r Record) (agent string, cost MicroUSD) {
	var c *MicroUSD
	switch r := r.(type) {
	case AssistantSaid:
		agent, c = r.Agent, r.Cost
	case Compacted:
		agent, c = r.Agent, r.Cost
	case UserSaid, Streamed, CallBegan, PermissionGiven, CallFinished, PlanSet, TitleSet, ClientEvent, TurnFinished, Unknown:
	}
	if c == nil || *c <= 0 || agent == "" {
		return "", 0
	}
	return agent, *c
}
