package web

import (
	"context"
	"errors"
	"io"
	"net/url"
	"strings"

	"golang.org/x/net/html"
)

const (
	maxRendered = 4 << 20 // bytes of text made of a page
	maxOpen     = 256     // elements that are kept track of
	maxIndent   = 8       // levels of lists and quotes that are shown
	maxLink     = 2000    // bytes of a link's address that are shown
	checkEvery  = 1024    // tokens between two looks at the context
)

// render makes text of a page, as Markdown unless plain. It goes through the
// tokens of the HTML once and keeps no tree, so a page can be as deep or as
// wrong as it likes. cut says that the page had more text than we take.
func render(ctx context.Context, page string, base *url.URL, markdown bool) (text string, cut bool, err error) {
	r := &renderer{base: base, out: writer{markdown: markdown}}
	cut, err = r.run(ctx, page)
	if err != nil {
		return "", false, err
	}
	text = r.finish()
	return text, cut || r.out.cut, nil
}

// run goes through the tokens of a page or of a part that stands as text in
// one.
func (r *renderer) run(ctx context.Context, page string) (cut bool, err error) {
	z := html.NewTokenizer(strings.NewReader(page))
	for n := 0; ; n++ {
		if n%checkEvery == 0 && ctx.Err() != nil {
			return false, context.Cause(ctx)
		}
		if len(r.out.buf) > maxRendered {
			return true, nil
		}
		switch z.Next() {
		case html.ErrorToken:
			if err := z.Err(); !errors.Is(err, io.EOF) {
				return false, err
			}
			return false, nil
		case html.TextToken:
			if r.instead == 1 { // what those without scripts see, such as we
				r.instead++
				if cut, err := r.run(ctx, string(z.Raw())); cut || err != nil {
					return cut, err
				}
				r.instead = 0
				continue
			}
			r.text(z)
		case html.StartTagToken:
			r.start(z, false)
		case html.SelfClosingTagToken:
			r.start(z, true)
		case html.EndTagToken:
			name, _ := z.TagName()
			r.end(string(name))
		}
	}
}

// element is one that is open and matters when it ends.
type element struct {
	name   string
	indent int    // length of the writer's indent before it
	number int    // of a list: that of the next item; 0 when it has none
	href   string // of a link
	cells  int    // of a row: how many it has
	rows   int    // of a table: how many it has
}

// renderer walks over a page.
type renderer struct {
	base  *url.URL
	out   writer
	open  []element
	skip  string // the element whose content is left out
	deep  int    // how many of its name are open in it
	title strings.Builder
	named bool // inside the title
	// instead is 1 when a noscript element has begun, 2 in its content.
	instead int
}

// text takes a run of text.
func (r *renderer) text(z *html.Tokenizer) {
	switch {
	case r.skip != "":
	case r.named:
		if r.title.Len() < maxPreview {
			r.title.Write(z.Text())
		}
	default:
		r.out.text(string(z.Text()))
	}
}

// start takes the start of an element. Only in drawings and formulas does one
// end where it starts.
func (r *renderer) start(z *html.Tokenizer, closed bool) {
	raw, more := z.TagName()
	name := string(raw)
	if closed && (name == "svg" || name == "math") {
		return
	}
	if r.skip != "" {
		if name == r.skip {
			r.deep++
		}
		return
	}
	attrs := map[string]string{}
	for more && len(attrs) < 64 {
		var key, value []byte
		key, value, more = z.TagAttr()
		if k := string(key); attrs[k] == "" {
			attrs[k] = string(value)
		}
	}
	if leftOut(name) || !void(name) && hides(name, attrs) {
		r.skip, r.deep = name, 1
		return
	}
	if name == "noscript" && r.instead == 0 {
		r.instead = 1
		return
	}
	if name == "title" {
		r.named = r.title.Len() == 0
		return
	}
	if name == "base" && attrs["href"] != "" {
		if u, err := r.base.Parse(attrs["href"]); err == nil {
			r.base = u
		}
	}
	r.begin(name, attrs)
}

// begin writes what the start of an element means.
func (r *renderer) begin(name string, attrs map[string]string) {
	switch name {
	case "br":
		r.out.lines(1)
	case "hr":
		r.out.lines(2)
		r.out.mark("---")
		r.out.lines(2)
	case "h1", "h2", "h3", "h4", "h5", "h6":
		r.out.lines(2)
		r.out.open(strings.Repeat("#", int(name[1]-'0')) + " ")
	case "strong", "b":
		r.out.open("**")
	case "em", "i":
		r.out.open("*")
	case "code", "kbd", "samp", "tt":
		if !r.within("pre") {
			r.out.open("`")
		}
	case "img":
		r.image(attrs)
	case "a":
		r.close("a")
		if href := r.link(attrs["href"]); href != "" {
			r.push(element{name: "a", href: href})
			r.out.open("[")
		}
	case "pre":
		r.out.lines(2)
		r.push(element{name: name})
		r.out.verbatim(true)
	case "blockquote":
		r.out.lines(2)
		r.push(element{name: name})
		r.out.deeper("> ")
	case "ul", "ol", "menu", "dl":
		r.list(name, attrs)
	case "li", "dt", "dd":
		r.item(name)
	case "table", "tr", "td", "th":
		r.table(name)
	default:
		r.out.lines(r.gap(name))
	}
}

// end takes the end of an element.
func (r *renderer) end(name string) {
	switch {
	case r.skip != "":
		if name == r.skip {
			if r.deep--; r.deep == 0 {
				r.skip = ""
			}
		}
		return
	case name == "title":
		r.named = false
		return
	case name == "noscript" && r.instead == 1: // it was empty
		r.instead = 0
		return
	}
	switch name {
	case "h1", "h2", "h3", "h4", "h5", "h6":
		r.out.lines(2)
	case "strong", "b":
		r.out.shut("**", "**")
	case "em", "i":
		r.out.shut("*", "*")
	case "code", "kbd", "samp", "tt":
		if !r.within("pre") {
			r.out.shut("`", "`")
		}
	case "a", "pre", "blockquote", "ul", "ol", "menu", "dl", "li", "dt", "dd", "table", "tr", "td", "th":
		r.close(name)
	default:
		r.out.lines(r.gap(name))
	}
}

// push remembers an open element.
func (r *renderer) push(e element) {
	if len(r.open) < maxOpen {
		e.indent = len(r.out.indent)
		r.open = append(r.open, e)
	}
}

// find is the innermost open element of a name; nil when there is none.
func (r *renderer) find(name string) *element {
	for i := len(r.open) - 1; i >= 0; i-- {
		if r.open[i].name == name {
			return &r.open[i]
		}
	}
	return nil
}

func (r *renderer) within(name string) bool { return r.find(name) != nil }

// close ends the innermost element of a name and those in it.
func (r *renderer) close(name string) {
	if r.find(name) == nil {
		return
	}
	for {
		e := r.open[len(r.open)-1]
		r.open = r.open[:len(r.open)-1]
		r.closed(e)
		if e.name == name {
			return
		}
	}
}

// closed writes what the end of an element means.
func (r *renderer) closed(e element) {
	r.out.indent = r.out.indent[:min(e.indent, len(r.out.indent))]
	switch e.name {
	case "a":
		r.out.shut("[", "]("+e.href+")")
	case "pre":
		r.out.verbatim(false)
		r.out.lines(2)
	case "ul", "ol", "menu", "dl":
		if r.within("li") {
			r.out.lines(1)
		} else {
			r.out.lines(2)
		}
	case "blockquote", "table":
		r.out.lines(2)
	case "li", "dt", "dd":
		r.out.lines(1)
	case "td", "th":
		r.out.cell = r.within("td") || r.within("th")
		r.out.space = false
		r.out.mark(" |")
	case "tr":
		r.endRow(e)
	}
}

func (r *renderer) image(attrs map[string]string) {
	alt := strings.Join(strings.Fields(attrs["alt"]), " ")
	if alt == "" {
		return
	}
	if src := r.link(attrs["src"]); src != "" && r.out.markdown {
		alt = "![" + alt + "](" + src + ")"
	}
	r.out.text(alt)
}

// link is an address in full; "" for what leads nowhere on the web.
func (r *renderer) link(href string) string {
	href = strings.TrimSpace(href)
	if href == "" || href[0] == '#' || len(href) > maxLink {
		return ""
	}
	u, err := r.base.Parse(href)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" && u.Scheme != "mailto" {
		return ""
	}
	full := u.String()
	if strings.ContainsAny(full, "() ") {
		full = strings.NewReplacer("(", "%28", ")", "%29", " ", "%20").Replace(full)
	}
	return full
}

// finish closes what is open and puts the title in front.
func (r *renderer) finish() string {
	for len(r.open) > 0 {
		r.close(r.open[len(r.open)-1].name)
	}
	text := strings.TrimSpace(string(r.out.buf))
	title := strings.Join(strings.Fields(r.title.String()), " ")
	if title == "" || strings.HasPrefix(text, "# "+title) {
		return text
	}
	return strings.TrimSpace("Title: " + title + "\n\n" + text)
}

// leftOut reports whether an element holds nothing to read.
func leftOut(name string) bool {
	switch name {
	case "script", "style", "template", "svg", "math", "iframe", "object", "canvas", "audio", "video",
		"select", "datalist", "textarea", "noframes", "noembed", "dialog":
		return true
	}
	return false
}

// void reports whether an element has no end.
func void(name string) bool {
	switch name {
	case "area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "param", "source", "track", "wbr":
		return true
	}
	return false
}

// hides reports whether an element is not shown to people. Those whose end may
// be left out are taken as shown: without a tree nobody knows where they end.
func hides(name string, attrs map[string]string) bool {
	switch name {
	case "p", "li", "dt", "dd", "td", "th", "tr", "option", "html", "body", "head", "tbody", "thead", "tfoot":
		return false
	}
	if _, ok := attrs["hidden"]; ok || attrs["aria-hidden"] == "true" {
		return true
	}
	style := strings.ToLower(strings.Join(strings.Fields(attrs["style"]), ""))
	return strings.Contains(style, "display:none") || strings.Contains(style, "visibility:hidden") ||
		strings.Contains(style, "font-size:0;") || strings.HasSuffix(style, "font-size:0")
}

// gap is how many line ends an element has before and after it.
func (r *renderer) gap(name string) int {
	n := gap(name)
	if n > 1 && r.within("li") {
		return 1
	}
	return n
}

func gap(name string) int {
	switch name {
	case "p", "figure", "article", "section", "main", "header", "footer", "nav", "aside", "form", "fieldset", "details", "address", "hgroup":
		return 2
	case "div", "figcaption", "summary", "legend", "caption", "body", "head", "center", "tbody", "thead", "tfoot":
		return 1
	}
	return 0
}
