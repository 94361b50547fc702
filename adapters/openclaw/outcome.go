package openclaw

import (
	"context"
	"errors"

	"github.com/berth-dev/berth/core/domain"
)

// outcome is how a run ended: a stop reason, or an error.
type outcome struct {
	stop string
	err  error
	more bool // the state of the session is still to be told
	// loose says that the Gateway may go on with the run all the same.
	loose bool
}

// The stop reasons.
const (
	stopEnd       = "end_turn"
	stopCancelled = "cancelled"
	stopTokens    = "max_tokens"
	stopRefusal   = "refusal"
)

// ended is the outcome of a prompt that was cancelled here.
func ended(ctx context.Context) outcome {
	cause := context.Cause(ctx)
	if errors.Is(cause, domain.RequestCancelled) {
		return outcome{err: domain.Errorf(domain.Cancelled, "the request was cancelled")}
	}
	var gone *domain.Error
	if errors.As(cause, &gone) {
		return outcome{err: gone}
	}
	return outcome{stop: stopCancelled}
}

// stopOf is the stop reason of a run that ended in an orderly way.
func stopOf(said string) string {
	switch said {
	case "length", "max_tokens", "maxTokens":
		return stopTokens
	case "refusal", "content_filter", "sensitive":
		return stopRefusal
	case "aborted", "cancelled", "rpc":
		return stopCancelled
	}
	return stopEnd
}

// failed is the outcome of a run that ended in an error.
func failed(p fields) outcome {
	detail := p.in("errorDetail")
	return failure(p.text("errorKind"), detail.text("failoverReason"), detail.number("httpStatus"), p.text("errorMessage"))
}

// failure words it. The Gateway's own words say more than ours.
func failure(kind, reason string, status int64, said string) outcome {
	said = or(brief(said), "the gateway gave no reason")
	code := domain.Unavailable
	switch {
	case kind == "refusal":
		return outcome{stop: stopRefusal}
	case kind == "context_length" || reason == "context_overflow":
		code = domain.ContextTooLong
	case kind == "rate_limit" || reason == "rate_limit" || status == 429:
		code = domain.RateLimited
	case reason == "billing" || status == 402:
		code = domain.QuotaExhausted
	case reason == "format" || reason == "model_not_found" || status == 400:
		code = domain.ProviderRejected
	}
	return outcome{err: domain.Errorf(code, "the turn failed: %s", said)}
}
