package main

import (
	"github.com/spf13/cobra"

	"github.com/berth-dev/berth/cmd/internal/bridgecmd"
)

// newBridge connects an editor with a gateway.
func newBridge(c *common) *cobra.Command {
	cmd := bridgecmd.New("bridge", c.options)
	cmd.Example = `  berth bridge
  berth bridge --agent reviewer --session agent:reviewer:main
  berth bridge --url wss://berth.example/acp --token-file ~/.berth-token`
	inner := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		err := inner(cmd, args)
		if bridgecmd.IsUsage(err) {
			return exitError{exitUsage, err}
		}
		return failed(err)
	}
	return cmd
}
