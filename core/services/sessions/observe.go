package sessions

import (
	"context"
	"slices"

	"github.com/berth-dev/berth/core/domain"
	"github.com/berth-dev/berth/core/ports"
)

// Observe lets a client see what goes on in a session that it does not have:
// every update, also the prompts, and those that wait. With replay it is sent
// the history first. Any number of clients may observe; none of them holds up
// a turn. The task ends when what came before was sent, or queued; what goes on
// is told after answered is closed.
func (s *Service) Observe(c ports.Client, id domain.SessionID, replay bool, answered <-chan struct{}) (func(context.Context) (domain.OpenedSession, error), error) {
	if !id.Valid() {
		return nil, domain.NoSession(id)
	}
	return func(ctx context.Context) (domain.OpenedSession, error) {
		row, err := s.p.Sessions.Load(ctx, id)
		if err != nil {
			return domain.OpenedSession{}, err
		}
		if !c.Info().Rights.Session(row) {
			return domain.OpenedSession{}, denied(id)
		}
		w := newWatcher(c, id, answered)
		before, err := s.enrol(w)
		if err != nil {
			return domain.OpenedSession{}, err
		}
		opened, err := s.beginWatching(ctx, w, before, row, replay)
		if err != nil {
			s.unwatch(id, only(w))
			close(w.over) // it was not started
		}
		return opened, err
	}, nil
}

// beginWatching is startWatching behind what the client's watchers before were
// told. It ends with the watcher's time.
func (s *Service) beginWatching(ctx context.Context, w *watcher, before []*watcher, row domain.Session, replay bool) (domain.OpenedSession, error) {
	within, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(w.ctx, func() { cancel(unwatched(w.id)) })()
	err := over(within, before)
	var opened domain.OpenedSession
	if err == nil {
		opened, err = s.startWatching(within, w, row, replay)
	}
	if err != nil && ctx.Err() == nil && w.ctx.Err() != nil {
		err = unwatched(w.id)
	}
	return opened, err
}

// by selects the watchers of a client, only a single one.
func by(c ports.Client) func(*watcher) bool { return func(w *watcher) bool { return w.client == c } }
func only(w *watcher) func(*watcher) bool   { return func(other *watcher) bool { return other == w } }

// over returns when nothing more is told to watchers whose time has ended, so
// that what their client is told next comes behind it.
func over(ctx context.Context, list []*watcher) error {
	for _, w := range list {
		if err := waitFor(ctx, w.over); err != nil {
			return err
		}
	}
	return nil
}

// enrol makes a watcher known, in place of one that its client had of the
// session, so that nothing happens unnoticed before it is started. It returns
// those.
func (s *Service) enrol(w *watcher) (before []*watcher, err error) {
	s.reg.mu.Lock()
	defer s.reg.mu.Unlock()
	if s.reg.ended {
		return nil, errEnding()
	}
	if sl := s.reg.slots[w.id]; sl != nil && (sl.client == w.client || sl.next == w.client) {
		return nil, domain.Errorf(domain.InvalidArgument, "Session %s is this client's own, so it is told everything already", w.id).
			With("sessionId", string(w.id))
	}
	before = s.unwatchLocked(w.id, by(w.client))
	s.reg.watchers[w.id] = append(slices.Clip(s.reg.watchers[w.id]), w)
	return before, nil
}

// startWatching sends or queues what came before, and starts the watcher at
// exactly that place.
func (s *Service) startWatching(ctx context.Context, w *watcher, row domain.Session, replay bool) (domain.OpenedSession, error) {
	opened := domain.OpenedSession{Session: row}
	if agent, err := s.owner(row.Agent); err == nil {
		opened.Agent, opened.Model = agent, s.p.Models.Describe(agent.Model)
	}
	h := &history{row: row, conv: domain.NewConversation(row.Start), replay: replay}
	send := func(u domain.Update) error {
		if w.ctx.Err() != nil {
			return unwatched(w.id)
		}
		return w.client.Send(ctx, w.id, u)
	}
	for {
		s.reg.mu.Lock()
		w.disturbed = false
		sl := s.reg.slots[w.id]
		s.reg.mu.Unlock()
		h.l = newLive(s, w.id, nil)
		if sl != nil {
			h.l = sl.live
		}
		if err := h.read(ctx, send); err != nil {
			return opened, err
		}
		admitted, ok, err := s.startAt(ctx, w, h, sl)
		if err != nil {
			return opened, err
		}
		if ok {
			opened.Running, opened.Queued = admitted.Running, admitted.Queued
			return opened, nil
		}
	}
}

// startAt starts a watcher at the end of what is told now. It reports false
// when the session came into memory, or left it, meanwhile.
func (s *Service) startAt(ctx context.Context, w *watcher, h *history, sl *slot) (admitted domain.QueueChanged, ok bool, err error) {
	var first []domain.Update
	if sl != nil {
		f, err := sl.live.hold(ctx)
		if err != nil {
			return admitted, false, err
		}
		defer f.release()
		if err := h.read(ctx, func(u domain.Update) error { first = append(first, u); return nil }); err != nil {
			return admitted, false, err
		}
		first = append(first, h.now(&f.tail)...)
	} else {
		first = h.now(&tail{})
	}
	s.reg.mu.Lock()
	defer s.reg.mu.Unlock()
	if s.reg.slots[w.id] != sl || sl == nil && w.disturbed || sl != nil && sl.released {
		return admitted, false, nil
	}
	if w.ctx.Err() != nil {
		return admitted, false, unwatched(w.id)
	}
	w.begin(first)
	w.started = true
	if sl != nil {
		sl.live.att.watch(s.reg.watching(w.id))
		admitted = sl.admitted()
	}
	s.chores.do(func() {
		defer close(w.over)
		w.run()
		s.unwatch(w.id, only(w))
	})
	return admitted, true, nil
}

// unwatched is how an observation ends that was ended before it had begun.
func unwatched(id domain.SessionID) *domain.Error {
	return domain.Errorf(domain.Cancelled, "The observation of session %s was ended before it had begun", id).With("sessionId", string(id))
}

// watching returns the watchers of a session that are told what goes on. The
// caller holds the mutex.
func (r *registry) watching(id domain.SessionID) []*watcher {
	var list []*watcher
	for _, w := range r.watchers[id] {
		if w.started {
			list = append(list, w)
		}
	}
	return list
}

// Unobserve ends an observation. It reports whether there was one, and does not
// wait: rest returns when nothing more is told of it, or with the cause of its
// context.
func (s *Service) Unobserve(c ports.Client, id domain.SessionID) (rest func(context.Context) error, was bool) {
	list := s.unwatch(id, by(c))
	return func(ctx context.Context) error { return over(ctx, list) }, len(list) > 0
}

func (s *Service) unwatch(id domain.SessionID, drop func(*watcher) bool) []*watcher {
	s.reg.mu.Lock()
	defer s.reg.mu.Unlock()
	return s.unwatchLocked(id, drop)
}

// unwatchLocked ends the observations of a session that drop names, and returns
// those that were under way. The caller holds the registry's mutex.
func (s *Service) unwatchLocked(id domain.SessionID, drop func(*watcher) bool) (dropped []*watcher) {
	var kept []*watcher
	for _, w := range s.reg.watchers[id] {
		if drop(w) {
			w.cancel()
			dropped = append(dropped, w)
			continue
		}
		kept = append(kept, w)
	}
	if len(dropped) == 0 {
		return nil
	}
	s.reg.watchers[id] = kept
	if len(kept) == 0 {
		delete(s.reg.watchers, id)
	}
	if sl := s.reg.slots[id]; sl != nil {
		sl.live.att.watch(s.reg.watching(id))
	}
	return dropped
}

// unwatchAll ends what a client observes, or with nil what anybody does. The
// caller holds the registry's mutex.
func (s *Service) unwatchAll(c ports.Client) {
	for id := range s.reg.watchers {
		s.unwatchLocked(id, func(w *watcher) bool { return c == nil || w.client == c })
	}
}
