package llm

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/berth-dev/berth/core/domain"
)

func TestModels_Probe(t *testing.T) {
	refused := &Failure{Err: domain.Errorf(domain.AuthRequired, "refused")}
	probe := func(_ context.Context, p Provider) ([]string, error) {
		key, err := p.key()
		if key == "wrong" {
			return nil, refused
		}
		return []string{p.Name + " with " + key}, err
	}
	yes := func() (string, error) { return "own", nil }
	broken := func() (string, error) { return "", domain.Errorf(domain.AuthRequired, "it is locked") }
	models, err := New(Config{Providers: []ProviderConfig{
		{Name: "keyed", Type: "asked", APIKey: yes}, {Name: "locked", Type: "asked", APIKey: no}, {Name: "broken", Type: "asked", APIKey: broken},
		{Name: "open", Type: "asked", APIKey: no, KeyOptional: true}, {Name: "keyless", Type: "asked"}, {Name: "silent", Type: "silent"},
	}}, map[string]Opener{"asked": {Probe: probe}, "silent": {}})
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name, provider, key, want string
		code                      domain.Code
	}{
		{name: "its own key", provider: "keyed", want: "keyed with own"},
		{name: "another key", provider: "keyed", key: "new", want: "keyed with new"},
		{name: "a key where there is none", provider: "locked", key: "new", want: "locked with new"},
		{name: "a key where none can be read", provider: "broken", key: "new", want: "broken with new"},
		{name: "a wrong key", provider: "keyed", key: "wrong", want: "refused", code: domain.AuthRequired},
		{name: "a missing key", provider: "locked", want: "has no API key", code: domain.AuthRequired},
		{name: "a key that cannot be read", provider: "broken", want: "it is locked", code: domain.AuthRequired},
		{name: "a key that may be missing", provider: "open", want: "open with "},
		{name: "a provider without a key", provider: "keyless", want: "keyless with "},
		{name: "a type that cannot be asked", provider: "silent", want: "cannot be asked", code: domain.Unsupported},
		{name: "nobody", provider: "nobody", want: "not configured", code: domain.InvalidArgument},
	} {
		t.Run(tt.name, func(t *testing.T) {
			names, err := models.Probe(t.Context(), tt.provider, tt.key)
			got := strings.Join(names, ",")
			var coded *domain.Error
			if errors.As(err, &coded) {
				got = coded.Msg
			}
			if !strings.Contains(got, tt.want) || (err != nil) != (tt.code != 0) || err != nil && domain.CodeOf(err) != tt.code {
				t.Errorf("%q, %v", names, err)
			}
		})
	}
	if ms, err := models.Open(t.Context(), domain.ModelRef{Provider: "locked", Model: "m"}); !domain.HasCode(err, domain.AuthRequired) {
		t.Errorf("trying a key keeps it: %v, %v", ms, err)
	}
}
