package acp1

import (
	"math"
	"strconv"

	"github.com/berth-dev/berth/adapters/jsonrpc"
	"github.com/berth-dev/berth/core/domain"
)

// maxLine bounds the params of one message of ours, in bytes. Clients in Go
// end the connection at 10 MiB a line, so this leaves room for the envelope.
const maxLine = 10<<20 - 64<<10

// startLimit is what one string may have before it is cut, in bytes, unless
// the message gets too long all the same.
const startLimit = 1 << 20

// sessionUpdate is the params of one session/update.
type sessionUpdate struct {
	id       domain.SessionID
	update   domain.Update
	zeroclaw bool
}

// AppendJSON appends the params. A message that gets too long is written
// again with tighter limits.
func (s *sessionUpdate) AppendJSON(dst []byte) []byte {
	e := newEncoder(dst, s.zeroclaw)
	for {
		e.raw(`{"sessionId":`)
		e.string(string(s.id))
		e.raw(`,"update":`)
		e.update(s.update)
		e.raw(`}`)
		if e.fits() {
			return e.buf
		}
	}
}

// visible reports whether a client that offers what info says is shown the
// update, and how: a notice of an error becomes a message of the agent where
// notices are unknown.
func visible(u domain.Update, info domain.ClientInfo) (domain.Update, bool) {
	switch u := u.(type) {
	case domain.TurnStarted, domain.QueueChanged:
		return u, false // version 1 frames a turn by its request
	case domain.TurnEnded:
		return u, u.Past // which a history does not have
	case domain.UsageChanged:
		return u, u.Size > 0
	case domain.CompactionChanged:
		return u, info.Compaction
	case domain.CompactionText:
		return u, info.Compaction && u.Text != ""
	case domain.InfoChanged:
		return u, u.Title != "" || !u.UpdatedAt.IsZero()
	case domain.Notice:
		switch {
		case u.Title == "":
			return u, false
		case info.Notices:
			return u, true
		case u.Severity == "error":
			return domain.AgentText{Text: noticeText(u)}, true
		}
		return u, false
	}
	return u, true
}

// noticeText is a notice as a paragraph of its own.
func noticeText(n domain.Notice) string {
	if n.Detail == "" {
		return n.Title + "\n\n"
	}
	return n.Title + ": " + n.Detail + "\n\n"
}

// update appends one update. Every kind of update has its line here; those
// that version 1 does not show are kept away by visible.
func (e *encoder) update(u domain.Update) {
	switch u := u.(type) {
	case domain.AgentText:
		e.chunk("agent_message_chunk", u.ID, u.Text)
	case domain.AgentThought:
		e.chunk("agent_thought_chunk", u.ID, u.Text)
	case domain.UserMessage:
		e.raw(`{"sessionUpdate":"user_message_chunk","content":`)
		e.block(u.Block)
		e.messageID(u.ID)
		e.raw(`}`)
	case domain.CallOpened:
		e.raw(`{"sessionUpdate":"tool_call",`)
		e.call(u)
		e.raw(`}`)
	case domain.CallChanged:
		e.raw(`{"sessionUpdate":"tool_call_update",`)
		e.change(u)
		e.raw(`}`)
	case domain.PlanChanged:
		e.plan(u.Entries)
	case domain.UsageChanged:
		e.usage(u)
	case domain.InfoChanged:
		e.info(u)
	case domain.CommandsChanged:
		e.commands(u.Commands)
	case domain.CompactionChanged:
		e.compaction(u)
	case domain.CompactionText:
		e.summary(u)
	case domain.Notice:
		e.notice(u)
	case domain.TurnEnded:
		e.end(u)
	case domain.TurnStarted, domain.QueueChanged:
		e.raw(`null`)
	}
}

// chunk appends a piece of text of a message.
func (e *encoder) chunk(kind string, id domain.MessageID, text string) {
	e.raw(`{"sessionUpdate":"`)
	e.raw(kind)
	e.raw(`","content":{"type":"text","text":`)
	e.string(text)
	e.raw(`}`)
	e.messageID(id)
	e.raw(`}`)
}

func (e *encoder) messageID(id domain.MessageID) { e.member("messageId", string(id)) }

// call appends the members of an announced call.
func (e *encoder) call(u domain.CallOpened) {
	e.raw(`"toolCallId":`)
	e.string(string(u.ID))
	title := u.Title
	if title == "" {
		title = u.Name
	}
	e.raw(`,"title":`)
	e.string(title)
	e.member("name", u.Name)
	e.raw(`,"kind":`)
	e.string(string(toolKind(u.Kind)))
	e.raw(`,"status":`)
	if e.string(string(u.Status)); u.Status == "" {
		e.buf = append(e.buf[:len(e.buf)-len(`""`)], `"pending"`...)
	}
	e.contents(u.Content)
	e.locations(u.Locations)
	e.json("rawInput", u.RawInput)
}

// change appends the members of a changed call. What is left out stays as it
// is on the client's side.
func (e *encoder) change(u domain.CallChanged) {
	e.raw(`"toolCallId":`)
	e.string(string(u.ID))
	e.member("title", u.Title)
	e.member("status", string(u.Status))
	e.contents(u.Content)
	e.locations(u.Locations)
	if e.zeroclaw && u.Status.Final() {
		e.body(u)
		return
	}
	e.json("rawOutput", u.RawOutput)
}

// bodyLimit bounds the text that ZeroClaw's clients get a second time.
const bodyLimit = 64 << 10

// body appends what ZeroClaw's clients read of a call that has ended: the
// text of its content as the strings rawOutput and body.
func (e *encoder) body(u domain.CallChanged) {
	var text string
	for _, c := range u.Content {
		if b, ok := c.(domain.ContentBlock); ok {
			if t, ok := b.Block.(domain.Text); ok && len(text) <= bodyLimit {
				text += t.Text
			}
		}
	}
	text = cut(text, bodyLimit)
	if u.RawOutput != nil {
		e.json("rawOutput", u.RawOutput)
	} else {
		e.member("rawOutput", text)
	}
	e.member("body", text)
}

// toolKind keeps the closed list closed.
func toolKind(k domain.ToolKind) domain.ToolKind {
	switch k {
	case domain.KindRead, domain.KindEdit, domain.KindDelete, domain.KindMove, domain.KindSearch, domain.KindExecute,
		domain.KindThink, domain.KindFetch, domain.KindSwitchMode, domain.KindOther:
		return k
	}
	return domain.KindOther
}

// contents appends the content of a call; nil leaves it out.
func (e *encoder) contents(list []domain.CallContent) {
	if list == nil {
		return
	}
	e.raw(`,"content":[`)
	for i, c := range list {
		if i > 0 {
			e.raw(`,`)
		}
		if i == e.items() {
			e.raw(`{"type":"content","content":`)
			e.block(domain.Text{Text: "[… " + strconv.Itoa(len(list)-i) + " more left out here]"})
			e.raw(`}`)
			break
		}
		switch c := c.(type) {
		case domain.ContentBlock:
			e.raw(`{"type":"content","content":`)
			e.block(c.Block)
		case domain.Diff:
			e.diff(c)
		case domain.FileContent:
			e.raw(`{"type":"content","content":`)
			e.file(c)
		}
		e.raw(`}`)
	}
	e.raw(`]`)
}

// diff appends a diff without its closing brace. A new file has no old text at
// all, which is not the same as an empty one.
func (e *encoder) diff(d domain.Diff) {
	e.raw(`{"type":"diff","path":`)
	e.string(d.Path)
	if d.Created {
		e.raw(`,"oldText":null`)
	} else {
		e.raw(`,"oldText":`)
		e.string(d.OldText)
	}
	e.raw(`,"newText":`)
	e.string(d.NewText)
}

func (e *encoder) locations(list []domain.Location) {
	if list == nil {
		return
	}
	e.raw(`,"locations":[`)
	for i, l := range list[:min(len(list), e.items())] {
		if i > 0 {
			e.raw(`,`)
		}
		e.raw(`{"path":`)
		e.string(l.Path)
		if l.Line > 0 && l.Line <= math.MaxInt32 {
			e.raw(`,"line":`)
			e.int(int64(l.Line))
		}
		e.raw(`}`)
	}
	e.raw(`]`)
}

func (e *encoder) plan(entries []domain.PlanEntry) {
	e.raw(`{"sessionUpdate":"plan","entries":[`)
	for i, p := range entries[:min(len(entries), e.items())] {
		if i > 0 {
			e.raw(`,`)
		}
		e.raw(`{"content":`)
		e.string(p.Content)
		e.raw(`,"priority":`)
		e.string(known(p.Priority, "medium", "high", "low"))
		e.raw(`,"status":`)
		e.string(known(p.Status, "pending", "in_progress", "completed"))
		e.raw(`}`)
	}
	e.raw(`]}`)
}

// known returns v if it is one of the values of a closed list, else the first
// of them.
func known(v, fallback string, others ...string) string {
	for _, o := range others {
		if v == o {
			return v
		}
	}
	return fallback
}

func (e *encoder) usage(u domain.UsageChanged) {
	e.raw(`{"sessionUpdate":"usage_update","used":`)
	e.int(max(u.Used, 0))
	e.raw(`,"size":`)
	e.int(max(u.Size, 0))
	if c := u.Cost; c != nil && !math.IsNaN(c.Amount) && !math.IsInf(c.Amount, 0) {
		e.raw(`,"cost":{"amount":`)
		e.buf = strconv.AppendFloat(e.buf, c.Amount, 'f', -1, 64)
		e.raw(`,"currency":`)
		e.string(c.Currency)
		e.raw(`}`)
	}
	e.raw(`}`)
}

func (e *encoder) info(u domain.InfoChanged) {
	e.raw(`{"sessionUpdate":"session_info_update"`)
	e.member("title", u.Title)
	e.member("updatedAt", stamp(u.UpdatedAt))
	e.raw(`}`)
}

// end appends how a turn ended as an update that changes nothing but what is
// known of the session: a client that does not look for it shows nothing.
func (e *encoder) end(u domain.TurnEnded) {
	e.raw(`{"sessionUpdate":"session_info_update","_meta":{"berth":{"turnId":`)
	e.string(string(u.Turn))
	e.member("stopReason", u.Stop.String())
	e.member("error", u.Why)
	e.raw(`}}}`)
}

func (e *encoder) commands(list []domain.Command) {
	e.raw(`{"sessionUpdate":"available_commands_update","availableCommands":[`)
	for i, c := range list[:min(len(list), e.items())] {
		if i > 0 {
			e.raw(`,`)
		}
		e.raw(`{"name":`)
		e.string(c.Name)
		e.raw(`,"description":`)
		e.string(c.Description)
		if c.Hint != "" {
			e.raw(`,"input":{"hint":`)
			e.string(c.Hint)
			e.raw(`}`)
		}
		e.raw(`}`)
	}
	e.raw(`]}`)
}

func (e *encoder) notice(n domain.Notice) {
	e.raw(`{"sessionUpdate":"notice","severity":`)
	e.string(known(n.Severity, "info", "warning", "error"))
	e.raw(`,"title":`)
	e.string(n.Title)
	e.member("description", n.Detail)
	if n.Reason != "" {
		e.raw(`,"_meta":{"berth":{"reason":`)
		e.string(string(n.Reason))
		e.raw(`}}`)
	}
	e.raw(`}`)
}

var _ jsonrpc.Appender = (*sessionUpdate)(nil)
