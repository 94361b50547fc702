package main

import (
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"

	"github.com/berth-dev/berth/adapters/acpclient"
	"github.com/berth-dev/berth/adapters/jsonrpc"
)

func TestCostLimit(t *testing.T) {
	for data, want := range map[string]bool{
		`{"reason":"COST_LIMIT_REACHED"}`: true, `{"reason":"QUOTA_EXHAUSTED"}`: false, `{}`: false, `[]`: false, ``: false,
	} {
		if got := costLimit(fmt.Errorf("prompt: %w", &jsonrpc.RemoteError{Data: []byte(data)})); got != want {
			t.Errorf("%s: %v", data, got)
		}
	}
	if costLimit(nil) || costLimit(errors.New("COST_LIMIT_REACHED")) {
		t.Error("what is no answer counts as one")
	}
}

// The log of an agent is kept, the newest of it, for the case that it ends.
func TestAgentLog(t *testing.T) {
	var l agentLog
	for range 3000 {
		_, _ = l.Write([]byte("a line\n"))
	}
	_, _ = l.Write([]byte("the last words\n"))
	said := l.take()
	if len(said) > keptLog || !strings.HasSuffix(said, "a line\nthe last words") {
		t.Errorf("%d bytes were kept, which end with %q", len(said), said[max(0, len(said)-40):])
	}
	if again := l.take(); again != "" {
		t.Errorf("it is told twice: %q", again)
	}
}

// What an agent refuses is told in its own words.
func TestClient_Explain(t *testing.T) {
	ours, theirs := io.Pipe()
	defer theirs.Close()
	r := &client{proc: &acpclient.Process{Client: acpclient.Connect(jsonrpc.NewStdio(ours, io.Discard, 0), acpclient.Info{}, acpclient.Handlers{})}}
	for range 2 {
		err := r.explain(fmt.Errorf("call session/prompt: %w", &jsonrpc.RemoteError{Code: -32603, Message: "provider \"x\" cannot be reached"}))
		if err == nil || err.Error() != "provider \"x\" cannot be reached" {
			t.Errorf("it is told as %v", err)
		}
		_ = theirs.Close() // and so it is when the agent ends behind its answer
		<-r.proc.Done()
	}
}

// What the bridge says of the connection is told at once, one line each, and
// nothing else is; how to go on is told once.
func TestClient_Outage(t *testing.T) {
	for _, c := range []struct {
		name    string
		session string
		writes  []string // to the agent's log
		fails   error    // a prompt, at last
		says    string
		kept    string
		err     string
	}{
		{
			name: "lost and back", session: "s1",
			writes: []string{"bridge: the connection to the gateway is lo", "st (nobody); trying again\nberth: x\nbridge: the connection to the gateway is back\n"},
			says:   "· the connection to the gateway is lost (nobody); trying again\n· the connection to the gateway is back\n", kept: "berth: x",
		},
		{
			name: "then its prompt fails", session: "s1", writes: []string{"bridge: the connection to the gateway is lost\nbridge: the connection to the gateway is back\n"},
			fails: &jsonrpc.RemoteError{Message: "interrupted"},
			says:  "· the connection to the gateway is lost\n· the connection to the gateway is back\n",
			err:   "interrupted; go on with: berth client --url ws://h:1 --token-file 'my token' --session s1",
		},
		{
			name: "given up", session: "s1", writes: []string{"bridge: the gateway is given up: no gateway\n"}, fails: &jsonrpc.RemoteError{Message: "gone"},
			says: "· the gateway is given up: no gateway; go on later with: berth client --url ws://h:1 --token-file 'my token' --session s1\n", err: "gone",
		},
		{name: "before a session", writes: []string{"bridge: the gateway is given up: no gateway\n"}, says: "· the gateway is given up: no gateway\n"},
		{
			name: "a prompt that is lost", session: "s1", fails: &jsonrpc.RemoteError{Message: "lost", Data: []byte(`{"reason":"CONNECTION_LOST"}`)},
			err: "lost; go on with: berth client --url ws://h:1 --token-file 'my token' --session s1",
		},
		{name: "a prompt that fails", session: "s1", fails: &jsonrpc.RemoteError{Message: "no key"}, err: "no key"},
		{name: "control characters", session: "s1", writes: []string{"bridge: the connection to the gateway is lost (\x1b[31m)\n"}, says: "· the connection to the gateway is lost ([31m)\n"},
		{name: "a line without an end", writes: []string{strings.Repeat("x", 2*keptLog)}, kept: strings.Repeat("x", keptLog)},
	} {
		t.Run(c.name, func(t *testing.T) {
			ours, theirs := io.Pipe()
			defer theirs.Close()
			var said strings.Builder
			r := &client{
				errOut: &said, view: newView(io.Discard),
				proc: &acpclient.Process{Client: acpclient.Connect(jsonrpc.NewStdio(ours, io.Discard, 0), acpclient.Info{}, acpclient.Handlers{})},
			}
			r.outage.again = clientFlags{url: "ws://h:1", tokenFile: "my token"}.againArgs(&common{})
			r.log.told = r.tellOutage
			r.outage.opened(c.session)
			for _, s := range c.writes {
				if n, err := r.log.Write([]byte(s)); n != len(s) || err != nil {
					t.Errorf("wrote %d, %v", n, err)
				}
			}
			if said.String() != c.says {
				t.Errorf("said %q, want %q", said.String(), c.says)
			}
			if kept := r.log.take(); kept != c.kept {
				t.Errorf("kept %q, want %q", kept, c.kept)
			}
			if c.fails == nil {
				return
			}
			if err := r.goOn(c.fails); err == nil || err.Error() != c.err {
				t.Errorf("the prompt failed with %q, want %q", err, c.err)
			}
		})
	}
}

// A word is typed in a shell as it is, unless the shell would change it.
func TestShellWord(t *testing.T) {
	if runtime.GOOS == "windows" {
		for s, want := range map[string]string{`C:\x`: `C:\x`, `C:\a b`: `"C:\a b"`} {
			if got := shellWord(s); got != want {
				t.Errorf("%s: %s", s, got)
			}
		}
		return
	}
	for s, want := range map[string]string{
		"wss://h:1/acp": "wss://h:1/acp", "unix:/run/s": "unix:/run/s", "a b": "'a b'", "it's": `'it'\''s'`, "~/t": "'~/t'", "$(x)": "'$(x)'", "": "''",
	} {
		if got := shellWord(s); got != want {
			t.Errorf("%s: %s, want %s", s, got, want)
		}
	}
}
