// Command berth hosts AI coding-agent sessions for clients that speak the
// Agent Client Protocol. It chooses a subcommand and maps its error to an
// exit code; everything else is in bootstrap and the adapters.
package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/berth-dev/berth/bootstrap"
)

// The exit codes of every command. The client's own are in client.go.
const (
	exitOK     = 0
	exitFailed = 1
	exitUsage  = 2
)

// exitError ends a command with a code of its own. A nil err says that
// everything was said already.
type exitError struct {
	code int
	err  error
}

// Error returns the message.
func (e exitError) Error() string {
	if e.err == nil {
		return "exit " + strconv.Itoa(e.code)
	}
	return e.err.Error()
}

// Unwrap returns the cause.
func (e exitError) Unwrap() error { return e.err }

func usage(format string, args ...any) error {
	return exitError{exitUsage, fmt.Errorf(format, args...)}
}

// failed reports whether a command failed, in the shape cobra wants.
func failed(err error) error {
	if err == nil {
		return nil
	}
	return exitError{exitFailed, err}
}

// common are the flags of every command.
type common struct {
	configDir string
	dataDir   string
	helper    bootstrap.Helper // this program, where it can build sandboxes
}

// options are where configuration is looked for; flags override settings.
func (c *common) options(flags map[string]string) bootstrap.LoadOptions {
	return bootstrap.LoadOptions{ConfigDir: c.configDir, DataDir: c.dataDir, Flags: flags, Env: os.Environ()}
}

// subcommandsOnly refuses an argument that is no subcommand and names the one
// that was probably meant.
func subcommandsOnly(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	cmd.SuggestionsMinimumDistance = 2
	near := cmd.SuggestionsFor(args[0])
	if len(near) == 0 {
		return usage("there is no command %q", cmd.CommandPath()+" "+args[0])
	}
	return usage("there is no command %q; did you mean %q?", cmd.CommandPath()+" "+args[0], cmd.CommandPath()+" "+near[0])
}

// wants refuses another number of arguments than least to most, and says what
// is wanted in the words of the command's usage.
func wants(least, most int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) < least || len(args) > most {
			return usage("wrong number of arguments; the command is: %s", cmd.UseLine())
		}
		return nil
	}
}

// hintEditor tells a person at a terminal why nothing happens there: only an
// editor has something to say to the command.
func hintEditor(cmd *cobra.Command) {
	if term.IsTerminal(int(os.Stdin.Fd())) {
		fmt.Fprintf(cmd.ErrOrStderr(), "%s waits for an editor's messages; to talk to an agent here, use: berth client\n", cmd.CommandPath())
	}
}

func main() {
	helper := bootstrap.RunHelper()
	bootstrap.Pulse()
	os.Exit(run(helper, os.Args[1:], os.Stdout, os.Stderr))
}

func run(helper bootstrap.Helper, args []string, out, errOut io.Writer) int {
	root := newRoot(&common{helper: helper})
	root.SetArgs(args)
	root.SetOut(out)
	root.SetErr(errOut)
	cmd, err := root.ExecuteC()
	if err == nil {
		return exitOK
	}
	var exit exitError
	if !errors.As(err, &exit) {
		exit = exitError{exitUsage, err} // cobra found no such flag or command
	}
	if exit.err != nil {
		fmt.Fprintf(errOut, "berth: %v\n", exit.err)
		if exit.code == exitUsage {
			fmt.Fprintf(errOut, "Try '%s --help'.\n", cmd.CommandPath())
		}
	}
	return exit.code
}

func newRoot(c *common) *cobra.Command {
	root := &cobra.Command{
		Use:   "berth",
		Short: "A host for AI coding-agent sessions (Agent Client Protocol)",
		Long: `Berth hosts AI coding-agent sessions. An editor starts "berth acp" and talks to
it over standard input and output; Berth calls the model, runs file tools inside
the session's directories, asks for permission, and keeps every session.`,
		Example: `  berth demo                         see a whole session on the built-in offline model
  berth client -p "read README.md"   one prompt from the shell
  berth login                        store the key of a model provider
  berth acp                          the agent, for an editor to start
  berth daemon                       the gateway, for many clients
  berth config list                  every setting and where it comes from`,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          subcommandsOnly,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return cmd.Help()
		},
	}
	root.CompletionOptions.HiddenDefaultCmd = true
	root.PersistentFlags().StringVar(&c.configDir, "config-dir", "", "directory that holds config.toml (default $BERTH_CONFIG_DIR or ~/.config/berth)")
	root.PersistentFlags().StringVar(&c.dataDir, "data-dir", "", "directory for sessions (default $BERTH_DATA_DIR or ~/.local/share/berth)")
	root.AddCommand(newACP(c), newDaemon(c), newBridge(c), newToken(c), newClient(c), newDemo(c), newProbe(c), newConfig(c), newLogin(c), newLogout(c), newModels(c), newDoctor(c), newVersion())
	return root
}
