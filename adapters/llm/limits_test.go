package llm

import (
	"net/http"
	"testing"
	"time"

	"github.com/berth-dev/berth/core/domain"
)

// TestResetAfter: what the headers of limits say, by the server's clock.
func TestResetAfter(t *testing.T) {
	const at = "Mon, 02 Nov 2026 10:00:00 GMT"
	for name, c := range map[string]struct {
		headers map[string]string
		want    time.Duration // -1: nothing
	}{
		"none":            {nil, -1},
		"OpenAI":          {map[string]string{"x-ratelimit-remaining-tokens": "0", "x-ratelimit-reset-tokens": "8.64s"}, 8640 * time.Millisecond},
		"milliseconds":    {map[string]string{"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "120ms"}, 120 * time.Millisecond},
		"seconds":         {map[string]string{"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "12"}, 12 * time.Second},
		"at once":         {map[string]string{"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "0"}, 0},
		"something left":  {map[string]string{"x-ratelimit-remaining-tokens": "17", "x-ratelimit-reset-tokens": "8s"}, -1},
		"remaining alone": {map[string]string{"x-ratelimit-remaining-tokens": "0"}, -1},
		"reset alone":     {map[string]string{"x-ratelimit-reset-tokens": "8s"}, -1},
		"the one that is used up": {map[string]string{
			"x-ratelimit-remaining-tokens": "17", "x-ratelimit-reset-tokens": "8s", "x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "3s",
		}, 3 * time.Second},
		"the longest": {map[string]string{
			"x-ratelimit-remaining-tokens": "0", "x-ratelimit-reset-tokens": "8s", "x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "3s",
		}, 8 * time.Second},
		"Anthropic":              {map[string]string{"anthropic-ratelimit-input-tokens-remaining": "0", "anthropic-ratelimit-input-tokens-reset": "2026-11-02T10:00:25Z"}, 25 * time.Second},
		"Anthropic, passed":      {map[string]string{"anthropic-ratelimit-requests-remaining": "0", "anthropic-ratelimit-requests-reset": "2026-11-02T09:00:00Z"}, 0},
		"too long to believe":    {map[string]string{"x-ratelimit-remaining-tokens": "0", "x-ratelimit-reset-tokens": "6m0s"}, -1},
		"a window, in ms":        {map[string]string{"x-ratelimit-remaining": "0", "x-ratelimit-reset": "1793664000000"}, 14 * time.Hour},
		"a window, in s":         {map[string]string{"x-ratelimit-remaining": "0", "x-ratelimit-reset": "1793664000"}, 14 * time.Hour},
		"a window, as a wait":    {map[string]string{"ratelimit-remaining": "0", "ratelimit-reset": "300"}, 5 * time.Minute},
		"nonsense":               {map[string]string{"x-ratelimit-remaining": "0", "x-ratelimit-reset": "soon"}, -1},
		"negative":               {map[string]string{"x-ratelimit-remaining": "0", "x-ratelimit-reset": "-4"}, -1},
		"negative, with a unit":  {map[string]string{"x-ratelimit-remaining": "0", "x-ratelimit-reset": "-4s"}, -1},
		"no number":              {map[string]string{"x-ratelimit-remaining": "0", "x-ratelimit-reset": "NaN"}, -1},
		"remaining is not clear": {map[string]string{"x-ratelimit-remaining": "none", "x-ratelimit-reset": "4"}, -1},
	} {
		t.Run(name, func(t *testing.T) {
			h := http.Header{"Date": {at}}
			for k, v := range c.headers {
				h.Set(k, v)
			}
			got, ok := resetAfter(h)
			if !ok {
				got = -1
			}
			if got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
		})
	}
}

// TestRefusal_Reset: limits count where the provider does not say when to come
// back, for a rate limit and nothing else.
func TestRefusal_Reset(t *testing.T) {
	for name, c := range map[string]struct {
		status int
		after  string
		body   string
		code   domain.Code
		want   time.Duration
	}{
		"a rate limit":      {429, "", "slow down", domain.RateLimited, 3 * time.Second},
		"with Retry-After":  {429, "7", "slow down", domain.RateLimited, 7 * time.Second},
		"with nonsense":     {429, "soon", "slow down", domain.RateLimited, 3 * time.Second},
		"a spent account":   {429, "", "insufficient credits", domain.QuotaExhausted, 0},
		"a server's error":  {500, "", "oops", domain.Unavailable, 0},
		"a refused request": {400, "", "no such field", domain.ProviderRejected, 0},
	} {
		t.Run(name, func(t *testing.T) {
			h := http.Header{}
			h.Set("X-Ratelimit-Remaining-Requests", "0")
			h.Set("X-Ratelimit-Reset-Requests", "3s")
			h.Set("Retry-After", c.after)
			f := exchange("").refuse(parseRefusal(c.status, h, []byte(c.body)))
			if f.Err.Code != c.code || f.Err.RetryAfter != c.want {
				t.Errorf("%s, wait %s", f.Err.Code, f.Err.RetryAfter)
			}
		})
	}
}
