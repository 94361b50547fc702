package llm

import (
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
)

// TestKeptConnections: a connection that the server closes as it is used
// again, with the request on its way, is nobody's failure. One that is new is.
func TestKeptConnections(t *testing.T) {
	var mu sync.Mutex
	served := map[string]int{} // requests by the address of the connection
	var fresh, tagged int
	closing := "kept"
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		_, _ = io.Copy(io.Discard, req.Body)
		mu.Lock()
		defer mu.Unlock()
		served[req.RemoteAddr]++
		if req.Header.Get("X-Idempotency-Key") != "" || len(req.Header["X-Idempotency-Key"]) > 0 {
			tagged++
		}
		if kept := served[req.RemoteAddr] > 1; kept == (closing == "kept") {
			panic(http.ErrAbortHandler)
		}
		fresh++
		_, _ = io.WriteString(w, "{}")
	}))
	t.Cleanup(server.Close)
	client := NewClient(HTTPConfig{})
	t.Cleanup(client.Close)
	p := &Provider{Client: client, ProviderConfig: ProviderConfig{Name: "acme"}}
	ask := func() error {
		x, err := p.Start(t.Context(), Call{URL: server.URL, Body: []byte(`{"ask":1}`)})
		if err != nil {
			return err
		}
		defer x.Close()
		_, err = io.Copy(io.Discard, x)
		return err
	}
	for n := range 5 {
		if err := ask(); err != nil {
			t.Fatalf("request %d: %v", n+1, err)
		}
	}
	mu.Lock()
	if fresh != 5 || len(served) != 5 || tagged != 0 {
		t.Errorf("%d answers over %d connections, %d with a header that is not to be sent", fresh, len(served), tagged)
	}
	closing, served = "new", map[string]int{}
	mu.Unlock()
	client.Close()
	err := ask()
	mu.Lock()
	defer mu.Unlock()
	if err == nil || len(served) != 1 {
		t.Errorf("a new connection that breaks gave %v after %d attempts", err, len(served))
	}
}
