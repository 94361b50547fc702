package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/berth-dev/berth/bootstrap"
)

// newLogout removes a stored key.
func newLogout(c *common) *cobra.Command {
	return &cobra.Command{
		Use:   "logout [PROVIDER]",
		Short: "Remove the stored key of a model provider",
		Long: `Removes the key that "berth login" stored. PROVIDER may be left out when only one
key is stored. Keys of the environment, of the configuration and of files are
not Berth's to remove; it says when one is left. An agent that is running does
without the key at its next request.`,
		Example: `  berth logout
  berth logout openai`,
		Args: wants(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			keys, err := bootstrap.OpenKeys(c.options(nil))
			if err != nil {
				return failed(err)
			}
			defer func() { _ = keys.Close() }() // it has nothing to save
			if len(args) > 0 {
				return failed(logout(cmd, keys, args[0]))
			}
			var stored []string
			for _, p := range keys.Providers() {
				if p.Stored {
					stored = append(stored, p.Name)
				}
			}
			switch len(stored) {
			case 0:
				_, err := fmt.Fprintln(cmd.OutOrStdout(), "No key is stored.")
				return failed(err)
			case 1:
				return failed(logout(cmd, keys, stored[0]))
			}
			return usage("keys are stored for %s; say which one to remove: %s PROVIDER", strings.Join(stored, ", "), cmd.CommandPath())
		},
	}
}

func logout(cmd *cobra.Command, keys *bootstrap.Keys, name string) error {
	if _, err := keys.Provider(name); err != nil {
		return err
	}
	removed, err := keys.Remove(name)
	if err != nil {
		return err
	}
	out := cmd.OutOrStdout()
	if removed {
		fmt.Fprintf(out, "The stored key for %s is removed.\n", name)
	} else {
		fmt.Fprintf(out, "No key for %s is stored.\n", name)
	}
	p, err := keys.Provider(name)
	if err != nil || p.Source == "" {
		return err
	}
	_, err = fmt.Fprintf(out, "It still has one here: %s.\n", p.Source)
	return err
}
