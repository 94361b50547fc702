package domain

import "strings"

// Block is one piece of content in a prompt, a message or a tool's result.
// Members: Text, Image, Audio, Resource, Link, Attachment.
//
//sumtype:decl
type Block interface{ isBlock() }

// Text is plain text or Markdown.
type Text struct{ Text string }

// Image is a picture, decoded.
type Image struct {
	MIME string
	Data []byte
	URI  string // where it came from, if known
}

// Audio is a sound, decoded.
type Audio struct {
	MIME string
	Data []byte
}

// Resource is an embedded resource: text, or bytes when Binary.
type Resource struct {
	URI    string
	MIME   string
	Text   string
	Blob   []byte
	Binary bool
}

// Link points at a resource the receiver may read.
type Link struct {
	URI         string
	Name        string
	Title       string
	Description string
	MIME        string
	Size        int64 // bytes; 0 when unknown
}

// Attachment is a blob of a prompt after it was stored as a file below the
// session's uploads directory. It stands in the journal in place of the bytes.
type Attachment struct {
	Path   string // absolute path of the stored copy
	SHA256 string // lower-case hex of its content
	MIME   string
	Name   string // display name
	URI    string // the uri the client gave, if any
	Size   int64  // bytes
	// Inline is set for what came as an Image or Audio block of its own. A
	// client is shown it as one again.
	Inline bool
}

// VisiblePicture reports whether models that see take a picture of that type.
// Others are left to tools.
func VisiblePicture(mime string) bool {
	switch mime {
	case "image/png", "image/jpeg", "image/gif", "image/webp":
		return true
	}
	return false
}

// Media turns an attachment and its bytes back into the block it came as: an
// Image or Audio. It is false for what is neither.
func (a Attachment) Media(data []byte) (Block, bool) {
	switch {
	case strings.HasPrefix(a.MIME, "image/"):
		return Image{MIME: a.MIME, Data: data, URI: a.URI}, true
	case strings.HasPrefix(a.MIME, "audio/"):
		return Audio{MIME: a.MIME, Data: data}, true
	}
	return nil, false
}

func (Text) isBlock()       {}
func (Image) isBlock()      {}
func (Audio) isBlock()      {}
func (Resource) isBlock()   {}
func (Link) isBlock()       {}
func (Attachment) isBlock() {}

// MaxShownPicture is the largest picture, in bytes, that is shown inside a
// call; a larger one is linked to. Encoded it leaves room in a message of 10 MiB.
const MaxShownPicture = 6 << 20

// Limits on what one prompt may carry, in bytes after decoding.
const (
	MaxBlobBytes       = 10 << 20 // one blob
	DefaultPromptBlobs = 32 << 20 // all blobs of one prompt together, unless configured
)

// Prompt is what the user sent for one turn.
type Prompt struct {
	Blocks []Block
	// Queue lets the prompt wait behind a running turn; otherwise it is
	// refused with SessionBusy.
	Queue bool
	// After close when the client has what it is owed before it is shown
	// anything of this turn: the answers of what it asked of the session before.
	After []<-chan struct{}
	// Trace is where the client's own trace stands; zero when it sent none.
	Trace Trace
}

// Trace is a place in a distributed trace, as W3C trace context writes it. It
// is what a client sent, unchecked.
type Trace struct {
	Parent string // traceparent
	State  string // tracestate
}

// Usable reports whether the prompt holds anything a model could answer: a
// non-blank text or any other block.
func (p Prompt) Usable() bool {
	for _, b := range p.Blocks {
		t, isText := b.(Text)
		if !isText || !blank(t.Text) {
			return true
		}
	}
	return false
}

func blank(s string) bool {
	for _, r := range s {
		switch r {
		case ' ', '\t', '\n', '\r':
		default:
			return false
		}
	}
	return true
}
