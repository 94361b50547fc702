package bootstrap

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/berth-dev/berth/adapters/tokens"
)

// Names of what a daemon leaves in its data directory.
const (
	daemonFile      = "daemon.json"
	daemonLock      = "daemon.lock"
	bridgeTokenFile = "bridge-token"
	tokensFile      = "tokens.json"
)

// DaemonInfo is what a running daemon says about itself to other programs of
// its user.
type DaemonInfo struct {
	PID     int       `json:"pid"`
	Address string    `json:"address"` // "host:port" or "unix:/path"
	URL     string    `json:"url"`     // of /acp, for a WebSocket; "unix:/path" for a socket
	Version string    `json:"version"`
	Started time.Time `json:"started"`
	// Fingerprint is the SHA-256 of its certificate in hexadecimal; "" without TLS.
	Fingerprint string `json:"tls_fingerprint,omitempty"`
}

// FindDaemon returns what the daemon of a data directory says, and whether it
// runs. The error is fs.ErrNotExist when there was none, or it ended in an
// orderly way. What a dead one left behind is found and told with running
// false.
func FindDaemon(dataDir string) (info DaemonInfo, running bool, err error) {
	data, err := os.ReadFile(filepath.Join(dataDir, daemonFile))
	if err != nil {
		return DaemonInfo{}, false, err
	}
	if err := json.Unmarshal(data, &info); err != nil {
		return DaemonInfo{}, false, fmt.Errorf("%s is damaged: %w", filepath.Join(dataDir, daemonFile), err)
	}
	f, err := os.OpenFile(filepath.Join(dataDir, daemonLock), os.O_RDWR, 0)
	if err != nil {
		return info, false, nil //nolint:nilerr // without its lock nobody lives there
	}
	defer f.Close()
	free, err := tryLock(f)
	return info, !free && err == nil, nil
}

// BridgeToken returns the token that the daemon of a data directory left for
// programs of its user. The error is fs.ErrNotExist when there is none.
func BridgeToken(dataDir string) (string, error) {
	data, err := os.ReadFile(filepath.Join(dataDir, bridgeTokenFile))
	return strings.TrimSpace(string(data)), err
}

// claim makes a data directory this daemon's. The error says who has it.
func claim(cfg *Config) (release func() error, err error) {
	if err := cfg.PrepareDataDir(); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(filepath.Join(cfg.DataDir, daemonLock), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("data directory: %w; give this user the right to write there, or choose another with --data-dir", err)
	}
	mine, err := tryLock(f)
	switch {
	case err != nil:
		_ = f.Close()
		return nil, fmt.Errorf("lock the data directory: %w", err)
	case !mine:
		_ = f.Close()
		who := "a daemon"
		if info, _, err := FindDaemon(cfg.DataDir); err == nil {
			who = fmt.Sprintf("a daemon (process %d, on %s)", info.PID, info.Address)
		}
		return nil, fmt.Errorf("%s runs for the data directory %s already; stop it, or choose another with --data-dir", who, cfg.DataDir)
	}
	return f.Close, nil
}

// announce leaves the address and the bridge's token; withdraw removes both.
func announce(dataDir string, info DaemonInfo, token string) error {
	data, err := json.MarshalIndent(info, "", "  ")
	if err != nil {
		return err
	}
	if err := tokens.WriteFile(filepath.Join(dataDir, bridgeTokenFile), []byte(token+"\n")); err != nil {
		return fmt.Errorf("leave the bridge's token: %w", err)
	}
	if err := tokens.WriteFile(filepath.Join(dataDir, daemonFile), append(data, '\n')); err != nil {
		return fmt.Errorf("leave the address: %w", err)
	}
	return nil
}

func withdraw(dataDir string) error {
	var errs []error
	for _, name := range []string{daemonFile, bridgeTokenFile} {
		if err := os.Remove(filepath.Join(dataDir, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// fingerprint names a certificate.
func fingerprint(der []byte) string {
	sum := sha256.Sum256(der)
	return hex.EncodeToString(sum[:])
}
