package ws

import (
	"context"
	"net/netip"
	"sync"
	"time"
)

// What a limiter allows.
const (
	limitFailures = 10              // wrong tokens of one key within limitWindow
	limitWindow   = time.Minute     //
	limitPause    = 5 * time.Minute // and then nothing for so long
	limitKeys     = 4096            // keys it remembers
	limitDelay    = time.Second     // of an answer on loopback during a pause
	limitDelayed  = 64              // answers that wait at a time
)

// limiter counts wrong tokens by where they came from.
type limiter struct {
	now     func() time.Time
	waiting chan struct{}

	mu   sync.Mutex
	keys map[string]*failures
}

// failures are those of one key.
type failures struct {
	since  time.Time // of the first within the window
	count  int
	locked time.Time // until
}

func newLimiter(now func() time.Time) *limiter {
	return &limiter{now: now, waiting: make(chan struct{}, limitDelayed), keys: map[string]*failures{}}
}

// limitKey is an address and an origin. Of an IPv6 address the first half
// counts: the other one is its owner's to choose.
func limitKey(ip netip.Addr, origin string) string {
	if ip.Is6() {
		if p, err := ip.Prefix(64); err == nil {
			ip = p.Addr()
		}
	}
	return ip.String() + " " + origin
}

// locked returns for how long a key is locked out; 0 when it is not.
func (l *limiter) locked(key string) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if f := l.keys[key]; f != nil {
		return max(0, f.locked.Sub(l.now()))
	}
	return 0
}

// fail counts a wrong token.
func (l *limiter) fail(key string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now()
	f := l.keys[key]
	if f == nil {
		l.makeRoom(now)
		f = &failures{since: now}
		l.keys[key] = f
	}
	if now.Sub(f.since) > limitWindow {
		f.since, f.count = now, 0
	}
	if f.count++; f.count >= limitFailures {
		f.locked, f.count = now.Add(limitPause), 0
	}
}

// makeRoom forgets what does not matter any more when there are too many keys,
// and in a flood of them others, first those that are not locked out. It frees
// a quarter, so that a flood does not pay for it with every request.
func (l *limiter) makeRoom(now time.Time) {
	if len(l.keys) < limitKeys {
		return
	}
	for key, f := range l.keys {
		if now.After(f.locked) && now.Sub(f.since) > limitWindow {
			delete(l.keys, key)
		}
	}
	for _, also := range []bool{false, true} {
		for key, f := range l.keys {
			if len(l.keys) <= limitKeys*3/4 {
				return
			}
			if also || now.After(f.locked) {
				delete(l.keys, key)
			}
		}
	}
}

// delay waits a moment, unless too many wait already.
func (l *limiter) delay(ctx context.Context) {
	select {
	case l.waiting <- struct{}{}:
		defer func() { <-l.waiting }()
	default:
		return
	}
	t := time.NewTimer(limitDelay)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}
