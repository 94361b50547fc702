package main

import (
	"math"
	"strings"
	"testing"

	"github.com/berth-dev/berth/bootstrap"
)

func report() []bootstrap.ProviderReport {
	yes, no := true, false
	return []bootstrap.ProviderReport{
		{
			Name: "cloud", Type: "openai", Server: "https://api.cloud.test/v1", State: bootstrap.ProviderReachable, Fallback: []string{"local/small"},
			Models: []bootstrap.ModelReport{
				{
					ID: "cloud/large", ContextWindow: 1_047_576, MaxOutputTokens: 32768, InputPrice: 2.5, OutputPrice: 10,
					Tools: true, Images: true, Thoughts: true, Offered: &yes, Agents: []string{"default", "review"},
				},
				{ID: "cloud/gone", ContextWindow: 8192, MaxOutputTokens: 500, Tools: true, Offered: &no},
			},
		},
		{Name: "local", Type: "ollama", Server: "http://127.0.0.1:11434", State: bootstrap.ProviderUnreachable, Detail: "nothing listens", Models: []bootstrap.ModelReport{
			{ID: "local/small", FallbackOf: []string{"cloud"}},
		}},
		{Name: "offline", Type: "offline", State: bootstrap.ProviderNotAsked, Models: []bootstrap.ModelReport{}},
	}
}

// TestPrintModels: the table at several widths.
func TestPrintModels(t *testing.T) {
	for _, c := range []struct {
		name  string
		width int
		want  string
	}{
		{"wide", math.MaxInt, `cloud: reachable, https://api.cloud.test/v1
  when it cannot answer: local/small
  MODEL  WINDOW  OUTPUT  $ IN/OUT  CAN
  large  1.05M   33k     2.5 / 10  tools images thoughts  used by default, review
  gone   8k      500     ?         tools                  not offered

local: not reachable, http://127.0.0.1:11434
  nothing listens
  MODEL  WINDOW  OUTPUT  $ IN/OUT
  small  ?       ?       ?         fallback of cloud

offline: built in
`},
		{"narrow", 60, `cloud: reachable, https://api.cloud.test/v1
  when it cannot answer: local/small
  MODEL  WINDOW  $ IN/OUT
  large  1.05M   2.5 / 10  used by default, review
  gone   8k      ?         not offered
`},
		{"very narrow", 20, `cloud: reachable, https://api.cloud.test/v1
  when it cannot answer: local/small
  MODEL  WINDOW
  large  1.05M
  gone   8k
`},
	} {
		t.Run(c.name, func(t *testing.T) {
			var out strings.Builder
			if err := printModels(&out, c.width, false, report()); err != nil {
				t.Fatal(err)
			}
			if !strings.HasPrefix(out.String(), c.want) {
				t.Errorf("got\n%s\nwant\n%s", out.String(), c.want)
			}
			for line := range strings.Lines(out.String()) {
				if strings.HasPrefix(line, "  large") && len(line) > c.width {
					t.Errorf("%q is too long", line)
				}
			}
		})
	}
}

// TestPrintModels_Many: names alone are counted where there are many, unless
// all are wanted or used.
func TestPrintModels_Many(t *testing.T) {
	p := bootstrap.ProviderReport{Name: "cloud", Server: "https://c", State: bootstrap.ProviderReachable}
	for range 30 {
		p.Models = append(p.Models, bootstrap.ModelReport{ID: "cloud/embedding"})
	}
	p.Models = append(p.Models, bootstrap.ModelReport{ID: "cloud/mine", Agents: []string{"a"}}, bootstrap.ModelReport{ID: "cloud/known", ContextWindow: 9})
	for all, want := range map[bool]int{false: 0, true: 30} {
		var out strings.Builder
		if err := printModels(&out, math.MaxInt, all, []bootstrap.ProviderReport{p}); err != nil {
			t.Fatal(err)
		}
		if got := strings.Count(out.String(), "embedding"); got != want || !strings.Contains(out.String(), "mine") || !strings.Contains(out.String(), "known") {
			t.Errorf("all=%v:\n%s", all, out.String())
		}
		if counted := strings.Contains(out.String(), "and 30 of which only the name is known: berth models list cloud --all"); counted == all {
			t.Errorf("all=%v:\n%s", all, out.String())
		}
	}
}

// TestPrintModels_Plain: what a server sends cannot move the cursor.
func TestPrintModels_Plain(t *testing.T) {
	var out strings.Builder
	err := printModels(&out, math.MaxInt, false, []bootstrap.ProviderReport{{Name: "p", State: bootstrap.ProviderReachable, Models: []bootstrap.ModelReport{{ID: "p/\x1b[2Jx"}}}})
	if err != nil || strings.Contains(out.String(), "\x1b") {
		t.Errorf("%q, %v", out.String(), err)
	}
}

func TestTokens(t *testing.T) {
	for n, want := range map[int64]string{0: "?", 500: "500", 8192: "8k", 200_000: "200k", 999_999: "1000k", 1_000_000: "1M", 1_048_576: "1.05M", 2_000_000: "2M"} {
		if got := tokens(n); got != want {
			t.Errorf("%d: %s, want %s", n, got, want)
		}
	}
}
