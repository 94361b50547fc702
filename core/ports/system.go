package ports

import (
	"context"
	"time"

	"github.com/berth-dev/berth/core/domain"
)

// Observer sees events. It never blocks and never fails.
type Observer interface {
	Observe(context.Context, domain.Event)
}

// Clock returns the time of day. It is used for stamps only; waiting uses
// package time, which tests run in a bubble.
type Clock func() time.Time

// IDs returns a new unique id, a lower-case UUID.
type IDs func() string
