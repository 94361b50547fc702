package main

import (
	"errors"
	"fmt"
	"io"
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
	err := r.explain(fmt.Errorf("call session/prompt: %w", &jsonrpc.RemoteError{Code: -32603, Message: "provider \"x\" cannot be reached"}))
	if err == nil || err.Error() != "provider \"x\" cannot be reached" {
		t.Errorf("it is told as %v", err)
	}
}
