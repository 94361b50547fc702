package openclaw

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"strconv"
	"strings"
)

// Identity is the key by which a Gateway knows this device again, with the
// tokens that Gateways have given it. It is a secret.
type Identity struct {
	key    ed25519.PrivateKey
	tokens map[string]deviceToken // by Gateway
}

// deviceToken is what a Gateway gave a device that it knows: a credential for
// these scopes.
type deviceToken struct {
	Token  string   `json:"token"`
	Scopes []string `json:"scopes,omitempty"`
}

// NewIdentity makes an identity that no Gateway knows yet.
func NewIdentity() (*Identity, error) {
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, err
	}
	return &Identity{key: key, tokens: map[string]deviceToken{}}, nil
}

// storedIdentity is an identity as it is kept.
type storedIdentity struct {
	Version int                    `json:"version"`
	Seed    string                 `json:"seed"` // 32 bytes in base64
	Tokens  map[string]deviceToken `json:"tokens,omitempty"`
}

// ParseIdentity reads what Marshal wrote. Errors never repeat it.
func ParseIdentity(data []byte) (*Identity, error) {
	var s storedIdentity
	seed := []byte(nil)
	err := json.Unmarshal(data, &s)
	if err == nil {
		seed, err = base64.StdEncoding.DecodeString(s.Seed)
	}
	if err != nil || len(seed) != ed25519.SeedSize || s.Version != 1 {
		return nil, errors.New("this is no device identity; remove the file to get a new one, which gateways will not know")
	}
	if s.Tokens == nil {
		s.Tokens = map[string]deviceToken{}
	}
	return &Identity{key: ed25519.NewKeyFromSeed(seed), tokens: s.Tokens}, nil
}

// Marshal writes the identity down, secrets and all.
func (i *Identity) Marshal() ([]byte, error) {
	return json.Marshal(storedIdentity{
		Version: 1, Seed: base64.StdEncoding.EncodeToString(i.key.Seed()), Tokens: i.tokens,
	})
}

// ID is the device's name: the SHA-256 of its public key, in hexadecimal.
func (i *Identity) ID() string {
	sum := sha256.Sum256(i.public())
	return hex.EncodeToString(sum[:])
}

// String says which identity it is and keeps the secret.
func (i *Identity) String() string { return "device " + i.ID()[:12] }

// GoString is String, so that no verb prints the key.
func (i *Identity) GoString() string { return i.String() }

func (i *Identity) public() ed25519.PublicKey { return i.key.Public().(ed25519.PublicKey) }

// proof is the member device of a connect request.
type proof struct {
	ID        string `json:"id"`
	PublicKey string `json:"publicKey"`
	Signature string `json:"signature"`
	SignedAt  int64  `json:"signedAt"`
	Nonce     string `json:"nonce"`
}

// prove signs what a connect request says, with the Gateway's challenge. token
// is the credential that the request shows as a token, "" for none.
func (i *Identity) prove(c connectParams, ch challenge, token string) *proof {
	said := strings.Join([]string{
		"v3", i.ID(), c.Client.ID, c.Client.Mode, c.Role, strings.Join(c.Scopes, ","),
		strconv.FormatInt(ch.at, 10), token, ch.nonce, lowerASCII(c.Client.Platform), "",
	}, "|")
	return &proof{
		ID: i.ID(), PublicKey: base64.RawURLEncoding.EncodeToString(i.public()),
		Signature: base64.RawURLEncoding.EncodeToString(ed25519.Sign(i.key, []byte(said))),
		SignedAt:  ch.at, Nonce: ch.nonce,
	}
}

// lowerASCII is how device metadata goes into what is signed.
func lowerASCII(s string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'A' && r <= 'Z' {
			return r + 'a' - 'A'
		}
		return r
	}, strings.TrimSpace(s))
}

// token is what the Gateway of that name gave this device, "" for nothing.
func (i *Identity) token(gateway string) string {
	if i == nil {
		return ""
	}
	return i.tokens[gateway].Token
}

// Grant notes a token that a Gateway gave this device, for these scopes.
func (i *Identity) Grant(gateway, token string, scopes []string) {
	i.tokens[gateway] = deviceToken{token, scopes}
}

// Adopt takes over what another copy of the same identity has of all Gateways
// but one.
func (i *Identity) Adopt(o *Identity, but string) {
	for gateway, t := range o.tokens {
		if gateway != but {
			i.tokens[gateway] = t
		}
	}
}
