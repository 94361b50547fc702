package sessions

import (
	"context"
	"slices"

	"github.com/berth-dev/berth/core/domain"
)

// Feed is the one way by which the turns of a session, one after the other,
// tell anything. Its two locks order what is journalled and what is told, so
// that whoever holds both sees a moment at which the journal and the tail
// together are exactly what the client was told. Recording is taken before
// Sending, and neither is taken with the lock of Live held.
type Feed struct {
	// Recording is held over an append and what is told of it.
	Recording Lock
	// Sending is held over each Tell. It guards the tail.
	Sending Lock

	live *Live
	tail tail
	told domain.Seq // up to where the journal was told
}

func newFeed(l *Live) *Feed {
	return &Feed{Recording: newLock(), Sending: newLock(), live: l, told: l.position()}
}

// hold takes both locks of the session's feed.
func (l *Live) hold(ctx context.Context) (*Feed, error) {
	for {
		f := l.Feed()
		if err := f.Recording.Acquire(ctx); err != nil {
			return nil, err
		}
		if err := f.Sending.Acquire(ctx); err != nil {
			f.Recording.Release()
			return nil, err
		}
		if f == l.Feed() {
			return f, nil
		}
		f.release() // its turn was given up
	}
}

func (f *Feed) release() {
	f.Sending.Release()
	f.Recording.Release()
}

// mark is a place in what is told: a position in the journal, and how much of
// each text that it does not hold, in bytes. It counts until somebody comes.
type mark struct {
	came  int64 // how often somebody had come
	after domain.Seq
	texts map[textOf]int
	// items are the other things of the tail that were told, as they were.
	items map[*tailItem]tailItem
	// said are the prompts that began since and were another client's.
	said map[domain.MessageID]bool
}

// Tell tells an update to whoever is attached and to who observes. The caller
// holds Sending.
func (f *Feed) Tell(ctx context.Context, u domain.Update) error {
	taken, err := f.live.att.pass(ctx, f.live.id, u)
	if err != nil {
		return err
	}
	if !taken && f.lost() == nil {
		f.live.missed.Store(f.here())
	}
	if said, ok := u.(domain.UserMessage); ok && !taken {
		f.lost().said[said.ID] = true
	}
	f.tail.add(u)
	return nil
}

// lost returns where the newest client was lost, if something was told since;
// else nil. The caller holds Sending.
func (f *Feed) lost() *mark {
	if m := f.live.missed.Load(); m != nil && m.came == f.live.att.came.Load() {
		return m
	}
	return nil
}

// here is the place that has been reached.
func (f *Feed) here() *mark {
	m := &mark{
		came: f.live.att.came.Load(), after: f.told, texts: f.tail.texts(),
		items: make(map[*tailItem]tailItem), said: make(map[domain.MessageID]bool),
	}
	for _, i := range f.tail.items {
		m.items[i] = *i
	}
	return m
}

// resumes returns where somebody who comes now goes on: where the one before
// was lost; nil when there is one. The caller holds Sending.
func (f *Feed) resumes() *mark {
	switch m := f.lost(); {
	case m != nil:
		return m
	case f.live.att.seated():
		return nil
	}
	return f.here()
}

// knew reports whether what a record says of a call had been told.
func (m *mark) knew(rec domain.Record) bool {
	for i := range m.items {
		switch rec := rec.(type) {
		case domain.CallBegan:
			if u, ok := m.items[i].u.(domain.CallOpened); ok && u.ID == rec.Call.ID {
				return true
			}
		case domain.CallFinished:
			if u, ok := m.items[i].u.(domain.CallChanged); ok && u.ID == rec.Call && u.Status.Final() {
				return true
			}
		case domain.UserSaid, domain.Streamed, domain.AssistantSaid, domain.PermissionGiven, domain.PlanSet, domain.TitleSet, domain.ClientEvent,
			domain.Compacted, domain.TurnFinished, domain.Unknown:
		}
	}
	return false
}

// Journalled says that what follows from records, of which the journal tells
// from now on, was told.
func (f *Feed) Journalled(ctx context.Context, recs ...domain.Record) {
	if f.Sending.Acquire(ctx) != nil {
		return
	}
	defer f.Sending.Release()
	for _, rec := range recs {
		f.tail.drop(rec)
	}
	f.told = f.live.position()
}

// Forget drops the tail, when a turn begins or ends. The caller holds Sending.
func (f *Feed) Forget() { f.tail, f.told = tail{}, f.live.position() }

// tail is what a running turn has told and the journal does not hold yet, in
// order, each thing as of now: text that is being streamed, the progress of
// open calls, a compaction.
type tail struct{ items []*tailItem }

// tailItem is one thing. Of a text, said is what was told of it; everything
// else is u.
type tailItem struct {
	u       domain.Update
	text    textOf
	said    *domain.Words // nil unless it is a text
	changes int           // how often u was changed
}

// textOf is what a text belongs to: a message, as an answer or as a thought, or
// a compaction.
type textOf struct {
	message    domain.MessageID
	thought    bool
	compaction domain.CompactionID
}

func (t *tail) add(u domain.Update) {
	switch u := u.(type) {
	case domain.AgentText:
		t.piece(textOf{message: u.ID}, u.Text)
	case domain.AgentThought:
		t.piece(textOf{message: u.ID, thought: true}, u.Text)
	case domain.CompactionText:
		t.piece(textOf{compaction: u.ID}, u.Text)
	case domain.CompactionChanged:
		t.items = slices.DeleteFunc(t.items, func(i *tailItem) bool { return u.Status.Final() && i.compaction() == u.ID })
		t.items = append(t.items, &tailItem{u: u})
	case domain.CallOpened: // until all that its record says was told
		t.items = append(t.items, &tailItem{u: u})
	case domain.CallChanged:
		t.change(u)
	case domain.UserMessage, domain.PlanChanged, domain.UsageChanged, domain.InfoChanged,
		domain.CommandsChanged, domain.Notice, domain.QueueChanged, domain.TurnStarted, domain.TurnEnded:
		// The journal has these, or nobody is told of them again.
	}
}

// texts returns how long the texts are, in bytes, by what they belong to.
func (t *tail) texts() map[textOf]int {
	n := make(map[textOf]int)
	for _, i := range t.items {
		if i.said != nil {
			n[i.text] += i.said.Len()
		}
	}
	return n
}

// piece adds to a text. A new one is most often the one before.
func (t *tail) piece(of textOf, text string) {
	for i := len(t.items) - 1; i >= 0; i-- {
		if t.items[i].text == of {
			t.items[i].said.Add(text)
			return
		}
	}
	said := &domain.Words{}
	said.Add(text)
	t.items = append(t.items, &tailItem{text: of, said: said})
}

// change merges a change of a call into those before.
func (t *tail) change(u domain.CallChanged) {
	for _, i := range t.items {
		if old, ok := i.u.(domain.CallChanged); ok && old.ID == u.ID {
			i.u = merged(old, u)
			i.changes++
			return
		}
	}
	t.items = append(t.items, &tailItem{u: u})
}

// merged is one change that does what two do.
func merged(a, b domain.CallChanged) domain.CallChanged {
	if b.Status != "" {
		a.Status = b.Status
	}
	if b.Title != "" {
		a.Title = b.Title
	}
	if b.Content != nil {
		a.Content = b.Content
	}
	if b.Locations != nil {
		a.Locations = b.Locations
	}
	if b.RawOutput != nil {
		a.RawOutput = b.RawOutput
	}
	return a
}

// drop takes away what a record tells.
func (t *tail) drop(rec domain.Record) {
	t.items = slices.DeleteFunc(t.items, func(i *tailItem) bool {
		switch rec := rec.(type) {
		case domain.AssistantSaid:
			return i.text.message != ""
		case domain.CallFinished:
			changed, ok := i.u.(domain.CallChanged)
			return ok && changed.ID == rec.Call
		case domain.Compacted:
			return rec.ID != "" && i.compaction() == rec.ID
		case domain.CallBegan:
			opened, ok := i.u.(domain.CallOpened)
			return ok && opened.ID == rec.Call.ID
		case domain.UserSaid, domain.Streamed, domain.PermissionGiven, domain.PlanSet, domain.TitleSet, domain.ClientEvent,
			domain.TurnFinished, domain.Unknown:
		}
		return false
	})
}

// compaction is the compaction that the item is about; "" for none.
func (i *tailItem) compaction() domain.CompactionID {
	if u, ok := i.u.(domain.CompactionChanged); ok {
		return u.ID
	}
	return i.text.compaction
}

// update is the item as one update, without the first bytes of a text; nil when
// nothing is left of that.
func (i *tailItem) update(skip int) domain.Update {
	if i.u != nil {
		return i.u
	}
	text := i.said.After(skip)
	switch {
	case text == "":
		return nil
	case i.text.compaction != "":
		return domain.CompactionText{ID: i.text.compaction, Text: text}
	case i.text.thought:
		return domain.AgentThought{ID: i.text.message, Text: text}
	}
	return domain.AgentText{ID: i.text.message, Text: text}
}
