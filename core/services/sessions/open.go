package sessions

import (
	"context"
	"slices"

	"github.com/berth-dev/berth/core/domain"
	"github.com/berth-dev/berth/core/ports"
)

// storedRequest is what opening a stored session asks for: what a client may
// say of a session's id, and what only session/new says of its key.
type storedRequest struct {
	domain.OpenSession
	reset bool // begin a fresh transcript
	// silent sends nothing: the client does not know the session's id yet.
	silent bool
}

// Open reserves a stored session for c, in memory, and returns the task that
// opens it. With Replay the task sends the whole history to c, in order, and
// the state as of now last, before it returns. A session whose client was lost
// may be opened while its turn runs; one that another client has only when the
// request says so.
func (s *Service) Open(c ports.Client, req domain.OpenSession) (func(context.Context) (domain.OpenedSession, error), error) {
	if !req.ID.Valid() {
		return nil, domain.NoSession(req.ID)
	}
	if !s.foreign(c, req.ID) {
		return s.reserveStored(c, req)
	}
	return func(ctx context.Context) (domain.OpenedSession, error) {
		if err := s.mayTouch(ctx, c, req.ID); err != nil {
			return domain.OpenedSession{}, err
		}
		run, err := s.reserveStored(c, req)
		if err != nil {
			return domain.OpenedSession{}, err
		}
		return run(ctx)
	}, nil
}

// reserveStored is Open for a client whose rights do not matter, or were seen.
func (s *Service) reserveStored(c ports.Client, req domain.OpenSession) (func(context.Context) (domain.OpenedSession, error), error) {
	p, gone, err := s.claim(c, req.ID, req.Takeover)
	if err != nil && !p.leaving {
		return nil, err
	}
	return func(ctx context.Context) (domain.OpenedSession, error) {
		for p.leaving {
			if err := waitFor(ctx, gone); err != nil {
				return domain.OpenedSession{}, err
			}
			if p, gone, err = s.claim(c, req.ID, req.Takeover); err != nil && !p.leaving {
				return domain.OpenedSession{}, err
			}
		}
		return s.finishOpening(ctx, p, storedRequest{OpenSession: req})
	}, nil
}

// finishOpening opens a session whose place was claimed.
func (s *Service) finishOpening(ctx context.Context, p place, req storedRequest) (domain.OpenedSession, error) {
	err := over(ctx, p.watched)
	var opened domain.OpenedSession
	if err == nil {
		opened, err = s.open(ctx, p, req)
	}
	if err != nil && p.again && s.unclaim(p.slot, p.client, p.own) {
		return domain.OpenedSession{}, err // it was active, and is as it was
	}
	if err != nil {
		s.drop(ctx, p.slot)
		return domain.OpenedSession{}, err
	}
	admitted, ok := s.settle(p.slot)
	if !ok {
		s.drop(ctx, p.slot)
		return domain.OpenedSession{}, closedWhileOpening(req.ID)
	}
	opened.Running, opened.Queued = admitted.Running, admitted.Queued
	s.p.Observer.Observe(ctx, domain.SessionOpened{Session: req.ID, How: req.how()})
	return opened, nil
}

func (r storedRequest) how() string {
	switch {
	case r.reset:
		return "reset"
	case r.Replay:
		return "load"
	}
	return "resume"
}

func closedWhileOpening(id domain.SessionID) error {
	return domain.Errorf(domain.SessionNotFound, "Session %s was closed while it was being opened", id).With("sessionId", string(id))
}

// place is a claimed slot, opening.
type place struct {
	slot   *slot
	client ports.Client // who claimed it
	again  bool         // the session was active here
	own    bool         // and it was the same client's
	// watched are the client's observations of the session, which end: it will
	// be told everything.
	watched []*watcher
	// leaving means that nothing was claimed yet: the session's client is gone
	// and it is about to be freed.
	leaving bool
}

// claim finds or reserves the slot. When another call of the same client is
// opening the session, or one that is gone is leaving it, the error comes with
// what closes when that is done.
func (s *Service) claim(c ports.Client, id domain.SessionID, takeover bool) (p place, other <-chan struct{}, err error) {
	s.reg.mu.Lock()
	defer s.reg.mu.Unlock()
	sl := s.reg.slots[id]
	switch {
	case s.reg.ended:
		return place{}, nil, errEnding()
	case sl == nil:
		if sl, err = s.reserveLocked(c, id); err != nil {
			return place{}, nil, err
		}
		return place{slot: sl, client: c, watched: s.unwatchLocked(id, by(c))}, nil, nil
	case sl.client != c && sl.state == closing && sl.how == "disconnect":
		return place{leaving: true}, sl.gone, errTaken(id)
	case sl.client != c && (sl.state != ready || sl.client != nil && !takeover && !s.reg.absent.is(sl.client)):
		return place{}, nil, errTaken(id)
	case sl.client != c:
		if err := s.withinLimit(c); err != nil {
			return place{}, nil, err
		}
	case sl.state != ready || len(sl.queue) > 0:
		if sl.state == opening {
			other = sl.opened
		}
		return place{}, other, domain.Errorf(domain.SessionActive,
			"Session %s is active: wait for its running call to be answered, or cancel it", id).With("sessionId", string(id))
	}
	p = place{slot: sl, client: c, again: true, own: sl.client == c, watched: s.unwatchLocked(id, by(c))}
	sl.state, sl.next, sl.opened = opening, c, make(chan struct{})
	sl.stopIdle()
	sl.stopGrace()
	return p, nil, nil
}

// open reads the session and makes it usable.
func (s *Service) open(ctx context.Context, p place, req storedRequest) (domain.OpenedSession, error) {
	s.reg.mu.Lock()
	stray, busy := p.slot.stray, len(p.slot.queue) > 0
	s.reg.mu.Unlock()
	if busy {
		return s.join(ctx, p, req)
	}
	if err := waitFor(ctx, stray); err != nil {
		return domain.OpenedSession{}, err
	}
	for _, answered := range req.After {
		if err := waitFor(ctx, answered); err != nil {
			return domain.OpenedSession{}, err
		}
	}
	l := p.slot.live
	f, err := l.take(ctx, p.client)
	if err != nil {
		return domain.OpenedSession{}, err
	}
	missed := f.lost()
	f.release()
	if err := l.lock.Acquire(ctx); err != nil {
		return domain.OpenedSession{}, err
	}
	defer l.lock.Release()
	opened, err := s.describe(ctx, p.client, req.ID)
	if err != nil {
		return domain.OpenedSession{}, err
	}
	if err := l.lease(ctx); err != nil {
		return domain.OpenedSession{}, err
	}
	before := l.att.attach(p.client, req)
	if err := l.open(ctx, p.client, opened.Session, opened.Agent, req, missed); err != nil {
		if l.conv == nil {
			l.unlease(context.WithoutCancel(ctx))
		}
		l.doubtful = true // the journal or the row may have changed on the way
		l.att.restore(before)
		return domain.OpenedSession{}, err
	}
	s.tellTaken(before, p.client, req.ID)
	opened.Session = l.row
	return opened, nil
}

// describe reads what is said of a stored session when it is opened, if the
// client may have it.
func (s *Service) describe(ctx context.Context, c ports.Client, id domain.SessionID) (domain.OpenedSession, error) {
	row, err := s.p.Sessions.Load(ctx, id)
	if err != nil {
		return domain.OpenedSession{}, err
	}
	agent, err := s.owner(row.Agent)
	if err != nil {
		return domain.OpenedSession{}, err
	}
	if err := mayUse(c, row, agent); err != nil {
		return domain.OpenedSession{}, err
	}
	info, err := s.model(ctx, agent)
	if err != nil {
		return domain.OpenedSession{}, err
	}
	posture, err := s.confined(ctx, c, agent)
	if err != nil {
		return domain.OpenedSession{}, err
	}
	opened := domain.OpenedSession{Session: row, Agent: agent, Model: info, Posture: posture, Notes: s.notes(posture), Commands: domain.Commands()}
	if agent.Alias != row.Agent {
		opened.Notes = append(opened.Notes, "The session's agent "+row.Agent+" is not available; "+agent.Alias+" goes on in its place.")
	}
	return opened, nil
}

// resolve finds the directories that a request asks for, those of the session
// where it names none, if the client may have them.
func (s *Service) resolve(ctx context.Context, c ports.Client, row domain.Session, agent domain.Agent, dirs domain.Directories) (domain.Session, error) {
	if dirs.Cwd == "" {
		dirs.Cwd = row.Cwd
	}
	resolved, err := s.p.Roots.Resolve(ctx, agent, dirs)
	if err != nil {
		return domain.Session{}, s.hide(c, dirs, err)
	}
	return resolved, mayHave(c, resolved)
}

// open reads and replays the journal, applies the request's directories and
// opens the tools, with the lock held. Of a journal that is not replayed the
// client is told what nobody was since the one before it was lost at missed,
// which may be nil.
func (l *Live) open(ctx context.Context, c ports.Client, row domain.Session, agent domain.Agent, req storedRequest, missed *mark) error {
	resolved, err := l.svc.resolve(ctx, c, row, agent, req.Dirs)
	if err != nil {
		return err
	}
	var see func(domain.Entry) error
	if req.Replay || missed != nil && !req.silent {
		h := &history{l: l, row: row, replay: req.Replay, missed: missed}
		see = func(e domain.Entry) error { return l.sendAll(ctx, c, h.shown(ctx, e)) }
	}
	conv, err := l.read(ctx, row.Start, see)
	if err != nil {
		return err
	}
	if req.reset {
		conv = domain.NewConversation(conv.Seq())
	}
	change := func(r *domain.Session) error {
		r.Cwd, r.CwdGiven, r.Additional, r.Workspace = resolved.Cwd, resolved.CwdGiven, resolved.Additional, resolved.Workspace
		if req.reset {
			r.Start, r.Title = conv.Seq(), ""
		}
		return nil
	}
	if req.reset || !sameRoots(row, resolved) {
		if err := l.svc.p.Sessions.Update(ctx, row.ID, change); err != nil {
			return err
		}
		_ = change(&row)
	}
	if err := l.enter(ctx, row, conv); err != nil {
		return err
	}
	if see != nil {
		return l.sendAll(ctx, c, conv.State())
	}
	return nil
}

func (l *Live) sendAll(ctx context.Context, c ports.Client, ups []domain.Update) error {
	for _, u := range ups {
		if err := c.Send(ctx, l.id, u); err != nil {
			return err
		}
	}
	return nil
}

// sameRoots reports whether two rows name the same directories.
func sameRoots(a, b domain.Session) bool {
	return a.Cwd == b.Cwd && a.CwdGiven == b.CwdGiven && a.Workspace == b.Workspace && slices.Equal(a.Additional, b.Additional)
}
