package sessions

import (
	"context"

	"github.com/berth-dev/berth/core/domain"
	"github.com/berth-dev/berth/core/ports"
)

// Delete closes the session if it is active on c, or was on a client of the
// same name that was lost, and returns the task that removes it, its journal and the uploads that no other session names. Until
// the task is done nobody can open the session.
func (s *Service) Delete(c ports.Client, id domain.SessionID) (func(context.Context) error, error) {
	if !id.Valid() {
		return nil, domain.NoSession(id)
	}
	s.reg.mu.Lock()
	defer s.reg.mu.Unlock()
	sl := s.reg.slots[id]
	switch {
	case sl == nil:
		sl = s.placeholder(c, id)
	case sl.client != c && (sl.client != nil || sl.next != nil || !sl.live.att.heldBy(c)):
		return func(ctx context.Context) error {
			if err := s.mayTouch(ctx, c, id); err != nil {
				return err // it is not for this client to know who has it
			}
			return errTaken(id)
		}, nil
	case sl.kept:
		return nil, domain.Errorf(domain.SessionActive, "Session %s is being deleted", id).With("sessionId", string(id))
	default:
		sl.kept = true
		s.shut(sl, domain.SessionClosed, "delete")
	}
	return func(ctx context.Context) error {
		defer s.unkeep(sl)
		if err := s.drain(ctx, sl); err != nil {
			return err
		}
		if err := s.mayTouch(ctx, c, id); err != nil {
			return err
		}
		return s.remove(ctx, id)
	}, nil
}

func errTaken(id domain.SessionID) *domain.Error {
	return domain.Errorf(domain.SessionActive, "Session %s is in use by another client of this agent", id).
		With("sessionId", string(id))
}

// placeholder takes the place of a session that is not in memory, so that
// nobody opens it meanwhile. The caller holds the registry's mutex.
func (s *Service) placeholder(c ports.Client, id domain.SessionID) *slot {
	sl := &slot{
		id: id, client: c, state: closing, how: "delete", kept: true,
		opened: make(chan struct{}), empty: make(chan struct{}), gone: make(chan struct{}),
	}
	close(sl.opened)
	close(sl.empty)
	s.install(sl)
	return sl
}

// unkeep lets a slot go whose session was deleted or could not be.
func (s *Service) unkeep(sl *slot) {
	s.reg.mu.Lock()
	defer s.reg.mu.Unlock()
	sl.kept = false
	if sl.released {
		s.forgetLocked(sl)
	}
}

func (s *Service) remove(ctx context.Context, id domain.SessionID) error {
	row, err := s.p.Sessions.Load(ctx, id)
	if err != nil {
		return err
	}
	if err := s.leases.acquire(ctx, id); err != nil {
		return err
	}
	defer func() {
		freeing, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseLimit)
		defer cancel()
		if err := s.leases.release(freeing, id); err != nil {
			s.trouble(freeing, id, "sessions: release lease", err)
		}
	}()
	uploads, err := s.uploads(ctx, id)
	if err != nil {
		return err
	}
	if err := s.unshared(ctx, id, uploads); err != nil {
		// What cannot be shown to be unused stays: a file too many is better
		// than one that another session misses.
		s.trouble(ctx, id, "sessions: find shared uploads", err)
		clear(uploads)
	}
	if err := s.p.Sessions.Delete(ctx, id); err != nil {
		return err
	}
	if len(uploads) == 0 {
		return nil
	}
	list := make([]domain.Attachment, 0, len(uploads))
	for _, a := range uploads {
		list = append(list, a)
	}
	if err := s.p.Blobs.Remove(context.WithoutCancel(ctx), row, list); err != nil {
		s.trouble(ctx, id, "sessions: remove uploads", err)
	}
	return nil
}

// uploads returns the files a session's journal names, by path.
func (s *Service) uploads(ctx context.Context, id domain.SessionID) (map[string]domain.Attachment, error) {
	found := make(map[string]domain.Attachment)
	for entry, err := range s.p.Journal.Records(ctx, id, 0) {
		if err != nil {
			return nil, err
		}
		for _, a := range storedFiles(entry.Record) {
			found[a.Path] = a
		}
	}
	return found, nil
}

// storedFiles are the files that a record says were stored: what the user
// attached, and the copies of what was delivered.
func storedFiles(rec domain.Record) []domain.Attachment {
	var list []domain.Attachment
	switch r := rec.(type) {
	case domain.UserSaid:
		for _, b := range r.Blocks {
			if a, ok := b.(domain.Attachment); ok {
				list = append(list, a)
			}
		}
	case domain.CallFinished:
		for _, c := range r.Content {
			if f, ok := c.(domain.FileContent); ok && f.Delivered {
				list = append(list, f.File)
			}
		}
	case domain.Streamed, domain.AssistantSaid, domain.Compacted, domain.CallBegan, domain.PermissionGiven, domain.PlanSet, domain.TitleSet,
		domain.ClientEvent, domain.TurnFinished, domain.Unknown: // these name no stored file
	}
	return list
}

// unshared takes out of uploads what another session names. It looks at every
// session: the working directory of one may have changed since it stored a
// file.
func (s *Service) unshared(ctx context.Context, id domain.SessionID, uploads map[string]domain.Attachment) error {
	q := domain.SessionQuery{All: true, Limit: 200}
	for len(uploads) > 0 {
		page, err := s.p.Sessions.List(ctx, q)
		if err != nil {
			return err
		}
		for _, other := range page.Sessions {
			if other.ID == id {
				continue
			}
			theirs, err := s.uploads(ctx, other.ID)
			if domain.HasCode(err, domain.SessionNotFound) {
				continue // deleted meanwhile
			}
			if err != nil {
				return err
			}
			for path := range theirs {
				delete(uploads, path)
			}
		}
		if page.Next == nil {
			return nil
		}
		q.After = page.Next
	}
	return nil
}
