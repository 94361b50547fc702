package llm

import (
	"errors"
	"strings"

	"github.com/berth-dev/berth/core/domain"
)

// checkKey tells whether a needed key is there.
func (p ProviderConfig) checkKey() error {
	_, err := p.key()
	return err
}

// key returns the key, "" when the provider takes none.
func (p ProviderConfig) key() (string, error) {
	if p.APIKey == nil {
		return "", nil
	}
	key, err := p.APIKey()
	key = strings.TrimSpace(key)
	switch {
	case err != nil:
		// The cause may quote what it read; only a coded one is known to be
		// fit to show.
		why := "its API key cannot be read"
		var coded *domain.Error
		if errors.As(err, &coded) {
			why += ": " + coded.Msg
		}
		return "", p.noKey("provider \"" + p.Name + "\": " + why + "; " + p.keyHint())
	case key == "" && p.KeyOptional:
		return "", nil
	case key == "":
		return "", p.noKey("provider \"" + p.Name + "\" has no API key; " + p.keyHint())
	case !printable(key):
		return "", p.noKey("provider \"" + p.Name + "\": the API key holds a space, a line break or another character that no key has; check the key: " + p.keyHint())
	}
	return key, nil
}

func (p ProviderConfig) noKey(msg string) *domain.Error {
	return domain.Errorf(domain.AuthRequired, "%s", msg).With("provider", p.Name).With("key", "missing")
}

// printable reports whether s is visible ASCII, as a header value must be.
func printable(s string) bool {
	for i := range len(s) {
		if s[i] <= ' ' || s[i] > '~' {
			return false
		}
	}
	return true
}

// keyHint returns what to do about a missing key.
func (p ProviderConfig) keyHint() string {
	if p.KeyHint != "" {
		return p.KeyHint
	}
	return "set providers." + p.Name + ".api_key"
}
