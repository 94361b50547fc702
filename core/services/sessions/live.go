package sessions

import (
	"context"
	"sync/atomic"

	"github.com/berth-dev/berth/core/domain"
	"github.com/berth-dev/berth/core/ports"
)

// Live is a session in memory: its row, its journal folded into a
// conversation, its tools and its client. Everything that is appended to the
// journal of an open session goes through its Append, which is what keeps the
// position and the conversation in step.
type Live struct {
	id   domain.SessionID
	svc  *Service
	att  *Attachment
	feed atomic.Pointer[Feed]
	// missed is where the newest client was lost: what came after was told to
	// nobody. It is written with the feed's Sending lock held.
	missed atomic.Pointer[mark]

	// lock guards the rest. It is held over calls of the store.
	lock   Lock
	row    domain.Session
	conv   *domain.Conversation // nil when set aside
	tools  []ports.Toolset
	leased bool
	// doubtful means an append failed, so that nobody knows what the journal
	// holds: it is read again before the next turn.
	doubtful bool

	// told are warnings that were given once, by name.
	told map[string]bool

	// agent is the row's, readable without the lock; nil before there is one.
	agent atomic.Pointer[string]

	// pos is the position of the newest record, readable without the lock.
	pos atomic.Int64

	users  atomic.Int32 // turns that hold it in memory; raised only under the lock
	loaded atomic.Bool  // conv != nil, readable without the lock
	gone   atomic.Bool  // released: nothing brings it back
}

func newLive(s *Service, id domain.SessionID, c ports.Client) *Live {
	l := &Live{id: id, svc: s, lock: newLock(), att: newAttachment(s, c)}
	l.feed.Store(newFeed(l))
	return l
}

// ID returns the session's id.
func (l *Live) ID() domain.SessionID { return l.id }

// Agent returns the alias of the agent that a turn would begin with now, without
// waiting; "" when there is none.
func (l *Live) Agent() string {
	alias := l.agent.Load()
	if alias == nil {
		return ""
	}
	agent, err := l.svc.owner(*alias)
	if err != nil {
		return ""
	}
	return agent.Alias
}

// Client returns the session's attachment.
func (l *Live) Client() ports.Client { return l.att }

// Feed returns the way by which turns tell.
func (l *Live) Feed() *Feed { return l.feed.Load() }

// Abandon puts a new feed in the place of one that a turn may hold that was
// given up.
func (l *Live) Abandon(f *Feed) { l.feed.CompareAndSwap(f, newFeed(l)) }

// Show tells what one client said to everybody else.
func (l *Live) Show(ctx context.Context, from ports.Client, u domain.Update) error {
	if l.att.newest(from) {
		l.att.show(u)
		return nil
	}
	f := l.Feed()
	if err := f.Sending.Acquire(ctx); err != nil {
		return err
	}
	defer f.Sending.Release()
	return f.Tell(ctx, u)
}

func (l *Live) position() domain.Seq { return domain.Seq(l.pos.Load()) }

func (l *Live) inMemory() bool { return l.loaded.Load() }

// View is what a turn needs to know of its session when it starts.
type View struct {
	Session domain.Session
	Agent   domain.Agent
	Tools   []ports.Tool
	Total   domain.Usage     // of all requests before
	Cost    *domain.MicroUSD // likewise; nil when unknown
}

// Hold brings the session into memory if it was set aside, closes in the
// journal what an earlier turn left open, and keeps the session in memory
// until Drop.
func (l *Live) Hold(ctx context.Context) (View, error) {
	if err := l.lock.Acquire(ctx); err != nil {
		return View{}, err
	}
	defer l.lock.Release()
	if err := l.ready(ctx); err != nil {
		return View{}, err
	}
	if err := l.append(ctx, l.conv, l.conv.Settle()...); err != nil {
		return View{}, err
	}
	agent, err := l.svc.owner(l.row.Agent)
	if err != nil {
		return View{}, err
	}
	v := View{Session: l.row, Agent: agent}
	_, _, v.Total = l.conv.Usage()
	v.Cost = l.conv.Cost()
	for _, set := range l.tools {
		v.Tools = append(v.Tools, set.Tools()...)
	}
	l.users.Add(1)
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

// Append journals records and folds them in, unless allowed (if not nil)
// returns an error; no other append can come between its answer and the
// records. The context bounds waiting for the store as well.
func (l *Live) Append(ctx context.Context, allowed func() error, recs ...domain.Record) error {
	if err := l.lock.Acquire(ctx); err != nil {
		return err
	}
	defer l.lock.Release()
	if allowed != nil {
		if err := allowed(); err != nil {
			return err
		}
	}
	if l.conv == nil || l.gone.Load() || (l.doubtful && l.users.Load() == 0) {
		if err := l.ready(ctx); err != nil {
			return err
		}
	}
	return l.append(ctx, l.conv, recs...)
}

// Keep is Append for what is good to have and harms nobody when it is missing: a
// failure leaves the session as sure of its journal as it was, if the journal
// can be read.
func (l *Live) Keep(ctx context.Context, allowed func() error, rec domain.Record) error {
	if err := l.lock.Acquire(ctx); err != nil {
		return err
	}
	defer l.lock.Release()
	if err := allowed(); err != nil {
		return err
	}
	if l.conv == nil || l.gone.Load() || l.doubtful {
		return domain.Errorf(domain.Conflict, "The session's journal has to be read again first")
	}
	err := l.append(ctx, l.conv, rec)
	if err != nil {
		l.doubtful = l.catchUp(ctx) != nil
	}
	return err
}

// catchUp folds in what the journal holds and the conversation does not.
func (l *Live) catchUp(ctx context.Context) error {
	for entry, err := range l.svc.p.Journal.Records(ctx, l.id, l.conv.Seq()) {
		if err != nil {
			return err
		}
		l.conv.Add(entry)
		l.pos.Store(int64(entry.Seq))
	}
	return nil
}

// End journals the end of a turn: what closing makes of the calls that began
// and did not end. ended is false when the turn never began or has an end
// already; then nothing is journalled. allowed is that of Append.
func (l *Live) End(ctx context.Context, allowed func() error, turn domain.TurnID, closing func(calls []domain.CallID) []domain.Record) (ended bool, err error) {
	if err := l.lock.Acquire(ctx); err != nil {
		return false, err
	}
	defer l.lock.Release()
	if allowed != nil {
		if err := allowed(); err != nil {
			return false, err
		}
	}
	if l.conv == nil || l.gone.Load() {
		return false, nil // whoever reads the journal next closes it
	}
	open, calls := l.conv.Open()
	if open != turn {
		return false, nil
	}
	return true, l.append(ctx, l.conv, closing(calls)...)
}

func (l *Live) append(ctx context.Context, conv *domain.Conversation, recs ...domain.Record) error {
	if len(recs) == 0 {
		return nil
	}
	pos, err := l.svc.p.Journal.Append(ctx, l.id, conv.Seq(), recs...)
	if err != nil {
		l.doubtful = true
		return err
	}
	at := l.svc.p.Clock()
	l.pos.Store(int64(pos))
	first := pos - domain.Seq(len(recs)) + 1
	for i, rec := range recs {
		conv.Add(domain.Entry{Seq: first + domain.Seq(i), At: at, Record: rec})
		if t, ok := rec.(domain.TitleSet); ok {
			l.row.Title = t.Title
		}
	}
	return nil
}

// Messages returns the conversation for a model. The session must be held.
func (l *Live) Messages(ctx context.Context) ([]domain.ModelMessage, error) {
	if err := l.lock.Acquire(ctx); err != nil {
		return nil, err
	}
	defer l.lock.Release()
	return l.conv.Messages(), nil
}

// First reports whether it is asked about what for the first time since the
// session was opened here.
func (l *Live) First(ctx context.Context, what string) bool {
	if l.lock.Acquire(ctx) != nil {
		return false
	}
	defer l.lock.Release()
	if l.told[what] {
		return false
	}
	if l.told == nil {
		l.told = make(map[string]bool)
	}
	l.told[what] = true
	return true
}

// Look shows fn the conversation, which it must not change or keep. The session
// must be held.
func (l *Live) Look(ctx context.Context, fn func(*domain.Conversation)) error {
	if err := l.lock.Acquire(ctx); err != nil {
		return err
	}
	defer l.lock.Release()
	fn(l.conv)
	return nil
}

// Rules returns the remembered permission rules. The session must be held.
func (l *Live) Rules(ctx context.Context) ([]domain.Rule, error) {
	if err := l.lock.Acquire(ctx); err != nil {
		return nil, err
	}
	defer l.lock.Release()
	return l.conv.Rules(), nil
}
