package acceptance

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/berth-dev/berth/core/domain"
)

// questions waits a moment and returns what the client is asked and may answer.
func (g *guest) questions() (open []*question) {
	time.Sleep(100 * time.Millisecond)
	synctest.Wait()
	g.c.mu.Lock()
	defer g.c.mu.Unlock()
	for _, id := range g.order {
		if q := g.asks[id]; !q.done {
			open = append(open, q)
		}
	}
	return open
}

// wantQuestions demands that the client is asked so many things.
func (g *guest) wantQuestions(n int) []*question {
	g.c.t.Helper()
	open := g.questions()
	if len(open) != n {
		g.c.t.Fatalf("%s is asked %d things, want %d", g.name, len(open), n)
	}
	return open
}

// chooses answers a question with an option.
func (g *guest) chooses(q *question, option string) {
	g.c.mu.Lock()
	q.done = true
	g.c.mu.Unlock()
	g.send(`{"jsonrpc":"2.0","id":` + q.id + `,"result":{"outcome":{"outcome":"selected","optionId":"` + option + `"}}}`)
}

// results are the texts with which the calls of a session ended, in order.
func (c *crowd) results(id string) (texts []string) {
	for entry, err := range c.store.Records(context.Background(), domain.SessionID(id), 0) {
		if err != nil {
			c.t.Fatal(err)
		}
		if r, ok := entry.Record.(domain.CallFinished); ok {
			texts = append(texts, r.Text)
		}
	}
	return texts
}

// stops are how the turns of a session ended, in order.
func (c *crowd) stops(id string) (list []string) {
	for entry, err := range c.store.Records(context.Background(), domain.SessionID(id), 0) {
		if err != nil {
			c.t.Fatal(err)
		}
		if r, ok := entry.Record.(domain.TurnFinished); ok {
			list = append(list, r.Stop.String())
		}
	}
	return list
}

// wantResults demands how the calls of a session ended: each with a text that
// holds the wanted one.
func (c *crowd) wantResults(id string, want ...string) {
	c.t.Helper()
	time.Sleep(time.Second)
	synctest.Wait()
	got := c.results(id)
	for i, text := range want {
		if len(got) != len(want) || !strings.Contains(got[i], text) {
			c.t.Errorf("the calls ended with %q, want %q", got, want)
			return
		}
	}
}

const (
	pullModel = "call pull {}\n--- next\ntext \"ok\"\n--- next\ncall pull {}\n--- next always\ntext \"ok\"\n"
	askModel  = "call ask_user {\"question\":\"Which?\",\"options\":[\"this\",\"that\"]}\n--- next always\ntext \"ok\"\n"
)

// A question goes to who has the session, and an answer counts only from there,
// and from who observes; whatever comes later, or from elsewhere, does nothing.
func TestShared_Questions(t *testing.T) {
	for name, c := range map[string]struct {
		model  string
		config string
		play   func(c *crowd, amy, ben *guest, id string)
	}{
		"the one who takes over answers": {model: pullModel, play: func(c *crowd, amy, ben *guest, id string) {
			late := amy.wantQuestions(1)[0]
			ben.wants(ben.open1("session/load", id, takeover), "")
			amy.wantQuestions(0)
			amy.chooses(late, "allow-once")
			c.wantResults(id)
			ben.chooses(ben.wantQuestions(1)[0], "reject-once")
			c.wantResults(id, "the user rejected this call")
		}},
		"the one who takes over answers what ask_user asks": {model: askModel, play: func(c *crowd, amy, ben *guest, id string) {
			late := amy.wantQuestions(1)[0]
			ben.wants(ben.open1("session/load", id, takeover), "")
			amy.wantQuestions(0)
			amy.chooses(late, "choice-1")
			c.wantResults(id)
			ben.answersWith(ben.wantQuestions(1)[0], 1)
			c.wantResults(id, "that")
		}},
		"a link that comes back answers too late": {model: pullModel, play: func(c *crowd, amy, ben *guest, id string) {
			late := amy.wantQuestions(1)[0]
			amy.away.Store(int64(5 * time.Second))
			amy.sock.cable.cut()
			amy.chooses(late, "allow-once")
			time.Sleep(time.Second)
			ben.wants(ben.open1("session/load", id, takeover), "")
			time.Sleep(10 * time.Second)
			c.wantResults(id)
			ben.chooses(ben.wantQuestions(1)[0], "reject-once")
			c.wantResults(id, "the user rejected this call")
		}},
		"a link that comes back answers in time": {model: pullModel, play: func(c *crowd, amy, _ *guest, id string) {
			q := amy.wantQuestions(1)[0]
			amy.away.Store(int64(time.Minute))
			amy.sock.cable.cut()
			amy.chooses(q, "allow-once")
			time.Sleep(2 * time.Minute)
			c.wantResults(id, "did {}")
		}},
		"an observer answers": {model: pullModel, play: func(c *crowd, amy, ben *guest, id string) {
			late := amy.wantQuestions(1)[0]
			ben.wants(ben.request("_berth/session/observe", fmt.Sprintf(`{"sessionId":%q,"replay":true}`, id), sent{session: id, key: "replay"}), "")
			ben.chooses(ben.wantQuestions(1)[0], "allow-once")
			c.wantResults(id, "did {}")
			amy.wantQuestions(0)
			amy.chooses(late, "reject-always")
			amy.prompt(id)
			amy.wantQuestions(1) // nothing was remembered
		}},
		"what is remembered holds for who comes": {model: pullModel, play: func(c *crowd, amy, ben *guest, id string) {
			amy.chooses(amy.wantQuestions(1)[0], "allow-always")
			c.wantResults(id, "did {}")
			ben.wants(ben.open1("session/load", id, takeover), "")
			ben.prompt(id)
			ben.wantQuestions(0)
			c.wantResults(id, "did {}", "did {}")
		}},
		"somebody else who does not take over is not asked": {model: pullModel, play: func(c *crowd, amy, ben *guest, id string) {
			amy.wantQuestions(1)
			amy.away.Store(int64(time.Hour))
			amy.sock.cable.cut()
			time.Sleep(time.Second)
			ben.wants(ben.open1("session/load", id, ""), "")
			ben.wantQuestions(0)
			c.wantResults(id, "somebody else has the session now")
		}},
		"the same person on another machine is asked": {model: pullModel, play: func(c *crowd, amy, _ *guest, id string) {
			amy.wantQuestions(1)
			amy.away.Store(int64(30 * time.Second))
			amy.sock.cable.cut()
			time.Sleep(time.Second)
			other := c.comes("amy", false)
			other.wants(other.open1("session/load", id, ""), "")
			other.chooses(other.wantQuestions(1)[0], "allow-once")
			c.wantResults(id, "did {}")
			time.Sleep(time.Minute)
			amy.wantQuestions(0) // it is back, and was told
		}},
		"nobody answers in time": {model: pullModel, config: "[acp]\nsession_timeout_secs = 60\n", play: func(c *crowd, amy, _ *guest, id string) {
			amy.wantQuestions(1)
			time.Sleep(30 * time.Second)
			amy.leave()
			time.Sleep(31 * time.Second)
			c.wantResults(id, "there was no answer to the permission request") // two limits end at once
		}},
		"nobody comes for the grace": {model: pullModel, play: func(c *crowd, amy, ben *guest, id string) {
			amy.wantQuestions(1)
			amy.leave()
			time.Sleep(14 * time.Minute)
			c.wantResults(id)
			time.Sleep(2 * time.Minute)
			c.wantResults(id, "Cancelled before it ran")
			if stops := c.stops(id); len(stops) != 1 || stops[0] != "cancelled" {
				c.t.Errorf("the turns ended with %v", stops)
			}
			ben.wants(ben.open1("session/load", id, ""), "")
			ben.prompt(id)
			c.wantResults(id, "Cancelled before it ran")
		}},
	} {
		t.Run(name, func(t *testing.T) {
			meeting(t, c.model, c.config, func(m *crowd) {
				amy, ben := m.comes("amy", true), m.comes("ben", false)
				id := amy.begins()
				amy.prompt(id)
				time.Sleep(time.Second)
				c.play(m, amy, ben, id)
			})
		})
	}
}

// answersWith answers a question with the option at a place.
func (g *guest) answersWith(q *question, at int) {
	g.c.t.Helper()
	options := optionsOf(q)
	if at >= len(options) {
		g.c.t.Fatalf("the options are %v", options)
	}
	g.chooses(q, options[at])
}
