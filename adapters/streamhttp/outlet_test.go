package streamhttp_test

import (
	"net/http"
	"testing"
)

// A stream of HTTP/1 takes its network connection for itself, so that the
// server holds nothing else for a client that only listens; over HTTP/2 it is
// one of many.
func TestStream_HasItsConnectionForItself(t *testing.T) {
	for _, two := range []bool{false, true} {
		r := newRig(t)
		if two {
			r.useHTTP2()
		}
		id, server := r.open()
		res, err := r.http.Do(r.request(http.MethodGet, "", "Accept", "text/event-stream", "Acp-Connection-Id", id))
		if err != nil {
			t.Fatal(err)
		}
		if res.StatusCode != http.StatusOK || res.Close == two || res.Header.Get("Date") == "" || res.Header.Get("Content-Type") != "text/event-stream" {
			t.Errorf("%s: %s, closes %t, %v", res.Proto, res.Status, res.Close, res.Header)
		}
		close(server.done)
		_ = res.Body.Close()
	}
}
