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
		if err := s.enrol(w); err != nil {
			return domain.OpenedSession{}, err
		}
		opened, err := s.startWatching(ctx, w, row, replay)
		if err != nil {
			s.unwatch(id, func(other *watcher) bool { return other == w })
		}
		return opened, err
	}, nil
}

// enrol makes a watcher known, in place of one that its client had of the
// session, so that nothing happens unnoticed before it is started.
func (s *Service) enrol(w *watcher) error {
	s.reg.mu.Lock()
	defer s.reg.mu.Unlock()
	if s.reg.ended {
		return errEnding()
	}
	if sl := s.reg.slots[w.id]; sl != nil && (sl.client == w.client || sl.next == w.client) {
		return domain.Errorf(domain.InvalidArgument, "Session %s is this client's own, so it is told everything already", w.id).
			With("sessionId", string(w.id))
	}
	s.unwatchLocked(w.id, func(other *watcher) bool { return other.client == w.client })
	s.reg.watchers[w.id] = append(slices.Clip(s.reg.watchers[w.id]), w)
	return nil
}

// startWatching sends or queues what came before, and starts the watcher at
// exactly that place.
func (s *Service) startWatching(ctx context.Context, w *watcher, row domain.Session, replay bool) (domain.OpenedSession, error) {
	opened := domain.OpenedSession{Session: row}
	h := &history{row: row, conv: domain.NewConversation(row.Start), replay: replay}
	send := func(u domain.Update) error { return w.client.Send(ctx, w.id, u) }
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
			if agent, err := s.owner(row.Agent); err == nil {
				opened.Agent, opened.Model.Ref = agent, agent.Model
			}
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
		return admitted, false, domain.Disconnected // it was taken away meanwhile
	}
	w.begin(first)
	w.started = true
	if sl != nil {
		sl.live.att.watch(s.reg.watching(w.id))
		admitted = sl.admitted()
	}
	s.chores.do(func() {
		w.run()
		s.unwatch(w.id, func(other *watcher) bool { return other == w })
	})
	return admitted, true, nil
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

// Unobserve ends an observation. It reports whether there was one.
func (s *Service) Unobserve(c ports.Client, id domain.SessionID) bool {
	return s.unwatch(id, func(w *watcher) bool { return w.client == c }) > 0
}

func (s *Service) unwatch(id domain.SessionID, drop func(*watcher) bool) int {
	s.reg.mu.Lock()
	defer s.reg.mu.Unlock()
	return s.unwatchLocked(id, drop)
}

// unwatchLocked ends the observations of a session that drop names. The caller
// holds the registry's mutex.
func (s *Service) unwatchLocked(id domain.SessionID, drop func(*watcher) bool) int {
	var kept []*watcher
	all := s.reg.watchers[id]
	for _, w := range all {
		if drop(w) {
			w.cancel()
			continue
		}
		kept = append(kept, w)
	}
	if len(kept) == len(all) {
		return 0
	}
	s.reg.watchers[id] = kept
	if len(kept) == 0 {
		delete(s.reg.watchers, id)
	}
	if sl := s.reg.slots[id]; sl != nil {
		sl.live.att.watch(s.reg.watching(id))
	}
	return len(all) - len(kept)
}

// unwatchAll ends what a client observes, or with nil what anybody does. The
// caller holds the registry's mutex.
func (s *Service) unwatchAll(c ports.Client) {
	for id := range s.reg.watchers {
		s.unwatchLocked(id, func(w *watcher) bool { return c == nil || w.client == c })
	}
}
