package console

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io/fs"
	"net/http"
	"path"
	"strconv"
	"strings"
)

//go:embed assets
var assets embed.FS

// index is the file that "/" stands for.
const index = "index.html"

// file is one asset, ready to be sent.
type file struct {
	kind   string // media type
	plain  []byte
	packed []byte // gzip; nil where that gains nothing
	tag    string // of the plain form, without quotes
}

// Handler serves the page and its parts. It judges neither Host nor Origin nor
// token: see ws.Guard.
type Handler struct{ files map[string]*file } // by path of the URL

// New makes a Handler. It packs the assets, which takes some milliseconds.
func New() (*Handler, error) {
	h := &Handler{files: map[string]*file{}}
	err := fs.WalkDir(assets, "assets", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := assets.ReadFile(name)
		if err != nil {
			return err
		}
		f, err := prepare(name, text)
		if err != nil {
			return err
		}
		at := strings.TrimPrefix(name, "assets")
		if at == "/"+index {
			at = "/"
		}
		h.files[at] = f
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("console: %w", err)
	}
	return h, nil
}

func prepare(name string, text []byte) (*file, error) {
	kind, ok := kindOf(path.Ext(name))
	if !ok {
		return nil, fmt.Errorf("%s has no media type", name)
	}
	sum := sha256.Sum256(text)
	f := &file{kind: kind, plain: text, tag: hex.EncodeToString(sum[:12])}
	var packed bytes.Buffer
	z, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	if _, err := z.Write(text); err != nil {
		return nil, err
	}
	if err := z.Close(); err != nil {
		return nil, err
	}
	if packed.Len() < len(text) {
		f.packed = packed.Bytes()
	}
	return f, nil
}

func kindOf(ext string) (string, bool) {
	switch ext {
	case ".html":
		return "text/html; charset=utf-8", true
	case ".css":
		return "text/css; charset=utf-8", true
	case ".js":
		return "text/javascript; charset=utf-8", true
	case ".svg":
		return "image/svg+xml", true
	}
	return "", false
}

// policy is the Content-Security-Policy of everything sent from here. Trusted
// types without a policy make the parser of HTML refuse every string.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; " +
	"img-src 'self' data:; media-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; " +
	"require-trusted-types-for 'script'; trusted-types 'none'"

// secure sets the headers that keep the page to itself.
func secure(h http.Header) {
	h.Set("Content-Security-Policy", policy)
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Permissions-Policy", "camera=(), display-capture=(), geolocation=(), microphone=(), payment=(), usb=()")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
}

// ServeHTTP answers GET and HEAD.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	head := w.Header()
	secure(head)
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		head.Set("Allow", "GET, HEAD")
		head.Set("Cache-Control", "no-store")
		http.Error(w, "method not allowed", http.StatusMethodNotAllowed)
		return
	}
	f, ok := h.files[r.URL.Path]
	if !ok {
		head.Set("Cache-Control", "no-store")
		http.Error(w, "not found", http.StatusNotFound)
		return
	}
	f.serve(w, r)
}

// serve sends a file, or says that the browser's copy is the newest. Copies
// are kept and asked about each time, so that all parts are of one version.
func (f *file) serve(w http.ResponseWriter, r *http.Request) {
	head := w.Header()
	body, tag := f.plain, f.tag
	head.Set("Cache-Control", "no-cache")
	if f.packed != nil {
		head.Set("Vary", "Accept-Encoding")
		if acceptsGzip(r.Header.Values("Accept-Encoding")) {
			body, tag = f.packed, f.tag+"-gz"
			head.Set("Content-Encoding", "gzip")
		}
	}
	head.Set("ETag", `"`+tag+`"`)
	if matches(r.Header.Values("If-None-Match"), tag) {
		head.Del("Content-Encoding")
		w.WriteHeader(http.StatusNotModified)
		return
	}
	head.Set("Content-Type", f.kind)
	head.Set("Content-Length", strconv.Itoa(len(body)))
	if r.Method != http.MethodHead {
		_, _ = w.Write(body)
	}
}

// acceptsGzip reports whether an Accept-Encoding names gzip and does not
// refuse it.
func acceptsGzip(lines []string) bool {
	for _, line := range lines {
		for one := range strings.SplitSeq(line, ",") {
			name, params, _ := strings.Cut(one, ";")
			if !strings.EqualFold(strings.TrimSpace(name), "gzip") {
				continue
			}
			q, given := strings.CutPrefix(strings.TrimSpace(params), "q=")
			weight, err := strconv.ParseFloat(q, 64)
			return !given || err == nil && weight > 0
		}
	}
	return false
}

// matches reports whether an If-None-Match names the tag.
func matches(lines []string, tag string) bool {
	for _, line := range lines {
		for one := range strings.SplitSeq(line, ",") {
			one = strings.TrimSpace(one)
			if one == "*" || strings.TrimPrefix(one, "W/") == `"`+tag+`"` {
				return true
			}
		}
	}
	return false
}
