package acp1

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/berth-dev/berth/adapters/jsonrpc"
	"github.com/berth-dev/berth/core/domain"
)

// list serves session/list. The two filters are read strictly: a filter that
// is misread silently would show other sessions than were asked for.
func (c *connection) list(_ context.Context, params json.RawMessage) (jsonrpc.Task, error) {
	p := objectOf(params)
	var q domain.SessionQuery
	if raw := p["cwd"]; !absent(raw) {
		cwd, ok := stringOf(raw)
		if !ok {
			return nil, domain.Errorf(domain.InvalidArgument, "cwd must be a string")
		}
		if !filepath.IsAbs(cwd) {
			return nil, domain.Errorf(domain.InvalidArgument, "cwd %q is not an absolute path", brief(cwd))
		}
		q.Cwd = cwd
	}
	if raw := p["cursor"]; !absent(raw) {
		text, _ := stringOf(raw)
		cursor, ok := parseCursor(text)
		if !ok {
			return nil, domain.Errorf(domain.InvalidArgument,
				"cursor is not one this agent gave out: leave it out to start at the newest session")
		}
		q.After = &cursor
	}
	q.Limit = pageLimit(p.in("_meta"))
	return func(ctx context.Context) (jsonrpc.Reply, error) {
		if q.Cwd != "" {
			q.Cwd = c.p.Roots.Canonical(q.Cwd) // may look at the disk
		}
		page, err := c.p.Sessions.List(ctx, c.client, q)
		if err != nil {
			return jsonrpc.Reply{}, c.explain(err, "")
		}
		return jsonrpc.Reply{Result: listed(page)}, nil
	}, nil
}

// pageLimit reads the page size from _meta.berth.limit, or where OpenClaw's
// clients put it; 0 when none is asked for.
func pageLimit(m object) int {
	for _, raw := range []json.RawMessage{m.in("berth")["limit"], m["limit"], m["pageSize"]} {
		if n, err := strconv.ParseFloat(string(raw), 64); err == nil && n >= 1 {
			return int(min(n, 200))
		}
	}
	return 0
}

func listed(page domain.SessionPage) listResult {
	result := listResult{Sessions: make([]sessionRow, 0, len(page.Sessions))}
	for _, s := range page.Sessions {
		result.Sessions = append(result.Sessions, rowOf(s))
	}
	if page.Next != nil {
		result.NextCursor = formatCursor(*page.Next)
	}
	return result
}

func rowOf(s domain.Session) sessionRow {
	row := sessionRow{
		SessionID: s.ID, Cwd: s.CwdGiven, Additional: s.Additional, Title: s.Title,
		UpdatedAt: stamp(s.UpdatedAt),
		Meta: rowMeta{
			Berth: rowBerth{
				Key: s.Key, Label: s.Label, Agent: s.Agent, WorkspaceDir: s.Cwd, Client: s.Client,
				CreatedAt: stamp(s.CreatedAt), ParentSessionID: s.Parent,
			},
			SessionKey: s.Key, Kind: "direct", ParentSessionID: s.Parent,
		},
	}
	if s.Parent != "" {
		row.Meta.Kind = "subagent"
	}
	// What the client spelled is what it compares with; "." is no path to it.
	if !filepath.IsAbs(row.Cwd) {
		row.Cwd = s.Cwd
	}
	return row
}

// stamp writes a time as ISO 8601 in UTC; "" for the zero time.
func stamp(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339Nano)
}

// A cursor is the place in the list order, with a version so that a later
// order can tell old cursors apart: "1:<microseconds>:<id>" in base64url.
// Clients must treat it as opaque, so only exactly what formatCursor writes is
// accepted.
const cursorVersion = "1"

func formatCursor(c domain.SessionCursor) string {
	text := cursorVersion + ":" + strconv.FormatInt(c.UpdatedAt.UnixMicro(), 10) + ":" + string(c.ID)
	return base64.RawURLEncoding.EncodeToString([]byte(text))
}

func parseCursor(s string) (domain.SessionCursor, bool) {
	text, err := base64.RawURLEncoding.Strict().DecodeString(s)
	if err != nil {
		return domain.SessionCursor{}, false
	}
	version, rest, _ := strings.Cut(string(text), ":")
	micros, id, _ := strings.Cut(rest, ":")
	at, err := strconv.ParseInt(micros, 10, 64)
	if err != nil || version != cursorVersion || !domain.SessionID(id).Valid() {
		return domain.SessionCursor{}, false
	}
	c := domain.SessionCursor{UpdatedAt: time.UnixMicro(at).UTC(), ID: domain.SessionID(id)}
	return c, formatCursor(c) == s
}
