package acp1

import (
	"encoding/base64"
	"encoding/json"
	"strconv"
	"strings"

	"github.com/berth-dev/berth/adapters/jsonrpc"
	"github.com/berth-dev/berth/core/domain"
)

// contentReader turns the content of a prompt into blocks. All of it is
// checked before any of it is used: one bad part refuses the prompt.
type contentReader struct {
	// lenient reads what ZeroClaw's clients send: a part with a text is text
	// whatever its type says, and a resource may lack its uri.
	lenient  bool
	images   bool // promptCapabilities.image was offered
	audio    bool // promptCapabilities.audio was offered
	maxBlobs int  // bytes of all blobs together, decoded
	blobs    int  // read so far
}

// prompt reads the member prompt: a string, or a list of content blocks.
func (r *contentReader) prompt(raw json.RawMessage) ([]domain.Block, error) {
	var blocks []domain.Block
	switch kindOf(raw) {
	case '"':
		s, _ := stringOf(raw)
		blocks = []domain.Block{domain.Text{Text: s}}
	case '[':
		i := 0
		for el := range jsonrpc.Elements(raw) {
			b, err := r.block(el)
			if err != nil {
				return nil, domain.Errorf(domain.InvalidArgument, "prompt[%d]: %w", i, err)
			}
			blocks = append(blocks, b)
			i++
		}
	case 0:
		return nil, bad("prompt is required: a string or a list of content blocks")
	default:
		return nil, bad("prompt must be a string or a list of content blocks")
	}
	if !(domain.Prompt{Blocks: blocks}).Usable() {
		return nil, bad("prompt is empty: it needs a text that is not blank, a resource or a link")
	}
	return blocks, nil
}

func bad(format string, args ...any) error {
	return domain.Errorf(domain.InvalidArgument, format, args...)
}

// block reads one content block.
func (r *contentReader) block(raw json.RawMessage) (domain.Block, error) {
	if !isObject(raw) {
		return nil, bad("a content block must be an object")
	}
	o := objectOf(raw)
	text, hasText := stringOf(o["text"])
	kind, typed := stringOf(o["type"])
	switch {
	case hasText && (r.lenient || o["type"] == nil):
		return domain.Text{Text: text}, nil
	case !typed && o["type"] == nil:
		return nil, bad("type is required: text, resource or resource_link")
	case !typed:
		return nil, bad("type must be a string")
	}
	switch kind {
	case "text":
		if !hasText {
			return nil, bad("text must be a string")
		}
		return domain.Text{Text: text}, nil
	case "resource":
		return r.resource(o["resource"])
	case "resource_link":
		return r.link(o)
	case "image", "audio":
		return r.media(kind, o)
	}
	return nil, bad("type %q is not a kind of content this agent takes", brief(kind))
}

// media reads a picture or a sound, which is taken only where it was offered.
func (r *contentReader) media(kind string, o object) (domain.Block, error) {
	if kind == "image" && !r.images || kind == "audio" && !r.audio {
		return nil, bad("this agent does not take %s blocks: promptCapabilities.%s is false; its model cannot use them", kind, kind)
	}
	mime, err := o.required("mimeType")
	if err != nil {
		return nil, err
	}
	if mime = strings.ToLower(mime); !strings.HasPrefix(mime, kind+"/") || len(mime) == len(kind)+1 {
		return nil, bad("mimeType of %s block must begin with %q", map[string]string{"image": "an image", "audio": "an audio"}[kind], kind+"/")
	}
	if o["data"] == nil {
		return nil, bad("data is required: the %s as base64", kind)
	}
	data, err := r.blob("data", o["data"])
	if err != nil {
		return nil, err
	}
	if len(data) == 0 {
		return nil, bad("data is empty")
	}
	if kind == "audio" {
		return domain.Audio{MIME: mime, Data: data}, nil
	}
	return domain.Image{MIME: mime, Data: data, URI: o.text("uri")}, nil
}

// link reads a resource_link. Any uri scheme is welcome.
func (r *contentReader) link(o object) (domain.Block, error) {
	uri, err := o.required("uri")
	if err != nil {
		return nil, err
	}
	name, named := stringOf(o["name"])
	if !named {
		if !r.lenient {
			return nil, bad("name is required and must be a string")
		}
		name = lastSegment(uri)
	}
	l := domain.Link{
		URI: uri, Name: name, Title: o.text("title"), Description: o.text("description"), MIME: o.text("mimeType"),
	}
	if n, err := strconv.ParseInt(string(o["size"]), 10, 64); err == nil && n > 0 {
		l.Size = n
	}
	return l, nil
}

// lastSegment names what a uri points at.
func lastSegment(uri string) string {
	trimmed := strings.TrimRight(uri, "/")
	if i := strings.LastIndexAny(trimmed, "/\\"); i >= 0 && i+1 < len(trimmed) {
		return trimmed[i+1:]
	}
	return uri
}

// resource reads an embedded resource. Text is preferred where both forms are
// sent, as the schema lists it first.
func (r *contentReader) resource(raw json.RawMessage) (domain.Block, error) {
	if !isObject(raw) {
		return nil, bad("resource must be an object")
	}
	o := objectOf(raw)
	res := domain.Resource{MIME: o.text("mimeType")}
	var err error
	if res.URI, err = o.required("uri"); err != nil && !r.lenient {
		return nil, bad("resource.%w", err)
	}
	if text, ok := stringOf(o["text"]); ok {
		res.Text = text
		return res, nil
	}
	if o["blob"] == nil {
		return nil, bad("resource needs a text or a blob, as a string")
	}
	res.Binary = true
	res.Blob, err = r.blob("resource.blob", o["blob"])
	return res, err
}

// blob decodes base64 strictly: the standard alphabet, padded, nothing else.
func (r *contentReader) blob(what string, raw json.RawMessage) ([]byte, error) {
	text, ok := stringOf(raw)
	if !ok {
		return nil, bad("%s must be a string", what)
	}
	if size := base64.StdEncoding.DecodedLen(len(text)) - strings.Count(text[max(0, len(text)-2):], "="); size > domain.MaxBlobBytes {
		return nil, bad("%s holds %d bytes, the limit is %d: send a resource_link instead", what, size, domain.MaxBlobBytes)
	} else if r.blobs += size; r.blobs > r.maxBlobs {
		return nil, bad("the prompt's blobs hold more than %d bytes together: send resource_links instead", r.maxBlobs)
	}
	// The decoder skips line breaks, which strict base64 does not have.
	if strings.ContainsAny(text, "\r\n") {
		return nil, bad("%s is not base64: it has line breaks", what)
	}
	data, err := base64.StdEncoding.Strict().DecodeString(text)
	if err != nil {
		return nil, bad("%s is not padded standard base64", what)
	}
	return data, nil
}
