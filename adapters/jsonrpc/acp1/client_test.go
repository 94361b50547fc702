package acp1

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"testing"

	"github.com/berth-dev/berth/adapters/jsonrpc"
	"github.com/berth-dev/berth/core/domain"
	"github.com/berth-dev/berth/core/ports"
	"github.com/berth-dev/berth/core/ports/porttest"
)

func TestClient(t *testing.T) {
	t.Run("acp", func(t *testing.T) {
		porttest.Client(porttest.Bubble(t), porttest.ClientHarness{Connect: connector(`"protocolVersion":1,`)})
	})
	t.Run("zeroclaw", func(t *testing.T) {
		porttest.Client(porttest.Bubble(t), porttest.ClientHarness{
			Connect: connector(`"protocolVersion":0,`), WithdrawalRefuses: true,
		})
	})
}

// farEnd is the recording peer of the suite: the other end of a real
// connection, which reads only when it is asked for the next thing.
type farEnd struct {
	t     porttest.TB
	wire  *wire
	check *Checker
}

// connector serves a connection, opens it with the capabilities of info and
// takes hold of the client that the services are given.
func connector(version string) func(porttest.TB, domain.ClientInfo) (ports.Client, porttest.ClientPeer) {
	return func(t porttest.TB, info domain.ClientInfo) (ports.Client, porttest.ClientPeer) {
		w := newWorld()
		p := &farEnd{t: t, wire: newWire(), check: NewChecker()}
		p.wire.out = make(chan []byte, 4)
		ended := make(chan error, 1)
		go func() { ended <- Serve(context.WithoutCancel(t.Context()), p.wire, w.params()) }()
		t.Cleanup(func() {
			p.Leave()
			<-ended
		})
		p.exchange(`"id":0,"method":"initialize","params":{` + version + capabilitiesOf(info) + `}`)
		p.exchange(`"id":1,"method":"session/new","params":{"cwd":"/proj","mcpServers":[]}`)
		return w.client, p
	}
}

// capabilitiesOf is what a client with this info says in initialize.
func capabilitiesOf(i domain.ClientInfo) string {
	notices := "null"
	if i.Notices {
		notices = "{}"
	}
	return fmt.Sprintf(`"clientInfo":{"name":%q,"title":%q,"version":%q},"clientCapabilities":{`+
		`"fs":{"readTextFile":%v,"writeTextFile":%v},"session":{"notices":%s}}`,
		i.Name, i.Title, i.Version, i.ReadFiles, i.WriteFiles, notices)
}

func (p *farEnd) exchange(request string) {
	p.send(request)
	m := p.read(p.t.Context())
	if m.Kind != jsonrpc.Response || m.Error != nil {
		p.t.Fatalf("%s: %v", request, m.Error)
	}
}

func (p *farEnd) send(members string) {
	frame := []byte(`{"jsonrpc":"2.0",` + members + `}`)
	p.check.Client(frame)
	select {
	case p.wire.in <- frame:
	case <-p.wire.closed:
	}
}

func (p *farEnd) read(ctx context.Context) jsonrpc.Message {
	select {
	case f := <-p.wire.out:
		if err := p.check.Agent(f); err != nil {
			p.t.Errorf("frame %.300s: %v", f, err)
		}
		m, err := jsonrpc.Parse(f)
		if err != nil {
			p.t.Errorf("frame %.300s: %v", f, err)
		}
		return m
	case <-ctx.Done():
		return jsonrpc.Message{}
	}
}

// Next reads one message and says it in domain terms.
func (p *farEnd) Next(ctx context.Context) (porttest.Received, error) {
	m := p.read(ctx)
	params := objectOf(m.Params)
	r := porttest.Received{Session: domain.SessionID(params.text("sessionId"))}
	switch m.Method {
	case methodUpdate:
		r.Update = readUpdate(params.in("update"))
	case methodPermission:
		r.Token = string(m.ID)
		r.Ask = &domain.PermissionRequest{Session: r.Session, Call: readCall(params.in("toolCall"))}
		for el := range jsonrpc.Elements(params["options"]) {
			o := objectOf(el)
			r.Ask.Options = append(r.Ask.Options, domain.PermissionOption{
				ID: o.text("optionId"), Name: o.text("name"), Kind: domain.OptionKind(o.text("kind")),
			})
		}
	case "$/cancel_request":
		r.Token = string(params["requestId"])
	default:
		return r, io.ErrUnexpectedEOF
	}
	return r, nil
}

// readUpdate reads the kinds of update the suite sends.
func readUpdate(u object) domain.Update {
	id := domain.MessageID(u.text("messageId"))
	switch u.text("sessionUpdate") {
	case "agent_message_chunk":
		return domain.AgentText{ID: id, Text: u.in("content").text("text")}
	case "agent_thought_chunk":
		return domain.AgentThought{ID: id, Text: u.in("content").text("text")}
	case "tool_call":
		return readCall(u)
	case "tool_call_update":
		return domain.CallChanged{ID: domain.CallID(u.text("toolCallId")), Status: domain.CallStatus(u.text("status"))}
	}
	return nil
}

func readCall(u object) domain.CallOpened {
	c := domain.CallOpened{
		ID: domain.CallID(u.text("toolCallId")), Name: u.text("name"), Title: u.text("title"),
		Kind: domain.ToolKind(u.text("kind")), Status: domain.CallStatus(u.text("status")),
	}
	for el := range jsonrpc.Elements(u["content"]) {
		o := objectOf(el)
		if o.text("type") == "diff" {
			c.Content = append(c.Content, domain.Diff{
				Path: o.text("path"), OldText: o.text("oldText"), NewText: o.text("newText"), Created: kindOf(o["oldText"]) == 'n',
			})
		}
	}
	return c
}

func (p *farEnd) result(q porttest.Received, result string) {
	p.send(`"id":` + q.Token + `,"result":` + result)
}

func (p *farEnd) Answer(q porttest.Received, option string) {
	id, err := json.Marshal(option)
	if err != nil {
		p.t.Fatalf("option %q: %v", option, err)
	}
	p.result(q, `{"outcome":{"outcome":"selected","optionId":`+string(id)+`}}`)
}
func (p *farEnd) Withdraw(q porttest.Received) {
	p.result(q, `{"outcome":{"outcome":"cancelled"}}`)
}
func (p *farEnd) Fail(q porttest.Received) {
	p.send(`"id":` + q.Token + `,"error":{"code":-32603,"message":"no dialogs here"}`)
}
func (p *farEnd) Garble(q porttest.Received) { p.result(q, `{"outcome":"allow_once"}`) }
func (p *farEnd) Stall()                     {} // it reads only when asked
func (p *farEnd) Leave()                     { _ = p.wire.Close() }
