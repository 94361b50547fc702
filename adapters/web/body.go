package web

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/html/charset"

	"github.com/berth-dev/berth/core/domain"
)

// maxBody bounds a body, as it comes and again unpacked, in bytes.
const maxBody = 5 << 20

// mediaType is what a body is said to be.
type mediaType struct {
	name string // such as text/html; "" when nothing is said
	full string // with its parameters
}

// isHTML reports whether the type is a page.
func (m mediaType) isHTML() bool { return m.name == "text/html" || m.name == "application/xhtml+xml" }

// kindOf reads a content type and refuses what is no text.
func kindOf(header string) (mediaType, error) {
	if header == "" {
		return mediaType{}, nil
	}
	name, _, err := mime.ParseMediaType(header)
	if err != nil {
		name, _, _ = strings.Cut(header, ";")
		name = strings.ToLower(strings.TrimSpace(name))
	}
	m := mediaType{name: name, full: header}
	if readable(name) {
		return m, nil
	}
	return m, domain.Errorf(domain.Denied, "it is %s, and only text can be read: pages, plain text, JSON, XML and source code", brief(name))
}

// readable reports whether a media type is text.
func readable(name string) bool {
	kind, sub, _ := strings.Cut(name, "/")
	switch {
	case kind == "text", strings.HasSuffix(sub, "+json"), strings.HasSuffix(sub, "+xml") && kind == "application":
		return true
	case kind != "application":
		return false
	}
	switch sub {
	case "json", "xml", "javascript", "x-javascript", "ecmascript", "typescript", "x-ndjson", "ndjson", "jsonlines", "json5",
		"yaml", "x-yaml", "toml", "sql", "graphql", "x-sh", "x-shellscript", "x-httpd-php", "x-tex", "x-www-form-urlencoded":
		return true
	}
	return false
}

// unpack reads a body within its limits. cut says that there was more.
func unpack(body io.Reader, encoding string) (raw []byte, cut bool, err error) {
	packed := &limited{from: body, left: maxBody}
	var r io.Reader = packed
	switch strings.ToLower(strings.TrimSpace(encoding)) {
	case "", "identity":
	case "gzip", "x-gzip":
		z, err := gzip.NewReader(packed)
		if errors.Is(err, io.EOF) {
			return nil, false, nil // nothing, packed or not
		}
		if err != nil {
			return nil, false, domain.WrapError(domain.Unavailable, err, "the answer says it is packed with gzip and is not")
		}
		r = z
	default:
		return nil, false, domain.Errorf(domain.Unavailable, "the answer is packed in a way we did not ask for (%s)", brief(encoding))
	}
	raw, err = io.ReadAll(io.LimitReader(r, maxBody+1))
	switch {
	case len(raw) > maxBody:
		return raw[:maxBody], true, nil
	case packed.cut:
		return raw, true, nil
	case errors.Is(err, gzip.ErrChecksum), errors.Is(err, gzip.ErrHeader):
		return nil, false, domain.WrapError(domain.Unavailable, err, "the packed answer is damaged")
	}
	return raw, false, err
}

// limited ends a stream early and remembers that it did.
type limited struct {
	from io.Reader
	left int
	cut  bool
}

// Read reads on until the limit, which looks like the end.
func (l *limited) Read(p []byte) (int, error) {
	if l.left == 0 {
		var one [1]byte
		n, err := l.from.Read(one[:])
		if l.cut = l.cut || n > 0; l.cut || err == nil {
			err = io.EOF
		}
		return 0, err
	}
	n, err := l.from.Read(p[:min(len(p), l.left)])
	l.left -= n
	return n, err
}

// decode returns a body as UTF-8. Bytes that are no characters are shown as
// such; bytes that are no text are refused.
func decode(ctx context.Context, r *reply) (string, error) {
	raw := r.body
	if r.kind.name == "" && len(raw) > 0 {
		kind, err := kindOf(http.DetectContentType(raw))
		if err != nil {
			return "", err
		}
		r.kind = kind
	}
	text := raw
	if encoding, _, certain := charset.DetermineEncoding(raw[:min(len(raw), 1024)], r.kind.full); certain || !utf8.Valid(raw) {
		var err error
		if text, err = io.ReadAll(&stoppable{ctx: ctx, from: encoding.NewDecoder().Reader(bytes.NewReader(raw))}); err != nil {
			return "", err
		}
	}
	if bytes.IndexByte(text, 0) >= 0 {
		return "", domain.Errorf(domain.Denied, "it is said to be %s and holds binary data", brief(r.kind.name))
	}
	text = bytes.TrimPrefix(bytes.ToValidUTF8(text, []byte("\uFFFD")), []byte("\uFEFF"))
	return strings.ReplaceAll(string(text), "\r\n", "\n"), nil
}

// stoppable ends a stream with its context.
type stoppable struct {
	ctx  context.Context
	from io.Reader
}

// Read reads unless the context has ended.
func (s *stoppable) Read(p []byte) (int, error) {
	if s.ctx.Err() != nil {
		return 0, context.Cause(s.ctx)
	}
	return s.from.Read(p)
}

// brief shortens what a stranger wrote for a message.
func brief(s string) string {
	const most = 80
	if s = domain.Harmless(s); len(s) <= most {
		return s
	}
	return fmt.Sprint(clip(s, most), "…")
}

// clip cuts a text before a character.
func clip(s string, most int) string {
	if len(s) <= most {
		return s
	}
	for most > 0 && !utf8.RuneStart(s[most]) {
		most--
	}
	return s[:most]
}
