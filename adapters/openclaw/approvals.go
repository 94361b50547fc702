package openclaw

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/berth-dev/berth/adapters/jsonrpc"
	"github.com/berth-dev/berth/adapters/jsonrpc/acp1"
	"github.com/berth-dev/berth/core/domain"
)

// The Gateway's answers to a permission request.
const (
	allowOnce   = "allow-once"
	allowAlways = "allow-always"
	deny        = "deny"
)

// ask is a permission request that the editor has before it.
type ask struct {
	id     string
	cancel context.CancelCauseFunc
}

// errWithdrawn is why a request is not the editor's to answer any more.
var errWithdrawn = errors.New("the permission request was withdrawn")

// mostAsks bounds the requests that an editor has before it at a time.
const mostAsks = 64

// approvalAsked puts a request of the Gateway's before the editor, if it is
// one of a run that the editor asked for. Others are for others to answer.
func (b *Bridge) approvalAsked(p fields) {
	id, q := p.text("id"), p.in("request")
	t := b.runOf(q)
	if id == "" || t == nil || t.wasOver() {
		return
	}
	ctx, cancel := context.WithCancelCause(t.ctx)
	b.mu.Lock()
	if full := len(b.asks) >= mostAsks; full || b.asks[id] != nil || b.answered[id] {
		b.mu.Unlock()
		cancel(nil)
		if full {
			b.cfg.Log("permission request %s: %d wait for the editor already", id, mostAsks)
		}
		return
	}
	b.asks[id] = &ask{id, cancel}
	b.mu.Unlock()
	b.side.Go(func() { // ends with the run, or the bridge
		defer cancel(nil)
		b.permit(ctx, t, id, p, q)
		b.mu.Lock()
		delete(b.asks, id)
		b.mu.Unlock()
	})
}

// runOf finds the run that a request belongs to: the one it names, or the only
// one of its session.
func (b *Bridge) runOf(q fields) *turn {
	key, run := q.text("sessionKey"), q.text("runId")
	var only *turn
	for _, t := range b.live() {
		if !t.own {
			continue
		}
		if run != "" && t.runID() == run {
			return t
		}
		if run == "" && key != "" && t.session.key == key {
			if only != nil {
				return nil
			}
			only = t
		}
	}
	return only
}

// approvalOver withdraws a request.
func (b *Bridge) approvalOver(id, why string) {
	b.mu.Lock()
	a := b.asks[id]
	if b.answered != nil {
		b.answered[id] = true
	}
	b.mu.Unlock()
	if a != nil {
		b.cfg.Log("permission request %s: %s", id, why)
		a.cancel(errWithdrawn)
	}
}

// permit asks the editor and gives the Gateway its answer. Whatever is not
// clearly a yes is a no.
func (b *Bridge) permit(ctx context.Context, t *turn, id string, p, q fields) {
	asking := ctx
	if d := lifeOf(p); d > 0 {
		var stop context.CancelFunc
		asking, stop = context.WithTimeoutCause(ctx, d, errWithdrawn)
		defer stop()
	}
	r, ok := t.permission(id, q)
	if !ok {
		b.decide(ctx, id, deny)
		return
	}
	raw, err := b.conn.Call(asking, methodPermission, acp1.PermissionParams(r))
	decision := deny
	var remote *jsonrpc.RemoteError
	switch {
	case err == nil:
		if d := acp1.ReadDecision(raw, r.Options); d.Outcome == domain.Selected {
			decision = d.Option
		}
	case errors.Is(context.Cause(asking), errWithdrawn):
		return // the Gateway knows
	case errors.As(err, &remote):
		b.cfg.Log("the editor could not ask for permission: %v", err)
	}
	b.decide(ctx, id, decision)
}

// lifeOf is how long a request may be answered, 0 when the Gateway does not say.
// Its clock may differ from ours, so that only the time between two of its own
// counts. What has waited before it was asked for is not known.
func lifeOf(p fields) time.Duration {
	from, to := p.number("createdAtMs"), p.number("expiresAtMs")
	if from <= 0 || to <= from {
		return 0
	}
	return time.Duration(min(to-from, mostAsked)) * time.Millisecond
}

// mostAsked bounds it, in milliseconds: a day.
const mostAsked = 24 * 60 * 60 * 1000

type resolveApproval struct {
	ID       string `json:"id"`
	Decision string `json:"decision"`
}

// decideLimit is how long a Gateway may take to hear of a decision. A decision
// that it does not hear of is a no, when the request expires.
const decideLimit = 2 * time.Minute

// decide tells the Gateway, again if the connection is lost meanwhile. A yes
// that does not get there before ctx ends, with the turn, is a no.
func (b *Bridge) decide(ctx context.Context, id, decision string) {
	telling, cancel := context.WithTimeout(b.life, decideLimit)
	defer cancel()
	for try := 1; ; try++ {
		l, err := b.gw.link(telling)
		if err == nil {
			if ctx.Err() != nil {
				decision = deny
			}
			_, err = l.call(telling, "exec.approval.resolve", resolveApproval{id, decision})
		}
		if errors.Is(err, errLost) && try < mostTries && telling.Err() == nil {
			continue
		}
		if err != nil {
			b.cfg.Log("exec.approval.resolve: %v", err)
		}
		return
	}
}

// permission is what the editor is asked: the call as it was told, with all
// that the Gateway says about the command. A request that names no call is one
// itself. Of a run that is over nothing is told any more.
func (t *turn) permission(ask string, q fields) (r domain.PermissionRequest, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed || t.out != nil {
		return r, false
	}
	r = domain.PermissionRequest{Session: t.session.id, Options: optionsOf(q)}
	command := q.text("command")
	c := t.call(or(q.text("toolCallId"), "approval:"+ask))
	if !c.told {
		t.open(c, "exec", rawOf(map[string]string{"command": command}))
	}
	r.Call = c.opened
	if command != "" {
		r.Call.Title = shortened(command)
	}
	r.Call.Status = domain.CallPending
	r.Reason = reasonOf(command, q)
	return r, true
}

// reasonOf is what there is to know before one says yes.
func reasonOf(command string, q fields) string {
	lines := []string{"The gateway asks before it runs this command:", "", domain.Fenced("", command)}
	add := func(name, value string) {
		if value = strings.TrimSpace(value); value != "" {
			lines = append(lines, name+": "+oneLine(value))
		}
	}
	add("Directory", q.text("cwd"))
	add("Program", q.text("resolvedPath"))
	add("Host", q.text("host"))
	add("Node", q.text("nodeId"))
	add("Warning", q.text("warningText"))
	for _, w := range q.in("commandAnalysis").strings("warningLines") {
		add("Warning", w)
	}
	return strings.Join(lines, "\n")
}

// optionsOf are the answers that the Gateway takes.
func optionsOf(q fields) []domain.PermissionOption {
	allowed := q.strings("allowedDecisions")
	if len(allowed) == 0 {
		allowed = []string{allowOnce, deny}
	}
	if !slices.Contains(allowed, deny) {
		allowed = append(allowed, deny) // that can always be said
	}
	var out []domain.PermissionOption
	for _, o := range []domain.PermissionOption{
		{ID: allowOnce, Name: "Allow once", Kind: domain.AllowOnce},
		{ID: allowAlways, Name: "Always allow this command", Kind: domain.AllowAlways},
		{ID: deny, Name: "Deny", Kind: domain.RejectOnce},
	} {
		if slices.Contains(allowed, o.ID) {
			out = append(out, o)
		}
	}
	return out
}

// reviewApprovals compares the open requests with the Gateway's, after a
// connection was lost: those that are over are withdrawn, those that are new
// are asked. What the Gateway tells while the list is on its way is newer than
// the list.
func (b *Bridge) reviewApprovals(ctx context.Context) {
	b.mu.Lock()
	before := slices.Collect(maps.Keys(b.asks))
	b.answered = map[string]bool{}
	b.mu.Unlock()
	defer func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.answered = nil
	}()
	raw, err := b.gw.call(ctx, "exec.approval.list", struct{}{})
	if err != nil {
		b.cfg.Log("exec.approval.list: %v", err)
		return
	}
	list := raw
	if len(raw) > 0 && raw[0] == '{' {
		f := fieldsOf(raw)
		for _, n := range []string{"approvals", "items", "pending"} {
			if len(f[n]) > 0 {
				list = f[n]
				break
			}
		}
	}
	if len(list) == 0 || list[0] != '[' {
		b.cfg.Log("exec.approval.list: the answer is no list")
		return
	}
	open := map[string]bool{}
	for e := range jsonrpc.Elements(list) {
		p := fieldsOf(e)
		open[p.text("id")] = true
		b.approvalAsked(p)
	}
	for _, id := range before {
		if !open[id] {
			b.approvalOver(id, "it was answered while the connection was lost")
		}
	}
}
