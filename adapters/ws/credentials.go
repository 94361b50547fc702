package ws

import (
	"net/http"
	"net/url"
	"strings"
	"time"
)

// bearerProtocol is how a browser, which cannot set headers, offers a token
// among the sub-protocols.
const bearerProtocol = "bearer."

// Reasons for the log. None says what was wrong with a token.
const (
	whyNone  = "no token"
	whyWrong = "wrong token"
)

func tooMany(retry time.Duration) *no {
	return &no{status: http.StatusTooManyRequests, why: "too many wrong tokens", retry: retry}
}

// principal finds who the request's tokens belong to. All that are presented
// must be right, and the same one's.
func (g *Guard) principal(r *http.Request, local bool) (Principal, *no) {
	tokens, bad := presented(r)
	if bad != nil {
		return Principal{}, bad
	}
	if len(tokens) == 0 {
		return Principal{}, &no{status: http.StatusUnauthorized, why: whyNone}
	}
	var who Principal
	right := true
	for i, token := range tokens { // all of them, so that the time tells nothing
		p, ok := g.cfg.Keys.Lookup(token, local)
		if i == 0 {
			who = p
		}
		right = right && ok && p.Same(who)
	}
	if !right {
		return Principal{}, &no{status: http.StatusUnauthorized, why: whyWrong}
	}
	return who, nil
}

// presented collects the tokens of a request, wherever they stand. An empty
// one is one that is wrong.
func presented(r *http.Request) (tokens []string, bad *no) {
	headers := r.Header.Values("Authorization")
	if len(headers) > 1 {
		return nil, &no{status: http.StatusBadRequest, why: "several Authorization headers"}
	}
	for _, value := range headers {
		scheme, token, _ := strings.Cut(strings.TrimSpace(value), " ")
		if !strings.EqualFold(scheme, "Bearer") {
			token = "" // another scheme is no right credential either
		}
		tokens = append(tokens, strings.TrimSpace(token))
	}
	for _, offered := range offeredProtocols(r) {
		if token, ok := strings.CutPrefix(offered, bearerProtocol); ok {
			tokens = append(tokens, token)
		}
	}
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, &no{status: http.StatusBadRequest, why: "the query cannot be read"}
	}
	return append(tokens, query["token"]...), nil
}

// offeredProtocols are the sub-protocols a request offers.
func offeredProtocols(r *http.Request) []string {
	var list []string
	for _, line := range r.Header.Values("Sec-WebSocket-Protocol") {
		for one := range strings.SplitSeq(line, ",") {
			if one = strings.TrimSpace(one); one != "" {
				list = append(list, one)
			}
		}
	}
	return list
}
