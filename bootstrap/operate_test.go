package bootstrap

import (
	"context"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
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

// daemonOf starts a daemon of a file on a free port.
func (w written) daemonOf(text string, opts ...Option) (*Daemon, *safeBuffer) {
	w.t.Helper()
	log := &safeBuffer{}
	w.set("[gateway]\nlisten = \"127.0.0.1:0\"\n" + text)
	cfg, err := w.read()
	if err != nil {
		w.t.Fatal(err)
	}
	opts = append([]Option{WithStore(keeping{memory.New(time.Now)}), WithLog(log), WithReload(w.read)}, opts...)
	d, err := StartDaemon(w.t.Context(), cfg, opts...)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() {
		if err := d.Stop(context.Background()); err != nil {
			w.t.Errorf("stop: %v", err)
		}
	})
	return d, log
}

// token is the one for programs of the same user.
func (w written) token() string {
	w.t.Helper()
	data, err := os.ReadFile(filepath.Join(w.dir, "data", "bridge-token"))
	if err != nil {
		w.t.Fatal(err)
	}
	return strings.TrimSpace(string(data))
}

// get asks a daemon over HTTP.
func (w written) get(d *Daemon, path, token string) (int, string) {
	w.t.Helper()
	req, err := http.NewRequestWithContext(w.t.Context(), http.MethodGet, "http://"+d.Info().Address+path, nil)
	if err != nil {
		w.t.Fatal(err)
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		w.t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		w.t.Fatal(err)
	}
	return resp.StatusCode, string(body)
}

// check asks as "berth daemon --check" does.
func (w written) check() error {
	w.t.Helper()
	cfg, err := w.read()
	if err != nil {
		w.t.Fatal(err)
	}
	return CheckDaemon(w.t.Context(), cfg)
}

// dial connects a client over WebSocket and opens a session.
func (w written) dial(d *Daemon) *talker {
	w.t.Helper()
	c, err := ws.Dial(w.t.Context(), ws.DialConfig{URL: d.Info().URL, Token: w.token()})
	if err != nil {
		w.t.Fatal(err)
	}
	k := &talker{t: w.t, frames: c}
	k.open()
	return k
}

// A scrape needs a token and shows what was done; drain and reload are seen.
func TestDaemon_Operations(t *testing.T) {
	w := written{t, t.TempDir()}
	text := w.scripts(map[string]string{"s": "--- next always\ntext \"begun \"\ndelay 300ms\ntext \"and finished\"\nusage input=7 output=3 cost=0.02\n"}) +
		"[agents.a]\nmodel = \"s/m\"\n"
	d, log := w.daemonOf(text)
	if status, body := w.get(d, "/metrics", ""); status != http.StatusUnauthorized || strings.Contains(body, "berth_") {
		t.Errorf("without a token: %d %s", status, body)
	}
	if status, body := w.get(d, "/readyz", ""); status != http.StatusOK {
		t.Errorf("readyz: %d %s", status, body)
	}
	if err := w.check(); err != nil {
		t.Errorf("check: %v", err)
	}
	k := w.dial(d)
	if got := k.answer(k.prompt("go")); !strings.Contains(got, "end_turn") {
		t.Fatalf("a turn ended with %s", got)
	}
	w.set("[gateway]\nlisten = \"127.0.0.1:0\"\n" + text + "title = \"Renamed\"\n")
	if err := d.Reload(); err != nil {
		t.Fatal(err)
	}
	status, body := w.get(d, "/metrics", w.token())
	for _, want := range []string{
		`berth_turns_total{agent="a",outcome="end_turn"} 1`, `berth_model_tokens_total{model="s/m",type="input"} 7`, `berth_model_cost_dollars_total{agent="a",model="s/m"} 0.02`,
		`berth_sessions{state="idle"} 1`, `berth_gateway_connections{transport="websocket"} 1`, `berth_gateway_draining 0`, `berth_config_reloads_total{outcome="applied"} 1`,
		`berth_store_append_duration_seconds_count`, `berth_gateway_refused_total{status="401"`,
	} {
		if status != http.StatusOK || !strings.Contains(body, want) {
			t.Errorf("the scrape (%d) lacks %s:\n%s", status, want, body)
		}
	}

	running := k.prompt("once more")
	k.until("begun ")
	drained := make(chan error, 1)
	go func() { drained <- d.Drain(t.Context()) }()
	for ready := http.StatusOK; ready == http.StatusOK; {
		ready, _ = w.get(d, "/readyz", "")
	}
	if err := w.check(); err == nil || !strings.Contains(err.Error(), "says: not ready") {
		t.Errorf("check in the drain: %v", err)
	}
	if status, _ := w.get(d, "/healthz", ""); status != http.StatusOK {
		t.Errorf("healthz in the drain: %d", status)
	}
	if status, body := w.get(d, "/metrics", w.token()); status != http.StatusOK || !strings.Contains(body, "berth_gateway_draining 1") {
		t.Errorf("the scrape in the drain: %d", status)
	}
	if _, err := ws.Dial(t.Context(), ws.DialConfig{URL: d.Info().URL, Token: w.token()}); err == nil || !strings.Contains(err.Error(), "503") {
		t.Errorf("a new connection in the drain: %v", err)
	}
	if got := k.answer(running); !strings.Contains(got, "and finished") || !strings.Contains(got, "end_turn") {
		t.Errorf("the turn that ran ended with %s", got)
	}
	if err := <-drained; err != nil {
		t.Error(err)
	}
	if err := d.Stop(context.Background()); err != nil {
		t.Error(err)
	}
	if err := w.check(); err == nil || !strings.Contains(err.Error(), "no daemon runs") {
		t.Errorf("check after the end: %v", err)
	}
	if got := log.String(); !strings.Contains(got, "agents.a.title") {
		t.Errorf("the log does not tell of the reload:\n%s", got)
	}
}

// A check needs nothing of the configuration but the data directory: a file that
// is broken meanwhile does not make a daemon that serves look dead.
func TestCheckDaemon_BrokenFile(t *testing.T) {
	w := written{t, t.TempDir()}
	w.daemonOf("")
	load := LoadOptions{ConfigDir: w.dir, DataDir: filepath.Join(w.dir, "data"), Home: w.dir}
	for _, text := range []string{"[gateway]\nlisten = \"127.0.0.1:0\"\n", "[gateway\n", "[gateway]\nlisten = 7\n"} {
		w.set(text)
		cfg, broken, err := LoadDataDir(load)
		if err != nil {
			t.Fatal(err)
		}
		if _, want := LoadConfig(load); (broken == nil) != (want == nil) {
			t.Errorf("%q: broken is %v, want %v", text, broken, want)
		}
		if err := CheckDaemon(t.Context(), cfg); err != nil {
			t.Errorf("%q: %v", text, err)
		}
	}
	load.Env = []string{"BERTH_GATEWAY__LISTEN=nonsense"}
	if _, _, err := LoadDataDir(load); err == nil || !strings.Contains(err.Error(), "config.toml") {
		t.Errorf("an environment that is broken too: %v", err)
	}
}

// A check finds the daemon on a socket and behind a certificate, and does not
// take another's answer for it.
func TestCheckDaemon_Sockets(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no sockets with a path here")
	}
	w := written{t, t.TempDir()}
	dir, err := os.MkdirTemp("", "b") // short: a socket's path has a limit
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	socket := filepath.Join(dir, "s")
	w.set("[gateway]\nlisten = \"unix:" + socket + "\"\n")
	cfg, err := w.read()
	if err != nil {
		t.Fatal(err)
	}
	d, err := StartDaemon(t.Context(), cfg, WithStore(keeping{memory.New(time.Now)}), WithLog(&safeBuffer{}))
	if err != nil {
		t.Fatal(err)
	}
	if err := w.check(); err != nil {
		t.Errorf("on a socket: %v", err)
	}
	if err := d.Stop(context.Background()); err != nil {
		t.Error(err)
	}

	secure := httptest.NewUnstartedServer(http.NotFoundHandler())
	secure.Config.ErrorLog = log.New(io.Discard, "", 0)
	secure.StartTLS()
	defer secure.Close()
	url := "wss" + strings.TrimPrefix(secure.URL, "https") + "/acp"
	own := DaemonInfo{Address: secure.Listener.Addr().String(), URL: url, Fingerprint: fingerprint(secure.Certificate().Raw)}
	if status, _, err := readiness(t.Context(), own); err != nil || status != http.StatusNotFound {
		t.Errorf("with its certificate: %d, %v", status, err)
	}
	own.Fingerprint = strings.Repeat("0", 64)
	if _, _, err := readiness(t.Context(), own); err == nil {
		t.Error("another's certificate was taken")
	}
}

// toldTo listens as a service manager and returns what comes, one after
// another. The environment is that of a service.
func toldTo(t *testing.T) (next func() string) {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("no sockets of datagrams with a path here")
	}
	dir, err := os.MkdirTemp("", "b")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	path := filepath.Join(dir, "notify")
	l, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	t.Setenv("NOTIFY_SOCKET", path)
	return func() string {
		t.Helper()
		buf := make([]byte, 1000)
		n, err := l.Read(buf)
		if err != nil {
			t.Fatal(err)
		}
		return string(buf[:n])
	}
}

func TestServiceManager(t *testing.T) {
	next := toldTo(t)
	m := findServiceManager()
	if _, there := os.LookupEnv("NOTIFY_SOCKET"); there {
		t.Error("commands would get the variable")
	}
	before, _ := sinceBoot()
	for _, tt := range []struct {
		tell func() error
		want string
	}{
		{func() error { return m.ready("x") }, "READY=1\nSTATUS=x"},
		{m.reloading, "RELOADING=1"},
		{func() error { return m.leaving(30 * time.Second) }, "STOPPING=1\nSTATUS=ending\nEXTEND_TIMEOUT_USEC=40000000"},
	} {
		if err := tt.tell(); err != nil {
			t.Fatal(err)
		}
		got, at, timed := strings.Cut(next(), "\nMONOTONIC_USEC=")
		if got != tt.want {
			t.Errorf("told %q, want %q", got, tt.want)
		}
		if want := runtime.GOOS == "linux" && tt.want == "RELOADING=1"; timed != want {
			t.Errorf("%q has a time: %v, want %v", got, timed, want)
		}
		if usec, err := strconv.ParseInt(at, 10, 64); timed && (err != nil || time.Duration(usec)*time.Microsecond < before.Truncate(time.Microsecond)) {
			t.Errorf("the reload was at %s, %v; before it, it was %v", at, err, before)
		}
	}
	if err := (serviceManager{}).tell("READY=1"); err != nil {
		t.Errorf("without a manager: %v", err)
	}
}

// A manager that waits for signs of life gets them for as long as there is
// life, and one that waits for another process or for none gets none.
func TestServiceManager_Watchdog(t *testing.T) {
	next := toldTo(t)
	path := os.Getenv("NOTIFY_SOCKET")
	own := strconv.Itoa(os.Getpid())
	for _, tt := range []struct {
		name, usec, pid string
		want            time.Duration
	}{
		{"for us", "2000", own, 2 * time.Millisecond}, {"for whoever reads it", "2000", "", 2 * time.Millisecond},
		{"for another", "2000", own + "1", 0}, {"no time", "", own, 0}, {"not a number", "soon", own, 0}, {"none", "0", own, 0},
	} {
		t.Setenv("NOTIFY_SOCKET", path)
		t.Setenv("WATCHDOG_USEC", tt.usec)
		t.Setenv("WATCHDOG_PID", tt.pid)
		if m := findServiceManager(); m.patience != tt.want {
			t.Errorf("%s: it waits for %v, want %v", tt.name, m.patience, tt.want)
		}
		for _, name := range []string{"WATCHDOG_USEC", "WATCHDOG_PID"} {
			if _, there := os.LookupEnv(name); there {
				t.Errorf("%s: commands would get %s", tt.name, name)
			}
		}
	}
	(serviceManager{socket: path}).reassure(nil, func() { t.Error("nobody waits for it") }) // returns

	m := serviceManager{socket: path, patience: 2 * time.Millisecond}
	over, ended, asked := make(chan struct{}), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		m.reassure(over, func() { <-asked })
	}()
	for range 3 {
		asked <- struct{}{} // it lives
		if got := next(); got != "WATCHDOG=1" {
			t.Errorf("told %q", got)
		}
	}
	if err := m.tell("x"); err != nil { // it hangs now, so nothing can be before this
		t.Fatal(err)
	}
	if got := next(); got != "x" {
		t.Errorf("it hangs, and told %q", got)
	}
	close(asked)
	close(over)
	<-ended
}
