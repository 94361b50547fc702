package bootstrap

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/berth-dev/berth/bootstrap/internal/config"
)

// healthLimit bounds the question.
const healthLimit = 5 * time.Second

// CheckDaemon asks the daemon of a data directory whether it is ready, for
// service managers and containers. It asks over the address that the daemon
// left, so it needs no setting and no token.
func CheckDaemon(ctx context.Context, cfg *Config) error {
	info, running, err := FindDaemon(cfg.DataDir)
	if err != nil || !running {
		return fmt.Errorf("no daemon runs for the data directory %s", cfg.DataDir)
	}
	ctx, cancel := context.WithTimeout(ctx, healthLimit)
	defer cancel()
	status, text, err := readiness(ctx, info)
	switch {
	case err != nil:
		return fmt.Errorf("the daemon (process %d) does not answer on %s: %w", info.PID, info.Address, err)
	case status != http.StatusOK:
		return fmt.Errorf("the daemon (process %d) on %s says: %s", info.PID, info.Address, text)
	}
	return nil
}

// LoadDataDir is LoadConfig for what needs the data directory alone, such as
// CheckDaemon and RevokeToken. A file that is being edited, or is broken, says
// nothing about a daemon that goes on with what it has read; then broken is what
// is wrong with it, and the directory is that of the flags, the environment, or
// the file if it still says.
func LoadDataDir(o LoadOptions) (cfg *Config, broken, err error) {
	cfg, broken = LoadConfig(o)
	if broken == nil {
		return cfg, nil, nil
	}
	if cfg, err = config.LoadDataDir(hosted(o)); err != nil {
		return nil, nil, broken
	}
	return cfg, broken, nil
}

// readiness asks /readyz.
func readiness(ctx context.Context, info DaemonInfo) (status int, text string, err error) {
	transport := &http.Transport{Proxy: nil, DisableKeepAlives: true}
	address := "http://localhost/readyz"
	if path, ok := strings.CutPrefix(info.Address, "unix:"); ok {
		transport.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", path)
		}
	} else {
		u, err := url.Parse(info.URL)
		if err != nil {
			return 0, "", err
		}
		scheme := "http"
		if u.Scheme == "wss" {
			scheme, transport.TLSClientConfig = "https", pinned(info.Fingerprint)
		}
		address = scheme + "://" + u.Host + "/readyz"
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return 0, "", err
	}
	resp, err := (&http.Client{Transport: transport}).Do(req)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, 1<<10))
	return resp.StatusCode, strings.TrimSpace(string(body)), err
}

// pinned trusts the certificate of that fingerprint and no other, whatever name
// it was made for: the address is a loopback one.
func pinned(want string) *tls.Config {
	return &tls.Config{
		MinVersion:         tls.VersionTLS12,
		InsecureSkipVerify: true, //nolint:gosec // VerifyPeerCertificate is stricter
		VerifyPeerCertificate: func(raw [][]byte, _ [][]*x509.Certificate) error {
			if len(raw) == 0 || fingerprint(raw[0]) != want {
				return errors.New("it shows another certificate than the daemon's")
			}
			return nil
		},
	}
}
