package bootstrap

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
)

// A turn of a client with a trace of its own arrives at the collector, with
// its header and without what was said.
func TestTracing(t *testing.T) {
	var mu sync.Mutex
	var bodies, headers []string
	collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		mu.Lock()
		defer mu.Unlock()
		bodies, headers = append(bodies, r.URL.Path+" "+string(body)), append(headers, r.Header.Get("Api-Key"))
	}))
	defer collector.Close()
	w := written{t, t.TempDir()}
	var log safeBuffer
	app := w.start("[telemetry]\nendpoint = \""+collector.URL+"\"\nheader = \"Api-Key: key-of-the-collector\"\n[agents.a]\nmodel = \"offline/offline\"\n", WithLog(&log))
	k := talk(t, app)
	id := k.send("session/prompt", `{"sessionId":"`+k.session+`","prompt":[{"type":"text","text":"hello, words of mine"}],"_meta":{"traceparent":"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}}`)
	k.answer(id)
	k.hangUp()
	if err := app.Stop(context.Background()); err != nil {
		t.Fatal(err)
	}
	mu.Lock()
	defer mu.Unlock()
	got := strings.Join(bodies, "\n")
	for _, want := range []string{"/v1/traces ", `"invoke_agent a"`, `"chat offline"`, `"traceId":"0af7651916cd43dd8448eb211c80319c"`, `"parentSpanId":"b7ad6b7169203331"`, `"gen_ai.provider.name"`} {
		if !strings.Contains(got, want) {
			t.Errorf("the collector did not get %s:\n%s", want, got)
		}
	}
	if strings.Contains(got, "words of mine") {
		t.Errorf("the collector got the prompt:\n%s", got)
	}
	if len(headers) == 0 || headers[0] != "key-of-the-collector" {
		t.Errorf("the headers are %q", headers)
	}
}

// Without an endpoint nothing is there that could send.
func TestTracing_Off(t *testing.T) {
	w := written{t, t.TempDir()}
	app := w.start("[telemetry]\ncontent = true\n", WithLog(&safeBuffer{}))
	if _, several := app.p.Observer.(fan); several {
		t.Error("somebody else observes")
	}
}

func TestTraceHeader(t *testing.T) {
	for _, tt := range []struct {
		text, name, value string
		ok                bool
	}{
		{"", "", "", true}, {"Authorization: Bearer x y", "Authorization", "Bearer x y", true}, {"Api-Key:k", "Api-Key", "k", true},
		{"no header", "", "", false}, {": value", "", "", false}, {"Name:", "", "", false}, {"Two words: v", "", "", false}, {"A: b\r\nC: d", "", "", false},
	} {
		name, value, err := traceHeader(NewSecret(tt.text))
		if name != tt.name || value != tt.value || (err == nil) != tt.ok {
			t.Errorf("%q: %q, %q, %v", tt.text, name, value, err)
		}
	}
}
