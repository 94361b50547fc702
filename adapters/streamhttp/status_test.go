package streamhttp_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/berth-dev/berth/adapters/streamhttp"
)

// TestStatus is the draft's table of answers.
func TestStatus(t *testing.T) {
	r := newRig(t, func(o *streamhttp.Options) { o.MaxMessageBytes = 4096 })
	id, server := r.open()
	server.write(t, call(`"zc-out-1"`, "session/request_permission", `{"sessionId":"s1"}`), call(`"zc-out-2"`, "ask", `{}`))
	busy := r.listen(id, "")
	busy.want(call(`"zc-out-2"`, "ask", `{}`))
	const (
		conn, sess = "Acp-Connection-Id", "Acp-Session-Id"
		prompt     = `{"jsonrpc":"2.0","id":1,"method":"session/prompt","params":{"sessionId":"s1","prompt":"x"}}`
	)
	long := repeat(1025)
	for _, tt := range []struct {
		name, method, body string
		headers            []string
		status             int
		says               string
	}{
		{"no content type", "POST", initialize, []string{"Content-Type", ""}, 415, "application/json"},
		{"text", "POST", initialize, []string{"Content-Type", "text/plain"}, 415, ""},
		{"a form", "POST", "a=b", []string{"Content-Type", "application/x-www-form-urlencoded"}, 415, ""},
		{"compressed", "POST", initialize, []string{"Content-Encoding", "gzip"}, 415, "not encoded"},
		{"no JSON", "POST", "{", nil, 400, `"code":-32700`},
		{"no JSON on a connection", "POST", "{", []string{conn, id}, 400, `"reason":"PARSE_ERROR"`},
		{"nothing", "POST", "", nil, 400, `"code":-32700`},
		{"a batch", "POST", "[" + initialize + "]", nil, 400, `"code":-32600`},
		{"a batch on a connection", "POST", "[" + prompt + "]", []string{conn, id, sess, "s1"}, 400, "batches"},
		{"a number", "POST", "7", []string{conn, id}, 400, `"code":-32600`},
		{"no version", "POST", `{"id":5,"method":"x"}`, []string{conn, id}, 400, `{"jsonrpc":"2.0","id":5,"error":{"code":-32600`},
		{"too long", "POST", `"` + repeat(5000) + `"`, []string{conn, id}, 413, `"reason":"MESSAGE_TOO_LARGE"`},
		{"initialize with id null", "POST", strings.Replace(initialize, `"id":0`, `"id":null`, 1), nil, 400, "null"},
		{"initialize without id", "POST", `{"jsonrpc":"2.0","method":"initialize"}`, nil, 400, "missing"},
		{"initialize twice", "POST", initialize, []string{conn, id}, 400, "without Acp-Connection-Id"},
		{"no connection", "POST", prompt, []string{sess, "s1"}, 400, "Acp-Connection-Id is missing"},
		{"an unknown connection", "POST", prompt, []string{conn, "nobody", sess, "s1"}, 404, "unknown"},
		{"another's connection", "POST", prompt, []string{conn, id, sess, "s1", "Authorization", "Bearer " + bobsToken}, 404, "unknown"},
		{"two connections", "POST", prompt, []string{conn, id, "+" + conn, id}, 400, "more than once"},
		{"a long connection id", "POST", prompt, []string{conn, long}, 400, "longer"},
		{"no session", "POST", prompt, []string{conn, id}, 400, "Acp-Session-Id is missing"},
		{"no session although the method has one", "POST", call("1", "session/set_mode", "{}"), []string{conn, id}, 400, "missing"},
		{"no session although the params have one", "POST", call("1", "_berth/session/observe", `{"sessionId":"s1"}`), []string{conn, id}, 400, "missing"},
		{"another session", "POST", prompt, []string{conn, id, sess, "s2"}, 400, "is not the session"},
		{"a long session id", "POST", prompt, []string{conn, id, sess, long}, 400, "longer"},
		{"a long request id", "POST", call(`"`+long+`"`, "ask", "{}"), []string{conn, id}, 400, "longer"},
		{"a response without its session", "POST", result(`"zc-out-1"`, "{}"), []string{conn, id}, 400, "missing"},
		{"a response with another session", "POST", result(`"zc-out-1"`, "{}"), []string{conn, id, sess, "s2"}, 400, "not the session"},
		{"a response", "POST", result(`"zc-out-1"`, "{}"), []string{conn, id, sess, "s1"}, 202, ""},
		{"a response on the connection", "POST", result(`"zc-out-2"`, "{}"), []string{conn, id}, 202, ""},
		{"a response to nothing", "POST", result(`"nothing"`, "{}"), []string{conn, id}, 202, ""},
		{"a response that is none", "POST", `{"jsonrpc":"2.0","id":1,"result":1,"error":{"code":1,"message":"x"}}`, []string{conn, id}, 202, ""},
		{"a prompt", "POST", prompt, []string{conn, id, sess, "s1"}, 202, ""},
		{"a charset", "POST", call("2", "session/list", "{}"), []string{conn, id, "Content-Type", "Application/JSON ; charset=utf-8"}, 202, ""},
		{"a notification", "POST", `{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":1}}`, []string{conn, id}, 202, ""},
		{"a byte order mark", "POST", "\xEF\xBB\xBF" + call("3", "session/list", "{}"), []string{conn, id}, 202, ""},

		{"a stream without Accept", "GET", "", []string{conn, id}, 406, "text/event-stream"},
		{"a stream of anything", "GET", "", []string{conn, id, "Accept", "*/*"}, 406, ""},
		{"a stream of JSON", "GET", "", []string{conn, id, "Accept", "application/json"}, 406, ""},
		{"a stream refused", "GET", "", []string{conn, id, "Accept", "text/event-stream;q=0"}, 406, ""},
		{"a stream of nothing", "GET", "", []string{"Accept", "text/event-stream"}, 400, "Acp-Connection-Id is missing"},
		{"a stream of an unknown connection", "GET", "", []string{"Accept", "text/event-stream", conn, "nobody"}, 404, "unknown"},
		{"a stream of another's", "GET", "", []string{"Accept", "text/event-stream", conn, id, "Authorization", "Bearer " + bobsToken}, 404, "unknown"},
		{"a second reader", "GET", "", []string{"Accept", "text/event-stream", conn, id}, 409, "reader"},
		{"a long session for a stream", "GET", "", []string{"Accept", "text/event-stream", conn, id, sess, long}, 400, "longer"},
		{"a last event that is no number", "GET", "", []string{"Accept", "text/event-stream", conn, id, sess, "s9", "Last-Event-ID", "x"}, 400, "Last-Event-ID"},
		{"a last event of the future", "GET", "", []string{"Accept", "text/event-stream", conn, id, sess, "s9", "Last-Event-ID", "999"}, 400, "never sent"},
		{"a stream with a body", "GET", "x", []string{"Accept", "text/event-stream", conn, id}, 400, "body"},
		{"half an upgrade", "GET", "", []string{"Accept", "text/event-stream", conn, id, "Upgrade", "websocket"}, 426, "WebSocket"},

		{"the end of nothing", "DELETE", "", nil, 400, "missing"},
		{"the end of an unknown connection", "DELETE", "", []string{conn, "nobody"}, 404, "unknown"},
		{"the end of another's", "DELETE", "", []string{conn, id, "Authorization", "Bearer " + bobsToken}, 404, "unknown"},

		{"PUT", "PUT", initialize, nil, 405, ""},
		{"HEAD", "HEAD", "", []string{conn, id}, 405, ""},
		{"no token", "POST", initialize, []string{"Authorization", ""}, 401, ""},
		{"a wrong token", "POST", "{", []string{"Authorization", "Bearer wrong"}, 401, ""},
		{"a foreign origin", "POST", initialize, []string{"Origin", "https://evil.example"}, 403, ""},
		{"no origin at all", "POST", initialize, []string{"Origin", "null"}, 403, ""},
		{"a foreign host", "POST", initialize, []string{"Host", "evil.example"}, 403, ""},
		{"a foreign host for a stream", "GET", "", []string{"Host", "evil.example", conn, id, "Accept", "text/event-stream"}, 403, ""},
		{"a foreign origin with a wrong token", "POST", initialize, []string{"Origin", "https://evil.example", "Authorization", "Bearer wrong"}, 403, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a := r.do(tt.method, tt.body, tt.headers...)
			if a.status != tt.status || !strings.Contains(a.body, tt.says) {
				t.Errorf("got %d %s, want %d with %s", a.status, a.body, tt.status, tt.says)
			}
			if a.status == 202 && a.body != "" {
				t.Errorf("202 came with %s", a.body)
			}
			if tt.status == 403 && a.head.Get("Access-Control-Allow-Origin") != "" {
				t.Errorf("a foreign page may read that")
			}
		})
	}
	// What was accepted, and nothing else, reached the server, in order.
	for _, want := range []string{`"zc-out-1"`, `"zc-out-2"`, `"nothing"`, `"error"`, "session/prompt", "session/list", "cancel_request", `"id":3`} {
		if got := server.read(t); !strings.Contains(got, want) {
			t.Errorf("the server read %s, want %s", got, want)
		}
	}
	busy.quiet()
	if a := r.do(http.MethodDelete, "", conn, id); a.status != 202 || a.body != "" {
		t.Errorf("DELETE: %d %s", a.status, a.body)
	}
	for _, method := range []string{"POST", "DELETE"} {
		if a := r.do(method, prompt, conn, id, sess, "s1"); a.status != 404 {
			t.Errorf("%s afterwards: %d %s", method, a.status, a.body)
		}
	}
	close(server.done)
	if got := busy.next(); got != "end" {
		t.Errorf("the stream brought %s", got)
	}
}

func TestCORS(t *testing.T) {
	r := newRig(t)
	const page = "https://page.example"
	t.Run("preflight", func(t *testing.T) {
		a := r.do("OPTIONS", "", "Authorization", "", "Origin", page, "Access-Control-Request-Method", "POST",
			"Access-Control-Request-Headers", "authorization,content-type,acp-connection-id", "Access-Control-Request-Private-Network", "true")
		if a.status != 204 || a.head.Get("Access-Control-Allow-Origin") != page || a.head.Get("Access-Control-Allow-Private-Network") != "true" {
			t.Errorf("got %d %v", a.status, a.head)
		}
		for _, h := range []string{"Authorization", "Content-Type", "Acp-Connection-Id", "Acp-Session-Id", "Last-Event-ID"} {
			if !strings.Contains(a.head.Get("Access-Control-Allow-Headers"), h) {
				t.Errorf("%s is not allowed", h)
			}
		}
		for _, m := range []string{"POST", "GET", "DELETE"} {
			if !strings.Contains(a.head.Get("Access-Control-Allow-Methods"), m) {
				t.Errorf("%s is not allowed", m)
			}
		}
	})
	for name, headers := range map[string][]string{
		"a foreign page": {"Origin", "https://evil.example"},
		"no origin":      {"Origin", "null"},
		"a foreign host": {"Origin", page, "Host", "evil.example"},
	} {
		t.Run(name, func(t *testing.T) {
			a := r.do("OPTIONS", "", append(headers, "Access-Control-Request-Method", "POST")...)
			if a.status != 403 || a.head.Get("Access-Control-Allow-Origin") != "" {
				t.Errorf("got %d %v", a.status, a.head)
			}
		})
	}
	t.Run("OPTIONS of something else", func(t *testing.T) {
		a := r.do("OPTIONS", "", "Authorization", "")
		if a.status != 204 || a.head.Get("Allow") == "" || a.head.Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("got %d %v", a.status, a.head)
		}
	})
	t.Run("a page may read a refusal", func(t *testing.T) {
		a := r.do("POST", initialize, "Origin", page, "Authorization", "Bearer wrong")
		if a.status != 401 || a.head.Get("Access-Control-Allow-Origin") != page {
			t.Errorf("got %d %v", a.status, a.head)
		}
	})
	t.Run("a page may read the connection's id", func(t *testing.T) {
		id, _ := r.open("Origin", page)
		a := r.do("POST", call("1", "x", "{}"), "Acp-Connection-Id", id, "Origin", page)
		h := a.head
		if a.status != 202 || h.Get("Access-Control-Allow-Origin") != page || h.Get("Access-Control-Allow-Credentials") != "true" ||
			!strings.Contains(h.Get("Access-Control-Expose-Headers"), "Acp-Connection-Id") || !strings.Contains(strings.Join(h.Values("Vary"), ","), "Origin") {
			t.Errorf("got %d %v", a.status, h)
		}
	})
	t.Run("others get none of it", func(t *testing.T) {
		if a := r.do("POST", "{"); a.head.Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("got %v", a.head)
		}
	})
}
