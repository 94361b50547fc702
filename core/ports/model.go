package ports

import (
	"context"
	"iter"

	"github.com/berth-dev/berth/core/domain"
)

// Model is one language model, ready to be asked.
type Model interface {
	// Info describes the model. What it can and how large its window is may
	// become known, or better known, by its first answer.
	Info() domain.ModelInfo
	// Stream asks the model. It yields events and ends with exactly one
	// Finish, or with one error and nothing after it. CallRequested events
	// come only directly before the Finish of a complete reply. Leaving the
	// loop or cancelling the context closes the exchange before Stream
	// returns. Errors are coded: AuthRequired, RateLimited, QuotaExhausted,
	// ContextTooLong, ProviderRejected, Unavailable (unreachable, timed out,
	// cut short). No key and no request body ever stands in an error.
	Stream(context.Context, domain.ModelRequest) iter.Seq2[domain.ModelEvent, error]
}

// Models opens models by reference.
type Models interface {
	// Open returns the model without asking it anything. InvalidArgument when
	// the provider is not configured, AuthRequired when its key is missing.
	Open(context.Context, domain.ModelRef) (Model, error)
	// Describe returns what is known of a model without opening it: no key is
	// needed and nothing is asked. Facts that nobody knows are zero, those of
	// a provider that is not configured all but the name.
	Describe(domain.ModelRef) domain.ModelInfo
	// Catalog lists what is known without a network call.
	Catalog(context.Context) ([]domain.ModelInfo, error)
}
