package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/tools/txtar"

	"github.com/berth-dev/berth/adapters/acpclient"
	"github.com/berth-dev/berth/adapters/jsonrpc"
	"github.com/berth-dev/berth/adapters/jsonrpc/transcript"
)

// newProbe plays and records conversations with any ACP agent.
func newProbe(c *common) *cobra.Command {
	var script string
	var vars []string
	var update, verbose bool
	var timeout time.Duration
	cmd := &cobra.Command{
		Use:   "probe --script FILE [flags] [-- AGENT [ARGS...]]",
		Short: "Play or record a conversation with any ACP agent",
		Long: `Plays a script against an agent ("berth acp" unless another is named after --)
and says which line was not met. The file is a script (docs/transcripts.md), a
txtar archive with a section "script", or a recording made by "probe record".

"probe record" stands between an editor and an agent, passes every message on
unchanged, and writes each to a file.`,
		Example: `  berth probe --script hello.txt
  berth probe --script bug.jsonl -- npx some-agent --acp
  berth probe record session.jsonl -- berth acp
  berth probe convert session.jsonl > bug.txt`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if script == "" {
				return usage("probe wants --script FILE, or one of its subcommands")
			}
			ctx, cancel := context.WithTimeout(context.Background(), timeout)
			defer cancel()
			return playFile(ctx, cmd.OutOrStdout(), c, script, vars, args, update, verbose)
		},
	}
	f := cmd.Flags()
	f.StringVar(&script, "script", "", "script, txtar archive or recording to play")
	f.StringArrayVar(&vars, "var", nil, "NAME=VALUE, a variable of the script; WORK is a temporary directory")
	f.BoolVar(&update, "update", false, "write what the agent answered into the script")
	f.BoolVarP(&verbose, "verbose", "v", false, "print every frame")
	f.DurationVar(&timeout, "timeout", 30*time.Second, "how long the whole play may take")
	cmd.AddCommand(newRecord(c), newConvert())
	return cmd
}

// readScript reads any of the three forms.
func readScript(path string) (*transcript.Script, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	switch filepath.Ext(path) {
	case ".jsonl":
		frames, err := transcript.ReadJSONL(bytes.NewReader(data))
		if err != nil {
			return nil, notRecorded(path, err)
		}
		// As text, so that each answer finds its request as in any other script.
		return transcript.Parse(transcript.FromFrames(frames).String())
	case ".txtar":
		for _, f := range txtar.Parse(data).Files {
			if f.Name == "script" {
				s, err := transcript.Parse(string(f.Data))
				if err != nil {
					return nil, fmt.Errorf("%s: section script: %w", path, err)
				}
				return s, nil
			}
		}
		return nil, fmt.Errorf("%s has no section \"script\"", path)
	}
	s, err := transcript.Parse(string(data))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return s, nil
}

// notRecorded is the error of a file that was taken for a recording.
func notRecorded(path string, err error) error {
	return fmt.Errorf("%s is no recording of \"berth probe record\": %w", path, err)
}

// playFile plays one script against agents it starts.
func playFile(ctx context.Context, out io.Writer, c *common, path string, vars, agentArgs []string, update, verbose bool) error {
	script, err := readScript(path)
	if err != nil {
		return failed(err)
	}
	if update && filepath.Ext(path) != ".txt" && filepath.Ext(path) != "" {
		return usage("--update rewrites plain scripts only, not %s", path)
	}
	work, err := os.MkdirTemp("", "berth-probe-")
	if err != nil {
		return failed(err)
	}
	defer os.RemoveAll(work)
	values := map[string]string{"WORK": work}
	for _, v := range vars {
		name, value, ok := strings.Cut(v, "=")
		if !ok {
			return usage("--var %q is not NAME=VALUE", v)
		}
		values[name] = value
	}
	command, err := agentCommand(c, clientFlags{}, agentArgs)
	if err != nil {
		return failed(err)
	}
	command.Stderr = os.Stderr
	agents := &agentProcesses{command: command, running: map[string]*acpclient.Child{}}
	defer agents.endAll()
	opts := transcript.Options{
		Connect: agents.connect, Vars: values, Kill: agents.kill, Exit: agents.exit, Update: update,
		After: func(ctx context.Context, d time.Duration) error {
			timer := time.NewTimer(d)
			defer timer.Stop()
			select {
			case <-timer.C:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		},
	}
	if verbose {
		opts.Monitor = func(f transcript.Frame) { fmt.Fprintf(out, "%c %s\n", f.Dir, f.Data) }
	}
	run, err := transcript.Play(ctx, script, opts)
	if err != nil {
		return failed(err)
	}
	if update {
		if err := os.WriteFile(path, []byte(run.Script.String()), 0o644); err != nil {
			return failed(err)
		}
	}
	_, err = fmt.Fprintf(out, "ok: %d lines met, %d frames\n", len(script.Lines), len(run.Frames))
	return failed(err)
}

// agentProcesses are the agents a play has started, one for each client.
type agentProcesses struct {
	command acpclient.Command

	mu      sync.Mutex
	running map[string]*acpclient.Child
	last    *acpclient.Child
}

func (a *agentProcesses) connect(_ context.Context, client string) (jsonrpc.Frames, error) {
	child, err := acpclient.Spawn(a.command)
	if err != nil {
		return nil, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.running[client], a.last = child, child
	return child.Frames, nil
}

func (a *agentProcesses) kill(_ context.Context, client string) error {
	a.mu.Lock()
	child := a.running[client]
	a.mu.Unlock()
	if child == nil {
		return errors.New("no agent is running")
	}
	return child.Kill()
}

func (a *agentProcesses) exit(ctx context.Context) (int, error) {
	a.mu.Lock()
	child := a.last
	a.mu.Unlock()
	if child == nil {
		return 0, errors.New("no agent was started")
	}
	select {
	case <-child.Exited():
		return child.ExitCode(), nil
	case <-ctx.Done():
		return 0, errors.New("the agent is still running")
	}
}

// endAll waits for the agents; the play has closed their connections.
func (a *agentProcesses) endAll() {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, child := range a.running {
		child.End()
	}
}

// newRecord writes down what passes between an editor and an agent.
func newRecord(c *common) *cobra.Command {
	return &cobra.Command{
		Use:     "record FILE [-- AGENT [ARGS...]]",
		Short:   "Stand between an editor and an agent and write every message to a file",
		Example: "  berth probe record session.jsonl -- berth acp",
		Args:    wants(1, math.MaxInt),
		RunE: func(cmd *cobra.Command, args []string) error {
			hintEditor(cmd)
			command, err := agentCommand(c, clientFlags{}, args[1:])
			if err != nil {
				return failed(err)
			}
			file, err := os.OpenFile(args[0], os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
			if err != nil {
				return failed(err)
			}
			rec := &recorder{out: file}
			agent := exec.Command(command.Path, command.Args...)
			agent.Stderr = os.Stderr
			// Each message is written down before it is passed on: else what the
			// other side says to it could stand before it.
			agent.Stdin = io.TeeReader(os.Stdin, rec.dir(transcript.ToAgent))
			agent.Stdout = io.MultiWriter(rec.dir(transcript.ToClient), os.Stdout)
			agent.WaitDelay = time.Second // a client that keeps its end open must not keep us
			err = agent.Run()
			if cerr := errors.Join(rec.close(), file.Close()); cerr != nil {
				return failed(cerr)
			}
			var exit *exec.ExitError
			if errors.As(err, &exit) {
				return exitError{exit.ExitCode(), fmt.Errorf("the agent ended with %s", exit.ProcessState)}
			}
			return failed(err)
		},
	}
}

// recorder writes frames of both directions as JSON lines.
type recorder struct {
	mu   sync.Mutex
	out  io.Writer
	ways []*way
	err  error
}

// way cuts one direction's bytes into lines.
type way struct {
	rec  *recorder
	dir  transcript.Dir
	rest []byte
}

func (r *recorder) dir(d transcript.Dir) io.Writer {
	w := &way{rec: r, dir: d}
	r.ways = append(r.ways, w)
	return w
}

// Write keeps what is no whole line yet. It never fails: a full disk must not
// break the conversation it listens to.
func (w *way) Write(p []byte) (int, error) {
	w.rec.mu.Lock()
	defer w.rec.mu.Unlock()
	w.rest = append(w.rest, p...)
	for {
		line, rest, ok := bytes.Cut(w.rest, []byte("\n"))
		if !ok {
			return len(p), nil
		}
		w.line(line)
		w.rest = rest
	}
}

func (w *way) line(line []byte) {
	if len(bytes.TrimSpace(line)) == 0 {
		return
	}
	f := transcript.Frame{Time: time.Now(), Dir: w.dir, Data: line}
	if _, err := w.rec.out.Write(f.AppendJSONL(nil)); err != nil && w.rec.err == nil {
		w.rec.err = fmt.Errorf("write the recording: %w", err)
	}
}

// close writes unterminated last lines.
func (r *recorder) close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, w := range r.ways {
		w.line(w.rest)
	}
	return r.err
}

// newConvert prints a recording as a script.
func newConvert() *cobra.Command {
	return &cobra.Command{
		Use:     "convert FILE.jsonl",
		Short:   "Print a recording as a script to edit and play",
		Example: "  berth probe convert session.jsonl > bug.txt",
		Args:    wants(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			file, err := os.Open(args[0])
			if err != nil {
				return failed(err)
			}
			defer file.Close()
			frames, err := transcript.ReadJSONL(bufio.NewReader(file))
			if err != nil {
				return failed(notRecorded(args[0], err))
			}
			_, err = io.WriteString(cmd.OutOrStdout(), transcript.FromFrames(frames).String())
			return failed(err)
		},
	}
}
