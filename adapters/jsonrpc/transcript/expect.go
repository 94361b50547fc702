package transcript

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	"github.com/berth-dev/berth/adapters/jsonrpc"
)

// Verdict is what a frame means for an expected line.
type Verdict uint8

// The verdicts.
const (
	Unmet      Verdict = iota // the line still waits
	Met                       // this is what it waited for
	Unmeetable                // what it waits for can never come now
	partly                    // a piece of it came (says, thinks)
)

// String returns the verdict in a word.
func (v Verdict) String() string {
	return [...]string{"unmet", "met", "unmeetable", "partly met"}[v]
}

// mismatch is an expectation that failed.
type mismatch struct {
	verdict Verdict
	why     string
	got     []byte // the frame that decided it; nil if none
}

func (m *mismatch) Error() string { return m.why }

// branch is a sequence of lines inside any. A plain expected line is an any
// with one branch of one line.
type branch struct {
	lines []*Line
	said  string // by the chunks of the current line so far
}

func branches(any *Line) []*branch {
	var out []*branch
	for i := range any.Body {
		l := &any.Body[i]
		b := &branch{}
		switch {
		case l.Op == Group:
			for j := range l.Body {
				b.lines = append(b.lines, &l.Body[j])
			}
		case l.Op.expects():
			b.lines = []*Line{l}
		}
		out = append(out, b)
	}
	return out
}

// advance sends what a branch has to send and returns the line it then waits
// for; nil when it is done.
func (p *player) advance(b *branch) (*Line, error) {
	for len(b.lines) > 0 {
		l := b.lines[0]
		if l.Op.expects() {
			return l, nil
		}
		b.lines = b.lines[1:]
		if l.Op.sends() {
			if err := p.send(l); err != nil {
				return l, err
			}
		}
	}
	return nil, nil
}

// await takes frames until every branch is done.
func (p *player) await(ctx context.Context, all []*branch) error {
	for {
		var waiting []*Line
		var open []*branch
		for _, b := range all {
			l, err := p.advance(b)
			if err != nil {
				return err
			}
			if l != nil {
				waiting, open = append(waiting, l), append(open, b)
			}
		}
		if len(open) == 0 {
			return nil
		}
		in, err := p.now.next(ctx)
		if err != nil {
			return p.silence(ctx, waiting, err)
		}
		if err := p.take(in, open, waiting); err != nil {
			return err
		}
	}
}

// silence is the failure of lines that nothing came for.
func (p *player) silence(ctx context.Context, waiting []*Line, err error) error {
	switch {
	case ctx.Err() != nil:
		return &mismatch{Unmet, fmt.Sprintf("nothing came: %v%s", err, listed(waiting)), nil}
	case atEnd(err):
		return &mismatch{Unmeetable, "the agent's side ended" + listed(waiting), nil}
	}
	return &mismatch{Unmeetable, fmt.Sprintf("the connection failed: %v%s", err, listed(waiting)), nil}
}

// listed names the lines still waiting, if there is more than the one the
// failure names anyway.
func listed(lines []*Line) string {
	if len(lines) < 2 {
		return ""
	}
	var b strings.Builder
	b.WriteString("; waiting for")
	for _, l := range lines {
		fmt.Fprintf(&b, "\n    line %d: %s", l.N, l.head())
	}
	return b.String()
}

// take gives a frame to the first branch that wants it.
func (p *player) take(in *incoming, open []*branch, waiting []*Line) error {
	if in.bad != nil {
		return &mismatch{Unmeetable, fmt.Sprintf("the agent sent what is no message: %v", in.bad), in.data}
	}
	var whys []string
	for i, b := range open {
		l := waiting[i]
		verdict, why := p.offer(l, b, in)
		switch verdict {
		case Met:
			b.lines, b.said = b.lines[1:], ""
			return nil
		case partly:
			return nil
		case Unmeetable:
			return &mismatch{Unmeetable, why, in.data}
		case Unmet:
			whys = append(whys, why)
		}
	}
	if p.skippable(in) {
		return nil
	}
	if len(whys) == 1 {
		return &mismatch{Unmeetable, whys[0], in.data}
	}
	for i, why := range whys {
		whys[i] = fmt.Sprintf("line %d: %s", waiting[i].N, why)
	}
	return &mismatch{Unmeetable, "no line of any wants it:\n    " + strings.Join(whys, "\n    "), in.data}
}

// offer asks what a frame means for an expected line.
func (p *player) offer(l *Line, b *branch, in *incoming) (Verdict, string) {
	kind := map[Op]jsonrpc.Kind{Response: jsonrpc.Response, Ask: jsonrpc.Request}[l.Op]
	if kind == 0 {
		kind = jsonrpc.Notification
	}
	if in.msg.Kind != kind {
		return Unmet, fmt.Sprintf("want a %v, got a %v", kind, in.msg.Kind)
	}
	switch l.Op {
	case Response:
		return p.offerResponse(l, in)
	case Says:
		return b.chunk(l, in, "agent_message_chunk")
	case Thinks:
		return b.chunk(l, in, "agent_thought_chunk")
	}
	if in.msg.Method != l.Method {
		return Unmet, fmt.Sprintf("want %s, got %s", l.Method, in.msg.Method)
	}
	if l.Op == Update && p.mode != Strict && ambient(in.msg) && !l.names(in.msg) {
		return Unmet, "an ambient update meets only a line that names its kind"
	}
	if why := p.compare(l, in.msg.Params); why != "" {
		return Unmet, why
	}
	if l.Op == Ask {
		p.bind(l, in.msg.ID)
	}
	return Met, ""
}

func (p *player) offerResponse(l *Line, in *incoming) (Verdict, string) {
	want := jsonrpc.ID(l.ID)
	if want == "" {
		want = p.now.ids[l.ref]
	}
	if !sameID(want, in.msg.ID) {
		return Unmet, fmt.Sprintf("want the response to request %s, got that to %s", want, in.msg.ID)
	}
	got := in.msg.Result
	if in.msg.Error != nil {
		for name, v := range jsonrpc.Members(in.data) {
			if name == "error" {
				got = v
			}
		}
	}
	switch {
	case l.Error && in.msg.Error == nil:
		return Unmeetable, "want an error, got a result"
	case !l.Error && in.msg.Error != nil:
		return Unmeetable, fmt.Sprintf("want a result, got error %d: %s", in.msg.Error.Code, in.msg.Error.Message)
	}
	if why := p.compare(l, got); why != "" {
		return Unmeetable, why
	}
	return Met, ""
}

// compare matches a line's pattern, or with Options.Update rewrites it.
func (p *player) compare(l *Line, got json.RawMessage) string {
	why := p.vars.match(l.Value, got)
	if why == "" || !p.opts.Update {
		return why
	}
	l.Value = rewrite(l.Value, got)
	return p.vars.match(l.Value, got)
}

func sameID(a, b jsonrpc.ID) bool {
	if a == b {
		return true
	}
	x, errX := decode([]byte(a))
	y, errY := decode([]byte(b))
	return errX == nil && errY == nil && reflect.DeepEqual(x, y)
}

// update is what this package knows of session/update.
type update struct {
	Update struct {
		Kind    string `json:"sessionUpdate"`
		Content struct {
			Type string `json:"type"`
			Text string `json:"text"`
		} `json:"content"`
	} `json:"update"`
}

// updateOf returns the update in a frame, if it is one.
func updateOf(m jsonrpc.Message) (u update, ok bool) {
	if m.Kind != jsonrpc.Notification || m.Method != "session/update" {
		return u, false
	}
	// Content that is a list, in other kinds, does not fit and does not matter.
	_ = jsonrpc.Unmarshal(m.Params, &u)
	return u, u.Update.Kind != ""
}

// names reports whether the line asks for updates of the kind m is.
func (l *Line) names(m jsonrpc.Message) bool {
	want, _ := updateOf(jsonrpc.Message{Kind: m.Kind, Method: m.Method, Params: l.Value})
	got, isUpdate := updateOf(m)
	return !isUpdate || want.Update.Kind == got.Update.Kind
}

// chunk adds a piece of text to what the line wants to hear.
func (b *branch) chunk(l *Line, in *incoming, kind string) (Verdict, string) {
	u, _ := updateOf(in.msg)
	if u.Update.Kind != kind || u.Update.Content.Type != "text" {
		return Unmet, "want text as " + kind
	}
	said := b.said + u.Update.Content.Text
	switch {
	case said == l.Text:
		return Met, ""
	case strings.HasPrefix(l.Text, said):
		b.said = said
		return partly, ""
	}
	return Unmet, fmt.Sprintf("text: want %q, got %q", l.Text, said)
}
