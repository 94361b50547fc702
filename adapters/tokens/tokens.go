// Package tokens keeps the tokens of a gateway: in one file, as SHA-256 alone.
// A File is what commands change; a Set is what a running gateway looks tokens
// up in, and follows the file.
package tokens

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/berth-dev/berth/core/domain"
)

// Prefix begins every token that is made here, so that it can be recognised
// where it should not be.
const Prefix = "berth_"

// Token is what is known of a token, which is not the token itself.
type Token struct {
	Name        string
	Hash        [sha256.Size]byte
	Created     time.Time
	LastUsed    time.Time    // to the hour; zero when never
	Agents      []string     // aliases it may use; nil for all
	Level       domain.Level // ceiling; "" for none
	Roots       []string     // absolute; nil for any
	Observe     bool         // may list and watch, nothing else
	MCPCommands bool         // may name MCP servers that are commands
	Local       bool         // counts on this machine alone; never stored
}

// New makes a token of 256 bits.
func New() string {
	var b [32]byte
	_, _ = rand.Read(b[:]) // never fails
	return Prefix + base64.RawURLEncoding.EncodeToString(b[:])
}

// Hash is what is kept of a token.
func Hash(token string) [sha256.Size]byte { return sha256.Sum256([]byte(token)) }

// shortest is the least length of a token that somebody chose.
const shortest = 32

// Weak says why a token that somebody chose is refused, or "". It does not
// repeat it.
func Weak(token string) string {
	seen := map[rune]bool{}
	for _, r := range token {
		if r <= ' ' || r > '~' {
			return "holds a blank or a letter that no header can carry"
		}
		seen[r] = true
	}
	switch word := strings.ToLower(token); {
	case token == "":
		return "is empty"
	case slices.Contains([]string{"undefined", "null", "changeme", "none", "token", "secret", "password"}, word):
		return "is a placeholder"
	case len(token) < shortest:
		return fmt.Sprintf("is shorter than %d characters", shortest)
	case len(seen) < 8:
		return "is easy to guess"
	}
	return ""
}

// CheckName says why a name is refused, or nil.
func CheckName(name string) error {
	ok := name != "" && len(name) <= 63
	for i, r := range name {
		letter := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9'
		ok = ok && (letter || i > 0 && strings.ContainsRune("-_.@", r))
	}
	if !ok {
		return domain.Errorf(domain.InvalidArgument, "%q is not a name: use up to 63 letters, digits, and - _ . @ behind the first", name)
	}
	return nil
}
