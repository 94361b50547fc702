package turns

import (
	"slices"

	"github.com/berth-dev/berth/core/domain"
)

// The most media that one request carries, counted from the newest back. What
// is older is named in words, as it is for a model that cannot see.
const (
	maxMediaBytes = 16 << 20
	maxMedia      = 40
)

// gallery is the media of one request.
type gallery struct {
	t     *turn
	info  domain.ModelInfo
	bytes int64
	count int
}

// showMedia makes of the messages what the model is sent: text, and the
// pictures and sounds themselves where it can take them. It replaces messages
// in the slice and changes none.
func (t *turn) showMedia(messages []domain.ModelMessage) {
	g := gallery{t: t, info: t.model.Info()}
	for i, m := range slices.Backward(messages) {
		switch m := m.(type) {
		case domain.UserInput:
			messages[i] = domain.UserInput{Blocks: g.input(m.Blocks)}
		case domain.ToolOutput:
			if len(m.Media) > 0 {
				m.Media = g.shown(m.Media)
				messages[i] = m
			}
		case domain.ModelReply:
		}
	}
}

// input returns the blocks of a user's message: runs of text joined, and media
// between them.
func (g *gallery) input(blocks []domain.Block) []domain.Block {
	media := make([]domain.Block, len(blocks))
	for i, b := range slices.Backward(blocks) {
		media[i] = g.open(b)
	}
	var out, words []domain.Block
	flush := func() {
		if s := domain.PromptText(words); s != "" || len(out) == 0 && len(words) > 0 {
			out = append(out, domain.Text{Text: s})
		}
		words = nil
	}
	for i, b := range blocks {
		if media[i] == nil {
			words = append(words, b)
			continue
		}
		flush()
		out = append(out, media[i])
	}
	flush()
	return out
}

// shown returns the media of a tool's output that the model is sent.
func (g *gallery) shown(blocks []domain.Block) []domain.Block {
	var out []domain.Block
	for _, b := range blocks {
		if m := g.open(b); m != nil {
			out = append(out, m)
		}
	}
	return out
}

// open reads an attachment that the model can take. It is nil for everything
// else, and for a file that is gone or has changed: then the words stay.
func (g *gallery) open(b domain.Block) domain.Block {
	a, ok := b.(domain.Attachment)
	if !ok || !g.takes(a) || g.count == maxMedia || g.bytes+a.Size > maxMediaBytes {
		return nil
	}
	data, err := g.t.e.p.Blobs.Read(g.t.ctx, g.t.view.Session, a)
	if err != nil {
		if code := domain.CodeOf(err); code != domain.NotFound && code != domain.Conflict && code != domain.Denied && g.t.ctx.Err() == nil {
			g.t.e.trouble(g.t.ctx, g.t.sid, "turns: read an attachment", err)
		}
		return nil
	}
	m, ok := a.Media(data)
	if !ok {
		return nil
	}
	g.count++
	g.bytes += int64(len(data))
	return m
}

// takes reports whether the model can be shown an attachment.
func (g *gallery) takes(a domain.Attachment) bool {
	m, _ := a.Media(nil)
	if _, sound := m.(domain.Audio); sound {
		return g.info.Audio
	}
	return g.info.Images && domain.VisiblePicture(a.MIME)
}
