package anthropic

import (
	"github.com/berth-dev/berth/adapters/llm"
	"github.com/berth-dev/berth/core/domain"
)

// option is a set of optional things a server may refuse.
type option uint32

// The options.
const (
	dropCache    option = 1 << iota // cache_control
	dropDisplay                     // thinking.display
	dropEffort                      // output_config.effort
	dropOff                         // thinking that is switched off
	dropThinking                    // thinking of any form
	swapThinking                    // the other way of telling how much to think
	dropBeta                        // the header of what is not general yet
)

// amends are what is changed about one request after it was refused.
type amends struct {
	bare  bool  // thoughts of before are not given back
	still bool  // the model is not asked to think
	blind bool  // pictures are replaced by marks
	most  int64 // the longest reply that fits; 0 when not known
}

// plan is how one request is sent: all that may have to be sent differently.
type plan struct {
	amends
	dropped option
	most    int64 // max_tokens
	think   *thinkingField
	effort  string
	beta    string
	// What is in the request, noted as it is written.
	thoughts, pictures bool
	prefix             string // see keepsake
}

// thinkingField is the field of that name.
type thinkingField struct {
	Type    string `json:"type"`
	Budget  int64  `json:"budget_tokens,omitempty"`
	Display string `json:"display,omitempty"`
}

// defaultMost is the length of a reply when nothing is known of the model: all
// models in service can write as much.
const defaultMost = 8192

// interleaved lets models that are told a budget think between tool calls;
// later ones do so by themselves.
const interleaved = "interleaved-thinking-2025-05-14"

// plan decides how a request is sent.
func (m *Model) plan(req domain.ModelRequest, a amends) *plan {
	p := &plan{amends: a, dropped: option(m.dropped.Load()), most: int64(req.MaxOutputTokens)}
	if p.most <= 0 {
		p.most = m.info.MaxOutput
	}
	if p.most <= 0 {
		p.most = defaultMost
	}
	for _, limit := range []int64{m.info.MaxOutput, m.most.Load(), a.most} {
		if limit > 0 {
			p.most = min(p.most, limit)
		}
	}
	if m.info.Thoughts && p.dropped&dropThinking == 0 && !a.still {
		m.planThoughts(p, req.Thoughts)
	}
	return p
}

// planThoughts maps a thought level to the fields of the model's family.
func (m *Model) planThoughts(p *plan, level domain.ThoughtLevel) {
	way := m.kind.Thinks
	if p.dropped&swapThinking != 0 {
		way = llm.ThinksBudget + llm.ThinksAdaptive - way
	}
	switch {
	case m.kind.Thinks == llm.ThinksNever:
	case level == domain.ThoughtsOff:
		m.planOff(p, way)
	case way == llm.ThinksAdaptive:
		// Without the field, a model that always thinks keeps its thoughts to
		// itself; one that does not is left at that.
		if level == "" && !m.kind.Always {
			return
		}
		p.think = &thinkingField{Type: "adaptive", Display: "summarized"}
		if p.dropped&dropDisplay != 0 {
			p.think.Display = ""
		}
		if p.dropped&dropEffort == 0 {
			p.effort = m.kind.Effort(level)
		}
	case level != "":
		if budget := llm.ThoughtBudget(level, p.most); budget > 0 {
			p.think = &thinkingField{Type: "enabled", Budget: budget}
			if m.official && m.kind.Version >= 400 && p.dropped&dropBeta == 0 {
				p.beta = interleaved
			}
		}
	}
}

// planOff switches thinking off where it is on by itself. A model that refuses
// that is asked for as little as it can.
func (m *Model) planOff(p *plan, way llm.Thinking) {
	switch {
	case !m.kind.Always:
	case p.dropped&dropOff == 0:
		p.think = &thinkingField{Type: "disabled"}
		p.bare = true // thoughts mean nothing to a model that does not think
	case way == llm.ThinksAdaptive && p.dropped&dropEffort == 0:
		p.effort = "low"
	}
}
