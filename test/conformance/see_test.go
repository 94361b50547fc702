package conformance

import (
	"encoding/json"
	"testing"

	"github.com/berth-dev/berth/adapters/jsonrpc"
	"github.com/berth-dev/berth/adapters/jsonrpc/transcript"
)

// seen is one frame of the agent, read.
type seen struct {
	jsonrpc.Message
	raw []byte
}

// fromAgent returns what the agent sent, in order.
func (o *outcome) fromAgent() []seen {
	var all []seen
	for _, f := range o.frames {
		if f.Dir == transcript.ToClient {
			m, _ := jsonrpc.Parse(f.Data) // the watch has judged it
			all = append(all, seen{m, f.Data})
		}
	}
	return all
}

// requests returns the methods the agent asked its client for, in order.
func (o *outcome) requests() []string {
	var methods []string
	for _, m := range o.fromAgent() {
		if m.Kind == jsonrpc.Request {
			methods = append(methods, m.Method)
		}
	}
	return methods
}

// updates returns the updates of a kind, all when it is "".
func (o *outcome) updates(kind string) []json.RawMessage {
	var all []json.RawMessage
	for _, m := range o.fromAgent() {
		if m.Method != "session/update" {
			continue
		}
		var p struct {
			Update json.RawMessage `json:"update"`
		}
		if json.Unmarshal(m.Params, &p) == nil && (kind == "" || text(p.Update, "sessionUpdate") == kind) {
			all = append(all, p.Update)
		}
	}
	return all
}

// result returns the result of the first answered request of a method.
func (o *outcome) result(t *testing.T, method string) json.RawMessage {
	t.Helper()
	open := map[jsonrpc.ID]bool{}
	for _, f := range o.frames {
		m, err := jsonrpc.Parse(f.Data)
		switch {
		case err != nil:
		case f.Dir == transcript.ToAgent && m.Method == method:
			open[m.ID] = true
		case f.Dir == transcript.ToClient && m.Kind == jsonrpc.Response && open[m.ID] && m.Error == nil:
			return m.Result
		}
	}
	t.Fatalf("%s has no result", method)
	return nil
}

// capabilities returns what the agent advertised.
func (o *outcome) capabilities(t *testing.T) map[string]any {
	t.Helper()
	can, _ := find(o.result(t, "initialize"), "agentCapabilities").(map[string]any)
	if can == nil {
		t.Fatal("no agentCapabilities")
	}
	return can
}

// onlyMembers demands that an object has these members, and none besides but
// _meta.
func onlyMembers(t *testing.T, what string, raw json.RawMessage, members ...string) {
	t.Helper()
	var object map[string]json.RawMessage
	if err := json.Unmarshal(raw, &object); err != nil || object == nil {
		t.Errorf("%s: %s is no object", what, raw)
		return
	}
	delete(object, "_meta")
	for _, name := range members {
		if _, ok := object[name]; !ok {
			t.Errorf("%s has no %s", what, name)
		}
		delete(object, name)
	}
	for name := range object {
		t.Errorf("%s has the member %q, which the protocol does not know", what, name)
	}
}

// envelope holds a response against JSON-RPC 2.0.
func envelope(t *testing.T, raw []byte) {
	t.Helper()
	var m map[string]json.RawMessage
	if err := json.Unmarshal(raw, &m); err != nil {
		t.Fatal(err)
	}
	_, hasID := m["id"]
	_, hasResult := m["result"]
	_, hasError := m["error"]
	if string(m["jsonrpc"]) != `"2.0"` || !hasID || hasResult == hasError || len(m) != 3 {
		t.Errorf("envelope: %s", raw)
	}
	if !hasError {
		return
	}
	var e struct {
		Code    *int64
		Message *string
	}
	if err := json.Unmarshal(m["error"], &e); err != nil || e.Code == nil || e.Message == nil {
		t.Errorf("error object: %s", raw)
	}
}

// authMethods returns the ids of the ways to sign in, by type.
func authMethods(t *testing.T, o *outcome) (agent, terminal []string) {
	t.Helper()
	methods, _ := find(o.result(t, "initialize"), "authMethods").([]any)
	for _, m := range methods {
		id, _ := in(m, "id").(string)
		switch kind := in(m, "type"); kind {
		case nil, "agent":
			agent = append(agent, id)
		case "terminal":
			terminal = append(terminal, id)
		default:
			t.Errorf("authMethods has the type %v", kind)
		}
	}
	return agent, terminal
}
