package acp1

import (
	"errors"
	"strings"
	"testing"

	"github.com/berth-dev/berth/core/domain"
)

// A connection that ends in an orderly way detaches its client, one that breaks
// loses it, and one that is closed for a reason passes that on.
func TestServe_LosesAtABreak(t *testing.T) {
	for name, c := range map[string]struct {
		end  func(*rig)
		lost bool
		why  error
	}{
		"end of input":     {end: (*rig).end, why: domain.Disconnected},
		"broken transport": {end: func(r *rig) { r.eof = true; _ = r.wire.Close() }, lost: true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			run(t, w, func(r *rig) {
				r.breaks = c.lost
				r.initialize(`{}`)
				r.newSession()
				r.drain()
				c.end(r)
				<-r.gone
				if w.lost != c.lost || c.why != nil && !errors.Is(w.detached, c.why) {
					t.Errorf("lost %v, detached with %v", w.lost, w.detached)
				}
			})
		})
	}
}

// Load and resume tell of a turn that goes on, and await answers as its prompt
// does.
func TestOpen_RunningTurn(t *testing.T) {
	w := newWorld()
	w.running = domain.OpenedSession{Running: "t1", Queued: []domain.QueuedTurn{{Turn: "t2", Blocks: []domain.Block{domain.Text{Text: "and then"}}}}}
	open(t, w, func(r *rig) {
		id := r.newSession()
		for _, m := range []string{methodLoad, methodResume} {
			berth := r.ok(m, `{"sessionId":"`+id+`","cwd":"/proj","mcpServers":[],"_meta":{"berth":{"takeover":true}}}`).in("_meta").in("berth")
			want(t, "running", berth["running"], `"t1"`)
			want(t, "queued", berth["queued"], `[{"turnId":"t2","text":"and then"}]`)
		}
		got := r.ok(methodAwait, `{"sessionId":"`+id+`","turnId":"t1"}`)
		want(t, "stopReason", got["stopReason"], `"end_turn"`)
		want(t, "turnId", got.in("_meta").in("berth")["turnId"], `"t1"`)
		want(t, "content", got.in("_meta").in("berth")["content"], `"awaited"`)
		r.fails(-32002, methodAwait, `{"sessionId":"unknown"}`)
		r.fails(-32602, methodAwait, `{}`)
	})
	openZeroclaw(t, w, func(r *rig) {
		id := r.ok(methodNew, `{}`).text("sessionId")
		want(t, "content", r.ok(methodAwait, `{"sessionId":"`+id+`"}`)["content"], `"awaited"`)
	})
}

// An observer sees the history, what goes on and which prompts wait.
func TestObserve(t *testing.T) {
	w := newWorld()
	w.history = []domain.Update{domain.UserMessage{ID: "u", Block: domain.Text{Text: "go"}}, domain.AgentText{ID: "m", Text: "done"}}
	open(t, w, func(r *rig) {
		id := r.newSession()
		m, before := r.answer(r.start(methodObserve, `{"sessionId":"`+id+`","replay":true}`))
		if len(before) != 2 || m.Error != nil {
			t.Errorf("%d updates, then %v", len(before), m.Error)
		}
		want(t, "running", objectOf(m.Result).in("_meta").in("berth")["running"], `"t1"`)
		if err := w.watching[0].Send(t.Context(), domain.SessionID(id), domain.QueueChanged{
			Running: "t2", Queued: []domain.QueuedTurn{{Turn: "t3", Blocks: []domain.Block{domain.Text{Text: "more"}}}},
		}); err != nil {
			t.Error(err)
		}
		queue := r.next()
		if queue.Method != methodQueue {
			t.Errorf("got %s", queue.Method)
		}
		want(t, "queue", queue.Params, `{"sessionId":"`+id+`","running":"t2","queued":[{"turnId":"t3","text":"more"}]}`)
		for _, c := range []struct {
			ended domain.TurnEnded
			want  string
		}{
			{domain.TurnEnded{Turn: "t2", Stop: domain.StopCancelled}, `{"turnId":"t2","stopReason":"cancelled"}`},
			{domain.TurnEnded{Turn: "t2", Stop: domain.StopEndTurn}, `{"turnId":"t2","stopReason":"end_turn"}`},
			{domain.TurnEnded{Turn: "t2", Why: "no route"}, `{"turnId":"t2","error":"no route"}`},
		} {
			if err := w.watching[0].Send(t.Context(), domain.SessionID(id), domain.QueueChanged{Ended: &c.ended}); err != nil {
				t.Error(err)
			}
			want(t, "queue", r.next().Params, `{"sessionId":"`+id+`","queued":[],"ended":`+c.want+`}`)
		}
		if m, before = r.answer(r.start(methodUnobserve, `{"sessionId":"`+id+`"}`)); m.Error != nil || len(before) != 1 {
			t.Errorf("%d updates, then %v", len(before), m.Error)
		}
		if len(w.watching) != 0 {
			t.Error("it observes still")
		}
		r.ok(methodUnobserve, `{"sessionId":"`+id+`"}`)
		r.fails(-32602, methodObserve, `{"sessionId":"`+id+`","replay":1}`)
		r.fails(-32602, methodObserve, `{}`)
		r.fails(-32002, methodObserve, `{"sessionId":"gone"}`)
	})
}

// What a client may not do is refused with a reason; the services find the
// rest of its rights in its Info.
func TestRights(t *testing.T) {
	w := newWorld()
	w.agents = append(w.agents, domain.Agent{Alias: "secret", Enabled: true, Model: w.agents[0].Model})
	w.fallback = "secret"
	rights := &Rights{Name: "guest", Agents: []string{"default"}}
	w.set = func(p *Params) { p.Rights = rights }
	stdio := `"mcpServers":[{"name":"files","command":"/bin/x","args":[],"env":[]}]`
	open(t, w, func(r *rig) {
		id := r.newSession()
		if got := w.client.Info().Rights; got != rights {
			t.Errorf("the services see the rights %+v", got)
		}
		e := r.fails(-32602, methodNew, `{"cwd":"/proj",`+stdio+`}`)
		want(t, "data", e.Data, `{"reason":"DENIED"}`)
		contains(t, e.Message, "files", "--allow-mcp-commands")
		r.fails(-32602, methodLoad, `{"sessionId":"`+id+`","cwd":"/proj",`+stdio+`}`)
		rights.MCPCommands = true
		r.ok(methodNew, `{"cwd":"/proj",`+stdio+`}`)
	})
	rights = &Rights{Name: "viewer", Observe: true, Agents: []string{"default"}}
	run(t, w, func(r *rig) {
		offer := r.initialize(`{}`).in("_meta").in("berth")
		want(t, "defaultAgent", offer["defaultAgent"], `"default"`)
		agents := offer["agents"]
		if contains(t, string(agents), "default"); strings.Contains(string(agents), "secret") {
			t.Errorf("it is told of the agents %s", agents)
		}
		for _, m := range []string{
			methodNew, methodLoad, methodResume, methodDelete, "session/prompt", "session/cancel", "session/close", "session/stop",
			methodUpdate, "session/event", methodAwait, "logout",
		} {
			e := r.fails(-32602, m, `{"sessionId":"s","cwd":"/proj","mcpServers":[],"prompt":"x"}`)
			want(t, m, e.Data, `{"reason":"DENIED","method":"`+m+`"}`)
		}
		r.ok(methodList, `{}`)
	})
}
