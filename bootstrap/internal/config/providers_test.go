package config

import (
	"slices"
	"testing"

	"github.com/berth-dev/berth/core/domain"
)

func TestDefaultModel(t *testing.T) {
	for _, tt := range []struct {
		name string
		env  []string
		want string
	}{
		{"no key", []string{"PATH=/bin"}, ""},
		{"empty key", []string{"OPENAI_API_KEY="}, ""},
		{"all keys", []string{"OPENROUTER_API_KEY=d", "GEMINI_API_KEY=c", "OPENAI_API_KEY=b", "ANTHROPIC_API_KEY=a"}, "anthropic"},
		{"without anthropic", []string{"OPENROUTER_API_KEY=d", "GEMINI_API_KEY=c", "OPENAI_API_KEY=b"}, "openai"},
		{"gemini before openrouter", []string{"OPENROUTER_API_KEY=d", "GEMINI_API_KEY=c"}, "gemini"},
		{"openrouter", []string{"OPENROUTER_API_KEY=d"}, "openrouter"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			ref, ok := DefaultModel(tt.env)
			if ref.Provider != tt.want || ok != (tt.want != "") || ok && ref.Model == "" {
				t.Errorf("DefaultModel = %v, %v, want provider %q", ref, ok, tt.want)
			}
		})
	}
}

func TestConfig_AgentModel(t *testing.T) {
	for _, tt := range []struct {
		name, doc string
		env       []string
		want      string
	}{
		{"of its own", "[agents.default]\nmodel = \"ollama/x\"", []string{"OPENAI_API_KEY=k"}, "ollama"},
		{"by the environment", "", []string{"OPENAI_API_KEY=k"}, "openai"},
		{"of a configured provider with a key", "[providers.work]\ntype = \"openai\"\napi_key = \"k\"", nil, "work"},
		{"of a configured provider whose key is missing", "[providers.work]\ntype = \"openai\"", nil, ""},
		{"a key for another address is no reason", "[providers.openai]\nbase_url = \"http://h/v1\"", []string{"OPENAI_API_KEY=k"}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			ref, ok := mustLoad(t, tt.doc, tt.env...).AgentModel("default")
			if ref.Provider != tt.want || ok != (tt.want != "") {
				t.Errorf("AgentModel = %v, %v, want provider %q", ref, ok, tt.want)
			}
		})
	}
}

func TestConfig_LookupProvider(t *testing.T) {
	c := mustLoad(t, `
[providers.openai]
base_url = "https://proxy.example/v1"
[providers.mine]
type = "openai"
[providers.ollama]
base_url = "http://box:11434/"
`, "OPENAI_API_KEY=k", "ANTHROPIC_API_KEY=a")
	for _, tt := range []struct {
		name, typ, url, key string
		needs               bool
	}{
		{"openai", "openai", "https://proxy.example/v1", "", false}, // the usual key goes to the usual address only
		{"mine", "openai", "https://api.openai.com/v1", "k", true},
		{"anthropic", "anthropic", "https://api.anthropic.com/v1", "a", true},
		{"gemini", "gemini", "https://generativelanguage.googleapis.com/v1beta/openai", "", true},
		{"ollama", "ollama", "http://box:11434/v1", "", false},
		{"offline", "offline", "", "", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p, ok := c.LookupProvider(tt.name)
			key, err := p.APIKey.Reveal()
			if !ok || err != nil || p.Name != tt.name || p.Type != tt.typ || p.BaseURL != tt.url || key != tt.key || p.NeedsKey() != tt.needs || p.Timeout == 0 || p.MaxRetries != 3 {
				t.Errorf("%v %+v key %q, %v, needs it: %v", ok, p, key, err, p.NeedsKey())
			}
			if wire, err := p.Wire(); wire == "" || err != nil {
				t.Errorf("Wire() = %q, %v", wire, err)
			}
		})
	}
	for _, name := range []string{"nobody", "azure", "scripted", "openai-compatible", ""} {
		if p, ok := c.LookupProvider(name); ok {
			t.Errorf("%q is there without configuration: %+v", name, p)
		}
	}
}

// TestProviderTypes_NotBuiltIn says that such types are valid in the file and
// refused, with a way out, when they are opened.
func TestProviderTypes_NotBuiltIn(t *testing.T) {
	for _, typ := range []string{"azure", "bedrock", "openai-responses"} {
		doc := "[providers.x]\ntype = \"" + typ + "\"\nbase_url = \"https://h/v1\"\n"
		c := mustLoad(t, doc)
		_, err := c.Providers["x"].Wire()
		want := "provider type " + typ + " is not available in this version; configure \"x\" as another type, such as openai-compatible"
		if err == nil || err.Error() != want || !domain.HasCode(err, domain.Unsupported) {
			t.Errorf("%s: %v", typ, err)
		}
		if len(c.Warnings) != 1 {
			t.Errorf("%s: warnings %q", typ, c.Warnings)
		}
	}
}

func TestConfig_SecretVariables(t *testing.T) {
	c := mustLoad(t, "[providers.x]\ntype = \"openai\"\napi_key = \"env:WORK_KEY\"\n", "BERTH_BRIDGE__TOKEN=t", "WORK_KEY=k")
	got := c.SecretVariables()
	for _, want := range []string{"WORK_KEY", "BERTH_BRIDGE__TOKEN", "BERTH_GATEWAY_TOKEN", "ANTHROPIC_API_KEY", "OPENAI_API_KEY"} {
		if !slices.Contains(got, want) {
			t.Errorf("%s is missing in %q", want, got)
		}
	}
	if slices.Contains(got, "PATH") || slices.Contains(got, "") {
		t.Errorf("%q", got)
	}
}
