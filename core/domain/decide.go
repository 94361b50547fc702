package domain

import (
	"slices"
	"strings"
)

// Rule is a remembered answer.
type Rule struct {
	Allow bool
	Tool  string
	Scope string
	// Words are the first words of the simple command that is meant, or all of
	// them when Exact is set; nil for tools that run no commands.
	Words []string
	Exact bool
}

// Covers reports whether the rule speaks about access as a whole. A rule with
// words speaks about single commands only.
func (r Rule) Covers(a Access) bool {
	return r.Tool == a.Tool && r.Scope == a.Scope && r.Scope != "" && len(r.Words) == 0 && len(a.Commands) == 0
}

// CoversCommand reports whether the rule speaks about one command of access.
// An answer that allows was never given to a command of AccessRisk, such as
// one that got a flag which names a program since.
func (r Rule) CoversCommand(a Access, c SimpleCommand) bool {
	return r.Tool == a.Tool && r.Scope == a.Scope && r.Scope != "" && len(r.Words) > 0 &&
		begins(c.Words, r.Words, r.Exact) && !(r.Exact && c.More) && !(r.Allow && c.Class == AccessRisk)
}

// Same reports whether two rules are about the same thing, whatever they say.
func (r Rule) Same(o Rule) bool {
	return r.Tool == o.Tool && r.Scope == o.Scope && r.Exact == o.Exact && slices.Equal(r.Words, o.Words)
}

// ToolRule is one entry of a profile's deny, always_ask or auto_approve list.
type ToolRule struct {
	Tool string
	// Words are the first words of a simple command, or all of them when Exact
	// is set; nil means every call of the tool. The first word is a program's
	// base name, or its full path as it is written in the command. Rules that
	// deny or ask, unless Exact is set, look past options among these words.
	Words []string
	Exact bool
}

// matches reports whether the rule is about an argument list. It is for rules
// that deny or ask: options before or between the words do not hide them, as
// in git -C dir push for git push. more says whether words of the command
// follow that are not known; the rule may be about it then.
func (r ToolRule) matches(words []string, more bool) bool {
	if len(words) == 0 || len(r.Words) == 0 {
		return more
	}
	if r.Words[0] != words[0] && r.Words[0] != base(words[0]) {
		return false
	}
	if r.Exact && !more {
		return slices.Equal(words[1:], r.Words[1:])
	}
	return optioned(words[1:], r.Words[1:], more)
}

// optioned reports whether words begin with first when options, with a value
// each or without, are left out as needed; with more also whether they may.
func optioned(words, first []string, more bool) bool {
	at := make([]bool, len(words)+2) // where the words of first so far may have ended
	at[0] = true
	for _, f := range first {
		next := make([]bool, len(words)+2)
		for i, w := range words {
			if !at[i] {
				continue
			}
			next[i+1] = next[i+1] || w == f
			if strings.HasPrefix(w, "-") {
				at[i+1], at[i+2] = true, true
			}
		}
		if more && (at[len(words)] || at[len(words)+1]) {
			return true
		}
		at = next
	}
	return slices.Contains(at, true)
}

// NetworkMode says what calls that reach the network may do.
type NetworkMode string

// The network modes. An empty one is NetworkAsk.
const (
	NetworkAsk   NetworkMode = "ask"
	NetworkAllow NetworkMode = "allow"
	NetworkDeny  NetworkMode = "deny"
)

// Policy is the part of a risk profile that Decide needs.
type Policy struct {
	Level       Level
	Deny        []ToolRule
	AlwaysAsk   []ToolRule
	AutoApprove []ToolRule
	Network     NetworkMode
	// Taint asks about the network even at level full once foreign text has
	// entered a turn.
	Taint bool
}

// Verdict is what Decide says about a call.
type Verdict int

// The verdicts. The zero value refuses.
const (
	Refuse Verdict = iota
	Ask
	Allow
)

// Ruling is Decide's answer: the verdict, and why, for the model when it is
// refused and for the person when it is asked. Always and Prefix are the
// rules that an "always" answer would add, each with Allow set; none when it
// may not be offered.
type Ruling struct {
	Verdict Verdict
	Reason  string
	Always  []Rule // exactly this
	Prefix  []Rule // the same programs and subcommands with any arguments
}

// Decide is the one permission decision. Order: forbidden, denied by a rule,
// level and network, remembered rejects, what must be asked, remembered
// allows, approved by a rule, level again.
func Decide(p Policy, remembered []Rule, a Access) Ruling {
	if why := refused(p, a); why != "" {
		return Ruling{Verdict: Refuse, Reason: why}
	}
	if a.Class == AccessNone {
		return Ruling{Verdict: Allow}
	}
	if rejected(remembered, a) {
		return Ruling{Verdict: Refuse, Reason: "the user said never to allow this"}
	}
	if must, why := mustAsk(p, a); must {
		return Ruling{Verdict: Ask, Reason: why}
	}
	tainted := a.Network && a.Foreign
	switch {
	case p.Level == LevelFull && !(tainted && p.Taint):
		return Ruling{Verdict: Allow}
	case tainted:
		return Ruling{Verdict: Ask, Reason: joined(a.Reason, "it reaches the network after foreign text was read")}
	case a.Class == AccessRead, a.Class == AccessFetch && p.Network == NetworkAllow:
		return Ruling{Verdict: Allow}
	case len(a.Commands) > 0:
		return decideCommands(p, remembered, a)
	case anyRule(p.AutoApprove, a.Tool) || slices.ContainsFunc(remembered, func(r Rule) bool { return r.Allow && r.Covers(a) }):
		return Ruling{Verdict: Allow}
	}
	r := Ruling{Verdict: Ask, Reason: a.Reason}
	if a.Scope != "" && a.Class != AccessRun && a.Class != AccessRisk {
		r.Always = []Rule{{Allow: true, Tool: a.Tool, Scope: a.Scope}}
	}
	return r
}

// refused says why a call is refused whatever anyone answered or answers.
func refused(p Policy, a Access) string {
	switch {
	case a.Forbidden != "":
		return a.Forbidden
	case anyRule(p.Deny, a.Tool):
		return "the tool " + a.Tool + " is denied by the agent's profile"
	}
	for _, c := range a.Commands {
		if words := matching(p.Deny, a.Tool, c); words != nil {
			return "the agent's profile denies the command " + strings.Join(words, " ")
		}
	}
	switch {
	case a.Class == AccessNone:
		return ""
	case a.Outside && p.Level != LevelFull:
		return "a path lies outside the session's directories; keep to them, or tell the user what is needed from elsewhere"
	case p.Level == LevelReadOnly && a.Class != AccessRead && !(a.Class == AccessFetch && p.Network == NetworkAllow):
		return "the agent's profile is read-only"
	case a.Network && p.Network == NetworkDeny:
		return "the agent's profile has the network off"
	case p.Level != LevelFull:
		return ""
	case a.Protected && a.Class != AccessRead:
		return "this file can start programs or loosen rules, and nobody is asked at level full; leave it, and tell the user what to change in it"
	case a.Unconfined != "":
		return "nothing confines commands here (" + a.Unconfined + "), and nobody is asked at level full"
	case maybe(p.Deny, a) || maybe(p.AlwaysAsk, a):
		return "the profile has rules about commands, and what this line runs cannot be told before it runs; write the commands out"
	}
	return ""
}

// mustAsk reports whether the person is asked each time, and why.
func mustAsk(p Policy, a Access) (must bool, why string) {
	switch {
	case a.Protected && a.Class != AccessRead:
		return true, joined(a.Reason, "this file can start programs or change how tools behave")
	case a.Unconfined != "":
		return true, joined(a.Reason, "no sandbox: "+a.Unconfined)
	case anyRule(p.AlwaysAsk, a.Tool):
		return true, a.Reason
	}
	for _, c := range a.Commands {
		if words := matching(p.AlwaysAsk, a.Tool, c); words != nil {
			return true, joined(a.Reason, "the agent's profile always asks about "+strings.Join(words, " "))
		}
	}
	return false, ""
}

func rejected(remembered []Rule, a Access) bool {
	for _, r := range remembered {
		if r.Allow {
			continue
		}
		if r.Covers(a) {
			return true
		}
		for _, c := range a.Commands {
			if r.CoversCommand(a, c) {
				return true
			}
		}
	}
	return false
}

// decideCommands allows a line when each of its commands is a proven read, or
// was allowed by an answer or by a rule of its own.
func decideCommands(p Policy, remembered []Rule, a Access) Ruling {
	open := slices.DeleteFunc(slices.Clone(a.Commands), func(c SimpleCommand) bool {
		return c.Class == AccessRead || approved(p, a.Tool, c) ||
			slices.ContainsFunc(remembered, func(r Rule) bool { return r.Allow && r.CoversCommand(a, c) })
	})
	if len(open) == 0 {
		return Ruling{Verdict: Allow}
	}
	r := Ruling{Verdict: Ask, Reason: a.Reason}
	if a.Scope == "" || a.Class != AccessRun {
		return r
	}
	for _, c := range open {
		if !c.Exact || len(c.Words) == 0 {
			return Ruling{Verdict: Ask, Reason: a.Reason}
		}
		r.Always = append(r.Always, Rule{Allow: true, Tool: a.Tool, Scope: a.Scope, Words: c.Words, Exact: true})
		if c.Prefix > 0 && c.Prefix <= len(c.Words) && len(r.Prefix) == len(r.Always)-1 {
			r.Prefix = append(r.Prefix, Rule{Allow: true, Tool: a.Tool, Scope: a.Scope, Words: c.Words[:c.Prefix:c.Prefix]})
		}
	}
	if len(r.Prefix) < len(r.Always) {
		r.Prefix = nil
	}
	return r
}

// approved reports whether a rule of the profile lets one command run. Unlike
// the rules that deny, it does not go by the base name of a path: a program of
// that name elsewhere is another one. A rule that names a path is about the
// command as it is written, too.
func approved(p Policy, tool string, c SimpleCommand) bool {
	for _, r := range p.AutoApprove {
		switch {
		case r.Tool != tool || r.Exact && c.More:
		case len(r.Words) == 0, len(c.Words) > 0 && begins(c.Words, r.Words, r.Exact):
			return true
		case strings.Contains(r.Words[0], "/"):
			if slices.ContainsFunc(c.Forms, func(f []string) bool { return begins(f, r.Words, r.Exact) }) {
				return true
			}
		}
	}
	return false
}

// anyRule reports whether a rule names the tool as a whole.
func anyRule(rules []ToolRule, tool string) bool {
	return slices.ContainsFunc(rules, func(r ToolRule) bool { return r.Tool == tool && len(r.Words) == 0 })
}

// matching returns the words of the first rule that any form of the command
// matches; nil when none does.
func matching(rules []ToolRule, tool string, c SimpleCommand) []string {
	for _, r := range rules {
		if r.Tool != tool || len(r.Words) == 0 {
			continue
		}
		if r.matches(c.Words, false) || slices.ContainsFunc(c.Forms, func(f []string) bool { return r.matches(f, false) }) {
			return r.Words
		}
	}
	return nil
}

// maybe reports whether a rule may be about a command of which not all words
// are known before it runs.
func maybe(rules []ToolRule, a Access) bool {
	for _, r := range rules {
		for _, c := range a.Commands {
			if r.Tool != a.Tool || len(r.Words) == 0 || len(c.Words) > 0 && !c.More {
				continue
			}
			if r.matches(c.Words, true) {
				return true
			}
		}
	}
	return false
}

// begins reports whether words begin with first, or are first when exact.
func begins(words, first []string, exact bool) bool {
	if len(words) < len(first) || exact && len(words) != len(first) {
		return false
	}
	return slices.Equal(words[:len(first)], first)
}

// base is the last element of a program's path.
func base(path string) string {
	for i := len(path) - 1; i >= 0; i-- {
		if path[i] == '/' {
			return path[i+1:]
		}
	}
	return path
}

// joined puts two reasons into one sentence part.
func joined(a, b string) string {
	if a == "" {
		return b
	}
	return a + "; " + b
}

func contains(list []string, s string) bool { return slices.Contains(list, s) }
