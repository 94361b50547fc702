package domain

import "time"

// ModelRequest is one call of a language model.
type ModelRequest struct {
	Session         SessionID // for providers that cache by conversation
	Model           ModelRef
	System          string
	Messages        []ModelMessage
	Tools           []ToolSpec
	MaxOutputTokens int // 0 leaves it to the provider
	// Thoughts is how much the model should reason; "" leaves it to the
	// provider. A model that cannot be told takes no notice.
	Thoughts ThoughtLevel
}

// ThoughtLevel is how much a model should reason before it answers.
type ThoughtLevel string

// The thought levels, each more than the one before.
const (
	ThoughtsOff     ThoughtLevel = "off"
	ThoughtsMinimal ThoughtLevel = "minimal"
	ThoughtsLow     ThoughtLevel = "low"
	ThoughtsMedium  ThoughtLevel = "medium"
	ThoughtsHigh    ThoughtLevel = "high"
	ThoughtsXHigh   ThoughtLevel = "xhigh"
)

// ModelMessage is one message of the conversation as a model sees it.
// Members: UserInput, ModelReply, ToolOutput.
//
//sumtype:decl
type ModelMessage interface{ isModelMessage() }

// UserInput is what the user said. Blocks are Text, Image, Audio, or Resource
// and Attachment already turned into text by the request builder.
type UserInput struct{ Blocks []Block }

// ModelReply is what a model said before.
type ModelReply struct {
	Text    string
	Thought string
	Calls   []ModelCall
	Opaque  *Opaque // given back only to the provider that made it
}

// ToolOutput answers one call of the reply before it.
type ToolOutput struct {
	Call   ModelCall
	Text   string
	Failed bool
	// Media is what the model is shown besides the text: Image or Audio, in a
	// Conversation as the Attachment it was read from. A provider whose tool
	// results hold text alone gets it directly behind them.
	Media []Block
}

func (UserInput) isModelMessage()  {}
func (ModelReply) isModelMessage() {}
func (ToolOutput) isModelMessage() {}

// ModelCall is a tool call as a model asked for it.
type ModelCall struct {
	ID         CallID // ours, set by the engine; empty in events of a Model
	ProviderID string // the provider's; may be empty or repeat
	Name       string
	Args       []byte // one JSON object; "{}" when the provider sent nothing
}

// Opaque is data of a provider that must be given back unchanged with the
// message it came with (signatures, encrypted reasoning).
type Opaque struct {
	Provider string
	Data     []byte
}

// ModelEvent is one event of a streamed reply. Members: TextDelta,
// ThoughtDelta, CallRequested, UsageReported, Retrying, FellBack, Finish.
//
//sumtype:decl
type ModelEvent interface{ isModelEvent() }

// TextDelta is the next piece of the answer; whole UTF-8 characters, never
// empty.
type TextDelta struct{ Text string }

// ThoughtDelta is the next piece of reasoning.
type ThoughtDelta struct{ Text string }

// CallRequested is one complete tool call: its arguments were received whole
// and parse as a JSON object. It comes only from a reply that is complete.
type CallRequested struct{ Call ModelCall }

// UsageReported carries the provider's own counts; a later one replaces an
// earlier one.
type UsageReported struct {
	Usage Usage
	// Cost is what the provider says that the request cost; nil when it does
	// not say, and then it is worked out from prices.
	Cost *MicroUSD
}

// Retrying tells that an attempt failed before its first event and another
// follows after Wait.
type Retrying struct {
	Attempt int
	Wait    time.Duration
	Reason  string
}

// FellBack tells that From cannot answer now and that To is asked in its
// place. It comes only before anything of a reply; what follows is To's, its
// usage and its opaque data too.
type FellBack struct {
	From   ModelRef
	To     ModelInfo
	Reason string // why From cannot answer
}

// Finish ends a complete reply. It is the last event and comes exactly once.
type Finish struct {
	Reason FinishReason
	Opaque *Opaque
}

func (TextDelta) isModelEvent()     {}
func (ThoughtDelta) isModelEvent()  {}
func (CallRequested) isModelEvent() {}
func (UsageReported) isModelEvent() {}
func (Retrying) isModelEvent()      {}
func (FellBack) isModelEvent()      {}
func (Finish) isModelEvent()        {}

// FinishReason is how a provider ended a complete reply.
type FinishReason string

// The finish reasons.
const (
	FinishStop    FinishReason = "stop"    // nothing more to say
	FinishCalls   FinishReason = "calls"   // the calls are to be run
	FinishLength  FinishReason = "length"  // cut at the token limit; no call of it may run
	FinishRefusal FinishReason = "refusal" // the model or a content filter refused
)

// Usage is what a provider counted for one request, in tokens.
type Usage struct {
	Input       int64 // all of the prompt, cached parts included
	Output      int64 // all that was generated, reasoning included
	Thought     int64 // part of Output
	CachedRead  int64 // part of Input
	CachedWrite int64 // part of Input
}

// Context returns how many tokens the conversation now takes.
func (u Usage) Context() int64 { return u.Input + u.Output }

// Plus adds two counts.
func (u Usage) Plus(v Usage) Usage {
	return Usage{
		Input: u.Input + v.Input, Output: u.Output + v.Output, Thought: u.Thought + v.Thought,
		CachedRead: u.CachedRead + v.CachedRead, CachedWrite: u.CachedWrite + v.CachedWrite,
	}
}

// ModelInfo describes a model.
type ModelInfo struct {
	Ref           ModelRef
	Title         string
	ContextWindow int64 // tokens; 0 when unknown
	MaxOutput     int64 // tokens; 0 when unknown
	Images        bool
	Audio         bool
	Tools         bool
	Thoughts      bool // it can reason, and ThoughtLevel has an effect
	Offline       bool // not a language model; needs no key and no network
	// The prices are US dollars per million tokens; 0 when unknown. A cache
	// price of 0 means that cached tokens cost as much as others.
	InputPrice      float64
	OutputPrice     float64
	CacheReadPrice  float64
	CacheWritePrice float64
}
