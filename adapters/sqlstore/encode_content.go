package sqlstore

import "github.com/berth-dev/berth/core/domain"

// The members of the content unions by the name in "type".
const (
	typeText       = "text"
	typeImage      = "image"
	typeAudio      = "audio"
	typeResource   = "resource"
	typeLink       = "link"
	typeAttachment = "attachment"
	typeContent    = "content"
	typeDiff       = "diff"
	typeFile       = "file"
)

func writeBlock(w *writer, b domain.Block) error {
	switch b := b.(type) {
	case domain.Text:
		text(w, "type", typeText)
		text(w, "text", b.Text)
	case domain.Image:
		text(w, "type", typeImage)
		text(w, "mime", b.MIME)
		w.bytes("data", b.Data)
		text(w, "uri", b.URI)
	case domain.Audio:
		text(w, "type", typeAudio)
		text(w, "mime", b.MIME)
		w.bytes("data", b.Data)
	case domain.Resource:
		text(w, "type", typeResource)
		text(w, "uri", b.URI)
		text(w, "mime", b.MIME)
		text(w, "text", b.Text)
		w.bytes("data", b.Blob)
		w.flag("binary", b.Binary)
	case domain.Link:
		text(w, "type", typeLink)
		text(w, "uri", b.URI)
		text(w, "name", b.Name)
		text(w, "title", b.Title)
		text(w, "description", b.Description)
		text(w, "mime", b.MIME)
		w.number("size", b.Size)
	case domain.Attachment:
		text(w, "type", typeAttachment)
		text(w, "path", b.Path)
		text(w, "sha256", b.SHA256)
		text(w, "mime", b.MIME)
		text(w, "name", b.Name)
		text(w, "uri", b.URI)
		w.number("size", b.Size)
		w.flag("inline", b.Inline)
	default:
		return domain.Errorf(domain.InvalidArgument, "A %T cannot be stored as a content block", b)
	}
	return nil
}

func writeContent(w *writer, c domain.CallContent) error {
	var err error
	switch c := c.(type) {
	case domain.ContentBlock:
		text(w, "type", typeContent)
		object(w, "block", c.Block, noting(&err, writeBlock))
	case domain.Diff:
		text(w, "type", typeDiff)
		text(w, "path", c.Path)
		text(w, "old_text", c.OldText)
		text(w, "new_text", c.NewText)
		w.flag("created", c.Created)
	case domain.FileContent: // without its bytes
		text(w, "type", typeFile)
		object(w, "block", domain.Block(c.File), noting(&err, writeBlock))
		text(w, "title", c.Title)
		w.flag("delivered", c.Delivered)
	default:
		return domain.Errorf(domain.InvalidArgument, "A %T cannot be stored as the content of a call", c)
	}
	return err
}
