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
		{name: "no words", ask: []RuleConfig{{Rule: "shell()"}}, want: `there are no words in the parentheses; write "shell"`},
		{name: "a pattern of another tool", ask: []RuleConfig{{Rule: "web_fetch(example.org)"}}, want: "only shell takes words"},
		{name: "words that cannot be read", ask: []RuleConfig{{Rule: "shell(git 'x)"}}, want: "cannot be read"},
		{name: "words that are not known before they run", ask: []RuleConfig{{Rule: "shell($x)"}}, want: "cannot be read"},
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
