package porttest

import (
	"slices"
	"strings"
	"testing"

	"github.com/berth-dev/berth/core/domain"
	"github.com/berth-dev/berth/core/ports"
)

// agentTable is a ports.Agents over a list. Mutants change one of its methods.
type agentTable struct {
	list []domain.Agent
	def  string

	agent func(*agentTable, string) (domain.Agent, bool)
	all   func(*agentTable) []domain.Agent
	deflt func(*agentTable) string
}

func newAgentTable(list []domain.Agent, def string) *agentTable {
	a := &agentTable{list: slices.Clone(list), def: def}
	for i := range a.list {
		a.list[i].Workspace, a.list[i].MaxTurnRequests = "/agents/"+a.list[i].Alias, 1
	}
	slices.SortFunc(a.list, func(x, y domain.Agent) int { return strings.Compare(x.Alias, y.Alias) })
	return a
}

func (a *agentTable) Agent(alias string) (domain.Agent, bool) {
	if a.agent != nil {
		return a.agent(a, alias)
	}
	for _, g := range a.All() {
		if g.Alias == alias {
			return g, true
		}
	}
	return domain.Agent{}, false
}

func (a *agentTable) All() []domain.Agent {
	if a.all != nil {
		return a.all(a)
	}
	all := slices.Clone(a.list)
	for i := range all {
		p := &all[i].Policy
		p.Deny, p.AlwaysAsk, p.AutoApprove = slices.Clone(p.Deny), slices.Clone(p.AlwaysAsk), slices.Clone(p.AutoApprove)
	}
	return all
}

func (a *agentTable) Default() string {
	if a.deflt != nil {
		return a.deflt(a)
	}
	return a.def
}

func agentsFaults() map[string]func(*agentTable) {
	changeAll := func(change func(*domain.Agent)) func(*agentTable) {
		return func(a *agentTable) {
			for i := range a.list {
				change(&a.list[i])
			}
		}
	}
	return map[string]func(*agentTable){
		"agents-all": func(a *agentTable) {
			a.all = func(a *agentTable) []domain.Agent {
				return slices.DeleteFunc(slices.Clone(a.list), func(g domain.Agent) bool { return !g.Enabled })
			}
		},
		"agents-one": changeAll(func(g *domain.Agent) { g.Policy.AlwaysAsk = nil }),
		"agents-disabled": func(a *agentTable) {
			a.agent = func(a *agentTable, alias string) (domain.Agent, bool) {
				i := slices.IndexFunc(a.list, func(g domain.Agent) bool { return g.Alias == alias && g.Enabled })
				if i < 0 {
					return domain.Agent{}, false
				}
				return a.list[i], true
			}
		},
		"agents-unknown": func(a *agentTable) {
			a.agent = func(a *agentTable, alias string) (domain.Agent, bool) {
				i := slices.IndexFunc(a.list, func(g domain.Agent) bool { return strings.EqualFold(g.Alias, alias) })
				if i < 0 {
					return domain.Agent{}, false
				}
				return a.list[i], true
			}
		},
		"agents-default": func(a *agentTable) {
			a.deflt = func(a *agentTable) string {
				if _, ok := a.Agent(a.def); !ok {
					return ""
				}
				return a.def
			}
		},
		"agents-agree": func(a *agentTable) {
			a.agent = func(a *agentTable, alias string) (domain.Agent, bool) {
				for _, g := range a.list {
					if g.Alias == alias {
						g.MaxTurnRequests = 7
						return g, true
					}
				}
				return domain.Agent{}, false
			}
		},
		"agents-usable": changeAll(func(g *domain.Agent) { g.MaxTurnRequests = 0 }),
		"agents-copy":   func(a *agentTable) { a.all = func(a *agentTable) []domain.Agent { return a.list } },
		"agents-together": func(a *agentTable) {
			a.all = func(a *agentTable) []domain.Agent { return a.list[:2] }
		},
		"agents-none": func(a *agentTable) {
			if len(a.list) == 0 {
				a.list = []domain.Agent{{Alias: "built-in"}}
			}
		},
	}
}

func TestAgentsMutants(t *testing.T) {
	mutants := agentsFaults()
	for _, c := range agentsChecks() {
		t.Run(c.name, func(t *testing.T) {
			over := func(fault func(*agentTable)) []string {
				return Record(t, func(tb TB) {
					runChecks(tb, AgentsHarness{Open: func(_ TB, list []domain.Agent, def string) ports.Agents {
						a := newAgentTable(list, def)
						fault(a)
						return a
					}}, []check[AgentsHarness]{c})
				})
			}
			demand(t, c.name, mutants, over, func(*agentTable) {})
		})
	}
	for name := range mutants {
		t.Errorf("the fault %q belongs to no case", name)
	}
}

// demand runs one case over a sound adapter and over the one with its fault,
// and takes the fault off the list.
func demand[F any](t *testing.T, name string, mutants map[string]F, over func(F) []string, sound F) {
	t.Helper()
	if failed := over(sound); len(failed) > 0 {
		t.Fatalf("the case fails on a sound adapter: %v", failed)
	}
	fault, ok := mutants[name]
	if !ok {
		t.Fatal("no fault proves that this case can fail")
	}
	delete(mutants, name)
	failed := over(fault)
	if len(failed) == 0 {
		t.Fatal("the case passed on an adapter with its fault")
	}
	if slices.ContainsFunc(failed, func(f string) bool { return strings.Contains(f, "panic") }) {
		t.Errorf("the case panicked instead of failing: %v", failed)
	}
}
