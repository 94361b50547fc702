package bootstrap

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"iter"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/fx/fxtest"

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
	if !strings.Contains(log.String(), "mcp_servers.notes") {
		t.Errorf("the log does not name the server:\n%s", log.String())
	}
	if strings.Contains(log.String(), "git push") {
		t.Errorf("a rule about commands has an effect, and the log says otherwise:\n%s", log.String())
	}
}

// A limit of costs on a model whose prices nobody knows cannot be kept, and the
// start says so.
func TestNew_WarnsOfLimitsThatCannotBeKept(t *testing.T) {
	const local = "[providers.house]\ntype = \"openai-compatible\"\nbase_url = \"http://127.0.0.1:9/v1\"\napi_key = \"k\"\n"
	const priced = "[providers.house.models.big]\ninput_price = 1.5\noutput_price = 2\n"
	for _, tt := range []struct{ name, doc, want string }{
		{"unknown prices", local + "[agents.a]\nmodel = \"house/big\"\nmax_cost_per_day = 2\n", "agents.a.max_cost_per_day cannot be kept"},
		{"per session", local + "[agents.a]\nmodel = \"house/big\"\nmax_cost_per_session = 2\n", "agents.a.max_cost_per_session cannot be kept"},
		{"known prices", local + priced + "[agents.a]\nmodel = \"house/big\"\nmax_cost_per_day = 2\n", ""},
		{"an agent that is off", local + "[agents.a]\nenabled = false\nmodel = \"house/big\"\nmax_cost_per_day = 2\n", ""},
		{"no limit", local + "[agents.a]\nmodel = \"house/big\"\n", ""},
		{"a model that costs nothing", "[agents.a]\nmodel = \"offline/offline\"\nmax_cost_per_day = 2\n", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var log safeBuffer
			app, err := New(load(t, tt.doc), WithLog(&log), WithStore(memory.New(time.Now)))
			if err != nil {
				t.Fatal(err)
			}
			if err := app.Stop(context.Background()); err != nil {
				t.Fatal(err)
			}
			got := log.String()
			if warned := strings.Contains(got, "cannot be kept"); warned != (tt.want != "") || !strings.Contains(got, tt.want) {
				t.Errorf("want a warning with %q, got\n%s", tt.want, got)
			}
			if tt.want != "" && !strings.Contains(got, "providers.house.models") {
				t.Errorf("it does not say where prices are set:\n%s", got)
			}
		})
	}
}

func TestConfigValidate_WarnsOfWhatHasNoEffect(t *testing.T) {
	for _, tt := range []struct{ name, doc, want string }{
		{"the store", "[store]\ndriver = \"postgres\"\ndsn = \"postgres://h/d\"\n", `store.driver: "postgres" is not available in this version; use sqlite or memory; sessions will not be saved`},
		{"the store, required", "[store]\ndriver = \"postgres\"\ndsn = \"postgres://h/d\"\nrequired = true\n", "berth will not start"},
		{"a store that is there", "[store]\ndriver = \"memory\"\n", ""},
		{"a server", "[mcp_servers.notes]\ncommand = \"notes\"\n", "mcp_servers.notes: "},
		{"a server that is off", "[mcp_servers.notes]\ncommand = \"notes\"\nenabled = false\n", ""},
		{"a limit of costs", "[agents.a]\nmax_cost_per_day = 2\nmax_cost_per_session = 2\n", ""},
		{"a thought level", "[agents.a]\nthought_level = \"low\"\n", ""},
		{"a fallback", "[providers.ollama]\nfallback = [\"offline/offline\"]\n", ""},
		{"the client's terminal", "[profiles.default]\nclient_terminal = true\n", "profiles.default.client_terminal: "},
		{"the second protocol", "[acp]\nexperimental_v2 = true\n", "acp.experimental_v2: "},
		{"the gateway", "[gateway]\nlisten = \"127.0.0.1:1\"\n", ""},
		{"the bridge", "[bridge]\nurl = \"ws://h\"\n", ""},
		{"a rule about commands", "[profiles.default]\ndeny = [\"shell(git push)\"]\n", ""},
		{"defaults", "", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			writeFile(t, filepath.Join(dir, "config.toml"), tt.doc)
			var out bytes.Buffer
			if err := ConfigValidate(&out, LoadOptions{ConfigDir: dir, Home: dir}, false); err != nil {
				t.Fatal(err)
			}
			if !strings.HasSuffix(out.String(), " is valid\n") {
				t.Errorf("the verdict is missing:\n%s", out.String())
			}
			warned := strings.HasPrefix(out.String(), "warning: ")
			if warned != (tt.want != "") || !strings.Contains(out.String(), tt.want) {
				t.Errorf("want a warning with %q, got\n%s", tt.want, out.String())
			}
		})
	}
}

// Paths of the file are absolute when they arrive; an embedder's may not be,
// and a relative root would never match anything.
func TestNew_RelativePathsOfProfiles(t *testing.T) {
	cfg := load(t, "[profiles.default]\nallowed_roots = [\"shared\"]\n")
	if got, want := cfg.Profiles["default"].AllowedRoots[0], filepath.Join(cfg.ConfigDir, "shared"); got != want {
		t.Errorf("the file's root became %s, want %s", got, want)
	}
	cfg = load(t, "[profiles.open]\n")
	for name, p := range map[string]ProfileConfig{
		"root":   {AllowedRoots: []string{"shared"}},
		"ban":    {ForbiddenPaths: []string{"shared"}},
		"lifted": {ForbiddenPaths: []string{"!shared"}},
	} {
		t.Run(name, func(t *testing.T) {
			cfg.Profiles["open"] = p
			app, err := New(cfg, WithLog(&safeBuffer{}), WithStore(memory.New(time.Now)))
			if err == nil {
				_ = app.Stop(context.Background())
				t.Fatal("it was taken")
			}
			if !strings.Contains(err.Error(), "profiles.open") || !strings.Contains(err.Error(), "shared") {
				t.Errorf("err = %v, want one that names the profile and the path", err)
			}
		})
	}
}

// A missing key is asked for where the person put the reference to it, by
// name and never by value.
func TestKeyHint(t *testing.T) {
	const head = "[providers.local]\ntype = \"openai-compatible\"\nbase_url = \"http://127.0.0.1:9/v1\"\n"
	for _, tt := range []struct{ name, doc, provider, want string }{
		{"a variable", head + "api_key = \"env:LOCAL_KEY\"\n", "local", "set the environment variable LOCAL_KEY where berth is started; providers.local.api_key refers to it"},
		{"a file", head + "api_key = \"file:~/missing\"\n", "local", "put the key into the file ~/missing; providers.local.api_key refers to it"},
		{"a file, and why", head + "api_key = \"file:~/missing\"\n", "local", "its API key cannot be read: secret file "},
		{"a keyring", head + "api_key = \"keyring:mine\"\n", "local", "put the key into the keyring as mine; providers.local.api_key refers to it"},
		{"a variable in place of the usual", "[providers.openai]\napi_key = \"env:WORK_KEY\"\n", "openai", "set the environment variable WORK_KEY"},
		{"the usual variable", "[providers.openai]\napi_key = \"env:OPENAI_API_KEY\"\n", "openai", "set OPENAI_API_KEY or providers.openai.api_key"},
		{"a gateway before the usual server", "[providers.anthropic]\nbase_url = \"http://127.0.0.1:9/v1\"\napi_key = \"file:~/missing\"\n", "anthropic", "put the key into the file ~/missing"},
		{"nothing", "[providers.openai]\n", "openai", "set OPENAI_API_KEY or providers.openai.api_key"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			models, err := newModels(fxtest.NewLifecycle(t), load(t, tt.doc), nil)
			if err != nil {
				t.Fatal(err)
			}
			_, err = models.Open(t.Context(), domain.ModelRef{Provider: tt.provider, Model: "m"})
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("err = %v, want one with %q", err, tt.want)
			}
		})
	}
	gateway := load(t, "[providers.anthropic]\nbase_url = \"http://127.0.0.1:9/v1\"\n").Providers["anthropic"]
	if hint := keyHint(gateway); !strings.Contains(hint, `providers.anthropic.api_key = "env:ANTHROPIC_API_KEY"`) {
		t.Errorf("the hint does not say how the usual variable gets to another address: %s", hint)
	}
	written := load(t, head+"api_key = \"sk-canary\"\n").Providers["local"]
	if hint := keyHint(written); strings.Contains(hint, "canary") {
		t.Errorf("the hint holds the key: %s", hint)
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

// failing is a model whose every answer is an error that nobody foresaw.
type failing struct{}

func (failing) Open(context.Context, domain.ModelRef) (ports.Model, error) {
	return failing{}, nil
}
func (failing) Describe(ref domain.ModelRef) domain.ModelInfo { return domain.ModelInfo{Ref: ref} }

func (failing) Catalog(context.Context) ([]domain.ModelInfo, error) { return nil, nil }
func (failing) Info() domain.ModelInfo {
	return domain.ModelInfo{Ref: domain.ModelRef{Provider: "p", Model: "m"}}
}
func (failing) Stream(context.Context, domain.ModelRequest) iter.Seq2[domain.ModelEvent, error] {
	return func(yield func(domain.ModelEvent, error) bool) { yield(nil, errors.New("deep down")) }
}

// A failed turn is one line of the log, with the detail that the client is
// not told.
func TestServe_FailedTurnIsOneLineOfTheLog(t *testing.T) {
	cfg := load(t, "")
	dir := t.TempDir()
	var log safeBuffer
	app, err := New(cfg, WithLog(&log), WithStore(keeping{memory.New(time.Now)}), WithModels(failing{}))
	if err != nil {
		t.Fatal(err)
	}
	in, client := io.Pipe()
	read, out := io.Pipe()
	served := make(chan error, 1)
	go func() { served <- app.Serve(context.Background(), jsonrpc.NewStdio(in, out, 0)) }()
	answers := bufio.NewScanner(read)
	// ask sends a request and returns its answer.
	ask := func(id, method, params string) string {
		t.Helper()
		if _, err := io.WriteString(client, `{"jsonrpc":"2.0","id":`+id+`,"method":"`+method+`","params":`+params+"}\n"); err != nil {
			t.Fatal(err)
		}
		for answers.Scan() {
			if strings.Contains(answers.Text(), `"id":`+id+`,`) {
				return answers.Text()
			}
		}
		t.Fatalf("no answer to %s", method)
		return ""
	}
	ask("1", "initialize", `{"protocolVersion":1}`)
	opened := ask("2", "session/new", `{"cwd":"`+filepath.ToSlash(dir)+`","mcpServers":[]}`)
	id := regexp.MustCompile(`"sessionId":"([^"]+)"`).FindStringSubmatch(opened)
	if id == nil {
		t.Fatalf("no session: %s", opened)
	}
	answer := ask("3", "session/prompt", `{"sessionId":"`+id[1]+`","prompt":[{"type":"text","text":"go"}]}`)
	if !strings.Contains(answer, "-32603") || strings.Contains(answer, "deep down") {
		t.Errorf("the answer is %s", answer)
	}
	client.Close()
	go func() { _, _ = io.Copy(io.Discard, read) }() // ends with Serve's output
	if err := <-served; err != nil {
		t.Error(err)
	}
	out.Close()
	if err := app.Stop(context.Background()); err != nil {
		t.Error(err)
	}
	if n := strings.Count(log.String(), "deep down"); n != 1 || strings.Count(log.String(), "ERR") != 1 {
		t.Errorf("the failure is told %d times:\n%s", n, log.String())
	}
}
