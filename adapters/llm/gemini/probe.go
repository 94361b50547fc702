package gemini

import (
	"context"
	"net/url"
	"slices"
	"strings"

	"github.com/berth-dev/berth/adapters/llm"
)

// The size of a page of the list is a number of three digits: longer values of
// an address are taken for secrets when a refusal quotes them.
const (
	pageSize = "999"
	maxPages = 20
)

// list is a page of the models of a server, in the form of the Gemini API or
// of Vertex AI.
type list struct {
	Models          []listed `json:"models"`
	PublisherModels []listed `json:"publisherModels"`
	Next            string   `json:"nextPageToken"`
}

type listed struct {
	Name    string   `json:"name"`
	Methods []string `json:"supportedGenerationMethods"` // absent: not said
}

// probe lists the models that can be asked, which costs nothing.
func probe(ctx context.Context, p llm.Provider) ([]string, error) {
	base, err := endpoint(p.ProviderConfig)
	if err != nil {
		return nil, err
	}
	var names []string
	token := ""
	for range maxPages {
		var page list
		if err := p.Fetch(ctx, llm.Call{URL: pageURL(base, token), Authorize: authorize}, &page); err != nil {
			return nil, err
		}
		for _, m := range append(page.Models, page.PublisherModels...) {
			if m.Methods != nil && !slices.Contains(m.Methods, "generateContent") {
				continue
			}
			if name := m.Name[strings.LastIndexByte(m.Name, '/')+1:]; name != "" {
				names = append(names, name)
			}
		}
		if page.Next == "" || page.Next == token {
			break
		}
		token = page.Next
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

func pageURL(base *url.URL, token string) string {
	u := *base
	u.Path += "/models"
	query := u.Query()
	query.Set("pageSize", pageSize)
	if token != "" {
		query.Set("pageToken", token)
	}
	u.RawQuery = query.Encode()
	return u.String()
}
