package acceptance

import (
	"fmt"
	"slices"
	"strings"
)

// role is what a client is to a session.
type role string

const (
	owns     role = "owner"
	observes role = "observer"
)

// view is what one connection was told of a session. It falls into periods:
// each begins when the client opens the session, or begins to observe it.
type view struct {
	g       *guest
	session string
	items   []*item // in the order in which they were told
	periods []*period
	opening map[string]*period // what was asked for and has no answer, by id
}

// period is what was told since the client opened the session.
type period struct {
	as    role
	whole bool // it begins with the history
	part  bool // the history broke off, so that nothing can be said of it
	// Positions among the items: of the request and of its answer.
	asked, answer int
}

func (g *guest) view(session string) *view {
	v := g.views[session]
	if v == nil {
		v = &view{g: g, session: session, opening: map[string]*period{}}
		g.views[session] = v
	}
	return v
}

// asked notes a request before whose answer something is told. The crowd's
// mutex is held, as for everything here.
func (g *guest) asked(id string, s sent) {
	switch s.method {
	case "session/load", "session/resume", "_berth/session/observe":
		v := g.view(s.session)
		v.opening[id] = &period{whole: s.method == "session/load" || s.key == "replay", asked: len(v.items)}
	}
}

// show takes an item that was told.
func (v *view) show(i *item) {
	if len(i.id) < 36 {
		return // it belongs to no turn
	}
	if len(v.periods) == 0 && len(v.opening) == 0 {
		v.g.c.wrong = append(v.g.c.wrong, fmt.Sprintf("%s was told of session %s, which it never opened: %s", v.g.name, v.session, i))
	}
	v.items = append(v.items, i)
}

// replayed ends an opening.
func (v *view) replayed(id, failure string, as role) {
	p := v.opening[id]
	delete(v.opening, id)
	broken := strings.Contains(failure, "REQUEST_CANCELLED") || strings.Contains(failure, "SESSION_NOT_FOUND")
	switch {
	case broken && len(v.items) > p.asked:
		p.part = true
	case failure != "":
		return
	}
	p.as, p.answer = as, len(v.items)
	if n := len(v.periods); n > 0 {
		p.asked = max(p.asked, v.periods[n-1].answer) // that came first
	}
	v.periods = append(v.periods, p)
}

// goOn begins a period without a history.
func (v *view) goOn(as role) {
	v.periods = append(v.periods, &period{as: as, asked: len(v.items), answer: len(v.items)})
}

// judge holds a view against what the session shows in the end. now is what
// the client still is to it; "" for nothing.
func (v *view) judge(end *story, now role) {
	for i, p := range v.periods {
		to, last := len(v.items), i == len(v.periods)-1
		if !last {
			to = v.periods[i+1].asked
		}
		for _, broken := range v.opening { // it was cut before its answer
			to = min(to, max(p.asked, broken.asked))
		}
		if p.part {
			continue
		}
		if wrong := p.differs(v.g, v.items[p.asked:to], end, last && p.as == now); wrong != "" {
			v.g.c.wrong = append(v.g.c.wrong, fmt.Sprintf("%s, %s of session %s, period %d of %d (whole %v): %s", v.g.name, p.as, v.session, i+1, len(v.periods), p.whole, wrong))
		}
	}
}

// differs says what is wrong with what was told in a period; "" for nothing.
// complete says that it goes on to this day.
func (p *period) differs(g *guest, items []*item, end *story, complete bool) string {
	if p.whole && len(end.turns) > 0 {
		// What came before the history belongs to the period before.
		for i := p.answer - p.asked - 1; i > 0; i-- {
			if items[i].kind == "user_message_chunk" && items[i].id[:36] == end.turns[0].id {
				items = items[i:]
				break
			}
		}
	}
	seen := newStory()
	for _, i := range items {
		if strings.HasSuffix(i.id, "-end") {
			continue // only a history says it
		}
		if (i.kind == "tool_call") == (seen.by[i.id[:36]] != nil && seen.by[i.id[:36]].calls[i.id] != nil) && strings.HasPrefix(i.kind, "tool_call") {
			if i.kind == "tool_call" {
				return fmt.Sprintf("call %s was announced twice", i.id)
			}
			if p.whole {
				return fmt.Sprintf("call %s was not announced", i.id)
			}
		}
		seen.add(i, nil)
	}
	if !p.whole {
		return subsequence(seen, end)
	}
	n := 0
	for _, e := range end.turns {
		switch {
		case n < len(seen.turns) && seen.turns[n].id == e.id:
			if wrong := turnDiffers(g, seen.turns[n], e, complete || n < len(seen.turns)-1); wrong != "" {
				return fmt.Sprintf("turn %s: %s", e.id, wrong)
			}
			n++
		case !g.silent(e) && (complete || n < len(seen.turns)):
			return fmt.Sprintf("turn %s was not shown, but %v, of %v", e.id, ids(seen.turns), ids(end.turns))
		}
	}
	if n < len(seen.turns) {
		return fmt.Sprintf("turn %s is not in the journal, or earlier", seen.turns[n].id)
	}
	return ""
}

// silent reports whether a client is told nothing of a turn, because there is
// nothing but a prompt of its own.
func (g *guest) silent(c *chapter) bool {
	prompt, rest := spoken(c)
	return len(rest) == 0 && len(prompt) == 1 && g.said[prompt[0].text]
}

func ids(turns []*chapter) (list []string) {
	for _, t := range turns {
		list = append(list, t.id)
	}
	return list
}

// turnDiffers compares a turn as it was told with how it ended up.
func turnDiffers(g *guest, seen, end *chapter, complete bool) string {
	said, have := spoken(seen)
	prompt, want := spoken(end)
	if len(said) > 1 || len(said) == 1 && said[0].text != prompt[0].text {
		return fmt.Sprintf("the prompt was shown as %v, it is %v", said, prompt)
	}
	if len(said) == 0 && len(prompt) == 1 && !g.said[prompt[0].text] {
		return "the prompt of another client was not shown: " + prompt[0].text
	}
	for i, s := range have {
		switch {
		case i >= len(want):
			return fmt.Sprintf("not in the journal: %s", s)
		case s.String() == want[i].String():
		case !complete && i == len(have)-1 && s.kind == want[i].kind && s.id == want[i].id && strings.HasPrefix(want[i].text, s.text):
		default:
			return fmt.Sprintf("told %s\n  journal %s", s, want[i])
		}
	}
	if complete && len(have) < len(want) {
		return fmt.Sprintf("not told: %s", want[len(have)])
	}
	return ""
}

// spoken divides the items of a turn into the prompt and the rest.
func spoken(c *chapter) (prompt, rest []*item) {
	for _, i := range c.items {
		switch {
		case i.kind == "user_message_chunk":
			prompt = append(prompt, i)
		case !strings.HasSuffix(i.id, "-end"):
			rest = append(rest, i)
		}
	}
	return prompt, rest
}

// subsequence says what in a view without a history is not in the journal, or
// in another order.
func subsequence(seen, end *story) string {
	at := 0
	for _, s := range seen.turns {
		k := slices.IndexFunc(end.turns, func(c *chapter) bool { return c.id == s.id })
		if k < at {
			return fmt.Sprintf("turn %s is not in the journal, or earlier: %v", s.id, ids(end.turns))
		}
		at = k
		_, have := spoken(s)
		_, want := spoken(end.turns[k])
		n := 0
		for _, i := range have {
			for n < len(want) && (want[n].id != i.id || want[n].kind != i.kind) {
				n++
			}
			if n == len(want) {
				return fmt.Sprintf("turn %s: not in the journal, or earlier: %s", s.id, i)
			}
			if !strings.HasPrefix(i.kind, "agent_") {
				continue
			}
			if left := tokensLeft(want[n].text, i.text); left != "" {
				return fmt.Sprintf("turn %s: %s: %q is not in %q, or earlier", s.id, i.id, left, want[n].text)
			}
		}
	}
	return ""
}

// tokensLeft returns the first of the pieces of a text that is not in another
// behind those before; "" when all are.
func tokensLeft(whole, part string) string {
	words := strings.Fields(whole)
	for _, p := range strings.Fields(part) {
		k := slices.Index(words, p)
		if k < 0 {
			return p
		}
		words = words[k+1:]
	}
	return ""
}
