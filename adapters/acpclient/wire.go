package acpclient

import (
	"encoding/json"
	"strings"
)

// Update is one session/update, decoded as far as a person wants to see it.
// Raw is all of it.
type Update struct {
	Session string
	Kind    string // the discriminator, such as "agent_message_chunk"
	Raw     json.RawMessage

	MessageID  string
	Text       string // of a message or thought chunk; "[image]" and the like for other blocks
	ToolCallID string
	Title      string
	ToolKind   string
	Status     string
	Content    []ToolContent
	Entries    []PlanEntry
	Used, Size int64
	Severity   string
	Detail     string

	// Ended is the turn that an update of a history says the end of; "" for all
	// others. StopReason is "" when it failed.
	Ended      string
	StopReason string
}

// ToolContent is one item shown in a tool call.
type ToolContent struct {
	Type    string  `json:"type"` // content, diff, terminal
	Content block   `json:"content"`
	Path    string  `json:"path"`
	OldText *string `json:"oldText"` // nil for a new file
	NewText string  `json:"newText"`
}

// Text returns what a content item says, "" for diffs.
func (c ToolContent) Text() string { return c.Content.show() }

// PlanEntry is one line of a plan.
type PlanEntry struct {
	Content  string `json:"content"`
	Priority string `json:"priority"`
	Status   string `json:"status"`
}

// block is a content block of any kind.
type block struct {
	Type     string `json:"type"`
	Text     string `json:"text"`
	URI      string `json:"uri"`
	Name     string `json:"name"`
	Resource struct {
		URI  string `json:"uri"`
		Text string `json:"text"`
	} `json:"resource"`
}

func (b block) show() string {
	switch b.Type {
	case "text":
		return b.Text
	case "resource_link":
		return "[" + b.Name + "](" + b.URI + ")"
	case "resource":
		if b.Resource.Text != "" {
			return b.Resource.Text
		}
		return "[" + b.Resource.URI + "]"
	case "":
		return ""
	}
	return "[" + b.Type + "]"
}

// decodeUpdate reads the params of a session/update. Unknown kinds and fields
// are no error.
func decodeUpdate(params json.RawMessage) (Update, error) {
	var outer struct {
		SessionID string          `json:"sessionId"`
		Update    json.RawMessage `json:"update"`
	}
	if err := json.Unmarshal(params, &outer); err != nil {
		return Update{}, err
	}
	var in struct {
		Kind        string          `json:"sessionUpdate"`
		MessageID   string          `json:"messageId"`
		Content     json.RawMessage `json:"content"`
		ToolCallID  string          `json:"toolCallId"`
		Title       string          `json:"title"`
		ToolKind    string          `json:"kind"`
		Status      string          `json:"status"`
		Entries     []PlanEntry     `json:"entries"`
		Used        int64           `json:"used"`
		Size        int64           `json:"size"`
		Severity    string          `json:"severity"`
		Description string          `json:"description"`
		Meta        json.RawMessage `json:"_meta"`
	}
	if err := json.Unmarshal(outer.Update, &in); err != nil {
		return Update{}, err
	}
	u := Update{
		Session: outer.SessionID, Kind: in.Kind, Raw: outer.Update, MessageID: in.MessageID, ToolCallID: in.ToolCallID,
		Title: in.Title, ToolKind: in.ToolKind, Status: in.Status, Entries: in.Entries, Used: in.Used, Size: in.Size,
		Severity: in.Severity, Detail: in.Description,
	}
	if in.Kind == "session_info_update" {
		u.Ended, u.StopReason = endOf(in.Meta)
	}
	if len(in.Content) == 0 {
		return u, nil
	}
	if strings.HasPrefix(in.Kind, "tool_call") {
		return u, json.Unmarshal(in.Content, &u.Content)
	}
	var b block
	if err := json.Unmarshal(in.Content, &b); err != nil {
		return Update{}, err
	}
	u.Text = b.show()
	return u, nil
}

// endOf reads the end of a turn from the _meta of an update. What other agents
// have there is no error.
func endOf(meta json.RawMessage) (turn, stopReason string) {
	var in struct {
		Berth struct {
			TurnID     string `json:"turnId"`
			StopReason string `json:"stopReason"`
		} `json:"berth"`
	}
	if len(meta) == 0 || json.Unmarshal(meta, &in) != nil {
		return "", ""
	}
	return in.Berth.TurnID, in.Berth.StopReason
}

// PermissionRequest is what an agent asks.
type PermissionRequest struct {
	SessionID string `json:"sessionId"`
	ToolCall  struct {
		ToolCallID string        `json:"toolCallId"`
		Title      string        `json:"title"`
		Kind       string        `json:"kind"`
		Content    []ToolContent `json:"content"`
	} `json:"toolCall"`
	Options []PermissionOption `json:"options"`
}

// PermissionOption is one answer an agent offers.
type PermissionOption struct {
	OptionID string `json:"optionId"`
	Name     string `json:"name"`
	Kind     string `json:"kind"`
}

// Choice is the answer to a PermissionRequest; the zero value is "cancelled".
type Choice struct{ OptionID string }

// PromptResult is how a turn ended.
type PromptResult struct {
	StopReason string          `json:"stopReason"`
	Raw        json.RawMessage `json:"-"`
}

// Initialized is what an agent said of itself.
type Initialized struct {
	ProtocolVersion int `json:"protocolVersion"`
	AgentInfo       struct {
		Name    string `json:"name"`
		Title   string `json:"title"`
		Version string `json:"version"`
	} `json:"agentInfo"`
	AgentCapabilities struct {
		LoadSession         bool `json:"loadSession"`
		SessionCapabilities struct {
			List   *struct{} `json:"list"`
			Resume *struct{} `json:"resume"`
			Close  *struct{} `json:"close"`
		} `json:"sessionCapabilities"`
	} `json:"agentCapabilities"`
	AuthMethods []AuthMethod    `json:"authMethods"`
	Raw         json.RawMessage `json:"-"`
}

// AuthMethod is a way to sign in that an agent offers.
type AuthMethod struct {
	Type        string   `json:"type"` // "" and "agent": the agent does it itself
	ID          string   `json:"id"`
	Name        string   `json:"name"`
	Description string   `json:"description"`
	Args        []string `json:"args"` // of the agent, for type "terminal"
}

// InTerminal reports whether authenticate does not serve the method.
func (m AuthMethod) InTerminal() bool { return m.Type != "" && m.Type != "agent" }
