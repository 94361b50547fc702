package transcript

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/berth-dev/berth/adapters/jsonrpc"
)

// FromFrames turns a recording into a script that plays the same client and
// expects the same of the agent. Ids become labels. What the agent made up and
// the client says back (session, tool call, message and terminal ids) becomes
// variables. Ambient updates are left out, chunks of text are put together,
// and of answers only what other agents would answer too is kept, none of the
// "_meta" in results: edit the rest to taste.
func FromFrames(frames []Frame) *Script {
	c := converter{client: firstClient, now: map[string]*recorded{}, made: map[string]string{}, names: map[string]int{}}
	for i := range frames {
		c.frame(&frames[i])
	}
	c.flush()
	dropUnneededLabels(c.out)
	s := &Script{Lines: c.out}
	for i := range s.Lines {
		s.Lines[i].N = i + 1
	}
	return s
}

// recorded is what is known of one client's connection.
type recorded struct {
	ours, theirs map[jsonrpc.ID]call // requests without an answer yet
	quiet        map[jsonrpc.ID]bool // those of the word quiet
}

type call struct{ label, method string }

type converter struct {
	out    []Line
	client string
	now    map[string]*recorded
	made   map[string]string // value the agent made up -> variable
	names  map[string]int    // how often a label or variable name was used
	chunks Line              // Says or Thinks that is being gathered; Op 0 if none
}

func compact(raw []byte) (json.RawMessage, error) {
	if !jsonrpc.Valid(raw) {
		return nil, fmt.Errorf("%.80s is not valid JSON", raw)
	}
	var flat bytes.Buffer
	err := json.Compact(&flat, raw)
	return flat.Bytes(), err
}

func (c *converter) add(l Line) {
	c.flush()
	c.out = append(c.out, l)
}

func (c *converter) flush() {
	if c.chunks.Op != Blank {
		c.out = append(c.out, c.chunks)
		c.chunks = Line{}
	}
}

// name returns a new name from a stem: call, call2, call3.
func (c *converter) name(stem string) string {
	c.names[stem]++
	if n := c.names[stem]; n > 1 {
		return fmt.Sprintf("%s%d", stem, n)
	}
	return stem
}

func (c *converter) frame(f *Frame) {
	client := f.Client
	if !labelName.MatchString(client) {
		client = firstClient
	}
	if client != c.client {
		c.add(Line{Op: Client, Text: client})
		c.client = client
	}
	r := c.now[client]
	if r == nil {
		r = &recorded{ours: map[jsonrpc.ID]call{}, theirs: map[jsonrpc.ID]call{}, quiet: map[jsonrpc.ID]bool{}}
		c.now[client] = r
	}
	m, err := jsonrpc.Parse(f.Data)
	if err == nil && m.Kind != jsonrpc.Response && !methodName.MatchString(m.Method) {
		err = fmt.Errorf("%q is no method of a script", m.Method)
	}
	switch {
	case f.Dir == ToAgent && err != nil:
		c.add(sent(f.Data))
	case err != nil:
		c.add(Line{Op: Comment, Text: " the agent sent what is no message: " + oneLine(f.Data)})
	case f.Dir == ToAgent:
		c.fromClient(r, m, f.Data)
	default:
		c.fromAgent(r, m, f.Data)
	}
}

// sent is the line for bytes that are no message.
func sent(data []byte) Line {
	text := string(data)
	if strings.TrimSpace(text) != text || strings.ContainsAny(text, "\n\r") || text == "" {
		return Line{Op: Raw, Text: text + "\n"}
	}
	return Line{Op: Send, Text: text}
}

func oneLine(data []byte) string { return strings.Join(strings.Fields(string(data)), " ") }

func (c *converter) fromClient(r *recorded, m jsonrpc.Message, data []byte) {
	switch m.Kind {
	case jsonrpc.Request:
		if m.Method == quietMethod {
			r.quiet[m.ID] = true
			c.add(Line{Op: Quiet})
			return
		}
		stem := "r"
		if m.Method == "session/prompt" {
			stem = "p"
		}
		label := c.name(stem)
		r.ours[m.ID] = call{label, m.Method}
		c.add(Line{Op: Request, Method: m.Method, Label: label, Value: c.sentValue(r, m.Params)})
	case jsonrpc.Notification:
		c.add(Line{Op: Notify, Method: m.Method, Value: c.sentValue(r, m.Params)})
	case jsonrpc.Response:
		ask, ok := r.theirs[m.ID]
		if !ok {
			c.add(sent(data))
			return
		}
		delete(r.theirs, m.ID)
		value, failed := outcome(m, data)
		c.add(Line{Op: Answer, Label: ask.label, Error: failed, Value: c.sentValue(r, value)})
	}
}

func (c *converter) fromAgent(r *recorded, m jsonrpc.Message, data []byte) {
	switch m.Kind {
	case jsonrpc.Request:
		label := c.name("q")
		r.theirs[m.ID] = call{label, m.Method}
		c.add(Line{Op: Ask, Method: m.Method, Label: label, Value: c.pattern(r, m.Params)})
	case jsonrpc.Notification:
		c.notification(r, m)
	case jsonrpc.Response:
		if r.quiet[m.ID] {
			delete(r.quiet, m.ID)
			return
		}
		value, failed := outcome(m, data)
		asked, ok := r.ours[m.ID]
		l := Line{Op: Response, Label: asked.label, Error: failed}
		if ok {
			delete(r.ours, m.ID)
		} else {
			l.ID = json.RawMessage(m.ID)
		}
		if !failed {
			value = essential(asked.method, value)
		}
		l.Value = c.pattern(r, value)
		c.add(l)
	}
}

func (c *converter) notification(r *recorded, m jsonrpc.Message) {
	u, isUpdate := updateOf(m)
	if isUpdate && slices.Contains(ambientKinds[:], u.Update.Kind) {
		return
	}
	op, gather := map[string]Op{"agent_message_chunk": Says, "agent_thought_chunk": Thinks}[u.Update.Kind]
	if !gather || u.Update.Content.Type != "text" {
		c.add(Line{Op: Update, Method: m.Method, Value: c.pattern(r, m.Params)})
		return
	}
	if c.chunks.Op != op {
		c.flush()
		c.chunks.Op = op
	}
	c.chunks.Text += u.Update.Content.Text
}

// outcome returns the result or error of a response.
func outcome(m jsonrpc.Message, data []byte) (value json.RawMessage, failed bool) {
	for name, v := range jsonrpc.Members(data) {
		if name == "error" {
			return v, true
		}
	}
	return m.Result, false
}

// essential leaves out what agents answer differently.
func essential(method string, result json.RawMessage) json.RawMessage {
	keep := map[string]string{"initialize": "protocolVersion", "session/new": "sessionId"}[method]
	for name, v := range jsonrpc.Members(result) {
		if name == keep {
			return append(append(append(json.RawMessage(`{"`), name...), `":`...), append(bytes.Clone(v), '}')...)
		}
	}
	if v, err := decode(result); err == nil {
		if object, ok := v.(map[string]any); ok && object["_meta"] != nil {
			delete(object, "_meta")
			return encode(object)
		}
	}
	return result
}

// madeUp are members whose values the agent invents, and the variables for them.
var madeUp = map[string]string{
	"sessionId": "sid", "toolCallId": "call", "messageId": "msg", "terminalId": "term", "elicitationId": "elicit",
}

// pattern turns a value of the agent's into a pattern: its inventions become
// variables, the rest means itself.
func (c *converter) pattern(r *recorded, raw json.RawMessage) json.RawMessage {
	return c.translate(r, raw, true)
}

// sentValue turns a value of the client's into one that is sent again.
func (c *converter) sentValue(r *recorded, raw json.RawMessage) json.RawMessage {
	return c.translate(r, raw, false)
}

func (c *converter) translate(r *recorded, raw json.RawMessage, fromAgent bool) json.RawMessage {
	if raw == nil {
		return nil
	}
	v, err := decode(raw)
	if err != nil {
		return raw
	}
	return encode(c.value(r, "", v, fromAgent))
}

func (c *converter) value(r *recorded, name string, v any, fromAgent bool) any {
	switch x := v.(type) {
	case map[string]any:
		for name := range x {
			x[name] = c.value(r, name, x[name], fromAgent)
		}
	case []any:
		for i := range x {
			x[i] = c.value(r, "", x[i], fromAgent)
		}
	case json.Number, string:
		if name == "requestId" {
			if label := r.labelOf(encode(x)); label != "" {
				return "$@" + label
			}
		}
		if s, ok := x.(string); ok {
			return c.word(name, s, fromAgent)
		}
	}
	return v
}

// word translates a text.
func (c *converter) word(name, s string, fromAgent bool) string {
	known, ok := c.made[s]
	if stem := madeUp[name]; !ok && stem != "" && fromAgent && s != "" {
		known, ok = c.name(stem), true
		c.made[s] = known
	}
	switch {
	case ok:
		return "$" + known
	case fromAgent:
		return literalText(s)
	}
	return variable.ReplaceAllStringFunc(s, func(v string) string {
		if v == "$$" {
			return "$$$$"
		}
		return "$" + v
	})
}

// labelOf returns the label of a request that is open.
func (r *recorded) labelOf(id json.RawMessage) string {
	if c, ok := r.ours[jsonrpc.ID(id)]; ok {
		return c.label
	}
	return r.theirs[jsonrpc.ID(id)].label
}

// dropUnneededLabels removes the labels of requests that are answered before
// the next one is sent, for those read better without.
func dropUnneededLabels(lines []Line) {
	for i := range lines {
		if lines[i].Op != Request && lines[i].Op != Ask {
			continue
		}
		want := map[Op]Op{Request: Response, Ask: Answer}[lines[i].Op]
		for j := i + 1; j < len(lines); j++ {
			l := &lines[j]
			if l.Op == want && l.Label == lines[i].Label {
				if l.Label[0] != 'p' {
					lines[i].Label, l.Label = "", ""
				}
				break
			}
			if l.Op == lines[i].Op || l.Op == want || l.Op == Client || bytes.Contains(l.Value, []byte(`"$@`+lines[i].Label+`"`)) {
				break
			}
		}
	}
}
