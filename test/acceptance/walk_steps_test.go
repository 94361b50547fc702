package acceptance

import (
	"context"
	"encoding/base64"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// step does one thing a client might do.
func (c *walker) step() {
	if c.rng.IntN(3) == 0 && c.answerSomething() {
		return
	}
	switch n := c.rng.IntN(100); {
	case n < 26:
		c.write(c.prompt(c.someSession()))
	case n < 28: // twice in one write
		s := c.someSession()
		c.write(c.prompt(s), c.prompt(s))
	case n < 32: // and cancelled in the same write
		s := c.someSession()
		c.write(c.prompt(s), cancelLine(s))
	case n < 34:
		s := c.someSession()
		c.write(c.prompt(s), cancelLine(s), c.prompt(s))
	case n < 40:
		c.write(cancelLine(c.someSession()))
	case n < 43:
		c.write(`{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":` + c.someID() + `}}`)
	case n < 50:
		c.answerSomething()
	case n < 57:
		c.newSession()
	case n < 63:
		c.opening("session/load")
	case n < 67:
		c.opening("session/resume")
	case n < 71:
		c.simple("session/close")
	case n < 74:
		c.simple("session/stop")
	case n < 76:
		c.delete()
	case n < 79:
		c.request("session/list", `{}`)
	case n < 87:
		c.request(pick(c.rng, "session/update", "session/event"), fmt.Sprintf(`{"sessionId":%q,"type":"ci","text":"e%d","_meta":{"berth":{"context":%v}}}`,
			c.someSession(), c.rng.IntN(9), c.rng.IntN(2) == 0))
	case n < 91:
		c.write(c.garbage())
	case n < 93:
		c.request(pick(c.rng, "initialize", "authenticate", "session/set_mode", "_x/none", "session/fork"), `{"protocolVersion":1}`)
	case n < 94:
		if c.w.slow {
			c.pause.Store(c.rng.Int64N(int64(longestPause)))
		}
	case n < 96:
		c.leave()
	case n < 97:
		c.vanish()
	case n < 98:
		c.w.restart()
	default:
		time.Sleep(time.Duration(c.rng.IntN(90)) * time.Second)
	}
}

// restart ends every connection and the App, as the end of the process would,
// and starts another one.
func (w *walk) restart() {
	for len(w.clients) > 0 {
		if w.rng.IntN(2) == 0 {
			w.clients[0].leave()
		} else {
			w.clients[0].vanish()
		}
	}
	if err := w.run.app.Stop(context.Background()); err != nil {
		w.tell("stop: %v", err)
	}
	w.run.start()
}

func cancelLine(session string) string {
	return `{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":"` + session + `"}}`
}

// someSession is mostly one the client opened, or another one of the walk.
func (c *walker) someSession() string {
	c.w.mu.Lock()
	defer c.w.mu.Unlock()
	if n := len(c.mine); n > 0 && c.rng.IntN(5) > 0 {
		return c.mine[max(0, n-1-c.rng.IntN(2))]
	}
	if n := len(c.w.sessions); n > 0 && c.rng.IntN(20) > 0 {
		return c.w.sessions[max(0, n-1-c.rng.IntN(3))]
	}
	return "00000000-0000-4000-8000-000000000000"
}

func (c *walker) someID() string {
	if c.lastID == 0 || c.rng.IntN(6) == 0 {
		return pick(c.rng, `"nobody"`, `null`, `99999`, `-1`)
	}
	id := max(1, c.lastID-c.rng.IntN(5))
	if id%7 == 0 {
		return `"r-` + strconv.Itoa(id) + `"`
	}
	return strconv.Itoa(id)
}

func (c *walker) prompt(session string) string {
	c.w.prompts++
	text := "p" + strconv.Itoa(c.w.prompts)
	blocks := `[{"type":"text","text":"` + text + `"}`
	switch c.rng.IntN(10) {
	case 0:
		blob := base64.StdEncoding.EncodeToString([]byte("blob " + strconv.Itoa(c.rng.IntN(4))))
		blocks += `,{"type":"resource","resource":{"uri":"file:///x/b.bin","mimeType":"application/octet-stream","blob":"` + blob + `"}}`
	case 1:
		blocks += `,{"type":"resource_link","uri":"file://` + c.w.world.work + `/a.txt","name":"a.txt"}`
	case 2:
		blocks += `,{"type":"resource","resource":{"uri":"file:///y","text":"inline"}}`
	case 3:
		text = "/compact " + text
		blocks = `[{"type":"text","text":"` + text + `"}`
	}
	prompt := blocks + `]`
	if c.rng.IntN(25) == 0 {
		prompt = pick(c.rng, `[]`, `""`, `null`, `[{"type":"hologram"}]`, `{"text":"x"}`)
	}
	_, line := c.frame("session/prompt", `{"sessionId":"`+session+`","prompt":`+prompt+`}`, sent{session: session, text: text})
	return line
}

// newSession asks for a session, sometimes by a key.
func (c *walker) newSession() {
	meta, s := "", sent{}
	if c.rng.IntN(4) == 0 {
		key := "key" + strconv.Itoa(c.rng.IntN(3))
		reset := c.rng.IntN(3) == 0
		meta = fmt.Sprintf(`,"_meta":{"berth":{"sessionKey":%q,"resetSession":%v}}`, key, reset)
		s.key, s.reset = key, reset
	}
	_, line := c.frame("session/new", `{"cwd":"`+c.w.world.work+`","mcpServers":[]`+meta+`}`, s)
	c.write(line)
}

func (c *walker) opening(method string) {
	id := c.someSession()
	cwd := `"cwd":"` + c.w.world.work + `",`
	_, line := c.frame(method, `{"sessionId":"`+id+`",`+cwd+`"mcpServers":[]}`, sent{session: id})
	c.write(line)
}

func (c *walker) simple(method string) {
	id := c.someSession()
	c.w.mu.Lock()
	c.mine = slices.DeleteFunc(c.mine, func(s string) bool { return s == id })
	c.w.mu.Unlock()
	c.request(method, `{"sessionId":"`+id+`"}`)
}

// delete removes a session. From then on nothing is expected of it.
func (c *walker) delete() {
	id := c.someSession()
	c.w.lost[id] = true
	c.request("session/delete", `{"sessionId":"`+id+`"}`)
}

func (c *walker) garbage() string {
	return pick(c.rng, `{`, `hello`, ``, `[]`, `{"jsonrpc":"2.0"}`, `{"jsonrpc":"2.0","id":{},"method":"x"}`,
		`[{"jsonrpc":"2.0","id":1,"method":"initialize"}]`, `{"jsonrpc":"2.0","id":"zc-out-1","result":{}}`,
		`{"jsonrpc":"2.0","id":4711,"result":null}`, `{"jsonrpc":"2.0","method":"session/cancel","params":7}`,
		`{"jsonrpc":"2.0","id":5,"id":6,"method":"session/list"}`, "{\"jsonrpc\":\"2.0\",\"method\":\"\xff\"}", strings.Repeat("[", 300))
}

// answerSomething answers a request of the agent, the newest or one that may
// be long over, in one of the ways clients answer, or again. It reports
// whether there was one.
func (c *walker) answerSomething() bool {
	c.w.mu.Lock()
	n := len(c.asks)
	if n == 0 {
		c.w.mu.Unlock()
		return false
	}
	i := max(0, n-1-c.rng.IntN(2))
	ask := c.asks[i]
	if c.rng.IntN(8) > 0 {
		c.asks = append(c.asks[:i:i], c.asks[i+1:]...)
	}
	c.w.mu.Unlock()
	head := `{"jsonrpc":"2.0","id":` + string(ask.ID) + `,`
	switch ask.Method {
	case "session/request_permission":
		c.write(head + c.decision() + `}`)
	case "fs/read_text_file":
		c.write(head + c.buffer(ask) + `}`)
	default:
		c.write(head + pick(c.rng, `"result":{}`, `"result":null`, `"error":{"code":-32603,"message":"no"}`) + `}`)
	}
	return true
}

func (c *walker) decision() string {
	if c.rng.IntN(2) == 0 {
		return `"result":{"outcome":{"outcome":"selected","optionId":"allow-once"}}`
	}
	return pick(c.rng,
		`"result":{"outcome":{"outcome":"selected","optionId":"allow-always"}}`,
		`"result":{"outcome":{"outcome":"selected","optionId":"reject-once"}}`,
		`"result":{"outcome":{"outcome":"selected","optionId":"reject-always"}}`,
		`"result":{"outcome":{"outcome":"selected","optionId":"root"}}`,
		`"result":{"outcome":{"outcome":"cancelled"}}`,
		`"result":{"outcome":"allow-once"}`,
		`"result":null`,
		`"error":{"code":-32601,"message":"no"}`)
}

func (c *walker) buffer(ask message) string {
	_, path, _ := strings.Cut(string(ask.Params), `"path":"`)
	path, _, _ = strings.Cut(path, `"`)
	if c.rng.IntN(5) == 0 {
		return pick(c.rng, `"error":{"code":-32603,"message":"no"}`, `"result":{}`, `"result":{"content":7}`)
	}
	return onDisk(path)
}
