package llm

import "github.com/berth-dev/berth/core/domain"

// ErrLeft tells an attempt to return because the consumer has left; nobody
// sees it.
var ErrLeft error = domain.Errorf(domain.Cancelled, "the consumer has left")

// Close emits the end of a complete reply: its counts, if there are any, its
// calls, and the finish last. It returns ErrLeft or nil.
func (emit Emit) Close(counts domain.UsageReported, calls []domain.ModelCall, end domain.Finish) error {
	if counts.Usage != (domain.Usage{}) && !emit(counts) {
		return ErrLeft
	}
	for _, c := range calls {
		if !emit(domain.CallRequested{Call: c}) {
			return ErrLeft
		}
	}
	if !emit(end) {
		return ErrLeft
	}
	return nil
}

// Text passes a piece of text on, or of a thought. Nothing is passed on for "".
func (emit Emit) Text(s string, thought bool) error {
	if s == "" {
		return nil
	}
	var ev domain.ModelEvent = domain.TextDelta{Text: s}
	if thought {
		ev = domain.ThoughtDelta{Text: s}
	}
	if !emit(ev) {
		return ErrLeft
	}
	return nil
}

// NotWhole is what is wrong with a reply of which a call cannot be used.
const NotWhole = "it holds a tool call that is not whole: without a name, or whose arguments are no JSON object"

// Lasting reports whether a reason stays when another follows it: a reply that
// was said to be cut or refused, or to have ended in a way that nobody knows,
// does not become a good one. Known is false for such a way.
func Lasting(reason domain.FinishReason, known bool) bool {
	return !known || reason != domain.FinishStop && reason != domain.FinishCalls
}

// Ending decides how a reply ends whose provider gave it that reason: with
// calls when it holds some. Calls count only in a reply that is whole. Why is
// not "" when the reason and the calls contradict each other, or when whole is
// false because one of the calls cannot be used.
func Ending(reason domain.FinishReason, calls []domain.ModelCall, whole bool) (_ domain.FinishReason, _ []domain.ModelCall, why string) {
	switch {
	case reason != domain.FinishStop && reason != domain.FinishCalls:
		return reason, nil, ""
	case !whole:
		return "", nil, NotWhole
	case len(calls) > 0:
		return domain.FinishCalls, calls, ""
	case reason == domain.FinishCalls:
		return "", nil, "it says that it calls tools and calls none"
	}
	return reason, nil, ""
}
