package anthropic_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/berth-dev/berth/adapters/llm/llmtest/anthropictest"
	"github.com/berth-dev/berth/core/ports/porttest"
)

// TestModel runs the suite of all models against a fake server, in every style
// that servers of this wire write in.
func TestModel(t *testing.T) {
	for name, style := range map[string]anthropictest.Style{
		"plain":      {},
		"crlf":       {Newline: "\r\n", Pings: true, Redacted: true},
		"cr":         {Newline: "\r", Extra: true},
		"extra":      {Extra: true, Pings: true, Redacted: true},
		"compatible": {Loose: true, Name: "glm-9"},
		"budget":     {Name: "claude-sonnet-4-5"},
	} {
		t.Run(name, func(t *testing.T) { porttest.Model(porttest.Bubble(t), style.Dialect().Harness()) })
	}
}

// TestSocket runs what needs a real socket.
func TestSocket(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	anthropictest.Dialect().Socket(t)
}
