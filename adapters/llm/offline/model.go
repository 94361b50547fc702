// Package offline is the built-in model: no network, no weights, no key. It
// understands a small documented set of requests (docs/offline-model.md) and
// turns them into genuine tool calls, so that a newcomer sees sessions,
// permissions, diffs, cancel and load at work before owning a key. It says
// that it is not a language model.
//
// Read next: understand.go.
package offline

import (
	"context"
	"iter"
	"strings"
	"time"

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
	info domain.ModelInfo
	pace time.Duration
}

var _ ports.Model = (*model)(nil)

// New returns the model. pace is the pause before each streamed word; 0 means
// none.
func New(info domain.ModelInfo, pace time.Duration) ports.Model {
	return &model{info: info, pace: pace}
}

// Info describes the model.
func (m *model) Info() domain.ModelInfo { return m.info }

// Stream answers the newest user message, one step at a time.
func (m *model) Stream(ctx context.Context, req domain.ModelRequest) iter.Seq2[domain.ModelEvent, error] {
	return func(yield func(domain.ModelEvent, error) bool) {
		reply := answer(req)
		for chunk := range words(reply.text) {
			if err := m.wait(ctx); err != nil {
				yield(nil, err)
				return
			}
			if !yield(domain.TextDelta{Text: chunk}, nil) {
				return
			}
		}
		if ctx.Err() != nil {
			yield(nil, ended(ctx))
			return
		}
		finish := domain.FinishStop
		for _, call := range reply.calls {
			finish = domain.FinishCalls
			if !yield(domain.CallRequested{Call: call}, nil) {
				return
			}
		}
		yield(domain.Finish{Reason: finish}, nil)
	}
}

// wait pauses before a word, or returns because the context ended.
func (m *model) wait(ctx context.Context) error {
	if ctx.Err() != nil {
		return ended(ctx)
	}
	if m.pace <= 0 {
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

// words cuts text into words, each with the white space before it.
func words(text string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for text != "" {
			start := strings.IndexFunc(text, notSpace)
			if start < 0 {
				yield(text)
				return
			}
			end := strings.IndexFunc(text[start:], isSpace)
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

func isSpace(r rune) bool  { return r == ' ' || r == '\n' || r == '\t' }
func notSpace(r rune) bool { return !isSpace(r) }
