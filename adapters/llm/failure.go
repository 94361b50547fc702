package llm

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/berth-dev/berth/core/domain"
)

// refuse makes the failure of a refusal: coded, in the provider's own words
// as far as they may be shown, with what to do.
func (x *Exchange) refuse(r Refusal) *Failure {
	code, retry := r.classify()
	words := x.redact.clean(r.Message)
	who := "provider \"" + x.provider.Name + "\""
	said := who + " answered"
	if r.Status != 0 {
		said = fmt.Sprintf("%s %d", said, r.Status)
	}
	if words != "" {
		said += ": " + words
	}
	var msg string
	switch code {
	case domain.AuthRequired:
		if x.keyless {
			msg = who + " wants an API key (" + after(said, who+" ") + "); " + x.provider.keyHint()
		} else {
			msg = who + " refused its API key (" + after(said, who+" ") + "); check the key: " + x.provider.keyHint()
		}
	case domain.RateLimited:
		msg = said + " (rate limit)"
		if d, ok := saidWait(r.Message); ok && r.After < 0 {
			r.After = d
		}
		if r.After > 0 {
			msg += "; it asks to wait " + span(r.After)
		}
	case domain.QuotaExhausted:
		msg = said + " (the account is spent; waiting does not help)"
	case domain.ContextTooLong:
		msg = said + " (the conversation is longer than the model takes)"
	case domain.ProviderRejected:
		msg = said
		switch {
		case r.Status >= 300 && r.Status < 400:
			msg += "; set providers." + x.provider.Name + ".base_url to the address itself"
		case r.isFilter():
			msg = said + " (a content filter refused the request" + because(r.Filters) + ")"
		case r.Status == http.StatusNotFound:
			msg = strings.TrimSuffix(msg, ".") + "; check the model's name and providers." + x.provider.Name + ".base_url"
			if x.provider.lacksVersion() {
				msg += ", which most servers of this type want with /v1 at its end"
			}
		}
	default:
		msg = said
		if r.Status == http.StatusProxyAuthRequired {
			msg = who + " cannot be reached: " + proxyWantsAuth + "; " + proxyAuthMend
		}
	}
	err := domain.Errorf(code, "%s", msg).With("provider", x.provider.Name)
	if code == domain.AuthRequired {
		err = err.With("key", map[bool]string{true: "missing", false: "refused"}[x.keyless])
	}
	if r.After > 0 {
		err.RetryAfter = r.After
	}
	return &Failure{Err: err, Retry: retry, AtOnce: r.After == 0, Status: r.Status, Param: r.Param, Words: r.Message}
}

// span is a time in words, without the units that are zero at its end.
func span(d time.Duration) string {
	s := d.Round(time.Second).String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// because lists what a filter found.
func because(kinds []string) string {
	if len(kinds) == 0 {
		return ""
	}
	return ": " + oneLine(strings.Join(kinds, ", "), maxWords)
}

func after(s, prefix string) string { return strings.TrimPrefix(s, prefix) }

// Refused is the failure of an error object that came inside an answer that
// had begun as a success.
func (x *Exchange) Refused(r Refusal) *Failure { return x.refuse(r) }

// Broken is the failure of an answer that is not what the provider's wire
// format allows. Why completes the sentence "the provider's answer cannot be
// used: …" and holds nothing the provider sent but a word, such as an unknown
// reason.
func (x *Exchange) Broken(why string) *Failure { return x.broken(why) }

func (x *Exchange) broken(why string) *Failure {
	return &Failure{
		Err: domain.Errorf(domain.Unavailable, "the answer of provider %q cannot be used: %s", x.provider.Name, x.redact.mask(why)).
			With("provider", x.provider.Name),
		Retry: true,
	}
}

// NotAnAPI is the failure of an answer that comes from something else than a
// model's API, such as the sign-in page of a network.
func (x *Exchange) NotAnAPI(what string) *Failure {
	f := x.broken("it is " + what + "; check providers." + x.provider.Name + ".base_url and the network")
	f.Retry = false
	return f
}

// Cut is the failure of an answer that ended or broke off before it was
// complete. A nil error or io.EOF is an end without a closing event.
func (x *Exchange) Cut(err error) *Failure {
	if cause := context.Cause(x.ctx); cause != nil && !errors.Is(cause, errSilent) {
		return cancelled(cause)
	}
	who := fmt.Sprintf("provider %q", x.provider.Name)
	detail := func(e *domain.Error) *domain.Error { return e.With("provider", x.provider.Name) }
	switch {
	case errors.Is(context.Cause(x.ctx), errSilent):
		return x.silent()
	case errors.Is(err, ErrTooLong):
		return &Failure{Err: detail(domain.Errorf(domain.Unavailable,
			"%s sent an event longer than %d MiB", who, MaxEvent>>20)), Retry: false}
	case err == nil || errors.Is(err, io.EOF):
		return &Failure{Err: detail(domain.Errorf(domain.Unavailable,
			"%s ended its reply before it was complete", who)), Retry: true}
	}
	return &Failure{Err: detail(x.wrap(err, who+" broke off in the middle of its reply")), Retry: true}
}

// silent is the failure of a provider that says nothing. It is not repeated:
// waiting the same time again is not what anybody wants.
func (x *Exchange) silent() *Failure {
	name := x.provider.Name
	msg := fmt.Sprintf("provider %q gave no answer within %s; if the model needs longer, raise providers.%s.timeout_secs",
		name, x.provider.FirstByte(), name)
	if x.begun {
		msg = fmt.Sprintf("provider %q stopped sending in the middle of its reply: nothing came for %s", name, x.idle)
		if x.idle > x.provider.Client.cfg.Idle {
			msg += "; if the model needs longer, raise providers." + name + ".timeout_secs"
		}
	}
	return &Failure{Err: domain.Errorf(domain.Unavailable, "%s", msg).With("provider", name)}
}

// wrap keeps the cause, unless its text holds what may not be shown.
func (x *Exchange) wrap(err error, msg string) *domain.Error {
	if text := err.Error(); x.redact.clean(text) != text {
		err = errors.New(x.redact.clean(text))
	}
	return domain.WrapError(domain.Unavailable, err, msg)
}

// cancelled is the failure of an exchange that our side ended.
func cancelled(cause error) *Failure {
	return &Failure{Err: domain.WrapError(domain.Cancelled, cause, "the request to the model was cancelled")}
}
