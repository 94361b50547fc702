package sessions

import (
	"context"
	"slices"
	"sync/atomic"

	"github.com/berth-dev/berth/core/domain"
	"github.com/berth-dev/berth/core/ports"
)

// Live is a session in memory: its row, its journal folded into a
// conversation, its tools and its client. Everything that is appended to the
// journal of an open session goes through its Append, which is what keeps the
// position and the conversation in step.
type Live struct {
	id  domain.SessionID
	svc *Service
	att *Attachment

	// lock guards the rest. It is a channel so that waiting for it ends with
	// a context, also when the store hangs.
	lock  chan struct{}
	row   domain.Session
	conv  *domain.Conversation // nil when set aside
	tools []ports.Toolset

	users  atomic.Int32 // turns that hold it in memory; raised only under the lock
	loaded atomic.Bool  // conv != nil, readable without the lock
	gone   atomic.Bool  // released: nothing brings it back
}

// ID returns the session's id.
func (l *Live) ID() domain.SessionID { return l.id }

// Client returns the session's attachment.
func (l *Live) Client() ports.Client { return l.att }

func (l *Live) held() bool { return l.loaded.Load() }

func (l *Live) acquire(ctx context.Context) error {
	select {
	case l.lock <- struct{}{}:
		return nil
	default:
	}
	select {
	case l.lock <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (l *Live) unlock() { <-l.lock }

// View is what a turn needs to know of its session when it starts.
type View struct {
	Session domain.Session
	Agent   domain.Agent
	Tools   []ports.Tool
	Turns   int // turns begun before
	Title   string
}

// Hold brings the session into memory if it was set aside and keeps it there
// until Drop.
func (l *Live) Hold(ctx context.Context) (View, error) {
	if err := l.acquire(ctx); err != nil {
		return View{}, err
	}
	defer l.unlock()
	if l.conv == nil {
		if err := l.restore(ctx); err != nil {
			return View{}, err
		}
	}
	agent, err := l.svc.owner(l.row.Agent)
	if err != nil {
		return View{}, err
	}
	l.users.Add(1)
	v := View{Session: l.row, Agent: agent, Turns: l.conv.Turns(), Title: l.row.Title}
	for _, set := range l.tools {
		v.Tools = append(v.Tools, set.Tools()...)
	}
	return v, nil
}

// Drop ends one Hold. The last one after the session was released frees what
// the release had to leave.
func (l *Live) Drop() {
	if l.users.Add(-1) > 0 || !l.gone.Load() {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), releaseLimit)
	defer cancel()
	l.unload(ctx)
}

// restore reads a session back that was set aside.
func (l *Live) restore(ctx context.Context) error {
	if err := l.svc.p.Leases.Acquire(ctx, l.id); err != nil {
		return err
	}
	row, err := l.svc.p.Sessions.Load(ctx, l.id)
	if err != nil {
		return err
	}
	l.row = row
	conv, err := l.read(ctx, nil)
	if err != nil {
		return err
	}
	if err := l.enter(ctx, row, conv); err != nil {
		return err
	}
	l.svc.p.Observer.Observe(ctx, domain.SessionOpened{Session: l.id, How: "restore"})
	return nil
}

// read folds the journal into a conversation, showing each entry to see (if
// not nil) on the way, and closes a turn that was interrupted.
func (l *Live) read(ctx context.Context, see func(domain.Record) error) (*domain.Conversation, error) {
	conv := domain.NewConversation(l.row.Start)
	for entry, err := range l.svc.p.Journal.Records(ctx, l.id, l.row.Start) {
		if err != nil {
			return nil, err
		}
		conv.Add(entry)
		if see != nil {
			if err := see(entry.Record); err != nil {
				return nil, err
			}
		}
	}
	for _, rec := range conv.Settle() {
		if err := l.append(ctx, conv, rec); err != nil {
			return nil, err
		}
		if see != nil {
			if err := see(rec); err != nil {
				return nil, err
			}
		}
	}
	return conv, nil
}

// enter opens the tools and makes the session usable.
func (l *Live) enter(ctx context.Context, row domain.Session, conv *domain.Conversation) error {
	var sets []ports.Toolset
	for _, source := range l.svc.p.Tools {
		set, err := source.Open(ctx, row, l.att)
		if err != nil {
			closeAll(sets)
			return err
		}
		sets = append(sets, set)
	}
	closeAll(l.tools)
	l.row, l.conv, l.tools = row, conv, sets
	l.loaded.Store(true)
	return nil
}

func closeAll(sets []ports.Toolset) error {
	var first error
	for _, set := range sets {
		if err := set.Close(); err != nil && first == nil {
			first = err
		}
	}
	return first
}

// Append journals records and folds them in. The context bounds waiting for
// the store as well.
func (l *Live) Append(ctx context.Context, recs ...domain.Record) error {
	return l.AppendIf(ctx, func() error { return nil }, recs...)
}

// AppendIf is Append that first asks allowed, when no other append can come
// between the answer and the records.
func (l *Live) AppendIf(ctx context.Context, allowed func() error, recs ...domain.Record) error {
	if err := l.acquire(ctx); err != nil {
		return err
	}
	defer l.unlock()
	if err := allowed(); err != nil {
		return err
	}
	if l.gone.Load() && l.conv == nil {
		return domain.SessionClosed
	}
	if l.conv == nil {
		if err := l.restore(ctx); err != nil {
			return err
		}
	}
	return l.append(ctx, l.conv, recs...)
}

func (l *Live) append(ctx context.Context, conv *domain.Conversation, recs ...domain.Record) error {
	if len(recs) == 0 {
		return nil
	}
	pos, err := l.svc.p.Journal.Append(ctx, l.id, conv.Seq(), recs...)
	if err != nil {
		return err
	}
	at := l.svc.p.Clock()
	first := pos - domain.Seq(len(recs)) + 1
	for i, rec := range recs {
		conv.Add(domain.Entry{Seq: first + domain.Seq(i), At: at, Record: rec})
		if t, ok := rec.(domain.TitleSet); ok {
			l.row.Title = t.Title
		}
	}
	return nil
}

// Messages returns the conversation for a model.
func (l *Live) Messages(ctx context.Context) ([]domain.ModelMessage, error) {
	if err := l.acquire(ctx); err != nil {
		return nil, err
	}
	defer l.unlock()
	return l.conv.Messages(), nil
}

// Rules returns the remembered permission rules.
func (l *Live) Rules(ctx context.Context) ([]domain.Rule, error) {
	if err := l.acquire(ctx); err != nil {
		return nil, err
	}
	defer l.unlock()
	return l.conv.Rules(), nil
}

// Total returns the tokens of all requests of the session.
func (l *Live) Total(ctx context.Context) (domain.Usage, error) {
	if err := l.acquire(ctx); err != nil {
		return domain.Usage{}, err
	}
	defer l.unlock()
	_, _, total := l.conv.Usage()
	return total, nil
}

// unload sets the session aside unless a turn holds it. It reports whether it
// did.
func (l *Live) unload(ctx context.Context) bool {
	if l.acquire(ctx) != nil {
		return false
	}
	defer l.unlock()
	if l.users.Load() > 0 || l.conv == nil {
		return false
	}
	if err := closeAll(l.tools); err != nil {
		l.svc.trouble(ctx, l.id, "sessions: close tools", err)
	}
	l.conv, l.tools = nil, nil
	l.loaded.Store(false)
	if err := l.svc.p.Leases.Release(ctx, l.id); err != nil {
		l.svc.trouble(ctx, l.id, "sessions: release lease", err)
	}
	return true
}

// sameRoots reports whether two rows name the same directories.
func sameRoots(a, b domain.Session) bool {
	return a.Cwd == b.Cwd && a.CwdGiven == b.CwdGiven && a.Workspace == b.Workspace && slices.Equal(a.Additional, b.Additional)
}
