package llm

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/berth-dev/berth/core/domain"
)

// signing is a transport that keeps the request and refuses it in words that
// repeat a part of the key.
type signing struct{ req *http.Request }

func (s *signing) RoundTrip(req *http.Request) (*http.Response, error) {
	s.req = req
	return &http.Response{StatusCode: http.StatusForbidden, Header: http.Header{}, Body: http.NoBody}, nil
}

// TestStart_Signed: a key that signs is given the whole request and the time
// of the clock, and is not asked where a configured header takes its place.
func TestStart_Signed(t *testing.T) {
	at := time.Date(2015, 8, 30, 12, 36, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		headers map[string]string
		err     error
		want    string // the signature
		code    domain.Code
	}{
		"signed":       {headers: map[string]string{"X-More": "m"}, want: "id:secret 20150830T123600Z m {} text/x", code: domain.AuthRequired},
		"a header":     {headers: map[string]string{"Authorization": "mine"}, want: "mine", code: domain.AuthRequired},
		"no signature": {err: domain.Errorf(domain.InvalidArgument, "no region"), code: domain.InvalidArgument},
	} {
		t.Run(name, func(t *testing.T) {
			wire := &signing{}
			p := &Provider{
				Client: NewClient(HTTPConfig{Transport: wire, Now: func() time.Time { return at }}),
				ProviderConfig: ProviderConfig{
					Name: "acme", Headers: c.headers, APIKey: func() (string, error) { return "id:secret", nil },
				},
			}
			_, err := p.Start(t.Context(), Call{
				URL: "https://acme.invalid/", Body: []byte("{}"), Accept: "text/x",
				Sign: func(req *http.Request, body []byte, key string, now time.Time) error {
					h := req.Header
					h.Set("Authorization", key+now.Format(" 20060102T150405Z ")+h.Get("X-More")+" "+string(body)+" "+h.Get("Accept"))
					return c.err
				},
			})
			if domain.CodeOf(err) != c.code {
				t.Errorf("error %v, want %v", err, c.code)
			}
			if c.err == nil && wire.req.Header.Get("Authorization") != c.want {
				t.Errorf("signed %q, want %q", wire.req.Header.Get("Authorization"), c.want)
			}
		})
	}
}

// TestRedactor_Parts: what is secret in a key by itself is hidden by itself.
func TestRedactor_Parts(t *testing.T) {
	r := newRedactor(&Provider{}, Call{Secrets: func(key string) []string { return strings.Split(key, ":") }}, "first-part:second-part")
	if got := r.clean("first-part and second-part and first-part:second-part"); got != "[redacted] and [redacted] and [redacted]" {
		t.Errorf("%q", got)
	}
	if got := r.clean("ABSKQmVkcm9ja0FQSUtleS0x and ASIAABCDEFGHIJKLMNOP and bedrock-api-key-YmVkcm9jay5hb"); got != "[redacted] and [redacted] and [redacted]" {
		t.Errorf("%q", got)
	}
}

// TestNewClient_Clock: requests are signed by the system's clock unless told
// otherwise.
func TestNewClient_Clock(t *testing.T) {
	if now := NewClient(HTTPConfig{}).cfg.Now; now == nil || now().IsZero() {
		t.Error("there is no clock")
	}
}
