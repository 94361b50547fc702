package bootstrap

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/berth-dev/berth/adapters/llm"
	"github.com/berth-dev/berth/bootstrap/internal/config"
	"github.com/berth-dev/berth/core/domain"
)

const listKey = "canary-key-0123456789"

// listServer lists models to whoever has the key.
func listServer(t *testing.T, models ...string) *httptest.Server {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		switch {
		case req.URL.Path != "/v1/models":
			http.NotFound(w, req)
		case req.Header.Get("Authorization") != "Bearer "+listKey:
			w.WriteHeader(http.StatusUnauthorized)
			_, _ = io.WriteString(w, `{"error":{"message":"no such key"}}`)
		default:
			var list []string
			for _, m := range models {
				list = append(list, fmt.Sprintf(`{"id":%q}`, m))
			}
			_, _ = io.WriteString(w, `{"object":"list","data":[`+strings.Join(list, ",")+`]}`)
		}
	}))
	t.Cleanup(server.Close)
	return server
}

// configured writes a configuration and returns how to load it.
func configured(t *testing.T, doc string, env ...string) LoadOptions {
	t.Helper()
	dir := t.TempDir()
	put(t, filepath.Join(dir, "config.toml"), doc)
	return LoadOptions{ConfigDir: dir, DataDir: t.TempDir(), Home: dir, Env: env}
}

// compatible is the configuration of a provider at a server.
func compatible(name, server, key, more string) string {
	return fmt.Sprintf("[providers.%s]\ntype = \"openai-compatible\"\nbase_url = \"%s/v1\"\napi_key = %q\nmax_retries = 0\n%s\n", name, server, key, more)
}

// silentServer takes requests and does not answer.
func silentServer(t *testing.T) *httptest.Server {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) { <-req.Context().Done() }))
	t.Cleanup(server.Close)
	return server
}

func TestListModels(t *testing.T) {
	server := listServer(t, "coder-large", "coder-small", "gpt-5.5-2026-04-01")
	doc := compatible("lab", server.URL, listKey, `fallback = ["other/spare", "openai/gpt-5.5"]
[providers.lab.models.coder-large]
context_window = 64000
input_price = 3`) +
		compatible("other", server.URL, "wrong-canary-key", "") +
		"[agents.default]\nmodel = \"lab/coder-large\"\n[agents.second]\nmodel = \"lab/gone\"\n[agents.off]\nenabled = false\nmodel = \"lab/coder-small\"\n"
	found, err := ListModels(t.Context(), configured(t, doc), ModelQuery{Probe: true})
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(found)
	if err != nil {
		t.Fatal(err)
	}
	for _, secret := range []string{listKey, "wrong-canary"} {
		if strings.Contains(string(text), secret) {
			t.Errorf("the report holds a secret: %s", text)
		}
	}
	byName := map[string]ProviderReport{}
	for _, p := range found {
		byName[p.Name] = p
	}
	// The keyless fallback is there because it is used, ollama and offline
	// because they need no key.
	for name, state := range map[string]string{
		"lab": ProviderReachable, "other": ProviderKeyRefused, "openai": ProviderNoKey, "offline": ProviderNotAsked,
	} {
		if got, ok := byName[name]; !ok || got.State != state {
			t.Errorf("%s: %+v, want %s", name, got, state)
		}
	}
	if _, ok := byName["anthropic"]; ok {
		t.Error("a provider nobody can use is listed")
	}
	if d := byName["openai"].Detail; !strings.Contains(d, "OPENAI_API_KEY") {
		t.Errorf("a missing key is told as %q", d)
	}
	lab := byName["lab"]
	var names []string
	for _, m := range lab.Models {
		names = append(names, m.ID)
		switch m.ID {
		case "lab/coder-large":
			if m.ContextWindow != 64000 || m.InputPrice != 3 || !slices.Equal(m.Agents, []string{"default"}) || m.Offered == nil || !*m.Offered {
				t.Errorf("%+v", m)
			}
		case "lab/gone":
			if m.Offered == nil || *m.Offered || !slices.Equal(m.Agents, []string{"second"}) {
				t.Errorf("%+v", m)
			}
		case "lab/gpt-5.5-2026-04-01":
			if m.ContextWindow == 0 || m.InputPrice != 0 {
				t.Errorf("the catalogue's window, and no price at an address of one's own: %+v", m)
			}
		}
	}
	if got := strings.Join(names, " "); got != "lab/coder-large lab/coder-small lab/gone lab/gpt-5.5-2026-04-01" {
		t.Errorf("the models are %s", got)
	}
	if m := byName["other"].Models; len(m) != 1 || !slices.Equal(m[0].FallbackOf, []string{"lab"}) || m[0].Offered != nil {
		t.Errorf("%+v", m)
	}
}

// TestListModels_Query: who is reported on, and that nobody is asked unless
// wanted.
func TestListModels_Query(t *testing.T) {
	asked := 0
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked++ }))
	defer server.Close()
	o := configured(t, compatible("lab", server.URL, listKey, ""), "OPENAI_API_KEY="+listKey)
	for _, c := range []struct {
		providers []string
		want      string // "" for an error
	}{
		{nil, "lab:not_asked openai:not_asked ollama:not_asked offline:not_asked"},
		{[]string{"openai"}, "openai:not_asked"},
		{[]string{"gemini", "lab"}, "gemini:no_key lab:not_asked"},
		{[]string{"labs"}, ""},
		{[]string{"azure"}, ""},
	} {
		found, err := ListModels(t.Context(), o, ModelQuery{Providers: c.providers})
		var got []string
		for _, p := range found {
			got = append(got, p.Name+":"+p.State)
			if p.Name == "openai" && len(p.Models) < 20 {
				t.Errorf("openai has %d models", len(p.Models))
			}
		}
		if strings.Join(got, " ") != c.want || (err != nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), "there are: lab, anthropic") {
			t.Errorf("%v: %v, %v", c.providers, got, err)
		}
	}
	if asked != 0 {
		t.Errorf("%d requests were made", asked)
	}
}

// TestListModels_Together: providers that do not answer cost one limit for all
// of them together, for they are asked at the same time. These answer when each
// of them has been asked.
func TestListModels_Together(t *testing.T) {
	names := []string{"a", "b", "c", "d"}
	var asked atomic.Int32
	all := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if asked.Add(1) == int32(len(names)) {
			close(all)
		}
		select {
		case <-all:
			_, _ = io.WriteString(w, `{"object":"list","data":[{"id":"coder"}]}`)
		case <-req.Context().Done():
		}
	}))
	defer server.Close()
	doc := ""
	for _, name := range names {
		doc += compatible(name, server.URL, listKey, "")
	}
	found, err := ListModels(t.Context(), configured(t, doc), ModelQuery{Providers: names, Probe: true, limit: patience})
	if err != nil || len(found) != len(names) {
		t.Fatalf("%v, %v", found, err)
	}
	for _, p := range found {
		if p.State != ProviderReachable {
			t.Errorf("%+v", p)
		}
	}
}

// TestListModels_Silent: a provider that does not answer is said to be silent.
func TestListModels_Silent(t *testing.T) {
	server := silentServer(t)
	doc := ""
	for _, name := range []string{"a", "b", "c", "d"} {
		doc += compatible(name, server.URL, listKey, "")
	}
	found, err := ListModels(t.Context(), configured(t, doc), ModelQuery{Providers: []string{"a", "b", "c", "d"}, Probe: true, limit: 200 * time.Millisecond})
	if err != nil || len(found) != 4 {
		t.Fatalf("%v, %v", found, err)
	}
	for _, p := range found {
		if p.State != ProviderUnreachable || !strings.Contains(p.Detail, "no answer within 200ms") {
			t.Errorf("%+v", p)
		}
	}
}

// TestDiagnoseProviders: the findings about what agents and fallbacks use.
func TestDiagnoseProviders(t *testing.T) {
	server := listServer(t, "coder:latest", "spare")
	closed := httptest.NewServer(nil)
	closed.Close()
	agent := "[agents.default]\nmodel = \"lab/coder\"\n"
	for name, c := range map[string]struct {
		doc  string
		want string // "state name: part of the detail | part of what to do", in order
	}{
		"works":       {compatible("lab", server.URL, listKey, "") + agent, "ok lab: answers and takes the key; it has coder"},
		"a wrong key": {compatible("lab", server.URL, "wrong-canary-key", "") + agent, "fail lab: refused its API key|check the key"},
		"no key at a server that wants one": {
			strings.Replace(compatible("lab", server.URL, listKey, ""), "api_key", "# api_key", 1) + agent, "fail lab: wants an API key|berth login lab",
		},
		"nobody there":     {compatible("lab", closed.URL, listKey, "") + agent, "fail lab: nothing listens at its address|providers.lab.base_url"},
		"another path":     {compatible("lab", server.URL+"/api", listKey, "") + agent, "warn lab: 404|base_url"},
		"no such model":    {compatible("lab", server.URL, listKey, "") + "[agents.default]\nmodel = \"lab/code\"\n", "warn lab: does not list code|berth models list lab"},
		"used by nobody":   {compatible("lab", closed.URL, listKey, "") + "[agents.default]\nmodel = \"offline/offline\"\n", ""},
		"an agent is off":  {compatible("lab", closed.URL, listKey, "") + agent + "enabled = false\n", ""},
		"a key is missing": {"[agents.default]\nmodel = \"openai/x\"\n", ""}, // the agent's finding says it
		"fallbacks": {
			compatible("lab", server.URL, listKey, `fallback = ["spare/spare", "gemini/g", "dead/x"]`) + compatible("spare", server.URL, listKey, "") +
				compatible("dead", closed.URL, listKey, "") + agent,
			"warn dead: nothing listens|base_url; warn gemini: has no API key and is passed over|GEMINI_API_KEY; ok lab: it has coder; ok spare: it has spare",
		},
	} {
		t.Run(name, func(t *testing.T) {
			var got []Finding
			for _, f := range Diagnose(t.Context(), configured(t, c.doc)) {
				if strings.HasPrefix(f.Name, "provider ") {
					got = append(got, f)
				}
			}
			var want []string
			if c.want != "" {
				want = strings.Split(c.want, "; ")
			}
			if name == "works" {
				want = []string{c.want}
			}
			if len(got) != len(want) {
				t.Fatalf("%+v, want %q", got, want)
			}
			for i, w := range want {
				head, rest, _ := strings.Cut(w, ": ")
				state, who, _ := strings.Cut(head, " ")
				detail, mend, _ := strings.Cut(rest, "|")
				f := got[i]
				if f.State != state || f.Name != "provider "+who || !strings.Contains(f.Detail, detail) || !strings.Contains(f.Mend, mend) {
					t.Errorf("%+v, want %q", f, w)
				}
				if strings.Contains(f.Detail+f.Mend, "canary") {
					t.Errorf("%+v holds a key", f)
				}
			}
		})
	}
}

// TestDefaultModels: what is chosen when nobody chose is in the catalogue.
func TestDefaultModels(t *testing.T) {
	for _, typ := range config.ProviderTypes() {
		if typ.DefaultModel == "" || typ.KeyEnv == "" {
			continue
		}
		if f, ok := llm.Known(typ.DefaultModel); !ok || f.ContextWindow == 0 {
			t.Errorf("%s of %s is not in the catalogue", typ.DefaultModel, typ.Name)
		}
		o := configured(t, "", typ.KeyEnv+"="+listKey)
		found, err := ListModels(t.Context(), o, ModelQuery{Providers: []string{typ.Name}})
		want := domain.ModelRef{Provider: typ.Name, Model: typ.DefaultModel}.String()
		if err != nil || !slices.ContainsFunc(found[0].Models, func(m ModelReport) bool { return m.ID == want && slices.Equal(m.Agents, []string{"default"}) }) {
			t.Errorf("%s is not listed: %v", want, err)
		}
	}
}
