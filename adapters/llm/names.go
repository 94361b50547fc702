package llm

import (
	"encoding/base64"
	"strconv"
	"strings"

	"github.com/berth-dev/berth/core/domain"
)

// CallNames gives every call of a request an id that is its own: the
// provider's where the wire takes it, else ours. A call keeps its id from
// request to request, or nothing of a conversation could be cached.
type CallNames struct {
	wire  map[domain.CallID]string // by our id
	used  map[string]bool
	made  int
	takes func(string) bool
}

// NewCallNames returns names for one request of a wire that takes any short id.
func NewCallNames() *CallNames { return newCallNames(shortID) }

// NewPlainCallNames returns names for one request of a wire that takes letters,
// digits, "_" and "-".
func NewPlainCallNames() *CallNames {
	return newCallNames(func(s string) bool { return s != "" && s == ToolName(s) })
}

func newCallNames(takes func(string) bool) *CallNames {
	return &CallNames{wire: make(map[domain.CallID]string), used: make(map[string]bool), takes: takes}
}

// Add names a call of a reply.
func (n *CallNames) Add(c domain.ModelCall) string {
	name := c.ProviderID
	if !n.takes(name) || n.used[name] {
		name = string(c.ID)
	}
	for !n.takes(name) || n.used[name] {
		n.made++
		name = "call_" + strconv.Itoa(n.made)
	}
	n.used[name] = true
	if c.ID != "" {
		n.wire[c.ID] = name
	}
	return name
}

// Of returns the name of the call an output answers.
func (n *CallNames) Of(c domain.ModelCall) string {
	if name, ok := n.wire[c.ID]; ok {
		return name
	}
	if n.takes(c.ProviderID) {
		return c.ProviderID
	}
	return string(c.ID)
}

// maxID is the longest id of a call that OpenAI takes back, in bytes. Others
// make longer ones.
const maxID = 40

// shortID reports whether every server takes an id back, whoever made it.
func shortID(s string) bool { return s != "" && len(s) <= maxID && printable(s) }

// maxToolName is the longest name of a tool that all wires take, in bytes.
const maxToolName = 64

// ToolName is the name of a called tool as all wires take it. A model may have
// called what is no tool at all, such as "functions.read_file"; a server
// refuses every conversation that holds such a name.
func ToolName(s string) string {
	s = strings.Map(func(c rune) rune {
		if !nameRune(c) {
			return '_'
		}
		return c
	}, s[:min(len(s), maxToolName)])
	if s == "" {
		return "unknown"
	}
	return s
}

// Base64 is how the wires carry bytes.
func Base64(data []byte) string { return base64.StdEncoding.EncodeToString(data) }

// DataURL returns bytes as the address that holds them.
func DataURL(mime string, data []byte) string { return "data:" + mime + ";base64," + Base64(data) }

// AudioFormat is the name that the OpenAI wires have for an audio type.
func AudioFormat(mime string) string {
	switch format := strings.TrimPrefix(strings.ToLower(mime), "audio/"); format {
	case "mpeg":
		return "mp3"
	case "x-wav", "wave", "vnd.wave":
		return "wav"
	default:
		return format
	}
}

// ToolTurns reports for each message whether it belongs to a turn that called
// tools: those are the turns whose thoughts servers want back that do not sign
// them.
func ToolTurns(msgs []domain.ModelMessage) []bool {
	in := make([]bool, len(msgs))
	start, called := 0, false
	mark := func(end int) {
		for i := start; called && i < end; i++ {
			in[i] = true
		}
		start, called = end, false
	}
	for i, msg := range msgs {
		switch msg := msg.(type) {
		case domain.UserInput:
			mark(i)
		case domain.ModelReply:
			called = called || len(msg.Calls) > 0
		case domain.ToolOutput:
		}
	}
	mark(len(msgs))
	return in
}
