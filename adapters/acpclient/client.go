// Package acpclient is the client end of ACP v1, for any agent: the debug
// client, the demo and tests use it. It decodes leniently, because it is
// pointed at agents that are being debugged.
package acpclient

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/berth-dev/berth/adapters/jsonrpc"
	"github.com/berth-dev/berth/core/domain"
)

// Handlers are called for what the agent sends. Any may be nil. Update and
// Raw run one at a time, in the order of the wire, and must not block;
// Permission may block and ends with its context.
type Handlers struct {
	Update     func(Update)
	Permission func(context.Context, PermissionRequest) Choice
}

// Info is what the client says of itself.
type Info struct {
	Name    string
	Title   string
	Version string
}

// Client is a connection to an agent.
type Client struct {
	conn   *jsonrpc.Conn
	h      Handlers
	info   Info
	served chan struct{} // closed when nothing is served any more
	err    error         // why; set before served is closed
	cancel context.CancelFunc
}

// Connect starts serving a connection to an agent over frames.
func Connect(frames jsonrpc.Frames, info Info, h Handlers) *Client {
	ctx, cancel := context.WithCancel(context.Background())
	c := &Client{
		conn: jsonrpc.NewConn(frames, jsonrpc.Options{Client: true}),
		h:    h, info: info, served: make(chan struct{}), cancel: cancel,
	}
	go func() { // joined by Close
		defer close(c.served)
		c.err = c.conn.Serve(ctx, c)
	}()
	return c
}

// Method finds what the agent may call.
func (c *Client) Method(name string) (jsonrpc.Method, bool) {
	switch name {
	case "session/update":
		return jsonrpc.Method{Notify: c.update}, true
	case "session/request_permission":
		return jsonrpc.Method{Admit: c.permission}, true
	}
	return jsonrpc.Method{}, false
}

// InputEnded does nothing: calls in flight fail by themselves.
func (c *Client) InputEnded(error) {}

func (c *Client) update(_ context.Context, params json.RawMessage) (jsonrpc.Task, error) {
	if c.h.Update == nil {
		return nil, nil
	}
	u, err := decodeUpdate(params)
	if err != nil {
		return nil, domain.Errorf(domain.InvalidArgument, "session/update cannot be read: %v", err)
	}
	c.h.Update(u)
	return nil, nil
}

func (c *Client) permission(_ context.Context, params json.RawMessage) (jsonrpc.Task, error) {
	var req PermissionRequest
	if err := json.Unmarshal(params, &req); err != nil {
		return nil, domain.Errorf(domain.InvalidArgument, "session/request_permission cannot be read: %v", err)
	}
	return func(ctx context.Context) (jsonrpc.Reply, error) {
		var choice Choice
		if c.h.Permission != nil {
			choice = c.h.Permission(ctx, req)
		}
		outcome := map[string]any{"outcome": "cancelled"}
		if choice.OptionID != "" {
			outcome = map[string]any{"outcome": "selected", "optionId": choice.OptionID}
		}
		return jsonrpc.Reply{Result: map[string]any{"outcome": outcome}}, nil
	}, nil
}

// call sends a request and decodes its result into out, unless out is nil.
func (c *Client) call(ctx context.Context, method string, params, out any) (json.RawMessage, error) {
	raw, err := c.conn.Call(ctx, method, params)
	if err != nil {
		return nil, err
	}
	if out == nil || len(raw) == 0 || string(raw) == "null" {
		return raw, nil
	}
	if err := json.Unmarshal(raw, out); err != nil {
		return raw, fmt.Errorf("the answer to %s cannot be read: %w", method, err)
	}
	return raw, nil
}

// Initialize agrees on protocol version 1.
func (c *Client) Initialize(ctx context.Context) (Initialized, error) {
	var in Initialized
	raw, err := c.call(ctx, "initialize", map[string]any{
		"protocolVersion": 1,
		"clientInfo":      map[string]any{"name": c.info.Name, "title": c.info.Title, "version": c.info.Version},
		"clientCapabilities": map[string]any{
			"fs":      map[string]any{"readTextFile": false, "writeTextFile": false},
			"session": map[string]any{"notices": map[string]any{}},
		},
	}, &in)
	in.Raw = raw
	return in, err
}

// Authenticate signs in by a way that the agent offers and does itself.
func (c *Client) Authenticate(ctx context.Context, methodID string) error {
	_, err := c.call(ctx, "authenticate", map[string]any{"methodId": methodID}, nil)
	return err
}

// AuthRequired reports whether an error is an agent's demand to sign in.
func AuthRequired(err error) bool {
	return errors.Is(err, &jsonrpc.RemoteError{Code: jsonrpc.CodeAuthRequired})
}

// NewSession opens a session in cwd and returns its id. params are further
// members of the request, such as agentAlias; they may be nil.
func (c *Client) NewSession(ctx context.Context, cwd string, params map[string]any) (string, error) {
	all := map[string]any{"cwd": cwd, "mcpServers": []any{}}
	for k, v := range params {
		all[k] = v
	}
	var out struct {
		SessionID string `json:"sessionId"`
	}
	if _, err := c.call(ctx, "session/new", all, &out); err != nil {
		return "", err
	}
	if out.SessionID == "" {
		return "", errors.New("the agent answered session/new without a sessionId")
	}
	return out.SessionID, nil
}

// Load opens a stored session; its history arrives as updates before it
// returns.
func (c *Client) Load(ctx context.Context, id, cwd string) error {
	_, err := c.call(ctx, "session/load", loadParams(id, cwd), nil)
	return err
}

// TakeOver is Load of a session that another client of the same gateway may
// have, which has it no more then.
func (c *Client) TakeOver(ctx context.Context, id, cwd string) error {
	params := loadParams(id, cwd)
	params["_meta"] = map[string]any{"berth": map[string]any{"takeover": true}}
	_, err := c.call(ctx, "session/load", params, nil)
	return err
}

func loadParams(id, cwd string) map[string]any {
	return map[string]any{"sessionId": id, "cwd": cwd, "mcpServers": []any{}}
}

// Prompt runs a turn with one text. When ctx ends the request is cancelled
// and the error is its cause; use Cancel to end a turn in an orderly way.
func (c *Client) Prompt(ctx context.Context, id, text string) (PromptResult, error) {
	var out PromptResult
	raw, err := c.call(ctx, "session/prompt", map[string]any{
		"sessionId": id, "prompt": []any{map[string]any{"type": "text", "text": text}},
	}, &out)
	out.Raw = raw
	if err == nil && out.StopReason == "" {
		err = errors.New("the agent answered session/prompt without a stopReason")
	}
	return out, err
}

// Cancel cancels the session's running turn; its Prompt then returns with the
// stop reason "cancelled".
func (c *Client) Cancel(ctx context.Context, id string) error {
	return c.conn.Notify(ctx, "session/cancel", map[string]any{"sessionId": id})
}

// Call sends any request, for what has no method here.
func (c *Client) Call(ctx context.Context, method string, params any) (json.RawMessage, error) {
	return c.conn.Call(ctx, method, params)
}

// Done is closed when the connection has ended.
func (c *Client) Done() <-chan struct{} { return c.conn.Done() }

// Close ends the connection and waits for it. It may be called again.
func (c *Client) Close() error {
	c.cancel()
	<-c.served
	return c.err
}
