package openai

import (
	"encoding/json"
	"slices"

	"github.com/berth-dev/berth/adapters/llm"
	"github.com/berth-dev/berth/core/domain"
)

// call is a tool call as far as it has come.
type call struct {
	id    string
	index int // -1 when the server gives none
	name  string
	args  []byte
	extra json.RawMessage // to be given back with the call
}

// calls assembles the tool calls of one reply.
type calls struct {
	list  []*call
	bytes int
}

// noIndex is the index of fragments without one.
const noIndex = -1

// add takes in one fragment. It reports false when the arguments of the reply
// exceed what an event may hold.
func (c *calls) add(f fragment) bool {
	index := noIndex
	if f.Index != nil {
		index = *f.Index
	}
	args := llm.AppendArguments(nil, f.Function.Args)
	to := c.find(f.ID, index, f.Function.Name, args)
	if to == nil {
		to = &call{id: f.ID, index: index, name: f.Function.Name}
		c.list = append(c.list, to)
	} else {
		if to.id == "" {
			to.id = f.ID
		}
		if f.Function.Name != to.name {
			to.name += f.Function.Name
		}
	}
	if len(f.Extra) > 0 && string(f.Extra) != "null" {
		to.extra = f.Extra
	}
	to.args = append(to.args, args...)
	c.bytes += len(args)
	return c.bytes <= llm.MaxEvent
}

// find returns the call a fragment continues, nil when it begins one. A call
// is known by its id, else by its index, else by being the one in progress;
// an empty id or name is an absent one. Ids that repeat at another index, and
// indexes that repeat with another id, are other calls.
func (c *calls) find(id string, index int, name string, args []byte) *call {
	if id != "" {
		for _, k := range slices.Backward(c.list) {
			if k.id == id && (index == noIndex || k.index == noIndex || k.index == index) {
				return continued(k, name, args)
			}
		}
		// The id may come after the call has begun without one.
		if k := c.at(index); k != nil && k.id == "" && (k.name == "" || name == "") {
			return k
		}
		return nil
	}
	if k := c.at(index); k != nil {
		return continued(k, name, args)
	}
	return nil
}

// at returns the newest call of an index, or the one in progress.
func (c *calls) at(index int) *call {
	for _, k := range slices.Backward(c.list) {
		if index == noIndex || k.index == index {
			return k
		}
	}
	return nil
}

// continued returns k unless the fragment plainly begins another call that
// merely looks the same: it has a name, and k has whole arguments already, or
// another name that no longer can be a part of it.
func continued(k *call, name string, args []byte) *call {
	switch {
	case name == "" || k.name == "":
		return k
	case llm.IsObject(k.args) && len(args) > 0:
		return nil
	case name != k.name && (len(k.args) > 0 || k.id == ""):
		return nil
	}
	return k
}

// done returns the calls of a complete reply. It reports false when one of
// them has no name or arguments that are no JSON object; nothing is mended.
func (c *calls) done() ([]domain.ModelCall, bool) {
	out := make([]domain.ModelCall, 0, len(c.list))
	for _, k := range c.list {
		args, ok := llm.Arguments(k.args)
		if k.name == "" || !ok {
			return nil, false
		}
		out = append(out, domain.ModelCall{ProviderID: k.id, Name: k.name, Args: args})
	}
	return out, true
}
