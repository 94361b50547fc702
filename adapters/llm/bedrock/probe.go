package bedrock

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"

	"github.com/berth-dev/berth/adapters/llm"
)

// probe lists the models of a region and the inference profiles that many of
// them are asked through. Where an address is not Amazon's own, the list is
// asked for behind it; that it does not know one shows that it answers.
//
// A key that may ask models but not list them is a good key: Amazon knows its
// owner, and says so.
func probe(ctx context.Context, p llm.Provider) ([]string, error) {
	e, err := parseEndpoint(p.Name, p.BaseURL)
	if err != nil {
		return nil, err
	}
	var found struct {
		Models []struct {
			ID string `json:"modelId"`
		} `json:"modelSummaries"`
		Profiles []struct {
			ID string `json:"inferenceProfileId"`
		} `json:"inferenceProfileSummaries"`
	}
	address, amazon := e.control()
	if err := p.Fetch(ctx, e.call(address+"/foundation-models"), &found); err != nil {
		var f *llm.Failure
		if errors.As(err, &f) && (mayNotList(f) || (!amazon && f.Status == http.StatusNotFound)) {
			return nil, nil
		}
		if errors.As(advise(err), &f) {
			return nil, f.Err
		}
		return nil, err
	}
	// The profiles are worth a try and nothing more: another permission.
	_ = p.Fetch(ctx, e.call(address+"/inference-profiles?maxResults=1000"), &found)
	var names []string
	for _, m := range found.Models {
		names = append(names, m.ID)
	}
	for _, m := range found.Profiles {
		names = append(names, m.ID)
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

// mayNotList reports whether a refusal is about the list alone.
func mayNotList(f *llm.Failure) bool {
	return f.Status == http.StatusForbidden && strings.Contains(f.Words, "not authorized to perform: bedrock:List")
}

// control returns the address of the lists: Amazon has them at a host of
// their own. It reports false for an address that is not Amazon's public one.
func (e endpoint) control() (address string, amazon bool) {
	host, public := strings.CutPrefix(e.base.Host, "bedrock-runtime")
	if !public || e.base.Path != "" {
		return e.runtime(""), false
	}
	u := e.base
	u.Host = "bedrock" + host
	return u.String(), true
}
