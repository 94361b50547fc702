package anthropic_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/berth-dev/berth/adapters/llm"
	"github.com/berth-dev/berth/adapters/llm/llmtest"
	"github.com/berth-dev/berth/adapters/llm/llmtest/anthropictest"
	"github.com/berth-dev/berth/core/domain"
	"github.com/berth-dev/berth/core/ports"
	"github.com/berth-dev/berth/core/ports/porttest"
)

// session is a turn that goes on step by step, as an engine would drive it.
type session struct {
	model ports.Model
	req   domain.ModelRequest
	steps int
}

// step asks once and runs what is called.
func (s *session) step(t *testing.T) {
	t.Helper()
	s.steps++
	var reply domain.ModelReply
	for ev, err := range s.model.Stream(t.Context(), s.req) {
		switch ev := ev.(type) {
		case domain.TextDelta:
			reply.Text += ev.Text
		case domain.ThoughtDelta:
			reply.Thought += ev.Text
		case domain.CallRequested:
			c := ev.Call
			c.ID = domain.CallID(fmt.Sprintf("turn-c%d.%d", s.steps, len(reply.Calls)+1))
			reply.Calls = append(reply.Calls, c)
		case domain.Finish:
			reply.Opaque = ev.Opaque
		}
		if err != nil {
			t.Fatalf("step %d: %v", s.steps, err)
		}
	}
	s.req.Messages = append(s.req.Messages, reply)
	for _, c := range reply.Calls {
		s.req.Messages = append(s.req.Messages, domain.ToolOutput{Call: c, Text: "a long content of " + string(c.Args)})
	}
}

// thinking is a reply whose thoughts stand between texts and calls.
func thinking(name string) porttest.Reply {
	return porttest.Reply{Signed: true, Parts: []porttest.ReplyPart{
		porttest.SendThought("First " + name + "."), porttest.SendText("I look."), porttest.SendThought("Then " + name + "."),
		porttest.SendText(" And again. "), porttest.SendCall{ID: "toolu_" + name, Name: "read_file", Args: `{"path":"` + name + `"}`, Pieces: 2},
		porttest.SendThought("Last " + name + "."), porttest.SendCall{ID: "toolu_" + name + "b", Name: "read_file", Args: `{}`, Pieces: 1},
	}}
}

// TestThoughts: thoughts come back in their places, and only where what stood
// before them is still there; then those of later replies do.
func TestThoughts(t *testing.T) {
	for name, style := range map[string]anthropictest.Style{
		"bound": {}, "redacted": {Redacted: true}, "unbound": {Name: "claude-opus-5"}, "compatible": {Name: "kimi-k3", Loose: true},
	} {
		for change, edit := range map[string]func(*domain.ModelRequest){
			"nothing": func(*domain.ModelRequest) {},
			"an output is trimmed": func(r *domain.ModelRequest) {
				out, _ := r.Messages[2].(domain.ToolOutput)
				out.Text = "(trimmed)"
				r.Messages[2] = out
			},
			"the beginning is summarised": func(r *domain.ModelRequest) {
				r.Messages = append([]domain.ModelMessage{domain.UserInput{Blocks: []domain.Block{domain.Text{Text: "In short: a."}}}}, r.Messages[4:]...)
			},
			"the system prompt changes": func(r *domain.ModelRequest) { r.System += " Today is another day." },
			"a tool is added": func(r *domain.ModelRequest) {
				r.Tools = append(r.Tools, domain.ToolSpec{Name: "grep", Schema: []byte(`{"type":"object"}`)})
			},
			"the next turn": func(r *domain.ModelRequest) {
				r.Messages = append(r.Messages, domain.ModelReply{Text: "I was say"}, domain.UserInput{Blocks: []domain.Block{domain.Text{Text: "Go on."}}})
			},
		} {
			t.Run(name+"/"+change, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					d := style.Dialect()
					served := d.Serve(porttest.T(t), thinking("a"), thinking("b"), thinking("c"), thinking("d"), thinking("e"))
					s := &session{model: served.Model, req: porttest.SampleRequest()}
					s.step(t)
					s.step(t)
					edit(&s.req)
					for range 3 {
						s.step(t)
					}
					for _, p := range served.Problems() {
						t.Error(p)
					}
					if n := served.Requests(); n != 5 {
						t.Errorf("%d requests for 5 steps", n)
					}
					if !strings.Contains(served.Sent(), "First d.") {
						t.Errorf("the newest thought did not come back:\n%s", served.Sent())
					}
				})
			})
		}
	}
}

// TestProbe: the list of models is asked for with the key, and what is wrong
// is told as a stream would.
func TestProbe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := anthropictest.Dialect()
		server := d.New()
		p := llm.Provider{Client: llmtest.Connect(porttest.T(t), server), ProviderConfig: d.Provider("fake", llmtest.Host)}
		names, err := d.Opener.Probe(t.Context(), p)
		if err != nil || len(names) != 1 || names[0] != anthropictest.Model || server.Requests() != 0 {
			t.Errorf("%q, %v, %d requests", names, err, server.Requests())
		}
		p.APIKey = func() (string, error) { return "another-key-0123456789", nil }
		if _, err := d.Opener.Probe(t.Context(), p); !domain.HasCode(err, domain.AuthRequired) || strings.Contains(err.Error(), "another-key") {
			t.Errorf("%v", err)
		}
	})
}
