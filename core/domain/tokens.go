package domain

// Estimates are in tokens of four bytes; a Gauge corrects them by what a
// provider counted before.
const (
	bytesPerToken = 4
	imageTokens   = 1500
	audioTokens   = 3000
	// messageTokens is what a message takes besides its content.
	messageTokens = 4
)

// Estimate returns about how many tokens a request takes, uncorrected. It
// looks at lengths alone, once.
func (r ModelRequest) Estimate() int64 {
	return r.EstimateFixed() + EstimateMessages(r.Messages)
}

// EstimateFixed is the part of Estimate that is not the conversation:
// instructions and tools.
func (r ModelRequest) EstimateFixed() int64 {
	size := len(r.System)
	for _, t := range r.Tools {
		size += len(t.Name) + len(t.Description) + len(t.Schema) + messageTokens*bytesPerToken
	}
	return int64(size / bytesPerToken)
}

// EstimateMessages is Estimate for a part of a conversation.
func EstimateMessages(list []ModelMessage) int64 {
	var sum int64
	for _, m := range list {
		sum += estimate(m)
	}
	return sum
}

// EstimateBlocks is Estimate for a prompt.
func EstimateBlocks(blocks []Block) int64 {
	var sum int64
	for _, b := range blocks {
		sum += estimateBlock(b)
	}
	return sum
}

func estimate(m ModelMessage) int64 {
	switch m := m.(type) {
	case UserInput:
		return messageTokens + EstimateBlocks(m.Blocks)
	case ModelReply:
		size := len(m.Text) + len(m.Thought)
		for _, c := range m.Calls {
			size += len(c.Name) + len(c.Args) + messageTokens*bytesPerToken
		}
		if m.Opaque != nil { // most of it repeats the thought
			size = max(size, len(m.Text)+len(m.Opaque.Data))
		}
		return messageTokens + int64(size/bytesPerToken)
	case ToolOutput:
		return messageTokens + int64(len(m.Text)/bytesPerToken) + EstimateBlocks(m.Media)
	}
	return 0
}

func estimateBlock(b Block) int64 {
	switch b := b.(type) {
	case Text:
		return int64(len(b.Text) / bytesPerToken)
	case Image:
		return imageTokens
	case Audio:
		return audioTokens
	case Attachment:
		if m, ok := b.Media(nil); ok {
			return estimateBlock(m)
		}
		return int64(len(blockText(b)) / bytesPerToken)
	case Resource:
		return int64((len(b.Text) + len(b.URI) + len(b.MIME) + 40) / bytesPerToken)
	case Link:
		return int64((len(b.Name) + len(b.URI) + 10) / bytesPerToken)
	}
	return 0
}

// Gauge is how a model's own counts relate to estimates: tokens for each
// estimated one. The zero value corrects nothing.
type Gauge float64

// The bounds of a Gauge: beyond them a provider counts something else, such as
// only what it had not cached.
const (
	leastGauge Gauge = 0.75
	mostGauge  Gauge = 4
)

// Learn returns the gauge after a request that was estimated at guess tokens
// and took took. The newest request counts half.
func (g Gauge) Learn(guess, took int64) Gauge {
	if guess <= 0 || took <= 0 {
		return g
	}
	seen := min(max(Gauge(took)/Gauge(guess), leastGauge), mostGauge)
	if g == 0 {
		return seen
	}
	return (g + seen) / 2
}

// Tokens returns the tokens of an estimate.
func (g Gauge) Tokens(estimate int64) int64 {
	if g == 0 {
		return estimate
	}
	return int64(float64(estimate) * float64(g))
}

// Estimate is the inverse of Tokens.
func (g Gauge) Estimate(tokens int64) int64 {
	if g == 0 {
		return tokens
	}
	return int64(float64(tokens) / float64(g))
}

// Budget is how a model's window is used, in tokens. The zero value is that of
// a window nobody knows.
type Budget struct {
	Window int64
	Reply  int64 // kept free for the reply
}

// usualReply is kept for a reply whose limit nobody knows.
const usualReply = 8192

// Budget divides the model's window. maxOutput is the agent's limit of a
// reply, 0 for none. A reply is never left more than a quarter.
func (i ModelInfo) Budget(maxOutput int) Budget {
	if i.ContextWindow <= 0 {
		return Budget{}
	}
	reply := int64(maxOutput)
	if reply <= 0 || i.MaxOutput > 0 && reply > i.MaxOutput {
		reply = i.MaxOutput
	}
	if reply <= 0 {
		reply = usualReply
	}
	return Budget{Window: i.ContextWindow, Reply: min(reply, i.ContextWindow/4)}
}

// Known reports whether there is a window to keep to.
func (b Budget) Known() bool { return b.Window > 0 }

// Room is what a request may take at most.
func (b Budget) Room() int64 { return b.Window - b.Reply }

// Full is from where on a conversation is compacted.
func (b Budget) Full() int64 { return b.Room() / 10 * 8 }

// Goal is what a compaction aims at, so that the next one is not due at once.
func (b Budget) Goal() int64 { return b.Room() / 2 }

// LargestResult is how many bytes of one result a model is shown: what a
// quarter of the room is estimated to hold. 0 is no limit.
func (b Budget) LargestResult() int64 {
	if !b.Known() {
		return 0
	}
	return max(b.Room()/4*bytesPerToken, leastResult)
}

// leastResult is what is left of any result, in bytes.
const leastResult = 1024
