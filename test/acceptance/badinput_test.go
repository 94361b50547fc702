package acceptance

import (
	"crypto/sha256"
	"database/sql"
	"encoding/json"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
)

// TestBadInput_Configuration: what cannot be understood stops the start with
// the place, the key and what is allowed, and nothing is made or changed.
func TestBadInput_Configuration(t *testing.T) {
	for _, tt := range []struct {
		name, config string
		args, env    []string
		want         []string
	}{
		{"unknown key", "[acp]\nmax_sesions = 3\n", nil, nil, []string{"config.toml:2:1: acp.max_sesions: unknown key", "did you mean acp.max_sessions?", "allowed here"}},
		{"bad TOML", "[acp\nbusy = \"queue\"\n", nil, nil, []string{"config.toml:1:", "expected"}},
		{"wrong type", "[acp]\nmax_sessions = \"many\"\n", nil, nil, []string{"config.toml:2:16: acp.max_sessions: is a string", "from 1 to 100000"}},
		{"out of range", "[acp]\nmax_sessions = 0\n", nil, nil, []string{"acp.max_sessions: 0 is out of range"}},
		{"variable that names no key", "", nil, []string{"BERTH_acp__max_sesions=3"}, []string{"BERTH_acp__max_sesions", "names no setting"}},
		{"flag out of range", "", []string{"--max-sessions", "0"}, nil, []string{"0 is out of range"}},
		{"bad log level", "", []string{"--log-level", "loud"}, nil, []string{"loud", "trace, debug, info, warn, error, off"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := (&scenario{}).prepare(t)
			if err := os.RemoveAll(w.data); err != nil {
				t.Fatal(err)
			}
			file := filepath.Join(w.config, "config.toml")
			if err := os.WriteFile(file, []byte(tt.config), 0o600); err != nil {
				t.Fatal(err)
			}
			p := launch(t, w, tt.args, tt.env)
			p.endsWith(1, patience)
			said := p.stderr.String()
			for _, want := range tt.want {
				if !strings.Contains(said, want) {
					t.Errorf("it said %q, which does not hold %q", said, want)
				}
			}
			if n := strings.Count(strings.TrimSpace(said), "\n"); n != 0 {
				t.Errorf("one line is enough, it said:\n%s", said)
			}
			if m, open := <-p.lines; open {
				t.Errorf("standard output carries %+v", m)
			}
			if _, err := os.Stat(w.data); err == nil {
				t.Error("the data directory was made")
			}
			if now, _ := os.ReadFile(file); string(now) != tt.config {
				t.Errorf("the file was changed to %q", now)
			}
		})
	}
}

// TestBadInput_Store: a store that cannot be used is told once, in one clear
// message, and left as it is. The agent then works in memory and says that it
// keeps nothing, or does not start when the operator requires the store.
func TestBadInput_Store(t *testing.T) {
	for _, tt := range []struct {
		name  string
		spoil func(t *testing.T, w world) (dataDir string)
		want  []string
	}{
		{"data directory below a file", func(t *testing.T, w world) string {
			file := filepath.Join(w.config, "file")
			if err := os.WriteFile(file, []byte("x"), 0o600); err != nil {
				t.Fatal(err)
			}
			return filepath.Join(file, "data")
		}, []string{"data_dir", "BERTH_DATA_DIR"}},
		{"damaged store", func(t *testing.T, w world) string {
			return spoiled(t, w, func(path string) {
				if err := os.WriteFile(path, []byte(strings.Repeat("this was a database once ", 500)), 0o600); err != nil {
					t.Fatal(err)
				}
			})
		}, []string{"is damaged", "left as it is"}},
		{"damaged header", func(t *testing.T, w world) string {
			return spoiled(t, w, func(path string) {
				data, err := os.ReadFile(path)
				if err != nil {
					t.Fatal(err)
				}
				copy(data[16:100], strings.Repeat("\xee", 84))
				if err := os.WriteFile(path, data, 0o600); err != nil {
					t.Fatal(err)
				}
			})
		}, []string{"left as it is"}},
		{"newer schema", func(t *testing.T, w world) string {
			return spoiled(t, w, func(path string) {
				db, err := sql.Open("sqlite", path)
				if err != nil {
					t.Fatal(err)
				}
				if _, err := db.ExecContext(t.Context(), "PRAGMA user_version = 9999"); err != nil {
					t.Fatal(err)
				}
				if err := db.Close(); err != nil {
					t.Fatal(err)
				}
			})
		}, []string{"newer version", "schema 9999"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := (&scenario{model: "--- next always\ntext \"In memory.\"\n"}).prepare(t)
			w.data = tt.spoil(t, w)
			before := treeHash(t, w.data)
			p := launch(t, w, nil, nil)
			if p.initialize() {
				t.Error("initialize offers loadSession")
			}
			id := p.newSession(w)
			if got := stopReason(p.call("p", "session/prompt", promptOf(id, "hello"))); got != "end_turn" {
				t.Errorf("the prompt was answered %s", got)
			}
			if m := p.call("l", "session/load", `{"sessionId":"`+id+`","cwd":`+quoted(w.work)+`,"mcpServers":[]}`); !strings.Contains(string(m.Error), "-32601") {
				t.Errorf("load was answered %s%s", m.Result, m.Error)
			}
			p.in.Close()
			p.endsWith(0, patience)
			said := p.stderr.String()
			if n := strings.Count(said, "sessions are not saved"); n != 1 {
				t.Errorf("it was said %d times that sessions are not saved:\n%s", n, said)
			}
			for _, want := range tt.want {
				if !strings.Contains(said, want) {
					t.Errorf("it said %q, which does not hold %q", said, want)
				}
			}
			if after := treeHash(t, w.data); after != before {
				t.Errorf("the data directory changed from\n%s\nto\n%s", before, after)
			}

			strict := launch(t, w, nil, []string{"BERTH_store__required=true"})
			strict.endsWith(1, patience)
			if said := strict.stderr.String(); !strings.Contains(said, "store.required") || !strings.Contains(said, tt.want[0]) {
				t.Errorf("with store.required it said %q", said)
			}
			if after := treeHash(t, w.data); after != before {
				t.Errorf("with store.required the data directory changed to\n%s", after)
			}
		})
	}
}

// TestLogLevel_Off: a log that is off says nothing, not even that sessions are
// not saved, and the agent works.
func TestLogLevel_Off(t *testing.T) {
	w := (&scenario{model: "--- next always\ntext \"In memory.\"\n"}).prepare(t)
	file := filepath.Join(w.config, "file")
	if err := os.WriteFile(file, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	w.data = filepath.Join(file, "data") // cannot be made
	p := launch(t, w, []string{"--log-level", "off"}, nil)
	p.initialize()
	if got := stopReason(p.call("p", "session/prompt", promptOf(p.newSession(w), "hello"))); got != "end_turn" {
		t.Errorf("the prompt was answered %s", got)
	}
	p.in.Close()
	p.endsWith(0, patience)
	if said := p.stderr.String(); said != "" {
		t.Errorf("it said %q", said)
	}
}

// spoiled makes a real store with a session in it and then spoils the file.
func spoiled(t *testing.T, w world, spoil func(path string)) string {
	t.Helper()
	p := launch(t, w, nil, []string{"BERTH_store__required=true"})
	p.initialize()
	p.newSession(w)
	p.in.Close()
	p.endsWith(0, patience)
	spoil(filepath.Join(w.data, "sessions", "acp-sessions.db"))
	return w.data
}

// treeHash names every file below a directory with its content's hash. The
// files that SQLite needs beside the store to look at it do not count.
func treeHash(t *testing.T, dir string) string {
	t.Helper()
	var b strings.Builder
	_ = filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() || strings.HasSuffix(path, "-shm") || strings.HasSuffix(path, ".lock") {
			return nil //nolint:nilerr // what cannot be read has no content to keep
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if strings.HasSuffix(path, "-wal") && len(data) == 0 {
			return nil
		}
		fmt.Fprintf(&b, "%s %x\n", path, sha256.Sum256(data))
		return nil
	})
	return b.String()
}

// TestBadInput_Model: a model that cannot be used is one clear error, nothing
// of the user's is lost, and the next prompt works when the cause is gone.
func TestBadInput_Model(t *testing.T) {
	const key = "sk-not-a-real-key-4711"
	for _, tt := range []struct {
		name   string
		status int // of the server; 0: nobody listens

		code string
		want []string
	}{
		{"nobody listens", 0, "-32603", []string{`provider \"x\" cannot be reached`, "providers.x.base_url"}},
		{"wrong key", http.StatusUnauthorized, "-32000", []string{"Authentication required", `provider \"x\" refused its API key`}},
		{"the server is broken", http.StatusInternalServerError, "-32603", []string{`provider \"x\"`}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var healthy atomic.Bool
			mux := http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
				if !healthy.Load() {
					rw.WriteHeader(tt.status)
					fmt.Fprintf(rw, `{"error":{"message":"no: %s"}}`, r.Header.Get("Authorization"))
					return
				}
				rw.Header().Set("Content-Type", "text/event-stream")
				fmt.Fprint(rw, "data: {\"choices\":[{\"delta\":{\"content\":\"Hello.\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n")
			})
			listener, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			address := listener.Addr().String()
			if tt.status == 0 {
				listener.Close()
			} else {
				server := &httptest.Server{Listener: listener, Config: &http.Server{Handler: mux}}
				server.Start()
				defer server.Close()
			}
			w := (&scenario{}).prepare(t)
			config := "[providers.x]\ntype = \"openai-compatible\"\nbase_url = \"http://" + address + "/v1\"\nmax_retries = 0\napi_key = \"" + key + "\"\n[agents.default]\nmodel = \"x/m\"\n"
			if err := os.WriteFile(filepath.Join(w.config, "config.toml"), []byte(config), 0o600); err != nil {
				t.Fatal(err)
			}
			p := launch(t, w, []string{"--log-level", "trace"}, []string{"BERTH_store__required=true"})
			p.initialize()
			id := p.newSession(w)
			m := p.call("p", "session/prompt", promptOf(id, "do not lose me"))
			checkError(t, m, tt.code, tt.want...)

			if tt.status == 0 {
				if listener, err = net.Listen("tcp", address); err != nil {
					t.Skipf("the address was taken meanwhile: %v", err)
				}
				server := &httptest.Server{Listener: listener, Config: &http.Server{Handler: mux}}
				server.Start()
				defer server.Close()
			}
			healthy.Store(true)
			if got := stopReason(p.call("again", "session/prompt", promptOf(id, "again"))); got != "end_turn" {
				t.Errorf("the next prompt was answered %s", got)
			}
			p.call("load", "session/load", `{"sessionId":"`+id+`","cwd":`+quoted(w.work)+`,"mcpServers":[]}`)
			replay := ""
			for _, m := range p.seen {
				replay += string(m.Params)
			}
			for _, want := range []string{"do not lose me", "This turn failed", "Hello."} {
				if !strings.Contains(replay, want) {
					t.Errorf("the history does not hold %q", want)
				}
			}
			if said := p.stderr.String(); strings.Contains(said, key) || strings.Contains(replay+string(m.Error), key) {
				t.Error("the key was told")
			}
		})
	}
}

// TestBadInput_MissingKey: without a key nothing is asked of the provider.
func TestBadInput_MissingKey(t *testing.T) {
	w := (&scenario{}).prepare(t)
	if err := os.WriteFile(filepath.Join(w.config, "config.toml"), []byte("[agents.default]\nmodel = \"openai/gpt-x\"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	p := launch(t, w, nil, []string{"OPENAI_API_KEY="})
	p.initialize()
	m := p.call("new", "session/new", `{"cwd":`+quoted(w.work)+`,"mcpServers":[]}`)
	checkError(t, m, "-32000", "Authentication required", "has no API key", "OPENAI_API_KEY")
}

// TestBadInput_Cwd: a session never gets another directory than the one that
// was asked for.
func TestBadInput_Cwd(t *testing.T) {
	w := (&scenario{files: map[string][]byte{"file.txt": []byte("x")}}).prepare(t)
	p := launch(t, w, nil, nil)
	p.initialize()
	for name, tt := range map[string]struct{ cwd, want string }{
		"missing":    {filepath.Join(w.work, "nowhere"), "nowhere"},
		"a file":     {filepath.Join(w.work, "file.txt"), "file.txt"},
		"relative":   {"sub/dir", "sub/dir"},
		"empty":      {"", "cwd"},
		"the root":   {"/", "/"},
		"our data":   {w.data, w.data},
		"odd letter": {`C:\x`, `C:`},
	} {
		m := p.call(name, "session/new", `{"cwd":`+quoted(tt.cwd)+`,"mcpServers":[]}`)
		checkError(t, m, "-32602", tt.want)
	}
	if m := p.call("list", "session/list", `{}`); !strings.Contains(string(m.Result), `"sessions":[]`) {
		t.Errorf("sessions were made: %s", m.Result)
	}
	if _, err := os.Stat(filepath.Join(w.work, "nowhere")); err == nil {
		t.Error("the missing directory was made")
	}
}

func checkError(t *testing.T, m message, code string, want ...string) {
	t.Helper()
	var e struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
	}
	if json.Unmarshal(m.Error, &e) != nil || fmt.Sprint(e.Code) != code {
		t.Errorf("answered %s%s, want an error %s", m.Result, m.Error, code)
	}
	for _, w := range want {
		if !strings.Contains(string(m.Error), w) {
			t.Errorf("the error %s does not hold %q", m.Error, w)
		}
	}
}
