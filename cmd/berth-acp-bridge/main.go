// Command berth-acp-bridge is "berth bridge" for editors that take the name of
// one program.
package main

import (
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/berth-dev/berth/bootstrap"
	"github.com/berth-dev/berth/cmd/internal/bridgecmd"
)

func main() {
	bootstrap.Pulse()
	os.Exit(run(os.Args[1:], os.Stdout, os.Stderr))
}

func run(args []string, out, errOut io.Writer) int {
	var configDir, dataDir string
	cmd := bridgecmd.New("berth-acp-bridge", func(flags map[string]string) bootstrap.LoadOptions {
		return bootstrap.LoadOptions{ConfigDir: configDir, DataDir: dataDir, Flags: flags, Env: os.Environ()}
	})
	cmd.Example = `  berth-acp-bridge
  berth-acp-bridge --url wss://berth.example/acp --token-file ~/.berth-token`
	cmd.Flags().StringVar(&configDir, "config-dir", "", "directory that holds config.toml (default $BERTH_CONFIG_DIR or ~/.config/berth)")
	cmd.Flags().StringVar(&dataDir, "data-dir", "", "directory of the daemon's sessions (default $BERTH_DATA_DIR or ~/.local/share/berth)")
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	cmd.CompletionOptions.DisableDefaultCmd = true
	cmd.SetArgs(args)
	cmd.SetOut(out)
	cmd.SetErr(errOut)
	started := false
	inner := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		started = true
		return inner(cmd, args)
	}
	err := cmd.Execute()
	if err == nil {
		return 0
	}
	fmt.Fprintf(errOut, "berth-acp-bridge: %v\n", err)
	if !started || bridgecmd.IsUsage(err) {
		fmt.Fprintln(errOut, "Try 'berth-acp-bridge --help'.")
		return 2
	}
	return 1
}
