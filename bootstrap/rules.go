package bootstrap

import (
	"context"
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
		return out, fmt.Errorf("only shell takes words in parentheses; write %q", tool)
	}
	pattern, out.Exact = strings.CutSuffix(strings.TrimSuffix(pattern, ")"), "$")
	if strings.TrimSpace(pattern) == "" {
		return out, fmt.Errorf("there are no words in the parentheses; write %q for every command", tool)
	}
	var err error
	if out.Words, err = shellpolicy.Words(pattern); err != nil {
		return out, fmt.Errorf("the words in parentheses cannot be read: %w", err)
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

// checkRules tries the rules of every profile on their examples. A rule that
// cannot be read, or an example that it does not cover as it says, stops the
// start: a rule that means something else than its author thinks is worse than
// none.
func checkRules(cfg *Config) error {
	for _, name := range slices.Sorted(maps.Keys(cfg.Profiles)) {
		p := cfg.Profiles[name]
		for _, list := range []struct {
			key   string
			rules []RuleConfig
			as    func(domain.ToolRule) domain.Policy
			hit   domain.Verdict
		}{
			{"deny", p.Deny, func(r domain.ToolRule) domain.Policy { return domain.Policy{Deny: []domain.ToolRule{r}} }, domain.Refuse},
			{"always_ask", p.AlwaysAsk, func(r domain.ToolRule) domain.Policy {
				return domain.Policy{Level: domain.LevelFull, AlwaysAsk: []domain.ToolRule{r}}
			}, domain.Ask},
			{"auto_approve", p.AutoApprove, func(r domain.ToolRule) domain.Policy { return domain.Policy{AutoApprove: []domain.ToolRule{r}} }, domain.Allow},
		} {
			for _, c := range list.rules {
				rule, err := toolRule(c.Rule)
				if err != nil {
					return domain.Errorf(domain.InvalidArgument, "profiles.%s.%s: the rule %q: %v", name, list.key, c.Rule, err)
				}
				if bad := wrongExample(c, list.as(rule), list.hit); bad != "" {
					return domain.Errorf(domain.InvalidArgument, "profiles.%s.%s: the rule %q %s", name, list.key, c.Rule, bad)
				}
			}
		}
	}
	return nil
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
