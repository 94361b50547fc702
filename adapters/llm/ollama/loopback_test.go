package ollama

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/berth-dev/berth/adapters/llm"
	"github.com/berth-dev/berth/core/domain"
	"github.com/berth-dev/berth/core/ports/porttest"
)

// over returns a model of a server on a real socket.
func over(t testing.TB, server *httptest.Server) *Model {
	t.Helper()
	p := llm.Provider{Client: llm.NewClient(llm.HTTPConfig{}), ProviderConfig: llm.ProviderConfig{Name: "fake", BaseURL: server.URL + "/v1"}}
	m, err := New(p, domain.ModelInfo{Ref: domain.ModelRef{Provider: "fake", Model: "fake-1"}, Tools: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Client.Close)
	return m
}

// TestSlowCall: a server that says nothing while its model writes a call is
// given as much time as it has to begin, and what is said then names the
// setting.
func TestSlowCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		wait := 5 * time.Minute
		s := &server{chat: http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
			_, _ = io.WriteString(w, text("I write."))
			_ = http.NewResponseController(w).Flush()
			select {
			case <-time.After(wait):
			case <-req.Context().Done():
				return
			}
			_, _ = io.WriteString(w, calls(`{"function":{"name":"f","arguments":{}}}`)+done("stop", ""))
		})}
		m := s.model(t, func(p *llm.Provider, _ *domain.ModelInfo) { p.Timeout = 6 * time.Minute })
		if line, err := got(t, m, porttest.SampleRequest()); line != "I write. +:f{} .calls" {
			t.Errorf("%q, %v", line, err)
		}
		wait = 7 * time.Minute
		line, err := got(t, m, porttest.SampleRequest())
		if line != "I write. !unavailable" || !strings.Contains(err.Error(), "nothing came for 6m0s") || !strings.Contains(err.Error(), "providers.fake.timeout_secs") {
			t.Errorf("%q, %v", line, err)
		}
	})
}
