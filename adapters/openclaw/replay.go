package openclaw

import (
	"context"
	"encoding/base64"
	"strconv"
	"strings"

	"github.com/berth-dev/berth/adapters/jsonrpc"
	"github.com/berth-dev/berth/core/domain"
)

// replay tells the editor what has happened in a session, from the Gateway's
// transcript: prompts as they were sent, answers, thoughts, tool calls with
// their results, and the Gateway's own notices. A run that goes on is told as
// far as it is written, and followed from there.
func (b *Bridge) replay(ctx context.Context, what string, s *session) error {
	s.setTelling(1)
	defer s.setTelling(-1)
	b.watch(ctx, s)
	h, err := b.read(ctx, s.key, func([]entry) bool { return false })
	if err != nil {
		return b.worded(ctx, what, err)
	}
	runs := map[string]*turn{}
	seen := map[string]*makingUp{}
	callers := map[string]string{} // the runs of tool calls
	past := 0                      // prompts so far: what has no run belongs to one of them
	for _, e := range h.entries {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if e.role == "user" {
			past++
			b.replayPrompt(ctx, s, e)
			continue
		}
		run := e.run
		if e.role == "toolResult" {
			run = or(run, callers[e.call])
		}
		run = or(run, "past-"+strconv.Itoa(past))
		for _, id := range e.calls() {
			callers[id] = run
		}
		t := runs[run]
		if t == nil {
			t = newTurn(b, s, run)
			t.own, t.accepted = false, true
			t.said.fromAgent = true
			runs[run], seen[run] = t, &makingUp{seen: map[*utterance]bool{}}
		}
		t.mu.Lock()
		switch e.role {
		case "assistant":
			t.makeUpMessage(e, seen[run])
		case "toolResult":
			t.makeUpResult(e)
		case "custom":
			if words := messageText(rawOf(e.raw)); e.show && strings.TrimSpace(words) != "" {
				t.speak(t.said.notice(words))
			}
		}
		t.mu.Unlock()
	}
	for run, t := range runs {
		if b.follows(run) {
			continue // it goes on, and is told of as it does
		}
		if h.runs(run) {
			b.takeUp(t)
			continue
		}
		t.mu.Lock()
		if t.out == nil {
			t.endTools(outcome{stop: stopCancelled})
		}
		t.mu.Unlock()
		s.noteDone(run)
	}
	if h.running != "" && runs[h.running] == nil && !b.follows(h.running) {
		t := newTurn(b, s, h.running)
		b.takeUp(t)
	}
	return nil
}

// takeUp follows a run that the history has shown the beginning of.
func (b *Bridge) takeUp(t *turn) {
	t.own, t.accepted = false, true
	t.ctx, t.cancel = context.WithCancelCause(b.life)
	t.mu.Lock()
	t.said.doubt()
	t.mu.Unlock()
	b.follow(t)
	b.bound(t)
}

func (b *Bridge) follows(run string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.runs[run] != nil
}

func (s *session) setTelling(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.telling += n
}

// replayPrompt tells what the user sent, without what the bridge put in front.
func (b *Bridge) replayPrompt(ctx context.Context, s *session, e entry) {
	id := domain.MessageID(e.prompt)
	show := func(block domain.Block) {
		b.tell(ctx, s.id, domain.UserMessage{ID: id, Block: block})
	}
	if len(e.content) > 0 && e.content[0] == '"' {
		if words := withoutPrefix(text(e.content)); words != "" {
			show(domain.Text{Text: words})
		}
		return
	}
	first := true
	for c := range jsonrpc.Elements(e.content) {
		f := fieldsOf(c)
		switch f.text("type") {
		case "text":
			words := f.text("text")
			if first {
				words, first = withoutPrefix(words), false
			}
			if words != "" {
				show(domain.Text{Text: words})
			}
		case "image":
			data, err := base64.StdEncoding.DecodeString(or(f.text("data"), f.text("content")))
			if err == nil && len(data) > 0 {
				show(domain.Image{MIME: or(f.text("mimeType"), "image/png"), Data: data})
			} else {
				show(domain.Text{Text: "[image]"})
			}
		}
	}
}
