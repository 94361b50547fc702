package llm

import (
	"time"

	"github.com/berth-dev/berth/core/domain"
)

// ProviderConfig is one provider as configured ("providers.<name>").
type ProviderConfig struct {
	Name string
	Type string // selects the Opener
	// BaseURL is where the provider answers; "" takes the type's own default,
	// where it has one.
	BaseURL string
	// APIKey returns the key as of now. It is called for every request, so a
	// key that was stored or removed meanwhile counts at once. A nil function
	// means the provider takes no key; "" means that it is missing.
	APIKey func() (string, error)
	// KeyOptional says that a missing key is no failure: the provider may do
	// without.
	KeyOptional bool
	// KeyHint tells a person where to put a missing key, such as
	// "set OPENAI_API_KEY or providers.openai.api_key". "" names the
	// configuration key.
	KeyHint string
	Headers map[string]string // sent with every request, over the adapter's own
	CAFile  string            // authorities to trust besides the system's, a PEM file; "" for none
	// Timeout is how long a request may wait for the first sign of an answer;
	// 0 means DefaultTimeout. A running stream has its own limit.
	Timeout time.Duration
	// MaxRetries is how many attempts may follow a failed one, as long as
	// nothing of a reply was passed on; 0 means none.
	MaxRetries int
	Models     map[string]ModelFacts // by the provider's own model name
	// Fallback are the models to ask, in this order, when one of the provider
	// cannot answer now. Those that are not configured are passed over.
	Fallback []domain.ModelRef
}

// DefaultTimeout is how long a provider may take to its first sign of an
// answer unless configured otherwise.
const DefaultTimeout = 120 * time.Second

// FirstByte returns the limit that applies.
func (p ProviderConfig) FirstByte() time.Duration {
	if p.Timeout <= 0 {
		return DefaultTimeout
	}
	return p.Timeout
}

// ModelFacts is what is known about a model. Zero fields are unknown; in
// configuration they leave the catalogue's value.
type ModelFacts struct {
	Title         string
	ContextWindow int64 // tokens
	MaxOutput     int64 // tokens
	Images        *bool
	Audio         *bool
	Tools         *bool
	Thoughts      *bool
	// The prices are US dollars per million tokens.
	InputPrice      float64
	OutputPrice     float64
	CacheReadPrice  float64
	CacheWritePrice float64
}

// info puts together what is known of one of the provider's models.
func (p ProviderConfig) info(model string) domain.ModelInfo {
	info := domain.ModelInfo{
		Ref:   domain.ModelRef{Provider: p.Name, Model: model},
		Title: model,
		Tools: true,
	}
	if f, ok := known(p.seller(), model); ok {
		f.apply(&info)
	}
	p.Models[model].apply(&info)
	return info
}

// apply overwrites what f knows.
func (f ModelFacts) apply(info *domain.ModelInfo) {
	if f.Title != "" {
		info.Title = f.Title
	}
	if f.ContextWindow > 0 {
		info.ContextWindow = f.ContextWindow
	}
	if f.MaxOutput > 0 {
		info.MaxOutput = f.MaxOutput
	}
	for _, b := range []struct {
		known *bool
		to    *bool
	}{{f.Images, &info.Images}, {f.Audio, &info.Audio}, {f.Tools, &info.Tools}, {f.Thoughts, &info.Thoughts}} {
		if b.known != nil {
			*b.to = *b.known
		}
	}
	for _, price := range []struct {
		known float64
		to    *float64
	}{
		{f.InputPrice, &info.InputPrice},
		{f.OutputPrice, &info.OutputPrice},
		{f.CacheReadPrice, &info.CacheReadPrice},
		{f.CacheWritePrice, &info.CacheWritePrice},
	} {
		if price.known > 0 {
			*price.to = price.known
		}
	}
}
