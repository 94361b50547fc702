package llm

import (
	"context"
	"errors"
	"iter"
	"strings"
	"testing"

	"github.com/berth-dev/berth/core/domain"
	"github.com/berth-dev/berth/core/ports"
	"github.com/berth-dev/berth/core/ports/porttest"
)

// silent is a model that is only there to be opened.
type silent struct{ info domain.ModelInfo }

func (s *silent) Info() domain.ModelInfo { return s.info }
func (s *silent) Stream(context.Context, domain.ModelRequest) iter.Seq2[domain.ModelEvent, error] {
	return func(yield func(domain.ModelEvent, error) bool) {
		yield(domain.Finish{Reason: domain.FinishStop}, nil)
	}
}

// silentOpener opens silent models and counts how many.
func silentOpener(opened *int) Opener {
	complete := func(info domain.ModelInfo) domain.ModelInfo { info.Offline = true; return info }
	return Opener{
		Open: func(_ Provider, info domain.ModelInfo) (ports.Model, error) {
			*opened++
			return &silent{complete(info)}, nil
		},
		Models: []string{"own", "known"}, Complete: complete,
	}
}

func no() (string, error) { return "", nil }

func TestModels(t *testing.T) {
	porttest.Models(porttest.T(t), porttest.ModelsHarness{
		Open: func(t porttest.TB) ports.Models {
			ms, err := New(Config{Providers: []ProviderConfig{
				{Name: "one", Type: "silent", Models: map[string]ModelFacts{"known": {Title: "Known", ContextWindow: 7}}},
				{Name: "locked", Type: "silent", APIKey: no},
			}}, map[string]Opener{"silent": silentOpener(new(int))})
			if err != nil {
				t.Fatalf("%v", err)
			}
			return ms
		},
		Known:   domain.ModelRef{Provider: "one", Model: "known"},
		Keyless: domain.ModelRef{Provider: "locked", Model: "own"},
	})
}

func TestNew_Refuses(t *testing.T) {
	openers := map[string]Opener{"silent": silentOpener(new(int)), "other": {}}
	for want, providers := range map[string][]ProviderConfig{
		"known types: other, silent": {{Name: "a", Type: "loud"}},
		"configured twice":           {{Name: "a", Type: "silent"}, {Name: "a", Type: "other"}},
	} {
		_, err := New(Config{Providers: providers}, openers)
		if !domain.HasCode(err, domain.InvalidArgument) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// TestModels_Once: a model is opened once, so that what it learned is kept.
func TestModels_Once(t *testing.T) {
	opened := 0
	ms, err := New(Config{Providers: []ProviderConfig{{Name: "one", Type: "silent"}}}, map[string]Opener{"silent": silentOpener(&opened)})
	if err != nil {
		t.Fatal(err)
	}
	a, errA := ms.Open(t.Context(), domain.ModelRef{Provider: "one", Model: "x"})
	b, errB := ms.Open(t.Context(), domain.ModelRef{Provider: "one", Model: "x"})
	c, errC := ms.Open(t.Context(), domain.ModelRef{Provider: "one", Model: "y"})
	if errA != nil || errB != nil || errC != nil || a != b || a == c || opened != 2 {
		t.Errorf("%d models were opened", opened)
	}
}

// TestModels_Key: what is wrong with a key is said, what it is never.
func TestModels_Key(t *testing.T) {
	for name, c := range map[string]struct {
		key  func() (string, error)
		hint string
		want string
	}{
		"missing":        {no, "", "has no API key; set providers.p.api_key"},
		"missing, named": {no, "set ACME_KEY", "has no API key; set ACME_KEY"},
		"blank":          {func() (string, error) { return " \n", nil }, "", "has no API key"},
		"unreadable": {func() (string, error) {
			return "", errors.New("open /home/me/canary: denied")
		}, "", "its API key cannot be read; set"},
		"unreadable, coded": {func() (string, error) {
			return "", domain.Errorf(domain.NotFound, "the file named by api_key is missing")
		}, "", "its API key cannot be read: the file named by api_key is missing; set"},
		"two lines": {func() (string, error) { return "canary\ncanary", nil }, "", "a line break or another character that no key has; check the key: set providers.p.api_key"},
	} {
		t.Run(name, func(t *testing.T) {
			ms, err := New(Config{Providers: []ProviderConfig{{Name: "p", Type: "silent", APIKey: c.key, KeyHint: c.hint}}},
				map[string]Opener{"silent": silentOpener(new(int))})
			if err != nil {
				t.Fatal(err)
			}
			_, err = ms.Open(t.Context(), domain.ModelRef{Provider: "p", Model: "m"})
			if !domain.HasCode(err, domain.AuthRequired) || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "canary") {
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
	key, err := ProviderConfig{Name: "p", APIKey: func() (string, error) { return " abc\n", nil }}.key()
	if key != "abc" || err != nil {
		t.Errorf("key %q, %v", key, err)
	}
}

// TestKnown is about names: the longest family wins, and a name that merely
// begins alike is another model.
func TestKnown(t *testing.T) {
	for name, window := range map[string]int64{
		"gpt-4":                        8192,
		"gpt-4-0613":                   8192,
		"gpt-4-turbo-2024-04-09":       128000,
		"gpt-4o-mini":                  128000,
		"gpt-4.1-nano":                 1047576,
		"openai/gpt-5-mini":            400000,
		"deepseek/deepseek-r1:free":    128000,
		"Qwen/Qwen3-Coder-480B":        262144,
		"llama3.2:3b":                  131072,
		"models/gemini-2.5-flash":      1048576,
		"anthropic/claude-sonnet-4.5":  200000,
		"us.anthropic.claude-sonnet-4": 200000,
		"MiniMaxAI/minimax-M2.5":       200000,
		"gpt-5.5":                      1050000,
		"gpt-5-5":                      1050000,
		"gpt-42":                       0,
		"o1x":                          0,
		"":                             0,
		"my-own-model":                 0,
	} {
		facts, ok := Known(name)
		if facts.ContextWindow != window || ok != (window != 0) {
			t.Errorf("%q: %+v, %v, want a window of %d", name, facts, ok, window)
		}
	}
}

// TestInfo: configuration is over the catalogue.
func TestInfo(t *testing.T) {
	yes, not := true, false
	p := ProviderConfig{Name: "p", Models: map[string]ModelFacts{
		"gpt-4o": {ContextWindow: 9000, Images: &not, InputPrice: 1.5},
		"mine":   {Title: "Mine", MaxOutput: 5, Images: &yes, Tools: &not},
	}}
	for model, want := range map[string]domain.ModelInfo{
		"gpt-4o":      {Title: "gpt-4o", ContextWindow: 9000, MaxOutput: 16384, Tools: true, InputPrice: 1.5},
		"gpt-4o-mini": {Title: "gpt-4o-mini", ContextWindow: 128000, MaxOutput: 16384, Tools: true, Images: true},
		"mine":        {Title: "Mine", MaxOutput: 5, Images: true},
		"other":       {Title: "other", Tools: true},
	} {
		want.Ref = domain.ModelRef{Provider: "p", Model: model}
		if got := p.info(model); got != want {
			t.Errorf("%+v, want %+v", got, want)
		}
	}
}
