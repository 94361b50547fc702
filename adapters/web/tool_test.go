package web

import (
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/berth-dev/berth/core/domain"
	"github.com/berth-dev/berth/core/ports/porttest"
)

func TestTool(t *testing.T) {
	porttest.Tool(porttest.T(t), porttest.ToolHarness{Open: func(porttest.TB) porttest.ToolFixture {
		started := make(chan struct{})
		var once sync.Once
		w := newWorld(t, func(rw http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/stuck" {
				once.Do(func() { close(started) })
				<-r.Context().Done()
				return
			}
			page("text/html", "<p>hello")(rw, r)
		})
		stuck := callOf(map[string]any{"url": "https://example.com/stuck"})
		return porttest.ToolFixture{
			Tool: w.tool(), Call: callOf(map[string]any{"url": "https://example.com/", "format": "text", "offset": 0, "max_bytes": 10}),
			Stuck: &stuck, Started: started,
			State: func() string { return strings.Repeat("request ", w.requests()) },
			Wrong: map[string]string{
				"no url": `{}`, "empty url": `{"url":""}`, "url is a number": `{"url":1}`, "private": `{"url":"http://10.0.0.1/"}`,
				"unknown format": `{"url":"https://example.com/","format":"pdf"}`, "negative offset": `{"url":"https://example.com/","offset":-1}`,
				"offset is a fraction": `{"url":"https://example.com/","offset":1.5}`, "no bytes": `{"url":"https://example.com/","max_bytes":0}`,
				"too many bytes": `{"url":"https://example.com/","max_bytes":102401}`, "two objects": `{"url":"https://example.com/"}{}`,
			},
		}
	}})
}

func TestPlan(t *testing.T) {
	tool := newWorld(t, nil).tool()
	for _, c := range []struct{ name, url, title, scope, reason string }{
		{"a page", "https://Example.com/a?b#c", "Fetch https://example.com/a?b", "example.com", ""},
		{"another port", "https://example.com:80/", "Fetch https://example.com:80/", "example.com:80", ""},
		{"in the clear", "http://example.com/", "Fetch http://example.com/", "example.com", "not encrypted"},
		{"long", "https://example.com/" + strings.Repeat("a", 1000), "Fetch https://example.com/" + strings.Repeat("a", 180) + "…", "example.com", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, err := tool.Prepare(t.Context(), callOf(map[string]any{"url": c.url}))
			if err != nil {
				t.Fatal(err)
			}
			plan := p.Plan()
			if plan.Title != c.title || plan.Kind != domain.KindFetch {
				t.Errorf("the title is %q, the kind %s", plan.Title, plan.Kind)
			}
			a := plan.Access
			if a.Class != domain.AccessFetch || !a.Network || a.Scope != c.scope || a.Tool != "web_fetch" || !strings.Contains(a.Reason, c.reason) {
				t.Errorf("the access is %+v", a)
			}
			shown := plan.Content[0].(domain.ContentBlock).Block.(domain.Text).Text
			if whole, _, _ := strings.Cut(c.url, "#"); !strings.Contains(shown, strings.ToLower(whole[:8])+strings.ToLower(whole[8:])) {
				t.Errorf("the whole address is not shown: %s", shown)
			}
		})
	}
}

func TestSchema(t *testing.T) {
	compiler := jsonschema.NewCompiler()
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(string(newSpec().Schema)))
	if err != nil {
		t.Fatal(err)
	}
	if err := compiler.AddResource("mem:tool", doc); err != nil {
		t.Fatal(err)
	}
	schema, err := compiler.Compile("mem:tool")
	if err != nil {
		t.Fatal(err)
	}
	for args, good := range map[string]bool{
		`{"url":"https://example.com/"}`: true, `{"url":"https://example.com/","format":"text","offset":5,"max_bytes":102400}`: true,
		`{}`: false, `{"url":"x","format":"pdf"}`: false, `{"url":"x","max_bytes":102401}`: false,
	} {
		v, err := jsonschema.UnmarshalJSON(strings.NewReader(args))
		if err != nil {
			t.Fatal(err)
		}
		if err := schema.Validate(v); (err == nil) != good {
			t.Errorf("%s: %v", args, err)
		}
	}
}
