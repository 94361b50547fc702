package config

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestChanged(t *testing.T) {
	const base = "[agents.a]\nmodel = \"offline/offline\"\n[providers.p]\ntype = \"openai\"\napi_key = \"one\"\n[profiles.default]\ndeny = [\"shell\"]\n"
	cases := []struct {
		name, before, after string
		want                []string
	}{
		{"nothing", base, base, nil},
		{"comments and order", base, "# so\n[profiles.default]\ndeny = [\"shell\"]\n[providers.p]\napi_key = \"one\"\ntype = \"openai\"\n[agents.a]\nmodel = \"offline/offline\"\n", nil},
		{"a value that is the default", base, base + "[gateway]\nlisten = \"127.0.0.1:8080\"\n", nil},
		{"a value", base, base + "[gateway]\nlisten = \"127.0.0.1:9090\"\n", []string{"gateway.listen"}},
		{"a secret", base, "[agents.a]\nmodel = \"offline/offline\"\n[providers.p]\ntype = \"openai\"\napi_key = \"two\"\n[profiles.default]\ndeny = [\"shell\"]\n",
			[]string{"providers.p.api_key"}},
		{"a list and a model", base, "[agents.a]\nmodel = \"p/gpt\"\n[providers.p]\ntype = \"openai\"\napi_key = \"one\"\n[profiles.default]\ndeny = [\"shell\", \"web_fetch\"]\n",
			[]string{"agents.a.model", "profiles.default.deny"}},
		{"an entry that goes", base, "[agents.a]\nmodel = \"offline/offline\"\n[profiles.default]\ndeny = [\"shell\"]\n",
			[]string{"providers.p.api_key", "providers.p.fallback", "providers.p.max_retries", "providers.p.timeout_secs", "providers.p.type"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			read := func(text string) *Config {
				dir := t.TempDir()
				if err := os.WriteFile(filepath.Join(dir, "config.toml"), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
				cfg, err := Load(Options{ConfigDir: dir, DataDir: "/data", Home: "/home/u"})
				if err != nil {
					t.Fatal(err)
				}
				return cfg
			}
			if got := read(c.after).Changed(read(c.before)); !slices.Equal(got, c.want) {
				t.Errorf("changed %v, want %v", got, c.want)
			}
		})
	}
}
