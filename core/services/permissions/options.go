package permissions

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

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

// maxName is how many characters the name of an option has at most. Nobody
// reads more, so what takes more to tell is not remembered.
const maxName = 500

// Options are the answers offered for a call. "Always" answers are left out
// when the ruling forbids remembering, and when they cannot be told in short;
// their names say what they cover, and nothing in them hides.
func Options(a domain.Access, r domain.Ruling) []domain.PermissionOption {
	options := []domain.PermissionOption{{ID: allowOnce, Name: "Allow once", Kind: domain.AllowOnce}}
	add := func(id, name string, kind domain.OptionKind) {
		if utf8.RuneCountInString(name) > maxName {
			return
		}
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
		return a.Tool + " in " + visible(a.Scope, false)
	}
	lines := make([]string, len(rules))
	for i, r := range rules {
		lines[i] = "`" + quoted(r.Words) + "`"
		if !r.Exact {
			lines[i] += " with any arguments"
		}
	}
	return strings.Join(lines, " and ") + " in " + visible(a.Scope, false)
}

// quoted writes an argument list so that it can be told where each argument
// ends.
func quoted(words []string) string {
	out := make([]string, len(words))
	for i, w := range words {
		if shown := visible(w, i == 0); shown != w {
			out[i] = "$'" + strings.ReplaceAll(shown, "'", `\'`) + "'"
			continue
		}
		out[i] = w
		if w == "" || strings.ContainsAny(w, " \t\n'\"`\\$&|;<>(){}[]*?!#~") {
			out[i] = "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
		}
	}
	return strings.Join(out, " ")
}

// visible escapes what cannot be seen or moves the text around it, and with
// ascii set everything that may look like another letter.
func visible(s string, ascii bool) string {
	hides := func(r rune) bool {
		return !unicode.IsPrint(r) || domain.Unseen(r) || ascii && r >= utf8.RuneSelf
	}
	if utf8.ValidString(s) && !strings.ContainsFunc(s, hides) {
		return s
	}
	var b strings.Builder
	for i, n := 0, 0; i < len(s); i += n {
		var r rune
		r, n = utf8.DecodeRuneInString(s[i:])
		switch quoted := strconv.QuoteToASCII(s[i : i+n]); {
		case r == utf8.RuneError && n == 1, hides(r):
			b.WriteString(quoted[1 : len(quoted)-1])
		case r == '\\':
			b.WriteString(`\\`)
		default:
			b.WriteString(s[i : i+n])
		}
	}
	return b.String()
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
