package sqlstore

import "github.com/berth-dev/berth/core/domain"

// The kinds of records and the version this code writes of each. A change
// that an older reader would misunderstand takes a new version; a member that
// may be ignored does not.
const (
	kindUserSaid        = "user_said"
	kindStreamed        = "streamed"
	kindAssistantSaid   = "assistant_said"
	kindCallBegan       = "call_began"
	kindPermissionGiven = "permission_given"
	kindCallFinished    = "call_finished"
	kindPlanSet         = "plan_set"
	kindTitleSet        = "title_set"
	kindClientEvent     = "client_event"
	kindCompacted       = "compacted"
	kindTurnFinished    = "turn_finished"

	payloadVersion = 1
)

// payload is the stored form of a record: JSON as text, or the bytes of a
// record of an unknown kind as they came.
type payload struct {
	kind    string
	version int
	text    string
	raw     []byte // of an unknown kind; then text is empty
	unknown bool
}

// value is what a statement binds: text where the payload is text.
func (p payload) value() any {
	if p.unknown {
		return append([]byte{}, p.raw...)
	}
	return p.text
}

// body is the payload as a string.
func (p payload) body() string {
	if p.unknown {
		return string(p.raw)
	}
	return p.text
}

// encode turns a record into its stored form. InvalidArgument when a text in
// it is not UTF-8 or it is no record of the domain.
func encode(rec domain.Record) (payload, error) {
	if u, ok := rec.(domain.Unknown); ok {
		return encodeUnknown(u)
	}
	w := &writer{buf: make([]byte, 1, 512+length(rec))}
	w.buf[0] = '{'
	kind, err := w.record(rec)
	if err != nil {
		return payload{}, err
	}
	w.close()
	if w.bad {
		return payload{}, domain.Errorf(domain.InvalidArgument, "A text in a record (%s) is not valid UTF-8", kind)
	}
	return payload{kind: kind, version: payloadVersion, text: string(w.buf)}, nil
}

// length is about how much room the text of a model's reply takes, which may be
// long; 0 for the rest.
func length(rec domain.Record) int {
	var parts []domain.MessagePart
	switch r := rec.(type) {
	case domain.AssistantSaid:
		parts = r.Parts
	case domain.Streamed:
		parts = r.Parts
	case domain.UserSaid, domain.CallBegan, domain.PermissionGiven, domain.CallFinished, domain.PlanSet, domain.TitleSet,
		domain.ClientEvent, domain.Compacted, domain.TurnFinished, domain.Unknown:
	}
	n := 0
	for _, p := range parts {
		n += len(p.Text) + len(p.Text)/16 // some letters take two
	}
	return n
}

// encodeUnknown refuses a kind that would read back as something else.
func encodeUnknown(u domain.Unknown) (payload, error) {
	w := &writer{}
	w.quote(u.Kind)
	switch {
	case w.bad || u.Kind == "":
		return payload{}, domain.Errorf(domain.InvalidArgument, "The kind %q of a record is empty or not valid UTF-8", u.Kind)
	case known(u.Kind, u.Version):
		return payload{}, domain.Errorf(domain.InvalidArgument, "The kind %s of a record is known here, so it cannot be stored as unknown", u.Kind)
	}
	return payload{kind: u.Kind, version: u.Version, raw: u.Payload, unknown: true}, nil
}

// record writes the members of a record and returns its kind.
func (w *writer) record(rec domain.Record) (string, error) {
	var err error
	switch r := rec.(type) {
	case domain.UserSaid:
		text(w, "turn", r.Turn)
		text(w, "id", r.ID)
		list(w, "blocks", r.Blocks, noting(&err, writeBlock))
		text(w, "command", r.Command)
		return kindUserSaid, err
	case domain.Streamed:
		text(w, "turn", r.Turn)
		text(w, "agent", r.Agent)
		text(w, "provider", r.Model.Provider)
		text(w, "model", r.Model.Model)
		list(w, "parts", r.Parts, writePart)
		return kindStreamed, nil
	case domain.AssistantSaid:
		writeAssistantSaid(w, r)
		return kindAssistantSaid, nil
	case domain.CallBegan:
		text(w, "turn", r.Turn)
		object(w, "call", r.Call, writeCall)
		object(w, "update", r.Update, noting(&err, writeCallOpened))
		return kindCallBegan, err
	case domain.PermissionGiven:
		text(w, "turn", r.Turn)
		text(w, "call", r.Call)
		w.name("outcome", outcomeNames.name(int64(r.Outcome)), int64(r.Outcome))
		text(w, "option", r.Option)
		list(w, "rules", r.Rules, writeRule)
		return kindPermissionGiven, nil
	case domain.CallFinished:
		return kindCallFinished, writeCallFinished(w, r)
	case domain.PlanSet:
		text(w, "turn", r.Turn)
		list(w, "entries", r.Entries, writePlanEntry)
		return kindPlanSet, nil
	case domain.TitleSet:
		text(w, "title", r.Title)
		return kindTitleSet, nil
	case domain.ClientEvent:
		text(w, "type", r.Type)
		w.bytes("payload", r.Payload)
		w.flag("for_model", r.ForModel)
		return kindClientEvent, nil
	case domain.Compacted:
		writeCompacted(w, r)
		return kindCompacted, nil
	case domain.TurnFinished:
		writeTurnFinished(w, r)
		return kindTurnFinished, nil
	}
	return "", domain.Errorf(domain.InvalidArgument, "A %T cannot be stored as a record", rec)
}

// noting keeps the first error of a function that writes one value.
func noting[T any](first *error, one func(*writer, T) error) func(*writer, T) {
	return func(w *writer, v T) {
		if err := one(w, v); err != nil && *first == nil {
			*first = err
		}
	}
}

func writeAssistantSaid(w *writer, r domain.AssistantSaid) {
	text(w, "turn", r.Turn)
	text(w, "agent", r.Agent)
	text(w, "provider", r.Model.Provider)
	text(w, "model", r.Model.Model)
	list(w, "parts", r.Parts, writePart)
	list(w, "calls", r.Calls, writeCall)
	optional(w, "opaque", r.Opaque, writeOpaque)
	text(w, "finish", r.Finish)
	w.flag("truncated", r.Truncated)
	writeUsage(w, r.Usage)
	optional(w, "cost", r.Cost, writeCost)
	w.number("window", r.Window)
	w.number("estimate", r.Estimate)
}

func writePart(w *writer, p domain.MessagePart) {
	text(w, "id", p.ID)
	w.flag("thought", p.Thought)
	text(w, "text", p.Text)
}

func writeCall(w *writer, c domain.ModelCall) {
	text(w, "id", c.ID)
	text(w, "provider_id", c.ProviderID)
	text(w, "name", c.Name)
	w.bytes("args", c.Args)
}

func writeOpaque(w *writer, o domain.Opaque) {
	text(w, "provider", o.Provider)
	w.bytes("data", o.Data)
}

func writeUsage(w *writer, u domain.Usage) {
	if u == (domain.Usage{}) {
		return
	}
	w.key("usage")
	w.open()
	w.number("input", u.Input)
	w.number("output", u.Output)
	w.number("thought", u.Thought)
	w.number("cached_read", u.CachedRead)
	w.number("cached_write", u.CachedWrite)
	w.close()
}

func writeCallOpened(w *writer, u domain.CallOpened) error {
	var err error
	text(w, "id", u.ID)
	text(w, "name", u.Name)
	text(w, "title", u.Title)
	text(w, "kind", u.Kind)
	text(w, "status", u.Status)
	list(w, "content", u.Content, noting(&err, writeContent))
	list(w, "locations", u.Locations, writeLocation)
	w.bytes("raw_input", u.RawInput)
	return err
}

func writeCallFinished(w *writer, r domain.CallFinished) error {
	var err error
	text(w, "turn", r.Turn)
	text(w, "call", r.Call)
	w.flag("failed", r.Failed)
	w.flag("interrupted", r.Interrupted)
	text(w, "text", r.Text)
	w.number("limit", r.Limit)
	list(w, "content", r.Content, noting(&err, writeContent))
	list(w, "locations", r.Locations, writeLocation)
	w.bytes("raw_output", r.RawOutput)
	return err
}

func writeLocation(w *writer, l domain.Location) {
	text(w, "path", l.Path)
	w.number("line", int64(l.Line))
}

func writeRule(w *writer, r domain.Rule) {
	w.flag("allow", r.Allow)
	text(w, "tool", r.Tool)
	text(w, "scope", r.Scope)
	words(w, "words", r.Words)
	w.flag("exact", r.Exact)
}

func writePlanEntry(w *writer, e domain.PlanEntry) {
	text(w, "content", e.Content)
	text(w, "priority", e.Priority)
	text(w, "status", e.Status)
}

func writeTurnFinished(w *writer, r domain.TurnFinished) {
	text(w, "turn", r.Turn)
	w.name("stop", r.Stop.String(), int64(r.Stop))
	optional(w, "failure", r.Failure, writeFailure)
	w.flag("interrupted", r.Interrupted)
	writeUsage(w, r.Usage)
}

func writeFailure(w *writer, f domain.Failure) {
	w.name("code", codeName(f.Code), int64(f.Code))
	text(w, "msg", f.Msg)
}
