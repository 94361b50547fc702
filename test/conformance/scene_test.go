package conformance

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/tools/txtar"

	"github.com/berth-dev/berth/adapters/jsonrpc"
	"github.com/berth-dev/berth/adapters/jsonrpc/transcript"
)

// The beginnings of most scripts. The official kit's client offers nothing.
const (
	hello = `> initialize {"protocolVersion":1,"clientCapabilities":{}}
< {"protocolVersion":1}
`
	session = hello + `> session/new {"cwd":"$WORK","mcpServers":[]}
< {"sessionId":"$sid"}
`
	// commands is what follows at once.
	commands = `<! session/update {"sessionId":"$sid","update":{"sessionUpdate":"available_commands_update"}}
`
	// prompt is a prompt that waits for its answer by the label p.
	prompt = `> session/prompt @p {"sessionId":"$sid","prompt":[{"type":"text","text":"go"}]}
`
	// turn is a prompt whose updates do not matter.
	turn = `loose
` + prompt + `< @p {"stopReason":"end_turn"}
ambient
`
)

// quietPeriod is how long the official kit, at its default time limit, waits
// for what should not come after a load or a cancelled turn. Nothing but real
// time shows that a process sends nothing by itself: any message that asked it
// for a sign of life would be the occasion for what it held back. Where asking
// is allowed, "quiet" asks and no test waits.
const quietPeriod = 2 * time.Second

// scene is one conversation.
type scene struct {
	model  string            // what the scripted model does
	config string            // further settings
	files  map[string]string // of the session's directory before
	want   map[string]string // and afterwards
	script string
	launch launch
	vars   map[string]string // of the script, besides $WORK, $DATA, $CONFIG
	// watch makes quiet wait this long without a word from the client, and
	// then look.
	watch time.Duration
	// hook sees every frame before the script acts on it.
	hook func(f transcript.Frame)
	// signIn says that -32000 is what the scene is about.
	signIn bool
}

// outcome is what a scene left behind.
type outcome struct {
	world  world
	frames []transcript.Frame
	vars   map[string]any
	log    string
	agents []*agent
}

// play plays a scene in a world of its own.
func (s scene) play(t *testing.T) *outcome {
	t.Helper()
	w := newWorld(t)
	w.fill(t, s.files)
	w.configure(t, s.model, s.config)
	return s.playIn(t, w)
}

// playIn plays a scene in a world that is ready for it.
func (s scene) playIn(t *testing.T, w world) *outcome {
	t.Helper()
	script, err := transcript.Parse(s.script)
	if err != nil {
		t.Fatalf("script: %v", err)
	}
	log := &buffer{}
	if s.launch.stderr == nil {
		s.launch.stderr = log
	}
	c := &company{world: w, launch: s.launch, watch: newWatch(s.signIn), now: map[string]*agent{}}
	vars := map[string]string{"WORK": w.work, "DATA": w.data, "CONFIG": w.config}
	for name, value := range s.vars {
		vars[name] = value
	}
	opts := transcript.Options{Connect: c.connect, Kill: c.kill, Exit: c.exit, Vars: vars, Monitor: func(f transcript.Frame) {
		if s.hook != nil {
			s.hook(f)
		}
		c.watch.frame(f)
	}}
	if s.watch > 0 {
		opts.Settle = func(context.Context) error { time.Sleep(s.watch); return nil }
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
	defer cancel()
	run, err := transcript.Play(ctx, script, opts)
	c.finish(t, script, err)
	o := &outcome{world: w, frames: run.Frames, vars: run.Vars, log: log.String(), agents: c.all}
	if err != nil {
		t.Errorf("%v\nlog:\n%s", located(err, s.script), o.log)
	}
	if strings.Contains(o.log, "panic") || strings.Contains(o.log, "DATA RACE") || strings.Contains(o.log, "late update") {
		t.Errorf("the log tells of an internal fault:\n%s", o.log)
	}
	w.check(t, s.want)
	return o
}

// located adds the script's line to a failure.
func located(err error, script string) error {
	var f *transcript.Failure
	if lines := strings.Split(script, "\n"); errors.As(err, &f) && f.Line > 0 && f.Line <= len(lines) {
		return errors.Join(err, errors.New("script: "+lines[f.Line-1]))
	}
	return err
}

// company is the processes of a scene, one for each connection.
type company struct {
	world  world
	launch launch
	watch  *watch
	now    map[string]*agent // by client
	all    []*agent
}

func (c *company) connect(_ context.Context, client string) (jsonrpc.Frames, error) {
	a, err := start(c.world, c.launch)
	if err != nil {
		return nil, err
	}
	if c.now[client] != nil {
		c.watch.reset(client)
	}
	c.now[client] = a
	c.all = append(c.all, a)
	return jsonrpc.NewStdio(a.stdout, a.stdin, 0), nil
}

func (c *company) kill(_ context.Context, client string) error {
	c.now[client].kill()
	return nil
}

func (c *company) exit(ctx context.Context) (int, error) {
	a := c.all[len(c.all)-1]
	select {
	case <-a.ended:
		return a.cmd.ProcessState.ExitCode(), nil
	case <-ctx.Done():
		return 0, errors.New("the agent still runs")
	}
}

// finish waits for every process and judges what the watch saw. A script that
// cuts a connection leaves requests without an answer.
func (c *company) finish(t *testing.T, script *transcript.Script, err error) {
	t.Helper()
	for _, a := range c.all {
		if code := a.wait(t, 5*time.Second+slack); code != 0 && !a.killed {
			t.Errorf("the agent ended with code %d", code)
		}
		for _, fault := range a.faults() {
			t.Error(fault)
		}
	}
	cut := err != nil || slices.ContainsFunc(script.Lines, func(l transcript.Line) bool {
		return l.Op == transcript.Drop || l.Op == transcript.Kill
	})
	for _, fault := range c.watch.finish(cut) {
		t.Error(fault)
	}
}

// playFile plays a case of test/acceptance against the binary.
func playFile(t *testing.T, name string) *outcome {
	t.Helper()
	file, err := txtar.ParseFile(filepath.Join("..", "acceptance", "testdata", name+".txtar"))
	if err != nil {
		t.Fatal(err)
	}
	s := scene{files: map[string]string{}, want: map[string]string{}, launch: launch{args: []string{"--log-level", "info"}}}
	var inLog []string
	for _, f := range file.Files {
		text := string(f.Data)
		switch {
		case f.Name == "model":
			s.model = text
		case f.Name == "config":
			s.config = text
		case f.Name == "script":
			s.script = text
		case f.Name == "log":
			inLog = strings.Split(strings.TrimSpace(text), "\n")
		case f.Name == "unset": // variables that are never set here
		case f.Name == "modes":
			if !strings.Contains(text, "stdio") {
				t.Fatalf("%s cannot be played against the binary", name)
			}
		case strings.HasPrefix(f.Name, "files/"):
			s.files[strings.TrimPrefix(f.Name, "files/")] = text
		case strings.HasPrefix(f.Name, "want/"):
			s.want[strings.TrimPrefix(f.Name, "want/")] = text
		default:
			t.Fatalf("%s has a section %q, which is not known here", name, f.Name)
		}
	}
	s.signIn = strings.Contains(s.script, "-32000")
	o := s.play(t)
	for _, line := range inLog {
		if !strings.Contains(o.log, line) {
			t.Errorf("the log does not hold %q:\n%s", line, o.log)
		}
	}
	return o
}
