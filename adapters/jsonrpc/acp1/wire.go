package acp1

import (
	"github.com/berth-dev/berth/core/domain"
)

// The results we send, as encoding/json writes them. Optional members are left
// out rather than null. Updates and requests of ours are appended by hand, see
// updates.go and permission.go.

// inBerth is a _meta that holds our namespace alone.
type inBerth[T any] struct {
	Berth T `json:"berth"`
}

type initializeResult struct {
	ProtocolVersion int            `json:"protocolVersion"`
	Capabilities    capabilities   `json:"agentCapabilities"`
	AuthMethods     []authMethod   `json:"authMethods"`
	AgentInfo       implementation `json:"agentInfo"`
	Meta            initializeMeta `json:"_meta"`
}

type capabilities struct {
	LoadSession bool                `json:"loadSession"`
	Prompt      promptCapabilities  `json:"promptCapabilities"`
	MCP         mcpCapabilities     `json:"mcpCapabilities"`
	Session     sessionCapabilities `json:"sessionCapabilities"`
	Auth        *authCapabilities   `json:"auth,omitempty"`
}

type authCapabilities struct {
	Logout *struct{} `json:"logout,omitempty"`
}

type promptCapabilities struct {
	Image           bool `json:"image"`
	Audio           bool `json:"audio"`
	EmbeddedContext bool `json:"embeddedContext"`
}

type mcpCapabilities struct {
	HTTP bool `json:"http"`
	SSE  bool `json:"sse"`
}

// sessionCapabilities hold an empty object for what is supported and nothing
// for what is not.
type sessionCapabilities struct {
	List                  *struct{} `json:"list,omitempty"`
	Delete                *struct{} `json:"delete,omitempty"`
	AdditionalDirectories *struct{} `json:"additionalDirectories,omitempty"`
	Resume                *struct{} `json:"resume,omitempty"`
	Close                 *struct{} `json:"close,omitempty"`
}

// authMethod is of the agent type without a Type, else "terminal".
type authMethod struct {
	Type        string    `json:"type,omitempty"`
	ID          string    `json:"id"`
	Name        string    `json:"name"`
	Description string    `json:"description,omitempty"`
	Args        []string  `json:"args,omitempty"`
	Meta        *authMeta `json:"_meta,omitempty"`
}

// authMeta is how clients were told of terminals before the protocol was.
type authMeta struct {
	Terminal terminalAuth `json:"terminal-auth"`
}

type terminalAuth struct {
	Label   string   `json:"label"`
	Command string   `json:"command"`
	Args    []string `json:"args"`
}

type implementation struct {
	Name    string `json:"name"`
	Title   string `json:"title,omitempty"`
	Version string `json:"version"`
}

type initializeMeta struct {
	Berth    initializeBerth `json:"berth"`
	Zeroclaw zeroclawInfo    `json:"zeroclaw"`
}

type initializeBerth struct {
	Dialect      string      `json:"dialect"`
	Agents       []agentInfo `json:"agents"`
	DefaultAgent string      `json:"defaultAgent,omitempty"`
	Limits       limits      `json:"limits"`
	Methods      []string    `json:"methods"`               // served beyond the protocol's own
	ObserveOnly  bool        `json:"observeOnly,omitempty"` // this client may list and watch, nothing else
}

type agentInfo struct {
	Alias       string `json:"alias"`
	Title       string `json:"title,omitempty"`
	Description string `json:"description,omitempty"`
	Model       string `json:"model,omitempty"`
	// Sandbox is there once it is known how this agent's commands are held.
	Sandbox *sandboxInfo `json:"sandbox,omitempty"`
}

type limits struct {
	MaxSessions        int  `json:"maxSessions"`
	SessionTimeoutSecs int  `json:"sessionTimeoutSecs"`
	MaxBlobBytes       int  `json:"maxBlobBytes"`
	MaxPromptBlobBytes int  `json:"maxPromptBlobBytes"`
	QueuesPrompts      bool `json:"queuesPrompts"`
}

type zeroclawInfo struct {
	MaxSessions        int    `json:"maxSessions"`
	SessionTimeoutSecs int    `json:"sessionTimeoutSecs"`
	DefaultModel       string `json:"defaultModel,omitempty"`
}

// openedResult answers session/new (with SessionID; WorkspaceDir in zeroclaw),
// load and resume.
type openedResult struct {
	SessionID    domain.SessionID     `json:"sessionId,omitempty"`
	WorkspaceDir string               `json:"workspaceDir,omitempty"`
	Meta         inBerth[openedBerth] `json:"_meta"`
}

type openedBerth struct {
	SessionID    domain.SessionID `json:"sessionId"`
	Key          string           `json:"key"`
	Label        string           `json:"label,omitempty"`
	Agent        string           `json:"agent"`
	WorkspaceDir string           `json:"workspaceDir"`
	Title        string           `json:"title,omitempty"`
	Model        string           `json:"model,omitempty"`
	ModelTitle   string           `json:"modelTitle,omitempty"`
	Offline      bool             `json:"offline,omitempty"` // the model is no language model
	Created      bool             `json:"created"`
	Sandbox      *sandboxInfo     `json:"sandbox,omitempty"`
	Notes        []string         `json:"notes,omitempty"`
	Running      domain.TurnID    `json:"running,omitempty"` // the turn that goes on
	Queued       []queuedTurn     `json:"queued,omitempty"`  // the prompts that wait behind it
}

// queuedTurn is a prompt that waits for its turn.
type queuedTurn struct {
	TurnID domain.TurnID `json:"turnId"`
	Text   string        `json:"text"`
}

func queuedTurns(list []domain.QueuedTurn) []queuedTurn {
	out := make([]queuedTurn, 0, len(list))
	for _, q := range list {
		out = append(out, queuedTurn{q.Turn, cut(domain.PromptText(q.Blocks), startLimit/64)})
	}
	return out
}

// sandboxInfo is how the session's commands are confined, as trying it showed.
type sandboxInfo struct {
	Posture domain.PostureWord `json:"posture"`
	Backend string             `json:"backend,omitempty"`
	Lacks   []string           `json:"lacks,omitempty"`
	Reason  string             `json:"reason,omitempty"`
}

func sandboxOf(p domain.Posture) *sandboxInfo {
	if p.Word == "" {
		return nil
	}
	return &sandboxInfo{Posture: p.Word, Backend: p.Backend, Lacks: p.Lacks, Reason: p.Reason}
}

func openedMeta(o domain.OpenedSession) inBerth[openedBerth] {
	return inBerth[openedBerth]{openedBerth{
		SessionID: o.Session.ID, Key: o.Session.Key, Label: o.Session.Label, Agent: o.Session.Agent,
		WorkspaceDir: o.Session.Cwd, Title: o.Session.Title, Model: o.Model.Ref.String(),
		ModelTitle: o.Model.Title, Offline: o.Model.Offline, Created: o.Created, Sandbox: sandboxOf(o.Posture), Notes: o.Notes,
		Running: o.Running, Queued: queuedTurns(o.Queued),
	}}
}

type listResult struct {
	Sessions   []sessionRow `json:"sessions"`
	NextCursor string       `json:"nextCursor,omitempty"`
}

type sessionRow struct {
	SessionID  domain.SessionID `json:"sessionId"`
	Cwd        string           `json:"cwd"`
	Additional []string         `json:"additionalDirectories,omitempty"`
	Title      string           `json:"title,omitempty"`
	UpdatedAt  string           `json:"updatedAt,omitempty"`
	Meta       rowMeta          `json:"_meta"`
}

// rowMeta repeats at its root what OpenClaw's clients read there.
type rowMeta struct {
	Berth           rowBerth         `json:"berth"`
	SessionKey      string           `json:"sessionKey"`
	Kind            string           `json:"kind"` // direct or subagent
	ParentSessionID domain.SessionID `json:"parentSessionId,omitempty"`
}

type rowBerth struct {
	Key             string           `json:"key"`
	Label           string           `json:"label,omitempty"`
	Agent           string           `json:"agent"`
	WorkspaceDir    string           `json:"workspaceDir"`
	Client          string           `json:"client,omitempty"`
	CreatedAt       string           `json:"createdAt,omitempty"`
	ParentSessionID domain.SessionID `json:"parentSessionId,omitempty"`
}

// promptResult answers session/prompt. SessionID and Content are zeroclaw's.
type promptResult struct {
	SessionID  domain.SessionID   `json:"sessionId,omitempty"`
	StopReason string             `json:"stopReason"`
	Content    *string            `json:"content,omitempty"`
	Meta       inBerth[turnBerth] `json:"_meta"`
}

type turnBerth struct {
	SessionID    domain.SessionID `json:"sessionId,omitempty"`
	TurnID       domain.TurnID    `json:"turnId,omitempty"`
	Content      string           `json:"content,omitempty"` // the final message
	Usage        *usage           `json:"usage,omitempty"`   // of the turn
	SessionUsage *usage           `json:"sessionUsage,omitempty"`
}

// usage has the names of the protocol's unstable Usage.
type usage struct {
	TotalTokens       int64 `json:"totalTokens"`
	InputTokens       int64 `json:"inputTokens"`
	OutputTokens      int64 `json:"outputTokens"`
	ThoughtTokens     int64 `json:"thoughtTokens,omitempty"`
	CachedReadTokens  int64 `json:"cachedReadTokens,omitempty"`
	CachedWriteTokens int64 `json:"cachedWriteTokens,omitempty"`
}

// extras are result fields the protocol does not have.
type extras struct {
	SessionID domain.SessionID `json:"sessionId"`
	Stopped   bool             `json:"stopped,omitempty"`
	Type      string           `json:"type,omitempty"`
	Status    string           `json:"status,omitempty"`
}

// placed puts extra fields where the dialect has them: at the root in
// zeroclaw, else in _meta.berth.
func (c *connection) placed(e extras) any {
	if c.state().zeroclaw() {
		return e
	}
	return struct {
		Meta inBerth[extras] `json:"_meta"`
	}{inBerth[extras]{e}}
}
