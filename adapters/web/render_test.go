package web

import (
	"context"
	"errors"
	"net/url"
	"strings"
	"testing"
	"unicode/utf8"
)

func rendered(t testing.TB, page string, markdown bool) string {
	t.Helper()
	base, err := url.Parse("https://example.com/dir/page")
	if err != nil {
		t.Fatal(err)
	}
	text, cut, err := render(t.Context(), page, base, markdown)
	if err != nil || cut {
		t.Fatalf("render: cut %v, %v", cut, err)
	}
	return text
}

func TestRender(t *testing.T) {
	cases := []struct{ name, page, want string }{
		{"paragraphs", "<p>One  two\n three</p><p>four", "One two three\n\nfour"},
		{"headings", "<h1>A</h1>text<h3>B <em>c</em></h3>", "# A\n\ntext\n\n### B *c*"},
		{"the title goes in front", "<title>The  page</title><p>x", "Title: The page\n\nx"},
		{"a title that is the heading too", "<head><title>The page</title></head><h1>The page</h1>", "# The page"},
		{"emphasis", "a <b>bold </b>and <i></i><code>x</code>.", "a **bold** and `x`."},
		{"ends without beginnings", "a</b></i></a></li></table> b", "a b"},
		{"line breaks", "a<br>b<br/>c<hr>d", "a\nb\nc\n\n---\n\nd"},
		{"entities", "&lt;b&gt; &amp; &eacute;&nbsp;x", "<b> & é x"},
		{"links in full", `<a href="/x y">there</a> <a href="#top">up</a> <a href="javascript:alert(1)">no</a> <a href="other?a=(1)">o</a>`, "[there](https://example.com/x%20y) up no [o](https://example.com/dir/other?a=%281%29)"},
		{"a base", `<base href="https://other.example/a/"><a href="b">x</a>`, "[x](https://other.example/a/b)"},
		{"links without text and one in another", `<a href="/a"></a><a href="/b">b<a href="/c">c</a>`, "[b](https://example.com/b)[c](https://example.com/c)"},
		{"images", `<img src="/i.png" alt="A  cat"> <img src="data:image/png;base64,xx" alt="dot"> <img src="/no.png">`, "![A cat](https://example.com/i.png) dot"},
		{"lists", "x<ul><li>a<li><p>b</p><ul><li>c</ul></ul>y", "x\n\n- a\n- b\n  - c\n\ny"},
		{"numbered", `<ol start="3"><li>a</li><li>b</li></ol>`, "3. a\n4. b"},
		{"definitions", "<dl><dt>a<dd>b<dt>c<dd>d</dl>", "a\n  b\nc\n  d"},
		{"quotes", "<blockquote><p>a</p><p>b</p></blockquote>c", "> a\n>\n> b\n\nc"},
		{"code", "<pre><code class=go>a  b\n\tc &lt;\n</code></pre>x", "```\na  b\n\tc <\n```\n\nx"},
		{"code with a fence in it", "<pre>```\n</pre>", "````\n```\n````"},
		{"a table", "<table><tr><th>a<th>b<tr><td>1<td><p>2</p><p>3</p></table>z", "| a | b |\n| --- | --- |\n| 1 | 2 3 |\n\nz"},
		{"what is not shown", `<script>a</script><style>b</style><template>c</template><svg><text>d</text></svg><svg/>e<select><option>f</select>`, "e"},
		{"comments", "a<!-- hidden instruction -->b", "ab"},
		{"hidden from people", `a<div hidden>b<div>c</div>d</div><span style="display : none">e</span><span aria-hidden="true">f</span><div style="font-size:0">g</div>h`, "ah"},
		{"what is for those without scripts", "<noscript><p>Use scripts.</p></noscript>", "Use scripts."},
		{"blocks and inline", "<div>a</div><div>b <span>c</span></div>", "a\nb c"},
		{"no page at all", "just text & <unknown>more</unknown>", "just text & more"},
		{"nothing", "", ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if got := rendered(t, c.page, true); got != c.want {
				t.Errorf("rendered:\n%s\nwant:\n%s", got, c.want)
			}
		})
	}
}

func TestRender_Plain(t *testing.T) {
	page := `<h1>A</h1><p>b <b>c</b> <a href="/x">d</a></p><ul><li>e</ul><pre>f</pre><table><tr><td>g<td>h</table>`
	if got, want := rendered(t, page, false), "A\n\nb c d\n\n- e\n\nf\n\n| g | h |"; got != want {
		t.Errorf("as plain text:\n%s\nwant:\n%s", got, want)
	}
}

// Pages made to blow up tree builders: each repeats one fault all over, and
// only its size counts.
func hostile() map[string]string {
	fill := func(begin, again string) string {
		const size = 2 << 20 // all of it is taken
		return begin + strings.Repeat(again, (size-len(begin))/len(again))
	}
	return map[string]string{
		"open tags":         fill("", "<b><i><a href=x>"),
		"quotes":            fill(strings.Repeat("<blockquote>", 5000), "line<br>"),
		"lists":             fill(strings.Repeat("<ul><li>", 5000), "x<li>y"),
		"tables in tables":  fill("", "<table><tr><td>"),
		"cells":             fill("<table><tr>", "<td>a"),
		"ends":              fill("", "</b></li></td>"),
		"attributes":        fill("<p ", "a=b "),
		"line ends":         fill("", "<br>"),
		"marks":             fill("<p>", "<b></b>"),
		"backquotes":        fill("<pre>", "`"),
		"growing fences":    fill("<pre>", strings.Repeat("`", 63)+"x"),
		"quoted line ends":  fill(strings.Repeat("<blockquote>", 20)+"<pre>", "\n"),
		"links":             fill("", `<a href="/x">y</a>`),
		"an unclosed pre":   fill("<pre>", "<pre>x"),
		"hidden in hidden":  fill("", "<div hidden>"),
		"one comment":       fill("<!--", "x"),
		"lt signs":          fill("", "<"),
		"entities":          fill("", "&#x202e;&"),
		"unfinished script": fill("<script>", "<script>"),
	}
}

func TestRender_Hostile(t *testing.T) {
	base := &url.URL{Scheme: "https", Host: "example.com", Path: "/"}
	for name, page := range hostile() {
		t.Run(name, func(t *testing.T) {
			text, _, err := render(t.Context(), page, base, true)
			if err != nil || len(text) > maxRendered+maxLink+100 {
				t.Errorf("%d bytes, %v", len(text), err)
			}
		})
	}
}

// What is left out is said to be, in running text and in code.
func TestRender_Cut(t *testing.T) {
	for name, begin := range map[string]string{"text": "<p>", "code": "<pre>", "code that ends": "<pre>"} {
		page := begin + strings.Repeat("word ", maxRendered/5+10)
		if name == "code that ends" {
			page += "</pre>"
		}
		text, cut, err := render(t.Context(), page, &url.URL{}, true)
		if err != nil || !cut || len(text) < maxRendered-10 || !strings.Contains(text[:20], "word word") {
			t.Errorf("%s: %d bytes, cut %v, %v", name, len(text), cut, err)
		}
	}
}

func TestRender_Stops(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	gone := errors.New("gone")
	cancel(gone)
	if _, _, err := render(ctx, "<p>x", &url.URL{}, true); !errors.Is(err, gone) {
		t.Errorf("after the end of its context it says %v", err)
	}
}

func FuzzRender(f *testing.F) {
	f.Add("<table><tr><td><ul><li>a<pre>b</table><a href=//x>c<blockquote>d")
	f.Fuzz(func(t *testing.T, page string) {
		text, _, err := render(t.Context(), page, &url.URL{Scheme: "https", Host: "example.com"}, true)
		if err != nil {
			t.Skip(err)
		}
		if utf8.ValidString(page) && !utf8.ValidString(text) {
			t.Errorf("text is no UTF-8: %q", text)
		}
		if strings.Contains(text, "](javascript:") {
			t.Errorf("a script is a link: %q", text)
		}
	})
}

func BenchmarkRender(b *testing.B) {
	page := strings.Repeat(`<h2>Head</h2><p>Some <b>text</b> with a <a href="/x">link</a> &amp; more.</p><ul><li>one<li>two</ul>`, 10_000)
	b.SetBytes(int64(len(page)))
	for b.Loop() {
		if _, _, err := render(b.Context(), page, &url.URL{Scheme: "https", Host: "example.com"}, true); err != nil {
			b.Fatal(err)
		}
	}
}
