package providers

import (
	"github.com/berth-dev/berth/adapters/llm/llmtest"
	"github.com/berth-dev/berth/adapters/llm/llmtest/anthropictest"
	"github.com/berth-dev/berth/adapters/llm/llmtest/bedrocktest"
	"github.com/berth-dev/berth/adapters/llm/llmtest/chattest"
	"github.com/berth-dev/berth/adapters/llm/llmtest/geminitest"
	"github.com/berth-dev/berth/adapters/llm/llmtest/ollamatest"
	"github.com/berth-dev/berth/adapters/llm/llmtest/responsestest"
)

// dialects are all provider types, in the order of the table.
func dialects() []llmtest.Dialect {
	return []llmtest.Dialect{
		anthropictest.Dialect(),
		chattest.Dialect(),
		responsestest.Dialect(),
		geminitest.Dialect(),
		ollamatest.Dialect(),
		chattest.OpenRouter(),
		chattest.Azure(),
		bedrocktest.Dialect(),
	}
}
