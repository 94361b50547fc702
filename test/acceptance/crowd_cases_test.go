package acceptance

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// meeting plays one case of several clients of a daemon, by a model's script
// and more configuration.
func meeting(t *testing.T, model, config string, play func(c *crowd)) {
	t.Helper()
	if !strings.Contains(config, "detach_grace_secs") {
		config = "detach_grace_secs = 900\n" + config
	}
	config = "[gateway]\n" + config
	gather(t, 0, rand.New(rand.NewPCG(1, 1)), &scenario{model: model, config: config}, play)
}

// comes connects a client with a token.
func (c *crowd) comes(token string, linked bool) *guest {
	c.t.Helper()
	g := c.connect(token, linked)
	if g == nil {
		c.t.Fatal("the gateway takes nobody")
	}
	return g
}

// gets waits for the answer to a request, as long as d of the bubble's time.
func (g *guest) gets(id string, d time.Duration) (m message, ok bool) {
	time.Sleep(d)
	synctest.Wait()
	g.c.mu.Lock()
	defer g.c.mu.Unlock()
	m, ok = g.answers[id]
	return m, ok
}

// wants demands that a request is answered within a moment, with a result or
// with an error of a reason.
func (g *guest) wants(id, reason string) {
	g.c.t.Helper()
	m, ok := g.gets(id, 100*time.Millisecond)
	switch {
	case !ok:
		g.c.t.Errorf("%s: request %s has no answer", g.name, id)
	case reason == "" && m.Error != nil, !strings.Contains(string(m.Error), reason):
		g.c.t.Errorf("%s: request %s was answered with the error %q, want %q", g.name, id, m.Error, reason)
	}
}

// begins opens a session of its own and returns its id.
func (g *guest) begins() string {
	g.c.t.Helper()
	g.wants(g.request("session/new", fmt.Sprintf(`{"cwd":%q,"mcpServers":[]}`, g.c.world.work), sent{}), "")
	g.c.mu.Lock()
	defer g.c.mu.Unlock()
	return g.c.sessions[len(g.c.sessions)-1]
}

const takeover = `,"_meta":{"berth":{"takeover":true}}`

const halfTold = "text \"<1> \"\ndelay 10s\ntext \"<2> \"\n--- next always\ntext \"ok\"\n"

// Whoever lost a session in the middle of a turn takes it back at once, and is
// answered what it asks of it meanwhile: its own prompt, which is open, ends
// with the turn.
func TestShared_TakenBack(t *testing.T) {
	meeting(t, halfTold, "", func(c *crowd) {
		amy, ben := c.comes("amy", false), c.comes("ben", false)
		id := amy.begins()
		amy.prompt(id)
		amy.request("_berth/session/await", fmt.Sprintf(`{"sessionId":%q}`, id), sent{session: id})
		time.Sleep(time.Second)
		ben.wants(ben.open1("session/load", id, takeover), "")
		amy.wants(amy.request("session/close", fmt.Sprintf(`{"sessionId":%q}`, id), sent{session: id}), "")
		amy.wants(amy.request("_berth/session/observe", fmt.Sprintf(`{"sessionId":%q,"replay":true}`, id), sent{session: id, key: "replay"}), "")
		amy.wants(amy.open1("session/load", id, takeover), "")
		c.settle()
		c.judge()
	})
}

// Observations that are asked for one behind the other are told one behind the
// other, and one that was ended stays so.
func TestShared_ObservedTwice(t *testing.T) {
	meeting(t, halfTold, "", func(c *crowd) {
		amy, ben := c.comes("amy", false), c.comes("ben", false)
		id := amy.begins()
		amy.prompt(id)
		time.Sleep(time.Second)
		watch := func() string {
			return ben.request("_berth/session/observe", fmt.Sprintf(`{"sessionId":%q,"replay":true}`, id), sent{session: id, key: "replay"})
		}
		first, second := watch(), watch()
		ben.wants(first, "")
		ben.wants(second, "")
		watch()
		ben.wants(ben.request("_berth/session/unobserve", fmt.Sprintf(`{"sessionId":%q}`, id), sent{session: id}), "")
		c.mu.Lock()
		told := len(ben.view(id).items)
		c.mu.Unlock()
		c.settle()
		c.mu.Lock()
		if now := len(ben.view(id).items); now != told {
			t.Errorf("it was told %d things after it had stopped observing", now-told)
		}
		c.mu.Unlock()
		c.judge()
	})
}

// Clients that ask for a key at the same moment get one session, and one of
// them has it.
func TestShared_OneKey(t *testing.T) {
	for name, meta := range map[string]string{"politely": "", "with takeover": `,"takeover":true`} {
		t.Run(name, func(t *testing.T) {
			meeting(t, halfTold, "", func(c *crowd) {
				var ids []string
				for range 4 {
					g := c.comes("amy", false)
					ids = append(ids, g.request("session/new", fmt.Sprintf(`{"cwd":%q,"mcpServers":[],"_meta":{"berth":{"sessionKey":"k"%s}}}`, c.world.work, meta), sent{}))
				}
				time.Sleep(time.Second)
				synctest.Wait()
				c.mu.Lock()
				known, had := len(c.sessions), 0
				for i, g := range c.all {
					switch m, ok := g.answers[ids[i]]; {
					case !ok:
						t.Errorf("%s has no answer", g.name)
					case m.Error == nil:
						had++
					case !strings.Contains(string(m.Error), "SESSION_ACTIVE"):
						t.Errorf("%s got the error %s", g.name, m.Error)
					}
				}
				c.mu.Unlock()
				if known != 1 || had == 0 || meta == "" && had != 1 {
					t.Errorf("%d sessions, had by %d", known, had)
				}
				owners := 0
				for _, roles := range c.roles() {
					owners += len(roles)
				}
				if owners != 1 {
					t.Errorf("%d have it in the end", owners)
				}
			})
		})
	}
}

// Who asks for a key whose session is in the middle of a turn is told where that
// stands, behind the answer that names the session, and then how it goes on.
func TestShared_KeyOfARunningTurn(t *testing.T) {
	model := "call look {\"Ms\":5000,\"Steps\":4}\n--- next always\ntext \"ok\"\n"
	meeting(t, model, "", func(c *crowd) {
		amy, ben := c.comes("amy", false), c.comes("ben", false)
		ask := fmt.Sprintf(`{"cwd":%q,"mcpServers":[],"_meta":{"berth":{"sessionKey":"k","takeover":true}}}`, c.world.work)
		amy.wants(amy.request("session/new", ask, sent{}), "")
		id := c.known()[0]
		amy.prompt(id)
		time.Sleep(7 * time.Second)
		ben.wants(ben.request("session/new", ask, sent{}), "")
		time.Sleep(time.Minute)
		synctest.Wait()
		c.mu.Lock()
		defer c.mu.Unlock()
		var seen []string
		for _, i := range ben.view(id).items {
			seen = append(seen, i.kind+string(i.call["status"])+i.text)
		}
		want := `tool_call"pending" tool_call_update"in_progress" tool_call_update tool_call_update tool_call_update tool_call_update"completed" agent_message_chunkok`
		if got := strings.Join(seen, " "); got != want {
			t.Errorf("it was told\n  %s, want\n  %s", got, want)
		}
	})
}

const peekModel = "call peek {}\n--- next always\ntext \"ok\"\n"

// A turn that waits for the editor goes on when the editor is not there any
// more: it was cut, its link is interrupted for long, or another client has the
// session.
func TestShared_EditorGone(t *testing.T) {
	for name, play := range map[string]func(c *crowd, amy *guest, id string){
		"cut":         func(_ *crowd, amy *guest, _ string) { amy.sock.cable.cut() },
		"interrupted": func(_ *crowd, amy *guest, _ string) { amy.away.Store(int64(time.Minute)); amy.sock.cable.cut() },
		"taken": func(c *crowd, _ *guest, id string) {
			ben := c.comes("ben", false)
			ben.wants(ben.open1("session/load", id, takeover), "")
		},
	} {
		t.Run(name, func(t *testing.T) {
			meeting(t, peekModel, "", func(c *crowd) {
				amy, eve := c.editor("amy", name == "interrupted"), c.comes("eve", false)
				id := amy.begins()
				eve.wants(eve.request("_berth/session/observe", fmt.Sprintf(`{"sessionId":%q}`, id), sent{session: id}), "")
				amy.prompt(id)
				time.Sleep(time.Second)
				play(c, amy, id)
				time.Sleep(20 * time.Second)
				synctest.Wait()
				c.mu.Lock()
				defer c.mu.Unlock()
				items := eve.view(id).items
				if last := items[len(items)-1]; last.text != "ok" {
					t.Errorf("the last that was told is %s %s", last, last.call)
				}
			})
		})
	}
}

// Where nobody is waited for, those who observe still see how a turn ends whose
// client is gone.
func TestShared_ObservedToTheEnd(t *testing.T) {
	model := "text \"<1> \"\ncall pull {\"Ms\":60000,\"Steps\":3}\n"
	meeting(t, model, "detach_grace_secs = 0\n[profiles.default]\nlevel = \"full\"\n", func(c *crowd) {
		amy, ben := c.comes("amy", false), c.comes("ben", false)
		id := amy.begins()
		ben.wants(ben.request("_berth/session/observe", fmt.Sprintf(`{"sessionId":%q,"replay":true}`, id), sent{session: id, key: "replay"}), "")
		amy.prompt(id)
		time.Sleep(time.Second)
		amy.sock.cable.cut()
		synctest.Wait()
		time.Sleep(time.Second)
		c.mu.Lock()
		defer c.mu.Unlock()
		items := ben.view(id).items
		if last := items[len(items)-1]; last.kind != "tool_call_update" || string(last.call["status"]) != `"failed"` {
			t.Errorf("the last it saw is %s", last)
		}
	})
}
