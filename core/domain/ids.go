package domain

import "strings"

// SessionID names a session for ever: a lower-case UUID, opaque to clients,
// safe in URLs, file names and HTTP headers.
type SessionID string

// TurnID names one turn, unique in its session.
type TurnID string

// MessageID names one message as a client sees it (a run of text or of
// thought), unique in its session and stable across replay.
type MessageID string

// CallID names one tool call on the client's side. Berth makes it; the
// provider's own id stays in ModelCall.ProviderID.
type CallID string

// CompactionID names one compaction, unique in its session.
type CompactionID string

// Seq is a position in a session's journal: 0 before the first record, n
// after the n-th.
type Seq int64

// Valid reports whether id has the shape of a session id: 1 to 64 letters,
// digits or hyphens. Whatever else a client sends cannot name a session.
func (id SessionID) Valid() bool {
	if len(id) == 0 || len(id) > 64 {
		return false
	}
	for _, r := range id {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '-':
		default:
			return false
		}
	}
	return true
}

// ModelRef names a model as configuration does: "provider/model". The model
// part may itself hold slashes.
type ModelRef struct {
	Provider string
	Model    string
}

// ParseModelRef splits "provider/model" at the first slash.
func ParseModelRef(s string) (ModelRef, error) {
	provider, model, ok := strings.Cut(s, "/")
	if !ok || provider == "" || model == "" {
		return ModelRef{}, Errorf(InvalidArgument, "model %q is not of the form \"provider/model\"", s)
	}
	return ModelRef{Provider: provider, Model: model}, nil
}

// String returns "provider/model", or "" for the zero value.
func (r ModelRef) String() string {
	if r == (ModelRef{}) {
		return ""
	}
	return r.Provider + "/" + r.Model
}
