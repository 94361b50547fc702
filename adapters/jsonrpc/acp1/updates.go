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
