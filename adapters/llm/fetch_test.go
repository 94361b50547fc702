package llm

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/berth-dev/berth/core/domain"
)

// TestFetchNames: the list of models is read, and what is no list is told in
// the words of a stream's errors.
func TestFetchNames(t *testing.T) {
	for _, c := range []struct {
		name   string
		status int
		body   string
		want   []string
		code   domain.Code
		words  string
	}{
		{"a list", 200, `{"object":"list","data":[{"id":"b","object":"model"},{"id":"a"},{"id":"b"},{"name":"?"}]}`, []string{"a", "b"}, 0, ""},
		{"an empty list", 200, `{"data":[]}`, []string{}, 0, ""},
		{"a wrong key", 401, `{"error":{"message":"no such key k3y-of-the-test"}}`, nil, domain.AuthRequired, "refused its API key"},
		{"no such address", 404, `{"error":{"message":"no route"}}`, nil, domain.ProviderRejected, "base_url"},
		{"a limit", 429, `{}`, nil, domain.RateLimited, "rate limit"},
		{"a broken server", 500, ``, nil, domain.Unavailable, "500"},
		{"a page", 200, `<!doctype html>`, nil, domain.Unavailable, "web page"},
		{"half a list", 200, `{"data":[{"id":"a"}`, nil, domain.Unavailable, "no JSON"},
	} {
		t.Run(c.name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
				if req.Method != http.MethodGet || req.ContentLength != 0 || req.Header.Get("Authorization") != "Bearer k3y-of-the-test" {
					t.Errorf("%s with %d bytes, %v", req.Method, req.ContentLength, req.Header)
				}
				w.WriteHeader(c.status)
				_, _ = w.Write([]byte(c.body))
			}))
			defer server.Close()
			client := NewClient(HTTPConfig{})
			defer client.Close()
			p := &Provider{Client: client, ProviderConfig: ProviderConfig{Name: "acme", APIKey: func() (string, error) { return "k3y-of-the-test", nil }}}
			got, err := p.FetchNames(t.Context(), Call{
				URL: server.URL + "/models", Authorize: func(h http.Header, key string) { h.Set("Authorization", "Bearer "+key) },
			})
			if c.code == 0 {
				if err != nil || !slices.Equal(got, c.want) {
					t.Errorf("%v, %v", got, err)
				}
				return
			}
			if domain.CodeOf(err) != c.code || !strings.Contains(err.Error(), c.words) || strings.Contains(err.Error(), "k3y") {
				t.Errorf("%v, %v", got, err)
			}
		})
	}
}
