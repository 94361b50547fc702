package shellpolicy

import (
	"bufio"
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/berth-dev/berth/core/domain"
)

// corpusCase is one line of testdata/shell-policy.jsonl.
type corpusCase struct {
	ID, Description string
	Input           struct {
		Command string
		Gen     *struct {
			Prefix, Repeat, Suffix string
			Times                  int
		} `json:"command_gen"`
		Rules struct{ Allow, Ask, Deny []string }
	}
	Expected struct {
		ReadOnly   string `json:"read_only"`
		Supervised string
		Full       string
		Class      string
		Always     *bool               `json:"offer_allow_always"`
		AlsoOK     map[string][]string `json:"also_ok"`
	}
}

func corpus(t testing.TB) []corpusCase {
	t.Helper()
	f, err := os.Open("testdata/shell-policy.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close() //nolint:errcheck // read only
	var list []corpusCase
	for s := bufio.NewScanner(f); s.Scan(); {
		var c corpusCase
		if err := json.Unmarshal(s.Bytes(), &c); err != nil {
			t.Fatal(err)
		}
		list = append(list, c)
	}
	return list
}

func (c corpusCase) line(r *rig) string {
	if g := c.Input.Gen; g != nil {
		return g.Prefix + strings.Repeat(g.Repeat, g.Times) + g.Suffix
	}
	return r.fill(c.Input.Command)
}

// policy is a profile with rules as a person writes them.
func policy(t testing.TB, level domain.Level, allow, ask, deny []string) domain.Policy {
	t.Helper()
	rules := func(list []string) (out []domain.ToolRule) {
		for _, text := range list {
			words, err := Words(text)
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, domain.ToolRule{Tool: "shell", Words: words})
		}
		return out
	}
	return domain.Policy{Level: level, AutoApprove: rules(allow), AlwaysAsk: rules(ask), Deny: rules(deny)}
}

func verdict(r domain.Ruling) string {
	return map[domain.Verdict]string{domain.Allow: "allow", domain.Ask: "ask", domain.Refuse: "deny"}[r.Verdict]
}

// classOf is the class of the corpus's words.
func classOf(a Analysis) string {
	switch {
	case a.Forbidden != "":
		return "R3"
	case a.Outside:
		return "X"
	case a.Protected:
		return "P"
	case a.Class == read:
		return "R0"
	case a.Class == run:
		return "R1"
	}
	return "R2"
}

func TestAnalyze_Corpus(t *testing.T) {
	cases := corpus(t)
	if len(cases) != 112 {
		t.Fatalf("the corpus has %d cases, want 112", len(cases))
	}
	r := newRig(t)
	for _, c := range cases {
		t.Run(c.ID+" "+c.Description, func(t *testing.T) {
			a := r.analyze(t, c.line(r))
			for _, want := range []struct {
				level   domain.Level
				verdict string
			}{
				{domain.LevelReadOnly, c.Expected.ReadOnly}, {domain.LevelSupervised, c.Expected.Supervised}, {domain.LevelFull, c.Expected.Full},
			} {
				in := c.Input.Rules
				ruling := domain.Decide(policy(t, want.level, in.Allow, in.Ask, in.Deny), nil, a.Access("shell", r.ws))
				got := verdict(ruling)
				if got != want.verdict && !slices.Contains(c.Expected.AlsoOK[string(want.level)], got) {
					t.Errorf("%s: %s, want %s (%+v)", want.level, got, want.verdict, a)
				}
				if always := c.Expected.Always; always != nil && got == "ask" && (len(ruling.Always) > 0) != *always {
					t.Errorf("%s: offers always: %v, want %v (%+v)", want.level, ruling.Always, *always, a)
				}
			}
			if got, want := classOf(a), c.Expected.Class; got != want && want != "rule" && want != "unparseable" && len(c.Expected.AlsoOK) == 0 {
				t.Errorf("class %s, want %s (%+v)", got, want, a)
			}
		})
	}
}
