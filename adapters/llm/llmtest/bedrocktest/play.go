package bedrocktest

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"strings"

	"github.com/berth-dev/berth/adapters/llm/llmtest"
	"github.com/berth-dev/berth/adapters/llm/llmtest/bedrocktest/wire"
	"github.com/berth-dev/berth/core/domain"
	"github.com/berth-dev/berth/core/ports/porttest"
)

// signatureOf is the signature of a thought: the server knows its own again
// without keeping them.
func signatureOf(text string) string {
	sum := sha256.Sum256([]byte("signed " + text))
	return base64.StdEncoding.EncodeToString(sum[:])
}

// secret is a thought that only the server can read, told apart by a name.
func secret(name string) []byte {
	sum := sha256.Sum256([]byte("secret " + name))
	return append([]byte{0, 0xff, 0x80}, sum[:]...)
}

// player writes the events of one answer.
type player struct {
	w     *llmtest.Writer
	form  Form
	index int    // of the block at hand
	open  string // its kind, "" when none is open
	said  string // what it says
	sign  bool
	calls int
	name  string // makes ids distinct among answers
}

// play writes an answer.
func (s *lookout) play(w *llmtest.Writer, r porttest.Reply, _ []byte) {
	if r.Refusal != nil {
		class, words := errorType(r.Refusal.Kind)
		w.Header().Set("X-Amzn-Errortype", class+":http://internal.amazon.com/coral/com.amazon.bedrock/")
		w.Refuse(*r.Refusal, `{"message":`+wire.JS(words+r.Refusal.Words)+`}`)
		return
	}
	s.answers++
	p := &player{w: w, form: s.form, sign: r.Signed, name: fmt.Sprint(s.answers)}
	w.Begin("application/vnd.amazon.eventstream")
	if r.End == porttest.EndSilent && len(r.Parts) == 0 {
		w.Hang()
		return
	}
	p.event("messageStart", `{`+p.padding()+`"role":"assistant"}`)
	if p.form.Extra {
		p.event("weatherReport", `{"sun":true}`)
		w.Send(wire.Frame("", wire.Text(":message-type", "event"), wire.Text(":event-type", "ping"),
			wire.Value("yes", 0, ""), wire.Value("no", 1, ""), wire.Value("byte", 2, "1"), wire.Value("short", 3, "12"), wire.Value("int", 4, "1234"),
			wire.Value("long", 5, "12345678"), wire.Value("bytes", 6, "x"), wire.Value("when", 8, "12345678"), wire.Value("uuid", 9, "1234567812345678")))
	}
	for _, part := range r.Parts {
		p.part(part)
	}
	p.end(r)
	if r.Signed {
		s.remember(p.name, r)
	}
}

func (p *player) event(name, payload string) { p.w.Send(wire.Event(name, payload)) }

// padding is what hides the length of an event.
func (p *player) padding() string {
	if !p.form.Extra {
		return ""
	}
	return `"p":"abcdefgh","q":{"text":"no","delta":[{"text":1}]},`
}

func (p *player) part(part porttest.ReplyPart) {
	switch part := part.(type) {
	case porttest.SendText:
		p.say("text", `{"text":`+wire.JS(string(part))+`}`, string(part))
	case porttest.SendThought:
		p.say("thought", `{"reasoningContent":{"text":`+wire.JS(string(part))+`}}`, string(part))
	case porttest.SendCall:
		p.call(part)
	case porttest.Wait:
		p.w.Wait(part)
	}
}

// say sends a piece of a text or a thought, in a block of its kind.
func (p *player) say(kind, delta, said string) {
	if p.open != kind {
		p.close()
		p.open, p.said = kind, ""
		if p.form.Starts {
			p.event("contentBlockStart", fmt.Sprintf(`{%s"contentBlockIndex":%d,"start":{}}`, p.padding(), p.index))
		}
	}
	p.said += said
	p.delta(delta)
}

func (p *player) delta(delta string) {
	p.event("contentBlockDelta", fmt.Sprintf(`{%s"contentBlockIndex":%d,"delta":%s}`, p.padding(), p.index, delta))
}

// close ends the block at hand, with its signature if it is a thought.
func (p *player) close() {
	if p.open == "" {
		return
	}
	signed := p.open == "thought" && p.sign
	if signed {
		s := signatureOf(p.said)
		p.delta(`{"reasoningContent":{"signature":` + wire.JS(s[:10]) + `}}`)
		p.delta(`{"reasoningContent":{"signature":` + wire.JS(s[10:]) + `}}`)
	}
	p.stop()
	if signed { // another one that nobody can read
		p.delta(`{"reasoningContent":{"redactedContent":` + wire.JS(secret(p.name)) + `}}`)
		p.stop()
	}
	p.open = ""
}

func (p *player) stop() {
	p.event("contentBlockStop", fmt.Sprintf(`{%s"contentBlockIndex":%d}`, p.padding(), p.index))
	p.index++
}

func (p *player) call(c porttest.SendCall) {
	p.close()
	p.calls++
	id := c.ID
	if id == "" {
		id = fmt.Sprintf("tooluse_%s-%d", p.name, p.calls)
	}
	p.open = "call"
	p.event("contentBlockStart", fmt.Sprintf(`{"contentBlockIndex":%d,"start":{"toolUse":{"toolUseId":%s,"name":%s}}}`, p.index, wire.JS(id), wire.JS(c.Name)))
	for _, piece := range llmtest.Pieces(c.Args, c.Pieces) {
		p.delta(`{"toolUse":{"input":` + wire.JS(piece) + `}}`)
	}
}

func (p *player) end(r porttest.Reply) {
	switch r.End {
	case porttest.EndComplete:
		if p.calls > 0 {
			p.finish("tool_use", r.Usage)
		} else {
			p.finish("end_turn", r.Usage)
		}
	case porttest.EndLength:
		p.finish("max_tokens", r.Usage)
	case porttest.EndRefusal:
		if p.form.Guarded {
			p.finish("guardrail_intervened", r.Usage)
		} else {
			p.finish("content_filtered", r.Usage)
		}
	case porttest.EndCut:
	case porttest.EndBroken:
		p.w.Break()
	case porttest.EndSilent:
		p.w.Hang()
	case porttest.EndMalformed:
		whole := []byte(wire.Event("contentBlockDelta", `{"contentBlockIndex":0,"delta":{"text":"lost"}}`))
		whole[len(whole)/2] ^= 1
		p.w.Send(string(whole))
	case porttest.EndError:
		class, words := errorType(r.Fault.Kind)
		p.w.Send(wire.Exception(strings.ToLower(class[:1])+class[1:], words+r.Fault.Words))
	}
}

// finish ends a reply. Bedrock counts what comes from a cache apart.
func (p *player) finish(reason string, u domain.Usage) {
	p.close()
	p.event("messageStop", `{`+p.padding()+`"stopReason":"`+reason+`"}`)
	usage := ""
	if u != (domain.Usage{}) {
		usage = fmt.Sprintf(`,"usage":{"inputTokens":%d,"outputTokens":%d,"totalTokens":%d,"cacheReadInputTokens":%d,"cacheWriteInputTokens":%d}`,
			u.Input-u.CachedRead-u.CachedWrite, u.Output, u.Input+u.Output, u.CachedRead, u.CachedWrite)
	}
	p.event("metadata", `{"metrics":{"latencyMs":100}`+usage+`}`)
}
