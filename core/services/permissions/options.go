package permissions

import (
	"strings"

	"github.com/berth-dev/berth/core/domain"
)

// The ids of the options. Clients and scripts rely on them.
const (
	allowOnce         = "allow-once"
	allowAlways       = "allow-always"
	allowAlwaysPrefix = "allow-always-prefix"
	rejectOnce        = "reject-once"
	rejectAlways      = "reject-always"
)

// Options are the answers offered for a call. "Always" answers are left out
// when the ruling forbids remembering; their names say what they cover.
func Options(a domain.Access, r domain.Ruling) []domain.PermissionOption {
	options := []domain.PermissionOption{{ID: allowOnce, Name: "Allow once", Kind: domain.AllowOnce}}
	add := func(id, name string, kind domain.OptionKind) {
		options = append(options, domain.PermissionOption{ID: id, Name: name, Kind: kind})
	}
	if len(r.Always) > 0 {
		add(allowAlways, "Always allow "+covers(a, r.Always)+" in this session", domain.AllowAlways)
	}
	if len(r.Prefix) > 0 {
		add(allowAlwaysPrefix, "Always allow "+covers(a, r.Prefix)+" in this session", domain.AllowAlways)
	}
	add(rejectOnce, "Reject", domain.RejectOnce)
	if len(r.Always) > 0 {
		add(rejectAlways, "Never allow "+covers(a, r.Always)+" in this session", domain.RejectAlways)
	}
	return options
}

// covers says what rules made of one answer cover.
func covers(a domain.Access, rules []domain.Rule) string {
	if len(rules[0].Words) == 0 {
		if a.Class == domain.AccessFetch {
			return a.Tool + " from " + a.Scope
		}
		return a.Tool + " in " + a.Scope
	}
	lines := make([]string, len(rules))
	for i, r := range rules {
		lines[i] = "`" + quoted(r.Words) + "`"
		if !r.Exact {
			lines[i] += " with any arguments"
		}
	}
	return strings.Join(lines, " and ") + " in " + a.Scope
}

// quoted writes an argument list so that it can be told where each argument
// ends.
func quoted(words []string) string {
	out := make([]string, len(words))
	for i, w := range words {
		out[i] = w
		if w == "" || strings.ContainsAny(w, " \t\n'\"`\\$&|;<>(){}[]*?!#~") {
			out[i] = "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
		}
	}
	return strings.Join(out, " ")
}

// rulesOf returns the rules that choosing an option makes; none for those
// that count once.
func rulesOf(option string, r domain.Ruling) []domain.Rule {
	switch option {
	case allowAlways:
		return r.Always
	case allowAlwaysPrefix:
		return r.Prefix
	case rejectAlways:
		rules := make([]domain.Rule, len(r.Always))
		for i, rule := range r.Always {
			rule.Allow = false
			rules[i] = rule
		}
		return rules
	}
	return nil
}

// kindOf finds the kind of an offered option.
func kindOf(id string, options []domain.PermissionOption) (domain.OptionKind, bool) {
	for _, o := range options {
		if o.ID == id {
			return o.Kind, true
		}
	}
	return "", false
}
