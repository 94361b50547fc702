package llm

import (
	"net/url"
	"strings"
)

//go:generate go -C ../../tools/catalogue run . ../../adapters/llm/catalogue_table.go

// Known returns what is generally known about a model, by the name its makers
// or an aggregator gave it ("openai/gpt-5-mini:free" is "gpt-5-mini"), without
// prices: those are a seller's. A name that continues a listed one with a
// date, a size or a suffix is taken for it; the longest listed name wins.
func Known(model string) (ModelFacts, bool) { return known("", model) }

// known is Known with the prices of a seller. They hold for the listed name
// itself and its versions alone: what else continues a name, such as "-fast",
// may well cost something else. Configuration is over them.
func known(seller, model string) (ModelFacts, bool) {
	name := bare(model)
	var best, priced *entry // of the longest name
	longest := 0
	for _, table := range [...][]entry{catalogue(), families()} {
		for i := range table {
			e := &table[i]
			listed := e.id[strings.LastIndexByte(e.id, '/')+1:]
			rest, ok := continues(name, listed)
			if !ok || len(listed) < longest {
				continue
			}
			if len(listed) > longest {
				best, priced, longest = e, nil, len(listed)
			}
			if e.seller == seller {
				best = e
			}
			if sells(seller, e.seller) && version(rest) && (priced == nil || e.seller == seller) {
				priced = e
			}
		}
	}
	if best == nil {
		return ModelFacts{}, false
	}
	f := best.facts()
	if strings.EqualFold(model, best.id) {
		f.Title = best.title
	}
	if priced != nil {
		f.InputPrice, f.OutputPrice, f.CacheReadPrice, f.CacheWritePrice = priced.input, priced.output, priced.cacheRead, priced.cacheWrite
	}
	return f, true
}

// Offers reports whether a model is among the names that a provider gave: by
// its own name, by that of one of its versions ("llama3.2" is "llama3.2:latest"),
// or, for a name with a variant behind a colon, without it.
func Offers(names []string, model string) bool {
	plain, _, _ := strings.Cut(model, ":")
	for _, name := range names {
		if strings.EqualFold(name, model) || strings.EqualFold(name, plain) {
			return true
		}
		if rest, ok := continues(name, model); ok && version(rest) {
			return true
		}
	}
	return false
}

// listedBy returns the names of a seller's models in the catalogue, as it
// writes them.
func listedBy(seller string) []string {
	if seller == "" || seller == "bedrock" { // there every region has names of its own
		return nil
	}
	var ids []string
	for _, e := range catalogue() {
		if e.seller == seller {
			ids = append(ids, e.id)
		}
	}
	return ids
}

// bare is a name without those of its maker and of a region of AWS.
func bare(model string) string {
	model = model[strings.LastIndexByte(model, '/')+1:]
	if _, name, ok := strings.Cut(model, "anthropic."); ok {
		return name
	}
	return model
}

// continues reports whether name is listed, or listed followed by a suffix
// that begins with a separator, and returns the suffix. Letter case does not
// count, nor whether a version is written "4.5" or "4-5".
func continues(name, listed string) (rest string, ok bool) {
	if len(name) < len(listed) || listed == "" {
		return "", false
	}
	for i := range len(listed) {
		if plainByte(name[i]) != plainByte(listed[i]) {
			return "", false
		}
	}
	rest = name[len(listed):]
	return rest, rest == "" || strings.IndexByte("-:@.", rest[0]) >= 0
}

func plainByte(c byte) byte {
	switch {
	case 'A' <= c && c <= 'Z':
		return c + 'a' - 'A'
	case c == '.':
		return '-'
	}
	return c
}

// version reports whether a suffix only says which version is meant: dates,
// numbers, "latest", "preview".
func version(rest string) bool {
	if strings.HasPrefix(rest, ".") {
		return false
	}
	rest = strings.TrimSuffix(rest, ":0") // as AWS ends its names
	for part := range strings.FieldsFuncSeq(rest, func(c rune) bool { return strings.ContainsRune("-:@", c) }) {
		switch digits := strings.TrimPrefix(part, "v"); {
		case part == "latest", part == "preview":
		case digits == "" || strings.Trim(digits, "0123456789") != "":
			return false
		case len(part) < 2:
			return false // "gpt-5-1" may be another model than "gpt-5"
		}
	}
	return true
}

// sells reports whether the prices of a row hold at a seller: its own, and
// those of the makers where it passes them on.
func sells(seller, row string) bool {
	switch seller {
	case "":
		return false
	case "openrouter":
		return row != "bedrock" && row != ""
	case "azure":
		return row == "openai"
	}
	return seller == row
}

// seller returns whose prices hold at the provider's address; "" for an
// address of one's own, such as a gateway's, where nobody knows.
func (p ProviderConfig) seller() string {
	if p.BaseURL == "" {
		return p.Type
	}
	u, err := url.Parse(p.BaseURL)
	if err != nil {
		return ""
	}
	host := strings.ToLower(u.Hostname())
	for _, s := range [...]struct{ domain, seller string }{
		{"anthropic.com", "anthropic"},
		{"openai.com", "openai"},
		{"googleapis.com", "gemini"},
		{"openrouter.ai", "openrouter"},
		{"amazonaws.com", "bedrock"},
		{"azure.com", "azure"},
		{"deepseek.com", "deepseek"},
		{"x.ai", "xai"},
		{"moonshot.ai", "moonshot"},
		{"minimax.io", "minimax"},
		{"z.ai", "zai"},
		{"dashscope-intl.aliyuncs.com", "alibaba"},
	} {
		if host == s.domain || strings.HasSuffix(host, "."+s.domain) {
			return s.seller
		}
	}
	return ""
}

// entry is a model as one seller sells it, or, without a seller, a family of
// models that many run. Windows and longest replies are in tokens, prices in
// US dollars per million tokens; 0 is unknown.
type entry struct {
	seller, id, title                    string
	window, longest                      int64
	can                                  ability
	input, output, cacheRead, cacheWrite float64
}

// ability is what a model can do besides text and tools.
type ability uint8

const (
	sees ability = 1 << iota
	hears
	thinks
)

func (e entry) facts() ModelFacts {
	images, audio, thoughts := e.can&sees != 0, e.can&hears != 0, e.can&thinks != 0
	return ModelFacts{ContextWindow: e.window, MaxOutput: e.longest, Images: &images, Audio: &audio, Thoughts: &thoughts}
}

// families returns the models that have no row with a price: older ones, names
// that stand for the newest of a line, and open models by the names that local
// servers give them.
//
//nolint:funlen // a table
func families() []entry {
	const k, m = 1000, 1000000
	f := func(id string, window, longest int64, can ability) entry {
		return entry{id: id, window: window, longest: longest, can: can}
	}
	return []entry{
		f("gpt-5-chat", 128*k, 16384, sees),
		f("gpt-4-turbo", 128*k, 4096, sees),
		f("gpt-4", 8192, 8192, 0),
		f("gpt-3.5-turbo", 16385, 4096, 0),
		f("gpt-oss", 131072, 131072, thinks),
		f("o1", 200*k, 100*k, sees|thinks),
		f("codex-mini", 200*k, 100*k, sees|thinks),
		f("openrouter/auto", 128*k, 16384, sees),

		f("claude-3-7-sonnet", 200*k, 64*k, sees|thinks),
		f("claude-3-5-sonnet", 200*k, 8192, sees),
		f("claude-3-5-haiku", 200*k, 8192, sees),
		f("claude-3", 200*k, 4096, sees),
		f("claude-haiku-4", 200*k, 64*k, sees|thinks),

		f("gemini-flash-latest", 1048576, 65536, sees|hears|thinks),
		f("gemini-flash-lite-latest", 1048576, 65536, sees|hears|thinks),
		f("gemini-pro-latest", 1048576, 65536, sees|hears|thinks),
		f("gemini-3", 1048576, 65536, sees|hears|thinks),
		f("gemini-2.5", 1048576, 65536, sees|hears|thinks),
		f("gemini-2.0-flash", 1048576, 8192, sees|hears),
		f("gemma-3", 131072, 8192, sees),
		f("gemma3", 131072, 8192, sees),

		f("deepseek-chat", 128*k, 8192, 0),
		f("deepseek-reasoner", 128*k, 64*k, thinks),
		f("deepseek-v3", 128*k, 8192, 0),
		f("deepseek-r1", 128*k, 32768, thinks),

		f("qwen3", 131072, 32768, thinks),
		f("qwen2.5", 131072, 8192, 0),
		f("qwen2.5-coder", 131072, 8192, 0),

		f("llama-4", m, 16384, sees),
		f("llama-3.3", 131072, 32768, 0),
		f("llama-3.2", 131072, 8192, 0),
		f("llama-3.1", 131072, 8192, 0),
		f("llama3.3", 131072, 32768, 0),
		f("llama3.2", 131072, 8192, 0),
		f("llama3.1", 131072, 8192, 0),

		f("mistral-large", 131072, 32768, 0),
		f("mistral-medium", 131072, 32768, sees),
		f("mistral-small", 131072, 32768, sees),
		f("magistral", 40960, 40960, thinks),
		f("devstral", 131072, 32768, 0),
		f("codestral", 256*k, 32768, 0),

		f("grok-4", 256*k, 64*k, sees|thinks),
		f("grok-code-fast", 256*k, 10*k, thinks),
		f("kimi-k2", 262144, 32768, 0),
		f("minimax-m2", 200*k, 128*k, thinks),
		f("command-a", 256*k, 8*k, 0),
	}
}
