// Package sessions opens, lists, closes and deletes sessions, and keeps the
// ones in use in memory. It owns the rule that a session has one live owner
// and one attachment, and the admission of prompts: who may take a session's
// next turn is decided in memory, on the goroutine that read the prompt.
//
// Read next: registry.go (the places), admission.go (the queue of a place),
// live.go (what a place holds), then new.go, open.go, close.go and delete.go,
// which are the methods. How clients share a session: attachment.go (who is
// told and asked), feed.go (in which order), handover.go (one in place of
// another), lose.go and absence.go (none for a while), observe.go and watcher.go
// (more than one).
//
// Locks are taken in this order: Feed.Recording, Feed.Sending, the registry's
// mutex, an attachment's, a watcher's. Live.lock is taken with Recording held,
// or with none; it, Recording and Sending are held over waiting, the mutexes
// never are.
package sessions

import (
	"context"
	"time"

	"github.com/berth-dev/berth/core/domain"
	"github.com/berth-dev/berth/core/ports"
)

// Config is what operators set.
type Config struct {
	MaxSessions int           // active sessions of one client; at least 1
	QueueLimit  int           // prompts waiting behind a running turn
	IdleTimeout time.Duration // after which an idle session leaves memory; 0 never
	// MaxTotal bounds the active sessions of all clients, also of lost ones; 0
	// is no bound.
	MaxTotal int
	// Grace is how long what a lost client had goes on without one; 0 ends it
	// at once.
	Grace time.Duration
}

// Params is what a Service is built from. Every field is required.
type Params struct {
	Config   Config
	Sessions ports.Sessions
	Journal  ports.Journal
	Leases   ports.Leases
	// Durable reports whether sessions outlive the process. It is asked again
	// each time, because a store may be opened late.
	Durable  func() bool
	Agents   ports.Agents
	Models   ports.Models
	Roots    ports.Roots
	Blobs    ports.Blobs
	Tools    []ports.ToolSource
	Sandbox  ports.Sandbox
	Observer ports.Observer
	Clock    ports.Clock
	IDs      ports.IDs
}

// Service is the session service. Its methods are safe for concurrent use.
type Service struct {
	p      Params
	cfg    Config
	reg    registry
	leases leases
	chores chores
}

// New returns a service with no session in memory.
func New(p Params) *Service {
	return &Service{
		p: p, cfg: p.Config,
		reg: registry{
			slots: make(map[domain.SessionID]*slot), watchers: make(map[domain.SessionID][]*watcher),
			absent: absence{since: make(map[ports.Client]time.Time), changed: make(chan struct{})},
		},
		leases: leases{port: p.Leases, held: make(map[domain.SessionID]*lease)},
	}
}

// Durable reports whether sessions outlive the process.
func (s *Service) Durable() bool { return s.p.Durable() }

func (s *Service) trouble(ctx context.Context, id domain.SessionID, where string, err error) {
	s.p.Observer.Observe(ctx, domain.Trouble{Session: id, Where: where, Err: err})
}

// List returns one page of stored sessions, of those that c may use.
func (s *Service) List(ctx context.Context, c ports.Client, q domain.SessionQuery) (domain.SessionPage, error) {
	if q.Cwd != "" {
		q.Cwd = s.p.Roots.Canonical(q.Cwd)
	}
	rights := c.Info().Rights
	if rights == nil || rights.Agents == nil && rights.Roots == nil {
		return s.p.Sessions.List(ctx, q)
	}
	var out domain.SessionPage
	for size := q.PageSize(); ; {
		page, err := s.p.Sessions.List(ctx, q)
		if err != nil {
			return domain.SessionPage{}, err
		}
		for _, row := range page.Sessions {
			if !rights.Session(row) {
				continue
			}
			if len(out.Sessions) == size {
				last := out.Sessions[size-1]
				out.Next = &domain.SessionCursor{UpdatedAt: last.UpdatedAt, ID: last.ID}
				return out, nil
			}
			out.Sessions = append(out.Sessions, row)
		}
		if page.Next == nil {
			return out, nil
		}
		q.After = page.Next
	}
}

// Event journals something the client wants remembered. The session must be
// active on c.
func (s *Service) Event(c ports.Client, id domain.SessionID, ev domain.ClientEvent) (func(context.Context) error, error) {
	s.reg.mu.Lock()
	defer s.reg.mu.Unlock()
	sl := s.reg.slots[id]
	if sl == nil || sl.client != c || sl.state != ready {
		return nil, domain.NoSession(id)
	}
	if len(sl.queue) == 0 {
		s.startIdle(sl)
	}
	live := sl.live
	return func(ctx context.Context) error { return live.Append(ctx, nil, ev) }, nil
}

// stamp returns the time as sessions store it.
func (s *Service) stamp() time.Time { return s.p.Clock().UTC().Truncate(time.Microsecond) }
