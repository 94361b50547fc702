package llm

import (
	"strings"
	"testing"
)

// TestCatalogue_Rows: every row can be true, and is there once.
func TestCatalogue_Rows(t *testing.T) {
	seen := map[string]bool{}
	for _, e := range append(catalogue(), families()...) {
		key := e.seller + " " + strings.ToLower(bare(e.id))
		if seen[key] {
			t.Errorf("%s/%s is listed twice", e.seller, e.id)
		}
		seen[key] = true
		if e.longest > e.window || e.longest <= 0 || bare(e.id) == "" {
			t.Errorf("%+v: the longest reply cannot be right", e)
		}
		if e.input < 0 || e.output < e.input || e.input > 100 || e.output > 1000 || e.cacheRead > e.input || e.cacheWrite != 0 && e.cacheWrite <= e.input {
			t.Errorf("%+v: the prices cannot be right", e)
		}
		if f, ok := known(e.seller, e.id); !ok || f.ContextWindow != e.window || f.InputPrice != e.input || f.CacheReadPrice != e.cacheRead {
			t.Errorf("%s/%s is looked up as %+v", e.seller, e.id, f)
		}
	}
	if n := len(catalogue()); n < 60 || n > 150 {
		t.Errorf("%d rows", n)
	}
}

// TestKnown_Prices: a price holds for the listed name and its versions, at the
// seller's own address.
func TestKnown_Prices(t *testing.T) {
	for name, c := range map[string]struct {
		base, model   string
		input, output float64
		read, write   float64
	}{
		"its own name":           {"https://api.openai.com/v1", "gpt-5.5", 5, 30, 0.5, 0},
		"a dated version":        {"https://api.anthropic.com", "claude-haiku-4-5-20251001", 1, 5, 0.1, 1.25},
		"an alias":               {"https://api.anthropic.com/v1", "claude-opus-4-5-latest", 5, 25, 0.5, 6.25},
		"with dots":              {"https://openrouter.ai/api/v1", "anthropic/claude-opus-4.5", 5, 25, 0.5, 6.25},
		"another of the line":    {"https://api.openai.com/v1", "gpt-5.6-sol-quick", 0, 0, 0, 0},
		"free of charge":         {"https://openrouter.ai/api/v1", "openai/gpt-oss-20b:free", 0, 0, 0, 0},
		"an aggregator's own":    {"https://openrouter.ai/api/v1", "deepseek/deepseek-v4-pro", 1.44, 2.88, 0.1215, 0},
		"the maker's":            {"https://api.deepseek.com/v1", "deepseek-v4-pro", 0.435, 0.87, 0.003625, 0},
		"a region of AWS":        {"https://bedrock-runtime.eu-west-1.amazonaws.com", "eu.anthropic.claude-sonnet-4-5-20250929-v1:0", 3, 15, 0.3, 3.75},
		"on Azure":               {"https://mine.openai.azure.com", "gpt-5", 1.25, 10, 0.125, 0},
		"no other's on Azure":    {"https://mine.services.ai.azure.com", "claude-opus-5", 0, 0, 0, 0},
		"a gateway of one's own": {"https://llm.example.com/v1", "gpt-5.5", 0, 0, 0, 0},
		"a host that ends alike": {"https://notopenai.com/v1", "gpt-5.5", 0, 0, 0, 0},
		"on this machine":        {"http://127.0.0.1:11434/v1", "qwen3-coder", 0, 0, 0, 0},
		"another's model":        {"https://api.openai.com/v1", "claude-opus-5", 0, 0, 0, 0},
		"an older one":           {"https://api.openai.com/v1", "gpt-4-turbo", 0, 0, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			info := ProviderConfig{Name: "p", Type: "t", BaseURL: c.base}.info(c.model)
			got := [...]float64{info.InputPrice, info.OutputPrice, info.CacheReadPrice, info.CacheWritePrice}
			if got != [...]float64{c.input, c.output, c.read, c.write} {
				t.Errorf("%v", got)
			}
			if info.ContextWindow == 0 {
				t.Error("its window is not known")
			}
		})
	}
}

// TestKnown_Facts: titles are for the name itself; abilities are the row's.
func TestKnown_Facts(t *testing.T) {
	for model, want := range map[string]struct {
		title                   string
		images, audio, thoughts bool
	}{
		"claude-sonnet-5":       {"Claude Sonnet 5", true, false, true},
		"claude-sonnet-5-fast":  {"", true, false, true},
		"gemini-3.7-flash":      {"Gemini 3.7 Flash", true, true, true},
		"gpt-3.5-turbo":         {"", false, false, false},
		"openrouter/auto":       {"", true, false, false},
		"glm-4.6":               {"", false, false, true},
		"meta-llama/llama-3.3x": {},
	} {
		f, ok := Known(model)
		if model == "meta-llama/llama-3.3x" {
			if ok {
				t.Errorf("%s is taken for another: %+v", model, f)
			}
			continue
		}
		if !ok || f.Title != want.title || *f.Images != want.images || *f.Audio != want.audio || *f.Thoughts != want.thoughts || f.InputPrice != 0 {
			t.Errorf("%s: %+v %v %v %v", model, f, *f.Images, *f.Audio, *f.Thoughts)
		}
	}
}

// TestOffers: names that stand for a version or a variant of an offered one.
func TestOffers(t *testing.T) {
	names := []string{"llama3.2:latest", "qwen3:8b", "claude-haiku-4-5-20251001", "gpt-5.5", "openai/gpt-5"}
	for model, want := range map[string]bool{
		"llama3.2:latest": true, "llama3.2": true, "llama3.2:1b": false, "qwen3:8b": true, "qwen3": false, "claude-haiku-4-5": true, "claude-haiku-4": false,
		"gpt-5.5": true, "GPT-5.5": true, "gpt-5": false, "openai/gpt-5:nitro": true, "": false,
	} {
		if got := Offers(names, model); got != want {
			t.Errorf("%q: %v", model, got)
		}
	}
}

// TestCatalog_Sold: the models that an address sells are listed, once.
func TestCatalog_Sold(t *testing.T) {
	ms, err := New(Config{Providers: []ProviderConfig{
		{Name: "cloud", Type: "silent", BaseURL: "https://api.openai.com/v1", Models: map[string]ModelFacts{"gpt-5.5": {ContextWindow: 9}}},
	}}, map[string]Opener{"silent": silentOpener(new(int))})
	if err != nil {
		t.Fatal(err)
	}
	all, err := ms.Catalog(t.Context())
	if err != nil || len(all) != len(listedBy("openai"))+2 {
		t.Errorf("%d models, %v", len(all), err)
	}
	for _, info := range all {
		if info.Ref.Model == "gpt-5.5" && (info.ContextWindow != 9 || info.InputPrice != 5) {
			t.Errorf("%+v", info)
		}
	}
}

// TestListedBy: what a seller has, by the names it takes.
func TestListedBy(t *testing.T) {
	for seller, want := range map[string]string{"openai": "gpt-5.5", "anthropic": "claude-sonnet-5", "openrouter": "openai/gpt-oss-120b", "minimax": "MiniMax-M2.5", "bedrock": "", "": "", "nobody": ""} {
		got := listedBy(seller)
		if found := strings.Contains(" "+strings.Join(got, " ")+" ", " "+want+" "); !found || want == "" && got != nil {
			t.Errorf("%s: %v", seller, got)
		}
	}
}

// BenchmarkKnown is one look-up, of a model at the end of the table and of one
// that is not in it.
func BenchmarkKnown(b *testing.B) {
	for _, model := range []string{"command-a", "my-own-model"} {
		b.Run(model, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				known("openai", model)
			}
		})
	}
}
