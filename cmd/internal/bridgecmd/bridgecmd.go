// Package bridgecmd is the command line of the bridge, which "berth bridge"
// and berth-acp-bridge have in common.
package bridgecmd

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/berth-dev/berth/bootstrap"
)

// UsageError is a command line that cannot be understood.
type UsageError struct{ msg string }

// Error says what is wrong with it.
func (e *UsageError) Error() string { return e.msg }

func usage(format string, args ...any) error { return &UsageError{fmt.Sprintf(format, args...)} }

// Options are where configuration is looked for; flags override settings.
type Options func(flags map[string]string) bootstrap.LoadOptions

// flags are what the command was told.
type flags struct {
	url, token, tokenFile, password, passwordFile string
	agent, session, label, provenance, protocol   string
	reset, existing, noPrefix, insecure, verbose  bool
	outages                                       bool
	wait                                          time.Duration
}

// New makes the command. name is what it is called by.
func New(name string, options Options) *cobra.Command {
	var f flags
	cmd := &cobra.Command{
		Use:   name,
		Short: "Standard input and output, connected with a gateway",
		Long: `Connects an editor with a gateway: each line on standard input is one message
to its /acp, each message from there one line on standard output. It finds the
daemon of this user by itself; --url or bridge.url name another gateway. When
the connection is lost it comes back and goes on where it was.

The token comes from a flag, BERTH_GATEWAY_TOKEN, BERTH_ACP_BRIDGE_TOKEN,
ZEROCLAW_ACP_BRIDGE_TOKEN, or bridge.token and bridge.token_file for the gateway
of bridge.url. The daemon of this user needs none. It ends with code 0 when its
input ends, and with 1 when the gateway is gone for good or refuses the token.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return run(cmd, f, options) },
	}
	fl := cmd.Flags()
	fl.StringVar(&f.url, "url", "", "gateway: ws://, wss://, http://, https:// or unix:/path (bridge.url)")
	fl.StringVar(&f.token, "token", "", "token to show; others on this machine can see it there, so rather use --token-file")
	fl.StringVar(&f.tokenFile, "token-file", "", "file that holds the token")
	fl.StringVar(&f.password, "password", "", "the same as --token, for gateways that call it so")
	fl.StringVar(&f.passwordFile, "password-file", "", "the same as --token-file")
	fl.StringVar(&f.agent, "agent", "", "agent for sessions that name none")
	fl.StringVar(&f.session, "session", "", "key of the session that session/new opens")
	fl.StringVar(&f.label, "session-label", "", "label of the session that session/new opens")
	fl.BoolVar(&f.reset, "reset-session", false, "the first session/new begins with a fresh transcript")
	fl.BoolVar(&f.existing, "require-existing", false, "a session that does not exist is an error")
	fl.BoolVar(&f.noPrefix, "no-prefix-cwd", false, "do not put the working directory in front of prompts; an ACP gateway knows it anyway")
	fl.StringVar(&f.provenance, "provenance", "off", "off, meta or meta+receipt: say with each prompt where it comes from")
	fl.StringVar(&f.protocol, "protocol", "", "what the gateway speaks: acp or openclaw (bridge.protocol)")
	fl.DurationVar(&f.wait, "wait", 30*time.Second, "how long to look for a gateway at the start")
	fl.BoolVar(&f.insecure, "insecure", false, "let the token go to another machine without TLS")
	fl.BoolVarP(&f.verbose, "verbose", "v", false, "tell on standard error what happens")
	fl.BoolVar(&f.outages, OutagesFlag, false, "tell on standard error when the gateway is lost and when it is back")
	_ = fl.MarkHidden(OutagesFlag) // fails for a flag that is not there
	return cmd
}

// OutagesFlag is for a program that starts the bridge and tells a person: what
// it gives is in bootstrap.BridgeOptions.Outages.
const OutagesFlag = "outages"

func run(cmd *cobra.Command, f flags, options Options) error {
	opts := bootstrap.BridgeOptions{
		URL: strings.TrimSpace(f.url), Insecure: f.insecure, Agent: f.agent, Session: f.session, Label: f.label,
		Reset: f.reset, RequireExisting: f.existing, NoPrefix: f.noPrefix, StartLimit: f.wait, Env: os.Environ(),
	}
	if f.wait <= 0 {
		return usage("--wait %v is no time to wait; give one such as 30s", f.wait)
	}
	switch f.provenance {
	case "off", "":
	case "meta", "meta+receipt":
		opts.Provenance = f.provenance
	default:
		return usage("--provenance %q is none of off, meta, meta+receipt", f.provenance)
	}
	token, err := f.secret(cmd)
	if err != nil {
		return err
	}
	opts.Token = bootstrap.NewSecret(token)
	if f.verbose {
		opts.Verbose = cmd.ErrOrStderr()
	}
	if f.outages {
		opts.Outages = cmd.ErrOrStderr()
	}
	settings := map[string]string{}
	if cmd.Flags().Changed("protocol") {
		settings["bridge.protocol"] = f.protocol
	}
	if term.IsTerminal(int(os.Stdin.Fd())) {
		fmt.Fprintf(cmd.ErrOrStderr(), "%s waits for an editor's messages; to talk to an agent here, use: berth client\n", cmd.CommandPath())
	}
	out, err := bootstrap.TakeStdout()
	if err != nil {
		return err
	}
	cfg, err := bootstrap.LoadConfig(options(settings))
	if err != nil {
		return err
	}
	return bootstrap.RunBridge(cfg, out, opts)
}

// secret is the token that the flags give, "" for none.
func (f flags) secret(cmd *cobra.Command) (string, error) {
	given := ""
	for _, one := range []struct{ name, value, file string }{
		{"token", f.token, ""}, {"token-file", "", f.tokenFile}, {"password", f.password, ""}, {"password-file", "", f.passwordFile},
	} {
		if !cmd.Flags().Changed(one.name) {
			continue
		}
		if given != "" {
			return "", usage("--%s and --%s: give one of them", given, one.name)
		}
		given = one.name
		if one.value == "" && one.file == "" {
			return "", usage("--%s is empty", one.name)
		}
	}
	switch given {
	case "token", "password":
		fmt.Fprintf(cmd.ErrOrStderr(), "warning: everybody on this machine can see --%s with ps; use --%s-file or BERTH_GATEWAY_TOKEN\n", given, given)
		return f.token + f.password, nil
	case "token-file", "password-file":
		return bootstrap.ReadTokenFile(f.tokenFile + f.passwordFile)
	}
	return "", nil
}

// IsUsage reports whether an error is the command line's.
func IsUsage(err error) bool {
	var u *UsageError
	return errors.As(err, &u)
}
