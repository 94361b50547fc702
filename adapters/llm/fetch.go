package llm

import (
	"context"
	"encoding/json"
	"io"
	"slices"
)

// maxDocument is the longest document that Fetch reads, in bytes. The lists of
// aggregators take a few MiB.
const maxDocument = 32 << 20

// Fetch gets one JSON document of a provider, such as the list of its models,
// and decodes it into to. It asks once. Errors are coded as those of a stream;
// a refusal is a *Failure.
func (p *Provider) Fetch(ctx context.Context, call Call, to any) error {
	call.get = true
	x, err := p.Start(ctx, call)
	if err != nil {
		return err
	}
	defer x.Close()
	body, err := io.ReadAll(io.LimitReader(x, maxDocument+1))
	switch {
	case err != nil:
		return x.Cut(err).Err
	case len(body) > maxDocument:
		return x.Broken("it is too long").Err
	case json.Unmarshal(body, to) == nil:
		return nil
	case len(body) > 0 && body[0] == '<':
		return x.NotAnAPI("a web page").Err
	}
	return x.Broken("it is no JSON of the expected form").Err
}

// FetchNames gets the list of models in the form that OpenAI defined,
// {"data":[{"id":"…"}]}, and returns their names, sorted.
func (p *Provider) FetchNames(ctx context.Context, call Call) ([]string, error) {
	var list struct {
		Data []struct {
			ID string `json:"id"`
		} `json:"data"`
	}
	if err := p.Fetch(ctx, call, &list); err != nil {
		return nil, err
	}
	names := make([]string, 0, len(list.Data))
	for _, m := range list.Data {
		if m.ID != "" {
			names = append(names, m.ID)
		}
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}
