package anthropic

import (
	"strconv"
	"strings"

	"github.com/berth-dev/berth/core/domain"
)

// callNames gives every call of a request an id that is its own and has no
// characters but those the wire allows: the provider's where it is one, else
// ours. A call keeps its id from request to request.
type callNames struct {
	used map[string]bool
}

func newCallNames() *callNames { return &callNames{used: make(map[string]bool)} }

// add names a call of a reply.
func (n *callNames) add(c domain.ModelCall) string {
	name := c.ProviderID
	if name == "" || name != plain(name) || n.used[name] {
		name = plain(string(c.ID))
	}
	if name == "" {
		name = "call"
	}
	for i, first := 2, name; n.used[name]; i++ {
		name = first + "_" + strconv.Itoa(i)
	}
	n.used[name] = true
	return name
}

// plain replaces the characters that neither ids nor names may have.
func plain(s string) string {
	return strings.Map(func(c rune) rune {
		if c == '_' || c == '-' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') {
			return c
		}
		return '_'
	}, s)
}

// maxName is the longest name of a tool.
const maxName = 128

// plainName is the name of a called tool as the wire allows it: another
// provider's model may have called what is no tool at all.
func plainName(s string) string {
	if s == "" {
		return "unknown"
	}
	s = plain(s)
	return s[:min(len(s), maxName)]
}
