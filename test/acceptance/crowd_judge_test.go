package acceptance

import (
	"context"
	"fmt"
	"slices"
	"testing/synctest"
	"time"

	"github.com/berth-dev/berth/core/domain"
)

// settle lets everything come to an end by itself: clients read, come back and
// answer what they are asked.
func (c *crowd) settle() {
	for _, g := range c.all {
		c.mu.Lock()
		g.patient = true
		g.pause.Store(0)
		for !g.over && g.answerOne() {
		}
		c.mu.Unlock()
	}
	for range 12 {
		time.Sleep(time.Minute)
	}
	// What hangs is cancelled by whoever has it, and else when the grace is over.
	for _, g := range c.all {
		for _, s := range c.known() {
			g.cancel(s)
		}
	}
	time.Sleep(20 * time.Minute)
	synctest.Wait()
}

// judge looks at what has become of everything.
func (c *crowd) judge() {
	roles := c.roles()
	c.answers()
	for _, g := range c.all {
		g.leave()
	}
	time.Sleep(20 * time.Minute) // longer than the grace
	judge := c.connect("ben", false)
	for _, id := range c.known() {
		if c.deleted[id] {
			continue
		}
		end := c.reload(judge, id)
		if end == nil {
			continue
		}
		c.mu.Lock()
		for _, g := range c.all {
			if v := g.views[id]; v != nil {
				v.judge(end, roles[g][id])
			}
		}
		c.mu.Unlock()
		c.journal(id)
	}
	c.tools.mu.Lock()
	defer c.tools.mu.Unlock()
	for id, n := range c.tools.ran {
		if n != 1 {
			c.tell("call %s ran %d times", id, n)
		}
	}
}

// known are the sessions that anybody was told of.
func (c *crowd) known() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.sessions)
}

// answers looks for requests, of both sides, that were left open.
func (c *crowd) answers() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, g := range c.all {
		if g.over {
			continue
		}
		for id, r := range g.open {
			c.wrong = append(c.wrong, fmt.Sprintf("%s: request %s (%s %s) has no answer", g.name, id, r.method, r.session))
		}
		for id, q := range g.asks {
			if !q.done {
				c.wrong = append(c.wrong, fmt.Sprintf("%s: the agent's request %s (%s) is still open", g.name, id, q.method))
			}
		}
	}
}

// roles finds out what every client is to every session: only the owner may
// tell something of it, and only an observer is told so when it begins again.
func (c *crowd) roles() map[*guest]map[string]role {
	roles, probes := map[*guest]map[string]role{}, map[*guest]map[string]string{}
	for _, g := range c.all {
		roles[g], probes[g] = map[string]role{}, map[string]string{}
		for _, s := range c.known() {
			probes[g][s] = g.request("session/update", fmt.Sprintf(`{"sessionId":%q,"type":"probe"}`, s), sent{session: s})
		}
	}
	time.Sleep(time.Second)
	synctest.Wait()
	known := c.known()
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range known {
		var owners []string
		for _, g := range c.all {
			if m, ok := g.answers[probes[g][s]]; ok && m.Error == nil {
				owners = append(owners, g.name)
				roles[g][s] = owns
			}
		}
		if len(owners) > 1 {
			c.wrong = append(c.wrong, fmt.Sprintf("session %s has the owners %v", s, owners))
		}
	}
	return roles
}

// reload loads a session and returns what it shows.
func (c *crowd) reload(judge *guest, id string) *story {
	load := judge.open1("session/load", id, `,"_meta":{"berth":{"takeover":true}}`)
	time.Sleep(time.Second)
	synctest.Wait()
	c.mu.Lock()
	m, ok := judge.answers[load]
	v := judge.views[id]
	c.mu.Unlock()
	if !ok || m.Error != nil {
		c.tell("session %s does not load in the end: %s", id, m.Error)
		return nil
	}
	end := newStory()
	for _, i := range v.items[v.periods[len(v.periods)-1].asked:] {
		end.add(i, nil)
	}
	closing := judge.request("session/close", fmt.Sprintf(`{"sessionId":%q}`, id), sent{session: id})
	time.Sleep(time.Second)
	synctest.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	if m, ok := judge.answers[closing]; !ok || m.Error != nil {
		c.wrong = append(c.wrong, fmt.Sprintf("session %s does not close: %s", id, m.Error))
	}
	delete(judge.views, id)
	return end
}

// journal looks at the records of a session: every turn and call ends once, a
// permission is given once, and only calls that ran have a result of their own.
func (c *crowd) journal(id string) {
	given, began, ended := map[domain.CallID]int{}, map[domain.CallID]string{}, map[domain.CallID]int{}
	turns, over := []domain.TurnID{}, []domain.TurnID{}
	for entry, err := range c.store.Records(context.Background(), domain.SessionID(id), 0) {
		if err != nil {
			c.tell("the journal of %s: %v", id, err)
			return
		}
		switch r := entry.Record.(type) {
		case domain.UserSaid:
			turns = append(turns, r.Turn)
		case domain.TurnFinished:
			over = append(over, r.Turn)
		case domain.CallBegan:
			began[r.Call.ID] = r.Call.Name
		case domain.PermissionGiven:
			given[r.Call]++
		case domain.CallFinished:
			ended[r.Call]++
			c.tools.mu.Lock()
			did := c.tools.ran[r.Call] == 1
			c.tools.mu.Unlock()
			if !did && !r.Failed && slices.Contains([]string{"look", "pull", "peek"}, began[r.Call]) {
				c.tell("call %s has a result and never ran", r.Call)
			}
		case domain.AssistantSaid, domain.PlanSet, domain.TitleSet, domain.ClientEvent, domain.Compacted, domain.Unknown:
		}
	}
	if !slices.Equal(turns, over) {
		c.tell("the turns of %s are %v, and those that ended %v", id, turns, over)
	}
	for call, n := range given {
		if n > 1 {
			c.tell("call %s was permitted %d times", call, n)
		}
	}
	for call := range began {
		if ended[call] != 1 {
			c.tell("call %s ended %d times", call, ended[call])
		}
	}
}
