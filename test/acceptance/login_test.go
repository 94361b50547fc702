package acceptance

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/berth-dev/berth/adapters/keyring"
	"github.com/berth-dev/berth/test/secretservice"
)

// gate is a provider that takes one key at a time.
type gate struct {
	*httptest.Server
	mu  sync.Mutex
	key string
}

func newGate(t *testing.T, key string) *gate {
	g := &gate{key: key}
	g.Server = httptest.NewServer(g)
	t.Cleanup(g.Close)
	return g
}

// takes changes the key that the provider takes.
func (g *gate) takes(key string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.key = key
}

func (g *gate) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	g.mu.Lock()
	good := r.Header.Get("Authorization") == "Bearer "+g.key
	g.mu.Unlock()
	_, _ = io.Copy(io.Discard, r.Body)
	switch {
	case !good:
		rw.WriteHeader(http.StatusUnauthorized)
		_, _ = io.WriteString(rw, `{"error":{"message":"Incorrect API key provided","code":"invalid_api_key"}}`)
	case strings.HasSuffix(r.URL.Path, "/models"):
		_, _ = io.WriteString(rw, `{"object":"list","data":[{"id":"m","object":"model"},{"id":"n","object":"model"}]}`)
	default:
		rw.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(rw, "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Hello.\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n")
	}
}

// gatedWorld is a world whose agent asks the gate.
func gatedWorld(t *testing.T, g *gate) world {
	t.Helper()
	w := (&scenario{}).prepare(t)
	config := fmt.Sprintf("[providers.gated]\ntype = \"openai-compatible\"\nbase_url = \"%s/v1\"\nmax_retries = 0\n[agents.default]\nmodel = \"gated/m\"\n", g.URL)
	if err := os.WriteFile(filepath.Join(w.config, "config.toml"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	return w
}

// command runs berth in a world and returns what it printed and its status.
func (w world) command(t *testing.T, stdin string, env []string, args ...string) (out string, status int) {
	t.Helper()
	cmd := exec.Command(binary, append([]string{"--config-dir", w.config, "--data-dir", w.data}, args...)...)
	cmd.Env = append(cleanEnv(w), env...)
	cmd.Stdin = strings.NewReader(stdin)
	text, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return string(text), cmd.ProcessState.ExitCode()
}

// TestLogin_InARunningAgent: an agent without a key says how to get one, uses
// the key that is stored meanwhile without being told, says that a key is
// refused, and is without one again after a logout. Its session stays.
func TestLogin_InARunningAgent(t *testing.T) {
	for _, place := range []string{"file", "keyring"} {
		t.Run(place, func(t *testing.T) {
			t.Parallel()
			first, second := newCanary("the first key", "sk-%s"), newCanary("the second key", "sk-%s")
			birdsOf := newFinder([]canary{first, second})
			g := newGate(t, first.value)
			w := gatedWorld(t, g)
			var env []string
			var ring *secretservice.Service
			if place == "keyring" {
				ring = secretservice.Start(t)
				env = []string{"DBUS_SESSION_BUS_ADDRESS=" + ring.Bus}
			}
			if err := os.Remove(filepath.Join(w.data, "credentials.toml")); err != nil {
				t.Fatal(err)
			}
			p := launch(t, w, nil, append([]string{"BERTH_store__required=true"}, env...))
			m := p.call("i", "initialize", `{"protocolVersion":1,"clientCapabilities":{"auth":{"terminal":true}}}`)
			for _, want := range []string{`"logout":{}`, `"type":"terminal"`, `"args":["login","--config-dir",` + quoted(w.config) + `,"--data-dir",` + quoted(w.data) + `]`} {
				if !strings.Contains(string(m.Result), want) {
					t.Errorf("initialize does not hold %s: %s", want, m.Result)
				}
			}
			id := p.newSession(w) // a server of one's own may do without a key
			ask := 0
			prompt := func() message {
				ask++
				return p.call(fmt.Sprint("p", ask), "session/prompt", promptOf(id, "hello"))
			}
			checkError(t, prompt(), "-32000", "Authentication required", `"key":"missing"`, "berth login gated", `"authMethods":["local","login"]`)
			checkError(t, p.call("a1", "authenticate", `{"methodId":"local"}`), "-32000", "berth login gated", `"key":"missing"`)

			// The arguments of the terminal method, appended to those of the agent.
			out, status := w.command(t, first.value+"\n", env, "acp", "--log-level", "error", "login", "--data-dir", w.data, "gated", "-")
			if status != 0 || !strings.Contains(out, "gated accepts the key (2 models)") || !strings.Contains(out, "Agents that use it: default.") {
				t.Fatalf("login: status %d\n%s", status, out)
			}
			told := out
			if m := prompt(); stopReason(m) != "end_turn" {
				t.Errorf("after the login: %s%s", m.Result, m.Error)
			}
			if m := p.call("a2", "authenticate", `{"methodId":"local"}`); m.Error != nil {
				t.Errorf("authenticate after the login: %s", m.Error)
			}
			g.takes(second.value)
			checkError(t, prompt(), "-32000", "Authentication required", `"key":"refused"`, "berth login gated")
			checkError(t, p.call("a3", "authenticate", `{"methodId":"local"}`), "-32000", `"key":"refused"`)

			out, status = w.command(t, first.value+"\n", env, "login", "gated", "--key-stdin")
			if status != 1 || !strings.Contains(out, "refused its API key") || !strings.Contains(out, "nothing was changed") {
				t.Errorf("login with a wrong key: status %d\n%s", status, out)
			}
			told += out
			out, status = w.command(t, second.value, env, "login", "gated", "-")
			if status != 0 {
				t.Errorf("login with another key: status %d\n%s", status, out)
			}
			told += out
			if m := prompt(); stopReason(m) != "end_turn" {
				t.Errorf("after the second login: %s%s", m.Result, m.Error)
			}
			data, err := os.ReadFile(filepath.Join(w.data, "credentials.toml"))
			if err != nil {
				t.Fatal(err)
			}
			if found := birdsOf.find(data); place == "keyring" && (len(found) > 0 || len(ring.Secrets()) != 1) {
				t.Errorf("the file holds %q, the keyring %d keys", found, len(ring.Secrets()))
			}

			if m := p.call("l", "logout", `{}`); m.Error != nil {
				t.Errorf("logout: %s", m.Error)
			}
			checkError(t, prompt(), "-32000", `"key":"missing"`)
			if m := p.call("s", "session/list", `{}`); !strings.Contains(string(m.Result), id) {
				t.Errorf("the session is gone: %s", m.Result)
			}
			if out, status := w.command(t, "", env, "logout"); status != 0 || !strings.Contains(out, "No key is stored.") {
				t.Errorf("logout of nothing: status %d\n%s", status, out)
			}
			if ring != nil && len(ring.Secrets()) > 0 {
				t.Error("the keyring still has a key")
			}
			p.in.Close()
			p.endsWith(0, patience)
			for what, text := range map[string]string{"the commands' output": told, "the log": p.stderr.String()} {
				if found := birdsOf.find([]byte(text)); len(found) > 0 {
					t.Errorf("%s holds %q", what, found)
				}
			}
		})
	}
}

// TestLogin_Refuses: a key is taken from no argument and repeated nowhere, and
// a command of an agent changes none.
func TestLogin_Refuses(t *testing.T) {
	key := newCanary("a key", "sk-ant-api03-%s").value
	for name, tt := range map[string]struct {
		args   []string
		stdin  string
		env    []string
		status int
		want   string
	}{
		"a key as the provider":  {[]string{"login", key}, "", nil, 2, "a key is never an argument"},
		"a key behind it":        {[]string{"login", "gated", key}, "", nil, 2, "a key is never an argument"},
		"a short key":            {[]string{"login", "gated", "sk-1"}, "", nil, 2, "a key is never an argument"},
		"no terminal":            {[]string{"login", "gated"}, key, nil, 2, "standard input is no terminal"},
		"no provider":            {[]string{"login", "--key-stdin"}, key, nil, 2, "the provider must be named"},
		"nobody":                 {[]string{"login", "nobody", "-"}, key, nil, 1, "no provider of this name takes a key; those that do: anthropic, openai"},
		"no key":                 {[]string{"login", "gated", "-"}, "", nil, 1, "no key came; nothing was changed"},
		"an empty line":          {[]string{"login", "gated", "-"}, "\n" + key, nil, 1, "no key came; nothing was changed"},
		"a command of an agent":  {[]string{"login", "gated", "-"}, key, []string{"BERTH_SHELL=1"}, 1, "by a command that an agent runs"},
		"its logout":             {[]string{"logout", "gated"}, "", []string{"BERTH_SHELL=1"}, 1, "by a command that an agent runs"},
		"a file others can read": {[]string{"login", "gated", "-"}, key, nil, 1, "others can read or change it"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := newGate(t, key)
			w := gatedWorld(t, g)
			file := filepath.Join(w.data, "credentials.toml")
			if strings.Contains(name, "others") {
				if err := os.Chmod(file, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			before, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			out, status := w.command(t, tt.stdin, tt.env, tt.args...)
			if status != tt.status || !strings.Contains(out, tt.want) || strings.Contains(out, birdsong) || strings.Contains(out, "sk-1") {
				t.Errorf("status %d, want %d and %q:\n%s", status, tt.status, tt.want, out)
			}
			if after, err := os.ReadFile(file); err != nil || string(after) != string(before) {
				t.Errorf("the stored keys changed: %v", err)
			}
		})
	}
}

// TestLogin_StoresUnchecked: a provider that cannot be reached now is no reason
// to lose a key, and it is said.
func TestLogin_StoresUnchecked(t *testing.T) {
	key := newCanary("a key", "sk-%s")
	g := newGate(t, key.value)
	w := gatedWorld(t, g)
	g.Close()
	out, status := w.command(t, key.value, nil, "login", "gated", "-")
	if status != 0 || !strings.Contains(out, "could not be checked and is stored all the same") || strings.Contains(out, birdsong) {
		t.Errorf("status %d:\n%s", status, out)
	}
	out, status = w.command(t, "", nil, "logout", "gated")
	if status != 0 || !strings.Contains(out, "The stored key for gated is removed.") {
		t.Errorf("logout: status %d:\n%s", status, out)
	}
}

// TestKeyring_Silent: a keyring reference without a keyring is told at the
// session, with the way out, and costs the start nothing.
func TestKeyring_Silent(t *testing.T) {
	w := (&scenario{}).prepare(t)
	config := "[providers.x]\ntype = \"openai-compatible\"\nbase_url = \"http://127.0.0.1:1/v1\"\napi_key = \"keyring:work\"\n[agents.default]\nmodel = \"x/m\"\n"
	if err := os.WriteFile(filepath.Join(w.config, "config.toml"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Run("no bus", func(t *testing.T) {
		p := launch(t, w, nil, []string{"DBUS_SESSION_BUS_ADDRESS=unix:path=" + filepath.Join(w.home, "none")})
		p.initialize()
		m := p.call("new", "session/new", `{"cwd":`+quoted(w.work)+`,"mcpServers":[]}`)
		checkError(t, m, "-32000", "keyring:work cannot be read", "env:NAME or file:PATH")
	})
	t.Run("no entry, then one", func(t *testing.T) {
		ring := secretservice.Start(t)
		p := launch(t, w, nil, []string{"DBUS_SESSION_BUS_ADDRESS=" + ring.Bus})
		p.initialize()
		m := p.call("new", "session/new", `{"cwd":`+quoted(w.work)+`,"mcpServers":[]}`)
		checkError(t, m, "-32000", `the keyring has no entry`, "put the key into the keyring as work")
		if err := ring.Put(keyring.Service, "work", "sk-1"); err != nil {
			t.Fatal(err)
		}
		p.newSession(w)
	})
}
