package llm

import "strings"

// Known returns what is generally known about a model, by the name its makers
// or an aggregator gave it ("openai/gpt-5-mini:free" is "gpt-5-mini"). Windows
// and limits only: prices change too often to be right in a binary, so they
// come from configuration alone. A name that continues a listed one with a
// date, a size or a suffix is taken for it; the longest listed name wins.
func Known(model string) (ModelFacts, bool) {
	name := strings.ToLower(model)
	if i := strings.LastIndexByte(name, '/'); i >= 0 {
		name = name[i+1:]
	}
	best, found := entry{}, false
	for _, e := range families() {
		if extends(name, e.name) && len(e.name) > len(best.name) {
			best, found = e, true
		}
	}
	if !found {
		return ModelFacts{}, false
	}
	images := best.images
	return ModelFacts{ContextWindow: best.window, MaxOutput: best.output, Images: &images}, true
}

// extends reports whether name is family or family followed by a suffix that
// begins with a separator.
func extends(name, family string) bool {
	rest, ok := strings.CutPrefix(name, family)
	return ok && (rest == "" || strings.ContainsRune("-:@.", rune(rest[0])))
}

// entry is one family of models: context window and longest reply in tokens,
// and whether it sees images.
type entry struct {
	name   string
	window int64
	output int64
	images bool
}

// families returns the table. It is a function so that it costs nothing until
// the first model is opened.
//
//nolint:funlen // a table
func families() []entry {
	const k, m = 1000, 1000000
	return []entry{
		{"gpt-5", 400 * k, 128 * k, true},
		{"gpt-5-chat", 128 * k, 16384, true},
		{"gpt-4.1", 1047576, 32768, true},
		{"gpt-4o", 128 * k, 16384, true},
		{"gpt-4-turbo", 128 * k, 4096, true},
		{"gpt-4", 8192, 8192, false},
		{"gpt-3.5-turbo", 16385, 4096, false},
		{"gpt-oss", 131072, 131072, false},
		{"o1", 200 * k, 100 * k, true},
		{"o3", 200 * k, 100 * k, true},
		{"o3-mini", 200 * k, 100 * k, false},
		{"o4-mini", 200 * k, 100 * k, true},
		{"codex-mini", 200 * k, 100 * k, true},

		{"claude-opus-4", 200 * k, 32 * k, true},
		{"claude-opus-4-5", 200 * k, 64 * k, true},
		{"claude-sonnet-4", 200 * k, 64 * k, true},
		{"claude-haiku-4", 200 * k, 64 * k, true},
		{"claude-3-7-sonnet", 200 * k, 64 * k, true},
		{"claude-3-5-sonnet", 200 * k, 8192, true},
		{"claude-3-5-haiku", 200 * k, 8192, true},
		{"claude-3", 200 * k, 4096, true},

		{"gemini-3", 1048576, 65536, true},
		{"gemini-2.5", 1048576, 65536, true},
		{"gemini-2.0-flash", 1048576, 8192, true},
		{"gemma-3", 131072, 8192, true},
		{"gemma3", 131072, 8192, true},

		{"deepseek-chat", 128 * k, 8192, false},
		{"deepseek-reasoner", 128 * k, 64 * k, false},
		{"deepseek-v3", 128 * k, 8192, false},
		{"deepseek-r1", 128 * k, 32768, false},

		{"qwen3", 131072, 32768, false},
		{"qwen3-coder", 262144, 65536, false},
		{"qwen3-max", 262144, 65536, false},
		{"qwen2.5", 131072, 8192, false},
		{"qwen2.5-coder", 131072, 8192, false},

		{"llama-4", m, 16384, true},
		{"llama-3.3", 131072, 32768, false},
		{"llama-3.2", 131072, 8192, false},
		{"llama-3.1", 131072, 8192, false},
		{"llama3.3", 131072, 32768, false},
		{"llama3.2", 131072, 8192, false},
		{"llama3.1", 131072, 8192, false},

		{"mistral-large", 131072, 32768, false},
		{"mistral-medium", 131072, 32768, true},
		{"mistral-small", 131072, 32768, true},
		{"magistral", 40960, 40960, false},
		{"devstral", 131072, 32768, false},
		{"codestral", 256 * k, 32768, false},

		{"grok-4", 256 * k, 64 * k, true},
		{"grok-code-fast", 256 * k, 10 * k, false},
		{"kimi-k2", 262144, 32768, false},
		{"glm-4.6", 200 * k, 128 * k, false},
		{"glm-4.5", 131072, 96 * k, false},
		{"minimax-m2", 204800, 131072, false},
		{"command-a", 256 * k, 8 * k, false},
	}
}
