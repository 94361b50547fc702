package openai

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"

	"github.com/berth-dev/berth/adapters/llm"
	"github.com/berth-dev/berth/core/domain"
	"github.com/berth-dev/berth/core/ports"
)

// variant is whose chat completions a server speaks.
type variant int

// The variants.
const (
	compatible variant = iota // what all understand
	official                  // OpenAI's own address
	openRouter
	azure
)

// OpenRouterURL is where OpenRouter answers.
const OpenRouterURL = "https://openrouter.ai/api/v1"

// OpenRouter opens models of OpenRouter, which sells those of many providers.
// It says what a request cost, and takes how much to think in a form of its
// own. A base_url of "" is OpenRouterURL.
func OpenRouter() llm.Opener {
	return llm.Opener{
		Open:  func(p llm.Provider, info domain.ModelInfo) (ports.Model, error) { return newModel(p, info, openRouter) },
		Probe: probeOpenRouter,
	}
}

// Azure opens deployments of Azure OpenAI. The provider's base_url is the
// address of its v1 API, "https://RESOURCE.openai.azure.com/openai/v1", where a
// model's name is that of a deployment; or, for the API with dated versions,
// that of one deployment with the version in the query:
// "https://RESOURCE.openai.azure.com/openai/deployments/NAME?api-version=DATE".
func Azure() llm.Opener {
	return llm.Opener{
		Open:  func(p llm.Provider, info domain.ModelInfo) (ports.Model, error) { return newModel(p, info, azure) },
		Probe: probeAzure,
	}
}

// base returns the base URL of a provider, without the path of chat
// completions.
func (v variant) base(p llm.ProviderConfig) (*url.URL, error) {
	usual, like := "", "http://127.0.0.1:11434/v1"
	switch v {
	case openRouter:
		usual, like = OpenRouterURL, OpenRouterURL
	case azure:
		like = "https://RESOURCE.openai.azure.com/openai/v1"
	case compatible, official:
	}
	u, err := p.Address(usual, like, completionsPath)
	if err != nil {
		return nil, err
	}
	if v == azure {
		return azureBase(p.Name, u)
	}
	return u, nil
}

const deployments = "/openai/deployments/"

// classic reports whether an address of Azure is that of one deployment.
func classic(u *url.URL) bool { return strings.Contains(u.Path, deployments) }

// azureBase completes an address that is that of the resource alone.
func azureBase(name string, u *url.URL) (*url.URL, error) {
	switch {
	case classic(u):
		if u.Query().Get("api-version") == "" {
			return nil, domain.Errorf(domain.InvalidArgument,
				"providers.%s.base_url names a deployment, so it must end with a version such as \"?api-version=2024-10-21\"", name)
		}
	case u.Path == "", u.Path == "/openai":
		u.Path = "/openai/v1"
	}
	return u, nil
}

// authorize puts the key where the variant wants it.
func (v variant) authorize(h http.Header, key string) {
	if v == azure {
		h.Set("Api-Key", key)
		return
	}
	h.Set("Authorization", "Bearer "+key)
}

// headers are those that the variant is sent besides the usual ones.
func (v variant) headers() map[string]string {
	if v == openRouter {
		return map[string]string{"X-Title": "Berth"} // what its account page calls the requests
	}
	return nil
}

// reasoning is how OpenRouter is told how much to think.
type reasoning struct {
	Effort string `json:"effort"`
}

type askUsage struct {
	Include bool `json:"include"`
}

// cache marks the end of what a provider is to cache.
type cache struct {
	Type string `json:"type"`
}

// vary adds what only some servers understand.
func (m *Model) vary(b *body, req domain.ModelRequest, dropped option) {
	effort := ""
	if m.info.Thoughts {
		effort = llm.Effort(req.Thoughts, llm.Efforts(dropped&efforts))
	}
	switch m.variant {
	case openRouter:
		b.Usage = &askUsage{Include: true}
		if effort != "" {
			b.Reasoning = &reasoning{Effort: effort}
		}
		if strings.HasPrefix(m.info.Ref.Model, "anthropic/") {
			markCache(b.Messages)
		}
		return
	case official:
		if dropped&dropCacheKey == 0 {
			b.CacheKey = string(req.Session)
		}
	case compatible, azure:
	}
	b.Effort = effort
}

// markCache marks the system prompt, and where what is new in this request and
// in the one before it ends: Anthropic's models cache nothing that is not
// marked. A mark stands in a part, so every content becomes a list of them;
// else what was sent before would have another form when its mark moves on.
func markCache(messages []any) {
	marks, end := 2, true // to set; what follows is a reply, or nothing
	for i := len(messages) - 1; i >= 0; i-- {
		marked := false
		switch msg := messages[i].(type) {
		case plainMessage:
			msg.Content, marked = inParts(msg.Content, msg.Role == "system" || end && marks > 0)
			messages[i] = msg
		case toolMessage:
			msg.Content, marked = inParts(msg.Content, end && marks > 0)
			messages[i] = msg
		default:
			end = true
		}
		if marked {
			end, marks = false, marks-1
		}
	}
}

// inParts returns a content as parts, with a mark on the last text among them
// if it is to have one, and reports whether it has.
func inParts(content any, mark bool) (parts []part, marked bool) {
	parts, ok := content.([]part)
	if text, plain := content.(string); !ok && plain {
		parts = []part{{Type: "text", Text: text}}
	}
	for k := len(parts) - 1; mark && k >= 0; k-- {
		if parts[k].Type == "text" {
			parts[k].Cache = &cache{Type: "ephemeral"}
			return parts, true
		}
	}
	return parts, false
}

// cost is what OpenRouter charges, in US dollars: its own price, and with a
// key of the user's what the provider behind it takes. It is nil when it does
// not say.
func (u usage) cost() *domain.MicroUSD {
	const maxCost = 1e5 // dollars for one reply: more is no cost
	var dollars *float64
	if json.Unmarshal(u.Cost, &dollars) != nil || dollars == nil || *dollars < 0 {
		return nil
	}
	sum := *dollars
	var own bool
	var details struct {
		Upstream *float64 `json:"upstream_inference_cost"`
	}
	if json.Unmarshal(u.OwnKey, &own) == nil && own && json.Unmarshal(u.CostDetails, &details) == nil && details.Upstream != nil {
		sum += max(0, *details.Upstream)
	}
	if sum > maxCost {
		return nil
	}
	out := domain.Dollars(sum)
	return &out
}

// probe lists the models of a server, which costs nothing.
func probe(ctx context.Context, p llm.Provider) ([]string, error) { return compatible.list(ctx, p) }

func (v variant) list(ctx context.Context, p llm.Provider) ([]string, error) {
	u, err := v.base(p.ProviderConfig)
	if err != nil {
		return nil, err
	}
	names, err := p.FetchNames(ctx, v.get(below(u, "/models")))
	for i, name := range names {
		names[i] = strings.TrimPrefix(name, "models/") // Gemini's names as it lists them
	}
	return names, err
}

func (v variant) get(address string) llm.Call {
	return llm.Call{URL: address, Authorize: v.authorize, Headers: v.headers()}
}

// probeOpenRouter asks about the key first: the list is given to anybody.
func probeOpenRouter(ctx context.Context, p llm.Provider) ([]string, error) {
	u, err := openRouter.base(p.ProviderConfig)
	if err != nil {
		return nil, err
	}
	var key json.RawMessage
	if err := p.Fetch(ctx, openRouter.get(below(u, "/key")), &key); err != nil {
		return nil, err
	}
	return openRouter.list(ctx, p)
}

// probeAzure lists what the resource could deploy, which proves the address
// and the key. The names of its deployments are not told, so it returns none.
func probeAzure(ctx context.Context, p llm.Provider) ([]string, error) {
	u, err := azure.base(p.ProviderConfig)
	if err != nil {
		return nil, err
	}
	if classic(u) {
		u.Path = u.Path[:strings.Index(u.Path, deployments)] + "/openai"
	}
	var models json.RawMessage
	return nil, p.Fetch(ctx, azure.get(below(u, "/models")), &models)
}
