package llm

import (
	"fmt"
	"sync"
	"time"

	"github.com/berth-dev/berth/core/domain"
)

// How long a model rests that failed while others can answer in its place: as
// long as its provider asked, else a minute, twice as long each time in a row.
// A spent account is looked at again as seldom as possible. Nobody rests for
// longer than longestRest, for waits that providers name are often wrong.
const (
	firstRest   = time.Minute
	longestRest = 16 * time.Minute
)

// cooling remembers which models failed lately, so that the next request asks
// another first and does not wait for the same failure again. It forgets with
// the process. It is safe for concurrent use.
type cooling struct {
	mu    sync.Mutex
	rests map[domain.ModelRef]rest
}

// rest is the state of one model.
type rest struct {
	until time.Time
	times int // failures in a row, those of one moment taken for one
	why   string
}

// failed notes a failure. One that depends on the request says nothing about
// the next and is not noted.
func (c *cooling) failed(ref domain.ModelRef, err *domain.Error) {
	if !passes(err.Code) && err.Code != domain.AuthRequired {
		return
	}
	now := time.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	r := c.rests[ref]
	if !now.Before(r.until) {
		r.times++
	}
	r.why = err.Msg
	if until := now.Add(restOf(r.times, err)); until.After(r.until) {
		r.until = until
	}
	if c.rests == nil {
		c.rests = make(map[domain.ModelRef]rest)
	}
	c.rests[ref] = r
}

// restOf returns how long a model rests after so many failures in a row.
func restOf(times int, err *domain.Error) time.Duration {
	switch {
	case err.RetryAfter > 0:
		return min(err.RetryAfter, longestRest)
	case err.Code == domain.QuotaExhausted:
		return longestRest
	}
	d := firstRest
	for ; times > 1 && d < longestRest; times-- {
		d *= 2
	}
	return min(d, longestRest)
}

// works forgets the failures of a model that has answered.
func (c *cooling) works(ref domain.ModelRef) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.rests, ref)
}

// order puts those that rest behind the others: before a request fails,
// everybody is asked. Why tells about the first reference when it rests.
func (c *cooling) order(refs []domain.ModelRef) (order []domain.ModelRef, why string) {
	now := time.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	var resting []domain.ModelRef
	for i, ref := range refs {
		r := c.rests[ref]
		if !now.Before(r.until) {
			order = append(order, ref)
			continue
		}
		if resting = append(resting, ref); i == 0 {
			why = fmt.Sprintf("%s (it is asked again in %s)", r.why, r.until.Sub(now).Round(time.Second))
		}
	}
	return append(order, resting...), why
}
