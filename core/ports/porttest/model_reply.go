package porttest

import (
	"time"

	"github.com/berth-dev/berth/core/domain"
)

// Reply is what a provider is told to answer one request with, in no
// provider's dialect. A provider's test renders it: a fake server, or a
// script. The zero value is a complete reply without any content.
type Reply struct {
	// Refusal, when not nil, is answered in place of everything else.
	Refusal *Refusal
	Parts   []ReplyPart
	Usage   domain.Usage // zero: the provider reports none
	End     ReplyEnd
	// Fault is the error object of EndError.
	Fault Refusal
	// Grain is how many bytes the provider sends at once; 0 sends whole events.
	Grain int
	// Signed sends what the provider wants back with this reply: signatures of
	// thoughts and calls, encrypted reasoning. The provider then looks for them
	// in every later request that holds the reply, and tells of one that
	// lacks or changed them by Served.Problems.
	Signed bool
}

// ReplyPart is one thing a provider sends. Members: SendText, SendThought,
// SendCall, Wait.
type ReplyPart interface{ isReplyPart() }

// SendText is a piece of the answer, in one event.
type SendText string

// SendThought is a piece of reasoning, in one event.
type SendThought string

// SendCall is one tool call. Args are sent as they stand, in Pieces events
// (at least one) of about the same length.
type SendCall struct {
	ID     string // the provider's; "" when it gives none
	Name   string
	Args   string
	Pieces int
}

// Wait is a silence of the provider. It counts as none when the provider
// would send keep-alives; a renderer sends nothing.
type Wait time.Duration

func (SendText) isReplyPart()    {}
func (SendThought) isReplyPart() {}
func (SendCall) isReplyPart()    {}
func (Wait) isReplyPart()        {}

// ReplyEnd is how a provider ends an answer.
type ReplyEnd int

// The ends.
const (
	EndComplete  ReplyEnd = iota // the closing event of a complete reply: calls if there were any, else stop
	EndLength                    // the closing event, at the token limit
	EndRefusal                   // the closing event, refused by the model or a filter
	EndCut                       // an orderly end of the body without a closing event
	EndBroken                    // the connection breaks
	EndSilent                    // nothing more until the client goes away
	EndMalformed                 // an event that is no event of the format, then an orderly end
	EndError                     // an error object inside the answer (Fault), then an orderly end
)

// Refusal is an error of the provider: a status with a body, or an error
// object inside an answer.
type Refusal struct {
	Kind       RefusalKind
	Words      string // the provider's own words; shown to a person
	RetryAfter string // as sent in the header; "" when not sent
	// Stall sends the head of the refusal and then nothing until the client
	// goes away.
	Stall bool
}

// RefusalKind is what a refusal is about.
type RefusalKind int

// The kinds of refusal, with the HTTP status of providers that speak HTTP.
const (
	KeyRefused     RefusalKind = iota + 1 // 401
	Forbidden                             // 403
	BadRequest                            // 400
	NoSuchModel                           // 404
	TooLong                               // 400, said to be longer than the window
	TooManyTokens                         // 413
	LimitedRate                           // 429
	SpentQuota                            // 429, said to be spent
	ServerError                           // 500
	BadGateway                            // 502
	NotAvailable                          // 503
	GatewayTimeout                        // 504
	Overloaded                            // 529
)

// Status returns the HTTP status of a kind.
func (k RefusalKind) Status() int {
	return [...]int{0, 401, 403, 400, 404, 400, 413, 429, 429, 500, 502, 503, 504, 529}[k]
}

// Code returns the code a model must give a kind.
func (k RefusalKind) Code() domain.Code {
	return [...]domain.Code{
		0, domain.AuthRequired, domain.AuthRequired, domain.ProviderRejected, domain.ProviderRejected,
		domain.ContextTooLong, domain.ContextTooLong, domain.RateLimited, domain.QuotaExhausted,
		domain.Unavailable, domain.Unavailable, domain.Unavailable, domain.Unavailable, domain.Unavailable,
	}[k]
}

// Passing reports whether the same request may succeed a little later.
func (k RefusalKind) Passing() bool { return k == LimitedRate || k >= ServerError }

// refusalKinds are all kinds with a name for cases.
func refusalKinds() map[string]RefusalKind {
	return map[string]RefusalKind{
		"401": KeyRefused, "403": Forbidden, "400": BadRequest, "404": NoSuchModel, "too-long": TooLong, "413": TooManyTokens,
		"429": LimitedRate, "quota": SpentQuota, "500": ServerError, "502": BadGateway, "503": NotAvailable,
		"504": GatewayTimeout, "529": Overloaded,
	}
}
