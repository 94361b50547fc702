package bedrock

import (
	"errors"

	"github.com/berth-dev/berth/adapters/llm"
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
		return r.x.Broken("it ended with the reason \"" + llm.PlainWord(r.stop) + "\"")
	}
	calls, whole := r.blocks.calls()
	reason, calls, why := llm.Ending(reason, calls, whole)
	if why != "" {
		return r.x.Broken(why)
	}
	return r.finish(reason, calls)
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

func (r *reply) finish(reason domain.FinishReason, calls []domain.ModelCall) error {
	for _, b := range r.blocks.list {
		if err := r.pass(b, b.join.End()); err != nil {
			return err
		}
	}
	var counts domain.UsageReported
	if r.usage != nil {
		counts.Usage = r.usage.domain()
	}
	return r.emit.Close(counts, calls, domain.Finish{Reason: reason, Opaque: r.model.keep(&r.blocks, len(calls))})
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
