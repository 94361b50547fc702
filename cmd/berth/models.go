package main

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/berth-dev/berth/bootstrap"
)

// newModels shows what models there are.
func newModels(c *common) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "models",
		Short:   "Show model providers, whether they answer, and their models",
		Example: "  berth models list",
		Args:    subcommandsOnly,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newModelsList(c))
	return cmd
}

func newModelsList(c *common) *cobra.Command {
	var asJSON, all bool
	q := bootstrap.ModelQuery{}
	cmd := &cobra.Command{
		Use:   "list [PROVIDER...]",
		Short: "Print providers and their models: window, price, abilities, reachable or not",
		Long: `Prints the providers that are configured or have a key, whether they answer and
take the key, and their models. Each is asked for the list of its models, with
its key and at no cost; --probe=false asks nobody and prints what is known here.

Windows and prices come from the built-in catalogue, from what the provider says,
and from providers.<name>.models in the configuration, which is over both. Models
nothing is known of are only counted; --all prints them too.`,
		Example: `  berth models list
  berth models list anthropic --all
  berth models list --probe=false --json`,
		RunE: func(cmd *cobra.Command, args []string) error {
			q.Providers = args
			found, err := bootstrap.ListModels(cmd.Context(), c.options(nil), q)
			if err != nil {
				return failed(err)
			}
			if asJSON {
				enc := json.NewEncoder(cmd.OutOrStdout())
				enc.SetIndent("", "  ")
				return failed(enc.Encode(found))
			}
			return failed(printModels(cmd.OutOrStdout(), width(cmd.OutOrStdout()), all, found))
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON, with all models")
	cmd.Flags().BoolVar(&all, "all", false, "print models too of which only the name is known")
	cmd.Flags().BoolVar(&q.Probe, "probe", true, "ask the providers whether they answer and what they have")
	return cmd
}

// width is that of a terminal; no limit for anything else.
func width(out io.Writer) int {
	if f, ok := out.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		if w, _, err := term.GetSize(int(f.Fd())); err == nil && w > 0 {
			return w
		}
	}
	return math.MaxInt
}

// printModels prints one table for each provider, as wide as allowed.
func printModels(out io.Writer, width int, all bool, found []bootstrap.ProviderReport) error {
	var b strings.Builder
	for i, p := range found {
		if i > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(p.Name + ": " + providerState(p) + "\n")
		if p.Detail != "" {
			b.WriteString("  " + p.Detail + "\n")
		}
		if len(p.Fallback) > 0 {
			b.WriteString("  when it cannot answer: " + strings.Join(p.Fallback, ", ") + "\n")
		}
		rows, hidden := [][]string{}, 0
		for _, m := range p.Models {
			if !all && !m.Known() && len(m.Agents) == 0 && len(m.FallbackOf) == 0 && len(p.Models) > 20 {
				hidden++
				continue
			}
			rows = append(rows, modelRow(p.Name, m))
		}
		table(&b, width, rows)
		if hidden > 0 {
			fmt.Fprintf(&b, "  and %d of which only the name is known: berth models list %s --all\n", hidden, p.Name)
		}
	}
	if len(found) == 0 {
		b.WriteString("no provider is configured\n")
	}
	_, err := io.WriteString(out, plain(b.String()))
	return err
}

// providerState is a provider's state in words.
func providerState(p bootstrap.ProviderReport) string {
	state := map[string]string{
		bootstrap.ProviderReachable:   "reachable",
		bootstrap.ProviderUnreachable: "not reachable",
		bootstrap.ProviderRefuses:     "refuses to list its models",
		bootstrap.ProviderNoKey:       "no API key",
		bootstrap.ProviderKeyRefused:  "refuses the API key",
		bootstrap.ProviderNotAsked:    "not asked",
	}[p.State]
	switch {
	case p.Server != "":
		return state + ", " + p.Server
	case p.State == bootstrap.ProviderNotAsked:
		return "built in"
	}
	return state
}

// modelRow is a model's line, with the columns of tableHead.
func modelRow(provider string, m bootstrap.ModelReport) []string {
	var can []string
	for _, a := range []struct {
		has  bool
		name string
	}{{m.Tools, "tools"}, {m.Images, "images"}, {m.Audio, "audio"}, {m.Thoughts, "thoughts"}} {
		if a.has {
			can = append(can, a.name)
		}
	}
	var notes []string
	if len(m.Agents) > 0 {
		notes = append(notes, "used by "+strings.Join(m.Agents, ", "))
	}
	if len(m.FallbackOf) > 0 {
		notes = append(notes, "fallback of "+strings.Join(m.FallbackOf, ", "))
	}
	if m.Offered != nil && !*m.Offered {
		notes = append(notes, "not offered")
	}
	return []string{
		strings.TrimPrefix(m.ID, provider+"/"), tokens(m.ContextWindow), tokens(m.MaxOutputTokens),
		price(m.InputPrice, m.OutputPrice), strings.Join(can, " "), strings.Join(notes, "; "),
	}
}

// tableHead names the columns of modelRow.
func tableHead() []string { return []string{"MODEL", "WINDOW", "OUTPUT", "$ IN/OUT", "CAN", ""} }

// spare are the columns that are left out where not all fit, first to last.
func spare() []int { return []int{2, 4, 3, 5, 1} }

// table prints rows below each other, with as many columns as fit and are not
// empty.
func table(b *strings.Builder, width int, rows [][]string) {
	if len(rows) == 0 {
		return
	}
	head := tableHead()
	wide := make([]int, len(head))
	total := 0
	for i := range wide {
		for _, row := range rows {
			wide[i] = max(wide[i], utf8.RuneCountInString(row[i]))
		}
		if wide[i] > 0 {
			wide[i] = max(wide[i], len(head[i]))
			total += wide[i] + 2
		}
	}
	for _, i := range spare() {
		if total > width && wide[i] > 0 {
			total -= wide[i] + 2
			wide[i] = 0
		}
	}
	for _, row := range append([][]string{head}, rows...) {
		line := ""
		for i, cell := range row {
			if wide[i] > 0 {
				line += "  " + cell + strings.Repeat(" ", wide[i]-utf8.RuneCountInString(cell))
			}
		}
		b.WriteString(strings.TrimRight(line, " ") + "\n")
	}
}

// tokens is a number of tokens as people say it: "200k", "1M".
func tokens(n int64) string {
	switch {
	case n <= 0:
		return "?"
	case n >= 1_000_000:
		return strconv.FormatFloat(math.Round(float64(n)/10_000)/100, 'f', -1, 64) + "M"
	case n >= 1000:
		return strconv.FormatInt((n+500)/1000, 10) + "k"
	}
	return strconv.FormatInt(n, 10)
}

// price is what a million tokens in and out cost.
func price(in, out float64) string {
	if in == 0 && out == 0 {
		return "?"
	}
	return strconv.FormatFloat(in, 'f', -1, 64) + " / " + strconv.FormatFloat(out, 'f', -1, 64)
}
