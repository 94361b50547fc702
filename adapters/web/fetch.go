package web

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"strings"

	"github.com/berth-dev/berth/core/domain"
)

// maxHops is how many redirects are followed.
const maxHops = 5

// errTooSlow is the cause when a fetch takes too long.
var errTooSlow = errors.New("web: the time for a fetch is over")

// reply is what a server answered, unpacked and not yet decoded.
type reply struct {
	url    *url.URL // where it came from, after redirects
	status int
	kind   mediaType
	body   []byte
	cut    bool // there was more than we take
}

// fetch asks for a page and follows its redirects.
func (s *Source) fetch(ctx context.Context, u *url.URL) (*reply, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, s.limit, errTooSlow)
	defer cancel()
	p := &pins{cfg: &s.cfg, known: map[string][]netip.Addr{}}
	at := u
	for hop := 0; ; hop++ {
		r, next, err := s.hop(ctx, p, at)
		switch {
		case err != nil:
			return nil, s.explain(ctx, at, err)
		case next == nil:
			return r, nil
		case hop == maxHops:
			return nil, domain.Errorf(domain.Unavailable, "%s redirects more than %d times", u.Host, maxHops)
		}
		at = next
	}
}

// hop makes one request. next is where it redirects to, checked.
func (s *Source) hop(ctx context.Context, p *pins, u *url.URL) (r *reply, next *url.URL, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), http.NoBody)
	if err != nil {
		return nil, nil, err
	}
	req.Header.Set("User-Agent", s.cfg.UserAgent)
	req.Header.Set("Accept", "text/html,application/xhtml+xml,text/plain,application/json,application/xml;q=0.9,text/*;q=0.8")
	req.Header.Set("Accept-Encoding", "gzip")
	t, err := p.transport(ctx, req)
	if err != nil {
		return nil, nil, err
	}
	defer t.CloseIdleConnections()
	res, err := t.RoundTrip(req)
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = res.Body.Close() }()
	if location := res.Header.Get("Location"); location != "" && redirects(res.StatusCode) {
		next, err = s.follow(u, location)
		return nil, next, err
	}
	r = &reply{url: u, status: res.StatusCode}
	if r.kind, err = kindOf(res.Header.Get("Content-Type")); err != nil && res.StatusCode < 400 {
		return nil, nil, err
	}
	r.body, r.cut, err = unpack(res.Body, res.Header.Get("Content-Encoding"))
	if err == nil && ctx.Err() != nil {
		// Hanging up can make a server end its answer in good order.
		err = context.Cause(ctx)
	}
	return r, nil, err
}

func redirects(status int) bool {
	switch status {
	case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther, http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
		return true
	}
	return false
}

// follow checks where a redirect leads. Whoever allowed the fetch allowed this
// host; another one is for the model to ask for again.
func (s *Source) follow(from *url.URL, location string) (*url.URL, error) {
	if domain.Visible(location) != location {
		return nil, domain.Errorf(domain.Denied, "%s redirects to an address with characters that cannot be seen", from.Host)
	}
	to, err := from.Parse(location)
	if err != nil || len(location) > maxURL {
		return nil, domain.Errorf(domain.Unavailable, "%s redirects to something that is no address", from.Host)
	}
	next, err := s.cfg.parseURL(to.String())
	var e *domain.Error
	switch {
	case errors.As(err, &e):
		return nil, domain.Errorf(domain.Denied, "%s redirects to an address that is not fetched: %s", from.Host, strings.TrimPrefix(e.Msg, "web_fetch: "))
	case err != nil:
		return nil, err
	case from.Scheme == "https" && next.Scheme != "https":
		return nil, domain.Errorf(domain.Denied, "%s redirects from https to http, which would send the request in the clear", from.Host)
	case next.Port() != from.Port() || sameSite(next.Hostname()) != sameSite(from.Hostname()):
		return nil, &moved{to: next}
	}
	return next, nil
}

// sameSite is a host without "www.", which its owner gives and takes at will.
func sameSite(host string) string { return strings.TrimPrefix(host, "www.") }

// moved is a redirect to another host.
type moved struct{ to *url.URL }

func (m *moved) Error() string { return "it redirects to another host: " + m.to.String() }

// explain says in words what went wrong on the way.
func (s *Source) explain(ctx context.Context, u *url.URL, err error) error {
	var m *moved
	var e *domain.Error
	switch {
	case errors.Is(context.Cause(ctx), errTooSlow):
		return domain.Errorf(domain.Unavailable, "%s did not answer completely within %s", u.Host, s.limit)
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.As(err, &m):
		return m
	case errors.As(err, &e):
		return domain.WrapError(e.Code, e.Err, strings.TrimPrefix(e.Msg, "web_fetch: "))
	case errors.Is(err, io.ErrUnexpectedEOF):
		return domain.WrapError(domain.Unavailable, err, fmt.Sprintf("the answer of %s broke off", u.Host))
	}
	return domain.WrapError(domain.Unavailable, err, fmt.Sprintf("%s cannot be reached (%s)", u.Host, innermost(err)))
}

// innermost is the words of the first cause, without the addresses that
// wrappers put around it.
func innermost(err error) string {
	for {
		next := errors.Unwrap(err)
		if next == nil {
			return domain.Visible(err.Error())
		}
		err = next
	}
}
