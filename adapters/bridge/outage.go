package bridge

import (
	"sync"
	"time"
)

// Outages is told of the times without a gateway that come after one was
// reached. Its methods are called one at a time, and must not block for long.
type Outages interface {
	// Lost is called once for each of them, with why the gateway cannot be
	// reached, nil when that is not known yet, and how long it is looked for.
	Lost(why error, limit time.Duration)
	// Back is called when what Lost told of is over, and all goes on.
	Back()
	// Over is called when the bridge gives up.
	Over(why error)
}

// slowDial is how long dialling may take after a cut that nobody is told of:
// most cuts are over at once.
const slowDial = time.Second

// away is what Config.Outages was told.
type away struct {
	mu       sync.Mutex
	dialling bool // after a loss, and nobody was told of that yet
	lost     bool // Lost was called, and Back was not
}

// missing tells that there is no gateway, unless that was told already, or
// nobody needs one any more.
func (b *Bridge) missing(why error) {
	b.away.mu.Lock()
	defer b.away.mu.Unlock()
	b.missingLocked(why)
}

func (b *Bridge) missingLocked(why error) {
	select {
	case <-b.ending:
		return
	default:
	}
	if b.cfg.Outages != nil && !b.away.lost {
		b.away.lost = true
		b.cfg.Outages.Lost(why, b.cfg.LostLimit)
	}
}

// found tells that there is a gateway again, if somebody was told that there is
// none.
func (b *Bridge) found() {
	b.away.mu.Lock()
	defer b.away.mu.Unlock()
	if b.away.lost {
		b.away.lost = false
		b.cfg.Outages.Back()
	}
}

// givenUp tells that there will be no gateway any more, after there was one.
func (b *Bridge) givenUp(why error) {
	b.away.mu.Lock()
	defer b.away.mu.Unlock()
	if b.cfg.Outages != nil && b.reached && why != nil {
		b.cfg.Outages.Over(why)
	}
}

// dialsAgain has missing called when what follows takes long. The returned
// function ends that.
func (b *Bridge) dialsAgain() (stop func()) {
	set := func(on bool) {
		b.away.mu.Lock()
		defer b.away.mu.Unlock()
		b.away.dialling = on
	}
	set(true)
	slow := time.AfterFunc(slowDial, func() {
		b.away.mu.Lock()
		defer b.away.mu.Unlock()
		if b.away.dialling {
			b.missingLocked(nil)
		}
	})
	return func() {
		slow.Stop()
		set(false)
	}
}
