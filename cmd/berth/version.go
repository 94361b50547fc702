package main

import (
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/berth-dev/berth/bootstrap"
)

// newVersion prints what the program knows about its own build.
func newVersion() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:     "version",
		Short:   "Print version, commit, Go version, protocol and store schema",
		Example: "  berth version --json",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			v := bootstrap.Version()
			if asJSON {
				enc := json.NewEncoder(cmd.OutOrStdout())
				enc.SetIndent("", "  ")
				return failed(enc.Encode(v))
			}
			commit := v.Commit
			if commit == "" {
				commit = "unknown"
			}
			if v.Modified {
				commit += "+changes"
			}
			_, err := fmt.Fprintf(cmd.OutOrStdout(), "berth %s (commit %s, %s, ACP %d, store schema %d)\n",
				v.Version, commit, v.Go, v.Protocol, v.Schema)
			return failed(err)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}
