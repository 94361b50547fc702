package llm

import (
	"encoding/base64"
	"strconv"
	"strings"

	"github.com/berth-dev/berth/core/domain"
)

// CallNames gives every call of a request an id that is its own: the
// provider's where it is one that all servers take, else ours.
type CallNames struct {
	wire map[domain.CallID]string // by our id
	used map[string]bool
	made int
}

// NewCallNames returns names for one request.
func NewCallNames() *CallNames {
	return &CallNames{wire: make(map[domain.CallID]string), used: make(map[string]bool)}
}

// Add names a call of a reply.
func (n *CallNames) Add(c domain.ModelCall) string {
	name := c.ProviderID
	if !plainID(name) || n.used[name] {
		name = string(c.ID)
	}
	for !plainID(name) || n.used[name] {
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
	if plainID(c.ProviderID) {
		return c.ProviderID
	}
	return string(c.ID)
}

// maxID is the longest id of a call that OpenAI takes back, in bytes. Others
// make longer ones.
const maxID = 40

// plainID reports whether every server takes an id back, whoever made it.
func plainID(s string) bool { return s != "" && len(s) <= maxID && printable(s) }

// maxToolName is the longest name of a tool that all wires take, in bytes.
const maxToolName = 64

// ToolName is the name of a called tool as all wires take it. A model may have
// called what is no tool at all, such as "functions.read_file"; a server
// refuses every conversation that holds such a name.
func ToolName(s string) string {
	s = strings.Map(func(c rune) rune {
		if c == '_' || c == '-' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') {
			return c
		}
		return '_'
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
