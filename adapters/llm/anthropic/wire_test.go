package anthropic

import (
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/berth-dev/berth/adapters/llm"
	"github.com/berth-dev/berth/adapters/llm/llmtest"
	"github.com/berth-dev/berth/core/domain"
	"github.com/berth-dev/berth/core/ports/porttest"
)

// loopback serves a handler on a real socket, through the real transport.
func loopback(t testing.TB, h http.Handler) (*Model, *httptest.Server) {
	t.Helper()
	server := httptest.NewServer(h)
	p := llm.Provider{Client: llm.NewClient(llm.HTTPConfig{}), ProviderConfig: llm.ProviderConfig{
		Name: "fake", BaseURL: server.URL + "/v1", APIKey: func() (string, error) { return llmtest.Canary, nil },
	}}
	m, err := New(p, domain.ModelInfo{Ref: domain.ModelRef{Provider: "fake", Model: "claude-sonnet-5-5"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.Client.Close()
		server.Close()
	})
	return m, server
}

func okBody() string { return said("a") + data(ended("end_turn"), msgStop) }

func TestNew_Address(t *testing.T) {
	for base, want := range map[string]string{
		"":                                   "https://api.anthropic.com/v1/messages",
		"https://api.anthropic.com":          "https://api.anthropic.com/v1/messages",
		"https://api.anthropic.com/v1/":      "https://api.anthropic.com/v1/messages",
		"http://127.0.0.1:11434/v1":          "http://127.0.0.1:11434/v1/messages",
		"https://x.invalid/anthropic/v1":     "https://x.invalid/anthropic/v1/messages",
		"https://x.invalid/v1/messages":      "https://x.invalid/v1/messages",
		"https://x.invalid/v1?api-version=1": "https://x.invalid/v1/messages?api-version=1",
		"127.0.0.1:11434":                    "", "localhost/v1": "", "ftp://x/v1": "", "http://": "", "http://[::1": "", "http://a b/": "",
	} {
		p := llm.Provider{ProviderConfig: llm.ProviderConfig{Name: "p", BaseURL: base}}
		m, err := New(p, domain.ModelInfo{})
		_, probed := probe(t.Context(), llm.Provider{Client: llm.NewClient(llm.HTTPConfig{}), ProviderConfig: p.ProviderConfig})
		switch {
		case want == "" && (!domain.HasCode(err, domain.InvalidArgument) || !strings.Contains(err.Error(), "providers.p.base_url") || !domain.HasCode(probed, domain.InvalidArgument)):
			t.Errorf("%q: errors %v, %v", base, err, probed)
		case want != "" && (err != nil || m.url != want):
			t.Errorf("%q: %+v, error %v", base, m, err)
		}
	}
}

// TestWarn: an address as other tools want it is told of.
func TestWarn(t *testing.T) {
	for base, want := range map[string]string{
		"": "", "https://api.anthropic.com": "", "https://x.invalid/anthropic/v1": "", "https://x.invalid/v1beta/": "", "not an address": "",
		"https://x.invalid/anthropic": "https://x.invalid/anthropic/messages", "https://x.invalid": "https://x.invalid/messages", "https://u:pw-secret@x.invalid/v": "xxxxx",
	} {
		got := strings.Join(Opener().Warn(llm.ProviderConfig{Name: "p", BaseURL: base}), "\n")
		if (got == "") != (want == "") || !strings.Contains(got, want) || strings.Contains(got, "pw-secret") {
			t.Errorf("%q: %q", base, got)
		}
	}
}

// TestWire_Headers: every request names the version of the wire and has one
// key; a configured Authorization is sent in place of ours.
func TestWire_Headers(t *testing.T) {
	for name, c := range map[string]struct {
		key     string
		headers map[string]string
		want    map[string]string
	}{
		"a key":            {llmtest.Canary, nil, map[string]string{"X-Api-Key": llmtest.Canary, "Authorization": "", "Anthropic-Version": version, "Anthropic-Beta": "", "Content-Type": "application/json"}},
		"no key":           {"", nil, map[string]string{"X-Api-Key": "", "Authorization": "", "Anthropic-Version": version}},
		"a header of ours": {llmtest.Canary, map[string]string{"authorization": "Bearer other-0123456789", "anthropic-beta": "x", "anthropic-version": "y"}, map[string]string{"X-Api-Key": "", "Authorization": "Bearer other-0123456789", "Anthropic-Beta": "x", "Anthropic-Version": "y"}},
		"a key by header":  {"", map[string]string{"X-Api-Key": "other-0123456789"}, map[string]string{"X-Api-Key": "other-0123456789"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var seen []http.Header
				m := open(t, http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
					seen = append(seen, req.Header)
					if req.Method == http.MethodGet {
						_, _ = io.WriteString(w, `{"data":[{"id":"b"},{"id":"a"}]}`)
						return
					}
					_, _ = io.WriteString(w, okBody())
				}), func(p *llm.Provider, _ *domain.ModelInfo) {
					p.Headers, p.APIKey = c.headers, nil
					if c.key != "" {
						p.APIKey = func() (string, error) { return c.key, nil }
					}
				})
				if line, err := got(t, m, porttest.SampleRequest()); line != "a .stop" {
					t.Fatalf("%q, %v", line, err)
				}
				if names, err := probe(t.Context(), m.provider); err != nil || !slices.Equal(names, []string{"a", "b"}) {
					t.Fatalf("%q, %v", names, err)
				}
				for i, h := range seen {
					for name, want := range c.want {
						if h.Get(name) != want && (i == 0 || name != "Content-Type") {
							t.Errorf("request %d: %s is %q, want %q", i+1, name, h.Get(name), want)
						}
					}
				}
			})
		})
	}
}

// TestWire_Redirect: keys and the conversation go nowhere but to the address
// that was configured.
func TestWire_Redirect(t *testing.T) {
	var strayed atomic.Int32
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { strayed.Add(1) }))
	defer elsewhere.Close()
	m, _ := loopback(t, http.RedirectHandler(elsewhere.URL, http.StatusTemporaryRedirect))
	if _, err := got(t, m, porttest.SampleRequest()); !domain.HasCode(err, domain.ProviderRejected) {
		t.Errorf("%v", err)
	}
	if _, err := probe(t.Context(), m.provider); !domain.HasCode(err, domain.ProviderRejected) {
		t.Errorf("%v", err)
	}
	if n := strayed.Load(); n != 0 {
		t.Errorf("%d requests followed a redirect", n)
	}
}
