package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// host is one daemon under measurement.
type host struct {
	bin    string
	dir    string // of everything it has
	cmd    *exec.Cmd
	log    string
	url    string // of /acp, for a WebSocket
	tokens []string

	mu     sync.Mutex
	shared []*http.Client
}

// perToken is how many sessions are begun with one token, which may begin 120
// at once and few after that.
const perToken = 50

// limits are what a host is configured with.
type limits struct {
	connections int
	sessions    int
	endpoint    string
}

// startHost makes settings and tokens in a directory of their own, and starts
// a daemon.
func startHost(ctx context.Context, bin, dir string, l limits) (*host, error) {
	h := &host{bin: bin, dir: dir, log: filepath.Join(dir, "log")}
	if err := os.MkdirAll(filepath.Join(dir, "config"), 0o700); err != nil {
		return nil, err
	}
	config := fmt.Sprintf(`version = 1

[acp]
max_sessions = %d

[gateway]
listen = "127.0.0.1:0"
max_connections = %d
max_connections_per_token = %d
max_sessions = %d
detach_grace_secs = 20

[log]
format = "json"
file = %q

[providers.bench]
type = "openai-compatible"
base_url = %q
api_key = "unused"

[agents.main]
model = "bench/m"
`, l.sessions, l.connections, l.connections, l.sessions, h.log, l.endpoint)
	if err := os.WriteFile(filepath.Join(dir, "config", "config.toml"), []byte(config), 0o600); err != nil {
		return nil, err
	}
	for i := range 2 + l.sessions/perToken {
		out, err := h.command(ctx, "token", "create", "--name", "bench-"+strconv.Itoa(i)).Output()
		if err != nil {
			return nil, fmt.Errorf("make a token: %w", err)
		}
		h.tokens = append(h.tokens, strings.TrimSpace(string(out)))
	}
	h.cmd = h.command(ctx, "daemon")
	h.cmd.Stderr = os.Stderr
	if err := h.cmd.Start(); err != nil {
		return nil, err
	}
	if err := h.find(); err != nil {
		return nil, errors.Join(err, h.stop())
	}
	return h, nil
}

// command is a command of Berth with this host's directories.
func (h *host) command(ctx context.Context, args ...string) *exec.Cmd {
	args = append(args, "--config-dir", filepath.Join(h.dir, "config"), "--data-dir", filepath.Join(h.dir, "data"))
	cmd := exec.CommandContext(ctx, h.bin, args...)
	cmd.Env, cmd.Dir = h.environ(), h.dir
	return cmd
}

func (h *host) environ() []string { return []string{"PATH=" + os.Getenv("PATH"), "HOME=" + h.dir} }

// find waits for the address that the daemon leaves.
func (h *host) find() error {
	until := time.Now().Add(patience)
	for {
		var info struct{ URL string }
		raw, err := os.ReadFile(filepath.Join(h.dir, "data", "daemon.json"))
		if err == nil {
			err = json.Unmarshal(raw, &info)
		}
		if err == nil {
			h.url = info.URL
			return nil
		}
		if time.Now().After(until) {
			return fmt.Errorf("the daemon did not start; see %s: %w", h.log, err)
		}
		time.Sleep(10 * time.Millisecond) // nothing tells when it is there
	}
}

// stop ends the daemon as a service manager does.
func (h *host) stop() error {
	if err := h.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	if err := h.cmd.Wait(); err != nil {
		return fmt.Errorf("the daemon: %w; its log is %s", err, h.log)
	}
	return nil
}

func (h *host) usage() (usage, error) { return usageOf(h.cmd.Process.Pid) }

func (h *host) httpURL() string { return "http" + strings.TrimPrefix(h.url, "ws") }

// address is where the daemon listens.
func (h *host) address() string {
	return strings.TrimSuffix(strings.TrimPrefix(h.url, "ws://"), "/acp")
}

// tokenFile holds the token that the daemon leaves for bridges.
func (h *host) tokenFile() string { return filepath.Join(h.dir, "data", "bridge-token") }

// token is the one of a client.
func (h *host) token(client int) string { return h.tokens[client%len(h.tokens)] }

// The ways to a daemon.
const (
	overSocket = "WebSocket"
	overHTTP   = "HTTP/1.1"
	overHTTP2  = "HTTP/2"
	// overShared is HTTP/2 as behind a proxy: many clients on one network
	// connection.
	overShared = "HTTP/2 behind a proxy"
)

// behindProxy is how many clients share a network connection.
const behindProxy = 100

// way is a dialer of a kind, for a client.
func (h *host) way(kind string, client int) dialer {
	if kind == overSocket {
		return dialSocket(h.url, h.token(client))
	}
	network := newNetwork(kind != overHTTP)
	if kind == overShared {
		h.mu.Lock()
		defer h.mu.Unlock()
		for len(h.shared) <= client/behindProxy {
			h.shared = append(h.shared, network)
		}
		network = h.shared[client/behindProxy]
	}
	return dialStreams(h.httpURL(), h.token(client), network)
}

// page are the values of a scrape, by name and labels.
type page map[string]float64

// scrape reads /metrics over a network connection of its own, which is closed.
func (h *host) scrape(ctx context.Context) (page, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(h.httpURL(), "/acp")+"/metrics", nil)
	if err != nil {
		return nil, err
	}
	r.Header.Set("Authorization", "Bearer "+h.tokens[0])
	r.Close = true
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("/metrics answered %s", answer.Status)
	}
	p := page{}
	for in := bufio.NewScanner(answer.Body); in.Scan(); {
		line := in.Text()
		i := strings.LastIndexByte(line, ' ')
		if strings.HasPrefix(line, "#") || i < 0 {
			continue
		}
		if v, err := strconv.ParseFloat(line[i+1:], 64); err == nil {
			p[line[:i]] = v
		}
	}
	return p, nil
}

// sum adds up the series of a family whose labels hold all the given texts.
func (p page) sum(name string, with ...string) (total float64) {
next:
	for series, v := range p {
		family, labels, _ := strings.Cut(series, "{")
		if family != name {
			continue
		}
		for _, text := range with {
			if !strings.Contains(labels, text) {
				continue next
			}
		}
		total += v
	}
	return total
}

// errorsInLog counts the lines of the log that tell of an error, and returns
// the first.
func (h *host) errorsInLog() (n int, first string, err error) {
	raw, err := os.ReadFile(h.log)
	if err != nil {
		return 0, "", err
	}
	for line := range bytes.Lines(raw) {
		if bytes.Contains(line, []byte(`"level":"error"`)) {
			if n++; n == 1 {
				first = string(bytes.TrimSpace(line))
			}
		}
	}
	return n, first, nil
}
