package config

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/berth-dev/berth/bootstrap/internal/tomltree"
)

// urls is an absolute URL that holds no secret. It loses a trailing slash.
type urls struct {
	schemes []string
	unix    bool // or unix:/path, a socket
}

func (k urls) parse(n *tomltree.Node, _ place) (any, error) {
	if n.Kind != tomltree.String {
		return nil, wrongKind(n)
	}
	if k.unix && strings.HasPrefix(n.Text, "unix:/") {
		return n.Text, nil
	}
	u, err := k.check(n.Text)
	switch {
	case err != nil:
		return nil, err
	case u.User != nil:
		return nil, errors.New("holds a user name or password; keys have a setting of their own")
	}
	for name := range u.Query() {
		if isSecretParameter(name) {
			return nil, fmt.Errorf("holds the parameter %s; keys have a setting of their own", quote(name))
		}
	}
	return strings.TrimRight(n.Text, "/"), nil
}

// check parses a URL. Its errors do not repeat it: it may hold a secret.
func (k urls) check(s string) (*url.URL, error) {
	u, err := url.Parse(s)
	switch {
	case err != nil || strings.IndexFunc(s, unicode.IsSpace) >= 0:
		return nil, errors.New("is not a URL")
	case !slices.Contains(k.schemes, strings.ToLower(u.Scheme)):
		return nil, fmt.Errorf("does not begin with %s://", strings.Join(k.schemes, ":// or "))
	case u.Hostname() == "":
		return nil, errors.New("names no host")
	}
	return u, nil
}

func isSecretParameter(name string) bool {
	name = strings.ToLower(strings.NewReplacer("-", "", "_", "").Replace(name))
	return slices.Contains([]string{"key", "apikey", "token", "accesstoken", "auth", "password", "secret", "sig", "signature"}, name)
}

func (k urls) allowed() string {
	words := "a URL that begins with " + strings.Join(k.schemes, ":// or ") + "://"
	if k.unix {
		words += ", or unix:/path"
	}
	return words
}
func (k urls) schema() map[string]any {
	pattern := "^(" + strings.Join(k.schemes, "|") + ")://"
	if k.unix {
		pattern += "|^unix:/"
	}
	return map[string]any{"type": "string", "pattern": pattern}
}

// secrets is a value that is never shown, or a reference to one. Inside a
// free map it may be empty. A url one is an http address when written out.
type secrets struct{ inMap, url bool }

func (k secrets) parse(n *tomltree.Node, p place) (any, error) {
	if n.Kind != tomltree.String {
		return nil, wrongKind(n)
	}
	ref, name, _ := strings.Cut(n.Text, ":")
	switch ref {
	case "env":
		if !isVariable(name) {
			return nil, errors.New("does not name a variable after env:")
		}
		v, _ := p.env.get(name)
		return secretOf(secretBox{ref: n.Text, shown: n.Text, value: v}), nil
	case "file":
		path, err := absolute(name, p)
		if err != nil {
			return nil, fmt.Errorf("does not name a file after file: (%w)", err)
		}
		return secretOf(secretBox{ref: n.Text, shown: n.Text, path: path, note: p.note}), nil
	case "keyring":
		if name == "" {
			return nil, errors.New("does not name an entry after keyring:")
		}
		return secretOf(secretBox{ref: n.Text, shown: n.Text, keyring: p.keyring, note: p.note}), nil
	}
	return k.literal(n.Text)
}

func (k secrets) literal(s string) (any, error) {
	shown := mask
	switch {
	case s == "" && !k.inMap:
		return nil, errors.New("is empty")
	case strings.IndexFunc(s, func(r rune) bool { return r != '\t' && unicode.IsControl(r) }) >= 0:
		return nil, errors.New("holds a control character, such as a line end")
	case k.url:
		u, err := urls{schemes: []string{"http", "https"}}.check(s)
		if err != nil {
			return nil, err
		}
		shown = redacted(u)
	}
	return secretOf(secretBox{value: s, shown: shown}), nil
}

// redacted shows where a URL leads and nothing that could be a key: host, and
// a mask for path and query where there are any.
func redacted(u *url.URL) string {
	s := u.Scheme + "://" + u.Host
	if u.User != nil || u.RawQuery != "" || strings.Trim(u.Path, "/") != "" {
		s += "/" + mask
	}
	return s
}

func (k secrets) allowed() string {
	if k.url {
		return "a URL that begins with http:// or https://, or env:NAME, file:PATH, keyring:NAME"
	}
	return "text in quotes: env:NAME, file:PATH, keyring:NAME, or the secret itself"
}
func (k secrets) schema() map[string]any { return map[string]any{"type": "string"} }

// addresses is what a server listens on.
type addresses struct{}

func (addresses) parse(n *tomltree.Node, _ place) (any, error) {
	if n.Kind != tomltree.String {
		return nil, wrongKind(n)
	}
	if path, ok := strings.CutPrefix(n.Text, "unix:"); ok {
		if !strings.HasPrefix(path, "/") {
			return nil, fmt.Errorf("%s names no absolute path", quote(n.Text))
		}
		return n.Text, nil
	}
	_, port, err := net.SplitHostPort(n.Text)
	if err != nil {
		return nil, fmt.Errorf("%s is not an address", quote(n.Text))
	}
	if p, err := strconv.Atoi(port); err != nil || p < 0 || p > 65535 {
		return nil, fmt.Errorf("%s has no port from 0 to 65535", quote(n.Text))
	}
	return n.Text, nil
}

func (addresses) allowed() string        { return "\"host:port\" or \"unix:/path\"" }
func (addresses) schema() map[string]any { return map[string]any{"type": "string", "minLength": 1} }

// isLoopback reports whether only this machine can reach an address.
func isLoopback(listen string) bool {
	if strings.HasPrefix(listen, "unix:") {
		return true
	}
	host, _, err := net.SplitHostPort(listen)
	if err != nil {
		return false
	}
	if strings.EqualFold(host, "localhost") {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.Unmap().IsLoopback()
}

// origins is a web origin as browsers send it.
type origins struct{}

func (origins) parse(n *tomltree.Node, _ place) (any, error) {
	if n.Kind != tomltree.String {
		return nil, wrongKind(n)
	}
	u, err := url.Parse(n.Text)
	if err != nil || u.Host == "" || u.Scheme == "" || n.Text != u.Scheme+"://"+u.Host {
		return nil, fmt.Errorf("%s is not an origin", quote(n.Text))
	}
	return strings.ToLower(n.Text), nil
}

func (origins) allowed() string { return "an origin such as \"https://editor.example:8443\"" }
func (origins) schema() map[string]any {
	return map[string]any{"type": "string", "pattern": "^[^/]+://[^/]+$"}
}

// hosts is a host name without a port.
type hosts struct{}

func (hosts) parse(n *tomltree.Node, _ place) (any, error) {
	if n.Kind != tomltree.String {
		return nil, wrongKind(n)
	}
	if _, err := netip.ParseAddr(n.Text); err != nil && (n.Text == "" || strings.ContainsFunc(n.Text, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '.' || r == '_')
	})) {
		return nil, fmt.Errorf("%s is not a host name", quote(n.Text))
	}
	return strings.ToLower(n.Text), nil
}

func (hosts) allowed() string        { return "a host name without scheme and port" }
func (hosts) schema() map[string]any { return map[string]any{"type": "string", "minLength": 1} }

// fingerprints is the SHA-256 of a certificate. Colons and a "sha256:" before
// it are dropped.
type fingerprints struct{}

func (fingerprints) parse(n *tomltree.Node, _ place) (any, error) {
	if n.Kind != tomltree.String {
		return nil, wrongKind(n)
	}
	s := strings.ReplaceAll(strings.TrimPrefix(strings.ToLower(n.Text), "sha256:"), ":", "")
	if len(s) != 64 || strings.Trim(s, "0123456789abcdef") != "" {
		return nil, fmt.Errorf("%s is not a fingerprint", quote(n.Text))
	}
	return s, nil
}

func (fingerprints) allowed() string { return "64 hexadecimal digits, with or without colons" }
func (fingerprints) schema() map[string]any {
	return map[string]any{"type": "string", "minLength": 64}
}
