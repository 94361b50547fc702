package acceptance

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/tools/txtar"

	"github.com/berth-dev/berth/adapters/jsonrpc"
	"github.com/berth-dev/berth/adapters/jsonrpc/transcript"
	"github.com/berth-dev/berth/adapters/memory"
	"github.com/berth-dev/berth/bootstrap"
	"github.com/berth-dev/berth/core/domain"
	"github.com/berth-dev/berth/core/ports"
)

var update = flag.Bool("update", false, "rewrite the agent's lines of the scripts with what it answered")

// binary is the built command, made once by TestMain.
var binary string

// binaryVariable names a variable that holds the path of a command that was
// built before.
const binaryVariable = "BERTH_TEST_BINARY"

func TestMain(m *testing.M) {
	bootstrap.Pulse()
	becomeStage()
	os.Exit(testMain(m))
}

func testMain(m *testing.M) int {
	flag.Parse()
	if binary = os.Getenv(binaryVariable); binary != "" {
		return runAll(m)
	}
	dir, err := os.MkdirTemp("", "berth-acceptance-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	if err := os.Chmod(dir, 0o755); err != nil { // other users run it, too
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	binary = filepath.Join(dir, "berth")
	if runtime.GOOS == "windows" {
		binary += ".exe"
	}
	build := exec.Command("go", "build", "-o", binary, "github.com/berth-dev/berth/cmd/berth")
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "build the binary: %v\n%s", err, out)
		return 1
	}
	return runAll(m)
}

func runAll(m *testing.M) int {
	if err := setCanaries(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}

// TestScripts plays every case in process, one after the other: some change the
// environment.
func TestScripts(t *testing.T) {
	playAll(t, func(t *testing.T, s *scenario) {
		if slices.Contains(s.modes, "inproc") {
			t.Run("inproc", func(t *testing.T) { runInproc(t, s) })
		}
	})
}

// TestScripts_Binary plays every case in the modes that start processes, several
// at a time.
func TestScripts_Binary(t *testing.T) {
	playAll(t, func(t *testing.T, s *scenario) {
		t.Parallel()
		for _, mode := range s.modes {
			if mode == "inproc" {
				continue
			}
			t.Run(mode, func(t *testing.T) {
				t.Parallel()
				if mode == "stdio" {
					runStdio(t, s)
				} else {
					runGateway(t, s, mode == "bridge")
				}
			})
		}
	})
}

// playAll makes a test of every case that there is.
func playAll(t *testing.T, play func(*testing.T, *scenario)) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no cases: %v", err)
	}
	for _, file := range files {
		s, err := parseScenario(file)
		if err != nil {
			t.Error(err)
			continue
		}
		t.Run(s.name, func(t *testing.T) { play(t, s) })
	}
}

// deadline bounds a script in real time; in a bubble time is free. A script may
// start several processes.
const deadline = 2 * patience

// durable is a memory store that counts as one that keeps sessions: the test
// keeps it over the restarts of a script.
type durable struct{ ports.Store }

func (durable) Durable() bool { return true }
func (durable) Close() error  { return nil }

// inproc runs Apps inside the test's bubble.
type inproc struct {
	t     *testing.T
	cfg   *bootstrap.Config
	store ports.Store
	log   *logBuffer
	mon   *monitor

	mu    sync.Mutex
	app   *bootstrap.App
	conns map[string]chan error
}

func runInproc(t *testing.T, s *scenario) {
	w := s.prepare(t)
	for _, name := range s.unset {
		t.Setenv(name, "")
	}
	kept, log := newLeaks(), &logBuffer{}
	cfg, err := bootstrap.LoadConfig(bootstrap.LoadOptions{ConfigDir: w.config, DataDir: w.data, Home: w.home, Env: cleanEnv(w), Flags: map[string]string{"log.level": "trace"}})
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		r := &inproc{t: t, cfg: cfg, log: log, mon: newMonitor(true), conns: map[string]chan error{}}
		if cfg.Store.Driver != "memory" {
			r.store = durable{memory.New(time.Now)}
		}
		r.start()
		ctx, cancel := context.WithTimeout(t.Context(), 24*time.Hour)
		defer cancel()
		run, err := transcript.Play(ctx, s.script, transcript.Options{
			Connect: r.connect, Monitor: watchers(r.mon.frame, kept.frame), Vars: map[string]string{"WORK": w.work, "DATA": w.data, "CONFIG": w.config},
			After: func(ctx context.Context, d time.Duration) error { time.Sleep(d); return nil },
			Settle: func(context.Context) error {
				time.Sleep(2 * time.Second)
				synctest.Wait()
				return nil
			},
			Update: *update,
		})
		s.judge(t, run, err, r.mon, r.log.String())
		r.stop()
		// What was left behind after a cancel ends by itself; nothing else may
		// be there when the bubble ends (I9).
		time.Sleep(time.Minute)
		s.checkLog(t, r.log.String())
	})
	s.checkFiles(t, w)
	checkLeaks(t, kept, w, log.String())
}

// watchers makes one watcher of frames of two.
func watchers(a, b func(transcript.Frame)) func(transcript.Frame) {
	return func(f transcript.Frame) { a(f); b(f) }
}

// held is the sandbox of sessions in this process, where nothing can be one.
// It only says so: whatever would run a command asks the tools' own sandbox.
type held struct{}

func (held) Posture(context.Context, string) domain.Posture {
	return domain.Posture{Word: domain.PostureStrong, Backend: "namespaces"}
}

// Known says nothing, as where nothing was tried yet.
func (held) Known(string) (domain.Posture, bool) { return domain.Posture{}, false }

func (r *inproc) start() {
	opts := []bootstrap.Option{bootstrap.WithLog(r.log), bootstrap.WithSandbox(held{})}
	if r.store != nil {
		opts = append(opts, bootstrap.WithStore(r.store))
	}
	app, err := bootstrap.New(r.cfg, opts...)
	if err != nil {
		r.t.Fatal(err)
	}
	r.app = app
}

// connect serves a new connection of the App. Connecting again as the same
// client ends the App and starts another one, as a new process would.
func (r *inproc) connect(_ context.Context, client string) (jsonrpc.Frames, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if old := r.conns[client]; old != nil {
		<-old
		delete(r.conns, client)
		if err := r.app.Stop(r.t.Context()); err != nil {
			return nil, err
		}
		r.start()
		r.mon.reset(client)
	}
	toAgent, fromClient := io.Pipe()
	toClient, fromAgent := io.Pipe()
	done := make(chan error, 1)
	app := r.app
	go func() {
		done <- app.Serve(context.Background(), jsonrpc.NewStdio(toAgent, fromAgent, int(r.cfg.ACP.MaxMessageBytes)))
	}()
	r.conns[client] = done
	return jsonrpc.NewStdio(toClient, fromClient, 0), nil
}

// stop ends everything.
func (r *inproc) stop() {
	for _, done := range r.conns {
		<-done
	}
	if err := r.app.Stop(context.Background()); err != nil {
		r.t.Errorf("stop: %v", err)
	}
}

// stdio runs the binary.
type stdio struct {
	t    *testing.T
	s    *scenario
	w    world
	mon  *monitor
	log  *logBuffer
	mu   sync.Mutex
	now  map[string]*process
	last *process
	ends []*process
	cut  bool
}

type process struct {
	cmd    *exec.Cmd
	done   chan struct{}
	killed bool
}

func runStdio(t *testing.T, s *scenario) {
	w := s.prepare(t)
	s.warmUp(t, w)
	kept := newLeaks()
	r := &stdio{t: t, s: s, w: w, mon: newMonitor(false), log: &logBuffer{}, now: map[string]*process{}}
	ctx, cancel := context.WithTimeout(t.Context(), deadline)
	defer cancel()
	run, err := transcript.Play(ctx, s.script, transcript.Options{
		Connect: r.connect, Monitor: watchers(r.mon.frame, kept.frame), Vars: map[string]string{"WORK": w.work, "DATA": w.data, "CONFIG": w.config},
		Kill: r.kill, Exit: r.exit, Update: *update,
	})
	for _, p := range r.ends {
		select {
		case <-p.done:
			if code := p.cmd.ProcessState.ExitCode(); code != 0 && !p.killed {
				t.Errorf("the agent ended with code %d", code)
			}
		case <-time.After(patience):
			t.Errorf("I9: the agent still runs %v after its input ended", patience)
			_ = p.cmd.Process.Kill()
			<-p.done
		}
	}
	s.judge(t, run, err, r.mon, r.log.String())
	s.checkLog(t, r.log.String())
	s.checkFiles(t, w)
	checkLeaks(t, kept, w, r.log.String())
}

// warmUp runs the case's warm command where the agent will run its own, with
// the same home. What it prints and how it ends do not matter.
func (s *scenario) warmUp(t *testing.T, w world) {
	if s.warm == "" {
		return
	}
	cmd := exec.CommandContext(t.Context(), "sh", "-c", s.warm)
	cmd.Dir, cmd.Env = w.work, append(os.Environ(), "HOME="+w.home)
	var failed *exec.ExitError
	if out, err := cmd.CombinedOutput(); err != nil && !errors.As(err, &failed) {
		t.Fatalf("%s: %v\n%s", s.warm, err, out)
	}
}

func (r *stdio) connect(_ context.Context, client string) (jsonrpc.Frames, error) {
	cmd := exec.Command(binary, "acp", "--config-dir", r.w.config, "--data-dir", r.w.data, "--log-level", "trace")
	cmd.Dir = r.w.config
	cmd.Env = append(slices.DeleteFunc(cleanEnv(r.w), func(kv string) bool {
		name, _, _ := strings.Cut(kv, "=")
		return slices.Contains(r.s.unset, name)
	}), "BERTH_store__required=true") // a loaded machine may take longer than initialize waits
	cmd.Stderr = r.log
	p, frames, err := pipe(cmd)
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.now[client] != nil {
		r.mon.reset(client)
	}
	r.now[client], r.last = p, p
	r.ends = append(r.ends, p)
	return frames, nil
}

// pipe starts a command with a transport on its standard input and output.
func pipe(cmd *exec.Cmd) (*process, jsonrpc.Frames, error) {
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, nil, err
	}
	out, outEnd, err := os.Pipe()
	if err != nil {
		return nil, nil, err
	}
	cmd.Stdout = outEnd
	err = cmd.Start()
	outEnd.Close()
	if err != nil {
		out.Close()
		return nil, nil, err
	}
	return wait(cmd), jsonrpc.NewStdio(out, stdin, 0), nil
}

// wait follows a command that was started to its end.
func wait(cmd *exec.Cmd) *process {
	p := &process{cmd: cmd, done: make(chan struct{})}
	go func() {
		defer close(p.done)
		_ = cmd.Wait()
	}()
	return p
}

func (r *stdio) kill(_ context.Context, client string) error {
	r.mu.Lock()
	p := r.now[client]
	r.mu.Unlock()
	if p == nil {
		return errors.New("nothing to kill")
	}
	p.killed = true
	err := p.cmd.Process.Kill()
	<-p.done
	return err
}

func (r *stdio) exit(ctx context.Context) (int, error) {
	select {
	case <-r.last.done:
		return r.last.cmd.ProcessState.ExitCode(), nil
	case <-ctx.Done():
		return 0, errors.New("the agent still runs")
	}
}

// judge reports how a play went: the script's own verdict and the monitors'.
func (s *scenario) judge(t *testing.T, run *transcript.Run, err error, mon *monitor, log string) {
	t.Helper()
	var f *transcript.Failure
	switch {
	case errors.As(err, &f):
		t.Errorf("%s:%d: %v\nlog:\n%s", s.file, s.at+f.Line-1, err, log)
	case err != nil:
		t.Errorf("%s: %v\nlog:\n%s", s.file, err, log)
	}
	for _, line := range mon.finish(s.endsOpen() || err != nil) {
		t.Errorf("%s: %s", s.file, line)
	}
	if strings.Contains(log, "panic") || strings.Contains(log, "late update") {
		t.Errorf("%s: the log tells of an internal fault:\n%s", s.file, log)
	}
	if *update && err == nil {
		s.rewrite(t, run.Script)
	}
}

// endsOpen reports whether the script leaves requests without an answer on
// purpose: it cuts or kills, or simply ends.
func (s *scenario) endsOpen() bool {
	for _, l := range s.script.Lines {
		if l.Op == transcript.Kill || l.Op == transcript.Drop {
			return true
		}
	}
	return false
}

func (s *scenario) rewrite(t *testing.T, script *transcript.Script) {
	t.Helper()
	for i, f := range s.text.Files {
		if f.Name == "script" {
			s.text.Files[i].Data = []byte(script.String())
		}
	}
	if err := os.WriteFile(s.file, txtar.Format(s.text), 0o644); err != nil {
		t.Error(err)
	}
}

// logBuffer collects a log that several goroutines write.
type logBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *logBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *logBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}
