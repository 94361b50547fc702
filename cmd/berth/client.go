package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/berth-dev/berth/adapters/acpclient"
	"github.com/berth-dev/berth/bootstrap"
	"github.com/berth-dev/berth/core/domain"
)

// Exit codes of "berth client -p" besides the common ones.
const (
	exitDenied    = 3
	exitLimit     = 4
	exitRefusal   = 5
	exitCancelled = 130
)

// clientFlags are what "berth client" was told.
type clientFlags struct {
	prompt    string
	policy    string
	cwd       string
	agent     string
	model     string
	session   string
	auth      string
	url       string
	tokenFile string
	takeOver  bool
	json      bool
	verbose   bool
}

// newClient is a debug client for any ACP agent.
func newClient(c *common) *cobra.Command {
	var f clientFlags
	cmd := &cobra.Command{
		Use:   "client [flags] [-- AGENT [ARGS...]]",
		Short: "A client for any ACP agent: one prompt, or a conversation",
		Long: `Starts an ACP agent ("berth acp" unless another is named after --), or connects
to a gateway with --url, opens a session and shows what the agent sends. With -p
it runs one prompt and ends; without, it reads prompts from the terminal.

The directory of a session is one of the machine that the gateway runs on. Its
token may also come from BERTH_GATEWAY_TOKEN; this user's own daemon needs none.

Exit codes of -p: 0 the turn ended, 1 failed, 2 usage, 3 a permission was denied,
4 a limit was reached, 5 the model refused, 130 cancelled.`,
		Example: `  berth client -p "read README.md"
  berth client -p "write hello.txt: hi" --permission-policy all
  berth client -p "hello" --json
  berth client -p "hello" -- npx some-other-agent --acp
  berth client --url wss://berth.example --token-file ~/.berth-token --cwd /srv/project`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if !slices.Contains([]string{"ask", "reads", "all", "none"}, f.policy) {
				return usage("--permission-policy %q is none of ask, reads, all, none", f.policy)
			}
			if dash := cmd.ArgsLenAtDash(); dash > 0 || dash < 0 && len(args) > 0 {
				return usage("unexpected argument %q; the prompt goes after -p, the agent after --", args[0])
			}
			if cmd.Flags().Changed("prompt") && strings.TrimSpace(f.prompt) == "" {
				return usage("-p wants a prompt")
			}
			if err := f.checkGateway(cmd, args); err != nil {
				return err
			}
			if f.model != "" && len(args) == 0 {
				if _, err := domain.ParseModelRef(f.model); err != nil {
					return usage("--model: %v", err)
				}
			}
			return runClient(cmd, c, f, args)
		},
	}
	fl := cmd.Flags()
	fl.StringVarP(&f.prompt, "prompt", "p", "", "run this one prompt and end")
	fl.StringVar(&f.policy, "permission-policy", "ask", "ask, reads (allow what only reads), all, none; ask without a terminal is none")
	fl.StringVar(&f.cwd, "cwd", "", "the session's directory (default: this one)")
	fl.StringVar(&f.agent, "agent", "", "agent to use")
	fl.StringVar(&f.model, "model", "", `model for "berth acp", as "provider/model"`)
	fl.StringVar(&f.session, "session", "", "load this session instead of opening a new one")
	fl.StringVar(&f.auth, "auth", "", "how to sign in when the agent asks for it, by the id of the way")
	fl.StringVar(&f.url, "url", "", "gateway to connect to: ws://, wss://, http://, https:// or unix:/path")
	fl.StringVar(&f.tokenFile, "token-file", "", "file that holds the token for --url")
	fl.BoolVar(&f.takeOver, "take-over", false, "with --session: take it from another client of the gateway")
	fl.BoolVar(&f.json, "json", false, "print the agent's messages, one JSON object a line")
	fl.BoolVar(&f.verbose, "verbose", false, "show the agent's log and the raw messages on standard error")
	return cmd
}

// agentCommand is the agent to start: the one named after --, or this program,
// as the agent itself or as the bridge to a gateway.
func agentCommand(c *common, f clientFlags, args []string) (acpclient.Command, error) {
	if len(args) > 0 {
		return acpclient.Command{Path: args[0], Args: args[1:]}, nil
	}
	self, err := os.Executable()
	if err != nil {
		return acpclient.Command{}, err
	}
	out := acpclient.Command{Path: self, Args: []string{"acp"}}
	if f.url != "" {
		out.Args = f.bridgeArgs()
	}
	for _, flag := range [][2]string{{"--config-dir", c.configDir}, {"--data-dir", c.dataDir}, {"--model", f.model}} {
		if flag[1] != "" {
			out.Args = append(out.Args, flag[0], flag[1])
		}
	}
	return out, nil
}

// client is one run of "berth client".
type client struct {
	flags  clientFlags
	out    io.Writer
	errOut io.Writer
	view   *view
	stdin  *bufio.Reader
	tty    bool
	proc   *acpclient.Process
	log    agentLog
	outage outage
	denied bool
}

func runClient(cmd *cobra.Command, c *common, f clientFlags, args []string) error {
	cwd, err := filepath.Abs(f.cwd)
	if err != nil {
		return failed(err)
	}
	run := &client{
		flags: f, out: cmd.OutOrStdout(), errOut: cmd.ErrOrStderr(), stdin: bufio.NewReader(os.Stdin), tty: term.IsTerminal(int(os.Stdin.Fd())),
		view: newView(cmd.OutOrStdout()),
	}
	agent, err := agentCommand(c, f, args)
	if err != nil {
		return failed(err)
	}
	run.log.shown = f.verbose
	if f.url != "" {
		run.outage.again = f.againArgs(c)
		run.log.told = run.tellOutage
	}
	agent.Stderr = &run.log
	agent.Tap = run.tap
	run.proc, err = acpclient.Start(agent, acpclient.Info{Name: "berth-client", Title: "Berth client", Version: bootstrap.Version().Version},
		acpclient.Handlers{Update: run.update, Permission: run.permit})
	if err != nil {
		return failed(err)
	}
	defer run.proc.Stop()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	id, err := run.open(ctx, cwd)
	if err != nil {
		return failed(err)
	}
	run.outage.opened(id)
	if f.prompt != "" {
		return run.once(ctx, stop, id)
	}
	stop() // each turn has an interrupt of its own
	return run.converse(id)
}

// tap prints raw messages for --json and --verbose.
func (r *client) tap(dir byte, line []byte) {
	if r.flags.json && dir == '<' {
		fmt.Fprintf(r.out, "%s\n", line)
	}
	if r.flags.verbose {
		fmt.Fprintf(os.Stderr, "%c %s\n", dir, line)
	}
}

func (r *client) update(u acpclient.Update) {
	if !r.flags.json {
		r.view.update(u)
	}
}

// open agrees on the protocol and opens or loads the session.
func (r *client) open(ctx context.Context, cwd string) (string, error) {
	info, err := r.proc.Initialize(ctx)
	if err != nil {
		return "", r.explain(err)
	}
	if info.ProtocolVersion != 1 {
		return "", fmt.Errorf("the agent speaks protocol version %d; this client speaks 1", info.ProtocolVersion)
	}
	if r.flags.session != "" {
		load := r.proc.Load
		if r.flags.takeOver {
			load = r.proc.TakeOver
		}
		err := r.signedIn(ctx, info.AuthMethods, func() error { return load(ctx, r.flags.session, cwd) })
		if r.flags.url != "" && dataOf(err).Reason == "SESSION_ACTIVE" {
			return "", fmt.Errorf("%w; --take-over takes it from there", r.explain(err))
		}
		return r.flags.session, r.explain(err)
	}
	var params map[string]any
	if r.flags.agent != "" {
		params = map[string]any{"_meta": map[string]any{"berth": map[string]any{"agent": r.flags.agent}}}
	}
	var id string
	err = r.signedIn(ctx, info.AuthMethods, func() (err error) {
		id, err = r.proc.NewSession(ctx, cwd, params)
		return err
	})
	return id, r.explain(err)
}

// once runs the one prompt of -p and maps its end to an exit code.
func (r *client) once(ctx context.Context, stop func(), id string) error {
	res, err := r.turn(ctx, stop, id, r.flags.prompt)
	switch {
	case costLimit(err):
		return exitError{exitLimit, r.explain(err)}
	case err != nil:
		return failed(r.goOn(err))
	case res.StopReason == "cancelled":
		return exitError{exitCancelled, errors.New("cancelled")}
	case res.StopReason == "max_tokens", res.StopReason == "max_turn_requests":
		return exitError{exitLimit, fmt.Errorf("the turn stopped at a limit: %s", res.StopReason)}
	case res.StopReason == "refusal":
		return exitError{exitRefusal, errors.New("the model refused")}
	case r.denied && r.flags.policy == "ask" && !r.tty:
		return exitError{exitDenied, errors.New("what was asked was rejected, for there is no terminal to ask on; --permission-policy reads or all allows more")}
	case r.denied:
		return exitError{exitDenied, errors.New("a permission was denied")}
	}
	return nil
}

// turn runs one prompt; when ctx ends, by an interrupt, it cancels the turn and
// waits for its answer. stop stops listening to interrupts, so that a second one
// ends the client.
func (r *client) turn(ctx context.Context, stop func(), id, text string) (acpclient.PromptResult, error) {
	over := r.proc.Interrupted(ctx, id, stop)
	defer over()
	res, err := r.proc.Prompt(context.WithoutCancel(ctx), id, text)
	if !r.flags.json {
		r.view.end()
	}
	return res, err
}

// converse reads prompts until the input ends. An interrupt cancels the
// running turn, or ends the conversation when none runs.
func (r *client) converse(id string) error {
	r.view.note("session " + id + "; an empty line or Ctrl-D ends, Ctrl-C cancels a turn")
	for {
		if r.tty {
			fmt.Fprint(r.out, "> ")
		}
		line, err := r.stdin.ReadString('\n')
		line = strings.TrimSpace(line)
		if line == "" {
			if err != nil || r.tty {
				return nil
			}
			continue
		}
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
		res, terr := r.turn(ctx, stop, id, line)
		stop()
		switch {
		case terr != nil:
			r.view.note(r.explain(terr).Error())
		case res.StopReason != "end_turn":
			r.view.note("stopped: " + res.StopReason)
		}
		select {
		case <-r.proc.Done():
			return failed(errors.New("the agent has ended"))
		default:
		}
		if err != nil {
			return nil
		}
	}
}
