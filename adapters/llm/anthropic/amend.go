package anthropic

import (
	"net/http"
	"strconv"
	"strings"

	"github.com/berth-dev/berth/adapters/llm"
	"github.com/berth-dev/berth/core/domain"
)

// amend decides what to change about a request that was refused, and reports
// whether there is anything. What a server cannot do at all is left out from
// now on; what does not fit this conversation, in this request alone.
func (m *Model) amend(err error, sent *plan, a *amends) bool {
	f, ok := err.(*llm.Failure) //nolint:errorlint // the machine returns its failures bare
	if !ok {
		return false
	}
	switch f.Status {
	case http.StatusBadRequest, http.StatusUnprocessableEntity:
	case 0: // gateways refuse inside a stream that they had begun well
	default:
		return false
	}
	words := strings.ToLower(f.Param + " " + f.Words)
	switch f.Err.Code {
	case domain.ContextTooLong:
		return a.fit(words, sent)
	case domain.ProviderRejected:
		return m.shorten(words, sent) || a.amend(words, sent) || m.drop(words, sent)
	}
	return false
}

// fit shortens the reply of a request that fits the window by itself: some
// models refuse one that does not leave room for the longest reply it allows.
func (a *amends) fit(words string, sent *plan) bool {
	// "… exceed context limit: 188240 + 21333 > 200000, …"
	_, sum, found := strings.Cut(words, "context limit: ")
	if !found {
		return false
	}
	n := numbers(sum, 3)
	if len(n) < 3 || n[1] != sent.most || n[2]-n[0] < llm.LeastBudget || n[2]-n[0] >= sent.most {
		return false
	}
	a.most = n[2] - n[0]
	return true
}

// shorten notes the longest reply that a model allows.
func (m *Model) shorten(words string, sent *plan) bool {
	// "max_tokens: 64000 > 8192, which is the maximum allowed number …"
	_, rule, found := strings.Cut(words, "max_tokens: ")
	if !found {
		return false
	}
	n := numbers(rule, 2)
	if len(n) < 2 || n[0] != sent.most || n[1] < 1 || n[1] >= n[0] {
		return false
	}
	m.most.Store(n[1])
	return true
}

// numbers returns the first numbers of a text.
func numbers(s string, most int) []int64 {
	var out []int64
	for _, field := range strings.FieldsFunc(s, func(c rune) bool { return c < '0' || c > '9' }) {
		n, err := strconv.ParseInt(field, 10, 64)
		if err != nil || len(out) == most {
			break
		}
		out = append(out, n)
	}
	return out
}

// amend leaves out what the server does not take in this conversation:
// thoughts it cannot read any more, as after what came before them was
// changed, and pictures it cannot show its model.
func (a *amends) amend(words string, sent *plan) bool {
	switch {
	case !a.still && sent.think != nil && llm.Says(words, "expected `thinking`", "must start with a thinking block"):
		a.still = true
	case !a.bare && sent.thoughts && llm.Says(words, "thinking") && llm.Says(words, "signature", "cannot be modified", "different conversation", "must contain thinking", "final block"):
		a.bare = true
	case !a.blind && sent.pictures && llm.Says(words, "image") && !llm.Says(words, "thinking"):
		a.blind = true
	default:
		return false
	}
	return true
}

// drop leaves out an option that the server does not know.
func (m *Model) drop(words string, sent *plan) bool {
	var drop option
	switch {
	case llm.Says(words, "cache_control"):
		drop = dropCache
	case sent.beta != "" && llm.Says(words, "anthropic-beta", "beta header"):
		drop = dropBeta
	case sent.effort != "" && llm.Says(words, "output_config", "effort") && !llm.Says(words, "thinking.type"):
		drop = dropEffort
	case sent.think == nil || !llm.Says(words, "thinking", "budget_tokens", "adaptive"):
	case sent.think.Type == "disabled":
		drop = dropOff
	case llm.Says(words, "display"):
		drop = dropDisplay
	case sent.dropped&swapThinking == 0 && llm.Says(words, "adaptive", "enabled", "budget_tokens", "thinking.type"):
		drop = swapThinking
	default:
		drop = dropThinking
	}
	drop &^= sent.dropped
	m.dropped.Or(uint32(drop))
	return drop != 0
}
