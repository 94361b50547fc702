package acceptance

import (
	"errors"
	"net/http"
	"net/url"
	"os"
	"strings"
	"testing"

	"github.com/berth-dev/berth/adapters/jsonrpc/transcript"
	"github.com/berth-dev/berth/adapters/ws"
)

// startGateway runs a daemon without a script, with the tokens of a tokens
// section. Its log and its files may hold no canary in the end.
func startGateway(t *testing.T, tokens ...string) *gateway {
	t.Helper()
	s := &scenario{tokens: tokens, script: &transcript.Script{}}
	r := &gateway{
		t: t, s: s, w: s.prepare(t), mon: newMonitor(false), log: &logBuffer{},
		tokens: map[string]string{}, bridges: map[string]*process{},
	}
	for _, line := range tokens {
		r.makeToken(line)
	}
	r.mu.Lock()
	err := r.start(t.Context())
	r.mu.Unlock()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.stop(); err != nil {
			t.Error(err)
		}
		checkLeaks(t, newLeaks(), r.w, r.log.String())
	})
	return r
}

// TestTokens_AtTheDoor: who shows no token, or one that is wrong, gets no
// WebSocket, wherever it is shown; of several all must be right.
func TestTokens_AtTheDoor(t *testing.T) {
	t.Parallel()
	r := startGateway(t, "laptop")
	good, own := os.Getenv(gatewayToken), r.tokens["laptop"]
	for name, tt := range map[string]struct {
		header, query, protocol string
		status                  int // 0 is a connection
	}{
		"none":                              {status: http.StatusUnauthorized},
		"wrong":                             {header: own + "x", status: http.StatusUnauthorized},
		"the name of one":                   {header: "laptop", status: http.StatusUnauthorized},
		"made with berth token":             {header: own},
		"of the environment":                {header: good},
		"in the query":                      {query: good},
		"as a sub-protocol":                 {protocol: good},
		"twice the same":                    {header: good, query: good},
		"right and wrong":                   {header: good, query: good + "x", status: http.StatusUnauthorized},
		"wrong and right":                   {header: good + "x", protocol: good, status: http.StatusUnauthorized},
		"two that belong to two":            {header: good, query: own, status: http.StatusUnauthorized},
		"a canary that is another's secret": {header: os.Getenv("OPENAI_API_KEY"), status: http.StatusUnauthorized},
	} {
		t.Run(name, func(t *testing.T) {
			d := ws.DialConfig{URL: r.url, Token: tt.header}
			if tt.query != "" {
				d.URL += "?token=" + url.QueryEscape(tt.query)
			}
			if tt.protocol != "" {
				d.Protocols = []string{ws.ProtocolACP, "bearer." + tt.protocol}
			}
			c, err := ws.Dial(t.Context(), d)
			var refused *ws.DialError
			switch {
			case err == nil:
				_ = c.Close()
				<-c.Gone()
				if tt.status != 0 {
					t.Errorf("a connection, want %d", tt.status)
				}
				if strings.HasPrefix(c.Protocol(), "bearer") {
					t.Error("the token was agreed on as a protocol")
				}
			case !errors.As(err, &refused) || refused.Status != tt.status || tt.status == 0:
				t.Errorf("%v, want status %d", err, tt.status)
			}
		})
	}
}

// TestTokens_Revoked: a token that is revoked ends its connections, and no
// other, and opens none any more.
func TestTokens_Revoked(t *testing.T) {
	t.Parallel()
	r := startGateway(t, "lost", "kept")
	dial := func(client string) *ws.Conn {
		c, err := ws.Dial(t.Context(), ws.DialConfig{URL: r.url, Token: r.tokens[client]})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close(); <-c.Gone() })
		if err := c.Write([]byte(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}`)); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Read(); err != nil {
			t.Fatal(err)
		}
		return c
	}
	lost, kept := dial("lost"), dial("kept")
	if out, status := r.w.command(t, "", nil, "token", "revoke", "lost"); status != 0 {
		t.Fatalf("berth token revoke: status %d\n%s", status, out)
	}
	_, err := lost.Read()
	var closed *ws.ClosedError
	if !errors.As(err, &closed) || closed.Code != ws.ClosePolicy || closed.Reason != "the token was revoked" {
		t.Errorf("the connection ended with: %v", err)
	}
	_, err = ws.Dial(t.Context(), ws.DialConfig{URL: r.url, Token: r.tokens["lost"]})
	var refused *ws.DialError
	if !errors.As(err, &refused) || refused.Status != http.StatusUnauthorized {
		t.Errorf("dialling again: %v", err)
	}
	if err := kept.Write([]byte(`{"jsonrpc":"2.0","id":2,"method":"session/list","params":{}}`)); err != nil {
		t.Fatal(err)
	}
	if answer, err := kept.Read(); err != nil || !strings.Contains(string(answer), `"sessions":[]`) {
		t.Errorf("the other connection: %s, %v", answer, err)
	}
}

// TestTokens_BridgeIsRefused: a bridge whose token is wrong ends with one line
// that says so and what to do, and does not repeat the token.
func TestTokens_BridgeIsRefused(t *testing.T) {
	t.Parallel()
	r := startGateway(t)
	cmd := r.command("bridge")
	cmd.Env = append(cmd.Env, gatewayToken+"="+os.Getenv("NPM_TOKEN"))
	stderr := &logBuffer{}
	cmd.Stderr = stderr
	p, frames, err := pipe(cmd)
	if err != nil {
		t.Fatal(err)
	}
	if err := frames.Write([]byte(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}`)); err != nil {
		t.Fatal(err)
	}
	for err == nil {
		_, err = frames.Read()
	}
	<-p.done
	_ = frames.Close()
	said := stderr.String()
	if code := p.cmd.ProcessState.ExitCode(); code != 1 || strings.Count(said, "\n") != 1 || !strings.Contains(said, "refuses the token") || !strings.Contains(said, "berth token create") {
		t.Errorf("status %d:\n%s", code, said)
	}
	if found := birds().find([]byte(said)); len(found) > 0 {
		t.Errorf("it says %q", found)
	}
}
