package porttest

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/berth-dev/berth/core/domain"
	"github.com/berth-dev/berth/core/ports"
)

// AgentsHarness proves a ports.Agents.
type AgentsHarness struct {
	// Open returns agents configured as list says, in no particular order, and
	// with the given default. Of each agent the alias, title, description,
	// whether it is enabled, model, prompt, level and the three lists of tool
	// names are to be used; the rest is the adapter's.
	Open func(t TB, list []domain.Agent, def string) ports.Agents
}

// Agents runs the conformance suite of ports.Agents.
func Agents(t TB, h AgentsHarness) {
	t.Helper()
	runChecks(t, h, agentsChecks())
}

// configured are the agents of the suite's cases.
func configured() []domain.Agent {
	model := domain.ModelRef{Provider: "offline", Model: "offline"}
	return []domain.Agent{
		{Alias: "writer", Title: "Writer", Description: "writes", Enabled: true, Model: model, Prompt: "Write.", Policy: domain.Policy{
			Level: domain.LevelSupervised, Deny: []domain.ToolRule{{Tool: "delete_file"}},
			AlwaysAsk: []domain.ToolRule{{Tool: "write_file"}}, AutoApprove: []domain.ToolRule{{Tool: "edit_file"}},
		}},
		{Alias: "asleep", Enabled: false, Model: model, Policy: domain.Policy{Level: domain.LevelReadOnly}},
		{Alias: "b2", Enabled: true, Model: model, Policy: domain.Policy{Level: domain.LevelFull}},
	}
}

func agentsChecks() []check[AgentsHarness] {
	return []check[AgentsHarness]{
		{"agents-all", "every agent is listed once, enabled or not, sorted by alias", agentsAll},
		{"agents-one", "an agent is found under its alias as it was configured", agentsOne},
		{"agents-disabled", "a disabled agent is there and says so: whoever names it is told why it cannot be used", agentsDisabled},
		{"agents-unknown", "an alias nobody configured is not found, nor is one in other letters", agentsUnknown},
		{"agents-default", "the default is what was configured, also when it names no agent: a bad default is an error, not a choice", agentsDefault},
		{"agents-agree", "the list and the single answer say the same", agentsAgree},
		{"agents-usable", "an agent may ask its model at least once, and works in a directory of its own", agentsUsable},
		{"agents-copy", "changing what was returned changes no agent", agentsCopy},
		{"agents-together", "many may ask at once", agentsTogether},
		{"agents-none", "without agents the list is empty", agentsNone},
	}
}

func agentsAll(t TB, h AgentsHarness) {
	var got []string
	for _, a := range h.Open(t, configured(), "").All() {
		got = append(got, a.Alias)
	}
	if want := []string{"asleep", "b2", "writer"}; !slices.Equal(got, want) {
		t.Errorf("the list is %v, want %v", got, want)
	}
}

func agentsOne(t TB, h AgentsHarness) {
	agents := h.Open(t, configured(), "")
	for _, want := range configured() {
		got, ok := agents.Agent(want.Alias)
		if !ok {
			t.Errorf("%s is not found", want.Alias)
			continue
		}
		if a, b := told(got), told(want); a != b {
			t.Errorf("%s is\n%s, want\n%s", want.Alias, a, b)
		}
	}
}

// told is what a harness was told of an agent.
func told(a domain.Agent) string {
	return fmt.Sprintf("%q %q %q %v %v %q %+v", a.Alias, a.Title, a.Description, a.Enabled, a.Model, a.Prompt, a.Policy)
}

func agentsDisabled(t TB, h AgentsHarness) {
	got, ok := h.Open(t, configured(), "asleep").Agent("asleep")
	if !ok || got.Enabled {
		t.Errorf("a disabled agent is found %v, enabled %v", ok, got.Enabled)
	}
}

func agentsUnknown(t TB, h AgentsHarness) {
	agents := h.Open(t, configured(), "writer")
	for _, alias := range []string{"", "nobody", "Writer", "WRITER", " writer", "write"} {
		if got, ok := agents.Agent(alias); ok {
			t.Errorf("%q finds %q", alias, got.Alias)
		}
	}
}

func agentsDefault(t TB, h AgentsHarness) {
	for _, def := range []string{"", "writer", "asleep", "nobody"} {
		if got := h.Open(t, configured(), def).Default(); got != def {
			t.Errorf("the default is %q, configured was %q", got, def)
		}
	}
}

func agentsAgree(t TB, h AgentsHarness) {
	agents := h.Open(t, configured(), "")
	for _, listed := range agents.All() {
		single, ok := agents.Agent(listed.Alias)
		if !ok {
			t.Errorf("%s is listed and not found", listed.Alias)
		}
		if a, b := fmt.Sprintf("%+v", listed), fmt.Sprintf("%+v", single); a != b {
			t.Errorf("listed as\n%s, found as\n%s", a, b)
		}
	}
}

func agentsUsable(t TB, h AgentsHarness) {
	seen := map[string]string{}
	for _, a := range h.Open(t, configured(), "").All() {
		if a.MaxTurnRequests < 1 || a.MaxOutputTokens < 0 {
			t.Errorf("%s may ask its model %d times for %d tokens", a.Alias, a.MaxTurnRequests, a.MaxOutputTokens)
		}
		if !filepath.IsAbs(a.Workspace) {
			t.Errorf("the workspace of %s is %q, which is no absolute path", a.Alias, a.Workspace)
		}
		if other := seen[a.Workspace]; other != "" {
			t.Errorf("%s and %s share the workspace %s", a.Alias, other, a.Workspace)
		}
		seen[a.Workspace] = a.Alias
	}
}

func agentsCopy(t TB, h AgentsHarness) {
	agents := h.Open(t, configured(), "")
	before, _ := agents.Agent("writer")
	want := told(before)
	for _, a := range append(agents.All(), before) {
		for _, list := range [][]domain.ToolRule{a.Policy.Deny, a.Policy.AlwaysAsk, a.Policy.AutoApprove} {
			for i := range list {
				list[i].Tool = "changed"
			}
		}
	}
	all := agents.All()
	slices.Reverse(all)
	after, _ := agents.Agent("writer")
	if got := told(after); got != want {
		t.Errorf("after a caller changed what it was given the agent is\n%s, want\n%s", got, want)
	}
	if again := agents.All(); again[0].Alias != "asleep" {
		t.Errorf("a caller reversed the list")
	}
}

func agentsTogether(t TB, h AgentsHarness) {
	agents := h.Open(t, configured(), "writer")
	var group sync.WaitGroup
	var mu sync.Mutex
	var wrong []string
	for i := range 8 {
		group.Go(func() {
			for range 50 {
				a, ok := agents.Agent("writer")
				if !ok || a.Alias != "writer" || len(agents.All()) != 3 || agents.Default() != "writer" {
					mu.Lock()
					wrong = append(wrong, fmt.Sprint("caller ", i))
					mu.Unlock()
					return
				}
			}
		})
	}
	group.Wait()
	if len(wrong) > 0 {
		t.Errorf("got something else: %s", strings.Join(wrong, ", "))
	}
}

func agentsNone(t TB, h AgentsHarness) {
	agents := h.Open(t, nil, "")
	if all := agents.All(); len(all) != 0 {
		t.Errorf("listed are %+v", all)
	}
	if _, ok := agents.Agent("writer"); ok {
		t.Errorf("one is found")
	}
}
