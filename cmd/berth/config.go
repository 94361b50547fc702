package main

import (
	"github.com/spf13/cobra"

	"github.com/berth-dev/berth/bootstrap"
)

// newConfig shows and edits the configuration.
func newConfig(c *common) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "config",
		Short: "Show, check and change the configuration",
		Example: `  berth config list
  berth config get acp.max_sessions
  berth config set acp.max_sessions 20
  berth config set providers.local.api_key -
  berth config validate`,
		Args: subcommandsOnly,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.PersistentFlags().BoolVar(&asJSON, "json", false, "print JSON")
	cmd.AddCommand(
		&cobra.Command{
			Use: "path", Short: "Print where the configuration file is, or would be",
			Example: "  berth config path", Args: cobra.NoArgs,
			RunE: func(cmd *cobra.Command, _ []string) error {
				return failed(bootstrap.ConfigPath(cmd.OutOrStdout(), c.options(nil), asJSON))
			},
		},
		&cobra.Command{
			Use: "list", Short: "Print every setting with its value and where it comes from",
			Example: "  berth config list --json", Args: cobra.NoArgs,
			RunE: func(cmd *cobra.Command, _ []string) error {
				return failed(bootstrap.ConfigList(cmd.OutOrStdout(), c.options(nil), asJSON))
			},
		},
		&cobra.Command{
			Use: "get PATH", Short: "Print one setting, or all of a table",
			Example: "  berth config get agents.default.model", Args: wants(1, 1),
			RunE: func(cmd *cobra.Command, args []string) error {
				return failed(bootstrap.ConfigGet(cmd.OutOrStdout(), c.options(nil), args[0], asJSON))
			},
		},
		newConfigSet(c),
		&cobra.Command{
			Use: "validate", Short: "Check the configuration and say what is wrong with it",
			Long: `Says what is wrong with the configuration, with place and remedy, and ends with
code 1 if anything is. Warnings are about what is valid and will disappoint:
settings that do nothing in this version are among them.`,
			Example: "  berth config validate", Args: cobra.NoArgs,
			RunE: func(cmd *cobra.Command, _ []string) error {
				return failed(bootstrap.ConfigValidate(cmd.OutOrStdout(), c.options(nil), asJSON))
			},
		},
		&cobra.Command{
			Use: "schema", Short: "Print the JSON schema of the file, for editors",
			Example: "  berth config schema > berth.schema.json", Args: cobra.NoArgs,
			RunE: func(cmd *cobra.Command, _ []string) error {
				return failed(bootstrap.ConfigSchema(cmd.OutOrStdout()))
			},
		},
	)
	return cmd
}
