package bridge

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/berth-dev/berth/adapters/jsonrpc/tether"
)

// The waits between two attempts to reach the gateway: the first, doubled each
// time up to the longest, and each a random part of that.
const (
	firstWait   = 50 * time.Millisecond
	longestWait = 5 * time.Second
	// endingWait is the longest after the editor's input has ended: DrainLimit
	// must not be over because of a wait.
	endingWait = 250 * time.Millisecond
)

// errLost says that a channel is lost and cannot be taken up again.
var errLost = errors.New("the connection is lost")

// outage is a time without a gateway.
type outage struct {
	since time.Time
	limit time.Duration
	tries int
}

// wait waits before the next attempt, or says that the outage has been too
// long. last is why the attempt before failed.
func (o *outage) wait(ctx context.Context, b *Bridge, last error) error {
	var refused *Refused
	if errors.As(last, &refused) {
		return last
	}
	left := o.limit - time.Since(o.since)
	if left <= 0 {
		return fmt.Errorf("no gateway for %v: %w", o.limit, last)
	}
	most := longestWait
	if o.tries < 7 {
		most = firstWait << o.tries
	}
	d := b.rand(most)
	if o.tries == 0 {
		d = b.rand(firstWait / 5) // most cuts are over at once
	}
	ending := b.ending // nil when its coming changes nothing
	select {
	case <-ending:
		d, ending = min(d, endingWait), nil
	default:
	}
	var later *Later
	if errors.As(last, &later) {
		d, ending = max(d, later.After), nil
	}
	o.tries++
	t := time.NewTimer(min(d, left))
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ending:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// connect opens a new channel, however often that takes.
func (b *Bridge) connect(ctx context.Context, o *outage) (*channel, error) {
	if ch := b.spare; ch != nil {
		b.spare = nil
		return ch, nil
	}
	for {
		d, err := b.dial(ctx, "", tether.Ask("", 0))
		if err == nil {
			return b.channel(d), nil
		}
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		b.cfg.Log("no gateway: %v", err)
		if err := o.wait(ctx, b, err); err != nil {
			return nil, err
		}
	}
}

// dial opens a socket.
func (b *Bridge) dial(ctx context.Context, connection, link string) (Dialled, error) {
	stop := func() {}
	if b.reached {
		stop = b.dialsAgain()
	}
	d, err := b.cfg.Dial(ctx, connection, link)
	stop()
	b.firstDial.Do(func() {
		b.refused = isRefused(err)
		close(b.tried)
	})
	switch {
	case err == nil:
		b.gone, b.reached, b.unreached = d.Gone, true, nil
	case ctx.Err() != nil:
	case b.reached:
		b.missing(err)
	default:
		b.unreached = err
	}
	return d, err
}

// channel makes a socket one.
func (b *Bridge) channel(d Dialled) *channel {
	ch := &channel{frames: d.Frames, id: d.Connection, since: time.Now()}
	if links, _, _ := tether.Answered(d.Link); links && d.Connection != "" {
		ch.link = tether.New(d.Frames, tether.Options{})
		ch.frames = ch.link
	}
	b.cfg.Log("connected; the gateway's id of the connection is %q, links: %v", d.Connection, ch.link != nil)
	return ch
}

// strikes is how often in a row a link may be cut without anything having come
// over it, before it is given up: what is sent may be what cuts it. On a bad
// line that happens to any long frame, and giving up costs what the link keeps,
// so there are many, further and further apart: some twenty seconds in all.
const strikes = 12

// steady is how long a socket has to last so that its cut is the first in a
// row: an idle one has nothing come over it for days, and what is sent cuts
// sooner.
const steady = time.Minute

// resume takes a channel up again whose socket was lost. When the gateway
// does not know it any more the error is errLost, and the new connection that
// it gave instead is kept for connect.
func (b *Bridge) resume(ctx context.Context, ch *channel) error {
	if time.Since(ch.since) >= steady {
		ch.cuts = 0
	}
	o := outage{since: time.Now(), limit: b.cfg.LostLimit, tries: ch.cuts}
	if ch.cuts++; ch.cuts > strikes {
		b.cfg.Log("the connection was cut %d times in a row with nothing between; it is given up", strikes)
		return errLost
	}
	b.cfg.Log("the connection was cut")
	if ch.cuts > 1 {
		if err := o.wait(ctx, b, errLost); err != nil {
			return err
		}
	}
	for {
		ticket, received, err := ch.link.Fence()
		if err != nil {
			return errLost
		}
		d, err := b.dial(ctx, ch.id, tether.Ask(ch.id, received))
		if err == nil {
			_, again, have := tether.Answered(d.Link)
			if again && ch.link.Attach(ticket, d.Frames, have) == nil {
				ch.since = time.Now()
				b.cfg.Log("the connection goes on")
				b.found()
				return nil
			}
			if again {
				_ = d.Frames.Close()
				return errLost
			}
			b.cfg.Log("the gateway does not know the connection any more")
			b.spare = b.channel(d)
			return errLost
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		b.cfg.Log("no gateway: %v", err)
		if err := o.wait(ctx, b, err); err != nil {
			return err
		}
	}
}

// read returns the next frame of a channel, over cuts of its socket. errLost
// says that no more will come; io.EOF that the gateway ended it.
func (b *Bridge) read(ctx context.Context, ch *channel) ([]byte, error) {
	for {
		frame, err := ch.frames.Read()
		switch {
		case err == nil:
			ch.cuts = 0
			return frame, nil
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		case errors.Is(err, tether.ErrAway):
			if err := b.resume(ctx, ch); err != nil {
				return nil, err
			}
		case isEnd(err):
			return nil, err
		default:
			b.cfg.Log("the connection was lost: %v", err)
			return nil, errLost
		}
	}
}
