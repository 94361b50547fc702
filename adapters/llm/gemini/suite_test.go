package gemini_test

import (
	"testing"

	"github.com/berth-dev/berth/adapters/llm/llmtest/geminitest"
	"github.com/berth-dev/berth/core/ports/porttest"
)

// TestModel runs the suite of all models against a fake server, in every form
// that servers of this wire send.
func TestModel(t *testing.T) {
	for name, shape := range map[string]geminitest.Shape{
		"the API":     {},
		"every part":  {SignAll: true, Counting: true, LF: true},
		"2.5":         {Model: "gemini-2.5-pro", Extra: true},
		"2.5 signed":  {Model: "gemini-2.5-flash", SignAll: true, SplitEnd: true},
		"pretty":      {Model: "gemini-3-pro-preview", OldSpelled: true, SplitEnd: true},
		"list":        {List: true, SignAll: true},
		"pretty list": {List: true, OldSpelled: true, LF: true, Extra: true},
		"lines":       {Lines: true, LF: true},
	} {
		t.Run(name, func(t *testing.T) { porttest.Model(porttest.Bubble(t), shape.Dialect().Harness()) })
	}
}
