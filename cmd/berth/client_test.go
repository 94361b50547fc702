package main

import (
	"errors"
	"fmt"
	"testing"

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
