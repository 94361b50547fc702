package turns

import (
	"context"
	"fmt"

	"github.com/berth-dev/berth/core/domain"
	"github.com/berth-dev/berth/core/ports"
)

// equipped is a tool and what it says of itself, asked once a turn.
type equipped struct {
	ports.Tool
	spec domain.ToolSpec
}

// begin brings the session into memory, opens the model, stores the prompt's
// blobs, journals the user's message and tells that the turn has started. It
// does not stop for a cancel, so that what the user saw themselves say is
// there on load.
func (t *turn) begin() error {
	view, err := t.live.Hold(t.writing)
	if err != nil {
		return err
	}
	t.held, t.view = true, view
	t.view.Agent.Policy.Level = t.client.Info().Rights.Cap(view.Agent.Policy.Level)
	t.mu.Lock()
	t.before, t.cost, t.agent = view.Total, view.Cost, view.Agent.Alias
	t.mu.Unlock()
	if t.model, err = t.e.p.Models.Open(t.writing, view.Agent.Model); err != nil {
		return err
	}
	t.command, t.words, _ = t.prompt.Command()
	t.equip()
	if err := t.affordable(t.writing); err != nil {
		return err
	}
	wait := t.readInstructions()
	defer wait()
	if err := t.promptFits(wait); err != nil {
		return err
	}
	blocks, err := t.storeBlobs(t.writing)
	if err != nil {
		return err
	}
	recs := []domain.Record{domain.UserSaid{Turn: t.id, ID: t.message(), Blocks: blocks, Command: t.command}}
	if view.Session.Title == "" && t.command == "" {
		if title := domain.TitleFrom(blocks); title != "" {
			recs = append(recs, domain.TitleSet{Title: title})
		}
	}
	return t.emit.begin(recs...)
}

// message is the id of the user's message.
func (t *turn) message() domain.MessageID { return domain.MessageID(t.id + "-u") }

// readInstructions makes the system prompt while the user's message is being
// journalled. The function it returns waits for it.
func (t *turn) readInstructions() (wait func()) {
	done := make(chan struct{})
	go func() { // ends with the ports' calls, which end with their context
		defer close(done)
		err := t.isolate("instructions", func() error {
			posture := t.e.p.Sandbox.Posture(t.writing, t.view.Agent.Alias)
			t.system = system(t.view.Agent, t.view.Session, posture, t.e.p.Instructions.Read(t.writing, t.view.Session, t.view.Agent), t.specs)
			return nil
		})
		if err != nil { // it was told to the observer
			t.system = system(t.view.Agent, t.view.Session, domain.Posture{}, nil, t.specs)
		}
	}()
	return func() { <-done }
}

// drop lets the session go that begin held.
func (t *turn) drop() {
	if t.held {
		t.live.Drop()
	}
}

// equip indexes the engine's own tools and the session's. Of two with one
// name the first counts: a model is never offered a name twice.
func (t *turn) equip() {
	all := append([]ports.Tool{planTool{}}, t.view.Tools...)
	t.tools = make(map[string]equipped, len(all))
	t.specs = make([]domain.ToolSpec, 0, len(all))
	for _, tool := range all {
		spec := tool.Spec()
		if _, twice := t.tools[spec.Name]; twice {
			t.e.trouble(t.ctx, t.sid, "turns: tools", fmt.Errorf("two tools are called %s; the first is used", spec.Name))
			continue
		}
		t.tools[spec.Name] = equipped{tool, spec}
		t.specs = append(t.specs, spec)
	}
}

// storeBlobs puts the pictures, sounds and binary resources of the prompt into files and returns
// the blocks with attachments in their place.
func (t *turn) storeBlobs(ctx context.Context) ([]domain.Block, error) {
	var blobs []domain.Resource
	for _, b := range t.prompt.Blocks {
		if r, _, ok := blobOf(b); ok {
			blobs = append(blobs, r)
		}
	}
	if len(blobs) == 0 {
		return t.prompt.Blocks, nil
	}
	stored, err := t.e.p.Blobs.Store(ctx, t.view.Session, blobs)
	if err != nil {
		return nil, err
	}
	blocks := make([]domain.Block, 0, len(t.prompt.Blocks))
	for _, b := range t.prompt.Blocks {
		if _, inline, ok := blobOf(b); ok {
			stored[0].Inline = inline
			blocks = append(blocks, stored[0])
			stored = stored[1:]
			continue
		}
		blocks = append(blocks, b)
	}
	return blocks, nil
}

// blobOf returns what is stored of a block as a file, and whether it came as
// media of its own; false when the block holds no bytes.
func blobOf(b domain.Block) (r domain.Resource, inline, ok bool) {
	switch b := b.(type) {
	case domain.Resource:
		return b, false, b.Binary
	case domain.Image:
		return domain.Resource{URI: b.URI, MIME: b.MIME, Blob: b.Data, Binary: true}, true, true
	case domain.Audio:
		return domain.Resource{MIME: b.MIME, Blob: b.Data, Binary: true}, true, true
	case domain.Text, domain.Link, domain.Attachment:
	}
	return domain.Resource{}, false, false
}
