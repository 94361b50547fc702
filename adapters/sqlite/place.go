package sqlite

import (
	"os"
	"time"
)

// place is the one in front of the write lock, by a lock on a file beside the
// database that stays there. SQLite hands its lock on to nobody: a process that
// writes without a break takes it again before those who wait have looked. So
// whoever wants to write takes the place first, and leaves it when it has the
// write lock: while others wait, one of them stands there already, and who has
// just written comes behind it.
//
// It is a courtesy, not a lock that anything rests on. A process that was
// stopped while it stood there is passed by.
type place struct {
	name string
	// Used by the leader alone.
	file   *os.File // nil until it is needed, and when it cannot be made
	failed bool
	taken  bool
	since  time.Time // when the leader began to wait for it
	passed time.Time // until when nobody waits for it
}

const (
	placeLimit = time.Second      // how long one waits for the place
	passLimit  = 10 * time.Second // how long one that was waited for in vain is passed by
)

func placeName(path string) string { return path + ".place" }

// take reports whether this process may try to get the write lock.
func (p *place) take() bool {
	if p.taken || p.failed {
		return true
	}
	now := time.Now()
	if now.Before(p.passed) {
		return true
	}
	if p.file == nil {
		var err error
		if p.file, err = os.OpenFile(p.name, os.O_RDWR|os.O_CREATE, 0o600); err != nil {
			p.failed = true
			return true
		}
	}
	got, err := tryExclusive(p.file)
	switch {
	case err != nil:
		p.failed = true
	case got:
		p.taken, p.since = true, time.Time{}
	case p.since.IsZero():
		p.since = now
		return false
	case now.Sub(p.since) < placeLimit:
		return false
	default:
		p.since, p.passed = time.Time{}, now.Add(passLimit)
	}
	return true
}

// give lets the next one try.
func (p *place) give() {
	p.since = time.Time{}
	if p.taken {
		p.taken = false
		p.failed = unlock(p.file) != nil
	}
}

func (p *place) close() {
	if p.file != nil {
		p.file.Close()
		p.file = nil
	}
	p.failed = true
}
