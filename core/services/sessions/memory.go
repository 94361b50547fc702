package sessions

import (
	"context"
	"fmt"

	"github.com/berth-dev/berth/core/domain"
	"github.com/berth-dev/berth/core/ports"
)

// ready brings conv and tools up to date, with the lock held.
func (l *Live) ready(ctx context.Context) error {
	switch {
	case l.gone.Load():
		return domain.NoSession(l.id)
	case l.conv == nil:
		return l.restore(ctx)
	case l.doubtful:
		return l.reread(ctx)
	}
	return nil
}

// restore reads a session back that was set aside.
func (l *Live) restore(ctx context.Context) (err error) {
	if err := l.lease(ctx); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			l.unlease(context.WithoutCancel(ctx))
		}
	}()
	row, err := l.svc.p.Sessions.Load(ctx, l.id)
	if err != nil {
		return err
	}
	conv, err := l.read(ctx, row.Start, nil)
	if err != nil {
		return err
	}
	if err := l.enter(ctx, row, conv); err != nil {
		return err
	}
	l.svc.p.Observer.Observe(ctx, domain.SessionOpened{Session: l.id, How: "restore"})
	return nil
}

// reread replaces a doubtful conversation by what the journal holds.
func (l *Live) reread(ctx context.Context) error {
	row, err := l.svc.p.Sessions.Load(ctx, l.id)
	if err != nil {
		return err
	}
	conv, err := l.read(ctx, row.Start, nil)
	if err != nil {
		return err
	}
	l.row, l.conv, l.doubtful = row, conv, false
	l.agent.Store(new(row.Agent))
	l.pos.Store(int64(conv.Seq()))
	return nil
}

// read folds the journal after start into a conversation, showing each record
// to see (if not nil) on the way, and closes what was interrupted.
func (l *Live) read(ctx context.Context, start domain.Seq, see func(domain.Entry) error) (*domain.Conversation, error) {
	conv := domain.NewConversation(start)
	for entry, err := range l.svc.p.Journal.Records(ctx, l.id, start) {
		if err != nil {
			return nil, err
		}
		conv.Add(entry)
		if see != nil {
			if err := see(entry); err != nil {
				return nil, err
			}
		}
	}
	closers := conv.Settle()
	if err := l.append(ctx, conv, closers...); err != nil {
		return nil, err
	}
	first := conv.Seq() - domain.Seq(len(closers)) + 1
	for i, rec := range closers {
		if see != nil {
			if err := see(domain.Entry{Seq: first + domain.Seq(i), Record: rec}); err != nil {
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
			l.closeTools(ctx, sets)
			return err
		}
		sets = append(sets, set)
	}
	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseLimit)
	l.closeTools(closing, l.tools)
	cancel()
	l.row, l.conv, l.tools, l.doubtful = row, conv, sets, false
	l.agent.Store(new(row.Agent))
	l.pos.Store(int64(conv.Seq()))
	l.loaded.Store(true)
	return nil
}

// lease takes the session for this process, once, with the lock held.
func (l *Live) lease(ctx context.Context) error {
	if l.leased {
		return nil
	}
	if err := l.svc.leases.acquire(ctx, l.id); err != nil {
		return err
	}
	l.leased = true
	return nil
}

func (l *Live) unlease(ctx context.Context) {
	if !l.leased {
		return
	}
	l.leased = false
	if err := l.svc.leases.release(ctx, l.id); err != nil {
		l.svc.trouble(ctx, l.id, "sessions: release lease", err)
	}
}

// unload sets the session aside unless a turn holds it. It reports whether it
// was in memory and is not any more.
func (l *Live) unload(ctx context.Context) bool {
	if l.lock.Acquire(ctx) != nil {
		return false
	}
	defer l.lock.Release()
	if l.users.Load() > 0 {
		return false
	}
	was := l.conv != nil
	l.closeTools(ctx, l.tools)
	l.conv, l.tools, l.doubtful = nil, nil, false
	l.loaded.Store(false)
	l.unlease(ctx)
	return was
}

// closeTools closes toolsets and waits for them as long as the context lasts.
func (l *Live) closeTools(ctx context.Context, sets []ports.Toolset) {
	if len(sets) == 0 {
		return
	}
	closed := l.svc.chores.do(func() {
		for _, set := range sets {
			if err := closeSet(set); err != nil {
				l.svc.trouble(context.WithoutCancel(ctx), l.id, "sessions: close tools", err)
			}
		}
	})
	if err := waitFor(ctx, closed); err != nil {
		l.svc.trouble(ctx, l.id, "sessions: tools do not close", err)
	}
}

// closeSet turns a panic of a tool into an error: nobody else should fall
// with it.
func closeSet(set ports.Toolset) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	return set.Close()
}
