package openclaw

import (
	"context"
	"encoding/json"
	"strconv"

	"github.com/berth-dev/berth/adapters/jsonrpc"
	"github.com/berth-dev/berth/adapters/jsonrpc/acp1"
	"github.com/berth-dev/berth/core/domain"
)

// The methods that are sent.
const (
	methodUpdate     = "session/update"
	methodPermission = "session/request_permission"
)

// methods is what the editor may ask.
func (b *Bridge) methods() map[string]jsonrpc.Method {
	return map[string]jsonrpc.Method{
		"initialize":                {Admit: b.initialize, Flags: jsonrpc.Opens},
		"authenticate":              {Admit: b.authenticate},
		"session/new":               {Admit: later(b.newSession)},
		"session/load":              {Admit: later(b.load)},
		"session/resume":            {Admit: later(b.resume)},
		"session/list":              {Admit: later(b.list)},
		"session/close":             {Admit: b.closeSession},
		"session/delete":            {Admit: b.deleteSession},
		"session/prompt":            {Admit: b.prompt},
		"session/cancel":            {Notify: b.cancel},
		"session/set_mode":          {Admit: later(b.setMode)},
		"session/set_config_option": {Admit: later(b.setOption)},
	}
}

// later is a method whose work needs nothing of the read goroutine.
func later(serve func(context.Context, fields) (jsonrpc.Reply, error)) jsonrpc.Admit {
	return func(_ context.Context, params json.RawMessage) (jsonrpc.Task, error) {
		return func(ctx context.Context) (jsonrpc.Reply, error) { return serve(ctx, fieldsOf(params)) }, nil
	}
}

// initialize is answered at once, whether there is a Gateway or not. The
// version is 1, whatever was asked for.
func (b *Bridge) initialize(_ context.Context, params json.RawMessage) (jsonrpc.Task, error) {
	raw, versioned := fieldsOf(params)["protocolVersion"]
	if !versioned {
		return nil, bad("protocolVersion is required: send the integer 1")
	}
	if _, err := strconv.ParseUint(string(raw), 10, 16); err != nil {
		return nil, bad("protocolVersion must be an integer from 0 to 65535: send 1")
	}
	info := acp1.ReadClient(params)
	b.client.Store(&info)
	return func(context.Context) (jsonrpc.Reply, error) { return jsonrpc.Reply{Result: b.offer()}, nil }, nil
}

type initializeResult struct {
	Version      int            `json:"protocolVersion"`
	Capabilities capabilities   `json:"agentCapabilities"`
	AuthMethods  []struct{}     `json:"authMethods"`
	Info         agentInfo      `json:"agentInfo"`
	Meta         metaOf[berthI] `json:"_meta"`
}

type agentInfo struct {
	Name    string `json:"name"`
	Title   string `json:"title"`
	Version string `json:"version"`
}

type berthI struct {
	Gateway string `json:"gateway"`
	Limits  struct {
		MaxPromptBytes     int  `json:"maxPromptBytes"`
		MaxPromptBlobBytes int  `json:"maxPromptBlobBytes"`
		QueuesPrompts      bool `json:"queuesPrompts"`
	} `json:"limits"`
}

type capabilities struct {
	LoadSession bool `json:"loadSession"`
	Prompt      struct {
		Image           bool `json:"image"`
		Audio           bool `json:"audio"`
		EmbeddedContext bool `json:"embeddedContext"`
	} `json:"promptCapabilities"`
	MCP struct {
		HTTP bool `json:"http"`
		SSE  bool `json:"sse"`
	} `json:"mcpCapabilities"`
	Session struct {
		List   struct{} `json:"list"`
		Resume struct{} `json:"resume"`
		Close  struct{} `json:"close"`
		Delete struct{} `json:"delete"`
	} `json:"sessionCapabilities"`
}

// metaOf is _meta with our part.
type metaOf[T any] struct {
	Berth T `json:"berth"`
}

func (b *Bridge) offer() initializeResult {
	r := initializeResult{Version: 1, AuthMethods: []struct{}{}, Info: agentInfo(b.cfg.Info)}
	r.Capabilities.LoadSession = true
	r.Capabilities.Prompt.Image, r.Capabilities.Prompt.EmbeddedContext = true, true
	r.Meta.Berth.Gateway = "openclaw"
	r.Meta.Berth.Limits.MaxPromptBytes = maxPrompt
	r.Meta.Berth.Limits.MaxPromptBlobBytes = maxBlobs
	r.Meta.Berth.Limits.QueuesPrompts = true
	return r
}

// authenticate has no method to name: the Gateway is told who we are by the
// bridge itself.
func (b *Bridge) authenticate(context.Context, json.RawMessage) (jsonrpc.Task, error) {
	return nil, bad("no method is offered: the bridge signs in to the gateway by itself, with --token-file, bridge.token or BERTH_GATEWAY_TOKEN")
}

// bad is a refusal of what the editor sent.
func bad(format string, args ...any) error {
	return domain.Errorf(domain.InvalidArgument, format, args...)
}

// cancel ends the running prompt of a session and those that wait behind it.
// Each is answered at once.
func (b *Bridge) cancel(_ context.Context, params json.RawMessage) (jsonrpc.Task, error) {
	if s := b.session(domain.SessionID(fieldsOf(params).text("sessionId"))); s != nil {
		s.cancel(domain.CancelledByClient)
	}
	return nil, nil
}

// updateParams are the params of the session/update messages that show u.
func updateParams(id domain.SessionID, u domain.Update, to *domain.ClientInfo) []jsonrpc.Appender {
	var parts []domain.Update
	switch u := u.(type) {
	case domain.AgentText:
		for _, t := range acp1.Pieces(u.Text) {
			parts = append(parts, domain.AgentText{ID: u.ID, Text: t})
		}
	case domain.AgentThought:
		for _, t := range acp1.Pieces(u.Text) {
			parts = append(parts, domain.AgentThought{ID: u.ID, Text: t})
		}
	default:
		parts = []domain.Update{u}
	}
	var out []jsonrpc.Appender
	for _, part := range parts {
		if p, ok := acp1.UpdateParams(id, part, *to); ok {
			out = append(out, p)
		}
	}
	return out
}
