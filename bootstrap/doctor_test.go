package bootstrap

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/berth-dev/berth/core/domain"
)

func TestDiagnose(t *testing.T) {
	cases := []struct {
		name    string
		prepare func(t *testing.T, configDir, dataDir string)
		want    map[string]string // finding to "state: part of the detail"
	}{
		{
			name: "without a file everything has its default",
			want: map[string]string{"config": "ok: everything has its default", "store": "ok: acp-sessions.db", "agent default": "warn: offline model"},
		},
		{
			name: "a broken file",
			prepare: func(t *testing.T, configDir, _ string) {
				put(t, filepath.Join(configDir, "config.toml"), "acp = 1\n")
			},
			want: map[string]string{"config": "fail: acp"},
		},
		{
			name: "a damaged store is told and left as it is",
			prepare: func(t *testing.T, _, dataDir string) {
				put(t, filepath.Join(dataDir, "sessions", "acp-sessions.db"), "garbage")
			},
			want: map[string]string{"store": "fail: The session store", "agent default": "warn: offline model"},
		},
		{
			name: "sessions in memory, as configured",
			prepare: func(t *testing.T, configDir, _ string) {
				put(t, filepath.Join(configDir, "config.toml"), "[store]\ndriver = \"memory\"\n")
			},
			want: map[string]string{"config": "ok: config.toml", "store": "warn: in memory"},
		},
		{
			name: "a warning names the file once",
			prepare: func(t *testing.T, configDir, _ string) {
				put(t, filepath.Join(configDir, "config.toml"), "[providers.openai]\napi_key = \"env:NOT_SET\"\n")
			},
			want: map[string]string{"config": "warn: config.toml:2:11: providers.openai.api_key: the environment variable NOT_SET is not set"},
		},
		{
			name: "agents one by one",
			prepare: func(t *testing.T, configDir, _ string) {
				put(t, filepath.Join(configDir, "config.toml"), "[agents.a]\nmodel = \"openai/x\"\n[agents.b]\nenabled = false\nmodel = \"offline/offline\"\n")
			},
			want: map[string]string{"agent a": "fail: OPENAI_API_KEY", "agent b": "ok: disabled"},
		},
		{
			name: "a provider whose model nobody chose",
			prepare: func(t *testing.T, configDir, _ string) {
				put(t, filepath.Join(configDir, "config.toml"), "[providers.anthropic]\nbase_url = \"http://127.0.0.1:9/v1\"\n")
			},
			want: map[string]string{"agent default": "warn: offline model|set agents.default.model to a model of anthropic"},
		},
		{
			name: "a script is not the offline model",
			prepare: func(t *testing.T, configDir, _ string) {
				put(t, filepath.Join(configDir, "a.script"), "text \"hi\"\n")
				put(t, filepath.Join(configDir, "config.toml"), "[providers.story]\ntype = \"scripted\"\nscript = \"a.script\"\n[agents.default]\nmodel = \"story/main\"\n")
			},
			want: map[string]string{"agent default": "ok: model story/main"},
		},
		{
			name: "settings that do nothing with the model",
			prepare: func(t *testing.T, configDir, _ string) {
				put(t, filepath.Join(configDir, "config.toml"), "[agents.a]\nmodel = \"ollama/x\"\nthought_level = \"high\"\n"+
					"[agents.b]\nmodel = \"ollama/x\"\nthought_level = \"off\"\n[agents.c]\nmodel = \"ollama/x\"\nmax_cost_per_day = 1\n")
			},
			want: map[string]string{"agent a": "warn: model ollama/x", "agent b": "ok: model ollama/x", "agent c": "warn: model ollama/x"},
		},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			configDir, dataDir := t.TempDir(), t.TempDir()
			if c.prepare != nil {
				c.prepare(t, configDir, dataDir)
			}
			got := map[string]Finding{}
			for _, f := range Diagnose(t.Context(), LoadOptions{ConfigDir: configDir, DataDir: dataDir}) {
				got[f.Name] = f
			}
			for name, want := range c.want {
				state, detail, _ := strings.Cut(want, ": ")
				detail, mend, _ := strings.Cut(detail, "|")
				if f := got[name]; f.State != state || !strings.Contains(f.Mend, mend) || !strings.Contains(f.Detail, detail) {
					t.Errorf("%s: %+v, want %s", name, f, want)
				}
				if n := strings.Count(got[name].Detail, "config.toml"); n > 1 {
					t.Errorf("%s names the file %d times: %s", name, n, got[name].Detail)
				}
				if f := got[name]; f.State == FindingFail && f.Mend == "" && !strings.HasPrefix(name, "agent") {
					t.Errorf("%s does not say how to mend it", name)
				}
			}
		})
	}
}

func TestSandboxFinding(t *testing.T) {
	none := domain.Posture{Word: domain.PostureNone, Reason: "switch on user namespaces"}
	for name, c := range map[string]struct {
		profile ProfileConfig
		posture domain.Posture
		want    Finding
	}{
		"strong":             {ProfileConfig{}, domain.Posture{Word: domain.PostureStrong, Backend: "namespaces"}, Finding{State: FindingOK, Detail: "strong, by namespaces"}},
		"partial":            {ProfileConfig{}, domain.Posture{Word: domain.PosturePartial, Backend: "landlock", Lacks: []string{"chmod", "UDP"}, Reason: "r"}, Finding{State: FindingWarn, Detail: "partial, by landlock; open: chmod, UDP", Mend: "r"}},
		"none":               {ProfileConfig{Level: domain.LevelSupervised, Sandbox: "auto"}, none, Finding{State: FindingWarn, Detail: "none; every command is asked about", Mend: none.Reason}},
		"none at level full": {ProfileConfig{Level: domain.LevelFull}, none, Finding{State: FindingFail, Detail: "none, and the profile asks nobody: its sessions are refused", Mend: none.Reason}},
		"none of that name":  {ProfileConfig{Level: domain.LevelSupervised, Sandbox: "bubblewrap"}, none, Finding{State: FindingFail, Detail: "none: the sandbox that the profile asks for does not work here, and no command is run", Mend: none.Reason}},
		"off":                {ProfileConfig{Level: domain.LevelFull}, domain.Posture{Word: domain.PostureOff, Reason: "as configured"}, Finding{State: FindingWarn, Detail: "off", Mend: "as configured"}},
	} {
		t.Run(name, func(t *testing.T) {
			c.want.Name = "sandbox of profile p"
			if got := sandboxFinding("p", c.profile, c.posture); got != c.want {
				t.Errorf("%+v, want %+v", got, c.want)
			}
		})
	}
}

func put(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
