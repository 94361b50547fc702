package openclaw

import (
	"encoding/base64"
	"fmt"
	"mime"
	"path"
	"strconv"
	"strings"

	"github.com/berth-dev/berth/core/domain"
)

// The limits of a prompt.
const (
	maxPrompt = 2 << 20  // bytes of text
	maxBlobs  = 18 << 20 // bytes of files, decoded; with base64 they fit the Gateway's frame
)

// attachment is a file of a prompt.
type attachment struct {
	Type     string `json:"type"`
	MIME     string `json:"mimeType"`
	FileName string `json:"fileName,omitempty"`
	Content  string `json:"content"` // base64
}

// message is a prompt as the Gateway takes it.
type message struct {
	text  string
	files []attachment
}

// compose turns the blocks of a prompt into one text and files. h says how
// large files may be.
func compose(blocks []domain.Block, h hello) (message, error) {
	var m message
	var parts []string
	for i, block := range blocks {
		switch b := block.(type) {
		case domain.Text:
			parts = append(parts, b.Text)
		case domain.Link:
			parts = append(parts, asLink(b))
		case domain.Image:
			if b.Data == nil {
				parts = append(parts, asLink(domain.Link{URI: b.URI, Name: "image"}))
				continue
			}
			if err := fits(i, len(b.Data), h.maxImage); err != nil {
				return m, err
			}
			m.files = append(m.files, attachment{"image", b.MIME, nameOf(b.URI, "image", b.MIME), encode(b.Data)})
		case domain.Resource:
			if !b.Binary {
				parts = append(parts, embedded(b))
				continue
			}
			kind, most := "file", h.maxFile
			if strings.HasPrefix(b.MIME, "image/") {
				kind, most = "image", h.maxImage
			}
			if err := fits(i, len(b.Blob), most); err != nil {
				return m, err
			}
			m.files = append(m.files, attachment{kind, or(b.MIME, "application/octet-stream"), nameOf(b.URI, kind, b.MIME), encode(b.Blob)})
			parts = append(parts, "[Attached: "+oneLine(b.URI)+"]")
		default:
			return m, bad("prompt[%d] is a kind of content that the gateway does not take", i)
		}
	}
	m.text = strings.Join(parts, "\n")
	if len(m.text) > maxPrompt {
		return m, domain.Errorf(domain.TooLarge, "the prompt has %d bytes of text, the limit is %d: send files as links", len(m.text), maxPrompt)
	}
	return m, nil
}

func encode(data []byte) string { return base64.StdEncoding.EncodeToString(data) }

func fits(i, size int, most int64) error {
	if most > 0 && int64(size) > most {
		return domain.Errorf(domain.TooLarge, "prompt[%d] holds %d bytes, the gateway takes %d: send a resource_link instead", i, size, most)
	}
	return nil
}

// asLink is a resource link in a text: what it is called and where it is.
func asLink(l domain.Link) string {
	name := or(l.Title, l.Name)
	if name == "" || name == l.URI {
		return "[Resource link] " + oneLine(l.URI)
	}
	return "[Resource link (" + strings.NewReplacer("[", `\[`, "]", `\]`, "(", `\(`, ")", `\)`).Replace(oneLine(name)) + ")] " + oneLine(l.URI)
}

// embedded is a resource in a text: where it is from, and what it holds
// between fences that it does not hold itself.
func embedded(r domain.Resource) string {
	fence := "```"
	for strings.Contains(r.Text, fence) {
		fence += "`"
	}
	head := "[Resource] " + oneLine(r.URI)
	if r.MIME != "" {
		head += " (" + oneLine(r.MIME) + ")"
	}
	text := r.Text
	if text != "" && !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	return head + "\n" + fence + "\n" + text + fence
}

// oneLine keeps a name or an address from making lines of its own.
func oneLine(s string) string {
	var out strings.Builder
	for _, r := range strings.ToValidUTF8(s, "\uFFFD") {
		switch {
		case r < ' ' || r == 0x7f || r == 0x2028 || r == 0x2029 || r >= 0x80 && r < 0xa0:
			fmt.Fprintf(&out, `\u%04x`, r)
		default:
			out.WriteRune(r)
		}
	}
	return out.String()
}

// nameOf is a file name for a file.
func nameOf(uri, kind, mimeType string) string {
	uri, _, _ = strings.Cut(uri, "?")
	uri, _, _ = strings.Cut(uri, "#")
	if base := path.Base(strings.ReplaceAll(uri, `\`, "/")); uri != "" && base != "." && base != "/" && len(base) < 200 {
		return oneLine(base)
	}
	if ends, _ := mime.ExtensionsByType(mimeType); len(ends) > 0 {
		return kind + ends[0]
	}
	return kind
}

// prefixOf is the line that tells the model where the editor is.
func (b *Bridge) prefixOf(cwd string) string {
	return "[Working directory: " + oneLine(b.short(cwd)) + "]\n\n"
}

// short writes the home directory as ~.
func (b *Bridge) short(p string) string {
	home := strings.TrimRight(b.cfg.Home, `/\`)
	if home == "" {
		return p
	}
	if rest, ok := strings.CutPrefix(p, home); ok && (rest == "" || rest[0] == '/' || rest[0] == '\\') {
		return "~" + rest
	}
	return p
}

// withoutPrefix is what the editor sent of a text that the Gateway kept.
func withoutPrefix(text string) string {
	if !strings.HasPrefix(text, "[Working directory: ") {
		return text
	}
	line, rest, ok := strings.Cut(text, "]\n\n")
	if !ok || strings.Contains(line, "\n") {
		return text
	}
	return rest
}

// plainTitle is a title without our line in front. Titles come shortened and
// on one line.
func (b *Bridge) plainTitle(title string) string {
	title = brief(title)
	if rest, ok := strings.CutPrefix(title, "[Working directory: "); ok {
		if _, after, ok := strings.Cut(rest, "]"); ok {
			return strings.TrimSpace(after)
		}
		return ""
	}
	return title
}

// receipt says in a text where a prompt comes from.
func (b *Bridge) receipt(s *session, cwd string) string {
	return "[Source receipt]\nbridge: " + b.cfg.Info.Name + "\nhost: " + oneLine(b.cfg.Host) + "\ncwd: " + oneLine(b.short(cwd)) +
		"\nsession: " + oneLine(string(s.id)) + "\nkey: " + oneLine(s.key) + "\n[/Source receipt]"
}

// provenance says the same to the Gateway.
type provenance struct {
	Kind            string `json:"kind"`
	OriginSessionID string `json:"originSessionId"`
	SourceChannel   string `json:"sourceChannel"`
	SourceTool      string `json:"sourceTool"`
}

// sendParams is the params of chat.send.
type sendParams struct {
	SessionKey     string       `json:"sessionKey"`
	Message        string       `json:"message"`
	Attachments    []attachment `json:"attachments,omitempty"`
	Thinking       string       `json:"thinking,omitempty"`
	Deliver        bool         `json:"deliver,omitempty"`
	TimeoutMs      int64        `json:"timeoutMs,omitempty"`
	Provenance     *provenance  `json:"systemInputProvenance,omitempty"`
	Receipt        string       `json:"systemProvenanceReceipt,omitempty"`
	IdempotencyKey string       `json:"idempotencyKey"`
}

// letter is what chat.send is asked for a prompt.
func (b *Bridge) letter(t *turn, meta fields, h hello) (sendParams, error) {
	m, err := compose(t.blocks, h)
	if err != nil {
		return sendParams{}, err
	}
	s := t.session
	cwd, _ := s.places()
	own := meta.in("berth")
	prefix := !b.cfg.NoPrefix
	for _, o := range []fields{meta, own} {
		if o.has("prefixCwd") {
			prefix = o.flag("prefixCwd")
		}
	}
	if prefix && !strings.HasPrefix(strings.TrimSpace(m.text), "/") {
		m.text = b.prefixOf(cwd) + m.text
		if len(m.text) > maxPrompt {
			return sendParams{}, domain.Errorf(domain.TooLarge, "the prompt has more than %d bytes of text with the line about the working directory", maxPrompt)
		}
	}
	p := sendParams{
		SessionKey: s.key, Message: m.text, Attachments: m.files, IdempotencyKey: t.prompt,
		Thinking: or(own.first("thinking", "thinkingLevel"), meta.first("thinking", "thinkingLevel")),
		Deliver:  meta.flag("deliver") || own.flag("deliver"),
	}
	for _, o := range []fields{meta, own} {
		if raw := o["timeoutMs"]; o.has("timeoutMs") {
			n, err := strconv.ParseInt(string(raw), 10, 64)
			if err != nil || n < 0 {
				return sendParams{}, bad("_meta.timeoutMs must be a whole number of milliseconds")
			}
			p.TimeoutMs = n
		}
	}
	if b.cfg.Provenance != "" {
		p.Provenance = &provenance{"external_user", string(s.id), "acp", "berth_bridge"}
		if b.cfg.Provenance == "meta+receipt" {
			p.Receipt = b.receipt(s, cwd)
		}
	}
	return p, nil
}
