package sessions

import (
	"context"
	"strings"

	"github.com/berth-dev/berth/core/domain"
	"github.com/berth-dev/berth/core/ports"
)

// Bounds on names a client may choose for a session, in bytes.
const (
	maxKey   = 256
	maxLabel = 200
)

// New opens a new session for c, or the stored one that the key or label
// names.
func (s *Service) New(ctx context.Context, c ports.Client, req domain.NewSession) (domain.OpenedSession, error) {
	if err := checkNames(req); err != nil {
		return domain.OpenedSession{}, err
	}
	if row, found, err := s.named(ctx, req); err != nil {
		return domain.OpenedSession{}, err
	} else if found {
		return s.reopen(ctx, c, row, req)
	}
	if req.RequireExisting {
		return domain.OpenedSession{}, domain.Errorf(domain.SessionNotFound,
			"No session has the key or label %q, and requireExisting forbids creating one", firstOf(req.Label, req.Key))
	}
	agent, err := s.choose(req)
	if err != nil {
		return domain.OpenedSession{}, err
	}
	info, err := s.model(ctx, agent)
	if err != nil {
		return domain.OpenedSession{}, err
	}
	row, err := s.p.Roots.Resolve(ctx, agent, req.Dirs)
	if err != nil {
		return domain.OpenedSession{}, err
	}
	s.fill(&row, agent, req)
	sl, err := s.reserve(c, row.ID)
	if err != nil {
		return domain.OpenedSession{}, err
	}
	if err := s.create(ctx, sl, row); err != nil {
		s.drop(ctx, sl)
		if other, found, ferr := s.named(ctx, req); domain.HasCode(err, domain.Conflict) && ferr == nil && found {
			return s.reopen(ctx, c, other, req) // somebody else created it just now
		}
		return domain.OpenedSession{}, err
	}
	if !s.settle(sl, true) {
		s.drop(ctx, sl)
		return domain.OpenedSession{}, closedWhileOpening(row.ID)
	}
	s.p.Observer.Observe(ctx, domain.SessionOpened{Session: row.ID, How: "new"})
	return domain.OpenedSession{Session: row, Agent: agent, Model: info, Created: true}, nil
}

func checkNames(req domain.NewSession) error {
	switch {
	case len(req.Key) > maxKey:
		return domain.Errorf(domain.InvalidArgument, "The session key is longer than %d bytes", maxKey)
	case len(req.Label) > maxLabel:
		return domain.Errorf(domain.InvalidArgument, "The session label is longer than %d bytes", maxLabel)
	case strings.ContainsAny(req.Key, "\x00\n\r") || strings.ContainsAny(req.Label, "\x00\n\r"):
		return domain.Errorf(domain.InvalidArgument, "Session keys and labels are one line of text")
	}
	return nil
}

// named finds the stored session that the request names. A label beats a key.
func (s *Service) named(ctx context.Context, req domain.NewSession) (domain.Session, bool, error) {
	for _, q := range []domain.SessionQuery{{Label: req.Label}, {Key: req.Key}} {
		if q.Label == "" && q.Key == "" {
			continue
		}
		q.All, q.Limit = true, 1
		page, err := s.p.Sessions.List(ctx, q)
		if err != nil {
			return domain.Session{}, false, err
		}
		if len(page.Sessions) == 1 {
			return page.Sessions[0], true, nil
		}
	}
	return domain.Session{}, false, nil
}

// reopen serves session/new for a key or label that exists.
func (s *Service) reopen(ctx context.Context, c ports.Client, row domain.Session, req domain.NewSession) (domain.OpenedSession, error) {
	if alias := firstOf(req.Agent, keyAgent(req.Key)); alias != "" && alias != row.Agent {
		return domain.OpenedSession{}, domain.Errorf(domain.InvalidArgument,
			"The session %q belongs to agent %q, not %q", firstOf(row.Label, row.Key), row.Agent, alias)
	}
	open, err := s.Open(c, domain.OpenSession{ID: row.ID, Dirs: req.Dirs})
	if err != nil {
		return domain.OpenedSession{}, err
	}
	opened, err := open(ctx)
	if err != nil || !req.Reset {
		return opened, err
	}
	if err := s.reset(ctx, c, row.ID); err != nil {
		return domain.OpenedSession{}, err
	}
	return opened, nil
}

// reset gives an idle session a fresh transcript under the same id.
func (s *Service) reset(ctx context.Context, c ports.Client, id domain.SessionID) error {
	s.reg.mu.Lock()
	sl := s.reg.slots[id]
	s.reg.mu.Unlock()
	if sl == nil || sl.client != c {
		return domain.NoSession(id)
	}
	l := sl.live
	if err := l.acquire(ctx); err != nil {
		return err
	}
	defer l.unlock()
	start := l.conv.Seq()
	err := s.p.Sessions.Update(ctx, id, func(row *domain.Session) error {
		row.Start, row.Title = start, ""
		return nil
	})
	if err != nil {
		return err
	}
	l.row.Start, l.row.Title = start, ""
	l.conv = domain.NewConversation(start)
	return nil
}

func (s *Service) model(ctx context.Context, agent domain.Agent) (domain.ModelInfo, error) {
	m, err := s.p.Models.Open(ctx, agent.Model)
	if err != nil {
		return domain.ModelInfo{}, err
	}
	return m.Info(), nil
}

// fill completes a row whose directories are resolved.
func (s *Service) fill(row *domain.Session, agent domain.Agent, req domain.NewSession) {
	row.ID = domain.SessionID(s.p.IDs())
	row.Key = req.Key
	if row.Key == "" {
		row.Key = "acp:" + string(row.ID)
	}
	row.Label, row.Agent, row.Client, row.Parent = req.Label, agent.Alias, req.Client, req.Parent
	row.CreatedAt = s.stamp()
	row.UpdatedAt = row.CreatedAt
}

func (s *Service) create(ctx context.Context, sl *slot, row domain.Session) error {
	l := sl.live
	if err := l.acquire(ctx); err != nil {
		return err
	}
	defer l.unlock()
	if err := s.p.Sessions.Create(ctx, row); err != nil {
		return err
	}
	if err := s.p.Leases.Acquire(ctx, row.ID); err != nil {
		return err
	}
	return l.enter(ctx, row, &domain.Conversation{})
}

// drop undoes a reservation.
func (s *Service) drop(ctx context.Context, sl *slot) {
	sl.live.unload(context.WithoutCancel(ctx))
	s.reg.mu.Lock()
	defer s.reg.mu.Unlock()
	if s.reg.slots[sl.id] == sl {
		delete(s.reg.slots, sl.id)
	}
	if sl.state == closing && sl.empty != nil && len(sl.queue) == 0 {
		sl.closeEmpty()
	}
}

func closedWhileOpening(id domain.SessionID) error {
	return domain.Errorf(domain.SessionNotFound, "Session %s was closed while it was being opened", id).With("sessionId", string(id))
}

// Open reserves a stored session for c, in memory, and returns the task that
// opens it. With Replay the task sends the whole history to c, in order, and
// the state as of now last, before it returns.
func (s *Service) Open(c ports.Client, req domain.OpenSession) (func(context.Context) (domain.OpenedSession, error), error) {
	if !req.ID.Valid() {
		return nil, domain.NoSession(req.ID)
	}
	sl, again, err := s.claim(c, req)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context) (domain.OpenedSession, error) {
		opened, err := s.open(ctx, sl, req)
		switch {
		case err != nil && again && s.settle(sl, true):
			return domain.OpenedSession{}, err
		case err != nil:
			s.drop(ctx, sl)
			return domain.OpenedSession{}, err
		case !s.settle(sl, true):
			s.drop(ctx, sl)
			return domain.OpenedSession{}, closedWhileOpening(req.ID)
		}
		how := "resume"
		if req.Replay {
			how = "load"
		}
		s.p.Observer.Observe(ctx, domain.SessionOpened{Session: req.ID, How: how})
		return opened, nil
	}, nil
}

// claim finds or reserves the slot. again says that it was active here.
func (s *Service) claim(c ports.Client, req domain.OpenSession) (sl *slot, again bool, err error) {
	s.reg.mu.Lock()
	defer s.reg.mu.Unlock()
	sl = s.reg.slots[req.ID]
	switch {
	case sl == nil:
		sl, err = s.reserveLocked(c, req.ID)
		return sl, false, err
	case sl.client != c:
		return nil, false, domain.Errorf(domain.SessionActive,
			"Session %s is in use by another client of this agent", req.ID).With("sessionId", string(req.ID))
	case sl.state != ready || len(sl.queue) > 0:
		return nil, false, domain.Errorf(domain.SessionActive,
			"Session %s is active: wait for its running call to be answered, or cancel it", req.ID).With("sessionId", string(req.ID))
	}
	sl.state = opening
	sl.stopIdle()
	return sl, true, nil
}

// open reads the session and makes it usable.
func (s *Service) open(ctx context.Context, sl *slot, req domain.OpenSession) (domain.OpenedSession, error) {
	l := sl.live
	if err := l.acquire(ctx); err != nil {
		return domain.OpenedSession{}, err
	}
	defer l.unlock()
	row, err := s.p.Sessions.Load(ctx, req.ID)
	if err != nil {
		return domain.OpenedSession{}, err
	}
	agent, err := s.owner(row.Agent)
	if err != nil {
		return domain.OpenedSession{}, err
	}
	info, err := s.model(ctx, agent)
	if err != nil {
		return domain.OpenedSession{}, err
	}
	if err := s.p.Leases.Acquire(ctx, req.ID); err != nil {
		return domain.OpenedSession{}, err
	}
	fresh := l.conv == nil
	opened, err := s.enterWith(ctx, l, row, agent, req)
	if err != nil {
		if fresh {
			_ = s.p.Leases.Release(context.WithoutCancel(ctx), req.ID)
		}
		return domain.OpenedSession{}, err
	}
	opened.Agent, opened.Model = agent, info
	if agent.Alias != row.Agent {
		opened.Notes = append(opened.Notes, "The session's agent "+row.Agent+" is not available; "+agent.Alias+" goes on in its place.")
	}
	return opened, nil
}

// enterWith applies the request's directories, reads and replays the journal,
// and opens the tools.
func (s *Service) enterWith(ctx context.Context, l *Live, row domain.Session, agent domain.Agent, req domain.OpenSession) (domain.OpenedSession, error) {
	dirs := req.Dirs
	if dirs.Cwd == "" {
		dirs.Cwd = row.Cwd
	}
	resolved, err := s.p.Roots.Resolve(ctx, agent, dirs)
	if err != nil {
		return domain.OpenedSession{}, err
	}
	if !sameRoots(row, resolved) {
		err := s.p.Sessions.Update(ctx, row.ID, func(r *domain.Session) error {
			r.Cwd, r.CwdGiven, r.Additional, r.Workspace = resolved.Cwd, resolved.CwdGiven, resolved.Additional, resolved.Workspace
			return nil
		})
		if err != nil {
			return domain.OpenedSession{}, err
		}
		row.Cwd, row.CwdGiven, row.Additional, row.Workspace = resolved.Cwd, resolved.CwdGiven, resolved.Additional, resolved.Workspace
	}
	l.row = row
	var see func(domain.Record) error
	if req.Replay {
		see = func(rec domain.Record) error { return sendAll(ctx, l, domain.Replay(rec)) }
	}
	conv, err := l.read(ctx, see)
	if err != nil {
		return domain.OpenedSession{}, err
	}
	if err := l.enter(ctx, row, conv); err != nil {
		return domain.OpenedSession{}, err
	}
	if req.Replay {
		if err := sendAll(ctx, l, conv.State()); err != nil {
			return domain.OpenedSession{}, err
		}
	}
	return domain.OpenedSession{Session: l.row}, nil
}

func sendAll(ctx context.Context, l *Live, ups []domain.Update) error {
	for _, u := range ups {
		if err := l.att.Send(ctx, l.id, u); err != nil {
			return err
		}
	}
	return nil
}

func firstOf(names ...string) string {
	for _, n := range names {
		if n != "" {
			return n
		}
	}
	return ""
}
