package sqlstore

import "github.com/berth-dev/berth/core/domain"

// flat holds the members of every kind of content. They are read first and
// sorted into the right type after, because "type" need not come first.
type flat struct {
	kind        string
	text        string
	mime        string
	uri         string
	name        string
	title       string
	description string
	path        string
	sha256      string
	data        []byte
	binary      bool
	size        int64
	inline      bool

	block   domain.Block
	oldText string
	newText string
	created bool

	delivered bool
}

func readBlock(r *reader) domain.Block {
	f := readFlat(r, false)
	switch f.kind {
	case typeText:
		return domain.Text{Text: f.text}
	case typeImage:
		return domain.Image{MIME: f.mime, Data: f.data, URI: f.uri}
	case typeAudio:
		return domain.Audio{MIME: f.mime, Data: f.data}
	case typeResource:
		return domain.Resource{URI: f.uri, MIME: f.mime, Text: f.text, Blob: f.data, Binary: f.binary}
	case typeLink:
		return domain.Link{URI: f.uri, Name: f.name, Title: f.title, Description: f.description, MIME: f.mime, Size: f.size}
	case typeAttachment:
		return domain.Attachment{Path: f.path, SHA256: f.sha256, MIME: f.mime, Name: f.name, URI: f.uri, Size: f.size, Inline: f.inline}
	}
	r.fail("the unknown block " + f.kind)
	return nil
}

func readContent(r *reader) domain.CallContent {
	f := readFlat(r, true)
	switch f.kind {
	case typeContent:
		return domain.ContentBlock{Block: f.block}
	case typeDiff:
		return domain.Diff{Path: f.path, OldText: f.oldText, NewText: f.newText, Created: f.created}
	case typeFile:
		if file, ok := f.block.(domain.Attachment); ok {
			return domain.FileContent{File: file, Title: f.title, Delivered: f.delivered}
		}
		r.fail("a shown file that is no attachment")
		return nil
	}
	r.fail("the unknown content " + f.kind)
	return nil
}

// readFlat reads all members. Only content holds a block, so nesting ends.
func readFlat(r *reader, content bool) (f flat) {
	for key := range r.object {
		if key == "block" && content {
			f.block = readBlock(r)
			continue
		}
		switch key {
		case "type":
			f.kind = r.text()
		case "text":
			f.text = r.text()
		case "mime":
			f.mime = r.text()
		case "uri":
			f.uri = r.text()
		case "name":
			f.name = r.text()
		case "title":
			f.title = r.text()
		case "description":
			f.description = r.text()
		case "path":
			f.path = r.text()
		case "sha256":
			f.sha256 = r.text()
		case "data":
			f.data = r.bytes()
		case "binary":
			f.binary = r.flag()
		case "size":
			f.size = r.number()
		case "inline":
			f.inline = r.flag()
		case "old_text":
			f.oldText = r.text()
		case "new_text":
			f.newText = r.text()
		case "created":
			f.created = r.flag()
		case "delivered":
			f.delivered = r.flag()
		default:
			r.skip()
		}
	}
	return f
}
