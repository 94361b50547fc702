package sessions

import (
	"context"
	"time"

	"github.com/berth-dev/berth/core/domain"
	"github.com/berth-dev/berth/core/ports"
)

// Close cancels the session's turns at once and returns the task that waits
// for them and frees the session. The record stays.
func (s *Service) Close(c ports.Client, id domain.SessionID) (func(context.Context) error, error) {
	return s.end(c, id, domain.SessionClosed, "close")
}

// Stop takes no more prompts and returns the task that lets the running turns
// finish and then frees the session. The record stays.
func (s *Service) Stop(c ports.Client, id domain.SessionID) (func(context.Context) error, error) {
	return s.end(c, id, nil, "stop")
}

// end moves the slot to closing, in memory.
func (s *Service) end(c ports.Client, id domain.SessionID, cause error, how string) (func(context.Context) error, error) {
	s.reg.mu.Lock()
	defer s.reg.mu.Unlock()
	sl := s.reg.slots[id]
	if sl == nil || sl.client != c {
		return nil, domain.NoSession(id)
	}
	s.shut(sl, cause, how)
	return func(ctx context.Context) error {
		select {
		case <-sl.empty:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		s.release(ctx, sl)
		return nil
	}, nil
}

// shut makes a slot take no more prompts and cancels what runs, with the
// registry's mutex held.
func (s *Service) shut(sl *slot, cause error, how string) {
	if sl.state != closing {
		wasReady := sl.state == ready
		sl.state, sl.how, sl.empty = closing, how, make(chan struct{})
		sl.stopIdle()
		if wasReady && len(sl.queue) == 0 {
			sl.closeEmpty()
		}
	}
	if cause != nil {
		sl.cancelAll(cause)
	}
}

func (sl *slot) closeEmpty() {
	select {
	case <-sl.empty:
	default:
		close(sl.empty)
	}
}

// releaseLimit bounds how long freeing a session waits for a store or a tool
// that hangs.
const releaseLimit = time.Second

// release frees a drained slot, once.
func (s *Service) release(ctx context.Context, sl *slot) {
	sl.once.Do(func() {
		freeing, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseLimit)
		defer cancel()
		sl.live.gone.Store(true)
		sl.live.unload(freeing)
		sl.live.att.detach()
		s.reg.mu.Lock()
		if s.reg.slots[sl.id] == sl {
			delete(s.reg.slots, sl.id)
		}
		s.reg.mu.Unlock()
		s.p.Observer.Observe(ctx, domain.SessionReleased{Session: sl.id, How: sl.how})
	})
}

// Detach ends what a gone client had: its turns are cancelled with the cause,
// and each of its sessions is freed when its last turn has ended.
func (s *Service) Detach(c ports.Client, cause error) {
	var drained []*slot
	s.reg.mu.Lock()
	for _, sl := range s.reg.slots {
		if sl.client != c {
			continue
		}
		s.shut(sl, cause, "disconnect")
		sl.abandoned = true
		select {
		case <-sl.empty:
			drained = append(drained, sl)
		default:
		}
	}
	s.reg.mu.Unlock()
	for _, sl := range drained {
		s.release(context.Background(), sl)
	}
}

// Shutdown takes no more work, cancels every turn, and returns when all
// sessions are free or the context ends.
func (s *Service) Shutdown(ctx context.Context, cause error) error {
	s.reg.mu.Lock()
	s.reg.ended = true
	var all []*slot
	for _, sl := range s.reg.slots {
		s.shut(sl, cause, "shutdown")
		all = append(all, sl)
	}
	s.reg.mu.Unlock()
	for _, sl := range all {
		select {
		case <-sl.empty:
			s.release(ctx, sl)
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// Delete closes the session if it is active on c and removes it, its journal
// and the uploads that no other session names.
func (s *Service) Delete(c ports.Client, id domain.SessionID) (func(context.Context) error, error) {
	if !id.Valid() {
		return nil, domain.NoSession(id)
	}
	s.reg.mu.Lock()
	sl := s.reg.slots[id]
	s.reg.mu.Unlock()
	var ended func(context.Context) error
	if sl != nil {
		if sl.client != c {
			return nil, domain.Errorf(domain.SessionActive,
				"Session %s is in use by another client of this agent", id).With("sessionId", string(id))
		}
		var err error
		if ended, err = s.end(c, id, domain.SessionClosed, "delete"); err != nil {
			return nil, err
		}
	}
	return func(ctx context.Context) error {
		if ended != nil {
			if err := ended(ctx); err != nil {
				return err
			}
		}
		return s.remove(ctx, id)
	}, nil
}

func (s *Service) remove(ctx context.Context, id domain.SessionID) error {
	row, err := s.p.Sessions.Load(ctx, id)
	if err != nil {
		return err
	}
	if err := s.p.Leases.Acquire(ctx, id); err != nil {
		return err
	}
	uploads, err := s.uploads(ctx, row)
	if err == nil && len(uploads) > 0 {
		uploads, err = s.unshared(ctx, row, uploads)
	}
	if err != nil {
		_ = s.p.Leases.Release(context.WithoutCancel(ctx), id)
		return err
	}
	if err := s.p.Sessions.Delete(ctx, id); err != nil {
		return err
	}
	_ = s.p.Leases.Release(context.WithoutCancel(ctx), id)
	var list []domain.Attachment
	for _, a := range uploads {
		list = append(list, a)
	}
	if err := s.p.Blobs.Remove(ctx, row, list); err != nil {
		s.trouble(ctx, id, "sessions: remove uploads", err)
	}
	return nil
}

// uploads returns the files a session's journal names, by path.
func (s *Service) uploads(ctx context.Context, row domain.Session) (map[string]domain.Attachment, error) {
	found := make(map[string]domain.Attachment)
	for entry, err := range s.p.Journal.Records(ctx, row.ID, 0) {
		if err != nil {
			return nil, err
		}
		said, ok := entry.Record.(domain.UserSaid)
		if !ok {
			continue
		}
		for _, b := range said.Blocks {
			if a, ok := b.(domain.Attachment); ok {
				found[a.Path] = a
			}
		}
	}
	return found, nil
}

// unshared leaves out the uploads that another session of the same directory
// names.
func (s *Service) unshared(ctx context.Context, row domain.Session, uploads map[string]domain.Attachment) (map[string]domain.Attachment, error) {
	q := domain.SessionQuery{Cwd: row.Cwd, All: true, Limit: 200}
	for len(uploads) > 0 {
		page, err := s.p.Sessions.List(ctx, q)
		if err != nil {
			return nil, err
		}
		for _, other := range page.Sessions {
			if other.ID == row.ID {
				continue
			}
			theirs, err := s.uploads(ctx, other)
			if err != nil {
				return nil, err
			}
			for path := range theirs {
				delete(uploads, path)
			}
		}
		if page.Next == nil {
			break
		}
		q.After = page.Next
	}
	return uploads, nil
}
