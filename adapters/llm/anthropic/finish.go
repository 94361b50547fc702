package anthropic

import (
	"strings"

	"github.com/berth-dev/berth/adapters/llm"
	"github.com/berth-dev/berth/core/domain"
)

// costs passes the counts of a reply on that failed after some of it was
// shown: it was paid for all the same.
func (r *reply) costs() {
	if u := r.usage.domain(); r.shown && u != (domain.Usage{}) {
		r.emit(domain.UsageReported{Usage: u})
	}
}

// stopped notes the stop reason.
func (r *reply) stopped(reason string) {
	if r.stop != "" {
		if said, why := reasonOf(r.stop); llm.Lasting(said, why == "") {
			return
		}
	}
	r.stop = reason
}

// end closes a reply whose closing event has come.
func (r *reply) end() error {
	if err := r.turnTo(nil); err != nil {
		return err
	}
	if r.stop == "" {
		return r.x.Cut(nil)
	}
	reason, why := reasonOf(r.stop)
	if why != "" {
		f := r.x.Broken(why)
		f.Retry = r.stop != pause // it would pause again
		return f
	}
	calls, whole := r.parts.calls()
	reason, calls, why = llm.Ending(reason, calls, whole)
	if why != "" {
		return r.x.Broken(why)
	}
	l := r.parts.layout(len(calls), reason == domain.FinishLength)
	return r.emit.Close(domain.UsageReported{Usage: r.usage.domain()}, calls, domain.Finish{
		Reason: reason, Opaque: l.opaque(r.model.info.Ref, r.sent.prefix),
	})
}

// pause is the stop reason of a reply that waits for a tool of the provider's
// own. None was asked for, and the reply is not at its end: what is there is
// shown, but it is no complete reply.
const pause = "pause_turn"

// reasonOf maps a stop reason. Why says what is wrong with one that is no good
// end. A reply that filled the window is one that was cut, like one at the
// limit of tokens: what it says is right as far as it goes.
func reasonOf(s string) (reason domain.FinishReason, why string) {
	switch strings.ToLower(s) {
	case "end_turn", "stop_sequence", "stop":
		return domain.FinishStop, ""
	case "tool_use":
		return domain.FinishCalls, ""
	case "max_tokens", "model_context_window_exceeded", "length":
		return domain.FinishLength, ""
	case "refusal", "content_filter", "sensitive":
		return domain.FinishRefusal, ""
	case pause:
		return "", "it paused for a tool of the provider's own, which nobody asked for"
	}
	return "", "it ended with the stop reason \"" + llm.PlainWord(s) + "\""
}
