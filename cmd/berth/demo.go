package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"github.com/berth-dev/berth/adapters/acpclient"
	"github.com/berth-dev/berth/bootstrap"
)

// newDemo plays a whole story on the offline model.
func newDemo(c *common) *cobra.Command {
	var keep bool
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Play a whole session on the built-in offline model, in a temporary directory",
		Long: `Starts "berth acp" as an editor would and plays a story with it: an answer that
streams, a file that is read, a search, a plan, an edit that asks for permission,
commands where the session runs them, a turn that is cancelled, an agent that is
killed, and the session loaded again. It needs no key and no network and
leaves nothing behind.`,
		Example: `  berth demo
  berth demo --keep     leave the directory to look at`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			dir, err := os.MkdirTemp("", "berth-demo-")
			if err != nil {
				return failed(err)
			}
			if !keep {
				defer os.RemoveAll(dir)
			}
			d := &demo{dir: dir, out: cmd.OutOrStdout(), view: newView(cmd.OutOrStdout())}
			if err := d.play(cmd.Context()); err != nil {
				return failed(fmt.Errorf("demo: %w", err))
			}
			if keep {
				fmt.Fprintf(d.out, "\nEverything is in %s\n", dir)
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&keep, "keep", false, "keep the temporary directory")
	return cmd
}

// demo is one run of the story.
type demo struct {
	dir      string
	out      io.Writer
	view     *view
	proc     *acpclient.Process
	id       string
	files    string
	scene    int          // number of the one being played
	confined *confinement // how commands are confined; nil when the session runs none

	quiet    atomic.Bool // updates are counted, not shown
	seen     atomic.Int64
	calls    atomic.Int64  // tool calls since the prompt
	fails    atomic.Int64  // those that failed
	asked    atomic.Int64  // permission requests since the prompt
	streamed chan struct{} // gets a value when text arrives, if there is room
}

const demoNotes = `# Notes

Berth keeps every session.
The harbour opens at 7.
`

func (d *demo) play(ctx context.Context) error {
	if ctx == nil {
		ctx = context.Background()
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	d.streamed = make(chan struct{}, 1)
	d.files = filepath.Join(d.dir, "project")
	if err := os.MkdirAll(d.files, 0o755); err != nil {
		return err
	}
	for name, text := range map[string]string{"notes.md": demoNotes, "tides.sh": demoScript} {
		if err := os.WriteFile(filepath.Join(d.files, name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	if err := d.scenes(ctx, []scene{{"Start the agent and open a session, as an editor does", d.start}}); err != nil {
		return err
	}
	if err := d.scenes(ctx, d.story()); err != nil {
		return err
	}
	if code := d.proc.Stop(); code != 0 {
		return fmt.Errorf("the agent ended with code %d", code)
	}
	fmt.Fprintf(d.out, "\nThat was %s, over the same protocol your editor speaks.\n", d.view.paint(bold, "berth acp"))
	fmt.Fprintln(d.out, "Next: talk to it with \"berth client\", which is \"go run ./cmd/berth client\" where the source is,\nor put it into your editor (README).")
	return nil
}

// scene is one step of the story.
type scene struct {
	title string
	run   func(context.Context) error
}

// story is what follows the start. Commands are part of it when the session
// runs them.
func (d *demo) story() []scene {
	all := []scene{
		{"An answer streams", d.prompt("help")},
		{"It reads a file; reading inside the session's directory needs no permission", d.prompt("read notes.md")},
		{"It searches; that needs none either", d.prompt("search harbour in *.md")},
		{"It makes a plan and ticks its steps off", d.prompt("plan: list; count to 10")},
		{"It edits a file; the change is shown and permission is asked first", d.edit},
	}
	if d.confined != nil {
		all = append(all,
			scene{"It runs a command that is proven to read only", d.counted},
			scene{"It runs one that may change something; permission is asked first, the output is live", d.script},
		)
	}
	return append(all,
		scene{"A long turn is cancelled in mid-stream", d.cancelled},
		scene{"The agent is killed in the middle of a turn", d.killed},
		scene{"A new process loads the session: everything is there", d.loaded},
		scene{"And it goes on", d.prompt("read notes.md")},
	)
}

// scenes plays the next steps of the story.
func (d *demo) scenes(ctx context.Context, list []scene) error {
	for _, s := range list {
		d.scene++
		fmt.Fprintf(d.out, "\n%s\n", d.view.paint(bold, fmt.Sprintf("%d. %s", d.scene, s.title)))
		if err := s.run(ctx); err != nil {
			if d.proc != nil {
				d.proc.Kill()
			}
			return fmt.Errorf("%s: %w", s.title, err)
		}
	}
	return nil
}

// launch starts the agent on the offline model, with directories of its own.
func (d *demo) launch(ctx context.Context) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	d.proc, err = acpclient.Start(acpclient.Command{
		Path: self,
		Args: []string{
			"acp", "--config-dir", filepath.Join(d.dir, "config"), "--data-dir", filepath.Join(d.dir, "data"),
			"--model", "offline/offline", "--log-level", "error",
		},
		Stderr: os.Stderr,
	}, acpclient.Info{Name: "berth-demo", Title: "Berth demo", Version: bootstrap.Version().Version},
		acpclient.Handlers{Update: d.update, Permission: d.permit})
	if err != nil {
		return err
	}
	_, err = d.proc.Initialize(ctx)
	return err
}

func (d *demo) update(u acpclient.Update) {
	d.seen.Add(1)
	switch {
	case u.Kind == "tool_call":
		d.calls.Add(1)
	case u.Kind == "tool_call_update" && u.Status == "failed":
		d.fails.Add(1)
	}
	if u.Kind == "agent_message_chunk" {
		select {
		case d.streamed <- struct{}{}:
		default:
		}
	}
	if !d.quiet.Load() {
		d.view.update(u)
	}
}

func (d *demo) permit(_ context.Context, req acpclient.PermissionRequest) acpclient.Choice {
	d.asked.Add(1)
	d.view.permission(req)
	for _, o := range req.Options {
		d.view.note("option: " + o.Name)
	}
	for _, o := range req.Options {
		if o.Kind == "allow_once" {
			d.view.note("the demo answers: " + o.Name)
			return acpclient.Choice{OptionID: o.OptionID}
		}
	}
	return acpclient.Choice{}
}

// longPrompt makes the offline model stream for longer than the demo waits.
const longPrompt = "count to 1000"

// running starts a long turn and returns when text of it has arrived.
func (d *demo) running(ctx context.Context) (done chan error, stop *string, err error) {
	select {
	case <-d.streamed:
	default:
	}
	d.view.note("prompt: " + longPrompt)
	done, stop = make(chan error, 1), new(string)
	go func() { // joined by the step that asked for it
		res, err := d.proc.Prompt(ctx, d.id, longPrompt)
		*stop = res.StopReason
		done <- err
	}()
	select {
	case <-d.streamed:
		return done, stop, nil
	case err := <-done:
		return nil, nil, fmt.Errorf("the turn ended before it streamed: %w", errors.Join(err, errors.New("stop reason "+*stop)))
	case <-ctx.Done():
		return nil, nil, ctx.Err()
	}
}
