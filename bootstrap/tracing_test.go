package bootstrap

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
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

// TestTracing_Header: what is wrong with the header is told at the start, and
// not when something happens at last.
func TestTracing_Header(t *testing.T) {
	file := filepath.Join(t.TempDir(), "header")
	if err := os.WriteFile(file, []byte("hush, no header\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, header := range map[string]string{"no header": "file:" + file, "no file": "file:" + file + ".none", "no variable": "env:BERTH_TEST_NOT_SET"} {
		t.Run(name, func(t *testing.T) {
			var log safeBuffer
			w := written{t, t.TempDir()}
			app := w.start("[telemetry]\nendpoint = \"http://127.0.0.1:1\"\nheader = \""+header+"\"\n", WithLog(&log))
			if err := app.Stop(context.Background()); err != nil {
				t.Fatal(err)
			}
			if got := log.String(); !strings.Contains(got, "nothing can be traced") || strings.Contains(got, "hush") {
				t.Errorf("the log says %s", got)
			}
		})
	}
}
