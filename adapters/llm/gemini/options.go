package gemini

import (
	"net/http"
	"strings"

	"github.com/berth-dev/berth/adapters/llm"
	"github.com/berth-dev/berth/core/domain"
)

// option is a set of optional things a server may refuse.
type option uint32

// The options.
const (
	plainSchema    option = 1 << iota // parameters in place of parametersJsonSchema
	coarseLevel                       // only the levels that all models know
	swapLevel                         // a budget in place of a level, or the reverse
	dropLevel                         // how much to think
	dropThinking                      // all of the thinking configuration
	dropIDs                           // ids of calls
	mediaBehind                       // a tool's pictures behind the responses
	systemAsUser                      // the system prompt as the user's first words
	dropSigns                         // signatures of any kind
	dropForeign                       // the signatures of this one history
	signEverywhere                    // a value for each missing signature, not only in the turn at hand
)

// refusedOption returns the options to change after a refusal, 0 when the
// refusal is about something else.
func (m *Model) refusedOption(err error, req domain.ModelRequest, dropped option) option {
	f, ok := err.(*llm.Failure) //nolint:errorlint // Start returns its failures bare
	if !ok || (f.Status != http.StatusBadRequest && f.Status != http.StatusUnprocessableEntity) || f.Err.Code != domain.ProviderRejected {
		return 0
	}
	words := strings.ToLower(f.Param + " " + f.Words)
	has := func(subs ...string) bool { return llm.Says(words, subs...) }
	unknown := has("unknown name", "cannot find field")
	var drop option
	switch {
	case has("thought_signature", "thoughtsignature", "thought signature"):
		switch {
		case unknown:
			drop = dropSigns
		case has("missing"):
			drop = signEverywhere
		case has("invalid", "corrupt", "not valid", "mismatch"):
			drop = dropForeign
		}
	case has("parametersjsonschema", "parameters_json_schema"),
		has("function_declarations", "functiondeclarations") && (unknown || has("schema", "parameters")):
		drop = plainSchema
	case has("thinking", "include_thoughts", "includethoughts"):
		return m.nextThinking(req, dropped)
	case unknown && has(`"id"`) && has("function_call", "function_response", "functioncall", "functionresponse"):
		drop = dropIDs
	case unknown && has(`"parts"`) && has("function_response", "functionresponse"),
		has("multimodal function response", "mime type in function response"):
		drop = mediaBehind
	case has("developer instruction", "system instruction", "systeminstruction", "system_instruction") && (unknown || has("not enabled", "not supported", "unsupported")):
		drop = systemAsUser
	}
	return drop &^ dropped
}

// nextThinking returns what to change so that the request tells to think in
// another way than it did; 0 when there is none.
func (m *Model) nextThinking(req domain.ModelRequest, dropped option) option {
	was, told := m.thinking(req, dropped)
	if !told {
		return 0
	}
	var drop option
	for _, step := range []option{coarseLevel, swapLevel, dropLevel, dropThinking} {
		if dropped&step != 0 {
			continue
		}
		drop |= step
		if now, still := m.thinking(req, dropped|drop); !still || now != was {
			return drop
		}
	}
	return 0
}
