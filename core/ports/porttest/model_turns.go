package porttest

import (
	"fmt"
	"strings"

	"github.com/berth-dev/berth/core/domain"
)

// turnChecks are about turns of several requests.
func turnChecks() []check[ModelHarness] {
	return []check[ModelHarness]{
		{"tool-turn", "a turn with tools goes on: what the provider wants back comes back, and every call has its output", func(t TB, h ModelHarness) {
			s := h.Serve(t, signedReply("a"), signedReply("b"), Reply{Parts: []ReplyPart{SendText("Done.")}})
			req := SampleRequest()
			req.Messages = append(req.Messages, follow(t, s, req, 1)...)
			req.Messages = append(req.Messages, follow(t, s, req, 2)...)
			r := ask(t, s.Model, req)
			r.done(t, domain.FinishStop)
			sameText(t, "the text", r.text, "Done.")
			noProblems(t, s)
		}},
		{"tool-turn-later", "the next turn, after a cancelled one, is asked with all that came before", func(t TB, h ModelHarness) {
			s := h.Serve(t, signedReply("a"), Reply{Parts: []ReplyPart{SendText("Done.")}})
			req := SampleRequest()
			req.Messages = append(req.Messages, follow(t, s, req, 1)...)
			req.Messages = append(req.Messages,
				domain.ModelReply{Text: "I was say"},
				domain.UserInput{Blocks: []domain.Block{domain.Text{Text: "[The previous turn was cancelled before it ended.]"}, domain.Text{Text: "Go on."}}})
			ask(t, s.Model, req).done(t, domain.FinishStop)
			noProblems(t, s)
		}},
		{"tool-strangers", "calls that another model made, of no tool there is and with ids of any form, are sent so that the provider takes them", func(t TB, h ModelHarness) {
			s := h.Serve(t, Reply{Parts: []ReplyPart{SendText("Done.")}})
			req := SampleRequest()
			ids := []string{"", "functions.read_file:0", strings.Repeat("long", 20), "two words\n\x1b[31m\u202e", "é", "same", "same"}
			names := []string{"functions.read_file", "read\nfile", strings.Repeat("n", 200), "é", "read_file", "\x1b[31m", "7"}
			var reply domain.ModelReply
			var outputs []domain.ModelMessage
			for i, id := range ids {
				call := domain.ModelCall{ID: domain.CallID(fmt.Sprintf("bcfa2d43-74d6-413a-93d3-aa5d322fe5eb-c%d", 100+i)), ProviderID: id, Name: names[i], Args: []byte(`{}`)}
				reply.Calls = append(reply.Calls, call)
				outputs = append(outputs, domain.ToolOutput{Call: call, Text: "There is no such tool.", Failed: true})
			}
			req.Messages = append(append(req.Messages, reply), outputs...)
			req.Messages = append(req.Messages, domain.UserInput{Blocks: []domain.Block{domain.Text{Text: "Go on."}}})
			ask(t, s.Model, req).done(t, domain.FinishStop)
			noProblems(t, s)
		}},
		{"tool-media", "a tool's picture reaches a model that sees", func(t TB, h ModelHarness) {
			s := h.Serve(t, signedReply("a"), Reply{Parts: []ReplyPart{SendText("A dot.")}})
			if !s.Model.Info().Images {
				t.Skipf("this model does not see")
			}
			req := SampleRequest()
			more := follow(t, s, req, 1)
			out, _ := more[len(more)-1].(domain.ToolOutput)
			out.Media = []domain.Block{domain.Image{MIME: "image/png", Data: []byte("\x89PNG a picture of a dot")}}
			more[len(more)-1] = out
			req.Messages = append(req.Messages, more...)
			ask(t, s.Model, req).done(t, domain.FinishStop)
			noProblems(t, s)
			if s.Sent != nil && !strings.Contains(s.Sent(), "iVBORyBhIHBpY3R1cmUgb2YgYSBkb3") {
				t.Errorf("the picture was not sent")
			}
		}},
	}
}

// signedReply is a reply with thoughts, a text and two calls, one of them
// without an id.
func signedReply(name string) Reply {
	return Reply{Signed: true, Usage: domain.Usage{Input: 10, Output: 5}, Parts: []ReplyPart{
		SendThought("I think " + name + "."), SendText("I read " + name + "."),
		SendCall{ID: "call-" + name, Name: "read_file", Args: `{"path":"` + name + `"}`, Pieces: 2},
		SendCall{Name: "read_file", Args: `{"path":"` + name + `2"}`, Pieces: 1},
	}}
}

// follow asks, runs what is called as an engine would, and returns the
// messages that a turn grows by.
func follow(t TB, s Served, req domain.ModelRequest, step int) []domain.ModelMessage {
	t.Helper()
	r := ask(t, s.Model, req)
	r.done(t, domain.FinishCalls)
	reply := domain.ModelReply{Text: r.text, Thought: r.thought, Opaque: r.finish.Opaque}
	var outputs []domain.ModelMessage
	for i, c := range r.calls {
		c.ID = domain.CallID(fmt.Sprintf("turn-c%d.%d", step, i+1))
		reply.Calls = append(reply.Calls, c)
		outputs = append(outputs, domain.ToolOutput{Call: c, Text: "content of " + string(c.Args), Failed: i == 1})
	}
	return append([]domain.ModelMessage{reply}, outputs...)
}

// noProblems demands that a strict provider had nothing to say.
func noProblems(t TB, s Served) {
	t.Helper()
	if s.Problems == nil {
		return
	}
	for _, p := range s.Problems() {
		t.Errorf("the provider would refuse the request: %s", p)
	}
}
