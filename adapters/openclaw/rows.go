package openclaw

import (
	"context"
	"encoding/json"
	"time"

	"github.com/berth-dev/berth/adapters/jsonrpc"
	"github.com/berth-dev/berth/core/domain"
)

// row is what the Gateway says of a session.
type row struct {
	key, agent, label string
	title             string
	kind, channel     string
	parent, spawnedBy string
	cwd               string // where its tools work; "" for the agent's workspace
	updated           time.Time
	provider, model   string

	thinking, thinkingNow string // as set, and the default
	levels                []string
	fast                  string
	verbose, trace        string
	reasoning, usage      string
	elevated              string

	used, size int64 // tokens; used is -1 when stale
	cost       float64
	priced     bool
}

func rowOf(raw json.RawMessage) row {
	f := fieldsOf(raw)
	r := row{
		key: f.text("key"), agent: f.text("agentId"), label: f.text("label"),
		title: f.first("derivedTitle", "displayName", "label", "subject"),
		kind:  f.text("kind"), channel: f.text("channel"),
		parent: f.text("parentSessionKey"), spawnedBy: f.text("spawnedBy"),
		cwd:      or(f.text("spawnedCwd"), f.text("spawnedWorkspaceDir")),
		provider: f.text("modelProvider"), model: f.text("model"),
		thinking: f.text("thinkingLevel"), thinkingNow: f.text("thinkingDefault"), levels: f.strings("thinkingOptions"),
		fast: word(f["fastMode"]), verbose: f.text("verboseLevel"), trace: f.text("traceLevel"),
		reasoning: f.text("reasoningLevel"), usage: f.text("responseUsage"), elevated: f.text("elevatedLevel"),
		used: -1, size: f.number("contextTokens"),
	}
	if at := f.number("updatedAt"); at > 0 && at < 1<<53 {
		r.updated = time.UnixMilli(at).UTC()
	}
	if f.flag("totalTokensFresh") && f.has("totalTokens") {
		r.used = max(f.number("totalTokens"), 0)
	}
	if f.has("estimatedCostUsd") {
		r.priced = json.Unmarshal(f["estimatedCostUsd"], &r.cost) == nil
	}
	return r
}

// word is a setting that is true, false or a word.
func word(raw json.RawMessage) string {
	switch string(raw) {
	case "true":
		return "on"
	case "false":
		return "off"
	}
	return text(raw)
}

// describe asks for one session.
func (b *Bridge) describe(ctx context.Context, what, key string) (row, error) {
	f, err := b.call(ctx, what, "sessions.describe", describeParams{Key: key, Titles: true})
	if err != nil {
		return row{}, err
	}
	r := rowOf(f["session"])
	if r.key == "" {
		return row{}, domain.NoSession(domain.SessionID(cutID(key)))
	}
	return r, nil
}

type describeParams struct {
	Key    string `json:"key"`
	Titles bool   `json:"includeDerivedTitles"`
}

// find is the session with an id that the editor names.
func (b *Bridge) find(ctx context.Context, what, id string) (row, error) {
	if s := b.session(domain.SessionID(id)); s != nil {
		return b.describe(ctx, what, s.key)
	}
	if !isUUID(id) {
		return b.describe(ctx, what, id) // a bare key is one of the default agent's
	}
	f, err := b.call(ctx, what, "sessions.list", listParams{Search: bridgePart + id, Limit: 10, Archived: "all"})
	if err != nil {
		return row{}, err
	}
	for raw := range jsonrpc.Elements(f["sessions"]) {
		if r := rowOf(raw); idOf(r.key) == domain.SessionID(id) {
			return r, nil
		}
	}
	return row{}, domain.NoSession(domain.SessionID(id))
}

// tellRow tells the editor what a row says.
func (b *Bridge) tellRow(ctx context.Context, s *session, r row) {
	title := b.plainTitle(r.title)
	if title != "" || !r.updated.IsZero() {
		b.tell(ctx, s.id, domain.InfoChanged{Title: title, UpdatedAt: r.updated})
	}
	if r.used >= 0 && r.size > 0 {
		u := domain.UsageChanged{Used: min(r.used, r.size), Size: r.size}
		if r.priced {
			u.Cost = &domain.Cost{Amount: r.cost, Currency: "USD"}
		}
		b.tell(ctx, s.id, u)
	}
}
