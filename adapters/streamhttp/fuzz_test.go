package streamhttp_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/berth-dev/berth/adapters/jsonrpc"
	"github.com/berth-dev/berth/adapters/streamhttp"
	"github.com/berth-dev/berth/adapters/ws"
)

// FuzzRequest sends any headers and body to one of two open connections: the
// answer is of the table, a refused message never reaches the server, and an
// accepted one reaches it whole.
func FuzzRequest(f *testing.F) {
	for _, method := range []string{"POST", "GET", "DELETE", "OPTIONS"} {
		f.Add(method, "application/json", "text/event-stream", "c1", "s1", "0", "", call("1", "session/prompt", `{"sessionId":"s1"}`))
		f.Add(method, "application/json; charset=utf-8", "a/b, text/event-stream;q=0.5", "", "", "", "https://page.example", initialize)
		f.Add(method, "text/plain", "*/*", "c2", "", "x", "null", "[]")
	}
	f.Add("POST", "application/json", "", "c1", "s1", "", "", result(`"a"`, "{}"))
	f.Add("POST", "application/json", "", "c1", "", "", "", `{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":1}}`)
	f.Add("POST", "application/json", "", "c1", "s2", "", "", call("1", "session/load", `{"sessionId":"s1"}`))
	f.Add("POST", "application/json", "", "c1", "s1", "", "", call(`"é"`, "x", `{"sessionId":"s\u0031"}`))
	answers := map[int]bool{200: true, 202: true, 204: true, 400: true, 404: true, 406: true, 409: true, 410: true, 413: true, 415: true, 426: true,
		403: true, 405: true, 500: true}
	f.Fuzz(func(t *testing.T, method, contentType, accept, connection, session, last, origin, body string) {
		var ids atomic.Int64
		got := make(chan string, 8)
		h := streamhttp.NewHandler(streamhttp.Options{
			MaxMessageBytes: 4096,
			NewID:           func() string { return "c" + string(rune('0'+ids.Add(1))) },
			Serve: func(ctx context.Context, frames jsonrpc.Frames, _ ws.Peer) {
				defer context.AfterFunc(ctx, func() { _ = frames.Close() })()
				for {
					frame, err := frames.Read()
					if err != nil {
						return
					}
					got <- string(frame)
					m, err := jsonrpc.Parse(frame)
					if err != nil && m.Kind != jsonrpc.Response {
						t.Errorf("%q reached the server", frame)
					}
					if m.Kind == jsonrpc.Request && frames.Write([]byte(result(string(m.ID), "{}"))) != nil {
						return
					}
				}
			},
		})
		guarded := h.Behind(ws.NewGuard(ws.GuardConfig{Origins: []string{"https://page.example"}, NewID: func() string { return "r" }}))
		ask := func(ctx context.Context, method, body string, head http.Header) *httptest.ResponseRecorder {
			r := httptest.NewRequestWithContext(ctx, "POST", "http://localhost/acp", strings.NewReader(body))
			r.Method, r.Header = method, head
			if body == "" {
				r.ContentLength, r.Body = 0, http.NoBody
			}
			w := httptest.NewRecorder()
			guarded.ServeHTTP(w, r)
			return w
		}
		for range 2 {
			if w := ask(t.Context(), "POST", initialize, http.Header{"Content-Type": {"application/json"}}); w.Code != http.StatusOK {
				t.Fatalf("initialize: %d %s", w.Code, w.Body)
			}
			<-got
		}
		head := http.Header{}
		for name, v := range map[string]string{"Content-Type": contentType, "Accept": accept, "Acp-Connection-Id": connection,
			"Acp-Session-Id": session, "Last-Event-Id": last, "Origin": origin} {
			if v != "" {
				head.Set(name, v)
			}
		}
		ctx, cancel := context.WithCancel(t.Context())
		if method == http.MethodGet {
			cancel() // a stream would not end
		}
		w := ask(ctx, method, body, head)
		cancel()
		if !answers[w.Code] {
			t.Errorf("%d %s", w.Code, w.Body)
		}
		if o := w.Header().Get("Access-Control-Allow-Origin"); o != "" && (o == "*" || o != origin) {
			t.Errorf("%q was allowed for %q", o, origin)
		}
		if err := h.Close(t.Context(), io.EOF); err != nil {
			t.Fatal(err)
		}
		close(got)
		for frame := range got {
			if w.Code != http.StatusAccepted && w.Code != http.StatusOK {
				t.Errorf("refused with %d, yet the server read %q", w.Code, frame)
			}
			if frame != strings.TrimPrefix(body, "\xEF\xBB\xBF") {
				t.Errorf("the server read %q of %q", frame, body)
			}
		}
	})
}
