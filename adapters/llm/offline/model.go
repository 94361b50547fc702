// Package offline is the built-in model: no network, no weights, no key. It
// understands a small documented set of requests (docs/offline-model.md) and
// turns them into genuine tool calls, so that a newcomer sees sessions,
// permissions, diffs, cancel and load at work before owning a key. It says
// that it is not a language model.
//
// It keeps no state: what it says next follows from the conversation it is
// given, so it goes on after a load as if nothing had happened.
//
// Read next: requests.go (what it understands), then answer.go (how a message
// with several requests is carried out one reply at a time).
package offline

import (
	"context"
	"iter"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/berth-dev/berth/adapters/llm"
	"github.com/berth-dev/berth/core/domain"
	"github.com/berth-dev/berth/core/ports"
)

// Name is the model's name; its full reference is "offline/offline".
const Name = "offline"

// DefaultPace is the pause before each streamed word: long enough to be seen,
// short enough not to be waited for.
const DefaultPace = 6 * time.Millisecond

// Opener opens the model at its default pace.
func Opener() llm.Opener {
	return llm.Opener{
		Open: func(_ llm.Provider, info domain.ModelInfo) (ports.Model, error) {
			return New(complete(info), DefaultPace), nil
		},
		Models:   []string{Name},
		Complete: complete,
	}
}

// complete says what is known of the model whatever configuration says.
func complete(info domain.ModelInfo) domain.ModelInfo {
	info.Title, info.Tools, info.Offline = "Offline (not a language model)", true, true
	return info
}

type model struct {
	info    domain.ModelInfo
	pace    time.Duration
	grammar func() grammar // compiled when the model is first asked
}

var _ ports.Model = (*model)(nil)

// New returns the model. pace is the pause before each streamed word; 0 means
// none.
func New(info domain.ModelInfo, pace time.Duration) ports.Model {
	return &model{info: info, pace: pace, grammar: sync.OnceValue(newGrammar)}
}

// Info describes the model.
func (m *model) Info() domain.ModelInfo { return m.info }

// Stream answers the newest user message, one step at a time. A request that
// comes with instructions and without tools, such as one for a summary, needs a
// language model and is refused.
func (m *model) Stream(ctx context.Context, req domain.ModelRequest) iter.Seq2[domain.ModelEvent, error] {
	return func(yield func(domain.ModelEvent, error) bool) {
		if ctx.Err() != nil {
			yield(nil, ended(ctx))
			return
		}
		if req.System != "" && len(req.Tools) == 0 {
			yield(nil, domain.Errorf(domain.ProviderRejected, "The built-in model is not a language model and writes no summaries"))
			return
		}
		r := m.grammar().answer(req)
		for ev := range r.events() {
			_, isText := ev.(domain.TextDelta)
			_, isThought := ev.(domain.ThoughtDelta)
			if err := m.wait(ctx, isText || isThought); err != nil {
				yield(nil, err)
				return
			}
			if !yield(ev, nil) {
				return
			}
		}
	}
}

// wait pauses before a word, or returns because the context ended.
func (m *model) wait(ctx context.Context, word bool) error {
	if ctx.Err() != nil {
		return ended(ctx)
	}
	if m.pace <= 0 || !word {
		return nil
	}
	timer := time.NewTimer(m.pace)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ended(ctx)
	}
}

func ended(ctx context.Context) error {
	return domain.WrapError(domain.Cancelled, context.Cause(ctx), "the reply was cancelled")
}

// reply is what the model says and wants done in one step.
type reply struct {
	thought string
	text    string
	calls   []domain.ModelCall
}

// events are the events of a reply: thought and text word by word, then the
// calls, then the finish.
func (r reply) events() iter.Seq[domain.ModelEvent] {
	return func(yield func(domain.ModelEvent) bool) {
		for word := range words(r.thought) {
			if !yield(domain.ThoughtDelta{Text: word}) {
				return
			}
		}
		for word := range words(r.text) {
			if !yield(domain.TextDelta{Text: word}) {
				return
			}
		}
		finish := domain.Finish{Reason: domain.FinishStop}
		for _, call := range r.calls {
			finish.Reason = domain.FinishCalls
			if !yield(domain.CallRequested{Call: call}) {
				return
			}
		}
		yield(finish)
	}
}

// words cuts text into words, each with the white space before it.
func words(text string) iter.Seq[string] {
	return func(yield func(string) bool) {
		text = strings.ToValidUTF8(text, "\uFFFD")
		for text != "" {
			start := strings.IndexFunc(text, func(c rune) bool { return !unicode.IsSpace(c) })
			end := -1
			if start >= 0 {
				end = strings.IndexFunc(text[start:], unicode.IsSpace)
			}
			if end < 0 {
				yield(text)
				return
			}
			if !yield(text[:start+end]) {
				return
			}
			text = text[start+end:]
		}
	}
}

// shorten returns at most n characters of s, in one line.
func shorten(s string, n int) string {
	s = strings.Join(strings.Fields(s), " ")
	if utf8.RuneCountInString(s) <= n {
		return s
	}
	return strings.TrimSpace(string([]rune(s)[:n])) + "…"
}
