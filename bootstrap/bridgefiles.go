package bootstrap

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/berth-dev/berth/adapters/bridge"
	"github.com/berth-dev/berth/adapters/tokens"
)

// mostToken bounds a file with a token, so that a mistaken path cannot fill
// memory.
const mostToken = 16 << 10

// ReadTokenFile returns the token that a file holds, without white space
// around it. Errors name the file and never what it holds.
func ReadTokenFile(path string) (string, error) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return "", fmt.Errorf("the token's file: %w", err)
	case !info.Mode().IsRegular():
		return "", fmt.Errorf("%s, which should hold a token, is no regular file", path)
	case info.Size() > mostToken:
		return "", fmt.Errorf("%s, which should hold a token, is longer than %d bytes", path, mostToken)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("the token's file: %w", err)
	}
	token := strings.TrimSpace(string(data))
	if token == "" {
		return "", fmt.Errorf("%s, which should hold a token, is empty", path)
	}
	if strings.ContainsAny(token, "\r\n\t ") {
		return "", errors.New(path + ", which should hold a token, holds several words")
	}
	return token, nil
}

// bridgeCache is where bridges remember gateways; "" for nowhere.
func bridgeCache() string {
	dir, err := os.UserCacheDir()
	if err != nil {
		return ""
	}
	return filepath.Join(dir, "berth", "bridge")
}

// bridgeMemory remembers what a gateway last answered to initialize. It may be
// lost at any time.
type bridgeMemory struct{ dir, gateway string }

var _ bridge.Memory = bridgeMemory{}

// mostRemembered bounds an answer that is remembered.
const mostRemembered = 1 << 20

func (m bridgeMemory) file(params []byte) string {
	sum := sha256.Sum256(append([]byte(m.gateway+"\n"), params...))
	return filepath.Join(m.dir, hex.EncodeToString(sum[:16])+".json")
}

// Recall returns the answer to params.
func (m bridgeMemory) Recall(params []byte) ([]byte, bool) {
	if m.dir == "" {
		return nil, false
	}
	data, err := os.ReadFile(m.file(params))
	return data, err == nil && len(data) > 0
}

// Keep notes an answer.
func (m bridgeMemory) Keep(params, result []byte) {
	if m.dir == "" || len(result) > mostRemembered {
		return
	}
	if known, ok := m.Recall(params); ok && string(known) == string(result) {
		return
	}
	if os.MkdirAll(m.dir, 0o700) == nil {
		_ = tokens.WriteFile(m.file(params), result) // the next start asks again
	}
}
