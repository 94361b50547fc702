package config

import (
	"slices"
	"testing"
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
		{"of a configured provider with a key at an address of its own", "[providers.work]\ntype = \"openai\"\nbase_url = \"https://gateway.example/v1\"\napi_key = \"k\"", nil, "work"},
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
		{"gemini", "gemini", "https://generativelanguage.googleapis.com/v1beta", "", true},
		{"ollama", "ollama", "http://box:11434", "", false},
		{"offline", "offline", "", "", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p, ok := c.LookupProvider(tt.name)
			key, err := p.APIKey.Reveal()
			if !ok || err != nil || p.Name != tt.name || p.Type != tt.typ || p.BaseURL != tt.url || key != tt.key || p.NeedsKey() != tt.needs || p.Timeout == 0 || p.MaxRetries != 3 {
				t.Errorf("%v %+v key %q, %v, needs it: %v", ok, p, key, err, p.NeedsKey())
			}
			if p.Wire() == "" {
				t.Error("nobody speaks it")
			}
		})
	}
	for _, name := range []string{"nobody", "azure", "scripted", "openai-compatible", ""} {
		if p, ok := c.LookupProvider(name); ok {
			t.Errorf("%q is there without configuration: %+v", name, p)
		}
	}
}

// TestConfig_Bedrock says where the address and the key of Amazon come from.
func TestConfig_Bedrock(t *testing.T) {
	const doc = "[providers.cloud]\ntype = \"bedrock\"\n"
	for _, tt := range []struct {
		name, doc string
		env       []string
		url, key  string
	}{
		{"bearer key", doc, []string{"AWS_REGION=eu-central-1", "AWS_BEARER_TOKEN_BEDROCK=b", "AWS_ACCESS_KEY_ID=i", "AWS_SECRET_ACCESS_KEY=s"},
			"https://bedrock-runtime.eu-central-1.amazonaws.com", "b"},
		{"signing key", doc, []string{"AWS_DEFAULT_REGION=us-east-1", "AWS_ACCESS_KEY_ID=i", "AWS_SECRET_ACCESS_KEY=s"},
			"https://bedrock-runtime.us-east-1.amazonaws.com", "i:s"},
		{"session", doc, []string{"AWS_REGION=us-east-1", "AWS_ACCESS_KEY_ID=i", "AWS_SECRET_ACCESS_KEY=s", "AWS_SESSION_TOKEN=t"},
			"https://bedrock-runtime.us-east-1.amazonaws.com", "i:s:t"},
		{"half a key", doc, []string{"AWS_REGION=us-east-1", "AWS_ACCESS_KEY_ID=i"}, "https://bedrock-runtime.us-east-1.amazonaws.com", ""},
		{"own address", doc + "base_url = \"https://bedrock-runtime.us-west-2.amazonaws.com\"\n", []string{"AWS_ACCESS_KEY_ID=i", "AWS_SECRET_ACCESS_KEY=s"},
			"https://bedrock-runtime.us-west-2.amazonaws.com", "i:s"},
		{"another's address", doc + "base_url = \"https://bedrock-runtime.evil.example\"\n", []string{"AWS_ACCESS_KEY_ID=i", "AWS_SECRET_ACCESS_KEY=s"},
			"https://bedrock-runtime.evil.example", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := mustLoad(t, tt.doc, tt.env...).Providers["cloud"]
			key, err := p.APIKey.Reveal()
			if err != nil || key != tt.key || p.BaseURL != tt.url {
				t.Errorf("key %q (%v) at %q, want %q at %q", key, err, p.BaseURL, tt.key, tt.url)
			}
		})
	}
	for name, env := range map[string][]string{"no region": nil, "a region that is none": {"AWS_REGION=a/../b"}} {
		if p, ok := mustLoad(t, "", env...).LookupProvider("bedrock"); ok {
			t.Errorf("%s: %+v", name, p)
		}
	}
	if p, ok := mustLoad(t, "", "AWS_REGION=us-east-1").LookupProvider("bedrock"); !ok || !p.NeedsKey() {
		t.Errorf("%v %+v", ok, p)
	}
}

// TestProviderType_Owns says where a usual key may go.
func TestProviderType_Owns(t *testing.T) {
	for _, tt := range []struct {
		typ, url string
		want     bool
	}{
		{"openai", "https://api.openai.com/v1", true},
		{"openai", "https://api.openai.com.evil.example/v1", false},
		{"openai", "http://api.openai.com/v1", false},
		{"openai-compatible", "https://api.openai.com/v1", false},
		{"azure", "https://mine.openai.azure.com/openai/v1", true},
		{"azure", "https://Mine.OpenAI.Azure.com", true},
		{"azure", "https://mine.services.ai.azure.com/openai/deployments/x?api-version=1", true},
		{"azure", "http://mine.openai.azure.com/openai/v1", false},
		{"azure", "https://.openai.azure.com/", false},
		{"azure", "https://openai.azure.com/", false},
		{"azure", "https://evil.example?x=.openai.azure.com", false},
		{"azure", "https://evil.example#.openai.azure.com", false},
		{"azure", "https://evil.example\\.openai.azure.com", false},
		{"azure", "https://evil.example@mine.openai.azure.com", false},
		{"azure", "https://mine.openai.azure.com:444/", false},
		{"azure", "https://mine.openai.azure.com.evil.example/", false},
		{"bedrock", "https://bedrock-runtime.eu-west-1.amazonaws.com", true},
		{"bedrock", "https://bedrock-runtime.evil.example", false},
		{"bedrock", "https://bedrock-runtime..amazonaws.com", false},
		{"bedrock", "", false},
	} {
		typ, ok := providerType(tt.typ)
		if got := typ.owns(tt.url); !ok || got != tt.want {
			t.Errorf("%s owns %s: %v", tt.typ, tt.url, got)
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
