package acceptance

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"github.com/berth-dev/berth/core/domain"
	"github.com/berth-dev/berth/core/ports"
)

// levers are the tools of a crowd's sessions. They take as long as their
// arguments say, report on the way, and count what they did.
type levers struct {
	mu  sync.Mutex
	ran map[domain.CallID]int
}

// Open returns the tools of a session: look, which only reads, pull, which is
// asked for, and peek, which asks the client for a file.
func (l *levers) Open(_ context.Context, _ domain.Session, client ports.Client) (ports.Toolset, error) {
	return leverSet{l, client}, nil
}

type leverSet struct {
	l      *levers
	client ports.Client
}

func (s leverSet) Tools() []ports.Tool {
	return []ports.Tool{
		lever{s, "look", domain.Access{Class: domain.AccessRead, Tool: "look"}},
		lever{s, "pull", domain.Access{Class: domain.AccessEdit, Tool: "pull", Scope: "/project"}},
		lever{s, "peek", domain.Access{Class: domain.AccessRead, Tool: "peek"}},
	}
}

func (leverSet) Close() error { return nil }

type lever struct {
	set    leverSet
	name   string
	access domain.Access
}

func (t lever) Spec() domain.ToolSpec {
	return domain.ToolSpec{Name: t.name, Kind: domain.KindOther, Schema: []byte(`{"type":"object"}`), ReadOnly: t.access.Class == domain.AccessRead}
}

func (t lever) Prepare(_ context.Context, call domain.ToolCall) (ports.Prepared, error) {
	p := &pulled{lever: t, call: call}
	return p, json.Unmarshal(call.Args, &p.args)
}

type pulled struct {
	lever
	call domain.ToolCall
	args struct{ Ms, Steps int }
}

func (p *pulled) Plan() domain.ToolPlan {
	return domain.ToolPlan{Title: p.name, Kind: domain.KindOther, Access: p.access}
}

func (p *pulled) Run(ctx context.Context, progress func(domain.ToolProgress)) (domain.ToolResult, error) {
	p.set.l.mu.Lock()
	p.set.l.ran[p.call.ID]++
	p.set.l.mu.Unlock()
	if files, ok := p.set.client.Files(); ok && p.name == "peek" {
		text, err := files.ReadText(ctx, p.call.Session, "/project/peek.txt")
		if err != nil {
			return domain.ToolResult{Failed: true, Text: "The editor did not say."}, ctx.Err()
		}
		return domain.ToolResult{Text: "The editor says " + text}, nil
	}
	for i := range p.args.Steps {
		select {
		case <-time.After(time.Duration(p.args.Ms) * time.Millisecond):
		case <-ctx.Done():
			return domain.ToolResult{}, context.Cause(ctx)
		}
		step := domain.ContentBlock{Block: domain.Text{Text: fmt.Sprint("step ", i)}}
		progress(domain.ToolProgress{Content: []domain.CallContent{step}})
	}
	return domain.ToolResult{Text: "did " + string(p.call.Args)}, nil
}

func (p *pulled) Close() error { return nil }

// crowdModel writes a model script. No piece of text in it is there twice, so
// that what was seen of a message says what was not.
func crowdModel(rng *rand.Rand) string {
	var b strings.Builder
	for n := range 12 + rng.IntN(20) {
		if n > 0 {
			b.WriteString("--- next\n")
		}
		crowdStep(rng, &b, n)
	}
	b.WriteString("--- next always\ntext \"Nothing more.\"\n")
	return b.String()
}

func crowdStep(rng *rand.Rand, b *strings.Builder, n int) {
	calls := 0
	for i := range 1 + rng.IntN(6) {
		switch rng.IntN(12) {
		case 0, 1, 2, 3, 4:
			for k := range 1 + rng.IntN(4) {
				fmt.Fprintf(b, "text \"<%d.%d.%d> \"\ndelay %s\n", n, i, k, shortTime(rng))
			}
		case 5:
			fmt.Fprintf(b, "thought \"(%d.%d) \"\n", n, i)
		case 6:
			fmt.Fprintf(b, "delay %s\n", pick(rng, "1s", "5s", "20s"))
		case 7:
			b.WriteString("call ask_user {\"question\":\"Which?\",\"options\":[\"this\",\"that\"]}\n")
			calls++
		default:
			fmt.Fprintf(b, "call %s {\"Ms\":%d,\"Steps\":%d}\n", pick(rng, "look", "pull", "pull", "peek"), pick(rng, 0, 1, 5, 200, 3000), rng.IntN(4))
			calls++
		}
	}
	switch end := rng.IntN(40); {
	case end == 0:
		b.WriteString("length\n")
	case end == 1:
		b.WriteString("error " + pick(rng, "unavailable", "internal") + " \"it broke\"\n")
	case end == 2:
		b.WriteString("cut\n")
	case end == 3:
		b.WriteString("hang\n")
	case end == 4:
		b.WriteString("stall 400ms\n")
	case end < 20 && calls == 0:
		b.WriteString("call pull {\"Ms\":10,\"Steps\":2}\n")
	}
}
