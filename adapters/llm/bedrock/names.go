package bedrock

import (
	"strconv"
	"strings"

	"github.com/berth-dev/berth/core/domain"
)

// longestName is the longest id of a call and the longest name of a tool.
const longestName = 64

// plainName makes a name of the characters that ids and names may have.
func plainName(s string) string {
	clean := strings.Map(func(c rune) rune {
		if c == '_' || c == '-' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') {
			return c
		}
		return '_'
	}, s)
	return clean[:min(len(clean), longestName)]
}

// distinct returns a plain name of that beginning that is not used yet.
func distinct(name, otherwise string, used map[string]bool) string {
	name = plainName(name)
	if name == "" {
		name = otherwise
	}
	out := name
	for n := 2; used[out]; n++ {
		more := "_" + strconv.Itoa(n)
		out = name[:min(len(name), longestName-len(more))] + more
	}
	used[out] = true
	return out
}

// callIDs gives every call of a request an id that is its own: the
// provider's where it can be one, else one made of ours.
type callIDs struct {
	wire map[domain.CallID]string // by our id
	used map[string]bool
}

func newCallIDs() *callIDs {
	return &callIDs{wire: make(map[domain.CallID]string), used: make(map[string]bool)}
}

// add names a call of a reply.
func (n *callIDs) add(c domain.ModelCall) string {
	name := c.ProviderID
	if name == "" || n.used[plainName(name)] {
		name = string(c.ID)
	}
	name = distinct(name, "call", n.used)
	if c.ID != "" {
		n.wire[c.ID] = name
	}
	return name
}

// of returns the id of the call an output answers.
func (n *callIDs) of(c domain.ModelCall) string {
	if name, ok := n.wire[c.ID]; ok {
		return name
	}
	if c.ProviderID != "" {
		return plainName(c.ProviderID)
	}
	return plainName(string(c.ID))
}

// toolNames holds the names of a request's tools as the wire allows them.
type toolNames struct {
	wire map[string]string // by our name
	own  map[string]string // by the wire's
}

// newToolNames names tools: their own names where they are plain ones.
func newToolNames(tools []domain.ToolSpec) *toolNames {
	n := &toolNames{wire: make(map[string]string, len(tools)), own: make(map[string]string, len(tools))}
	used := make(map[string]bool, len(tools))
	for _, plain := range []bool{true, false} {
		for _, t := range tools {
			if _, named := n.wire[t.Name]; named || (plainName(t.Name) == t.Name) != plain {
				continue
			}
			name := distinct(t.Name, "tool", used)
			n.wire[t.Name], n.own[name] = name, t.Name
		}
	}
	return n
}

// theirs returns the wire's name of a tool, also of one that is gone.
func (n *toolNames) theirs(name string) string {
	if wire, ok := n.wire[name]; ok {
		return wire
	}
	if name = plainName(name); name != "" {
		return name
	}
	return "tool"
}

// ours returns our name of a tool; a name that no tool has stays itself.
func (n *toolNames) ours(name string) string {
	if own, ok := n.own[name]; ok {
		return own
	}
	return name
}
