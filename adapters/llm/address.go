package llm

import (
	"cmp"
	"net/url"
	"slices"
	"strings"

	"github.com/berth-dev/berth/core/domain"
)

// Address returns the provider's address, or where there is none the usual
// one of its type, without slashes at its end, and without the given paths:
// people have the address of a request at hand. It fails with InvalidArgument
// and shows an example when the address cannot be one.
func (p ProviderConfig) Address(usual, example string, without ...string) (*url.URL, error) {
	u, ok := HTTPAddress(cmp.Or(p.BaseURL, usual))
	if !ok {
		return nil, domain.Errorf(domain.InvalidArgument, "providers.%s.base_url must be an address such as %q", p.Name, example)
	}
	u.Path = strings.TrimRight(u.Path, "/")
	for _, end := range without {
		u.Path = strings.TrimRight(strings.TrimSuffix(u.Path, end), "/")
	}
	u.RawPath, u.Fragment = "", ""
	return u, nil
}

// HTTPAddress reads an address that HTTP can ask. ok is false when it is none.
func HTTPAddress(address string) (u *url.URL, ok bool) {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, false
	}
	return u, true
}

// lacksVersion reports whether the address has no path at all, though the wire
// is one that nearly always lives below /v1.
func (p ProviderConfig) lacksVersion() bool {
	u, err := url.Parse(p.BaseURL)
	return err == nil && u.Host != "" && strings.Trim(u.Path, "/") == "" &&
		slices.Contains([]string{"openai-chat", "openai-responses", "anthropic", "openrouter"}, p.Type)
}
