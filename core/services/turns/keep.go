package turns

import (
	"errors"
	"sync"
	"time"

	"github.com/berth-dev/berth/core/domain"
)

// keepEvery is how much of what its user has read a process may lose that dies
// in the middle of a reply.
const keepEvery = time.Second

// errKept is why a part of a reply need not be kept: the reply itself is.
var errKept = errors.New("the reply is on its way to the journal")

// keeper journals what was streamed of a reply, now and then, while it comes
// in. It never holds the stream up. After a store that failed it lets it be:
// the reply itself is journalled when it is complete. The turn's mutex guards
// all but running.
type keeper struct {
	timer   *time.Timer // nil until there is something to keep
	armed   bool        // keep will be called, or is under way
	over    bool        // nothing is kept any more
	running sync.WaitGroup
	part    int // the first part that is not kept to its end
	bytes   int // how much of that is
}

// due sees to it that what the client was just told is kept soon. The caller
// holds the turn's mutex.
func (k *keeper) due(r *reply) {
	if k.armed || k.over {
		return
	}
	k.armed = true
	k.running.Add(1)
	if k.timer != nil {
		k.timer.Reset(keepEvery)
		return
	}
	k.timer = time.AfterFunc(keepEvery, func() { // stop ends and joins it
		defer k.running.Done()
		r.keep()
	})
}

// stop returns when nothing is being kept and nothing will be.
func (k *keeper) stop(mu sync.Locker) {
	mu.Lock()
	k.over = true
	if k.timer != nil && k.timer.Stop() {
		k.running.Done()
	}
	mu.Unlock()
	k.running.Wait()
}

// keep journals what was streamed since it did so last.
func (r *reply) keep() {
	t := r.t
	t.mu.Lock()
	parts := r.unkept()
	rec := domain.Streamed{Turn: t.id, Agent: r.said.Agent, Model: r.said.Model, Parts: parts}
	t.mu.Unlock()
	err := t.isolate("keep a part of a reply", func() error {
		return t.live.Keep(t.writing, r.unfinished, rec)
	})
	t.mu.Lock()
	defer t.mu.Unlock()
	k := &r.keeper
	if err != nil {
		k.over = true // whether it is kept is not known, and it must not be kept twice
		if !errors.Is(err, errKept) && !errors.Is(err, errSealed) {
			t.e.trouble(t.writing, t.sid, "turns: keep a part of a reply", err)
		}
		return
	}
	for _, p := range parts {
		k.bytes += len(p.Text)
		r.passKept()
	}
	k.armed = false
	if len(r.unkept()) > 0 {
		k.due(r)
	}
}

// unfinished says whether there is still something to keep of the reply: it is
// neither journalled nor its turn given up.
func (r *reply) unfinished() error {
	if err := r.t.emit.unsealed(); err != nil {
		return err
	}
	r.t.mu.Lock()
	defer r.t.mu.Unlock()
	if r.t.partial != r {
		return errKept
	}
	return nil
}

// passKept goes on to the next part when one has ended and is kept whole.
func (r *reply) passKept() {
	k := &r.keeper
	if k.part < len(r.said.Parts) && k.bytes == len(r.said.Parts[k.part].Text) {
		k.part, k.bytes = k.part+1, 0
	}
}

// unkept returns what was streamed and not kept, with the turn's mutex held.
func (r *reply) unkept() []domain.MessagePart {
	r.passKept()
	k := &r.keeper
	var parts []domain.MessagePart
	for i := k.part; i < len(r.said.Parts); i++ {
		p := r.said.Parts[i]
		if i == k.part {
			p.Text = p.Text[k.bytes:]
		}
		parts = append(parts, p)
	}
	if !r.growing {
		return parts
	}
	p, kept := r.part, 0
	if k.part == len(r.said.Parts) {
		kept = k.bytes
	}
	if p.Text = r.text.After(kept); p.Text != "" {
		parts = append(parts, p)
	}
	return parts
}
