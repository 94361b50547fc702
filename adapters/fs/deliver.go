package fs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	iofs "io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync/atomic"
	"unicode/utf8"

	"github.com/berth-dev/berth/core/domain"
	"github.com/berth-dev/berth/core/ports"
)

const (
	maxDelivered = domain.MaxBlobBytes
	maxTitle     = 200 // bytes of a delivery's title
	maxMIME      = 127 // bytes of a MIME type
	deliveryURI  = "attachment://deliver/"
)

// deliverTool is deliver_file.
type deliverTool struct{ w *workspace }

// Spec describes deliver_file.
func (t deliverTool) Spec() domain.ToolSpec { return t.w.specs.deliver }

// Prepare opens the file and takes its hash.
func (t deliverTool) Prepare(ctx context.Context, call domain.ToolCall) (ports.Prepared, error) {
	a := parseArgs("deliver_file", call.Args, "path (string)", "mimeType (string)", "title (string)")
	name := a.text(true, "", "path")
	mime := a.text(false, "", "mimeType", "mime_type")
	title := a.text(false, "", "title")
	if mime != "" && !validMIME(mime) {
		a.fail(`"mimeType" must be like text/plain or application/pdf, not %s`, printable(brief(mime)))
	}
	if err := a.done(); err != nil {
		return nil, err
	}
	sp, err := t.w.use()
	if err != nil {
		return nil, err
	}
	d := &delivery{sp: sp}
	if err := d.prepare(ctx, name, mime, title); err != nil {
		_ = d.Close()
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		return nil, err
	}
	return d, nil
}

// validMIME reports whether a text is a MIME type with nothing but tokens in
// it, and parameters at most.
func validMIME(mime string) bool {
	kind, _, _ := strings.Cut(mime, ";")
	major, minor, both := strings.Cut(kind, "/")
	token := func(s string) bool {
		return s != "" && strings.Trim(strings.ToLower(s), "abcdefghijklmnopqrstuvwxyz0123456789!#$&-^_.+") == ""
	}
	return len(mime) <= maxMIME && both && token(major) && token(strings.TrimRight(minor, " ")) &&
		!strings.ContainsFunc(mime, func(r rune) bool { return r < 0x20 || r > 0x7E })
}

// delivery is a prepared deliver_file.
type delivery struct {
	sp     *space
	target *target
	file   *os.File
	show   string
	stamp  stamp // of the content that was looked at
	mime   string
	title  string
	plan   domain.ToolPlan
	ran    atomic.Bool

	stored func() // of tests: called between storing the copy and reading it again
}

func (d *delivery) prepare(ctx context.Context, name, mime, title string) error {
	var err error
	if d.target, d.file, err = d.sp.openFile(ctx, name); err != nil {
		return err
	}
	t := d.target
	d.show = d.sp.display(t)
	d.mime, d.title = mime, titleOf(title, filepath.Base(t.path))
	d.plan = domain.ToolPlan{
		Title: "Deliver " + printable(d.show), Kind: domain.KindOther, Locations: []domain.Location{{Path: t.show}},
		Access: t.access("deliver_file", domain.AccessRead, d.sp.pol.Level),
	}
	switch {
	case t.refusal() != "":
		return nil
	case t.outside:
		d.plan.Access.Forbidden = t.show + " lies outside the session's directories; only files in them are delivered"
		return nil
	case d.file == nil:
		return missing(d.sp, t)
	case t.info.size > maxDelivered:
		return domain.Errorf(domain.TooLarge, "%s is %s long; at most %s can be delivered", d.show, bytesWords(t.info.size), bytesWords(maxDelivered))
	}
	raw, err := readWhole(d.file, t.info.size)
	if err != nil {
		return prefixed(d.show, coded(d.show, err))
	}
	d.stamp = stampOf(raw)
	if d.mime == "" {
		d.mime = guessMIME(t.path, raw)
	}
	names, _ := components(t.path)
	if secretLike(names) {
		// Reading is one thing, handing the whole of it out another.
		d.plan.Access.Class = domain.AccessUnknown
		d.plan.Access.Reason = "by its name " + printable(filepath.Base(t.path)) + " may hold keys or passwords, and the client gets all of it"
	}
	d.plan.Content = shownText(fmt.Sprintf("Delivers %s (%s, %s) to the client.", printable(d.show), d.mime, bytesWords(int64(len(raw)))))
	return nil
}

// titleOf is a caller's title on one short line, or else the file's name.
func titleOf(title, name string) string {
	for _, s := range []string{title, name} {
		s = strings.Join(strings.Fields(strings.Map(func(r rune) rune {
			if r < 0x20 || r == 0x7F || ignorable(r) || r == '\u2028' || r == '\u2029' || (r >= 0x80 && r < 0xA0) {
				return ' '
			}
			return r
		}, strings.ToValidUTF8(s, " "))), " ")
		if len(s) > maxTitle {
			cut := maxTitle
			for cut > 0 && !utf8.RuneStart(s[cut]) {
				cut--
			}
			s = s[:cut] + "…"
		}
		if s != "" {
			return s
		}
	}
	return "file"
}

// Plan tells what will be delivered.
func (d *delivery) Plan() domain.ToolPlan { return d.plan }

// Close closes the file.
func (d *delivery) Close() error {
	if d.target != nil {
		d.target.close()
	}
	d.sp.drop()
	if d.file != nil {
		return d.file.Close()
	}
	return nil
}

// Run stores a copy, reads it again, and hands out what it read if that is
// what was looked at. The bytes that are handed out are those that were hashed.
func (d *delivery) Run(ctx context.Context, _ func(domain.ToolProgress)) (domain.ToolResult, error) {
	if d.ran.Swap(true) {
		return domain.ToolResult{}, errRanTwice
	}
	if ctx.Err() != nil {
		return domain.ToolResult{}, context.Cause(ctx)
	}
	if why := d.target.refusal(); why != "" {
		return failed(why), nil
	}
	if d.plan.Access.Forbidden != "" {
		return failed(d.plan.Access.Forbidden), nil
	}
	file, data, err := d.copy()
	if err != nil {
		return failedWith(ctx, d.show, err)
	}
	return d.result(file, data), nil
}

// copy stores the copy and returns what it holds.
func (d *delivery) copy() (domain.Attachment, []byte, error) {
	raw, err := readWhole(d.file, d.target.info.size)
	if domain.HasCode(err, domain.TooLarge) || err == nil && stampOf(raw) != d.stamp {
		err = domain.Errorf(domain.Conflict, "the file was changed since it was looked at; nothing was delivered")
	}
	if err != nil {
		return domain.Attachment{}, nil, err
	}
	u, at, err := d.sp.openUploads()
	if err != nil {
		return domain.Attachment{}, nil, err
	}
	defer func() { _ = u.close() }()
	name := d.stamp.hex() + suffixOf(d.mime)
	if err := storeAs(u, name, raw); err != nil {
		return domain.Attachment{}, nil, err
	}
	if err := u.sync(); err != nil {
		return domain.Attachment{}, nil, err
	}
	if d.stored != nil {
		d.stored()
	}
	data, err := contentOf(u, name)
	if err != nil || stampOf(data) != d.stamp {
		return domain.Attachment{}, nil, domain.WrapError(domain.Conflict, err, "the copy in "+uploads+" was changed by someone else while it was delivered; nothing was delivered")
	}
	return domain.Attachment{
		Path: join(at, name), SHA256: d.stamp.hex(), MIME: d.mime, Name: filepath.Base(d.target.path), URI: deliveryURI + name, Size: int64(len(data)),
	}, data, nil
}

// contentOf reads the regular file name from one descriptor.
func contentOf(d *dir, name string) ([]byte, error) {
	f, i, err := d.open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	if !i.mode.IsRegular() {
		return nil, errors.Join(errChanged, iofs.ErrInvalid)
	}
	return readWhole(f, i.size)
}

func (d *delivery) result(file domain.Attachment, data []byte) domain.ToolResult {
	told, err := json.Marshal(struct {
		Delivered bool   `json:"delivered"`
		URI       string `json:"uri"`
		Path      string `json:"path"`
		Filename  string `json:"filename"`
		Title     string `json:"title"`
		MIMEType  string `json:"mimeType"`
		Bytes     int    `json:"bytes"`
	}{true, file.URI, d.target.show, brief(file.Name), d.title, file.MIME, len(data)})
	if err != nil {
		return failed(d.show + ": " + err.Error()) // never: strings and numbers
	}
	words := fmt.Sprintf("Delivered %s (%s, %s).", printable(d.title), file.MIME, bytesWords(file.Size))
	return domain.ToolResult{
		Text: string(told), RawOutput: told, Locations: d.plan.Locations,
		Content: append(shownText(words), domain.FileContent{File: file, Title: d.title, Delivered: true, Data: data}),
	}
}

// guessMIME guesses a file's MIME type by what it holds, and by its name where
// that does not tell.
func guessMIME(name string, raw []byte) string {
	if pic, ok := pictureOf(raw); ok {
		return pic.mime
	}
	text := notText(raw, false) == ""
	switch ext := strings.ToLower(path.Ext(filepath.ToSlash(name))); {
	case strings.HasPrefix(string(raw[:min(len(raw), 5)]), "%PDF-"):
		return "application/pdf"
	case text && ext == ".md", text && ext == ".markdown":
		return "text/markdown"
	case text && ext == ".csv":
		return "text/csv"
	case text && (ext == ".html" || ext == ".htm"):
		return "text/html"
	case text && ext == ".json":
		return "application/json"
	case text && ext == ".xml":
		return "application/xml"
	case text && ext == ".svg":
		return "image/svg+xml"
	case text:
		return "text/plain"
	case ext == ".zip":
		return "application/zip"
	case ext == ".gz", ext == ".tgz":
		return "application/gzip"
	case ext == ".wav":
		return "audio/wav"
	case ext == ".mp3":
		return "audio/mpeg"
	case ext == ".ogg":
		return "audio/ogg"
	case ext == ".flac":
		return "audio/flac"
	case ext == ".mp4":
		return "video/mp4"
	case ext == ".bmp":
		return "image/bmp"
	}
	return "application/octet-stream"
}
