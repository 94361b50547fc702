package bedrock

import (
	"errors"
	"strings"

	"github.com/berth-dev/berth/core/domain"
)

// costs passes the counts of a reply on that failed after some of it was
// shown: it was paid for all the same.
func (r *reply) costs() {
	if r.shown && r.usage != nil {
		r.emit(domain.UsageReported{Usage: r.usage.domain()})
	}
}

// end closes the reply when the answer has ended, with why it did if nothing
// could follow. A reply whose end was told is complete whatever came after.
func (r *reply) end(err error) error {
	if r.stop == "" {
		return r.unfinished(err)
	}
	reason, known := reasonOf(r.stop)
	if !known {
		return r.x.Broken("it ended with the reason \"" + plainReason(r.stop) + "\"")
	}
	var requested []domain.ModelCall
	if reason == domain.FinishStop || reason == domain.FinishCalls {
		var ok bool
		if requested, ok = r.blocks.calls(r.names); !ok {
			return r.broken("a tool call that is not whole, or whose arguments are no JSON object")
		}
		switch {
		case len(requested) > 0:
			reason = domain.FinishCalls
		case reason == domain.FinishCalls:
			return r.x.Broken("it says that it calls tools and calls none")
		}
	}
	return r.finish(reason, requested)
}

// unfinished is the failure of a stream that ended before its reply did.
func (r *reply) unfinished(err error) error {
	for _, wrong := range []error{errPrelude, errLengths, errChecks, errHeaders} {
		if errors.Is(err, wrong) {
			return r.broken(wrong.Error())
		}
	}
	return r.x.Cut(err)
}

func (r *reply) finish(reason domain.FinishReason, requested []domain.ModelCall) error {
	for _, b := range r.blocks.list {
		if err := r.pass(b, b.join.End()); err != nil {
			return err
		}
	}
	if r.usage != nil {
		if u := r.usage.domain(); u != (domain.Usage{}) && !r.emit(domain.UsageReported{Usage: u}) {
			return errLeft
		}
	}
	for _, c := range requested {
		if !r.emit(domain.CallRequested{Call: c}) {
			return errLeft
		}
	}
	if !r.emit(domain.Finish{Reason: reason, Opaque: r.model.keep(&r.blocks, len(requested))}) {
		return errLeft
	}
	return nil
}

// reasonOf maps why a reply ended. The second result is false for what is no
// good end: output that Bedrock could not make sense of, or a reason nobody
// knows.
func reasonOf(s string) (domain.FinishReason, bool) {
	switch s {
	case "end_turn", "stop_sequence":
		return domain.FinishStop, true
	case "tool_use":
		return domain.FinishCalls, true
	case "max_tokens", "model_context_window_exceeded":
		return domain.FinishLength, true
	case "guardrail_intervened", "content_filtered", "refusal":
		return domain.FinishRefusal, true
	}
	return "", false
}

// plainReason is an unknown reason fit to show.
func plainReason(s string) string {
	clean := strings.Map(func(c rune) rune {
		if c == '_' || c == '-' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') {
			return c
		}
		return -1
	}, s)
	return clean[:min(len(clean), 40)]
}
