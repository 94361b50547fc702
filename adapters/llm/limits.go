package llm

import (
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// resetAfter reads how long a used-up rate limit lasts, for an answer that does
// not say when to come back: the longest wait of those limits of which nothing
// remains. A limit of which something remains is not what stopped the request.
//
// Most of these headers tell when the whole limit is there again, which is
// longer than a request needs; so what is beyond MaxWait is not believed, save
// for the end of a fixed window, which comes when it says.
func resetAfter(h http.Header) (time.Duration, bool) {
	now := serverTime(h)
	longest, found := time.Duration(0), false
	for _, l := range limitHeaders() {
		if strings.TrimSpace(h.Get(l.remaining)) != "0" {
			continue
		}
		d, ok := parseReset(h.Get(l.reset), now)
		if !ok || d > MaxWait && !l.window {
			continue
		}
		longest, found = max(longest, d), true
	}
	return longest, found
}

// limitHeader names the two headers of a limit.
type limitHeader struct {
	remaining, reset string
	window           bool // it is a fixed window
}

// limitHeaders are those in use: OpenAI and those who follow it, Anthropic,
// and what aggregators and gateways send.
func limitHeaders() []limitHeader {
	return []limitHeader{
		{"X-Ratelimit-Remaining-Requests", "X-Ratelimit-Reset-Requests", false},
		{"X-Ratelimit-Remaining-Tokens", "X-Ratelimit-Reset-Tokens", false},
		{"Anthropic-Ratelimit-Requests-Remaining", "Anthropic-Ratelimit-Requests-Reset", false},
		{"Anthropic-Ratelimit-Tokens-Remaining", "Anthropic-Ratelimit-Tokens-Reset", false},
		{"Anthropic-Ratelimit-Input-Tokens-Remaining", "Anthropic-Ratelimit-Input-Tokens-Reset", false},
		{"Anthropic-Ratelimit-Output-Tokens-Remaining", "Anthropic-Ratelimit-Output-Tokens-Reset", false},
		{"X-Ratelimit-Remaining", "X-Ratelimit-Reset", true},
		{"Ratelimit-Remaining", "Ratelimit-Reset", true},
	}
}

// parseReset reads one of the forms of a reset: "6m0s", seconds, a Unix time in
// seconds or milliseconds, or a date.
func parseReset(v string, now time.Time) (time.Duration, bool) {
	v = strings.TrimSpace(v)
	if d, err := time.ParseDuration(v); err == nil && v != "0" {
		return clampSeconds(d.Seconds()), d >= 0
	}
	if n, err := strconv.ParseFloat(v, 64); err == nil && !math.IsNaN(n) {
		const aYear = 365 * 24 * 3600
		switch {
		case n > 1e11: // later than 1973 in milliseconds
			n = n/1000 - float64(now.UnixMilli())/1000
		case n > aYear:
			n -= float64(now.UnixMilli()) / 1000
		case n < 0:
			return 0, false
		}
		return clampSeconds(n), true
	}
	at, err := time.Parse(time.RFC3339, v)
	if err != nil {
		return 0, false
	}
	return max(0, at.Sub(now)), true
}

// serverTime is the time by the server's own clock where it tells it.
func serverTime(h http.Header) time.Time {
	if now, err := http.ParseTime(h.Get("Date")); err == nil {
		return now
	}
	return time.Now()
}
