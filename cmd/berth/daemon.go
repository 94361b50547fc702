package main

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/berth-dev/berth/bootstrap"
	"github.com/berth-dev/berth/core/domain"
)

// newDaemon is the gateway.
func newDaemon(c *common) *cobra.Command {
	var (
		listen, model, level string
		check                bool
	)
	cmd := &cobra.Command{
		Use:   "daemon",
		Short: "The gateway: many clients, over WebSocket and HTTP",
		Long: `Serves the agents to clients that connect: /acp for the protocol, /metrics for
Prometheus, /healthz and /readyz for who watches over the process. Clients show
a token, which "berth token create" makes. A session goes on when its connection
is lost.

A service manager may hand over the sockets to listen on (LISTEN_FDS).

SIGHUP   reads the configuration again: agents, providers, profiles; sessions go
         on. A broken file changes nothing, and the log says why.
SIGTERM  takes no more connections and prompts, lets turns finish for
         gateway.drain_secs (30), cancels the rest and ends with code 0. A second
         signal ends the process at once.`,
		Example: `  berth daemon
  berth daemon --listen 127.0.0.1:9000 --log-level debug
  berth daemon --listen unix:$XDG_RUNTIME_DIR/berth.sock
  berth daemon --check`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			flags := map[string]string{}
			for flag, set := range map[string][2]string{"listen": {"gateway.listen", listen}, "log-level": {"log.level", level}} {
				if cmd.Flags().Changed(flag) {
					flags[set[0]] = set[1]
				}
			}
			load := c.options(flags)
			if check {
				return failed(checkDaemon(cmd.Context(), load))
			}
			cfg, err := bootstrap.LoadConfig(load)
			if err != nil {
				return failed(err)
			}
			opts := []bootstrap.Option{
				bootstrap.WithHelper(c.helper),
				bootstrap.WithReload(func() (*bootstrap.Config, error) { return bootstrap.LoadConfig(load) }),
			}
			if model != "" {
				ref, err := domain.ParseModelRef(model)
				if err != nil {
					return usage("--model: %v", err)
				}
				opts = append(opts, bootstrap.WithModel(ref))
			}
			return failed(bootstrap.RunDaemon(cfg, opts...))
		},
	}
	f := cmd.Flags()
	f.StringVar(&listen, "listen", "", "host:port or unix:/path to listen on (gateway.listen)")
	f.BoolVar(&check, "check", false, "ask the daemon that runs whether it is ready, and end with code 0 or 1")
	f.StringVar(&model, "model", "", `model of every agent, as "provider/model"`)
	f.StringVar(&level, "log-level", "", "trace, debug, info, warn, error or off (log.level)")
	return cmd
}

// checkDaemon asks the daemon whether it is ready. What is wrong with the
// configuration matters only if there is none.
func checkDaemon(ctx context.Context, load bootstrap.LoadOptions) error {
	cfg, broken, err := bootstrap.LoadDataDir(load)
	if err != nil {
		return err
	}
	if err := bootstrap.CheckDaemon(ctx, cfg); err != nil {
		return errors.Join(err, broken)
	}
	return nil
}
