package openclaw

import (
	"context"
	"encoding/json"
	"strings"
	"sync"

	"github.com/berth-dev/berth/adapters/jsonrpc"
	"github.com/berth-dev/berth/core/domain"
)

// session is one that the editor has open.
type session struct {
	id  domain.SessionID
	key string // the Gateway's

	mu      sync.Mutex
	cwd     string            // what the editor called the working directory
	base    string            // the Gateway's working directory; "" when unknown
	turns   []*turn           // the running prompt and those behind it
	calls   map[string]string // tool calls by the Gateway's id: the run that had it first
	done    []string          // runs that nothing more is told of, the newest last
	foreign []*turn           // runs of others that are told of, the newest last
	telling int               // how often its history is being told
	watched *link             // the connection that tells its events
}

// maxQueue is how many prompts of a session may wait.
const maxQueue = 8

// enter puts a prompt behind those that are there.
func (s *session) enter(t *turn) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.turns) > maxQueue {
		return domain.Errorf(domain.SessionBusy, "%d prompts wait for this session already: wait for one to be answered, or cancel", maxQueue)
	}
	if n := len(s.turns); n > 0 {
		t.before = s.turns[n-1].settled
	}
	s.turns = append(s.turns, t)
	return nil
}

// leave takes a prompt out.
func (s *session) leave(t *turn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, o := range s.turns {
		if o == t {
			s.turns = append(s.turns[:i:i], s.turns[i+1:]...)
			return
		}
	}
}

// cancel ends all prompts. It does not block.
func (s *session) cancel(cause error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range s.turns {
		t.cancel(cause)
	}
}

// places are the working directories: the editor's, and the Gateway's.
func (s *session) places() (cwd, base string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.cwd, s.base
}

// mostCalls bounds how many tool calls of a session are remembered.
const mostCalls = 1 << 14

// callID makes the id of a tool call, which models give anew in each turn,
// unique in the session.
func (s *session) callID(run, id string) domain.CallID {
	s.mu.Lock()
	defer s.mu.Unlock()
	first, known := s.calls[id]
	if !known {
		if len(s.calls) >= mostCalls {
			clear(s.calls) // long ago
		}
		s.calls[id] = run
	}
	if !known || first == run {
		return domain.CallID(id)
	}
	return domain.CallID(id + "@" + run)
}

// session finds one that the editor has open, or nil.
func (b *Bridge) session(id domain.SessionID) *session {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.sessions[id]
}

// of finds the session with a key, or nil.
func (b *Bridge) of(key string) *session {
	if key == "" {
		return nil
	}
	return b.session(idOf(key))
}

// opened is the session that params name.
func (b *Bridge) opened(p fields) (*session, error) {
	id := p.text("sessionId")
	if id == "" {
		return nil, bad("sessionId is required and must be a string")
	}
	if s := b.session(domain.SessionID(id)); s != nil {
		return s, nil
	}
	return nil, domain.NoSession(domain.SessionID(cutID(id)))
}

// cutID is an id as an error repeats it.
func cutID(id string) string {
	if len(id) > 128 {
		return brief(strings.ToValidUTF8(id[:128], ""))
	}
	return id
}

// keep registers a session, or gives an open one its new directory.
func (b *Bridge) keep(key, cwd string, r row) *session {
	b.mu.Lock()
	defer b.mu.Unlock()
	id := idOf(key)
	s := b.sessions[id]
	if s == nil {
		s = &session{id: id, key: key, calls: map[string]string{}}
		b.sessions[id] = s
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cwd, s.base = cwd, r.cwd
	return s
}

// closeSession cancels what a session does and forgets it. The Gateway keeps
// it. A session that is not open is closed.
func (b *Bridge) closeSession(_ context.Context, params json.RawMessage) (jsonrpc.Task, error) {
	s, err := b.opened(fieldsOf(params))
	if domain.CodeOf(err) == domain.SessionNotFound {
		return func(context.Context) (jsonrpc.Reply, error) { return jsonrpc.Reply{}, nil }, nil
	}
	if err != nil {
		return nil, err
	}
	s.cancel(domain.SessionClosed)
	b.forget(s)
	return func(ctx context.Context) (jsonrpc.Reply, error) {
		b.unobserve(s)
		s.settle(ctx)
		if l := b.gw.now(); l != nil && b.session(s.id) == nil { // it was not opened anew
			_, _ = l.call(ctx, "sessions.messages.unsubscribe", keyParams{Key: s.key}) // only spares traffic
		}
		return jsonrpc.Reply{}, nil
	}, nil
}

// deleteSession closes a session and has the Gateway remove it.
func (b *Bridge) deleteSession(_ context.Context, params json.RawMessage) (jsonrpc.Task, error) {
	id := fieldsOf(params).text("sessionId")
	if id == "" {
		return nil, bad("sessionId is required and must be a string")
	}
	s := b.session(domain.SessionID(id))
	if s != nil {
		s.cancel(domain.SessionClosed)
		b.forget(s)
	}
	return func(ctx context.Context) (jsonrpc.Reply, error) {
		if s != nil {
			b.unobserve(s)
			s.settle(ctx)
		}
		r, err := b.find(ctx, "session/delete", id)
		if domain.CodeOf(err) == domain.SessionNotFound {
			return jsonrpc.Reply{}, nil // as it was to be
		}
		if err == nil {
			_, err = b.privileged(ctx, "session/delete", "sessions.delete", keyParams{Key: r.key})
		}
		return jsonrpc.Reply{}, err
	}, nil
}

func (b *Bridge) forget(s *session) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.sessions[s.id] == s {
		delete(b.sessions, s.id)
	}
}

// settle waits until the Gateway has heard of the end of all prompts.
func (s *session) settle(ctx context.Context) {
	s.mu.Lock()
	turns := append([]*turn(nil), s.turns...)
	s.mu.Unlock()
	for _, t := range turns {
		select {
		case <-t.settled:
		case <-ctx.Done():
			return
		}
	}
}

type keyParams struct {
	Key string `json:"key"`
}
