package console

import (
	"bytes"
	"compress/gzip"
	"io"
	"io/fs"
	"maps"
	"net/http"
	"net/http/httptest"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// limit is how many bytes a browser that comes the first time may have to load.
const limit = 60 << 10

func handler(t *testing.T) *Handler {
	t.Helper()
	h, err := New()
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func get(t *testing.T, h http.Handler, method, target string, head http.Header) *http.Response {
	t.Helper()
	r := httptest.NewRequest(method, target, nil)
	maps.Copy(r.Header, head)
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Result()
}

func body(t *testing.T, r *http.Response) string {
	t.Helper()
	text, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// parts are the files by the path of their URL.
func parts(t *testing.T) map[string]string {
	t.Helper()
	list := map[string]string{}
	for at, f := range handler(t).files {
		list[at] = string(f.plain)
	}
	return list
}

func TestEveryAnswerKeepsThePageToItself(t *testing.T) {
	h := handler(t)
	requests := map[string][2]string{
		"the page": {"GET", "/"}, "a module": {"GET", "/main.js"}, "its head": {"HEAD", "/main.js"}, "nothing": {"GET", "/nothing"}, "a post": {"POST", "/"},
	}
	for name, r := range requests {
		t.Run(name, func(t *testing.T) {
			head := get(t, h, r[0], r[1], nil).Header
			for key, want := range map[string]string{
				"X-Content-Type-Options": "nosniff", "X-Frame-Options": "DENY", "Referrer-Policy": "no-referrer",
				"Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Resource-Policy": "same-origin",
			} {
				if got := head.Get(key); got != want {
					t.Errorf("%s is %q, want %q", key, got, want)
				}
			}
			csp := strings.Split(head.Get("Content-Security-Policy"), "; ")
			for _, want := range []string{
				"default-src 'none'", "script-src 'self'", "style-src 'self'", "connect-src 'self'", "img-src 'self' data:", "media-src data:",
				"base-uri 'none'", "form-action 'none'", "frame-ancestors 'none'", "require-trusted-types-for 'script'",
			} {
				if !slices.Contains(csp, want) {
					t.Errorf("the policy lacks %q: %q", want, csp)
				}
			}
			for _, key := range []string{"Access-Control-Allow-Origin", "Set-Cookie"} {
				if got := head.Get(key); got != "" {
					t.Errorf("%s is %q", key, got)
				}
			}
		})
	}
}

func TestMethodsAndPaths(t *testing.T) {
	h := handler(t)
	for _, c := range []struct {
		name, method, target string
		status               int
		kind                 string
	}{
		{"the page", "GET", "/", 200, "text/html; charset=utf-8"},
		{"the page for a head", "HEAD", "/", 200, "text/html; charset=utf-8"},
		{"a module", "GET", "/main.js", 200, "text/javascript; charset=utf-8"},
		{"the style", "GET", "/console.css", 200, "text/css; charset=utf-8"},
		{"the picture", "GET", "/icon.svg", 200, "image/svg+xml"},
		{"the page by its file's name", "GET", "/index.html", 404, ""},
		{"a directory", "GET", "/assets/", 404, ""},
		{"code of the package", "GET", "/../console.go", 404, ""},
		{"a post", "POST", "/", 405, ""},
		{"an upload", "PUT", "/main.js", 405, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := get(t, h, c.method, c.target, nil)
			if r.StatusCode != c.status {
				t.Fatalf("status %d, want %d", r.StatusCode, c.status)
			}
			if c.kind != "" && r.Header.Get("Content-Type") != c.kind {
				t.Errorf("type %q, want %q", r.Header.Get("Content-Type"), c.kind)
			}
			text := body(t, r)
			if c.method == "HEAD" && text != "" {
				t.Errorf("a HEAD has the body %q", text)
			}
			if c.status == 405 && r.Header.Get("Allow") != "GET, HEAD" {
				t.Errorf("Allow is %q", r.Header.Get("Allow"))
			}
			if c.status != 200 && r.Header.Get("Cache-Control") != "no-store" {
				t.Errorf("a refusal may be kept: %q", r.Header.Get("Cache-Control"))
			}
		})
	}
}

func TestCopiesAreAskedAbout(t *testing.T) {
	h := handler(t)
	first := get(t, h, "GET", "/main.js", nil)
	packed := get(t, h, "GET", "/main.js", http.Header{"Accept-Encoding": {"br;q=1, gzip"}})
	if first.Header.Get("ETag") == "" || first.Header.Get("ETag") == packed.Header.Get("ETag") {
		t.Fatalf("tags %q and %q do not tell the forms apart", first.Header.Get("ETag"), packed.Header.Get("ETag"))
	}
	for _, c := range []struct {
		name   string
		head   http.Header
		status int
	}{
		{"the same", http.Header{"If-None-Match": {first.Header.Get("ETag")}}, 304},
		{"the same, weakly", http.Header{"If-None-Match": {`"x", W/` + first.Header.Get("ETag")}}, 304},
		{"anything", http.Header{"If-None-Match": {"*"}}, 304},
		{"another", http.Header{"If-None-Match": {`"other"`}}, 200},
		{"the packed form of one who takes no gzip", http.Header{"If-None-Match": {packed.Header.Get("ETag")}}, 200},
		{"the packed form", http.Header{"If-None-Match": {packed.Header.Get("ETag")}, "Accept-Encoding": {"gzip"}}, 304},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := get(t, h, "GET", "/main.js", c.head)
			if r.StatusCode != c.status {
				t.Fatalf("status %d, want %d", r.StatusCode, c.status)
			}
			if c.status == 304 && body(t, r) != "" {
				t.Error("304 with a body")
			}
			if r.Header.Get("Cache-Control") != "no-cache" {
				t.Errorf("Cache-Control is %q", r.Header.Get("Cache-Control"))
			}
		})
	}
}

func TestGzipIsForThoseWhoTakeIt(t *testing.T) {
	h := handler(t)
	plain := body(t, get(t, h, "GET", "/main.js", nil))
	for accept, want := range map[string]bool{
		"": false, "gzip": true, "br, GZIP": true, "gzip;q=0": false, "gzip; q=0.5": true, "identity": false, "x-gzip-not": false,
	} {
		t.Run("accept "+accept, func(t *testing.T) {
			r := get(t, h, "GET", "/main.js", http.Header{"Accept-Encoding": {accept}})
			if r.Header.Get("Vary") != "Accept-Encoding" {
				t.Errorf("Vary is %q", r.Header.Get("Vary"))
			}
			if got := r.Header.Get("Content-Encoding") == "gzip"; got != want {
				t.Fatalf("packed: %v, want %v", got, want)
			}
			text := body(t, r)
			if want {
				z, err := gzip.NewReader(bytes.NewReader([]byte(text)))
				if err != nil {
					t.Fatal(err)
				}
				inner, err := io.ReadAll(z)
				if err != nil {
					t.Fatal(err)
				}
				text = string(inner)
			}
			if text != plain {
				t.Error("the text is another one")
			}
		})
	}
}

// What would let the words of a model become a part of the page, or the page
// reach for something that is not its own.
func TestPartsAreSafe(t *testing.T) {
	forbidden := map[string]*regexp.Regexp{
		"HTML from strings":   regexp.MustCompile(`(?i)\b(inner|outer)HTML\b|insertAdjacentHTML|document\.write|createContextualFragment|DOMParser|srcdoc|setHTML`),
		"code from strings":   regexp.MustCompile(`\beval\b|new Function|setTimeout\(\s*["'` + "`" + `]|javascript:`),
		"an inline handler":   regexp.MustCompile(`(?i)<[^>\n]+\son[a-z]+\s*=`),
		"an inline style":     regexp.MustCompile(`(?i)<[^>\n]+\sstyle\s*=|<style`),
		"an inline script":    regexp.MustCompile(`(?i)<script(?:\s+type="module")?\s*>`),
		"a token for good":    regexp.MustCompile(`(?s)localStorage.{0,40}[tT]oken|berth\.token.*localStorage`),
		"a token in a URL":    regexp.MustCompile(`[?&]token=`),
		"a style from afar":   regexp.MustCompile(`@import|url\(`),
		"a module from afar":  regexp.MustCompile(`from\s+["'](?:[^."']|\.[^/])|import\(`),
		"another's resources": regexp.MustCompile(`(?i)(?:src|href)="(?:https?:)?//`),
	}
	address := regexp.MustCompile(`(?i)\b(?:https?|wss?)://[^\s"'` + "`" + `)]+`)
	for name, text := range parts(t) {
		for what, re := range forbidden {
			if hit := re.FindString(text); hit != "" {
				t.Errorf("%s holds %s: %q", name, what, hit)
			}
		}
		for _, hit := range address.FindAllString(text, -1) {
			if hit != "http://www.w3.org/2000/svg" && strings.ContainsAny(hit, ".") {
				t.Errorf("%s names the address %q", name, hit)
			}
		}
	}
}

func TestPageNamesAllItsParts(t *testing.T) {
	all := parts(t)
	page := all["/"]
	named := map[string]bool{"/": true}
	for _, m := range regexp.MustCompile(`(?:src|href)="(/[^"]+)"`).FindAllStringSubmatch(page, -1) {
		named[m[1]] = true
		if _, ok := all[m[1]]; !ok {
			t.Errorf("the page names %s, which is not there", m[1])
		}
	}
	for name, text := range all {
		if !named[name] {
			t.Errorf("%s is not named by the page, so it is loaded late or never", name)
		}
		for _, m := range regexp.MustCompile(`from "\./([^"]+)"`).FindAllStringSubmatch(text, -1) {
			if _, ok := all["/"+m[1]]; !ok {
				t.Errorf("%s imports %s, which is not there", name, m[1])
			}
		}
	}
}

func TestSize(t *testing.T) {
	total, packed := 0, 0
	for _, f := range handler(t).files {
		total += len(f.plain)
		packed += len(f.packed)
	}
	if packed > limit {
		t.Errorf("the page has %d bytes packed, more than %d", packed, limit)
	}
	t.Logf("%d bytes, %d packed", total, packed)
}

// Modules that hold logic know no nodes, so that they can be tested anywhere.
func TestLogicKnowsNoNodes(t *testing.T) {
	nodes := regexp.MustCompile(`\b(document|window|location|sessionStorage|localStorage|navigator|HTMLElement)\b\.`)
	for _, name := range []string{"/text.js", "/diff.js", "/markdown.js", "/state.js", "/files.js", "/wire.js", "/opened.js"} {
		if hit := nodes.FindString(parts(t)[name]); hit != "" {
			t.Errorf("%s uses %s", name, hit)
		}
	}
}

func TestEveryAssetHasAType(t *testing.T) {
	err := fs.WalkDir(assets, ".", func(name string, d fs.DirEntry, err error) error {
		if _, ok := kindOf(path.Ext(name)); err == nil && !d.IsDir() && !ok {
			t.Errorf("%s has no media type", name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := prepare("x.exe", nil); err == nil {
		t.Error("a file without a media type is taken")
	}
}
