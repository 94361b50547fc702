package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
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
streams, a file that is read, a plan, an edit that asks for permission, a turn
that is cancelled, an agent that is killed, and the session loaded again. It
needs no key and no network and leaves nothing behind.`,
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
	dir   string
	out   io.Writer
	view  *view
	proc  *acpclient.Process
	id    string
	files string

	quiet    atomic.Bool // updates are counted, not shown
	seen     atomic.Int64
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
	if err := os.WriteFile(filepath.Join(d.files, "notes.md"), []byte(demoNotes), 0o644); err != nil {
		return err
	}
	steps := []struct {
		title string
		run   func(context.Context) error
	}{
		{"Start the agent and open a session, as an editor does", d.start},
		{"An answer streams", d.prompt("help")},
		{"It reads a file; reading inside the session's directory needs no permission", d.prompt("read notes.md")},
		{"It makes a plan and ticks its steps off", d.prompt("plan: list; count to 10")},
		{"It edits a file; the change is shown and permission is asked first", d.edit},
		{"A long turn is cancelled in mid-stream", d.cancelled},
		{"The agent is killed in the middle of a turn", d.killed},
		{"A new process loads the session: everything is there", d.loaded},
		{"And it goes on", d.prompt("read notes.md")},
	}
	for i, s := range steps {
		fmt.Fprintf(d.out, "\n%s\n", d.view.paint(bold, fmt.Sprintf("%d. %s", i+1, s.title)))
		if err := s.run(ctx); err != nil {
			if d.proc != nil {
				d.proc.Kill()
			}
			return fmt.Errorf("%s: %w", s.title, err)
		}
	}
	if code := d.proc.Stop(); code != 0 {
		return fmt.Errorf("the agent ended with code %d", code)
	}
	fmt.Fprintf(d.out, "\nThat was %s, over the same protocol your editor speaks.\n", d.view.paint(bold, "berth acp"))
	fmt.Fprintln(d.out, "Next: talk to it with \"berth client\", which is \"go run ./cmd/berth client\" where the source is,\nor put it into your editor (README).")
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

func (d *demo) start(ctx context.Context) error {
	begin := time.Now()
	if err := d.launch(ctx); err != nil {
		return err
	}
	d.view.note(fmt.Sprintf("spawned and initialized in %s", time.Since(begin).Round(time.Millisecond/10)))
	id, err := d.proc.NewSession(ctx, d.files, nil)
	if err != nil {
		return err
	}
	d.id = id
	d.view.note("session " + id)
	return nil
}

// prompt returns a step that runs one turn to its natural end.
func (d *demo) prompt(text string) func(context.Context) error {
	return func(ctx context.Context) error {
		d.view.note("prompt: " + text)
		res, err := d.proc.Prompt(ctx, d.id, text)
		d.view.end()
		if err != nil {
			return err
		}
		if res.StopReason != "end_turn" {
			return fmt.Errorf("the turn stopped with %q", res.StopReason)
		}
		d.view.note("stop reason: " + res.StopReason)
		return nil
	}
}

func (d *demo) edit(ctx context.Context) error {
	if err := d.prompt(`edit notes.md replace "opens at 7" with "opens at 6"`)(ctx); err != nil {
		return err
	}
	data, err := os.ReadFile(filepath.Join(d.files, "notes.md"))
	if err != nil {
		return err
	}
	if !strings.Contains(string(data), "opens at 6") {
		return errors.New("the file was not changed")
	}
	d.view.note("on disk: " + strings.TrimSpace(strings.SplitAfter(string(data), "\n")[3]))
	return nil
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

func (d *demo) cancelled(ctx context.Context) error {
	done, stop, err := d.running(ctx)
	if err != nil {
		return err
	}
	begin := time.Now()
	if err := d.proc.Cancel(ctx, d.id); err != nil {
		return err
	}
	if err := <-done; err != nil {
		return err
	}
	took := time.Since(begin)
	d.view.end()
	if *stop != "cancelled" {
		return fmt.Errorf("the turn stopped with %q", *stop)
	}
	d.view.note(fmt.Sprintf("stop reason: cancelled, %s after the cancel", took.Round(time.Millisecond/10)))
	return nil
}

func (d *demo) killed(ctx context.Context) error {
	done, _, err := d.running(ctx)
	if err != nil {
		return err
	}
	d.proc.Kill()
	<-done // fails, as it must: nobody can answer any more
	d.view.end()
	d.view.note("the process is gone; nothing was said to it")
	return nil
}

func (d *demo) loaded(ctx context.Context) error {
	if err := d.launch(ctx); err != nil {
		return err
	}
	d.seen.Store(0)
	d.quiet.Store(true)
	begin := time.Now()
	err := d.proc.Load(ctx, d.id, d.files)
	took := time.Since(begin)
	d.quiet.Store(false)
	if err != nil {
		return err
	}
	if d.seen.Load() == 0 {
		return errors.New("nothing was replayed")
	}
	d.view.note(fmt.Sprintf("%d updates replayed in %s; the interrupted turn is marked as such", d.seen.Load(), took.Round(time.Millisecond/10)))
	return nil
}
