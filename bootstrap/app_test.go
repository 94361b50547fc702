package bootstrap

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/berth-dev/berth/adapters/jsonrpc"
	"github.com/berth-dev/berth/adapters/memory"
	"github.com/berth-dev/berth/core/domain"
	"github.com/berth-dev/berth/core/ports"
)

// load reads a configuration from text, in directories of its own.
func load(t *testing.T, text string) *Config {
	t.Helper()
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, "config.toml"), text)
	cfg, err := LoadConfig(LoadOptions{ConfigDir: dir, DataDir: filepath.Join(dir, "data"), Home: dir})
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

type safeBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *safeBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *safeBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

func TestNew_GraphIsCompleteForEveryStore(t *testing.T) {
	for _, driver := range []string{"sqlite", "memory"} {
		t.Run(driver, func(t *testing.T) {
			cfg := load(t, "[store]\ndriver = \""+driver+"\"\n")
			app, err := New(cfg, WithLog(&safeBuffer{}))
			if err != nil {
				t.Fatal(err)
			}
			if err := app.Stop(context.Background()); err != nil {
				t.Errorf("stop: %v", err)
			}
			if app.fx.Err() != nil {
				t.Errorf("the graph is broken: %v", app.fx.Err())
			}
		})
	}
}

func TestNew_SaysWhatHasNoEffect(t *testing.T) {
	cfg := load(t, "[profiles.default]\ndeny = [\"shell(git push)\"]\n[mcp_servers.notes]\ncommand = \"notes\"\n")
	var log safeBuffer
	app, err := New(cfg, WithLog(&log), WithStore(memory.New(time.Now)))
	if err != nil {
		t.Fatal(err)
	}
	if err := app.Stop(context.Background()); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"shell(git push)", "mcp_servers.notes"} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the log does not name %s:\n%s", want, log.String())
		}
	}
}

func TestNew_RequiredStoreThatCannotOpenStopsTheStart(t *testing.T) {
	cfg := load(t, "[store]\nrequired = true\n")
	writeFile(t, cfg.DataDir, "a file where the directory should be")
	_, err := New(cfg, WithLog(&safeBuffer{}))
	if err == nil || !strings.Contains(err.Error(), "store.required") || !strings.Contains(err.Error(), cfg.DataDir) {
		t.Errorf("err = %v; want one that names store.required and %s", err, cfg.DataDir)
	}
}

func TestNew_OtherwiseRunsInMemoryAndSaysSo(t *testing.T) {
	cfg := load(t, "")
	writeFile(t, cfg.DataDir, "a file where the directory should be")
	var log safeBuffer
	app, err := New(cfg, WithLog(&log))
	if err != nil {
		t.Fatal(err)
	}
	if app.p.Sessions.Durable() {
		t.Error("sessions count as kept although they are not")
	}
	if err := app.Stop(context.Background()); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(log.String(), "sessions are not saved") {
		t.Errorf("the log does not say that sessions are not saved:\n%s", log.String())
	}
}

func TestFindOllama(t *testing.T) {
	tests := []struct {
		name, body string
		status     int
		want       domain.ModelRef
	}{
		{"first model", `{"models":[{"name":"qwen3:8b"},{"name":"other"}]}`, 200, domain.ModelRef{Provider: "ollama", Model: "qwen3:8b"}},
		{"no model", `{"models":[]}`, 200, offlineModel},
		{"not Ollama", `hello`, 200, offlineModel},
		{"error", `{}`, 500, offlineModel},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path != "/api/tags" {
					t.Errorf("asked for %s", r.URL.Path)
				}
				w.WriteHeader(tt.status)
				_, _ = w.Write([]byte(tt.body))
			}))
			defer srv.Close()
			if got := findOllama(srv.URL); got != tt.want {
				t.Errorf("found %v, want %v", got, tt.want)
			}
		})
	}
	if got := findOllama("http://127.0.0.1:1"); got != offlineModel {
		t.Errorf("with nobody there found %v", got)
	}
}

func TestVersion_KnowsProtocolAndSchema(t *testing.T) {
	v := Version()
	if v.Version == "" || v.Protocol != 1 || v.Schema < 1 || v.Go == "" {
		t.Errorf("version is %+v", v)
	}
}

// keeping is a memory store that counts as one that keeps sessions.
type keeping struct{ ports.Store }

func (keeping) Durable() bool { return true }

// slowRoots takes its time, so that the client is gone before a session is
// open.
type slowRoots struct{ dir string }

func (r slowRoots) Resolve(_ context.Context, _ domain.Agent, _ domain.Directories) (domain.Session, error) {
	time.Sleep(100 * time.Millisecond) // in the bubble
	return domain.Session{Cwd: r.dir, CwdGiven: r.dir}, nil
}

func (r slowRoots) Canonical(path string) string { return path }

// A session that was still being opened when its client's input ended used to
// stay in the gone client's name, so that nobody else could open it.
func TestServe_SessionOpenedAfterEndOfInputIsFree(t *testing.T) {
	cfg := load(t, "")
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		app, err := New(cfg, WithLog(&safeBuffer{}), WithStore(keeping{memory.New(time.Now)}), WithRoots(slowRoots{dir}))
		if err != nil {
			t.Fatal(err)
		}
		const initialize = `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1}}` + "\n"
		// serve sends a request and hangs up after stay.
		serve := func(request string, stay time.Duration) string {
			t.Helper()
			in, client := io.Pipe()
			go func() { // ends before Serve does
				_, _ = io.WriteString(client, initialize+request)
				time.Sleep(stay)
				client.Close()
			}()
			var out safeBuffer
			if err := app.Serve(context.Background(), jsonrpc.NewStdio(in, &out, 0)); err != nil {
				t.Fatal(err)
			}
			synctest.Wait() // sessions are let go beside the connection
			return out.String()
		}
		first := serve(`{"jsonrpc":"2.0","id":1,"method":"session/new","params":{"cwd":"`+dir+`","mcpServers":[]}}`+"\n", 0)
		id := regexp.MustCompile(`"id":1,"result":\{"sessionId":"([^"]+)"`).FindStringSubmatch(first)
		if id == nil {
			t.Fatalf("no session: %s", first)
		}
		second := serve(`{"jsonrpc":"2.0","id":2,"method":"session/resume","params":{"sessionId":"`+id[1]+`","cwd":"`+dir+`"}}`+"\n", time.Second)
		if !strings.Contains(second, `"id":2,"result"`) {
			t.Errorf("the session is not free: %s", second)
		}
		if err := app.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
}
