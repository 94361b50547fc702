package bedrock

import (
	"strings"

	"github.com/berth-dev/berth/core/domain"
)

// Credentials returns the key of a provider that signs its requests with an
// access key of Amazon's: access key id, secret and, for temporary ones, the
// session token. None of the three holds a colon. It returns "" when the id
// or the secret is missing.
func Credentials(accessKey, secret, session string) string {
	accessKey, secret, session = strings.TrimSpace(accessKey), strings.TrimSpace(secret), strings.TrimSpace(session)
	if accessKey == "" || secret == "" {
		return ""
	}
	key := accessKey + ":" + secret
	if session != "" {
		key += ":" + session
	}
	return key
}

// credentials is an access key taken apart.
type credentials struct {
	id      string
	secret  string
	session string // "" for a permanent key
}

// parseKey takes a key apart. The second result is false for one that is no
// access key: an API key of Bedrock's, which travels with the request. The
// error tells of an access key that lacks its secret.
func parseKey(key string) (credentials, bool, error) {
	id, rest, _ := strings.Cut(key, ":")
	if !accessKeyID(id) {
		return credentials{}, false, nil
	}
	secret, session, _ := strings.Cut(rest, ":")
	if secret == "" {
		return credentials{}, true, domain.Errorf(domain.AuthRequired,
			"the key holds an access key id without its secret; write it as ACCESS_KEY_ID:SECRET_ACCESS_KEY, and :SESSION_TOKEN behind it if there is one")
	}
	return credentials{id: id, secret: secret, session: session}, true, nil
}

// accessKeyID reports whether s is the id of an access key: a permanent one
// (AKIA) or a temporary one (ASIA).
func accessKeyID(s string) bool {
	if len(s) < 16 || len(s) > 128 || !(strings.HasPrefix(s, "AKIA") || strings.HasPrefix(s, "ASIA")) {
		return false
	}
	for i := range len(s) {
		if c := s[i]; (c < 'A' || c > 'Z') && (c < '0' || c > '9') {
			return false
		}
	}
	return true
}

// secrets returns the parts of a key that nobody may read.
func secrets(key string) []string {
	c, signs, err := parseKey(key)
	if !signs || err != nil {
		return nil
	}
	return []string{c.id, c.secret, c.session}
}
