package sessions

import (
	"context"
	"time"

	"github.com/berth-dev/berth/core/domain"
	"github.com/berth-dev/berth/core/ports"
)

// noticeLimit bounds how long a client that loses a session is waited for to
// take the notice of it.
const noticeLimit = time.Second

// join opens a session for a client while a turn runs in it: the turn goes on
// as it is, with its directories and tools, and the client sees the rest of it.
func (s *Service) join(ctx context.Context, p place, req storedRequest) (domain.OpenedSession, error) {
	if req.reset {
		return domain.OpenedSession{}, domain.Errorf(domain.SessionActive,
			"Session %s is active: a turn runs in it, so it cannot be reset now; cancel the turn first", req.ID).With("sessionId", string(req.ID))
	}
	opened, err := s.describe(ctx, p.client, req.ID)
	if err != nil {
		return domain.OpenedSession{}, err
	}
	resolved, err := s.resolve(ctx, p.client, opened.Session, opened.Agent, req.Dirs)
	if err != nil {
		return domain.OpenedSession{}, err
	}
	if !sameRoots(opened.Session, resolved) {
		opened.Notes = append(opened.Notes, "A turn is running, so the session keeps its directories; load it again afterwards to change them.")
	}
	opened.Going, err = p.slot.live.handOver(ctx, opened.Session, p, req)
	return opened, err
}

// handOver sends a client what it needs to know of a session in which a turn
// runs, and puts it in the place of who is attached. Most of the history is
// sent while the turn goes on; what is left is collected at a moment at which
// nothing is journalled or told, which is also when the place changes hands.
// The turn tells the new client nothing before it has been answered, and waits
// for that if it has something to tell. A client that does not know the
// session's id yet is sent nothing: what it needs to know is returned.
func (l *Live) handOver(ctx context.Context, row domain.Session, p place, req storedRequest) (going []domain.Update, err error) {
	h := &history{l: l, row: row, conv: domain.NewConversation(row.Start), replay: req.Replay}
	if req.Replay {
		if err := h.read(ctx, func(u domain.Update) error { return p.client.Send(ctx, l.id, u) }); err != nil {
			return nil, err
		}
	}
	rest, before, err := l.changeHands(ctx, h, p, req)
	if err != nil {
		return nil, err
	}
	l.svc.tellTaken(before, p.client, l.id)
	if req.silent {
		return rest, nil
	}
	if err := l.sendAll(ctx, p.client, rest); err != nil {
		l.forget(h.was)
		return nil, err
	}
	return nil, nil
}

// forget makes a client that took the session and was lost before it was told
// everything one that never came: was is where the one before had been lost.
func (l *Live) forget(was *mark) {
	if was != nil {
		m := *was
		m.came = l.att.came.Load()
		l.missed.Store(&m)
	}
}

// changeHands does what handOver does while nothing may move. It returns what
// is still to be sent to the new client, and who was attached.
func (l *Live) changeHands(ctx context.Context, h *history, p place, req storedRequest) (rest []domain.Update, before *seat, err error) {
	f, err := l.take(ctx, p.client)
	if err != nil {
		return nil, nil, err
	}
	defer f.release()
	h.was = f.resumes()
	if !h.replay {
		h.missed = h.was
	}
	if err := h.read(ctx, func(u domain.Update) error { rest = append(rest, u); return nil }); err != nil {
		return nil, nil, err
	}
	rest = append(rest, h.now(&f.tail)...)
	s := l.svc
	s.reg.mu.Lock()
	defer s.reg.mu.Unlock()
	if p.slot.state != opening {
		return nil, nil, closedWhileOpening(l.id)
	}
	p.slot.client = p.client
	return rest, l.att.attach(p.client, req), nil
}

// tellTaken tells a client that another has taken its session.
func (s *Service) tellTaken(before *seat, by ports.Client, id domain.SessionID) {
	if before == nil || before.client == by {
		return
	}
	s.chores.do(func() {
		ctx, cancel := context.WithTimeoutCause(context.Background(), noticeLimit, domain.Disconnected)
		defer cancel()
		_ = before.client.Send(ctx, id, domain.Notice{ // fails only when it has gone
			Severity: "error", Reason: domain.SessionTaken, Title: "Another client has taken this session over",
			Detail: "Load it again with _meta.berth.takeover to take it back.",
		})
	})
}

// history is what a client is told of a session in which a turn runs.
type history struct {
	l      *Live
	row    domain.Session
	conv   *domain.Conversation
	replay bool
	missed *mark // without replay: where the client before was lost
	was    *mark // where it was, with replay too

	told     map[domain.MessageID]bool // messages of the newest turn
	calls    []domain.CallOpened       // that are open
	finished map[domain.CallID]bool    // of the newest turn
}

// read goes on to the end of the journal and gives what a client is told of it.
func (h *history) read(ctx context.Context, tell func(domain.Update) error) error {
	for entry, err := range h.l.svc.p.Journal.Records(ctx, h.l.id, h.conv.Seq()) {
		if err != nil {
			return err
		}
		h.conv.Add(entry)
		h.note(entry.Record)
		for _, u := range h.shown(ctx, entry) {
			if err := tell(u); err != nil {
				return err
			}
		}
	}
	return nil
}

// note keeps what the tail is compared with.
func (h *history) note(rec domain.Record) {
	switch rec := rec.(type) {
	case domain.UserSaid:
		h.told, h.finished = make(map[domain.MessageID]bool), make(map[domain.CallID]bool)
	case domain.CallBegan:
		h.calls = append(h.calls, rec.Update)
	case domain.CallFinished:
		if h.finished != nil {
			h.finished[rec.Call] = true
		}
		for i, c := range h.calls {
			if c.ID == rec.Call {
				h.calls = append(h.calls[:i:i], h.calls[i+1:]...)
				break
			}
		}
	case domain.AssistantSaid:
		for _, p := range rec.Parts {
			if h.told != nil {
				h.told[p.ID] = true
			}
		}
	case domain.Streamed, domain.PermissionGiven, domain.PlanSet, domain.TitleSet, domain.ClientEvent, domain.Compacted, domain.TurnFinished, domain.Unknown:
	}
}

// shown is what a client is told of a record: everything when it loads; what
// nobody was told when it resumes in the place of one that was lost.
func (h *history) shown(ctx context.Context, entry domain.Entry) []domain.Update {
	switch {
	case h.replay:
		return h.l.showAgain(ctx, h.row, domain.Replay(entry.Record))
	case h.missed == nil || entry.Seq <= h.missed.after || h.missed.knew(entry.Record):
		return nil
	}
	if said, ok := entry.Record.(domain.UserSaid); ok && !h.missed.said[said.ID] {
		return nil // it said that itself
	}
	if said, ok := entry.Record.(domain.AssistantSaid); ok {
		return domain.Replay(h.cut(said))
	}
	return h.l.showAgain(ctx, h.row, domain.Replay(entry.Record))
}

// cut takes away what was told of a reply before.
func (h *history) cut(said domain.AssistantSaid) domain.AssistantSaid {
	var rest []domain.MessagePart
	for _, p := range said.Parts {
		told := h.missed.texts[textOf{message: p.ID, thought: p.Thought}]
		if p.Text = p.Text[min(told, len(p.Text)):]; p.Text != "" {
			rest = append(rest, p)
		}
	}
	said.Parts = rest
	return said
}

// now is what the journal does not tell: the calls that are open, for who was
// told nothing of them; the tail, as far as it was not journalled meanwhile;
// and the session's state.
func (h *history) now(t *tail) []domain.Update {
	var ups []domain.Update
	if !h.replay && h.missed == nil {
		for _, c := range h.calls {
			ups = append(ups, c)
		}
	}
	for _, i := range t.items {
		c, changed := i.u.(domain.CallChanged)
		_, opened := i.u.(domain.CallOpened)
		switch {
		case opened:
			continue // the journal has it
		case h.told[i.text.message], changed && h.finished[c.ID]:
			continue // so it has by now
		case i.said != nil && !h.replay && h.missed == nil:
			continue // it goes on behind what the client before was told
		}
		if u := h.since(i); u != nil {
			ups = append(ups, u)
		}
	}
	return append(ups, h.conv.State()...)
}

// since is an item of the tail as far as the client before was not told of it;
// nil when it was of all.
func (h *history) since(i *tailItem) domain.Update {
	if h.missed == nil {
		return i.update(0)
	}
	before, known := h.missed.items[i]
	changed, ok := i.u.(domain.CallChanged)
	switch {
	case i.said != nil, !known:
		return i.update(h.missed.texts[i.text])
	case ok && before.changes != i.changes:
		if changed.Status == before.u.(domain.CallChanged).Status {
			changed.Status = ""
		}
		return changed
	}
	return nil
}
