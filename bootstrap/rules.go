package bootstrap

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/berth-dev/berth/adapters/exec/shellpolicy"
	"github.com/berth-dev/berth/core/domain"
)

// toolRule turns a rule of a profile into the core's: a tool name, or
// shell(WORDS) for a simple command that begins with these words, or
// shell(WORDS$) for exactly these.
func toolRule(rule string) (domain.ToolRule, error) {
	tool, pattern, worded := strings.Cut(rule, "(")
	out := domain.ToolRule{Tool: tool}
	if !worded {
		return out, nil
	}
	if tool != "shell" {
		return out, fmt.Errorf("has words in parentheses, which only shell takes; write %q", tool)
	}
	pattern, out.Exact = strings.CutSuffix(strings.TrimSuffix(pattern, ")"), "$")
	if strings.TrimSpace(pattern) == "" {
		return out, fmt.Errorf("has no words in the parentheses; write %q for every command", tool)
	}
	var err error
	if out.Words, err = shellpolicy.Words(pattern); err != nil {
		return out, fmt.Errorf("has words that cannot be read: %w", err)
	}
	return out, nil
}

// toolRules turns rules that were checked when the profile was.
func toolRules(rules []RuleConfig) []domain.ToolRule {
	out := make([]domain.ToolRule, 0, len(rules))
	for _, r := range rules {
		if rule, err := toolRule(r.Rule); err == nil {
			out = append(out, rule)
		}
	}
	return out
}

// checkProfiles tries the rules and paths of every profile.
func checkProfiles(cfg *Config) error {
	if err := checkRules(cfg); err != nil {
		return err
	}
	// LoadConfig makes every path absolute; a Config that an embedder filled
	// may hold a rule that would never match.
	for _, name := range slices.Sorted(maps.Keys(cfg.Profiles)) {
		if err := pathPolicy(cfg.Profiles[name]).Validate(); err != nil {
			return domain.WrapError(domain.InvalidArgument, err, "profiles."+name+": "+err.Error())
		}
	}
	return nil
}

// checkRules tries the rules of every profile of a configuration that was made
// by a program; those of a file were tried when it was read.
func checkRules(cfg *Config) error {
	for _, name := range slices.Sorted(maps.Keys(cfg.Profiles)) {
		for list, rules := range ruleLists(cfg.Profiles[name]) {
			for _, r := range rules {
				if err := tryRule(list, r); err != nil {
					return domain.Errorf(domain.InvalidArgument, "profiles.%s.%s: the rule %q %v", name, list, r.Rule, err)
				}
			}
		}
	}
	return nil
}

// ruleLists are the lists of rules of a profile, by their keys.
func ruleLists(p ProfileConfig) map[string][]RuleConfig {
	return map[string][]RuleConfig{"deny": p.Deny, "always_ask": p.AlwaysAsk, "auto_approve": p.AutoApprove}
}

// tryRule tries a rule on its examples. One that cannot be read, or an example
// that it does not cover as it says, stops the start: a rule that means
// something else than its author thinks is worse than none.
func tryRule(list string, c RuleConfig) error {
	rule, err := toolRule(c.Rule)
	if err != nil {
		return err
	}
	alone, bad := []domain.ToolRule{rule}, ""
	switch list {
	case "deny":
		bad = wrongExample(c, domain.Policy{Deny: alone}, domain.Refuse)
	case "always_ask":
		bad = wrongExample(c, domain.Policy{Level: domain.LevelFull, AlwaysAsk: alone}, domain.Ask)
	default:
		bad = wrongExample(c, domain.Policy{AutoApprove: alone}, domain.Allow)
	}
	if bad != "" {
		return errors.New(bad)
	}
	return nil
}

// toolNames are the tools of this version.
func toolNames() []string {
	return []string{
		"ask_user", "delete_file", "deliver_file", "edit_file", "escalate_to_human", "glob", "list_directory", "move_file",
		"read_file", "search", "shell", "shell_kill", "shell_output", "update_plan", "web_fetch", "write_file",
	}
}

// unknownTools returns a sentence for each rule about a tool that there is not.
func unknownTools(cfg *Config) []string {
	var notes []string
	for _, name := range slices.Sorted(maps.Keys(cfg.Profiles)) {
		for list, rules := range ruleLists(cfg.Profiles[name]) {
			for _, r := range rules {
				if tool, _, _ := strings.Cut(r.Rule, "("); !slices.Contains(toolNames(), tool) {
					notes = append(notes, fmt.Sprintf("profiles.%s.%s: there is no tool %q, so the rule does nothing; tools: %s",
						name, list, tool, strings.Join(toolNames(), ", ")))
				}
			}
		}
	}
	return notes
}

// wrongExample says which example of a rule does not hold; "" when all do.
func wrongExample(c RuleConfig, p domain.Policy, hit domain.Verdict) string {
	for _, line := range c.Match {
		if !covered(line, p, hit) {
			return fmt.Sprintf("does not match its example %q", line)
		}
	}
	for _, line := range c.NotMatch {
		if covered(line, p, hit) {
			return fmt.Sprintf("matches %q, which is under not_match", line)
		}
	}
	return ""
}

// covered reports whether a policy of one rule decides a line as that rule
// would. Each command counts as one that asks, so that the rule alone decides.
func covered(line string, p domain.Policy, hit domain.Verdict) bool {
	a := shellpolicy.Analyze(context.Background(), line, shellpolicy.Env{Home: "/home/user", Cwd: "/project", SystemPath: []string{"/usr/bin", "/bin"}}, anywhere{})
	access := domain.Access{Tool: "shell", Class: domain.AccessRun, Scope: "/project", Commands: slices.Clone(a.Commands)}
	for i := range access.Commands {
		access.Commands[i].Class = domain.AccessRun
	}
	if len(access.Commands) == 0 {
		return false
	}
	if hit == domain.Allow {
		return domain.Decide(p, nil, access).Verdict == hit
	}
	// A rule that denies or asks covers a line when it covers one command of it.
	return slices.ContainsFunc(access.Commands, func(c domain.SimpleCommand) bool {
		one := access
		one.Commands = []domain.SimpleCommand{c}
		return domain.Decide(p, nil, one).Verdict == hit
	})
}

// anywhere takes every path for one in the project.
type anywhere struct{}

// Judge says that the path lies inside.
func (anywhere) Judge(_ context.Context, _, path string) domain.Place {
	return domain.Place{Path: path, Where: domain.WhereInside, Exists: true}
}
