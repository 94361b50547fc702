package bootstrap

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"io/fs"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/berth-dev/berth/adapters/memory"
	"github.com/berth-dev/berth/adapters/ws"
)

// tryDaemon starts a daemon of a whole configuration file, for what may fail.
func (w written) tryDaemon(text string) (*Daemon, error) {
	w.t.Helper()
	w.set(text)
	cfg, err := w.read()
	if err != nil {
		return nil, err
	}
	return StartDaemon(w.t.Context(), cfg, WithStore(keeping{memory.New(time.Now)}), WithLog(&safeBuffer{}))
}

// mode is a file's mode; 0 when it is not there.
func (w written) mode(path string) fs.FileMode {
	info, err := os.Stat(path)
	if err != nil {
		return 0
	}
	return info.Mode().Perm()
}

// TestDaemon_LeavesItsAddress: while it runs, programs of its user find it and
// a token; afterwards nothing is left, and what a dead one left is recognised.
func TestDaemon_LeavesItsAddress(t *testing.T) {
	w := written{t, t.TempDir()}
	data := filepath.Join(w.dir, "data")
	if _, _, err := FindDaemon(data); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("before: %v", err)
	}
	d, err := w.tryDaemon("[gateway]\nlisten = \"127.0.0.1:0\"\n")
	if err != nil {
		t.Fatal(err)
	}
	info, running, err := FindDaemon(data)
	if err != nil || !running || info != d.Info() || info.PID != os.Getpid() || !strings.HasPrefix(info.URL, "ws://127.0.0.1:") || !strings.HasSuffix(info.URL, "/acp") {
		t.Errorf("it left %+v, running %v, %v", info, running, err)
	}
	token, err := BridgeToken(data)
	if err != nil || !strings.HasPrefix(token, "berth_") {
		t.Errorf("it left the token %q, %v", token, err)
	}
	if runtime.GOOS != "windows" {
		for _, name := range []string{daemonFile, bridgeTokenFile, daemonLock} {
			if mode := w.mode(filepath.Join(data, name)); mode != 0o600 {
				t.Errorf("%s has the mode %v", name, mode)
			}
		}
	}
	if _, err := w.tryDaemon("[gateway]\nlisten = \"127.0.0.1:0\"\n"); err == nil || !strings.Contains(err.Error(), "runs for the data directory") || !strings.Contains(err.Error(), info.Address) {
		t.Errorf("a second one of the same data directory: %v", err)
	}
	if err := d.Stop(context.Background()); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{daemonFile, bridgeTokenFile} {
		if _, err := os.Stat(filepath.Join(data, name)); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s is left: %v", name, err)
		}
	}
	left, err := json.Marshal(info)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(data, daemonFile), left, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, running, err := FindDaemon(data); running || err != nil {
		t.Errorf("a dead one runs: %v, %v", running, err)
	}
	d, err = w.tryDaemon("[gateway]\nlisten = \"127.0.0.1:0\"\n")
	if err != nil {
		t.Fatalf("after a dead one: %v", err)
	}
	if err := d.Stop(context.Background()); err != nil {
		t.Error(err)
	}
}

// TestDaemon_Refuses: what it does not start with, and how it says so.
func TestDaemon_Refuses(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	for _, tt := range []struct {
		name, text string
		before     func(t *testing.T, w written)
		want       string
	}{
		{"an address that is taken", "listen = \"" + taken.Addr().String() + "\"\n", nil, "is in use by another program"},
		{"an address of nobody here", "listen = \"192.0.2.1:0\"\ninsecure = true\n", nil, "is no address of this machine"},
		{"a socket that nobody could connect to", "listen = \"unix:/tmp/" + strings.Repeat("x", 104) + "\"\n", nil, "has 109 letters"},
		{"others without TLS", "listen = \"0.0.0.0:0\"\n", nil, "without TLS"},
		{"others without tokens", "listen = \"0.0.0.0:0\"\ninsecure = true\nauth = \"none\"\n", nil, "\"none\" is refused"},
		{"a certificate that is not there", "listen = \"127.0.0.1:0\"\ntls_cert = \"/nowhere/c\"\ntls_key = \"/nowhere/k\"\n", nil, "gateway.tls_cert"},
		{"an empty token", "listen = \"127.0.0.1:0\"\n", func(t *testing.T, _ written) { t.Setenv(gatewayTokenVariable, "") }, "BERTH_GATEWAY_TOKEN is empty"},
		{"a placeholder as token", "listen = \"127.0.0.1:0\"\n", func(t *testing.T, _ written) { t.Setenv(gatewayTokenVariable, "undefined") }, "is a placeholder"},
		{"a short token", "listen = \"127.0.0.1:0\"\n", func(t *testing.T, _ written) { t.Setenv(gatewayTokenVariable, "hunter2-hunter2") }, "is shorter than 32"},
		{"damaged tokens", "listen = \"127.0.0.1:0\"\n", func(t *testing.T, w written) {
			if err := errors.Join(os.MkdirAll(filepath.Join(w.dir, "data"), 0o700), os.WriteFile(filepath.Join(w.dir, "data", tokensFile), []byte("{"), 0o600)); err != nil {
				t.Fatal(err)
			}
		}, "is damaged"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := written{t, t.TempDir()}
			if tt.before != nil {
				tt.before(t, w)
			}
			d, err := w.tryDaemon("[gateway]\n" + tt.text)
			if err == nil {
				_ = d.Stop(context.Background())
			}
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("it says %v, want %q", err, tt.want)
			}
			if err != nil && strings.Contains(err.Error(), "hunter2") {
				t.Error("it tells the token")
			}
			if _, running, _ := FindDaemon(filepath.Join(w.dir, "data")); running {
				t.Error("it holds the data directory")
			}
			if _, err := BridgeToken(filepath.Join(w.dir, "data")); err == nil {
				t.Error("it left a token")
			}
		})
	}
}

// TestDaemon_EnvironmentToken: a token of the environment counts besides those
// that are stored.
func TestDaemon_EnvironmentToken(t *testing.T) {
	const token = "a-token-of-the-environment-0123456789"
	t.Setenv(gatewayTokenVariable, token)
	w := written{t, t.TempDir()}
	d, log := w.daemonOf("")
	c, err := ws.Dial(t.Context(), ws.DialConfig{URL: d.Info().URL, Token: token})
	if err != nil {
		t.Fatal(err)
	}
	(&talker{t: t, frames: c}).open()
	_ = c.Close()
	<-c.Gone()
	if strings.Contains(log.String(), token) {
		t.Error("the log tells it")
	}
}

// TestDaemon_FreshToken: a token that was made a moment ago is taken at once,
// also the first one there is.
func TestDaemon_FreshToken(t *testing.T) {
	w := written{t, t.TempDir()}
	d, _ := w.daemonOf("")
	cfg, err := w.read()
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		token, made, err := CreateToken(cfg, TokenInfo{})
		if err != nil {
			t.Fatal(err)
		}
		c, err := ws.Dial(t.Context(), ws.DialConfig{URL: d.Info().URL, Token: token})
		if err != nil {
			t.Fatalf("%s: %v", made.Name, err)
		}
		(&talker{t: t, frames: c}).open()
		_ = c.Close()
		<-c.Gone()
	}
}

// TestDaemon_Auth: without tokens a client of this machine needs none, and a
// page of another site stays out.
func TestDaemon_Auth(t *testing.T) {
	w := written{t, t.TempDir()}
	d, _ := w.daemonOf("auth = \"none\"\n")
	c, err := ws.Dial(t.Context(), ws.DialConfig{URL: d.Info().URL})
	if err != nil {
		t.Fatal(err)
	}
	(&talker{t: t, frames: c}).open()
	_ = c.Close()
	<-c.Gone()
	var refused *ws.DialError
	if _, err := ws.Dial(t.Context(), ws.DialConfig{URL: d.Info().URL, Header: http.Header{"Origin": {"https://evil.example"}}}); !errors.As(err, &refused) || refused.Status != http.StatusForbidden {
		t.Errorf("a page of another site: %v", err)
	}
}

// TestDaemon_FirstMessage: a connection begins with initialize.
func TestDaemon_FirstMessage(t *testing.T) {
	w := written{t, t.TempDir()}
	d, _ := w.daemonOf("")
	const initialize = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}`
	for _, tt := range []struct {
		name, send string
		code       int    // closed with; 0: answered
		want       string // in the answer
	}{
		{"initialize", initialize, 0, `"protocolVersion":1`},
		{"initialize of ZeroClaw", `{"jsonrpc":"2.0","id":1,"method":"initialize"}`, 0, `"protocolVersion":1`},
		{"initialize over several lines", strings.ReplaceAll(initialize, ",", ",\n"), 0, `"protocolVersion":1`},
		{"a batch", "[" + initialize + "]", 0, "-32600"},
		{"another method", `{"jsonrpc":"2.0","id":1,"method":"session/new","params":{}}`, ws.CloseProtocol, ""},
		{"a notification", `{"jsonrpc":"2.0","method":"session/cancel","params":{}}`, ws.CloseProtocol, ""},
		{"an answer", `{"jsonrpc":"2.0","id":1,"result":{}}`, ws.CloseProtocol, ""},
		{"no JSON", "hello", ws.CloseProtocol, ""},
		{"nothing", "", ws.CloseProtocol, ""},
		{"a method in other letters", strings.ReplaceAll(initialize, `"method"`, `"Method"`), ws.CloseProtocol, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c, err := ws.Dial(t.Context(), ws.DialConfig{URL: d.Info().URL, Token: w.token()})
			if err != nil {
				t.Fatal(err)
			}
			defer func() {
				_ = c.Close()
				<-c.Gone()
			}()
			if err := c.Write([]byte(tt.send)); err != nil {
				t.Fatal(err)
			}
			answer, err := c.Read()
			var closed *ws.ClosedError
			if tt.code != 0 && (!errors.As(err, &closed) || closed.Code != tt.code) {
				t.Errorf("answered %s, %v", answer, err)
			}
			if tt.code == 0 && !strings.Contains(string(answer), tt.want) {
				t.Errorf("answered %s, %v; want %q", answer, err, tt.want)
			}
		})
	}
}

// TestDaemon_UnixSocket: its owner alone can reach it; what a dead daemon left
// is replaced, anything else stays.
func TestDaemon_UnixSocket(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("modes of files say nothing here")
	}
	w := written{t, t.TempDir()}
	short, err := os.MkdirTemp("", "b") // the path of a socket is short
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(short)
	path := filepath.Join(short, "run", "b.sock")
	text := "[gateway]\nlisten = \"unix:" + path + "\"\n"
	d, err := w.tryDaemon(text)
	if err != nil {
		t.Fatal(err)
	}
	if got := d.Info(); got.Address != "unix:"+path || got.URL != "unix:"+path {
		t.Errorf("it left %+v", got)
	}
	if w.mode(path) != 0o600 || w.mode(filepath.Dir(path)) != 0o700 {
		t.Errorf("modes: %v in %v", w.mode(path), w.mode(filepath.Dir(path)))
	}
	k := w.dial(d)
	_ = k.frames.Close()
	other := written{t, t.TempDir()}
	if _, err := other.tryDaemon(text); err == nil || !strings.Contains(err.Error(), "in use by another program") {
		t.Errorf("another daemon on the socket: %v", err)
	}
	if entries, err := os.ReadDir(filepath.Dir(path)); err != nil || len(entries) != 1 {
		t.Errorf("beside the socket lie %v, %v", entries, err)
	}
	if err := d.Stop(context.Background()); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the socket is left: %v", err)
	}

	dead, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	dead.SetUnlinkOnClose(false)
	dead.Close()
	if d, err = w.tryDaemon(text); err != nil {
		t.Fatalf("over a dead socket: %v", err)
	}
	if err := d.Stop(context.Background()); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := w.tryDaemon(text); err == nil || !strings.Contains(err.Error(), "is no socket") {
		t.Errorf("over a file: %v", err)
	}
	if data, err := os.ReadFile(path); string(data) != "mine" {
		t.Errorf("the file: %q, %v", data, err)
	}
}

// certificate writes one that nobody vouches for.
func certificate(t *testing.T, dir string) (cert, key string) {
	t.Helper()
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), DNSNames: []string{"agents.example"}}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &k.PublicKey, k)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(k)
	if err != nil {
		t.Fatal(err)
	}
	cert, key = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	err = errors.Join(
		os.WriteFile(cert, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600),
		os.WriteFile(key, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}), 0o600),
	)
	if err != nil {
		t.Fatal(err)
	}
	return filepath.ToSlash(cert), filepath.ToSlash(key)
}

// TestDaemon_TLS: version 1.2 at least, and the certificate is told to
// programs of the same user.
func TestDaemon_TLS(t *testing.T) {
	w := written{t, t.TempDir()}
	cert, key := certificate(t, w.dir)
	d, _ := w.daemonOf("tls_cert = \"" + cert + "\"\ntls_key = \"" + key + "\"\n")
	info := d.Info()
	if !strings.HasPrefix(info.URL, "wss://") || len(info.Fingerprint) != 64 {
		t.Errorf("it left %+v", info)
	}
	c, err := ws.Dial(t.Context(), ws.DialConfig{URL: info.URL, Token: w.token(), Fingerprint: info.Fingerprint})
	if err != nil {
		t.Fatal(err)
	}
	(&talker{t: t, frames: c}).open()
	_ = c.Close()
	<-c.Gone()
	for version, want := range map[uint16]bool{tls.VersionTLS11: false, tls.VersionTLS12: true, tls.VersionTLS13: true} {
		conn, err := tls.Dial("tcp", info.Address, &tls.Config{InsecureSkipVerify: true, MinVersion: version, MaxVersion: version})
		if (err == nil) != want {
			t.Errorf("%s: %v", tls.VersionName(version), err)
		}
		if err == nil {
			conn.Close()
		}
	}
	plain, err := http.Get("http://" + info.Address + "/healthz")
	if err != nil {
		t.Fatal(err)
	}
	defer plain.Body.Close()
	if plain.StatusCode != http.StatusBadRequest {
		t.Errorf("without TLS: %d", plain.StatusCode)
	}
}

// TestDaemon_ExposedReloads: a token that names no directories works in the
// workspaces of the agents that there are now.
func TestDaemon_ExposedReloads(t *testing.T) {
	w := written{t, t.TempDir()}
	gateway := "[gateway]\nlisten = \"0.0.0.0:0\"\ninsecure = true\n"
	w.set(gateway + "[agents.a]\nmodel = \"offline/offline\"\n")
	cfg, err := w.read()
	if err != nil {
		t.Fatal(err)
	}
	token, _, err := CreateToken(cfg, TokenInfo{Name: "free"})
	if err != nil {
		t.Fatal(err)
	}
	d, err := StartDaemon(t.Context(), cfg, WithStore(keeping{memory.New(time.Now)}), WithLog(&safeBuffer{}), WithReload(w.read))
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := d.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	}()
	before, after := cfg.AgentWorkspace("a"), t.TempDir()
	if err := os.MkdirAll(before, 0o700); err != nil {
		t.Fatal(err)
	}
	opens := func(dir string) bool {
		t.Helper()
		c, err := ws.Dial(t.Context(), ws.DialConfig{URL: d.Info().URL, Token: token})
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			_ = c.Close()
			<-c.Gone()
		}()
		k := &talker{t: t, frames: c}
		k.ask("initialize", `{"protocolVersion":1}`)
		return strings.Contains(k.ask("session/new", `{"cwd":"`+filepath.ToSlash(dir)+`","mcpServers":[],"_meta":{"berth":{"agent":"a"}}}`), `"sessionId"`)
	}
	if !opens(before) || opens(after) {
		t.Error("it does not work in the workspace alone")
	}
	w.set(gateway + "[agents.a]\nmodel = \"offline/offline\"\nworkspace = \"" + filepath.ToSlash(after) + "\"\n")
	if err := d.Reload(); err != nil {
		t.Fatal(err)
	}
	if opens(before) || !opens(after) {
		t.Error("it does not work in the new workspace alone")
	}
}

// TestDaemon_Exposed: where others can reach the gateway, a token that names no
// directories works in the agents' workspaces alone.
func TestDaemon_Exposed(t *testing.T) {
	w := written{t, t.TempDir()}
	w.set("[gateway]\nlisten = \"0.0.0.0:0\"\ninsecure = true\n[agents.a]\nmodel = \"offline/offline\"\n")
	cfg, err := w.read()
	if err != nil {
		t.Fatal(err)
	}
	rooted, elsewhere := t.TempDir(), t.TempDir()
	free, _, err := CreateToken(cfg, TokenInfo{Name: "free"})
	if err != nil {
		t.Fatal(err)
	}
	bound, _, err := CreateToken(cfg, TokenInfo{Name: "bound", Roots: []string{rooted}})
	if err != nil {
		t.Fatal(err)
	}
	log := &safeBuffer{}
	d, err := StartDaemon(t.Context(), cfg, WithStore(keeping{memory.New(time.Now)}), WithLog(log))
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := d.Stop(context.Background()); err != nil {
			t.Error(err)
		}
		if !strings.Contains(log.String(), "the token free names no directories") {
			t.Errorf("the operator was told %s", log.String())
		}
	}()
	workspace := cfg.AgentWorkspace("a")
	for _, tt := range []struct {
		name, token, cwd string
		want             bool
	}{
		{"no directories, anywhere", free, rooted, false},
		{"no directories, the workspace", free, workspace, true},
		{"no directories, the workspace by its other name", free, ".", true},
		{"a directory, that one", bound, rooted, true},
		{"a directory, another one", bound, elsewhere, false},
		{"for this machine, anywhere", w.token(), rooted, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if err := os.MkdirAll(workspace, 0o700); err != nil {
				t.Fatal(err)
			}
			c, err := ws.Dial(t.Context(), ws.DialConfig{URL: d.Info().URL, Token: tt.token})
			if err != nil {
				t.Fatal(err)
			}
			defer func() {
				_ = c.Close()
				<-c.Gone()
			}()
			k := &talker{t: t, frames: c}
			k.ask("initialize", `{"protocolVersion":1}`)
			got := k.ask("session/new", `{"cwd":"`+filepath.ToSlash(tt.cwd)+`","mcpServers":[]}`)
			if opened := strings.Contains(got, `"sessionId"`); opened != tt.want {
				t.Errorf("answered %s", got)
			}
		})
	}
}

// TestDaemon_Paths: what is answered without a token, and what is not there.
func TestDaemon_Paths(t *testing.T) {
	w := written{t, t.TempDir()}
	d, _ := w.daemonOf("")
	for _, tt := range []struct {
		method, path string
		want         int
	}{
		{"GET", "/healthz", 200}, {"HEAD", "/healthz", 200}, {"POST", "/healthz", 405}, {"GET", "/readyz", 200},
		{"GET", "/healthz/", 404}, {"GET", "/acp/", 404}, {"GET", "//acp", 404}, {"GET", "/x/../acp?token=canary", 404}, {"GET", "/acp", 401},
		{"POST", "/acp", 401}, {"DELETE", "/acp", 401}, {"PUT", "/acp", 405}, {"GET", "/metrics", 401}, {"POST", "/metrics", 405}, {"GET", "/nothing", 404}, {"DELETE", "/", 405},
	} {
		conn, err := net.Dial("tcp", d.Info().Address)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = conn.Write([]byte(tt.method + " " + tt.path + " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"))
		answer := make([]byte, 4096)
		n, _ := conn.Read(answer)
		conn.Close()
		if got := string(answer[:n]); !strings.HasPrefix(got, "HTTP/1.1 "+strconv.Itoa(tt.want)+" ") || strings.Contains(got, "canary") {
			t.Errorf("%s %s: %q, want %d", tt.method, tt.path, got, tt.want)
		} else if !strings.Contains(got, "frame-ancestors 'none'") || !strings.Contains(got, "nosniff") {
			t.Errorf("%s %s may be framed or guessed at: %q", tt.method, tt.path, got)
		}
	}
}
