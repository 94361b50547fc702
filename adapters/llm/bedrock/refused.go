package bedrock

import (
	"errors"
	"net/http"
	"strings"

	"github.com/berth-dev/berth/adapters/llm"
)

// option is a set of optional things a model may refuse.
type option uint32

// The options. Those of the last group are about one conversation and are not
// remembered.
const (
	dropToolCache    option = 1 << iota // cache points
	dropSystemCache                     //
	dropMessageCache                    //
	dropLimit                           // inferenceConfig.maxTokens
	swapThoughts                        // Claude's other way to be told to think
	dropDisplay                         // whether its thoughts are shown
	dropOff                             // that it is not to think
	dropThoughts                        // any way
	dropSigned                          // thoughts given back, and thinking with them

	dropCaches = dropToolCache | dropSystemCache | dropMessageCache
	ofRequest  = dropSigned
)

// refusedOption returns what to leave out after a refusal, 0 when the refusal
// is about something else or was about what is left out already.
func (m *Model) refusedOption(err error, dropped option) option {
	var f *llm.Failure
	if !errors.As(err, &f) || (f.Status != http.StatusBadRequest && f.Status != http.StatusForbidden) {
		return 0
	}
	words := strings.ToLower(f.Words)
	has := func(any ...string) bool { return llm.Says(words, any...) }
	var drop option
	switch {
	case has("cachepoint", "cache point", "prompt caching", "cache_control"):
		drop = refusedCache(has)
	case has("signature") && has("thinking", "reasoning"),
		has("redacted_thinking") && has("but found"),
		has("reasoningcontent", "reasoning content") && has("not support", "not permitted", "not allowed"):
		drop = dropSigned
	case has("thinking") && has("disabled") && dropped&dropOff == 0:
		drop = dropOff
	case has("display"):
		drop = dropDisplay
	case has("maximum tokens you requested exceeds"):
		drop = dropLimit
	case has("thinking", "budget_tokens", "output_config", "effort", "reasoningconfig", "reasoning_config"):
		if drop = swapThoughts; dropped&swapThoughts != 0 || m.family != claudeFamily {
			drop = dropThoughts
		}
	case m.family == claudeFamily && has(".type: field required"):
		drop = dropMessageCache // a cache point that was not understood behind what it stands
	}
	return drop &^ dropped
}

// refusedCache returns the cache points a refusal is about: those of the place
// it names, else all.
func refusedCache(has func(...string) bool) option {
	switch {
	case has("toolconfig", "tools"):
		return dropToolCache
	case has("#/system", "system."):
		return dropSystemCache
	case has("#/messages", "messages."):
		return dropMessageCache
	}
	return dropCaches
}

// advise adds what to do about a refusal whose words leave that open.
func advise(err error) error {
	var f *llm.Failure
	if !errors.As(err, &f) {
		return err
	}
	words := strings.ToLower(f.Words)
	for _, a := range []struct{ said, todo string }{
		{"access to the model", "ask for access to it in the Bedrock console, under Model access, in this region"},
		{"on-demand throughput isn", "name its inference profile, such as \"us.\" before the model's name"},
		{"model identifier is invalid", "check the model's name, and that the region of base_url has it"},
		{"end of its life", "choose a newer model"},
		{"signature expired", "check this machine's clock"},
		{"signature not yet current", "check this machine's clock"},
		{"security token included in the request is expired", "sign in again for new ones"},
	} {
		if strings.Contains(words, a.said) {
			f.Err.Msg += "; " + a.todo
			break
		}
	}
	return err
}
