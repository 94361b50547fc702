package permissions_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/core/domain"
	"github.com/berth-dev/berth/core/services/permissions"
)

// goTest is a shell line of two commands, one of which may be remembered by
// program and subcommand.
func goTest() domain.Access {
	return domain.Access{Tool: "shell", Class: domain.AccessRun, Scope: "/w", Commands: []domain.SimpleCommand{
		{Words: []string{"go", "test", "-run", "a b", "./..."}, Class: domain.AccessRun, Exact: true, Prefix: 2},
		{Words: []string{"ls"}, Class: domain.AccessRead},
	}}
}

// Nothing in the name of an option hides, and what cannot be told in short is
// not remembered.
func TestOptions_NamesShowEverything(t *testing.T) {
	for name, c := range map[string]struct {
		scope string
		words []string
		want  string // "" when it is not offered
	}{
		"a line end":             {"/w", []string{"rm", "a\nb"}, `Always allow ` + "`" + `rm $'a\nb'` + "`" + ` in /w in this session`},
		"direction and shape":    {"/w", []string{"rm", "a\u202eb\u200b'"}, `Always allow ` + "`" + `rm $'a\u202eb\u200b\''` + "`" + ` in /w in this session`},
		"an escape":              {"/w", []string{"rm", "\x1b[2J\u009b\\n"}, `Always allow ` + "`" + `rm $'\x1b[2J\u009b\\n'` + "`" + ` in /w in this session`},
		"bytes of no character":  {"/w", []string{"rm", "a\xff"}, `Always allow ` + "`" + `rm $'a\xff'` + "`" + ` in /w in this session`},
		"a look-alike":           {"/w", []string{"\u0441url", "ж"}, `Always allow ` + "`" + `$'\u0441url' ж` + "`" + ` in /w in this session`},
		"letters of a language":  {"/w", []string{"touch", "žluť"}, "Always allow `touch žluť` in /w in this session"},
		"an odd directory":       {"/w/\u202ex\n", []string{"touch", "a"}, "Always allow `touch a` in /w/\\u202ex\\n in this session"},
		"more than anyone reads": {"/w", []string{"touch", strings.Repeat("a ", 300)}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			a := domain.Access{Tool: "shell", Class: domain.AccessRun, Scope: c.scope, Commands: []domain.SimpleCommand{
				{Words: c.words, Class: domain.AccessRun, Exact: true},
			}}
			got := ""
			for _, o := range permissions.Options(a, domain.Decide(domain.Policy{Level: domain.LevelSupervised}, nil, a)) {
				if o.ID == "allow-always" {
					got = o.Name
				}
			}
			if got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}

// The names of always-options say exactly what they cover.
func TestOptions_Names(t *testing.T) {
	fetch := domain.Access{Tool: "web_fetch", Class: domain.AccessFetch, Network: true, Scope: "example.org"}
	for name, c := range map[string]struct {
		access domain.Access
		want   []string
	}{
		"a command": {goTest(), []string{
			"allow-once: Allow once",
			"allow-always: Always allow `go test -run 'a b' ./...` in /w in this session",
			"allow-always-prefix: Always allow `go test` with any arguments in /w in this session",
			"reject-once: Reject",
			"reject-always: Never allow `go test -run 'a b' ./...` in /w in this session",
		}},
		"an edit": {edit, []string{
			"allow-once: Allow once",
			"allow-always: Always allow " + edit.Tool + " in " + edit.Scope + " in this session",
			"reject-once: Reject",
			"reject-always: Never allow " + edit.Tool + " in " + edit.Scope + " in this session",
		}},
		"a fetch": {fetch, []string{
			"allow-once: Allow once",
			"allow-always: Always allow web_fetch from example.org in this session",
			"reject-once: Reject",
			"reject-always: Never allow web_fetch from example.org in this session",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, o := range permissions.Options(c.access, domain.Decide(domain.Policy{}, nil, c.access)) {
				got = append(got, o.ID+": "+o.Name)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// What an answer makes is what its option named, and nothing else.
func TestDecide_RulesOfAnswers(t *testing.T) {
	words := []string{"go", "test", "-run", "a b", "./..."}
	for option, want := range map[string][]domain.Rule{
		"allow-once":          nil,
		"allow-always":        {{Allow: true, Tool: "shell", Scope: "/w", Words: words, Exact: true}},
		"allow-always-prefix": {{Allow: true, Tool: "shell", Scope: "/w", Words: words[:2]}},
		"reject-once":         nil,
		"reject-always":       {{Tool: "shell", Scope: "/w", Words: words, Exact: true}},
		"allow-everything":    nil,
	} {
		t.Run(option, func(t *testing.T) {
			q := question(goTest())
			s := permissions.New(&observer{}, time.Now, time.Minute)
			answer, err := s.Decide(t.Context(), person(func(context.Context, domain.PermissionRequest) (domain.Decision, error) {
				return domain.Decision{Outcome: domain.Selected, Option: option}, nil
			}), q)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, answer.Record.Rules); diff != "" {
				t.Error(diff)
			}
			if offered := !strings.HasSuffix(option, "everything"); offered && answer.Allowed != strings.HasPrefix(option, "allow") {
				t.Errorf("allowed: %v", answer.Allowed)
			} else if !offered && answer.Allowed {
				t.Error("an option nobody offered allows")
			}
			q.Rules = answer.Record.Rules
			again, err := s.Decide(t.Context(), person(func(context.Context, domain.PermissionRequest) (domain.Decision, error) {
				return domain.Decision{Note: "asked again"}, nil
			}), q)
			if asked := again.Record != nil; err != nil || asked != (len(want) == 0) {
				t.Errorf("the same question afterwards: asked %v, %+v, %v", asked, again, err)
			}
		})
	}
}
