package main

import (
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/berth-dev/berth/bootstrap"
)

// newDoctor looks whether a session could work here.
func newDoctor(c *common) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Check configuration, store, agents, providers and sandbox, and say how to mend them",
		Long: `Looks at everything a session needs and says how to mend what does not work. The
sandbox is really tried: what is printed is what was proven. The providers that
agents use are asked for their models, with their keys and at no cost; no model is
asked. Ends with code 1 when something does not work.`,
		Example: `  berth doctor
  berth doctor --json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			found := bootstrap.Diagnose(cmd.Context(), c.options(nil), bootstrap.WithHelper(c.helper))
			bad := 0
			for _, f := range found {
				if f.State == bootstrap.FindingFail {
					bad++
				}
			}
			if asJSON {
				enc := json.NewEncoder(cmd.OutOrStdout())
				enc.SetIndent("", "  ")
				if err := enc.Encode(found); err != nil {
					return failed(err)
				}
			} else if err := printFindings(cmd, found); err != nil {
				return failed(err)
			}
			if bad > 0 {
				return exitError{exitFailed, fmt.Errorf("%d of %d checks failed", bad, len(found))}
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func printFindings(cmd *cobra.Command, found []bootstrap.Finding) error {
	for _, f := range found {
		if _, err := fmt.Fprintf(cmd.OutOrStdout(), "%-4s  %s: %s\n", f.State, f.Name, f.Detail); err != nil {
			return err
		}
		if f.Mend == "" || f.State == bootstrap.FindingOK {
			continue
		}
		if _, err := fmt.Fprintf(cmd.OutOrStdout(), "      %s\n", f.Mend); err != nil {
			return err
		}
	}
	return nil
}
