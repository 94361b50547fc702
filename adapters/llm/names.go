package llm

import (
	"encoding/base64"
	"strconv"
	"strings"

	"github.com/berth-dev/berth/core/domain"
)

// CallNames gives every call of a request an id that is its own: the
// provider's where it is one, else ours.
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
	if name == "" || n.used[name] {
		name = string(c.ID)
	}
	for name == "" || n.used[name] {
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
	if c.ProviderID != "" {
		return c.ProviderID
	}
	return string(c.ID)
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
