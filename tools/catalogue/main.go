// Command catalogue writes the table of models that berth knows without asking
// anybody: adapters/llm/catalogue_table.go. It is a module of its own, because
// the collection of facts it reads takes ten milliseconds to decode and would
// be linked into the program.
//
// Names, windows and prices are facts; nothing else is taken over. Run it by
//
//	go generate ./adapters/llm
//
// and look at the difference: what it leaves out, it says.
package main

import (
	"bytes"
	"cmp"
	"fmt"
	"go/format"
	"math"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"

	"charm.land/catwalk/pkg/catwalk"
	"charm.land/catwalk/pkg/embedded"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "catalogue:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("usage: catalogue FILE")
	}
	rows, err := collect(embedded.GetAll())
	if err != nil {
		return err
	}
	src, err := render(rows)
	if err != nil {
		return err
	}
	return os.WriteFile(args[0], src, 0o644)
}

// row is one model as one seller sells it. Prices are US dollars per million
// tokens; 0 is unknown.
type row struct {
	seller, id, title        string
	window, output           int64
	images, audio, thoughts  bool
	in, out, cacheR, cacheWr float64
}

// source is a list of models and which of them are taken.
type source struct {
	id     catwalk.InferenceProvider
	seller string
	take   *regexp.Regexp
	drop   *regexp.Regexp // nil drops none
}

func sources() []source {
	all := regexp.MustCompile(``)
	re := regexp.MustCompile
	return []source{
		{"anthropic", "anthropic", all, nil},
		{"openai", "openai", all, nil},
		{"gemini", "gemini", all, re(`customtools`)},
		{"vertexai", "gemini", re(`^gemini-3\.1-pro-preview$`), nil},
		{"bedrock", "bedrock", re(`anthropic\.claude`), nil},
		{"deepseek", "deepseek", all, nil},
		{"xai", "xai", all, re(`non-reasoning|build|4\.20`)},
		{"moonshot", "moonshot", re(`^kimi`), re(`highspeed`)},
		{"minimax", "minimax", all, re(`highspeed|M2\.1`)},
		{"zai", "zai", all, re(`v$`)},
		{"alibaba-singapore", "alibaba", re(`^qwen`), re(`-[ab]\d+b$`)},
		{"openrouter", "openrouter", re(`^(openai/gpt-oss-|meta-llama/llama-(3\.3-70b|4)|qwen/qwen3(-coder|-max|-32b)|mistralai/(mistral-(large-2512|medium-3-5|small-2603)|codestral)|google/gemma-4|deepseek/deepseek-(v3\.2|v4|r1-0528)|moonshotai/kimi-k2\.|nvidia/nemotron-3-|z-ai/glm-5(\.1)?$)`),
			re(`:free$|thinking|safeguard|exp$|-flash$|nano|coder-30b`)},
	}
}

// date is what versions of one model differ in.
var date = regexp.MustCompile(`(-v\d+)?(-\d{8}|-\d{4}-\d{2}-\d{2})?(-v\d+)?(:\d+)?$`)

// collect takes what is wanted of the lists.
func collect(providers []catwalk.Provider) ([]row, error) {
	var rows []row
	for _, s := range sources() {
		i := slices.IndexFunc(providers, func(p catwalk.Provider) bool { return p.ID == s.id })
		if i < 0 {
			return nil, fmt.Errorf("there is no list of %s any more", s.id)
		}
		n := len(rows)
		for _, m := range providers[i].Models {
			if !s.take.MatchString(m.ID) || s.drop != nil && s.drop.MatchString(m.ID) {
				continue
			}
			r := makeRow(s.seller, m)
			if slices.ContainsFunc(rows[n:], func(o row) bool { return o.id == r.id }) {
				continue // an older version of the same name
			}
			rows = append(rows, r)
		}
		if len(rows) == n {
			return nil, fmt.Errorf("nothing is taken of %s", s.id)
		}
	}
	slices.SortStableFunc(rows, func(a, b row) int {
		return cmp.Or(cmp.Compare(order(a.seller), order(b.seller)), strings.Compare(a.id, b.id))
	})
	return rows, nil
}

// order is the place of a seller in the table.
func order(seller string) int {
	return slices.IndexFunc(sources(), func(s source) bool { return s.seller == seller })
}

func makeRow(seller string, m catwalk.Model) row {
	id := m.ID
	if i := strings.Index(id, "anthropic."); i >= 0 {
		id = id[i+len("anthropic."):] // without the region
	}
	id = date.ReplaceAllString(id, "")
	_, title, aggregated := strings.Cut(m.Name, ": ")
	if !aggregated {
		title = m.Name
	}
	r := row{
		seller: seller, id: id, title: strings.TrimSpace(title),
		window: m.ContextWindow, output: longest(id, m.DefaultMaxTokens),
		images: m.SupportsImages, audio: strings.HasPrefix(id, "gemini"), thoughts: m.CanReason,
		in: round(m.CostPer1MIn), out: round(m.CostPer1MOut),
	}
	// Which of the two fields holds the price of reading and which that of
	// writing differs from list to list. Reading costs at most half of what
	// new input costs, and writing a little more than that; anything else, such
	// as a price per hour, is none of both.
	for _, price := range []float64{round(m.CostPer1MInCached), round(m.CostPer1MOutCached)} {
		switch {
		case price <= 0:
		case price <= 0.51*r.in:
			r.cacheR = max(r.cacheR, price)
		case price > r.in && price <= 2*r.in:
			r.cacheWr = price
		default:
			fmt.Fprintf(os.Stderr, "catalogue: %s/%s: %g is no price of a cache when input costs %g; left out\n", seller, m.ID, price, r.in)
		}
	}
	// A title that only repeats the name says nothing.
	if strings.EqualFold(r.title, path.Base(r.id)) {
		r.title = ""
	}
	return r
}

// longest corrects what lists take for the longest reply and what is a
// preference of theirs: the makers' own pages say more.
func longest(id string, listed int64) int64 {
	for _, c := range []struct {
		prefix string
		tokens int64
	}{
		{"gpt-4.1", 32768}, {"gpt-4o", 16384}, {"o3", 100_000}, {"o4-mini", 100_000}, {"gemini-", 65536},
	} {
		if strings.HasPrefix(id, c.prefix) {
			return c.tokens
		}
	}
	return listed
}

// round drops what a division before left behind.
func round(v float64) float64 { return math.Round(v*1e6) / 1e6 }

func render(rows []row) ([]byte, error) {
	var b bytes.Buffer
	b.WriteString(`// Code generated by tools/catalogue; DO NOT EDIT.

package llm

// catalogue is the generated table, sorted by seller. It is a function so that
// it costs nothing until the first model is looked up.
//
//nolint:funlen // a table
func catalogue() []entry {
	return []entry{
`)
	seller := ""
	for _, r := range rows {
		if r.seller != seller {
			seller = r.seller
			fmt.Fprintf(&b, "\n")
		}
		fmt.Fprintf(&b, "{%q, %q, %q, %d, %d, %s, %g, %g, %g, %g},\n",
			r.seller, r.id, r.title, r.window, r.output, abilities(r), r.in, r.out, r.cacheR, r.cacheWr)
	}
	b.WriteString("}\n}\n")
	return format.Source(b.Bytes())
}

// abilities writes a row's abilities as the constants of the table.
func abilities(r row) string {
	var names []string
	for _, a := range []struct {
		has  bool
		name string
	}{{r.images, "sees"}, {r.audio, "hears"}, {r.thoughts, "thinks"}} {
		if a.has {
			names = append(names, a.name)
		}
	}
	if len(names) == 0 {
		return "0"
	}
	return strings.Join(names, "|")
}
