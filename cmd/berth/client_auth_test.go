package main

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
)

// TestClient_SignsIn drives agents that demand a sign-in. The agent is this
// test binary, started again.
func TestClient_SignsIn(t *testing.T) {
	if kind := os.Getenv("FAKE_AGENT"); kind != "" {
		fakeAgent(kind)
	}
	const (
		one      = `[{"id":"key","name":"A key","description":"reads it from its settings"}]`
		two      = `[{"id":"key","name":"A key"},{"type":"agent","id":"web","name":"A page"}]`
		terminal = `[{"type":"terminal","id":"tui","name":"A terminal","args":["login","--tui"]}]`
	)
	for _, tt := range []struct {
		name, methods, works string // works: the way after which sessions open
		args                 []string
		code                 int
		says                 []string
	}{
		{"nothing is demanded", one, "none", nil, 0, nil},
		{"no way", `[]`, "", nil, 1, []string{"please sign in", "offers no way to sign in"}},
		{"one way, not chosen", one, "key", nil, 1, []string{"please sign in", "--auth ID", "key - A key - reads it from its settings"}},
		{"one way", one, "key", []string{"--auth", "key"}, 0, nil},
		{"the second of two", two, "web", []string{"--auth", "web"}, 0, nil},
		{"a way that does not help", two, "web", []string{"--auth", "key"}, 1, []string{"please sign in"}},
		{"a way that fails", two, "web", []string{"--auth", "web", "--agent", "refuse"}, 1, []string{"sign in by web", "wrong key"}},
		{"an unknown way", two, "web", []string{"--auth", "other"}, 1, []string{"none of the ways", "web - A page"}},
		{"a terminal alone", terminal, "", nil, 1, []string{"outside of this client", "tui - A terminal (in a terminal, with the arguments: login --tui)"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Setenv("FAKE_AGENT", tt.works+" "+fmt.Sprint(strings.Contains(strings.Join(tt.args, " "), "refuse")))
			t.Setenv("FAKE_METHODS", tt.methods)
			none, err := os.Open(os.DevNull)
			if err != nil {
				t.Fatal(err)
			}
			defer none.Close()
			var out, errOut bytes.Buffer
			args := append([]string{"client", "-p", "hello", "--cwd", t.TempDir()}, tt.args...)
			code := runWith(t, none, &out, &errOut, append(args, "--", os.Args[0], "-test.run=^TestClient_SignsIn$")...)
			if code != tt.code {
				t.Errorf("exit code %d, want %d: %s", code, tt.code, errOut.String())
			}
			for _, want := range tt.says {
				if !strings.Contains(errOut.String(), want) {
					t.Errorf("it does not say %q:\n%s", want, errOut.String())
				}
			}
		})
	}
}

// hello runs one prompt without a terminal.
func hello(t *testing.T, args ...string) (code int, errOut string) {
	t.Helper()
	none, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer none.Close()
	var said bytes.Buffer
	code = runWith(t, none, &bytes.Buffer{}, &said, append([]string{"client", "-p", "hello", "--cwd", t.TempDir()}, args...)...)
	return code, said.String()
}

// TestClient_KeyIsMissing: an agent that says which key it lacks has one way to
// sign in, and that is to try again: it is not proposed.
func TestClient_KeyIsMissing(t *testing.T) {
	t.Setenv("FAKE_AGENT", "local false")
	t.Setenv("FAKE_METHODS", `[{"id":"local","name":"Use the key that is set"}]`)
	t.Setenv("FAKE_DATA", `{"reason":"AUTH_REQUIRED","key":"missing"}`)
	code, errOut := hello(t, "--", os.Args[0], "-test.run=^TestClient_SignsIn$")
	if code != 1 || !strings.Contains(errOut, "please sign in") || strings.Contains(errOut, "--auth") {
		t.Errorf("code %d: %s", code, errOut)
	}
}

// TestClient_NoAgent: what the client says where no agent answers.
func TestClient_NoAgent(t *testing.T) {
	for name, c := range map[string]struct {
		args []string
		code int
		want string
	}{
		"a model without a provider": {[]string{"--model", "large"}, 2, `--model: model "large" is not of the form "provider/model"`},
		"an agent that ends at once": {[]string{"--", os.Args[0], "-test.list=^$"}, 1, "the agent ended before it answered"},
	} {
		t.Run(name, func(t *testing.T) {
			code, errOut := hello(t, c.args...)
			if code != c.code || !strings.Contains(errOut, c.want) {
				t.Errorf("code %d: %s", code, errOut)
			}
		})
	}
}

// fakeAgent answers on standard output until its input ends. kind is the way
// after which sessions open, "none" for at once, and whether it is refused.
func fakeAgent(kind string) {
	works, refuses, _ := strings.Cut(kind, " ")
	open := works == "none"
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		var m struct {
			ID     json.RawMessage
			Method string
			Params struct{ MethodID string }
		}
		if json.Unmarshal(in.Bytes(), &m) != nil || m.ID == nil {
			continue
		}
		answer := `"result":{}`
		switch {
		case m.Method == "initialize":
			answer = `"result":{"protocolVersion":1,"authMethods":` + os.Getenv("FAKE_METHODS") + `}`
		case m.Method == "authenticate" && refuses == "true":
			answer = `"error":{"code":-32000,"message":"wrong key"}`
		case m.Method == "authenticate":
			open = open || m.Params.MethodID == works
		case !open:
			answer = `"error":{"code":-32000,"message":"please sign in","data":` + cmp.Or(os.Getenv("FAKE_DATA"), "{}") + `}`
		case m.Method == "session/new":
			answer = `"result":{"sessionId":"s1"}`
		case m.Method == "session/prompt":
			answer = `"result":{"stopReason":"end_turn"}`
		}
		fmt.Printf("{\"jsonrpc\":\"2.0\",\"id\":%s,%s}\n", m.ID, answer)
	}
	os.Exit(0)
}
