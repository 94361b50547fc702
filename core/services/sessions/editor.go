package sessions

import (
	"context"
	"fmt"
	"time"

	"github.com/berth-dev/berth/core/domain"
	"github.com/berth-dev/berth/core/ports"
)

// editorLimit is how long an editor whose connection is interrupted is waited
// for. Most are back in a moment; a turn that nobody watches reads from the
// disk, and does not stand still until somebody opens the lid.
const editorLimit = 10 * time.Second

// Files forwards to the attached client as long as it is attached and there.
func (a *Attachment) Files() (ports.Files, bool) {
	s, _, _ := a.current()
	if s == nil {
		return nil, false
	}
	if left, _, away := a.absence(s.client); away && left <= 0 {
		return nil, false
	}
	files, ok := s.client.Files()
	if !ok {
		return nil, false
	}
	return &editor{a: a, seat: s, files: files}, true
}

// editor is the buffers of who has a seat. A call ends when that time is over
// or the client has been absent for too long, whatever becomes of the request.
type editor struct {
	a     *Attachment
	seat  *seat
	files ports.Files
}

// ReadText fails with domain.Disconnected in its chain when the client goes away
// meanwhile.
func (e *editor) ReadText(ctx context.Context, id domain.SessionID, path string) (string, error) {
	bounded, end := e.bounded(ctx)
	defer end()
	text, err := e.files.ReadText(bounded, id, path)
	if err != nil && ctx.Err() == nil && bounded.Err() != nil {
		return "", errWent(err)
	}
	return text, err
}

// WriteText fails with domain.Disconnected in its chain when the client goes
// away meanwhile: then nobody knows whether it was written.
func (e *editor) WriteText(ctx context.Context, id domain.SessionID, path, text string) error {
	bounded, end := e.bounded(ctx)
	defer end()
	err := e.files.WriteText(bounded, id, path, text)
	if err != nil && ctx.Err() == nil && bounded.Err() != nil {
		return errWent(err)
	}
	return err
}

func errWent(err error) error {
	return domain.WrapError(domain.Unavailable, fmt.Errorf("%w: %w", domain.Disconnected, err), "the client went away before it answered")
}

// bounded is a context that also ends when the client is not there any more.
// end gives it up, and joins what looks after it.
func (e *editor) bounded(ctx context.Context) (bounded context.Context, end func()) {
	bounded, cancel := context.WithCancel(ctx)
	joined := make(chan struct{})
	go func() { // ends with bounded; end joins it
		defer close(joined)
		defer cancel()
		e.watch(bounded)
	}()
	return bounded, func() { cancel(); <-joined }
}

// watch returns when the client's time is over, when it has been absent for too
// long, or when the context ends.
func (e *editor) watch(ctx context.Context) {
	for {
		left, changed, away := e.a.absence(e.seat.client)
		limit := time.NewTimer(left)
		if !away {
			limit.Stop()
		}
		select {
		case <-e.seat.gone:
		case <-ctx.Done():
		case <-limit.C:
		case <-changed:
			limit.Stop()
			continue
		}
		limit.Stop()
		return
	}
}
