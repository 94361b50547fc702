package bootstrap

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/berth-dev/berth/core/domain"
)

// Rules with patterns are read by the parser that judges commands, and their
// examples are tried before anything starts.
func TestCheckRules(t *testing.T) {
	cases := []struct {
		name  string
		deny  []RuleConfig
		ask   []RuleConfig
		allow []RuleConfig
		want  string // part of the error; "" for none
	}{
		{name: "tool names", deny: []RuleConfig{{Rule: "web_fetch"}}, allow: []RuleConfig{{Rule: "shell"}}},
		{name: "words", allow: []RuleConfig{{
			Rule: "shell(go test)", Match: []string{"go test ./...", "timeout 5 go test"}, NotMatch: []string{"go testx", "go vet", "go test; rm x", "$go test"},
		}}},
		{name: "exactly these words", allow: []RuleConfig{{
			Rule: "shell(make all$)", Match: []string{"make all"}, NotMatch: []string{"make", "make all x"},
		}}},
		{name: "quoted words", allow: []RuleConfig{{Rule: `shell(grep 'a b')`, Match: []string{`grep "a b" x`}, NotMatch: []string{"grep a b"}}}},
		{name: "a rule that denies covers a line by one command", deny: []RuleConfig{{
			Rule: "shell(git push)", Match: []string{"git push", "make && /usr/bin/git push -f", "env A=1 git push"}, NotMatch: []string{"git status", "echo git push"},
		}}},
		{name: "so does one that asks", ask: []RuleConfig{{Rule: "shell(git push)", Match: []string{"ls; git push"}, NotMatch: []string{"git pull"}}}},
		{name: "an example that does not match", deny: []RuleConfig{{Rule: "shell(git push)", Match: []string{"git pull"}}}, want: `profiles.p.deny: the rule "shell(git push)" does not match its example "git pull"`},
		{name: "an example that matches and must not", allow: []RuleConfig{{Rule: "shell(git)", NotMatch: []string{"git push"}}}, want: `matches "git push"`},
		{name: "an example that cannot be read matches nothing", allow: []RuleConfig{{Rule: "shell(git)", Match: []string{"git 'x"}}}, want: "does not match"},
		{name: "no words", ask: []RuleConfig{{Rule: "shell()"}}, want: `has no words in the parentheses; write "shell"`},
		{name: "a pattern of another tool", ask: []RuleConfig{{Rule: "web_fetch(example.org)"}}, want: `which only shell takes; write "web_fetch"`},
		{name: "words that cannot be read", ask: []RuleConfig{{Rule: "shell(git 'x)"}}, want: "cannot be read"},
		{name: "words that are not known before they run", ask: []RuleConfig{{Rule: "shell($x)"}}, want: "cannot be read: $x is not plain text"},
		{name: "a rule that denies looks past options", deny: []RuleConfig{{
			Rule: "shell(git push)", Match: []string{"git -C sub push", "git --no-pager push"}, NotMatch: []string{"git stash push"},
		}}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			cfg := &Config{Store: StoreConfig{Driver: "memory"}, Profiles: map[string]ProfileConfig{"p": {Deny: c.deny, AlwaysAsk: c.ask, AutoApprove: c.allow}}}
			err := checkRules(cfg)
			switch {
			case c.want == "" && err != nil:
				t.Error(err)
			case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
				t.Errorf("error %v, want %q in it", err, c.want)
			}
			if _, nerr := New(cfg); c.want != "" && nerr == nil {
				t.Error("an App starts with a rule that does not hold")
			}
		})
	}
}

// What is wrong with rules is told with the rest, with its place, and is never
// written.
func TestTryRule_Config(t *testing.T) {
	dir := t.TempDir()
	o := LoadOptions{ConfigDir: dir, DataDir: dir, Home: dir}
	text := "version = 1\n[profiles.default]\ndeny = [\"shell(git *)\"]\nauto_approve = [{rule = \"shell(ls)\", match = [\"rm x\"]}]\n"
	if err := os.WriteFile(filepath.Join(dir, "config.toml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	for name, err := range map[string]error{
		"load":     func() error { _, err := LoadConfig(o); return err }(),
		"validate": ConfigValidate(&out, o, true),
	} {
		for _, want := range []string{"config.toml:3:8: profiles.default.deny: the rule \"shell(git *)\"", "config.toml:4:16: profiles.default.auto_approve"} {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: error %v, want %q in it", name, err, want)
			}
		}
	}
	if !strings.Contains(out.String(), "profiles.default.deny") {
		t.Errorf("as JSON: %s", out.String())
	}
	o.ConfigDir = t.TempDir()
	if _, err := ConfigSet(o, ConfigChange{Path: "profiles.default.deny", Value: "shell(git *)"}); err == nil {
		t.Error("a rule that does not hold was written")
	}
}

// A rule about a tool that there is not is a warning, and every tool is known.
func TestUnknownTools(t *testing.T) {
	var rules []RuleConfig
	for _, spec := range allSpecs(t) {
		rules = append(rules, RuleConfig{Rule: spec.Name})
	}
	rules = append(rules, RuleConfig{Rule: "update_plan"}, RuleConfig{Rule: "shell(git push)"})
	if len(rules) != len(toolNames())+1 {
		t.Errorf("%d tools are known, there are %d", len(toolNames()), len(rules)-1)
	}
	cfg := &Config{Profiles: map[string]ProfileConfig{"p": {Deny: rules}}}
	if notes := unknownTools(cfg); len(notes) > 0 {
		t.Error(notes)
	}
	cfg.Profiles["p"] = ProfileConfig{AlwaysAsk: []RuleConfig{{Rule: "delete"}}}
	if notes := unavailable(cfg); len(notes) != 1 || !strings.HasPrefix(notes[0], `profiles.p.always_ask: there is no tool "delete"`) {
		t.Error(notes)
	}
}

// A command of an agent does not change what the agent may do, even where no
// sandbox holds it.
func TestConfigSet_NotInsideACommand(t *testing.T) {
	for name, env := range map[string][]string{"a command": {"BERTH_SHELL=1"}, "a sandbox": {"BERTH_SANDBOX=namespaces"}} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			o := LoadOptions{ConfigDir: dir, DataDir: dir, Home: dir, Env: env}
			if _, err := ConfigSet(o, ConfigChange{Path: "profiles.default.level", Value: "full"}); !domain.HasCode(err, domain.Denied) {
				t.Errorf("error %v", err)
			}
			if _, err := os.Stat(filepath.Join(dir, "config.toml")); err == nil {
				t.Error("a file was written")
			}
			o.Env = []string{"BERTH_SHELLX=1"}
			if _, err := ConfigSet(o, ConfigChange{Path: "profiles.default.level", Value: "full"}); err != nil {
				t.Error(err)
			}
		})
	}
}
