package sessions

import (
	"cmp"
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
	row, found, err := s.named(ctx, req)
	switch {
	case err != nil:
		return domain.OpenedSession{}, err
	case found:
		return s.reopen(ctx, c, row, req)
	case req.RequireExisting:
		return domain.OpenedSession{}, domain.Errorf(domain.SessionNotFound,
			"No session has the key or label %q, and requireExisting forbids creating one", cmp.Or(req.Label, req.Key))
	}
	opened, err := s.create(ctx, c, req)
	if domain.HasCode(err, domain.Conflict) {
		if row, found, again := s.named(ctx, req); again == nil && found {
			return s.reopen(ctx, c, row, req) // somebody else created it just now
		}
	}
	return opened, err
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

// reopen serves session/new for a key or label that exists. When another call
// of the same client is opening the session, it waits for that one.
func (s *Service) reopen(ctx context.Context, c ports.Client, row domain.Session, req domain.NewSession) (domain.OpenedSession, error) {
	if !c.Info().Rights.Session(row) {
		return domain.OpenedSession{}, denied(row.ID)
	}
	if alias := cmp.Or(req.Agent, keyAgent(req.Key)); alias != "" && alias != row.Agent {
		return domain.OpenedSession{}, domain.Errorf(domain.InvalidArgument,
			"The session %q belongs to agent %q, not %q", cmp.Or(row.Label, row.Key), row.Agent, alias)
	}
	for {
		p, other, err := s.claim(c, row.ID, req.Takeover)
		if err == nil {
			open := domain.OpenSession{ID: row.ID, Dirs: req.Dirs, Takeover: req.Takeover, Answered: req.Answered}
			return s.finishOpening(ctx, p, storedRequest{OpenSession: open, reset: req.Reset, silent: true})
		}
		if other == nil {
			return domain.OpenedSession{}, err
		}
		if err := waitFor(ctx, other); err != nil {
			return domain.OpenedSession{}, err
		}
	}
}

// create makes a session that does not exist. Conflict when its key or label
// was taken meanwhile.
func (s *Service) create(ctx context.Context, c ports.Client, req domain.NewSession) (domain.OpenedSession, error) {
	agent, err := s.choose(c, req)
	if err != nil {
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
	row, err := s.p.Roots.Resolve(ctx, agent, req.Dirs)
	if err != nil {
		return domain.OpenedSession{}, s.hide(c, req.Dirs, err)
	}
	if err := mayHave(c, row); err != nil {
		return domain.OpenedSession{}, err
	}
	s.fill(&row, agent, req)
	sl, err := s.reserve(c, row.ID)
	if err != nil {
		return domain.OpenedSession{}, err
	}
	if err := sl.live.create(ctx, row); err != nil {
		s.drop(ctx, sl)
		return domain.OpenedSession{}, err
	}
	if _, ok := s.settle(sl); !ok {
		s.drop(ctx, sl)
		return domain.OpenedSession{}, closedWhileOpening(row.ID)
	}
	s.p.Observer.Observe(ctx, domain.SessionOpened{Session: row.ID, How: "new"})
	return domain.OpenedSession{Session: row, Agent: agent, Model: info, Posture: posture, Created: true, Notes: s.notes(posture), Commands: domain.Commands()}, nil
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
	row.Key = cmp.Or(req.Key, "acp:"+string(row.ID))
	row.Label, row.Agent, row.Client, row.Parent = req.Label, agent.Alias, req.Client, req.Parent
	row.CreatedAt = s.stamp()
	row.UpdatedAt = row.CreatedAt
}

// create stores a new session and opens its tools. A session that cannot be
// opened is removed again: nobody was told of it.
func (l *Live) create(ctx context.Context, row domain.Session) error {
	if err := l.lock.Acquire(ctx); err != nil {
		return err
	}
	defer l.lock.Release()
	if err := l.svc.p.Sessions.Create(ctx, row); err != nil {
		return err
	}
	err := l.lease(ctx)
	if err == nil {
		err = l.enter(ctx, row, domain.NewConversation(0))
	}
	if err == nil || domain.HasCode(err, domain.SessionActive) {
		return err
	}
	undoing, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseLimit)
	defer cancel()
	if derr := l.svc.p.Sessions.Delete(undoing, row.ID); derr != nil {
		l.svc.trouble(undoing, row.ID, "sessions: remove a session that did not open", derr)
	}
	return err
}

// notes are what every client should know about its sessions here.
func (s *Service) notes(p domain.Posture) []string {
	var notes []string
	if !s.Durable() {
		notes = append(notes, "Sessions are not saved: they end with this process. The agent's log says why.")
	}
	if p.Word == domain.PostureNone {
		notes = append(notes, "There is no sandbox here ("+p.Reason+"), so every command is asked about.")
	}
	return notes
}

// confined returns how the agent's commands are held. An agent that asks
// nobody does not start where nothing holds them.
func (s *Service) confined(ctx context.Context, c ports.Client, agent domain.Agent) (domain.Posture, error) {
	posture := s.p.Sandbox.Posture(ctx, agent.Alias)
	if posture.Word == domain.PostureNone && c.Info().Rights.Cap(agent.Policy.Level) == domain.LevelFull {
		return posture, domain.Errorf(domain.InvalidArgument,
			"Agent %q asks nobody (level full), and nothing confines its commands here: %s. Mend that, choose another level, "+
				"or set the profile's sandbox to \"none\" to run them unconfined", agent.Alias, posture.Reason)
	}
	return posture, nil
}
