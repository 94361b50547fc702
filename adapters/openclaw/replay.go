package openclaw

import (
	"context"
	"encoding/base64"
	"strings"

	"github.com/berth-dev/berth/adapters/jsonrpc"
	"github.com/berth-dev/berth/core/domain"
)

// replay tells the editor what has happened in a session, from the Gateway's
// transcript: prompts as they were sent, answers, thoughts, tool calls with
// their results, and the Gateway's own notices. A run that goes on is told as
// far as it is written, and followed from there.
func (b *Bridge) replay(ctx context.Context, what string, s *session) error {
	s.setTelling(true)
	defer s.setTelling(false)
	b.watch(ctx, s)
	h, err := b.read(ctx, s.key, func([]entry) bool { return false })
	if err != nil {
		return b.worded(ctx, what, err)
	}
	runs := map[string]*turn{}
	seen := map[string]*makingUp{}
	for i, e := range h.entries {
		if e.role == "user" {
			b.replayPrompt(ctx, s, e)
			continue
		}
		run := or(e.run, "past")
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
			c := t.call(e.call)
			t.open(c, e.tool, nil)
			t.conclude(c, rawOf(e.raw), e.failed)
		case "custom":
			if words := messageText(rawOf(e.raw)); e.show && strings.TrimSpace(words) != "" {
				t.speak(t.said.notice(words))
			}
		}
		t.mu.Unlock()
		if run == "past" && i+1 < len(h.entries) && h.entries[i+1].role == "user" {
			delete(runs, run) // what another prompt brings is another's
		}
	}
	for run, t := range runs {
		if h.runs(run) && !b.follows(run) {
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
}

func (b *Bridge) follows(run string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.runs[run] != nil
}

func (s *session) setTelling(on bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.telling = on
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
