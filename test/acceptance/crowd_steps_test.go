package acceptance

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"time"
)

// step does one thing that a client may do.
func (g *guest) step() {
	if g.isOver() {
		g.c.guests = slices.DeleteFunc(g.c.guests, func(o *guest) bool { return o == g })
		return
	}
	rng := g.c.rng
	switch n := rng.IntN(100); {
	case n < 22:
		g.prompt(g.someSession())
	case n < 25:
		s := g.someSession()
		g.prompt(s)
		g.prompt(s)
		g.cancel(s)
	case n < 29:
		g.cancel(g.someSession())
	case n < 32:
		g.send(fmt.Sprintf(`{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":%d}}`, max(1, g.lastID-rng.IntN(5))))
	case n < 44:
		g.c.mu.Lock()
		g.answerOne()
		g.c.mu.Unlock()
	case n < 48:
		g.newSession()
	case n < 58:
		g.opening("session/load")
	case n < 63:
		g.opening("session/resume")
	case n < 69:
		g.observe()
	case n < 71:
		g.simple("_berth/session/unobserve")
	case n < 74:
		g.await()
	case n < 76:
		g.simple("session/close")
	case n < 77:
		g.simple("session/stop")
	case n < 78:
		g.delete()
	case n < 80:
		g.rest()
	case n < 82:
		g.patience()
	case n < 92:
		g.lose()
	default:
		time.Sleep(time.Duration(rng.IntN(40)) * time.Second)
	}
}

// lose lets the connection break, in one of the ways in which they do.
func (g *guest) lose() {
	g.c.mu.Lock()
	sock := g.sock
	g.c.mu.Unlock()
	if p, ok := g.frames.(*posts); ok {
		switch g.c.rng.IntN(4) {
		case 0:
			p.bye()
			g.leave()
		case 1:
			g.leave()
		default:
			p.cut()
		}
		return
	}
	g.away.Store(int64(pick(g.c.rng, 0, time.Millisecond, 100*time.Millisecond, 3*time.Second, time.Minute)))
	switch g.c.rng.IntN(6) {
	case 0:
		sock.cable.stop() // until pings find out
	case 1:
		sock.bye(1001)
		sock.cable.cut()
	case 2:
		if g.link != nil {
			_ = g.link.CloseWrite()
		} else {
			sock.bye(1000)
		}
		time.Sleep(time.Millisecond)
		g.leave()
	case 3:
		g.leave() // for good
	default:
		sock.cable.cut()
	}
}

// patience lets the client stop reading for a while, or answer what it is asked
// at once from now on.
func (g *guest) patience() {
	g.c.mu.Lock()
	defer g.c.mu.Unlock()
	if g.c.rng.IntN(2) == 0 {
		g.pause.Store(g.c.rng.Int64N(int64(4 * time.Second)))
		return
	}
	g.patient = !g.patient
	for g.patient && g.answerOne() {
	}
}

// someSession is mostly one of the newest.
func (g *guest) someSession() string {
	g.c.mu.Lock()
	defer g.c.mu.Unlock()
	if n := len(g.c.sessions); n > 0 && g.c.rng.IntN(30) > 0 {
		return g.c.sessions[max(0, n-1-g.c.rng.IntN(3))]
	}
	return "00000000-0000-4000-8000-000000000000"
}

func (g *guest) prompt(session string) {
	g.c.prompts++
	text := "p" + strconv.Itoa(g.c.prompts)
	g.c.mu.Lock()
	g.said[text] = true
	g.c.mu.Unlock()
	g.request("session/prompt", fmt.Sprintf(`{"sessionId":%q,"prompt":[{"type":"text","text":%q}]}`, session, text), sent{session: session, text: text})
}

func (g *guest) cancel(session string) { g.send(cancelLine(session)) }

func (g *guest) newSession() {
	meta := ""
	if g.c.rng.IntN(3) == 0 {
		meta = fmt.Sprintf(`,"_meta":{"berth":{"sessionKey":"key%d","takeover":%v}}`, g.c.rng.IntN(3), g.c.rng.IntN(2) == 0)
	}
	g.request("session/new", fmt.Sprintf(`{"cwd":%q,"mcpServers":[]%s}`, g.c.world.work, meta), sent{})
}

func (g *guest) opening(method string) {
	meta := ""
	if g.c.rng.IntN(2) == 0 {
		meta = `,"_meta":{"berth":{"takeover":true}}`
	}
	g.open1(method, g.someSession(), meta)
}

func (g *guest) open1(method, session, meta string) string {
	return g.request(method, fmt.Sprintf(`{"sessionId":%q,"cwd":%q,"mcpServers":[]%s}`, session, g.c.world.work, meta), sent{session: session})
}

func (g *guest) observe() {
	s, replay := sent{session: g.someSession()}, g.c.rng.IntN(3) > 0
	if replay {
		s.key = "replay"
	}
	g.request("_berth/session/observe", fmt.Sprintf(`{"sessionId":%q,"replay":%v}`, s.session, replay), s)
}

func (g *guest) simple(method string) {
	s := g.someSession()
	g.request(method, fmt.Sprintf(`{"sessionId":%q}`, s), sent{session: s})
}

func (g *guest) await() {
	s := g.someSession()
	g.request("_berth/session/await", fmt.Sprintf(`{"sessionId":%q}`, s), sent{session: s})
}

// delete removes a session. From then on nothing is expected of it.
func (g *guest) delete() {
	s := g.someSession()
	g.c.mu.Lock()
	g.c.deleted[s] = true
	g.c.mu.Unlock()
	g.request("session/delete", fmt.Sprintf(`{"sessionId":%q}`, s), sent{session: s})
}

// rest are methods that change nothing here.
func (g *guest) rest() {
	s := g.someSession()
	g.request(pick(g.c.rng, "session/fork", "session/set_mode", "session/set_config_option", "session/list", "session/update"),
		fmt.Sprintf(`{"sessionId":%q,"type":"ping","modeId":"x","configId":"x","value":"x"}`, s), sent{session: s})
}

// optionsOf are the options of a question.
func optionsOf(q *question) (list []string) {
	var p struct {
		Options []struct {
			ID string `json:"optionId"`
		} `json:"options"`
	}
	_ = json.Unmarshal(q.raw, &p)
	for _, o := range p.Options {
		list = append(list, o.ID)
	}
	return list
}

// answerOne answers the newest open request of the agent, or one that is not
// open any more. It reports whether one was open. The mutex is held.
func (g *guest) answerOne() bool {
	for _, id := range slices.Backward(g.order) {
		if q := g.asks[id]; !q.done {
			g.answer(q)
			return true
		}
	}
	if n := len(g.order); n > 0 && !g.patient {
		g.answer(g.asks[g.order[g.rng.IntN(n)]])
	}
	return false
}

// answer answers a request of the agent. The mutex is held.
func (g *guest) answer(q *question) {
	q.done = true
	result := `"result":{"content":"what the editor has"}`
	if q.method != "fs/read_text_file" {
		options := optionsOf(q)
		option := options[0]
		if !g.patient && g.rng.IntN(3) == 0 {
			option = options[g.rng.IntN(len(options))]
		}
		result = fmt.Sprintf(`"result":{"outcome":{"outcome":"selected","optionId":%q}}`, option)
	}
	if !g.patient {
		result = pick(g.rng, result, result, result, result, result, result, result, `"result":{"outcome":{"outcome":"cancelled"}}`, `"result":null`, `"error":{"code":-32603,"message":"no"}`)
	}
	g.sendLocked(`{"jsonrpc":"2.0","id":` + q.id + `,` + result + `}`)
}
