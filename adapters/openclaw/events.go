package openclaw

import (
	"context"
	"slices"
	"strings"

	"github.com/berth-dev/berth/core/domain"
)

// fromGateway takes what the Gateway tells, in its order.
func (b *Bridge) fromGateway(_ *link, in incoming, gap bool) {
	if gap {
		b.doubt()
	}
	switch in.event {
	case "agent", "session.tool":
		b.fromRun(runEvent{"agent", fieldsOf(in.payload), len(in.payload)})
	case "chat":
		b.fromRun(runEvent{"chat", fieldsOf(in.payload), len(in.payload)})
	case "session.message":
		b.fromTranscript(fieldsOf(in.payload))
	case "exec.approval.requested":
		b.approvalAsked(fieldsOf(in.payload))
	case "exec.approval.resolved":
		b.approvalOver(fieldsOf(in.payload).text("id"), "it was answered elsewhere")
	case "shutdown":
		b.cfg.Log("the gateway shuts down")
	}
}

// doubt notes that events were left out. What was missed is made up for by
// the whole of what comes next, and at the end of the run.
func (b *Bridge) doubt() {
	b.cfg.Log("the gateway left events out")
	for _, t := range b.live() {
		t.mu.Lock()
		t.said.doubt()
		t.mu.Unlock()
	}
}

// live are the runs that are followed.
func (b *Bridge) live() []*turn {
	b.mu.Lock()
	defer b.mu.Unlock()
	list := make([]*turn, 0, len(b.runs))
	for _, t := range b.runs {
		list = append(list, t)
	}
	return list
}

// fromRun gives an event to its run.
func (b *Bridge) fromRun(e runEvent) {
	run := e.data.text("runId")
	b.mu.Lock()
	t := b.runs[run]
	b.mu.Unlock()
	if t == nil {
		if t = b.observe(run, e.data); t == nil {
			return
		}
	}
	t.event(e)
	b.let(t)
}

// let ends what is told of a run that somebody else began, once it is over.
func (b *Bridge) let(t *turn) {
	if t.own || !t.wasOver() {
		return
	}
	b.abandon(t)
	if t.heirOf != nil {
		t.heirOf.finish(t.result())
	}
}

// abandon ends what is told of a run that somebody else began.
func (b *Bridge) abandon(t *turn) {
	t.close()
	b.unfollow(t)
	t.cancel(nil)
	s := t.session
	s.mu.Lock()
	defer s.mu.Unlock()
	s.foreign = slices.DeleteFunc(s.foreign, func(o *turn) bool { return o == t })
}

// mostForeign bounds how many runs of others are told of at a time in one
// session.
const mostForeign = 64

// bound notes a run of others, and gives up the one that began first when
// there are too many: the Gateway may tell no end of them.
func (b *Bridge) bound(t *turn) {
	s := t.session
	s.mu.Lock()
	s.foreign = append(s.foreign, t)
	var first *turn
	if len(s.foreign) > mostForeign {
		first = s.foreign[0]
	}
	s.mu.Unlock()
	if first != nil {
		b.abandon(first)
	}
}

// unobserve does so for all of a session that the editor has closed.
func (b *Bridge) unobserve(s *session) {
	for _, t := range b.live() {
		if t.session == s && !t.own {
			b.abandon(t)
		}
	}
}

// observe begins to follow a run that somebody else began in a session that
// the editor has open.
func (b *Bridge) observe(run string, p fields) *turn {
	s := b.of(p.text("sessionKey"))
	if s == nil || run == "" || p.flag("isHeartbeat") || p.text("state") == "status" || !s.isNew(run) {
		return nil
	}
	t := newTurn(b, s, run)
	t.own, t.accepted = false, true
	t.ctx, t.cancel = context.WithCancelCause(b.life)
	t.said.doubt() // it may have begun before
	t.heirOf = s.orphan()
	b.follow(t)
	b.bound(t)
	return t
}

// fromTranscript shows the editor what others ask in its session.
func (b *Bridge) fromTranscript(p fields) {
	s := b.of(p.text("sessionKey"))
	m := p.in("message")
	if s == nil || m.text("role") != "user" {
		return
	}
	run, isPrompt := strings.CutSuffix(m.text("idempotencyKey"), ":user")
	if !isPrompt || !s.isForeign(run) {
		return
	}
	if words := withoutPrefix(messageText(p["message"])); words != "" {
		b.tell(b.life, s.id, domain.UserMessage{ID: domain.MessageID(run), Block: domain.Text{Text: words}})
	}
}

// mostDone bounds how many ended runs of a session are remembered.
const mostDone = 256

// noteDone remembers that nothing more is told of a run.
func (s *session) noteDone(run string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.done = append(s.done, run)
	if len(s.done) > mostDone {
		s.done = append(s.done[:0:0], s.done[len(s.done)-mostDone/2:]...)
	}
}

// isNew reports whether a run may be followed: it is not over, and the
// session's history is not being told, which tells of it.
func (s *session) isNew(run string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.telling == 0 && !s.was(run)
}

// isForeign reports whether a prompt is another's, and new.
func (s *session) isForeign(run string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.telling == 0 && !s.was(run) && !slices.ContainsFunc(s.turns, func(t *turn) bool { return t.prompt == run })
}

func (s *session) was(run string) bool {
	for _, r := range s.done {
		if r == run {
			return true
		}
	}
	return false
}
