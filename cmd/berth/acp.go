package main

import (
	"strconv"

	"github.com/spf13/cobra"

	"github.com/berth-dev/berth/bootstrap"
	"github.com/berth-dev/berth/core/domain"
)

// newACP is the agent on standard input and output.
func newACP(c *common) *cobra.Command {
	var (
		agent, model, dialect, level string
		maxSessions, timeout         int
	)
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
			flags := map[string]string{}
			set := func(flag, key, value string) {
				if cmd.Flags().Changed(flag) {
					flags[key] = value
				}
			}
			set("agent", "acp.default_agent", agent)
			set("max-sessions", "acp.max_sessions", strconv.Itoa(maxSessions))
			set("session-timeout", "acp.session_timeout_secs", strconv.Itoa(timeout))
			set("dialect", "acp.dialect", dialect)
			set("log-level", "log.level", level)
			cfg, err := bootstrap.LoadConfig(c.options(flags))
			if err != nil {
				return failed(err)
			}
			opts := []bootstrap.Option{bootstrap.WithHelper(c.helper)}
			if model != "" {
				ref, err := domain.ParseModelRef(model)
				if err != nil {
					return usage("--model: %v", err)
				}
				opts = append(opts, bootstrap.WithModel(ref))
			}
			return failed(bootstrap.RunSubprocess(cfg, out, opts...))
		},
	}
	f := cmd.Flags()
	f.StringVar(&agent, "agent", "", "agent for sessions that name none (acp.default_agent)")
	f.StringVar(&model, "model", "", `model of every agent, as "provider/model"`)
	f.IntVar(&maxSessions, "max-sessions", 0, "active sessions (acp.max_sessions)")
	f.IntVar(&timeout, "session-timeout", 0, "seconds after which an idle session leaves memory (acp.session_timeout_secs)")
	f.StringVar(&dialect, "dialect", "", "auto, acp or zeroclaw (acp.dialect)")
	f.StringVar(&level, "log-level", "", "trace, debug, info, warn, error or off (log.level)")
	return cmd
}
