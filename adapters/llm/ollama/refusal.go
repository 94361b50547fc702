package ollama

import (
	"errors"
	"net"
	"net/http"
	"strings"

	"github.com/berth-dev/berth/adapters/llm"
	"github.com/berth-dev/berth/core/domain"
)

// option is a set of optional things a server may refuse.
type option uint32

// The options.
const (
	dropThink  option = 1 << iota // think
	dropLevels                    // a level in think; on or off is sent in its place
	dropCut                       // truncate and shift
	dropIDs                       // ids of calls
)

// refusedOption returns the option to leave out after a refusal, 0 when the
// refusal is about something else.
func refusedOption(err error, dropped option) option {
	f, ok := err.(*llm.Failure) //nolint:errorlint // Start returns its failures bare
	if !ok || (f.Status != http.StatusBadRequest && f.Status != http.StatusUnprocessableEntity) {
		return 0
	}
	words := strings.ToLower(f.Param + " " + f.Words)
	if strings.Contains(words, "support tools") || !llm.Says(words, "not support", "unsupported", "unknown", "unrecognized", "not permitted", "not allowed", "unexpected", "extra", "cannot unmarshal", "invalid") {
		return 0
	}
	var drop option
	switch {
	case strings.Contains(words, "think value"), strings.Contains(words, "think") && strings.Contains(words, "unmarshal"):
		drop = dropLevels
		if dropped&dropLevels != 0 {
			drop = dropThink
		}
	case strings.Contains(words, "think"):
		drop = dropThink
	case llm.Says(words, "truncate", "shift"):
		drop = dropCut
	case llm.Says(words, "tool_call_id", "tool_name"):
		drop = dropIDs
	}
	return drop &^ dropped
}

// explain adds to a failure what to do about it, where Ollama's own words
// leave that open.
func (m *Model) explain(err error) error {
	var f *llm.Failure
	if !errors.As(err, &f) {
		return err
	}
	told := *f
	words := strings.ToLower(f.Words)
	name := m.info.Ref.Model
	add := func(hint string) {
		e := *told.Err
		e.Msg += hint
		told.Err = &e
	}
	code := domain.CodeOf(f.Err)
	switch {
	case f.Status == http.StatusNotFound && code == domain.ProviderRejected && !m.cloud:
		add("; if Ollama does not have the model yet: ollama pull " + name)
	case code == domain.AuthRequired && !m.cloud && strings.Contains(words, "unauthorized"):
		add("; for a model of Ollama's cloud this Ollama may need to be signed in: ollama signin")
	case strings.Contains(words, "does not support tools"):
		return m.toolless()
	case code == domain.Unavailable && llm.Says(words, "more system memory", "out of memory", "unable to allocate", "failed to allocate"):
		add("; the model does not fit into memory: choose a smaller one, set a smaller providers." + m.provider.Name +
			".models.\"" + name + "\".context_window, or stop other models (ollama ps)")
		told.Retry = false
	case code == domain.Unavailable && llm.Says(words, "context length", "context size", "context window"):
		e := *told.Err
		e.Code = domain.ContextTooLong
		told.Err, told.Retry = &e, false
	default:
		told.Err = notRunning(told.Err, m.base)
	}
	return &told
}

// toolless is the error of a model that cannot call tools.
func (m *Model) toolless() *domain.Error {
	name := m.info.Ref.Model
	return domain.Errorf(domain.ProviderRejected,
		"model %q of provider %q does not support tools, which an agent needs; choose one that does (ollama show %s lists its capabilities)",
		name, m.provider.Name, name).With("provider", m.provider.Name)
}

// notRunning adds to an error that no connection was made what is most often
// the reason.
func notRunning(err *domain.Error, base string) *domain.Error {
	var op *net.OpError
	if hosted(base) || !errors.As(err, &op) || op.Op != "dial" {
		return err
	}
	told := *err
	told.Msg += "; is Ollama running? start it with: ollama serve"
	return &told
}
