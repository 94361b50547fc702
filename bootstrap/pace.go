package bootstrap

import (
	"context"
	"math"
	"sync"
	"time"

	"github.com/berth-dev/berth/adapters/jsonrpc/acp1"
	"github.com/berth-dev/berth/core/domain"
	"github.com/berth-dev/berth/core/ports"
)

// How many sessions the clients of one token may begin: so many at once, and
// then so many in a time.
const (
	paceBurst = 120
	paceTime  = 10 * time.Second
)

// pacer keeps those who begin sessions without end from keeping the others
// busy. The zero value is not ready; see newPacer.
type pacer struct {
	clock ports.Clock

	mu   sync.Mutex
	left map[string]*pace // by the token's name
}

// pace is a bucket that fills with time.
type pace struct {
	left float64
	at   time.Time
}

func newPacer(clock ports.Clock) *pacer { return &pacer{clock: clock, left: map[string]*pace{}} }

// begin takes one session from what a token may begin. The error says when to
// come back.
func (p *pacer) begin(name string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.clock()
	b := p.left[name]
	if b == nil {
		b = &pace{left: paceBurst, at: now}
		p.left[name] = b
	}
	const perSecond = float64(paceBurst) / float64(paceTime/time.Second)
	b.left = min(paceBurst, b.left+perSecond*max(0, now.Sub(b.at).Seconds()))
	b.at = now
	if b.left < 1 {
		wait := int(math.Ceil((1 - b.left) / perSecond * 1000))
		return domain.Errorf(domain.SessionLimit, "More than %d sessions were begun within %v with this token; wait a moment", paceBurst, paceTime).
			With("retryAfterMs", wait)
	}
	b.left--
	return nil
}

// paced is the sessions as the clients of a token may use them.
type paced struct {
	acp1.SessionService
	pacer *pacer
	name  string
}

// New opens a session unless too many were begun.
func (s paced) New(ctx context.Context, c ports.Client, want domain.NewSession) (domain.OpenedSession, error) {
	if err := s.pacer.begin(s.name); err != nil {
		return domain.OpenedSession{}, err
	}
	return s.SessionService.New(ctx, c, want)
}
