package providers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/berth-dev/berth/adapters/acpclient"
	"github.com/berth-dev/berth/adapters/jsonrpc"
	"github.com/berth-dev/berth/adapters/llm/llmtest"
	"github.com/berth-dev/berth/bootstrap"
	"github.com/berth-dev/berth/core/ports/porttest"
)

// patience bounds everything a test waits for. It matters only when something
// is wrong.
const patience = time.Minute

// rig is the program with one agent, on a model of a fake provider, and a
// client with one session.
type rig struct {
	t       testing.TB
	server  *llmtest.Server
	gone    <-chan time.Time // when each request to the provider ended
	client  *acpclient.Client
	dir     string // holds all directories of the program
	project string
	session string

	mu      sync.Mutex
	updates []acpclient.Update
	told    chan struct{} // gets a token after an update
}

// newRig starts the program with a provider of the dialect that answers with
// the replies, and is asked again twice. around may wrap the provider's
// handler.
func newRig(t testing.TB, d llmtest.Dialect, replies []porttest.Reply, around ...func(http.Handler) http.Handler) *rig {
	t.Helper()
	return newRigOf(t, d, replies, 2, around...)
}

// newRigOf is newRig with another number of retries.
func newRigOf(t testing.TB, d llmtest.Dialect, replies []porttest.Reply, retries int, around ...func(http.Handler) http.Handler) *rig {
	t.Helper()
	r := &rig{t: t, server: d.New().Replies(replies...), told: make(chan struct{}, 1)}
	r.gone = r.server.Gone()
	var handler http.Handler = r.server
	for _, wrap := range around {
		handler = wrap(handler)
	}
	wire := httptest.NewServer(handler)
	t.Cleanup(wire.Close)
	r.furnish()
	t.Cleanup(r.start(fmt.Sprintf("[agents.default]\nmodel = \"p/%s\"\nmax_output_tokens = 1000\n", d.Model) + provider("p", d, wire.URL, retries)))
	var err error
	if r.session, err = r.client.NewSession(t.Context(), r.project, nil); err != nil {
		t.Fatal(err)
	}
	return r
}

// provider is the configuration of one.
func provider(name string, d llmtest.Dialect, host string, retries int) string {
	return fmt.Sprintf(`[providers.%s]
type = %q
base_url = %q
api_key = %q
max_retries = %d
[providers.%s.models.%q]
context_window = 100000
`, name, d.Type, host+d.Path, llmtest.Canary, retries, name, d.Model)
}

// furnish makes the directories of the program, and a project with two files.
func (r *rig) furnish() {
	r.t.Helper()
	dir, err := filepath.EvalSymlinks(r.t.TempDir())
	if err != nil {
		r.t.Fatal(err)
	}
	r.dir, r.project = dir, filepath.Join(dir, "project")
	for _, made := range []string{r.project, filepath.Join(dir, "config")} {
		if err := os.Mkdir(made, 0o700); err != nil {
			r.t.Fatal(err)
		}
	}
	write(r.t, filepath.Join(r.project, "a.txt"), "the content of a\n")
	write(r.t, filepath.Join(r.project, "b.txt"), "the content of b\n")
}

// start runs the program with a configuration, connects a client, and returns
// what ends both.
func (r *rig) start(settings string) (stop func()) {
	r.t.Helper()
	config := filepath.Join(r.dir, "config")
	// Without a store that is there in time, as on a busy machine, nothing could
	// be loaded again.
	write(r.t, filepath.Join(config, "config.toml"), settings+"\n[store]\nrequired = true\n")
	cfg, err := bootstrap.LoadConfig(bootstrap.LoadOptions{ConfigDir: config, DataDir: filepath.Join(r.dir, "data"), Home: r.dir})
	if err != nil {
		r.t.Fatal(err)
	}
	app, err := bootstrap.New(cfg, bootstrap.WithLog(io.Discard))
	if err != nil {
		r.t.Fatal(err)
	}
	agentIn, clientOut := io.Pipe()
	clientIn, agentOut := io.Pipe()
	served := make(chan error, 1)
	go func() {
		served <- app.Serve(context.Background(), jsonrpc.NewStdio(agentIn, agentOut, 0))
		_ = agentOut.Close()
	}()
	client := acpclient.Connect(jsonrpc.NewStdio(clientIn, clientOut, 0), acpclient.Info{Name: "table"}, acpclient.Handlers{Update: r.update})
	stop = func() {
		_ = clientOut.Close()
		select {
		case <-served:
		case <-time.After(patience):
			r.t.Error("the program still serves")
		}
		_ = client.Close()
		_ = app.Stop(context.Background())
	}
	if _, err := client.Initialize(r.t.Context()); err != nil {
		stop()
		r.t.Fatal(err)
	}
	r.client = client
	return stop
}

func write(t testing.TB, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func (r *rig) update(u acpclient.Update) {
	r.mu.Lock()
	r.updates = append(r.updates, u)
	r.mu.Unlock()
	select {
	case r.told <- struct{}{}:
	default:
	}
}

// seen returns the text of all updates of a kind, joined.
func (r *rig) seen(kind string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var b strings.Builder
	for _, u := range r.updates {
		if u.Kind == kind {
			b.WriteString(u.Text)
		}
	}
	return b.String()
}

// count returns how many updates of a kind there were, and the newest.
func (r *rig) count(kind string) (n int, last acpclient.Update) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, u := range r.updates {
		if u.Kind == kind {
			n, last = n+1, u
		}
	}
	return n, last
}

// retries counts the notices that another attempt follows.
func (r *rig) retries() (n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, u := range r.updates {
		if u.Kind == "notice" && strings.Contains(u.Title, "trying again") {
			n++
		}
	}
	return n
}

// await waits until the client was told a text.
func (r *rig) await(text string) {
	r.t.Helper()
	limit := time.After(patience)
	for !strings.Contains(r.seen("agent_message_chunk"), text) {
		select {
		case <-r.told:
		case <-limit:
			r.t.Fatalf("the text %q does not come; there is %q", text, r.seen("agent_message_chunk"))
		}
	}
}

// turn runs a prompt and says how it ended: the stop reason, or the reason and
// code of the error.
func (r *rig) turn(text string) string {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), patience)
	defer cancel()
	out, err := r.client.Prompt(ctx, r.session, text)
	if err == nil {
		return out.StopReason
	}
	return ending(r.t, err)
}

// ending names an error of the protocol.
func ending(t testing.TB, err error) string {
	t.Helper()
	var e *jsonrpc.RemoteError
	if !errors.As(err, &e) {
		t.Fatalf("the prompt failed with %v", err)
	}
	if strings.Contains(e.Message, llmtest.Canary) {
		t.Errorf("the key stands in %q", e.Message)
	}
	if !strings.Contains(e.Message, `"p"`) {
		t.Errorf("the error %q does not name the provider", e.Message)
	}
	var data struct {
		Reason string `json:"reason"`
	}
	if err := json.Unmarshal(e.Data, &data); err != nil {
		t.Fatalf("the data %s of the error: %v", e.Data, err)
	}
	return fmt.Sprintf("%s (%d)", data.Reason, e.Code)
}

// reload loads the session anew and returns the answer's text that it shows.
func (r *rig) reload() string {
	r.t.Helper()
	if _, err := r.client.Call(r.t.Context(), "session/close", map[string]any{"sessionId": r.session}); err != nil {
		r.t.Fatal(err)
	}
	r.mu.Lock()
	r.updates = nil
	r.mu.Unlock()
	if err := r.client.Load(r.t.Context(), r.session, r.project); err != nil {
		r.t.Fatal(err)
	}
	return r.seen("agent_message_chunk")
}
