package memory

import (
	"context"
	"iter"
	"time"

	"github.com/berth-dev/berth/core/domain"
)

// Append adds records after a position.
func (s *Store) Append(ctx context.Context, id domain.SessionID, after domain.Seq, recs ...domain.Record) (domain.Seq, error) {
	if len(recs) == 0 {
		return after, nil
	}
	copies, err := cloneRecords(recs)
	if err != nil {
		return 0, err
	}
	s.data.mu.Lock()
	defer s.data.mu.Unlock()
	if err := s.ready(ctx); err != nil {
		return 0, err
	}
	found, ok := s.data.sessions[id]
	if !ok {
		return 0, domain.NoSession(id)
	}
	if owner := s.data.leases[id]; owner != nil && owner != s {
		return 0, domain.Errorf(domain.Conflict, "Session %s is owned by another process", id).With("sessionId", string(id))
	}
	if last := domain.Seq(len(found.entries)); last != after {
		return 0, domain.Errorf(domain.Conflict,
			"The journal of session %s is at position %d, not at %d", id, last, after).With("sessionId", string(id))
	}
	now := stamp(s.clock())
	for i, rec := range copies {
		found.entries = append(found.entries, domain.Entry{Seq: after + domain.Seq(i) + 1, At: now, Record: rec})
		if t, ok := rec.(domain.TitleSet); ok {
			found.row.Title = t.Title
		}
		if agent, cost := domain.Spending(rec); cost > 0 {
			s.data.spent[agentDay{agent, domain.Day(now)}] += cost
		}
	}
	if now.After(found.row.UpdatedAt) {
		found.row.UpdatedAt = now
	}
	return after + domain.Seq(len(recs)), nil
}

// Spent returns what an agent cost on the day of t.
func (s *Store) Spent(ctx context.Context, agent string, t time.Time) (domain.MicroUSD, error) {
	s.data.mu.RLock()
	defer s.data.mu.RUnlock()
	if err := s.ready(ctx); err != nil {
		return 0, err
	}
	return s.data.spent[agentDay{agent, domain.Day(t)}], nil
}

// Records yields what follows a position, as of the moment the loop starts.
func (s *Store) Records(ctx context.Context, id domain.SessionID, after domain.Seq) iter.Seq2[domain.Entry, error] {
	return func(yield func(domain.Entry, error) bool) {
		entries, err := s.entries(ctx, id, after)
		if err != nil {
			yield(domain.Entry{}, err)
			return
		}
		for _, e := range entries {
			if ctx.Err() != nil {
				yield(domain.Entry{}, domain.WrapError(domain.Cancelled, context.Cause(ctx), "The operation was cancelled"))
				return
			}
			e.Record = copyRecord(e.Record)
			if !yield(e, nil) {
				return
			}
		}
	}
}

// entries returns the shared tail of a journal.
func (s *Store) entries(ctx context.Context, id domain.SessionID, after domain.Seq) ([]domain.Entry, error) {
	s.data.mu.RLock()
	defer s.data.mu.RUnlock()
	if err := s.ready(ctx); err != nil {
		return nil, err
	}
	found, ok := s.data.sessions[id]
	if !ok {
		return nil, domain.NoSession(id)
	}
	from := min(max(after, 0), domain.Seq(len(found.entries)))
	return found.entries[from:len(found.entries):len(found.entries)], nil
}
