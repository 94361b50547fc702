package openclaw

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"strconv"
	"time"

	"github.com/berth-dev/berth/adapters/jsonrpc"
	"github.com/berth-dev/berth/core/domain"
)

// pageRows is how many sessions a page has unless the editor asks for fewer.
const pageRows = 100

type listParams struct {
	Limit      int    `json:"limit"`
	Offset     int    `json:"offset,omitempty"`
	Search     string `json:"search,omitempty"`
	Dir        string `json:"workspaceDir,omitempty"`
	Agent      string `json:"agentId,omitempty"`
	Archived   any    `json:"archived,omitempty"`
	Titles     bool   `json:"includeDerivedTitles,omitempty"`
	Configured bool   `json:"configuredAgentsOnly,omitempty"`
}

type listResult struct {
	Sessions []listRow `json:"sessions"`
	Next     string    `json:"nextCursor,omitempty"`
}

type listRow struct {
	SessionID domain.SessionID `json:"sessionId"`
	Cwd       string           `json:"cwd"`
	Title     string           `json:"title,omitempty"`
	UpdatedAt string           `json:"updatedAt,omitempty"`
	Meta      rowMeta          `json:"_meta"`
}

type rowMeta struct {
	SessionKey      string           `json:"sessionKey"`
	Kind            string           `json:"kind,omitempty"`
	Channel         string           `json:"channel,omitempty"`
	ParentSessionID domain.SessionID `json:"parentSessionId,omitempty"`
	Berth           rowBerth         `json:"berth"`
}

type rowBerth struct {
	Key   string `json:"key"`
	Agent string `json:"agent,omitempty"`
	Label string `json:"label,omitempty"`
	Model string `json:"model,omitempty"`
	// CwdUnknown says that the Gateway does not tell where the session works;
	// cwd is where the bridge does then, or what was asked for.
	CwdUnknown bool `json:"cwdUnknown,omitempty"`
}

// cursor is where a page begins. The Gateway's lists are in the order of the
// last change and move while they are read, so a cursor also says when the
// first page was read and which row came last: rows that changed since are
// known to have moved to the front.
type cursor struct {
	Offset int    `json:"o"`
	Last   string `json:"l"` // key
	Cwd    string `json:"c,omitempty"`
}

func (c cursor) String() string {
	raw, _ := json.Marshal(c)
	return base64.RawURLEncoding.EncodeToString(raw)
}

func readCursor(s, cwd string) (cursor, error) {
	var c cursor
	raw, err := base64.RawURLEncoding.DecodeString(s)
	if err == nil {
		err = json.Unmarshal(raw, &c)
	}
	if err != nil || c.Offset < 0 || c.String() != s {
		return c, bad("cursor is not one that session/list gave: leave it out to begin anew")
	}
	if c.Cwd != cwd {
		return c, bad("cursor belongs to a list with another cwd: leave it out to begin anew")
	}
	return c, nil
}

// list answers one page of the Gateway's sessions, those that changed last
// first. A page that begins where rows have moved goes back until it meets the
// last row of the page before, so that none is left out; one may come twice.
func (b *Bridge) list(ctx context.Context, p fields) (jsonrpc.Reply, error) {
	cwd := p.text("cwd")
	if cwd != "" && !isAbsolute(cwd) {
		return jsonrpc.Reply{}, bad("cwd must be an absolute path")
	}
	var from cursor
	if p.has("cursor") {
		var err error
		if from, err = readCursor(p.text("cursor"), cwd); err != nil {
			return jsonrpc.Reply{}, err
		}
	}
	size := pageRows
	meta := p.in("_meta")
	for _, n := range []string{"limit", "pageSize"} {
		if v := meta.number(n); v > 0 {
			size = int(min(v, pageRows))
		}
	}
	rows, total, err := b.page(ctx, listParams{
		Limit: size, Offset: from.Offset, Dir: cwd, Agent: b.cfg.Sessions.Agent, Titles: true, Configured: true,
	}, from.Last)
	if err != nil {
		return jsonrpc.Reply{}, err
	}
	out := listResult{Sessions: make([]listRow, 0, len(rows.list))}
	for _, r := range rows.list {
		out.Sessions = append(out.Sessions, b.listed(r, cwd))
	}
	if n := len(rows.list); n > 0 && total {
		out.Next = cursor{Offset: rows.offset + n, Last: rows.list[n-1].key, Cwd: cwd}.String()
	}
	return jsonrpc.Reply{Result: out}, nil
}

// rowsAt are rows of the Gateway's list, from an offset on.
type rowsAt struct {
	offset int
	list   []row
}

// moved bounds how far back a page looks for the end of the page before.
const moved = 50

// page reads a page; more reports whether another follows.
func (b *Bridge) page(ctx context.Context, p listParams, last string) (rows rowsAt, more bool, err error) {
	start := p.Offset
	if last != "" { // begin with the last row of the page before, if it is there still
		p.Offset, p.Limit = max(start-1, 0), p.Limit+1
	}
	for {
		f, err := b.call(ctx, "session/list", "sessions.list", p)
		if err != nil {
			return rows, false, err
		}
		rows = rowsAt{offset: p.Offset}
		for raw := range jsonrpc.Elements(f["sessions"]) {
			if r := rowOf(raw); r.key != "" {
				rows.list = append(rows.list, r)
			}
		}
		more = f.flag("hasMore")
		if last == "" {
			return rows, more, nil
		}
		found := false
		for i, r := range rows.list {
			if r.key == last {
				rows.offset, rows.list = rows.offset+i+1, rows.list[i+1:]
				if len(rows.list) > 0 || !more {
					return rows, more, nil
				}
				p.Offset, last = rows.offset, "" // it moved to the end of what was asked for
				found = true
				break
			}
		}
		if found {
			continue
		}
		// It is not where it was. It, and what was before it, can only have moved
		// to the front, which moves the others back, so nothing before the old
		// offset is new to the editor but what it will see when it asks anew; rows
		// that left the list move the others forward, which is why the page begins
		// earlier.
		if p.Offset == 0 || start-p.Offset >= moved {
			return rows, more, nil
		}
		back := min(moved, p.Offset)
		p.Offset, p.Limit = p.Offset-back, p.Limit+back
	}
}

// listed is a row as the editor is shown it.
func (b *Bridge) listed(r row, cwd string) listRow {
	out := listRow{
		SessionID: idOf(r.key), Cwd: or(r.cwd, cwd),
		Meta: rowMeta{
			SessionKey: r.key, Kind: r.kind, Channel: r.channel,
			Berth: rowBerth{Key: r.key, Agent: r.agent, Label: r.label, Model: r.model, CwdUnknown: r.cwd == ""},
		},
	}
	if s := b.session(out.SessionID); s != nil && out.Cwd == "" {
		out.Cwd, _ = s.places()
	}
	out.Cwd = or(out.Cwd, or(b.cfg.Home, "/"))
	out.Title = b.plainTitle(r.title)
	if !r.updated.IsZero() {
		out.UpdatedAt = r.updated.Format(time.RFC3339Nano)
	}
	if parent := or(r.spawnedBy, r.parent); parent != "" {
		out.Meta.ParentSessionID = idOf(parent)
	}
	return out
}

// quoted is a text in quotes, for messages.
func quoted(s string) string { return strconv.Quote(brief(s)) }
