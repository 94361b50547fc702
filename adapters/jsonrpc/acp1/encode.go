package acp1

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/berth-dev/berth/adapters/jsonrpc"
	"github.com/berth-dev/berth/core/domain"
)

// encoder appends JSON to buf by hand. It cuts what is too long and says so.
type encoder struct {
	buf      []byte
	start    int // where the params begin in buf
	limit    int // bytes of one string
	exempt   int // bytes that count for nothing, see file
	zeroclaw bool
}

func newEncoder(dst []byte, zeroclaw bool) encoder {
	return encoder{buf: dst, start: len(dst), limit: startLimit, zeroclaw: zeroclaw}
}

// over reports whether more was appended than a line may have.
func (e *encoder) over() bool { return len(e.buf)-e.start-e.exempt > maxLine }

// fits reports whether what was appended is no longer than a line may be. If
// it is, fits takes it back and tightens the limits, for the caller to write
// it again.
func (e *encoder) fits() bool {
	if !e.over() || e.limit <= 1<<10 {
		return true
	}
	e.buf, e.limit, e.exempt = e.buf[:e.start], e.limit/4, 0
	return false
}

// items is how many elements a list may have.
func (e *encoder) items() int { return e.limit / 256 }

func (e *encoder) raw(s string) { e.buf = append(e.buf, s...) }
func (e *encoder) int(n int64)  { e.buf = strconv.AppendInt(e.buf, n, 10) }

// string appends a string. Once the line is too long it will be written again,
// so its rest need not be made.
func (e *encoder) string(s string) {
	if e.over() {
		s = ""
	}
	e.buf = jsonrpc.AppendString(e.buf, cut(s, e.limit))
}

// member appends a further member; an empty one is left out.
func (e *encoder) member(name, value string) {
	if value == "" {
		return
	}
	e.name(name)
	e.string(value)
}

func (e *encoder) name(name string) {
	e.raw(`,"`)
	e.raw(name)
	e.raw(`":`)
}

// json appends a further member whose value is JSON from elsewhere: a model's
// arguments, a tool's output. It is not trusted to be JSON, to be UTF-8 or to
// be on one line. What is too long is replaced by its size.
func (e *encoder) json(name string, text []byte) {
	if len(text) == 0 {
		return
	}
	e.name(name)
	if len(text) > e.limit || e.over() {
		e.raw(`{"truncated":true,"bytes":`)
		e.int(int64(len(text)))
		e.raw(`}`)
		return
	}
	if !utf8.Valid(text) || !json.Valid(text) {
		e.string(string(text))
		return
	}
	if bytes.IndexByte(text, '\n') < 0 && bytes.IndexByte(text, '\r') < 0 {
		e.buf = append(e.buf, text...)
		return
	}
	flat := bytes.NewBuffer(e.buf)
	if json.Compact(flat, text) == nil {
		e.buf = flat.Bytes()
	}
}

// cut shortens a string to about limit bytes at a character's border, and says
// how much is missing.
func cut(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	end := runeStart(s, limit)
	return s[:end] + "\n[… " + strconv.Itoa(len(s)-end) + " bytes left out here]"
}

// runeStart returns the last position at or before i where s can be split
// without splitting a character.
func runeStart(s string, i int) int {
	for end := i; end > 0 && end > i-utf8.UTFMax; end-- {
		if utf8.RuneStart(s[end]) {
			return end
		}
	}
	return i // these bytes are no text anyway
}

// block appends a content block.
func (e *encoder) block(b domain.Block) {
	switch b := b.(type) {
	case domain.Text:
		e.raw(`{"type":"text","text":`)
		e.string(b.Text)
	case domain.Image:
		if !e.media("image", b.MIME, b.Data) {
			return
		}
		e.member("uri", b.URI)
	case domain.Audio:
		if !e.media("audio", b.MIME, b.Data) {
			return
		}
	case domain.Resource:
		e.resource(b)
		return
	case domain.Link:
		e.link(b)
	case domain.Attachment:
		e.link(domain.Link{URI: fileURI(b.Path), Name: b.Name, MIME: b.MIME, Size: b.Size})
		if b.URI != "" {
			e.raw(`,"_meta":{"berth":{"uri":`)
			e.string(b.URI)
			e.raw(`}}`)
		}
	}
	e.raw(`}`)
}

// blobLimit is how large a blob may be, in bytes before encoding.
func (e *encoder) blobLimit() int { return 6 * e.limit }

// media appends an image or a sound without the closing brace. One that is too
// large is replaced by a whole text block, and media returns false.
func (e *encoder) media(kind, mime string, data []byte) bool {
	if mime == "" {
		mime = "application/octet-stream"
	}
	if len(data) > e.blobLimit() {
		e.block(domain.Text{Text: "[" + kind + " " + mime + ", " + strconv.Itoa(len(data)) + " bytes, left out here]"})
		return false
	}
	e.raw(`{"type":"`)
	e.raw(kind)
	e.raw(`","mimeType":`)
	e.string(mime)
	e.raw(`,"data":`)
	e.base64(data)
	return true
}

// file appends what a shown file holds, as a content block. A delivered file
// is never cut: it may make the one message of ours that is longer than others.
func (e *encoder) file(f domain.FileContent) {
	switch {
	case f.Delivered && f.Data != nil:
		before := len(e.buf)
		e.raw(`{"type":"resource","resource":{"uri":`)
		e.string(f.File.URI)
		e.member("mimeType", f.File.MIME)
		e.raw(`,"blob":"`)
		e.buf = base64.StdEncoding.AppendEncode(e.buf, f.Data)
		e.raw(`"}}`)
		e.exempt += len(e.buf) - before
	case f.Data != nil && len(f.Data) <= e.blobLimit():
		e.block(domain.Image{MIME: f.File.MIME, Data: f.Data, URI: f.File.URI})
	default: // too large for a message, or nobody read it
		e.block(domain.Attachment{Path: f.File.Path, Name: f.File.Name, MIME: f.File.MIME, Size: f.File.Size})
	}
}

func (e *encoder) base64(data []byte) {
	if e.over() {
		data = nil
	}
	e.raw(`"`)
	e.buf = base64.StdEncoding.AppendEncode(e.buf, data)
	e.raw(`"`)
}

// resource appends an embedded resource. A blob that is too large becomes a
// link to where it came from.
func (e *encoder) resource(r domain.Resource) {
	if r.Binary && len(r.Blob) > e.blobLimit() {
		e.link(domain.Link{URI: r.URI, MIME: r.MIME, Size: int64(len(r.Blob))})
		e.raw(`}`)
		return
	}
	e.raw(`{"type":"resource","resource":{"uri":`)
	e.string(r.URI)
	e.member("mimeType", r.MIME)
	if r.Binary {
		e.raw(`,"blob":`)
		e.base64(r.Blob)
	} else {
		e.raw(`,"text":`)
		e.string(r.Text)
	}
	e.raw(`}}`)
}

// link appends a resource_link without its closing brace.
func (e *encoder) link(l domain.Link) {
	e.raw(`{"type":"resource_link","uri":`)
	e.string(l.URI)
	e.raw(`,"name":`)
	if l.Name == "" {
		l.Name = lastSegment(l.URI)
	}
	e.string(l.Name)
	e.member("title", l.Title)
	e.member("description", l.Description)
	e.member("mimeType", l.MIME)
	if l.Size > 0 {
		e.raw(`,"size":`)
		e.int(l.Size)
	}
}

// fileURI returns the file: uri of an absolute path.
func fileURI(path string) string {
	path = filepath.ToSlash(path)
	if !strings.HasPrefix(path, "/") {
		path = "/" + path // a drive letter
	}
	return (&url.URL{Scheme: "file", Path: path}).String()
}
