package acceptance

import (
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/berth-dev/berth/adapters/jsonrpc/transcript"
	"github.com/berth-dev/berth/adapters/keyring"
	"github.com/berth-dev/berth/test/secretservice"
)

// TestFinder_FindsEveryForm: a leak is found however it is written.
func TestFinder_FindsEveryForm(t *testing.T) {
	secret := envCanaries()[1]
	encoded := func(before string) string {
		return base64.StdEncoding.EncodeToString([]byte(before + secret.value + "\nMORE=1\n"))
	}
	for name, tt := range map[string]struct {
		text string
		want bool
	}{
		"as it is":         {"x" + secret.value + "y", true},
		"without its head": {secret.core, true},
		"capitals":         {strings.ToUpper(secret.value), true},
		"small letters":    {strings.ToLower(secret.value), true},
		"backwards":        {reversed(secret.value), true},
		"base64":           {encoded(""), true},
		"base64, at one":   {encoded("x"), true},
		"base64, at two":   {encoded("xy"), true},
		"base64 of base64": {base64.StdEncoding.EncodeToString([]byte(encoded(""))), false}, // no form we know
		"base64 in lines":  {encoded("")[:20] + "\n" + encoded("")[20:], true},
		"hexadecimal":      {hex.EncodeToString([]byte(secret.value)), true},
		"HEXADECIMAL":      {strings.ToUpper(hex.EncodeToString([]byte(secret.value))), true},
		"per cent":         {url.QueryEscape("a b") + fmt.Sprintf("%%%02X", secret.core[0]) + percent(secret.core[1:]), true},
		"first half":       {secret.core[:16], true},
		"second half":      {secret.core[16:], true},
		"cut early":        {secret.core[:3] + "|" + secret.core[3:], true},
		"cut late":         {secret.core[:29] + "|" + secret.core[29:], true},
		"a few letters":    {secret.core[:9], false},
		"another text":     {"nothing of the kind: sk-proj-0123456789", false},
	} {
		t.Run(name, func(t *testing.T) {
			found := birds().find([]byte(tt.text))
			if (len(found) > 0) != tt.want {
				t.Errorf("found %q in %q", found, tt.text)
			}
			for _, f := range found {
				if !strings.HasPrefix(f, secret.name+" ") {
					t.Errorf("%q is another canary", f)
				}
			}
		})
	}
}

func percent(s string) string {
	var b strings.Builder
	for i := range len(s) {
		fmt.Fprintf(&b, "%%%02X", s[i])
	}
	return b.String()
}

// TestLeaks_FindsWhatIsPlanted: whoever tells a secret is found out, in each
// place where one can turn up. Without this the other tests prove nothing.
func TestLeaks_FindsWhatIsPlanted(t *testing.T) {
	secret := newCanary("GITHUB_TOKEN", "ghp_%s")
	text := func(s string) transcript.Frame {
		return transcript.Frame{Dir: transcript.ToClient, Client: "c", Data: []byte(`{"jsonrpc":"2.0","method":"session/update","params":{"update":{"content":{"type":"text","text":` + quoted(s) + `}}}}`)}
	}
	put := func(t *testing.T, path, text string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, plant := range map[string]func(t *testing.T, l *leaks, w world) (log string){
		"frame": func(_ *testing.T, l *leaks, _ world) string { l.frame(text("token " + secret.value)); return "" },
		"frame, letter by letter": func(_ *testing.T, l *leaks, _ world) string {
			for _, c := range secret.value {
				l.frame(text(string(c)))
			}
			return ""
		},
		"frame, letters on lines of their own": func(_ *testing.T, l *leaks, _ world) string {
			l.frame(text(strings.Join(strings.Split(secret.value, ""), "\n")))
			return ""
		},
		"log": func(*testing.T, *leaks, world) string { return "INF started token=" + secret.value + "\n" },
		"log, encoded": func(*testing.T, *leaks, world) string {
			return base64.StdEncoding.EncodeToString([]byte("a" + secret.value))
		},
		"work directory": func(t *testing.T, _ *leaks, w world) string {
			put(t, filepath.Join(w.work, "a", "b.txt"), secret.value)
			return ""
		},
		"data directory": func(t *testing.T, _ *leaks, w world) string {
			put(t, filepath.Join(w.data, "sessions", "acp-sessions.db-wal"), "\x00\x01"+secret.value)
			return ""
		},
		"name of a file": func(t *testing.T, _ *leaks, w world) string {
			put(t, filepath.Join(w.data, secret.value), "")
			return ""
		},
		"home": func(t *testing.T, _ *leaks, w world) string {
			put(t, filepath.Join(w.home, ".cache", "x"), secret.value)
			return ""
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := (&scenario{}).prepare(t)
			l := newLeaks()
			if clean := l.finish(w, ""); len(clean) > 0 {
				t.Fatalf("found before anything was planted: %q", clean)
			}
			if found := l.finish(w, plant(t, l, w)); len(found) == 0 || !strings.Contains(found[0], "GITHUB_TOKEN") {
				t.Errorf("found %q", found)
			}
		})
	}
}

// TestLeaks_FindsAWholeRunOut: an agent that is given a secret by its model
// and by a file is found out in what it shows, in what it keeps, and by the
// model that listens.
func TestLeaks_FindsAWholeRunOut(t *testing.T) {
	secret := newCanary("NPM_TOKEN", "npm_%s")
	s := &scenario{
		model: "call read_file {\"path\":\"leak.txt\"}\n--- next\ntext \"not said\"\n",
		files: map[string][]byte{"leak.txt": []byte(secret.value + "\n")},
	}
	w := s.prepare(t)
	r := &stdio{t: t, s: s, w: w, log: &logBuffer{}, now: map[string]*process{}}
	kept := newLeaks()
	script, err := transcript.Parse(leakScript)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := transcript.Play(t.Context(), script, transcript.Options{
		Connect: r.connect, Monitor: kept.frame, Vars: map[string]string{"WORK": w.work},
	}); err != nil {
		t.Fatal(err)
	}
	for _, p := range r.ends {
		<-p.done
	}
	if err := os.Remove(filepath.Join(w.work, "leak.txt")); err != nil {
		t.Fatal(err)
	}
	found := strings.Join(kept.finish(w, r.log.String()), "\n")
	for _, want := range []string{"a frame (", "what client", "acp-sessions.db"} {
		if !strings.Contains(found, want) {
			t.Errorf("nothing is found in %s:\n%s", want, found)
		}
	}
}

// leakScript shows a file to the model and to the client; the model notices.
const leakScript = `> initialize {"protocolVersion":1,"clientCapabilities":{}}
< {"protocolVersion":1}
> session/new {"cwd":"$WORK","mcpServers":[]}
< {"sessionId":"$sid"}
loose
> session/prompt @p {"sessionId":"$sid","prompt":[{"type":"text","text":"go"}]}
< @p error {"message":"~against the script"}
eof
end
`

// TestProvider_TellsNoSecret: a provider that throws keys back at us in each
// way it can is quoted without them, and gets no secret but its own.
func TestProvider_TellsNoSecret(t *testing.T) {
	own := settingCanaries()
	answers := map[string]func(rw http.ResponseWriter, r *http.Request){
		"401 with the header": func(rw http.ResponseWriter, r *http.Request) {
			rw.WriteHeader(http.StatusUnauthorized)
			fmt.Fprintf(rw, `{"error":{"message":"bad key: %s","code":"%s"}}`, r.Header.Get("Authorization"), r.Header.Get("Authorization"))
		},
		"401 with the key alone": func(rw http.ResponseWriter, r *http.Request) {
			rw.WriteHeader(http.StatusUnauthorized)
			fmt.Fprintf(rw, `{"error":{"message":"Incorrect API key provided: %s. You can find yours there."}}`, strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "))
		},
		"400 with all headers": func(rw http.ResponseWriter, r *http.Request) {
			rw.WriteHeader(http.StatusBadRequest)
			_ = r.Header.Write(rw)
		},
		"403 in a page": func(rw http.ResponseWriter, r *http.Request) {
			rw.Header().Set("Content-Type", "text/html")
			rw.WriteHeader(http.StatusForbidden)
			fmt.Fprintf(rw, "<html><body><h1>403</h1><pre>%s %s</pre></body></html>", r.Header.Get("X-Canary"), r.Header.Get("Authorization"))
		},
		"429": func(rw http.ResponseWriter, r *http.Request) {
			rw.Header().Set("Retry-After", "3600")
			rw.WriteHeader(http.StatusTooManyRequests)
			fmt.Fprintf(rw, `{"error":{"message":"%s is over its quota","type":"insufficient_quota"}}`, r.Header.Get("Authorization"))
		},
		"500 with a URL": func(rw http.ResponseWriter, r *http.Request) {
			rw.WriteHeader(http.StatusInternalServerError)
			fmt.Fprintf(rw, "at https://api.invalid/?key=%s", url.QueryEscape(strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")))
		},
		"redirect": func(rw http.ResponseWriter, r *http.Request) {
			http.Redirect(rw, r, "http://127.0.0.1:1/?key="+url.QueryEscape(strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")), http.StatusTemporaryRedirect)
		},
		"no JSON": func(rw http.ResponseWriter, r *http.Request) {
			rw.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprintf(rw, "data: {\"oh\": %s\n\n", r.Header.Get("Authorization"))
		},
		"error in the stream": func(rw http.ResponseWriter, r *http.Request) {
			rw.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprintf(rw, "data: {\"choices\":[{\"delta\":{\"content\":\"Half\"}}]}\n\ndata: {\"error\":{\"message\":\"%s\"}}\n\n", r.Header.Get("Authorization"))
		},
	}
	for name, answer := range answers {
		for from, key := range map[string]string{"setting": own.key.value, "file": "", "variable": "env:CANARY_OF_A_REFERENCE", "login": "", "keyring": "keyring:canary"} {
			t.Run(name+", key of a "+from, func(t *testing.T) {
				t.Parallel()
				var mu sync.Mutex
				var asked []string // what the provider was told, its own key apart
				keys := 0          // requests with its own key
				server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
					body, _ := io.ReadAll(r.Body)
					mu.Lock()
					asked = append(asked, birds().find(body)...)
					if strings.Contains(r.Header.Get("Authorization"), birdsong) {
						keys++
					}
					mu.Unlock()
					answer(rw, r)
				}))
				defer server.Close()
				w := (&scenario{}).prepare(t)
				if from == "file" {
					key = "file:" + filepath.Join(w.config, own.file.name)
				}
				env := []string{"BERTH_store__required=true"}
				switch from {
				case "login":
					if err := w.storeKey("x", server.URL, own.login.value); err != nil {
						t.Fatal(err)
					}
				case "keyring":
					ring := secretservice.Start(t)
					if err := ring.Put(keyring.Service, "canary", own.key.value); err != nil {
						t.Fatal(err)
					}
					env = append(env, "DBUS_SESSION_BUS_ADDRESS="+ring.Bus)
				}
				config := fmt.Sprintf("[providers.x]\ntype = \"openai-compatible\"\nbase_url = \"%s/v1\"\nmax_retries = 0\napi_key = %q\nheaders = { \"X-Canary\" = %q }\n[agents.default]\nmodel = \"x/m\"\n", server.URL, key, own.header.value)
				if err := os.WriteFile(filepath.Join(w.config, "config.toml"), []byte(config), 0o600); err != nil {
					t.Fatal(err)
				}
				p := launch(t, w, []string{"--log-level", "trace"}, env)
				p.initialize()
				m := p.call("p", "session/prompt", promptOf(p.newSession(w), "hello"))
				if m.Error == nil {
					t.Errorf("answered %s", m.Result)
				}
				mu.Lock()
				defer mu.Unlock()
				if keys != 1 {
					t.Errorf("the provider was asked %d times with a key", keys)
				}
				if len(asked) > 0 {
					t.Errorf("the provider was told %q", asked)
				}
			})
		}
	}
}

// TestCommandLine_TellsNoSecret: nothing that the command line prints about
// the configuration holds a secret.
func TestCommandLine_TellsNoSecret(t *testing.T) {
	for _, args := range [][]string{
		{"config", "list"}, {"config", "list", "--json"}, {"config", "get", "providers"}, {"config", "get", "providers.canary.api_key"},
		{"config", "get", "providers.canary", "--json"}, {"config", "get", "mcp_servers"}, {"config", "validate"}, {"config", "validate", "--json"}, {"config", "schema"},
		{"doctor"}, {"doctor", "--json"}, {"version"}, {"config", "set", "acp.max_sessions", "0"},
	} {
		t.Run(strings.Join(args, " "), func(t *testing.T) {
			t.Parallel()
			w := (&scenario{}).prepare(t)
			cmd := exec.Command(binary, append([]string{"--config-dir", w.config, "--data-dir", w.data}, args...)...)
			cmd.Env = cleanEnv(w)
			out, err := cmd.CombinedOutput()
			if len(out) == 0 {
				t.Fatalf("it printed nothing: %v", err)
			}
			for _, found := range birds().find(out) {
				t.Errorf("it prints the canary %s:\n%s", found, out)
			}
			checkLeaks(t, newLeaks(), w, "")
		})
	}
}
