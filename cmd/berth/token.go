package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/berth-dev/berth/bootstrap"
)

// newToken is about the tokens of the gateway.
func newToken(c *common) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "token",
		Short: "Make, list and revoke the tokens that clients of the gateway show",
		Long: `Tokens are what clients show to "berth daemon". Only their SHA-256 is stored, in
the data directory, so a token is printed once. A running daemon sees every
change within seconds, and ends the connections of a token that was revoked.`,
		Example: `  berth token create --name laptop
  berth token create --name ci --agents reviewer --level read_only --root /srv/checkout
  berth token list
  berth token revoke laptop`,
		Args: subcommandsOnly,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newTokenCreate(c), newTokenList(c), newTokenRevoke(c))
	return cmd
}

func newTokenCreate(c *common) *cobra.Command {
	var want bootstrap.TokenInfo
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "create",
		Short: "Make a token and print it, once",
		Long: `Makes a token of 256 bits and prints it on standard output. It may do everything
unless it is limited. Where others than this machine can reach the gateway, a
token without --root can work in the agents' workspaces alone.`,
		Example: `  berth token create
  berth token create --name laptop --root ~/src
  berth token create --name wall --observe`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := bootstrap.LoadConfig(c.options(nil))
			if err != nil {
				return failed(err)
			}
			token, made, err := bootstrap.CreateToken(cfg, want)
			if err != nil {
				return failed(err)
			}
			if asJSON {
				return failed(printJSON(cmd, struct {
					Token string `json:"token"`
					bootstrap.TokenInfo
				}{token, made}))
			}
			fmt.Fprintf(cmd.ErrOrStderr(), "This is the token %s. It is shown this once:\n", made.Name)
			_, err = fmt.Fprintln(cmd.OutOrStdout(), token)
			return failed(err)
		},
	}
	f := cmd.Flags()
	f.StringVar(&want.Name, "name", "", "name to list and revoke it by (default: token-1, token-2, ...)")
	f.StringSliceVar(&want.Agents, "agents", nil, "agents it may use (default: all)")
	f.StringVar(&want.Level, "level", "", "most that its sessions may do: read_only, supervised or full (default: what the agent may)")
	f.StringArrayVar(&want.Roots, "root", nil, "directory that its sessions work in or below; may be repeated (default: any)")
	f.BoolVar(&want.Observe, "observe", false, "may list and watch sessions, nothing else")
	f.BoolVar(&want.MCPCommands, "allow-mcp-commands", false, "may name programs to start as MCP servers")
	f.BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func newTokenList(c *common) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the tokens and what they may do",
		Example: `  berth token list
  berth token list --json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := bootstrap.LoadConfig(c.options(nil))
			if err != nil {
				return failed(err)
			}
			list, err := bootstrap.ListTokens(cfg)
			if err != nil {
				return failed(err)
			}
			if asJSON {
				return failed(printJSON(cmd, list))
			}
			if len(list) == 0 {
				_, err := fmt.Fprintln(cmd.OutOrStdout(), "There is no token. Make one with: berth token create")
				return failed(err)
			}
			w := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
			fmt.Fprintln(w, "NAME\tCREATED\tLAST USED\tMAY")
			for _, t := range list {
				used := "never"
				if t.LastUsed != nil {
					used = t.LastUsed.Local().Format("2006-01-02 15h")
				}
				fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", t.Name, t.Created.Local().Format(time.DateOnly), used, rights(t))
			}
			return failed(w.Flush())
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// rights says what a token may do.
func rights(t bootstrap.TokenInfo) string {
	var parts []string
	if t.Observe {
		parts = append(parts, "observe only")
	}
	if t.Agents != nil {
		parts = append(parts, "agents "+strings.Join(t.Agents, ", "))
	}
	if t.Level != "" {
		parts = append(parts, "at most "+t.Level)
	}
	if t.Roots != nil {
		parts = append(parts, "below "+strings.Join(t.Roots, ", "))
	}
	if t.MCPCommands {
		parts = append(parts, "start MCP servers")
	}
	if len(parts) == 0 {
		return "everything but MCP commands"
	}
	return strings.Join(parts, "; ")
}

func newTokenRevoke(c *common) *cobra.Command {
	return &cobra.Command{
		Use:   "revoke NAME",
		Short: "Revoke a token and end its connections",
		Long: `Revokes a token and ends its connections, also when the configuration is broken
meanwhile.`,
		Example: `  berth token revoke laptop`,
		Args:    wants(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			cfg, broken, err := bootstrap.LoadDataDir(c.options(nil))
			if err != nil {
				return failed(err)
			}
			if err := bootstrap.RevokeToken(cfg, args[0]); err != nil {
				return failed(errors.Join(err, broken))
			}
			if broken != nil {
				fmt.Fprintf(cmd.ErrOrStderr(), "The configuration is broken, so see that %s is the right data directory:\n%v\n", cfg.DataDir, broken)
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "The token %s is revoked.\n", args[0])
			return failed(err)
		},
	}
}

// printJSON prints a value for programs.
func printJSON(cmd *cobra.Command, v any) error {
	enc := json.NewEncoder(cmd.OutOrStdout())
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}
