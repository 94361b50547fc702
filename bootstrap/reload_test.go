package bootstrap

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/berth-dev/berth/adapters/jsonrpc"
	"github.com/berth-dev/berth/adapters/memory"
	"github.com/berth-dev/berth/adapters/metrics"
	"github.com/berth-dev/berth/core/domain"
)

// talker is a client of an App.
type talker struct {
	t       *testing.T
	frames  jsonrpc.Frames
	served  chan error // what served it, if that is awaited
	session string
	n       int
}

// talk connects a client over pipes and opens a session.
func talk(t *testing.T, app *App) *talker {
	t.Helper()
	in, client := io.Pipe()
	read, out := io.Pipe()
	k := &talker{t: t, frames: jsonrpc.NewStdio(read, client, 0), served: make(chan error, 1)}
	go func() { // joined by hangUp
		err := app.Serve(context.Background(), jsonrpc.NewStdio(in, out, 0))
		out.Close()
		k.served <- err
	}()
	k.open()
	return k
}

// open begins the conversation.
func (k *talker) open() {
	k.t.Helper()
	k.ask("initialize", `{"protocolVersion":1}`)
	opened := k.ask("session/new", `{"cwd":"`+filepath.ToSlash(k.t.TempDir())+`","mcpServers":[]}`)
	id := regexp.MustCompile(`"sessionId":"([^"]+)"`).FindStringSubmatch(opened)
	if id == nil {
		k.t.Fatalf("no session: %s", opened)
	}
	k.session = id[1]
}

// send sends a request and returns its id.
func (k *talker) send(method, params string) string {
	k.t.Helper()
	k.n++
	id := fmt.Sprint(k.n)
	if err := k.frames.Write([]byte(`{"jsonrpc":"2.0","id":` + id + `,"method":"` + method + `","params":` + params + "}")); err != nil {
		k.t.Fatal(err)
	}
	return id
}

// until reads messages up to the one that holds a text, and returns all of
// them.
func (k *talker) until(text string) string {
	k.t.Helper()
	var all strings.Builder
	for {
		m, err := k.frames.Read()
		if err != nil {
			k.t.Fatalf("the output ended without %s (%v):\n%s", text, err, all.String())
		}
		all.WriteString(string(m) + "\n")
		if strings.Contains(string(m), text) {
			return all.String()
		}
	}
}

func (k *talker) ask(method, params string) string {
	k.t.Helper()
	return k.until(`"id":` + k.send(method, params) + `,`)
}

func (k *talker) prompt(text string) string {
	return k.send("session/prompt", `{"sessionId":"`+k.session+`","prompt":[{"type":"text","text":"`+text+`"}]}`)
}

func (k *talker) answer(id string) string { k.t.Helper(); return k.until(`"id":` + id + `,`) }

// hangUp ends a client that talks over pipes.
func (k *talker) hangUp() {
	k.t.Helper()
	if err := k.frames.Close(); err != nil {
		k.t.Error(err)
	}
	var cause *domain.Cause
	if err := <-k.served; err != nil && !errors.Is(err, io.EOF) && !errors.As(err, &cause) {
		k.t.Errorf("served with %v", err)
	}
}

// written is a configuration file that changes.
type written struct {
	t   *testing.T
	dir string
}

func (w written) set(text string) {
	w.t.Helper()
	if err := os.WriteFile(filepath.Join(w.dir, "config.toml"), []byte(text), 0o600); err != nil {
		w.t.Fatal(err)
	}
}

func (w written) read() (*Config, error) {
	return LoadConfig(LoadOptions{ConfigDir: w.dir, DataDir: filepath.Join(w.dir, "data"), Home: w.dir, Env: []string{"SECOND_KEY=key-of-the-second-kind"}})
}

// start makes an App of a first text of the file.
func (w written) start(text string, opts ...Option) *App {
	w.t.Helper()
	w.set(text)
	cfg, err := w.read()
	if err != nil {
		w.t.Fatal(err)
	}
	app, err := New(cfg, append([]Option{WithStore(keeping{memory.New(time.Now)})}, opts...)...)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() {
		if err := app.Stop(context.Background()); err != nil {
			w.t.Errorf("stop: %v", err)
		}
	})
	return app
}

// scripts writes scripts of models and returns the settings that name them.
func (w written) scripts(byName map[string]string) string {
	text := ""
	for name, script := range byName {
		path := filepath.Join(w.dir, name+".script")
		if err := os.WriteFile(path, []byte(script), 0o600); err != nil {
			w.t.Fatal(err)
		}
		text += "[providers." + name + "]\ntype = \"scripted\"\nscript = \"" + filepath.ToSlash(path) + "\"\n"
	}
	return text
}

// A reload in the middle of a turn: the turn ends as it began, the next one of
// the same session on the same connection has the new model, prompt and rules.
func TestReload_SessionsGoOn(t *testing.T) {
	w := written{t, t.TempDir()}
	before := w.scripts(map[string]string{"old": "--- next always\ntext \"the old \"\ndelay 300ms\ntext \"goes on\"\n"})
	after := w.scripts(map[string]string{"new": "--- next always\nexpect \"You are new here\"\ntext \"the new\"\n"})
	app := w.start(before+"[agents.a]\nmodel = \"old/m\"\n", WithLog(&safeBuffer{}))
	k := talk(t, app)
	running := k.prompt("one")
	k.until("the old ")

	w.set(after + "[agents.a]\nmodel = \"new/m\"\nsystem_prompt = \"You are new here\"\n[profiles.default]\nlevel = \"read_only\"\n[agents.b]\n[acp]\ndefault_agent = \"b\"\n")
	cfg, err := w.read()
	if err != nil {
		t.Fatal(err)
	}
	taken, left, err := app.Reload(cfg)
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"agents.a.model", "agents.a.system_prompt", "profiles.default.level", "acp.default_agent", "providers.old.script", "providers.new.script"} {
		if !slices.Contains(taken, key) {
			t.Errorf("%s did not take effect; %v did", key, taken)
		}
	}
	if len(left) > 0 {
		t.Errorf("left for the next start: %v", left)
	}
	if got := k.answer(running); !strings.Contains(got, "goes on") || !strings.Contains(got, "end_turn") {
		t.Errorf("the turn that ran ended with %s", got)
	}
	if got := k.answer(k.prompt("two")); !strings.Contains(got, "the new") || !strings.Contains(got, "end_turn") {
		t.Errorf("the next turn ended with %s", got)
	}
	if a, ok := app.p.Agents.Agent("a"); !ok || a.Policy.Level != domain.LevelReadOnly {
		t.Errorf("the agent is %+v", a)
	}
	if got := app.p.Agents.Default(); got != "b" {
		t.Errorf("the default agent is %q", got)
	}
	if b := app.now.config(); b != cfg {
		t.Error("the configuration is the old one")
	}
	k.hangUp()
}

// What cannot be used changes nothing, and the log says why.
func TestReload_RefusesWhatIsBroken(t *testing.T) {
	const good = "[agents.a]\nmodel = \"offline/offline\"\n"
	for _, tt := range []struct{ name, text, says string }{
		{"no TOML", "[agents.a", "config.toml"},
		{"an unknown key", good + "[gateway]\nlisten_on = \"x\"\n", "listen_on"},
		{"a rule that means something else", good + "[profiles.default]\ndeny = [{rule = \"shell(git push)\", match = [\"git pull\"]}]\n", "git pull"},
		{"a model that names no provider", "[agents.a]\nmodel = \"nobody/m\"\n", "nobody"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := written{t, t.TempDir()}
			var log safeBuffer
			m := metrics.New(metrics.Config{})
			app := w.start(good, WithLog(&log), withMetrics(m))
			before := app.now.config()
			w.set(tt.text)
			if err := app.reload(w.read); err == nil {
				t.Fatal("it was taken")
			}
			if app.now.config() != before {
				t.Error("the configuration is another one")
			}
			if a, ok := app.p.Agents.Agent("a"); !ok || a.Model != offlineModel {
				t.Errorf("the agent is %+v", a)
			}
			if !strings.Contains(string(m.Text()), `berth_config_reloads_total{outcome="refused"} 1`) {
				t.Error("it was not counted")
			}
			k := talk(t, app)
			if got := k.answer(k.prompt("hello")); !strings.Contains(got, "end_turn") {
				t.Errorf("a turn ended with %s", got)
			}
			k.hangUp()
			if err := app.Stop(context.Background()); err != nil {
				t.Fatal(err)
			}
			if got := log.String(); !strings.Contains(got, "the one before stays") || !strings.Contains(got, tt.says) {
				t.Errorf("the log does not say why (%q):\n%s", tt.says, got)
			}
		})
	}
}

// The log says what took effect and what did not, names no value, and masks
// secrets of the new configuration and of the old one.
func TestReload_IsLogged(t *testing.T) {
	w := written{t, t.TempDir()}
	head := "[log]\nlevel = \"info\"\n[providers.p]\ntype = \"openai\"\n"
	var log safeBuffer
	m := metrics.New(metrics.Config{})
	app := w.start(head+"api_key = \"key-of-the-first-kind\"\n", WithLog(&log), withMetrics(m))
	w.set(head + "api_key = \"env:SECOND_KEY\"\n[gateway]\nlisten = \"127.0.0.1:9999\"\n[acp]\nmax_sessions = 3\n[mcp_servers.notes]\ncommand = \"notes\"\n")
	if err := app.reload(w.read); err != nil {
		t.Fatal(err)
	}
	app.p.Observer.Observe(t.Context(), domain.Trouble{Where: "a test", Err: errors.New("key-of-the-first-kind and key-of-the-second-kind")})
	if got := app.now.secretVariables(); !slices.Contains(got, "SECOND_KEY") {
		t.Errorf("commands may see SECOND_KEY; hidden are %v", got)
	}
	if err := app.reload(w.read); err != nil { // the same again
		t.Fatal(err)
	}
	if err := app.Stop(context.Background()); err != nil {
		t.Fatal(err)
	}
	got := log.String()
	for _, want := range []string{
		"the configuration was reloaded; changed: providers.p.api_key", "take effect with the next start: acp.max_sessions, gateway.listen",
		"changed: nothing", "mcp_servers.notes: ", "[secret] and [secret]",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("the log does not say %q:\n%s", want, got)
		}
	}
	if strings.Contains(got, "of-the-") {
		t.Errorf("the log holds a secret:\n%s", got)
	}
	if !strings.Contains(string(m.Text()), `berth_config_reloads_total{outcome="applied"} 2`) {
		t.Error("the reloads were not counted")
	}
}

// The log follows its level at once, and its name: what rotates logs renames
// the file and asks for a reload.
func TestReload_Log(t *testing.T) {
	w := written{t, t.TempDir()}
	dir := filepath.Join(w.dir, "log")
	name, old := filepath.Join(dir, "berth.log"), filepath.Join(dir, "berth.log.1")
	text := func(level string) string { return fmt.Sprintf("[log]\nfile = %q\nlevel = %q\n", name, level) }
	app := w.start(text("warn"))
	note := func(what string) { app.p.Observer.Observe(t.Context(), domain.Noted{What: what}) }
	reload := func() {
		t.Helper()
		if err := app.reload(w.read); err != nil {
			t.Fatal(err)
		}
	}
	note("too quiet")
	w.set(text("info"))
	reload()
	note("loud enough")
	if runtime.GOOS != "windows" { // there a file that is open keeps its name
		if err := os.Rename(name, old); err != nil {
			t.Fatal(err)
		}
	}
	reload()
	note("after the rotation")
	if err := os.WriteFile(filepath.Join(w.dir, "config.toml"), []byte("[log\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := app.reload(w.read); err == nil {
		t.Error("a broken configuration was taken")
	}
	if err := app.Stop(context.Background()); err != nil {
		t.Fatal(err)
	}
	now, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	before, err := os.ReadFile(old)
	if err != nil && runtime.GOOS != "windows" {
		t.Fatal(err)
	}
	all := string(before) + string(now)
	if strings.Contains(all, "too quiet") || !strings.Contains(all, "loud enough") || !strings.Contains(all, "changed: log.level") {
		t.Errorf("the level was not followed:\n%s", all)
	}
	for _, want := range []string{"after the rotation", "the configuration was not reloaded"} {
		if !strings.Contains(string(now), want) {
			t.Errorf("the file of that name lacks %q:\n%s", want, now)
		}
	}
}

// A file that cannot be opened again is told of in the one there was.
func TestLogFile(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "log")
	l, err := openLogFile(filepath.Join(dir, "x"))
	if err != nil {
		t.Fatal(err)
	}
	if runtime.GOOS != "windows" { // there nothing that is open can be moved
		if err := os.Rename(dir, dir+"2"); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(dir, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := l.reopen(); err == nil || !strings.Contains(err.Error(), "log.file") {
			t.Errorf("a file stands in the way: %v", err)
		}
	}
	if _, err := l.Write([]byte("line\n")); err != nil {
		t.Error(err)
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
}

// Ports that somebody gave stay theirs.
func TestReload_GivenPortsStay(t *testing.T) {
	w := written{t, t.TempDir()}
	app := w.start("[agents.a]\n", WithLog(&safeBuffer{}), WithModels(failing{}))
	w.set("[agents.b]\n")
	if err := app.reload(w.read); err != nil {
		t.Fatal(err)
	}
	if _, ok := app.p.Models.(failing); !ok {
		t.Error("the models are others")
	}
	if _, ok := app.p.Agents.Agent("b"); !ok {
		t.Error("the agents are the old ones")
	}
}

// Reloads, turns and looks at what there is may come at the same time.
func TestReload_Together(t *testing.T) {
	w := written{t, t.TempDir()}
	text := w.scripts(map[string]string{"s": "--- next always\ntext \"hi\"\n"}) + "[agents.a]\nmodel = \"s/m\"\n"
	app := w.start(text, WithLog(&safeBuffer{}))
	k := talk(t, app)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := range 30 {
			w.set(text + fmt.Sprintf("title = \"%d\"\n", i))
			if err := app.reload(w.read); err != nil {
				t.Error(err)
			}
			app.now.secretValues()
			app.p.Agents.All()
		}
	}()
	for range 20 {
		if got := k.answer(k.prompt("go")); !strings.Contains(got, "end_turn") {
			t.Errorf("a turn ended with %s", got)
		}
	}
	<-done
	k.hangUp()
}

// What is new, or gone, is named once and not by each of its defaults.
func TestReload_Wholes(t *testing.T) {
	w := written{t, t.TempDir()}
	log := &safeBuffer{}
	app := w.start("[log]\nlevel = \"info\"\n[agents.a]\n[agents.a2]\n[providers.old]\ntype = \"openai\"\n", WithLog(log))
	w.set("[log]\nlevel = \"info\"\n[agents.a]\ntitle = \"A\"\n[agents.a2]\n[agents.c]\n[profiles.tight]\nlevel = \"read_only\"\n[store]\nrequired = true\n")
	if err := app.reload(w.read); err != nil {
		t.Fatal(err)
	}
	if err := app.Stop(context.Background()); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"changed: agents.a.title, agents.c (new), profiles.tight (new), providers.old (removed)\n", "with the next start: store.required\n",
	} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the log does not say %q:\n%s", want, log)
		}
	}
}

func TestSome(t *testing.T) {
	many := make([]string, maxNamed+2)
	for i := range many {
		many[i] = fmt.Sprint(i)
	}
	if got := some(many); !strings.HasSuffix(got, "19 and 2 more") {
		t.Errorf("some of many: %s", got)
	}
}
