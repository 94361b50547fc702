package turns_test

import (
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/berth-dev/berth/core/domain"
	"github.com/berth-dev/berth/core/ports"
)

// person is a client that can be lost. Whatever it is asked it answers by the
// name of the call alone, so that the story does not depend on who is asked.
type person struct {
	w      *world
	name   string
	slow   time.Duration // how long it takes for an update
	rights *domain.Rights
	gone   chan struct{} // closed when its connection breaks
	once   sync.Once

	mu     sync.Mutex
	told   []domain.Update
	asked  int
	own    map[string]bool // prompts it sent, as picture shows them
	broken bool
	decide func(context.Context, domain.PermissionRequest) (domain.Decision, error) // nil: by the call's name
}

var _ ports.Client = (*person)(nil)

func (w *world) person(name string) *person {
	return &person{w: w, name: name, gone: make(chan struct{}), own: map[string]bool{}}
}

func (p *person) Info() domain.ClientInfo {
	return domain.ClientInfo{Name: p.name, Compaction: true, Notices: true, Rights: p.rights}
}
func (p *person) Files() (ports.Files, bool) { return nil, false }

func (p *person) Send(ctx context.Context, _ domain.SessionID, u domain.Update) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if p.slow > 0 {
		select {
		case <-time.After(p.slow):
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-p.gone:
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.broken {
		return fmt.Errorf("send: %w", domain.Disconnected)
	}
	p.told = append(p.told, u)
	return nil
}

func (p *person) Ask(ctx context.Context, r domain.PermissionRequest) (domain.Decision, error) {
	p.mu.Lock()
	p.asked++
	decide := p.decide
	known := slices.ContainsFunc(p.told, func(u domain.Update) bool {
		opened, ok := u.(domain.CallOpened)
		return ok && opened.ID == r.Call.ID
	})
	p.mu.Unlock()
	if !known && !p.isGone() {
		p.w.t.Errorf("%s is asked about call %s, of which it was told nothing", p.name, r.Call.ID)
	}
	if decide != nil {
		return decide(ctx, r)
	}
	n := dice(plain(string(r.Call.ID), p.w.names()))
	select {
	case <-time.After(time.Duration(n%40) * time.Millisecond):
	case <-ctx.Done():
		return domain.Decision{}, context.Cause(ctx)
	case <-p.gone:
		return domain.Decision{}, fmt.Errorf("ask: %w", domain.Disconnected)
	}
	option := "allow-once"
	if n%5 == 0 {
		option = "reject-once"
	}
	return domain.Decision{Outcome: domain.Selected, Option: option}, nil
}

// breaks makes the connection useless, before anybody says so.
func (p *person) breaks() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.broken = true
	p.once.Do(func() { close(p.gone) })
}

func (p *person) isGone() bool {
	select {
	case <-p.gone:
		return true
	default:
		return false
	}
}

func (p *person) log() []domain.Update {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.told)
}

// dice is a number made of a text.
func dice(text string) uint32 {
	h := fnv.New32a()
	_, _ = h.Write([]byte(text))
	return h.Sum32()
}

// names maps the ids of the world's turns to their order.
func (w *world) names() map[string]string {
	names := make(map[string]string)
	for _, r := range w.records() {
		if said, ok := r.(domain.UserSaid); ok {
			names[string(said.Turn)] = fmt.Sprintf("t%d", len(names)+1)
		}
	}
	return names
}

var idPattern = regexp.MustCompile(`id-\d+`)

// plain replaces the ids of turns in a text by their order.
func plain(text string, names map[string]string) string {
	return idPattern.ReplaceAllStringFunc(text, func(id string) string { return names[id] })
}

// picture is what a log leaves on a screen: everything that was told, merged,
// in order of first appearance. What is only replayed, or only told live, is
// left out.
func picture(ups []domain.Update) string {
	var order []string
	text := map[string]string{}
	add := func(key, s string) {
		if _, known := text[key]; !known {
			order = append(order, key)
		}
		text[key] += s
	}
	set := func(key, s string) { add(key, ""); text[key] = s }
	var last []string
	state := map[string]string{}
	for _, u := range ups {
		switch u := u.(type) {
		case domain.UserMessage: // see prompts
		case domain.AgentText:
			if !strings.HasSuffix(string(u.ID), "-end") {
				add("text "+string(u.ID), u.Text)
			}
		case domain.AgentThought:
			add("thought "+string(u.ID), u.Text)
		case domain.CallOpened:
			add("call "+string(u.ID), u.Title+" "+string(u.RawInput))
		case domain.CallChanged:
			if u.Status.Final() {
				add("call "+string(u.ID), " "+string(u.Status)+contentText(u.Content))
			}
		case domain.CompactionChanged:
			if u.Status != domain.CompactionRunning {
				set("compaction "+string(u.ID), string(u.Status)+u.Summary)
			} else {
				add("compaction "+string(u.ID), "")
			}
		case domain.CompactionText:
			add("compaction "+string(u.ID), u.Text)
		case domain.PlanChanged:
			state["plan"] = fmt.Sprint(u.Entries)
		case domain.UsageChanged:
			state["usage"] = fmt.Sprint(u.Used, u.Size)
		case domain.InfoChanged:
			state["title"] = u.Title
		}
	}
	for key, s := range state {
		last = append(last, key+": "+s)
	}
	slices.Sort(last)
	var b strings.Builder
	for _, key := range order {
		fmt.Fprintf(&b, "%s: %s\n", key, text[key])
	}
	return b.String() + strings.Join(last, "\n")
}

// prompts are the user's messages of a log, in short.
func prompts(ups []domain.Update) []string {
	var list []string
	for _, u := range ups {
		if said, ok := u.(domain.UserMessage); ok {
			list = append(list, short(said.Block.(domain.Text).Text))
		}
	}
	return list
}

func short(text string) string { return text[:len("prompt N")] }

// lever is a tool whose calls take as long as their arguments say, count what
// they did, and report in between.
type lever struct {
	name  string
	reads bool
	mu    *sync.Mutex
	did   map[domain.CallID]int
}

func (l *lever) Spec() domain.ToolSpec {
	return domain.ToolSpec{Name: l.name, Kind: domain.KindOther, ReadOnly: l.reads}
}

func (l *lever) Prepare(_ context.Context, call domain.ToolCall) (ports.Prepared, error) {
	p := &pulled{l: l, call: call}
	return p, json.Unmarshal(call.Args, &p.args)
}

type pulled struct {
	l    *lever
	call domain.ToolCall
	args struct{ Ms, Steps int }
}

func (p *pulled) Plan() domain.ToolPlan {
	access := domain.Access{Class: domain.AccessEdit, Tool: p.l.name, Scope: "/project"}
	if p.l.reads {
		access = domain.Access{Class: domain.AccessRead, Tool: p.l.name}
	}
	return domain.ToolPlan{Title: "Pull " + p.l.name, Kind: domain.KindOther, Access: access}
}

func (p *pulled) Run(ctx context.Context, progress func(domain.ToolProgress)) (domain.ToolResult, error) {
	p.l.mu.Lock()
	p.l.did[p.call.ID]++
	p.l.mu.Unlock()
	for i := range p.args.Steps {
		if err := pause(ctx, time.Duration(p.args.Ms)*time.Millisecond); err != nil {
			return domain.ToolResult{}, err
		}
		progress(domain.ToolProgress{Content: []domain.CallContent{domain.ContentBlock{Block: domain.Text{Text: fmt.Sprint("step ", i)}}}})
	}
	return domain.ToolResult{Text: strings.Repeat("did "+string(p.call.Args)+" ", 20)}, nil
}

func (p *pulled) Close() error { return nil }
