package domain_test

import (
	"strings"
	"testing"

	. "github.com/berth-dev/berth/core/domain"
)

// cmd makes a simple command of class AccessRun that may be remembered.
func cmd(line string) SimpleCommand {
	return SimpleCommand{Words: strings.Fields(line), Class: AccessRun, Exact: true}
}

// line makes the access of a shell line in /w.
func line(commands ...SimpleCommand) Access {
	a := Access{Tool: "shell", Scope: "/w", Class: AccessRead, Commands: commands}
	for _, c := range commands {
		switch {
		case c.Class == AccessRisk:
			a.Class = AccessRisk
		case c.Class == AccessRun && a.Class == AccessRead:
			a.Class = AccessRun
		}
	}
	return a
}

func shellRule(words string) ToolRule {
	text, exact := strings.CutSuffix(words, "$")
	return ToolRule{Tool: "shell", Words: strings.Fields(text), Exact: exact}
}

func remembered(allow bool, words string) Rule {
	text, exact := strings.CutSuffix(words, "$")
	return Rule{Allow: allow, Tool: "shell", Scope: "/w", Words: strings.Fields(text), Exact: exact}
}

func TestDecide_Commands(t *testing.T) {
	read := SimpleCommand{Words: []string{"ls"}, Class: AccessRead, Exact: true}
	risk := SimpleCommand{Words: []string{"curl", "x"}, Class: AccessRisk}
	opaque := SimpleCommand{Class: AccessRisk}
	goTest := cmd("go test ./...")
	goTest.Prefix = 2
	wrapped := cmd("git push")
	wrapped.Forms = [][]string{{"timeout", "5", "git", "push"}}
	byPath := cmd("make")
	byPath.Forms = [][]string{{"/usr/bin/make"}}
	open := SimpleCommand{Words: []string{"git", "commit"}, More: true, Class: AccessRun}
	full, readOnly := Policy{Level: LevelFull}, Policy{Level: LevelReadOnly}
	auto := func(rules ...string) Policy {
		var p Policy
		for _, r := range rules {
			p.AutoApprove = append(p.AutoApprove, shellRule(r))
		}
		return p
	}
	deny := func(level Level, words string) Policy {
		return Policy{Level: level, Deny: []ToolRule{shellRule(words)}}
	}
	with := func(a Access, change func(*Access)) Access { change(&a); return a }
	network := func(a *Access) { a.Network = true }
	tainted := func(a *Access) { a.Network, a.Foreign = true, true }
	bare := func(a *Access) { a.Unconfined = "no namespaces" }

	cases := []struct {
		name   string
		policy Policy
		rules  []Rule
		access Access
		want   Verdict
		always string // what the options would remember, one per line
		prefix string
	}{
		{"a proven read runs", Policy{}, nil, line(read), Allow, "", ""},
		{"a proven read runs read-only", readOnly, nil, line(read), Allow, "", ""},
		{"a build asks, and may be remembered", Policy{}, nil, line(cmd("make")), Ask, "make$", ""},
		{"a build is refused read-only", readOnly, nil, line(cmd("make")), Refuse, "", ""},
		{"a build runs at level full", full, nil, line(cmd("make")), Allow, "", ""},
		{"program and subcommand may be remembered", Policy{}, nil, line(goTest), Ask, "go test ./...$", "go test"},
		{"a risk asks and is never remembered", Policy{}, nil, line(risk), Ask, "", ""},
		{"a risk beside a build: nothing is remembered", Policy{}, nil, line(cmd("make"), risk), Ask, "", ""},
		{"a risk runs at level full", full, nil, line(risk), Allow, "", ""},
		{"each command of a line is remembered for itself", Policy{}, nil, line(cmd("make a"), read, cmd("make b")), Ask, "make a$\nmake b$", ""},
		{"one command without a prefix: no prefix for the line", Policy{}, nil, line(goTest, cmd("make b")), Ask, "go test ./...$\nmake b$", ""},
		{"a command that is not exact is not remembered", Policy{}, nil, line(SimpleCommand{Words: []string{"make"}, Class: AccessRun}), Ask, "", ""},

		{"a remembered command runs", Policy{}, []Rule{remembered(true, "make a$")}, line(cmd("make a")), Allow, "", ""},
		{"exactly this one", Policy{}, []Rule{remembered(true, "make a$")}, line(cmd("make a b")), Ask, "make a b$", ""},
		{"and not a shorter one", Policy{}, []Rule{remembered(true, "make a$")}, line(cmd("make")), Ask, "make$", ""},
		{"a remembered prefix covers arguments", Policy{}, []Rule{remembered(true, "go test")}, line(goTest), Allow, "", ""},
		{"of whole words", Policy{}, []Rule{remembered(true, "go te")}, line(goTest), Ask, "go test ./...$", "go test"},
		{"an answer says nothing about another command of the line", Policy{}, []Rule{remembered(true, "make a$")}, line(cmd("make a"), cmd("make b")), Ask, "make b$", ""},
		{"an answer for another directory says nothing", Policy{}, []Rule{{Allow: true, Tool: "shell", Scope: "/x", Words: []string{"make"}}}, line(cmd("make")), Ask, "make$", ""},
		{"an answer for another tool says nothing", Policy{}, []Rule{{Allow: true, Tool: "other", Scope: "/w", Words: []string{"make"}}}, line(cmd("make")), Ask, "make$", ""},
		{"an answer without words covers no command", Policy{}, []Rule{{Allow: true, Tool: "shell", Scope: "/w"}}, line(cmd("make")), Ask, "make$", ""},
		{"a remembered allow does not lift a risk it does not name", Policy{}, []Rule{remembered(true, "make a$")}, line(cmd("make a"), risk), Ask, "", ""},
		{"nor a risk that begins with the words it names", Policy{}, []Rule{remembered(true, "curl")}, line(risk), Ask, "", ""},
		{"exactly this is not known where more words are unknown", Policy{}, []Rule{remembered(true, "git commit$")}, line(open), Ask, "", ""},
		{"a reject covers a risk", Policy{}, []Rule{remembered(false, "curl")}, line(risk), Refuse, "", ""},
		{"a reject anywhere in the line refuses it", Policy{}, []Rule{remembered(false, "make b$")}, line(cmd("make a"), cmd("make b")), Refuse, "", ""},
		{"a reject beats an allow", Policy{}, []Rule{remembered(true, "make"), remembered(false, "make b$")}, line(cmd("make b")), Refuse, "", ""},
		{"a reject beats level full", full, []Rule{remembered(false, "make b$")}, line(cmd("make b")), Refuse, "", ""},

		{"an approved command runs", auto("make"), nil, line(cmd("make a")), Allow, "", ""},
		{"approval covers one command", auto("make"), nil, line(cmd("make a"), cmd("npm ci")), Ask, "npm ci$", ""},
		{"approval of whole words", auto("npm test"), nil, line(cmd("npm testx")), Ask, "npm testx$", ""},
		{"approval of exactly these", auto("make a$"), nil, line(cmd("make a b")), Ask, "make a b$", ""},
		{"approval not by base name: it may be another program", auto("make"), nil, line(cmd("./make")), Ask, "./make$", ""},
		{"approval by the path as written", auto("/usr/bin/make"), nil, line(byPath), Allow, "", ""},
		{"approval by a path of another command", auto("/usr/bin/mak"), nil, line(byPath), Ask, "make$", ""},
		{"approval of the first words where more are unknown", auto("git commit"), nil, line(open), Allow, "", ""},
		{"approval of exactly these where more are unknown", auto("git commit$"), nil, line(open), Ask, "", ""},
		{"approval by full path", auto("/usr/bin/make"), nil, line(cmd("make")), Ask, "make$", ""},
		{"approval is not read-only's", Policy{Level: LevelReadOnly, AutoApprove: []ToolRule{shellRule("make")}}, nil, line(cmd("make")), Refuse, "", ""},
		{"approval of what is not known before it runs", auto("make", "$x"), nil, line(opaque), Ask, "", ""},
		{"approval of the tool covers every command", Policy{AutoApprove: []ToolRule{{Tool: "shell"}}}, nil, line(cmd("make"), risk), Allow, "", ""},
		{"a denied command refuses the line", deny("", "git push"), nil, line(read, cmd("git push -f")), Refuse, "", ""},
		{"whatever was remembered", deny("", "git push"), []Rule{remembered(true, "git push$")}, line(cmd("git push")), Refuse, "", ""},
		{"also in its wrappers' form", deny("", "timeout"), nil, line(wrapped), Refuse, "", ""},
		{"and by base name", deny("", "git push"), nil, line(cmd("/usr/bin/git push")), Refuse, "", ""},
		{"behind an option", deny(LevelFull, "git push"), nil, line(cmd("git --no-pager push")), Refuse, "", ""},
		{"behind options with values", deny(LevelFull, "git push"), nil, line(cmd("git -C sub -c a.b=c push origin")), Refuse, "", ""},
		{"with an option between", deny(LevelFull, "npm run deploy"), nil, line(cmd("npm run --silent deploy")), Refuse, "", ""},
		{"another subcommand is not", deny(LevelFull, "git push"), nil, line(cmd("git stash push")), Allow, "", ""},
		{"nor an option of exactly these words", deny(LevelFull, "git push$"), nil, line(cmd("git -q push")), Allow, "", ""},
		{"many options take no time", deny(LevelFull, "git push"), nil, line(cmd("git " + strings.Repeat("-a ", 5000) + "x y")), Allow, "", ""},
		{"an option whose value is not known may hide one", deny(LevelFull, "git push"), nil, line(SimpleCommand{Words: []string{"git", "-C"}, More: true, Class: AccessRun}), Refuse, "", ""},
		{"approval does not look past options", auto("git push"), nil, line(cmd("git --exec-path=x push")), Ask, "git --exec-path=x push$", ""},
		{"a denied read is denied", deny(LevelFull, "ls"), nil, line(read), Refuse, "", ""},
		{"what cannot be told is refused at level full where rules are", deny(LevelFull, "git push"), nil, line(opaque), Refuse, "", ""},
		{"and runs where none are", full, nil, line(opaque), Allow, "", ""},
		{"unknown words may complete a denied command", deny(LevelFull, "git commit --amend"), nil, line(open), Refuse, "", ""},
		{"or not, when the first words are others", deny(LevelFull, "git push"), nil, line(open), Allow, "", ""},
		{"unknown words may complete one that is always asked about", Policy{Level: LevelFull, AlwaysAsk: []ToolRule{shellRule("git commit x$")}}, nil, line(open), Refuse, "", ""},
		{"an always-ask command asks, at level full too", Policy{Level: LevelFull, AlwaysAsk: []ToolRule{shellRule("make")}}, nil, line(cmd("make")), Ask, "", ""},
		{"whatever was remembered and approved", Policy{AlwaysAsk: []ToolRule{shellRule("make")}, AutoApprove: []ToolRule{shellRule("make")}}, []Rule{remembered(true, "make")}, line(cmd("make")), Ask, "", ""},

		{"the network denied is denied at level full", Policy{Level: LevelFull, Network: NetworkDeny}, nil, with(line(risk), network), Refuse, "", ""},
		{"the network allowed does not allow a command", Policy{Network: NetworkAllow}, nil, with(line(cmd("make")), network), Ask, "make$", ""},
		{"foreign text voids what was remembered", Policy{}, []Rule{remembered(true, "make")}, with(line(cmd("make")), tainted), Ask, "", ""},
		{"and what is approved", auto("make"), nil, with(line(cmd("make")), tainted), Ask, "", ""},
		{"not at level full", full, nil, with(line(cmd("make")), tainted), Allow, "", ""},
		{"unless the profile says so", Policy{Level: LevelFull, Taint: true}, nil, with(line(cmd("make")), tainted), Ask, "", ""},
		{"foreign text without the network changes nothing", auto("make"), nil, with(line(cmd("make")), func(a *Access) { a.Foreign = true }), Allow, "", ""},

		{"without a sandbox a read asks", Policy{}, nil, with(line(read), bare), Ask, "", ""},
		{"and a read asks read-only", readOnly, nil, with(line(read), bare), Ask, "", ""},
		{"and nothing is remembered", auto("make"), []Rule{remembered(true, "make")}, with(line(cmd("make")), bare), Ask, "", ""},
		{"and level full refuses", full, nil, with(line(read), bare), Refuse, "", ""},
		{"a reject holds without a sandbox", Policy{}, []Rule{remembered(false, "make")}, with(line(cmd("make")), bare), Refuse, "", ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got := Decide(c.policy, c.rules, c.access)
			if got.Verdict != c.want {
				t.Errorf("verdict %d (%s), want %d", got.Verdict, got.Reason, c.want)
			}
			if a, p := written(t, got.Always), written(t, got.Prefix); a != c.always || p != c.prefix {
				t.Errorf("always %q and prefix %q, want %q and %q", a, p, c.always, c.prefix)
			}
			if got.Verdict == Refuse && got.Reason == "" {
				t.Error("a refusal gives the model no reason")
			}
			for _, r := range append(got.Always, got.Prefix...) {
				if again := Decide(c.policy, append(c.rules, r), c.access); len(got.Always) == 1 && again.Verdict != Allow {
					t.Errorf("after the answer was remembered the same line is not allowed: %+v", again)
				}
			}
		})
	}
}

// written shows rules as the cases above write them.
func written(t *testing.T, rules []Rule) string {
	t.Helper()
	out := make([]string, len(rules))
	for i, r := range rules {
		if !r.Allow || r.Tool != "shell" || r.Scope != "/w" {
			t.Errorf("the rule %+v is not about this tool and directory", r)
		}
		out[i] = strings.Join(r.Words, " ")
		if r.Exact {
			out[i] += "$"
		}
	}
	return strings.Join(out, "\n")
}

func TestDecide_Fetch(t *testing.T) {
	a := Access{Class: AccessFetch, Tool: "web_fetch", Scope: "example.org", Network: true}
	host := Rule{Allow: true, Tool: "web_fetch", Scope: "example.org"}
	foreign := a
	foreign.Foreign = true
	cases := []struct {
		name   string
		policy Policy
		rules  []Rule
		access Access
		want   Verdict
		always bool
	}{
		{"asks, and may be remembered for the host", Policy{}, nil, a, Ask, true},
		{"runs where the host is remembered", Policy{}, []Rule{host}, a, Allow, false},
		{"runs where the network is allowed", Policy{Network: NetworkAllow}, nil, a, Allow, false},
		{"also read-only", Policy{Level: LevelReadOnly, Network: NetworkAllow}, nil, a, Allow, false},
		{"is refused read-only otherwise", Policy{Level: LevelReadOnly}, []Rule{host}, a, Refuse, false},
		{"is refused where the network is denied", Policy{Level: LevelFull, Network: NetworkDeny}, []Rule{host}, a, Refuse, false},
		{"runs at level full", Policy{Level: LevelFull}, nil, a, Allow, false},
		{"asks again after foreign text", Policy{Network: NetworkAllow}, []Rule{host}, foreign, Ask, false},
		{"asks at level full after foreign text where the profile says so", Policy{Level: LevelFull, Taint: true}, nil, foreign, Ask, false},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got := Decide(c.policy, c.rules, c.access)
			if got.Verdict != c.want || (len(got.Always) > 0) != c.always {
				t.Errorf("%+v, want verdict %d, remembered %v", got, c.want, c.always)
			}
		})
	}
}
