package turns

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"

	"github.com/berth-dev/berth/core/domain"
	"github.com/berth-dev/berth/core/services/sessions"
)

// errSealed is what a producer gets that outlived its turn.
var errSealed = errors.New("the turn has ended")

// emitter sends a turn's updates in order and keeps account of the calls that
// the client was told of and whose end it was not. Once sealed it lets nothing
// through, so that no update can follow the response.
type emitter struct {
	t      *turn
	sealed atomic.Bool
	// left is set when the turn was given up, which is told by itself: what
	// comes of it after that is expected, and dropped without a word.
	left atomic.Bool

	// feed is the session's way to the client. Its Recording lock is held over
	// an append and its updates, so that the wire has the journal's order; its
	// Sending lock is held over each Tell and guards open.
	feed atomic.Pointer[sessions.Feed]
	open []openCall
	// compacting is the compaction that the client was told of and whose end
	// it was not; "" when there is none. Sending guards it too.
	compacting domain.CompactionID
}

// openCall is a call that the client was told of and whose end it was not.
type openCall struct {
	id   domain.CallID
	tool string
	end  *domain.CallFinished // the end that is journalled; nil when there is none
}

func newEmitter(t *turn) *emitter {
	m := &emitter{t: t}
	m.feed.Store(t.live.Feed())
	return m
}

// send sends one update. A late one is dropped, and reported to the observer:
// somebody sent it who should have been joined.
func (m *emitter) send(ctx context.Context, u domain.Update) error {
	f := m.feed.Load()
	if err := f.Sending.Acquire(ctx); err != nil {
		return err
	}
	defer f.Sending.Release()
	return m.pass(ctx, f, u)
}

// pass sends one update, with the Sending lock of the feed held.
func (m *emitter) pass(ctx context.Context, f *sessions.Feed, u domain.Update) error {
	if m.sealed.Load() {
		m.late(ctx, "turns: late update")
		return errSealed
	}
	if err := f.Tell(ctx, u); err != nil {
		return err
	}
	if opened, ok := u.(domain.CallOpened); ok {
		m.open = append(m.open, openCall{id: opened.ID, tool: opened.Name})
	}
	if c, ok := u.(domain.CompactionChanged); ok {
		if m.compacting = c.ID; c.Status.Final() {
			m.compacting = ""
		}
	}
	if changed, ok := u.(domain.CallChanged); ok && changed.Status.Final() {
		m.open = slices.DeleteFunc(m.open, func(o openCall) bool { return o.id == changed.ID })
	}
	return nil
}

// progress sends an intermediate report of a call. A tool that reports after
// its call has ended is not heard.
func (m *emitter) progress(ctx context.Context, u domain.CallChanged) {
	f := m.feed.Load()
	if f.Sending.Acquire(ctx) != nil {
		return
	}
	defer f.Sending.Release()
	if !slices.ContainsFunc(m.open, func(o openCall) bool { return o.id == u.ID }) {
		m.late(ctx, "turns: late progress")
		return
	}
	_ = m.pass(ctx, f, u) // best effort: a client that has gone ends the turn by itself
}

// late reports what comes too late, unless the turn was given up.
func (m *emitter) late(ctx context.Context, what string) {
	if !m.left.Load() {
		m.t.e.trouble(ctx, m.t.sid, what, errSealed)
	}
}

// record journals records and then tells the client what follows from them.
// stored says whether the first half was done.
func (m *emitter) record(recs ...domain.Record) (stored bool, err error) {
	f := m.feed.Load()
	if err := f.Recording.Acquire(m.t.writing); err != nil {
		return false, err
	}
	defer f.Recording.Release()
	if err := m.store(recs...); err != nil {
		return false, err
	}
	m.noteEnds(recs)
	defer f.Journalled(m.t.writing, recs...)
	return true, m.tell(recs...)
}

// begin journals how the turn begins and tells what follows from it: also the
// prompt, but to who sent it.
func (m *emitter) begin(recs ...domain.Record) error {
	f := m.t.live.Feed()
	m.feed.Store(f) // the one before may have been given up
	if err := f.Recording.Acquire(m.t.writing); err != nil {
		return err
	}
	defer f.Recording.Release()
	if err := f.Sending.Acquire(m.t.writing); err != nil {
		return err
	}
	f.Forget() // what a turn left behind that was given up
	f.Sending.Release()
	if err := m.store(recs...); err != nil {
		return err
	}
	defer f.Journalled(m.t.writing, recs...)
	m.t.mu.Lock()
	m.t.begun = true
	m.t.mu.Unlock()
	if err := m.send(m.t.telling, domain.TurnStarted{Turn: m.t.id}); err != nil {
		return err
	}
	for _, b := range m.t.prompt.Blocks {
		if err := m.t.live.Show(m.t.telling, m.t.client, domain.UserMessage{ID: m.t.message(), Block: b}); err != nil {
			return err
		}
	}
	return m.tell(recs...)
}

// noteEnds remembers the ends of calls among journalled records, in case the
// client cannot be told of them now.
func (m *emitter) noteEnds(recs []domain.Record) {
	f := m.feed.Load()
	for _, rec := range recs {
		end, ok := rec.(domain.CallFinished)
		if !ok || f.Sending.Acquire(m.t.telling) != nil {
			continue
		}
		for i := range m.open {
			if m.open[i].id == end.Call {
				m.open[i].end = &end
			}
		}
		f.Sending.Release()
	}
}

// store journals records, unless the turn was given up.
func (m *emitter) store(recs ...domain.Record) error {
	return m.t.live.Append(m.t.writing, func() error {
		if err := m.unsealed(); err != nil {
			return err
		}
		m.t.handedOver(recs)
		return nil
	}, recs...)
}

func (m *emitter) unsealed() error {
	if m.sealed.Load() {
		return errSealed
	}
	return nil
}

// tell sends what follows from records. It goes on after a cancel: what was
// announced must be closed.
func (m *emitter) tell(recs ...domain.Record) error {
	for _, rec := range recs {
		for _, u := range domain.Updates(rec) {
			if err := m.send(m.t.telling, m.t.priced(u)); err != nil {
				return err
			}
		}
	}
	return nil
}

// unfinished returns the calls that were announced and have no final status;
// none when the turn was given up meanwhile.
func (m *emitter) unfinished() []openCall {
	f := m.feed.Load()
	if f.Sending.Acquire(m.t.telling) != nil {
		return nil
	}
	defer f.Sending.Release()
	return slices.Clone(m.open)
}

// unfinishedCompaction returns the compaction that was announced and has no
// final status, "" when there is none.
func (m *emitter) unfinishedCompaction() domain.CompactionID {
	f := m.feed.Load()
	if f.Sending.Acquire(m.t.telling) != nil {
		return ""
	}
	defer f.Sending.Release()
	return m.compacting
}

// leave lets nothing new through of a turn that is given up. Unlike seal it
// does not wait for a Send that is under way.
func (m *emitter) leave() {
	m.left.Store(true)
	m.sealed.Store(true)
}

// seal lets nothing more through: when it returns, no Send is under way. After
// a cancel it waits only for the Send to notice.
func (m *emitter) seal() {
	f := m.feed.Load()
	m.sealed.Store(true)
	if f.Sending.Acquire(m.t.ctx) != nil {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(m.t.ctx), noticeLimit)
		defer cancel()
		if f.Sending.Acquire(ctx) != nil {
			return
		}
	}
	f.Forget()
	f.Sending.Release()
}

// closeAll tells the end of a compaction and of every open call, past the seal,
// as long as the context lasts: the one that is journalled, else a failure with
// the text. It returns those calls.
func (m *emitter) closeAll(ctx context.Context, text string) []openCall {
	f := m.feed.Load()
	if f.Sending.Acquire(ctx) != nil {
		return nil
	}
	defer f.Sending.Release()
	if m.compacting != "" && ctx.Err() == nil {
		_ = f.Tell(ctx, domain.CompactionChanged{ID: m.compacting, Status: domain.CompactionCancelled})
		m.compacting = ""
	}
	open := m.open
	m.open = nil
	for _, c := range open {
		end := callFailed(m.t.id, c.id, text)
		if c.end != nil {
			end = *c.end
		}
		for _, u := range domain.Updates(end) {
			if ctx.Err() == nil {
				_ = f.Tell(ctx, u) // fails only when nobody listens any more
			}
		}
	}
	return open
}
