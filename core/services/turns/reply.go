package turns

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/berth-dev/berth/core/domain"
)

// reply collects one model reply while it streams. The turn's mutex guards
// said and the growing part, because the reply is looked at when the work is
// given up.
type reply struct {
	t       *turn
	info    domain.ModelInfo // of the model that answers
	said    domain.AssistantSaid
	text    domain.Words // of the part that is growing
	part    domain.MessagePart
	growing bool
	bytes   int // how long the reply is
	ended   bool
	retries int
	first   time.Time // when the first text came
	keeper  keeper
}

// maxReply is how long one reply may be, in bytes of text, thought and the
// arguments of calls: many times what any model writes at once, and little
// enough for a reply that never ends to be no harm.
const maxReply = 16 << 20

// bound ends a reply that is about to become longer than maxReply.
func (r *reply) bound(ev domain.ModelEvent) error {
	switch ev := ev.(type) {
	case domain.TextDelta:
		r.bytes += len(ev.Text)
	case domain.ThoughtDelta:
		r.bytes += len(ev.Text)
	case domain.CallRequested:
		r.bytes += len(ev.Call.Name) + len(ev.Call.Args)
	case domain.UsageReported, domain.Retrying, domain.FellBack, domain.Finish:
	}
	if r.bytes > maxReply {
		return domain.Errorf(domain.TooLarge,
			"The model's reply broke off: it was longer than %d MiB and is not followed further; ask for less at once or choose another model", maxReply>>20).
			With("limit", maxReply)
	}
	return nil
}

// message returns the id of the message that a delta belongs to. A change
// between text and thought begins a new one.
func (r *reply) message(thought bool) domain.MessageID {
	t := r.t
	t.mu.Lock()
	defer t.mu.Unlock()
	if r.growing && r.part.Thought != thought {
		r.closePart()
	}
	if !r.growing {
		t.messages++
		r.part = domain.MessagePart{ID: domain.MessageID(fmt.Sprintf("%s-m%d", t.id, t.messages)), Thought: thought}
		r.growing = true
	}
	return r.part.ID
}

// grow adds what the client was told to the message.
func (r *reply) grow(text string) {
	t := r.t
	t.mu.Lock()
	defer t.mu.Unlock()
	r.text.Add(text)
	r.keeper.due(r)
	if r.part.Thought {
		return
	}
	if r.first.IsZero() {
		r.first = t.e.p.Clock()
	}
	if t.spokeAt.IsZero() {
		t.spokeAt = r.first
	}
}

// closePart ends the part that grows, with the turn's mutex held.
func (r *reply) closePart() {
	if !r.growing {
		return
	}
	if r.text.Len() > 0 {
		r.part.Text = r.text.After(0)
		r.said.Parts = append(r.said.Parts, r.part)
		if !r.part.Thought {
			r.t.all = append(r.t.all, r.part.Text)
		}
	}
	r.text = domain.Words{}
	r.growing = false
}

// said is what the turn said, with its mutex held.
func (t *turn) said() string {
	text := strings.Join(t.all, "")
	if r := t.partial; r != nil && r.growing && !r.part.Thought {
		text += r.text.After(0)
	}
	return text
}

// seen returns what was shown of a reply, and what it used, as a record of its
// own, with the turn's mutex held; false when there is no reply or nothing of
// it.
func (r *reply) seen() (domain.AssistantSaid, bool) {
	if r == nil {
		return domain.AssistantSaid{}, false
	}
	said := r.said
	said.Parts = slices.Clone(said.Parts)
	if r.growing && r.text.Len() > 0 {
		part := r.part
		part.Text = r.text.After(0)
		said.Parts = append(said.Parts, part)
	}
	said.Truncated, said.Calls, said.Opaque, said.Finish = true, nil, nil, ""
	return said, len(said.Parts) > 0 || said.Usage != (domain.Usage{})
}
