package llm

import (
	"testing"

	"github.com/berth-dev/berth/core/domain"
)

func TestAddress(t *testing.T) {
	for _, tt := range []struct{ given, want string }{
		{"", "https://usual.example/v1"},
		{"https://a.example/v1/", "https://a.example/v1"},
		{"https://a.example/v1/chat/", "https://a.example/v1"},
		{"https://a.example//chat//", "https://a.example"},
		{"http://a.example/v1/chat/completions?x=1#top", "http://a.example/v1?x=1"},
		{"https://a.example/chat/v1", "https://a.example/chat/v1"},
		{"a.example/v1", ""},
		{"ftp://a.example", ""},
		{"https:///v1", ""},
		{"https://a.example:port", ""},
	} {
		u, err := ProviderConfig{Name: "p", BaseURL: tt.given}.Address("https://usual.example/v1", "https://example.example", "/completions", "/chat")
		switch {
		case tt.want == "":
			if domain.CodeOf(err) != domain.InvalidArgument || err.Error() != `providers.p.base_url must be an address such as "https://example.example"` {
				t.Errorf("%q: %v, %v", tt.given, u, err)
			}
		case err != nil || u.String() != tt.want:
			t.Errorf("%q: %v, %v; want %s", tt.given, u, err, tt.want)
		}
	}
}
