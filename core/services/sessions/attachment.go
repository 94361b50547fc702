package sessions

import (
	"context"
	"sync/atomic"

	"github.com/berth-dev/berth/core/domain"
	"github.com/berth-dev/berth/core/ports"
)

// Attachment is what a session's turns and tools hold in place of a
// connection. It forwards to the client that is attached at the moment of
// each call; after the client has gone, calls fail with domain.Disconnected.
type Attachment struct{ client atomic.Pointer[ports.Client] }

var _ ports.Client = (*Attachment)(nil)

func newAttachment(c ports.Client) *Attachment {
	a := &Attachment{}
	a.client.Store(&c)
	return a
}

func (a *Attachment) detach() { a.client.Store(nil) }

func (a *Attachment) current() (ports.Client, error) {
	if c := a.client.Load(); c != nil {
		return *c, nil
	}
	return nil, domain.Disconnected
}

// Send forwards to the attached client.
func (a *Attachment) Send(ctx context.Context, id domain.SessionID, u domain.Update) error {
	c, err := a.current()
	if err != nil {
		return err
	}
	return c.Send(ctx, id, u)
}

// Ask forwards to the attached client.
func (a *Attachment) Ask(ctx context.Context, r domain.PermissionRequest) (domain.Decision, error) {
	c, err := a.current()
	if err != nil {
		return domain.Decision{}, err
	}
	return c.Ask(ctx, r)
}

// Info forwards to the attached client; it is empty when there is none.
func (a *Attachment) Info() domain.ClientInfo {
	c, err := a.current()
	if err != nil {
		return domain.ClientInfo{}
	}
	return c.Info()
}

// Files forwards to the attached client.
func (a *Attachment) Files() (ports.Files, bool) {
	c, err := a.current()
	if err != nil {
		return nil, false
	}
	return c.Files()
}
