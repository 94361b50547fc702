package people

import (
	"context"
	"time"

	"github.com/berth-dev/berth/core/domain"
	"github.com/berth-dev/berth/core/ports"
)

// Config is what the tools need besides the session's client.
type Config struct {
	// Observer is told of every escalation.
	Observer ports.Observer
	// Wait bounds the wait for an answer.
	Wait time.Duration
}

// Source opens ask_user and escalate_to_human for sessions. It is safe for
// concurrent use.
type Source struct {
	cfg           Config
	ask, escalate domain.ToolSpec
}

var _ ports.ToolSource = (*Source)(nil)

// NewSource makes the source.
func NewSource(cfg Config) *Source {
	return &Source{cfg: cfg, ask: askSpec(), escalate: escalateSpec()}
}

// Open returns the tools of a session, which ask its client as of each call.
func (s *Source) Open(_ context.Context, _ domain.Session, client ports.Client) (ports.Toolset, error) {
	return &desk{source: s, client: client}, nil
}

// desk is the tools of one session.
type desk struct {
	source *Source
	client ports.Client
}

// Tools returns ask_user and escalate_to_human.
func (d *desk) Tools() []ports.Tool { return []ports.Tool{askTool{d}, escalateTool{d}} }

// Close has nothing to release.
func (*desk) Close() error { return nil }

func askSpec() domain.ToolSpec {
	return domain.ToolSpec{
		Name: "ask_user", Kind: domain.KindOther,
		Description: "Asks the user one question with 2 to 8 choices, waits, and returns the choice, word for word. " +
			"Use it when the work cannot go on without a decision that is the user's. " +
			"For an open question do not use it: ask in your answer and end your turn.",
		Schema: []byte(`{"type":"object","properties":{` +
			`"question":{"type":"string","description":"The question, complete in itself"},` +
			`"options":{"type":"array","minItems":2,"maxItems":8,"items":{"type":"string"},"description":"The choices, each short and different"},` +
			`"allow_other":{"type":"boolean","description":"Also let the user say that none of the choices fits and that they want to write. Default false"}},` +
			`"required":["question"],"additionalProperties":false}`),
	}
}

func escalateSpec() domain.ToolSpec {
	return domain.ToolSpec{
		Name: "escalate_to_human", Kind: domain.KindOther,
		Description: "Calls for a person: something is wrong that you cannot or must not decide or mend. " +
			"The user and whoever runs this host see the summary. With wait the work stops until the user has chosen how to go on.",
		Schema: []byte(`{"type":"object","properties":{` +
			`"summary":{"type":"string","description":"What is wrong and what is needed, complete in itself"},` +
			`"urgency":{"type":"string","enum":["low","normal","high"],"description":"Default normal"},` +
			`"wait":{"type":"boolean","description":"Wait for the user. Default false"},` +
			`"options":{"type":"array","minItems":2,"maxItems":8,"items":{"type":"string"},"description":"With wait: how to go on. Default: to continue or to stop"}},` +
			`"required":["summary"],"additionalProperties":false}`),
	}
}
