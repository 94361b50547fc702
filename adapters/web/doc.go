// Package web is web_fetch: one page of the public web, as text for a model.
//
// What keeps it from becoming a way into other networks: an address is checked
// as it is written (address.go), and every IP address a name stands for is
// checked when it is dialled, the connection going to the very address that
// was checked (dial.go). A name is looked up once for a fetch, so a second
// answer cannot differ from the first. Redirects are followed by hand, each
// hop checked like the first, and only on the host that was allowed; another
// host is another decision. No cookies, no credentials and no referrer are
// sent.
//
// What comes back is bounded before and after it is unpacked, decoded to
// UTF-8, and turned into Markdown from the tokens of the HTML, without a tree:
// time and memory grow with the page and with nothing in it (markdown.go). The
// model gets it wrapped as foreign text.
//
// Behind a proxy it is the proxy that looks names up. The addresses a name has
// here are checked all the same, as far as it has any; that the proxy sees the
// same ones is the business of whoever runs it.
//
// Read next: fetch.go.
package web
