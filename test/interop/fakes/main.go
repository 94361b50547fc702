// Command fakes puts the fake providers of the tests on the network, and the
// requests of the adapters on paper, so that the providers' own clients can be
// held against both.
//
//	fakes serve      starts a fake on loopback for every line it reads, such as
//	                 {"dialect":"chat","scene":"turn"}, and prints its address
//	fakes requests   prints what the adapters send, a line of JSON each
package main

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/berth-dev/berth/adapters/llm/llmtest"
	"github.com/berth-dev/berth/adapters/llm/llmtest/anthropictest"
	"github.com/berth-dev/berth/adapters/llm/llmtest/bedrocktest"
	"github.com/berth-dev/berth/adapters/llm/llmtest/chattest"
	"github.com/berth-dev/berth/adapters/llm/llmtest/geminitest"
	"github.com/berth-dev/berth/adapters/llm/llmtest/ollamatest"
	"github.com/berth-dev/berth/adapters/llm/llmtest/responsestest"
)

// fake is a dialect under the name that the clients ask for.
type fake struct {
	name string
	llmtest.Dialect
	key string // "" is llmtest.Canary
	// host is what the adapter takes the fake's address for, where it asks its
	// provider otherwise than others that speak the wire; "" for none.
	host string
}

// fakes are all dialects, and models within one that are asked differently.
func fakes() []fake {
	signed := bedrocktest.Form{Signed: true}
	return []fake{
		{name: "anthropic", Dialect: anthropictest.Dialect()},
		{name: "anthropic-itself", Dialect: anthropictest.Dialect(), host: "api.anthropic.com"},
		{name: "anthropic-itself-budget", Dialect: anthropictest.Style{Name: "claude-sonnet-4-5"}.Dialect(), host: "api.anthropic.com"},
		{name: "anthropic-budget", Dialect: anthropictest.Style{Name: "claude-sonnet-4-5", Redacted: true, Pings: true}.Dialect()},
		{name: "chat", Dialect: chattest.Dialect()},
		{name: "chat-itself", Dialect: chattest.Dialect(), host: "api.openai.com"},
		{name: "responses", Dialect: responsestest.Dialect()},
		{name: "gemini", Dialect: geminitest.Dialect()},
		{name: "gemini-budget", Dialect: geminitest.Shape{Model: "gemini-2.5-flash", Counting: true}.Dialect()},
		{name: "ollama", Dialect: ollamatest.Dialect()},
		{name: "openrouter", Dialect: chattest.OpenRouter()},
		{name: "azure", Dialect: chattest.Azure()},
		{name: "azure-dated", Dialect: chattest.AzureClassic()},
		{name: "bedrock", Dialect: bedrocktest.Dialect()},
		{name: "bedrock-signed", Dialect: signed.Dialect(), key: signed.Key()},
		{name: "bedrock-nova", Dialect: bedrocktest.Form{Model: bedrocktest.Nova}.Dialect()},
		{name: "bedrock-llama", Dialect: bedrocktest.Form{Model: bedrocktest.Llama}.Dialect()},
	}
}

func (f fake) secret() string {
	if f.key != "" {
		return f.key
	}
	return llmtest.Canary
}

func main() {
	if err := run(context.Background(), os.Args[1:], os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "fakes:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, in io.Reader, out io.Writer) error {
	if len(args) == 1 {
		switch args[0] {
		case "serve":
			return serve(in, out)
		case "requests":
			return requests(ctx, out)
		}
	}
	return fmt.Errorf("%q is no command; use serve or requests", args)
}
