package main

import (
	"os"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/berth-dev/berth/bootstrap"
	"github.com/berth-dev/berth/core/domain"
)

// acpFlags are the flags of acp.
type acpFlags struct {
	agent, model, dialect, level string
	maxSessions, timeout         int
}

func (a *acpFlags) register(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&a.agent, "agent", "", "agent for sessions that name none (acp.default_agent)")
	f.StringVar(&a.model, "model", "", `model of every agent, as "provider/model"`)
	f.IntVar(&a.maxSessions, "max-sessions", 0, "active sessions (acp.max_sessions)")
	f.IntVar(&a.timeout, "session-timeout", 0, "seconds after which an idle session leaves memory (acp.session_timeout_secs)")
	f.StringVar(&a.dialect, "dialect", "", "auto, acp or zeroclaw (acp.dialect)")
	f.StringVar(&a.level, "log-level", "", "trace, debug, info, warn, error or off (log.level)")
}

// names are the names of the flags.
func (*acpFlags) names() []string {
	return []string{"agent", "model", "max-sessions", "session-timeout", "dialect", "log-level"}
}

// settings returns the settings that the given flags override, by their paths.
func (a *acpFlags) settings(cmd *cobra.Command) map[string]string {
	flags := map[string]string{}
	for flag, set := range map[string][2]string{
		"agent": {"acp.default_agent", a.agent}, "max-sessions": {"acp.max_sessions", strconv.Itoa(a.maxSessions)},
		"session-timeout": {"acp.session_timeout_secs", strconv.Itoa(a.timeout)}, "dialect": {"acp.dialect", a.dialect}, "log-level": {"log.level", a.level},
	} {
		if cmd.Flags().Changed(flag) {
			flags[set[0]] = set[1]
		}
	}
	return flags
}

// newACP is the agent on standard input and output.
func newACP(c *common) *cobra.Command {
	var given acpFlags
	cmd := &cobra.Command{
		Use:   "acp",
		Short: "The agent on standard input and output, for an editor to start",
		Long: `Speaks the Agent Client Protocol: one JSON message a line on standard input and
output, the log on standard error. It ends with code 0 when its input ends.`,
		Example: `  berth acp
  berth acp --agent reviewer --log-level debug
  echo '{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1}}' | berth acp`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			hintEditor(cmd)
			out, err := bootstrap.TakeStdout()
			if err != nil {
				return failed(err)
			}
			cfg, err := bootstrap.LoadConfig(c.options(given.settings(cmd)))
			if err != nil {
				return failed(err)
			}
			opts := []bootstrap.Option{bootstrap.WithHelper(c.helper), bootstrap.WithLogin(c.loginArgs(cfg)...)}
			if given.model != "" {
				ref, err := domain.ParseModelRef(given.model)
				if err != nil {
					return usage("--model: %v", err)
				}
				opts = append(opts, bootstrap.WithModel(ref))
			}
			return failed(bootstrap.RunSubprocess(cfg, out, opts...))
		},
	}
	given.register(cmd)
	cmd.AddCommand(newACPLogin(c))
	return cmd
}

// loginArgs are the arguments with which a client starts this program to sign
// in: the directories are named when they are not the ones it would find.
func (c *common) loginArgs(cfg *bootstrap.Config) []string {
	args := []string{"login"}
	if c.configDir != "" || os.Getenv("BERTH_CONFIG_DIR") != "" {
		args = append(args, "--config-dir", cfg.ConfigDir)
	}
	if c.dataDir != "" || os.Getenv("BERTH_DATA_DIR") != "" {
		args = append(args, "--data-dir", cfg.DataDir)
	}
	return args
}
