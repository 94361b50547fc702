package porttest

import (
	"encoding/json"
	"reflect"
	"strings"

	"github.com/berth-dev/berth/core/domain"
)

// polyglot has characters of one to four bytes.
const polyglot = "plain, h\u00e9llo \u20ac \u65e5\u672c \U0001F600\U0001F468\u200D\U0001F469 \u00df."

// replyChecks are about what a complete reply says.
func replyChecks() []check[ModelHarness] {
	return []check[ModelHarness]{
		{"text", "the pieces of the answer come in order and whole", func(t TB, h ModelHarness) {
			s := h.Serve(t, Reply{Parts: []ReplyPart{SendText("Hello"), SendText(", "), SendText("world\n\n\"quoted\"\t\\")}})
			r := ask(t, s.Model, SampleRequest())
			r.done(t, domain.FinishStop)
			sameText(t, "the text", r.text, "Hello, world\n\n\"quoted\"\t\\")
		}},
		{"thought", "reasoning is kept apart from the answer", func(t TB, h ModelHarness) {
			s := h.Serve(t, Reply{Parts: []ReplyPart{SendThought("Let me "), SendThought("think."), SendText("Done.")}})
			r := ask(t, s.Model, SampleRequest())
			r.done(t, domain.FinishStop)
			sameText(t, "the thought", r.thought, "Let me think.")
			sameText(t, "the text", r.text, "Done.")
		}},
		{"utf8", "a character that the network cut is whole again, in text, thoughts and arguments", func(t TB, h ModelHarness) {
			for _, grain := range []int{1, 2, 3, 5, 7} {
				args := `{"path":"` + polyglot + `"}`
				s := h.Serve(t, Reply{Grain: grain, Parts: []ReplyPart{
					SendThought(polyglot), SendText(polyglot), SendCall{ID: "a", Name: "read_file", Args: args, Pieces: 2},
				}})
				r := ask(t, s.Model, SampleRequest())
				r.done(t, domain.FinishCalls)
				sameText(t, "the text", r.text, polyglot)
				sameText(t, "the thought", r.thought, polyglot)
				wantCalls(t, r, domain.ModelCall{ProviderID: "a", Name: "read_file", Args: []byte(args)})
			}
		}},
		{"long", "a long piece and many pieces arrive whole", func(t TB, h ModelHarness) {
			long := strings.Repeat("0123456789abcdef\u20ac ", 20_000)
			parts := []ReplyPart{SendText(long)}
			for range 500 {
				parts = append(parts, SendText("piece \u00e9 "))
			}
			s := h.Serve(t, Reply{Parts: parts})
			r := ask(t, s.Model, SampleRequest())
			r.done(t, domain.FinishStop)
			sameText(t, "the text", r.text, long+strings.Repeat("piece \u00e9 ", 500))
		}},
		{"empty", "a complete reply without content is complete", func(t TB, h ModelHarness) {
			s := h.Serve(t, Reply{})
			r := ask(t, s.Model, SampleRequest())
			r.done(t, domain.FinishStop)
			sameText(t, "the text", r.text, "")
		}},
		{"usage", "the provider's counts are passed on, before Finish", func(t TB, h ModelHarness) {
			want := domain.Usage{Input: 1200, Output: 34, Thought: 8, CachedRead: 1000}
			s := h.Serve(t, Reply{Parts: []ReplyPart{SendText("x")}, Usage: want})
			if h.NoThoughtCount {
				want.Thought = 0
			}
			if h.NoCacheCount {
				want.CachedRead = 0
			}
			r := ask(t, s.Model, SampleRequest())
			r.done(t, domain.FinishStop)
			if r.usage != want {
				t.Errorf("usage is %+v, want %+v", r.usage, want)
			}
		}},
		{"no-usage", "counts that were not reported are not made up", func(t TB, h ModelHarness) {
			s := h.Serve(t, Reply{Parts: []ReplyPart{SendText("x")}})
			r := ask(t, s.Model, SampleRequest())
			r.done(t, domain.FinishStop)
			if r.usages != 0 {
				t.Errorf("usage %+v was reported", r.usage)
			}
		}},
		{"length", "a reply cut at the token limit says so", func(t TB, h ModelHarness) {
			s := h.Serve(t, Reply{Parts: []ReplyPart{SendText("half a sen")}, End: EndLength, Usage: domain.Usage{Input: 5, Output: 7}})
			r := ask(t, s.Model, SampleRequest())
			r.done(t, domain.FinishLength)
			sameText(t, "the text", r.text, "half a sen")
			if r.usage.Output != 7 {
				t.Errorf("usage is %+v", r.usage)
			}
		}},
		{"refusal", "a refused reply says so, with the words it was refused in", func(t TB, h ModelHarness) {
			s := h.Serve(t, Reply{Parts: []ReplyPart{SendText("I cannot help with that.")}, End: EndRefusal})
			r := ask(t, s.Model, SampleRequest())
			r.done(t, domain.FinishRefusal)
			sameText(t, "the text", r.text, "I cannot help with that.")
		}},
		{"history", "a conversation with calls, outputs and attachments is accepted", func(t TB, h ModelHarness) {
			s := h.Serve(t, Reply{Parts: []ReplyPart{SendText("ok")}})
			r := ask(t, s.Model, SampleHistory())
			r.done(t, domain.FinishStop)
			noProblems(t, s)
			if s.Sent != nil && strings.Contains(s.Sent(), "not for you") {
				t.Errorf("opaque data of another provider was sent")
			}
		}},
		{"two-steps", "a second request is a new exchange", func(t TB, h ModelHarness) {
			s := h.Serve(t, Reply{Parts: []ReplyPart{SendText("one")}}, Reply{Parts: []ReplyPart{SendText("two")}})
			first, second := ask(t, s.Model, SampleRequest()), ask(t, s.Model, SampleHistory())
			sameText(t, "the first text", first.text, "one")
			sameText(t, "the second text", second.text, "two")
			if n := s.Requests(); n != 2 {
				t.Errorf("the provider saw %d requests, want 2", n)
			}
		}},
	}
}

// SampleHistory is a request in the middle of a session: thoughts, several
// calls whose ids repeat or are missing, a failed output, two user messages in
// a row, an image.
func SampleHistory() domain.ModelRequest {
	req := SampleRequest()
	a := domain.ModelCall{ID: "c1", ProviderID: "x", Name: "read_file", Args: []byte(`{"path":"a"}`)}
	b := domain.ModelCall{ID: "c2", ProviderID: "x", Name: "read_file", Args: []byte(`{"path":"b"}`)}
	c := domain.ModelCall{ID: "c3", Name: "read_file", Args: []byte(`{}`)}
	req.Messages = append(req.Messages,
		domain.ModelReply{Thought: "two files", Text: "I read both.", Calls: []domain.ModelCall{a, b}},
		domain.ToolOutput{Call: a, Text: "content of a"},
		domain.ToolOutput{Call: b, Text: "no such file", Failed: true},
		domain.ModelReply{Calls: []domain.ModelCall{c}, Opaque: &domain.Opaque{Provider: "another", Data: []byte(`{"not for you":true}`)}},
		domain.ToolOutput{Call: c},
		domain.ModelReply{Text: "That was all."},
		domain.UserInput{Blocks: []domain.Block{domain.Text{Text: "And this?"}, domain.Image{MIME: "image/png", Data: []byte("\x89PNG")}}},
		domain.UserInput{Blocks: []domain.Block{domain.Text{Text: "Well?"}}},
	)
	return req
}

// wantCalls compares calls; arguments are compared as JSON.
func wantCalls(t TB, r result, want ...domain.ModelCall) {
	t.Helper()
	if len(r.calls) != len(want) {
		t.Fatalf("%d calls were requested, want %d: %s", len(r.calls), len(want), callNames(r.calls))
	}
	for i, w := range want {
		got := r.calls[i]
		if got.Name != w.Name || (w.ProviderID != "" && got.ProviderID != w.ProviderID) {
			t.Errorf("call %d is %s with id %q, want %s with id %q", i+1, got.Name, got.ProviderID, w.Name, w.ProviderID)
		}
		var a, b any
		if json.Unmarshal(got.Args, &a) != nil || json.Unmarshal(w.Args, &b) != nil || !reflect.DeepEqual(a, b) {
			t.Errorf("call %d has the arguments %s, want %s", i+1, clip(string(got.Args)), clip(string(w.Args)))
		}
	}
}

func callNames(calls []domain.ModelCall) string {
	var names []string
	for _, c := range calls {
		names = append(names, c.Name+string(c.Args))
	}
	return strings.Join(names, " ")
}

// callChecks are about tool calls.
func callChecks() []check[ModelHarness] {
	call := func(id, name, args string, pieces int) SendCall {
		return SendCall{ID: id, Name: name, Args: args, Pieces: pieces}
	}
	return []check[ModelHarness]{
		{"call", "a call is requested with the provider's id, its name and whole arguments", func(t TB, h ModelHarness) {
			s := h.Serve(t, Reply{Parts: []ReplyPart{SendText("I look."), call("call_9", "read_file", `{"path":"a b.txt"}`, 1)}})
			r := ask(t, s.Model, SampleRequest())
			r.done(t, domain.FinishCalls)
			sameText(t, "the text", r.text, "I look.")
			wantCalls(t, r, domain.ModelCall{ProviderID: "call_9", Name: "read_file", Args: []byte(`{"path":"a b.txt"}`)})
		}},
		{"calls", "several calls keep their order", func(t TB, h ModelHarness) {
			s := h.Serve(t, Reply{Parts: []ReplyPart{
				call("1", "read_file", `{"path":"a"}`, 3), call("2", "write_file", `{"path":"b","text":""}`, 3), call("3", "read_file", `{"path":"c"}`, 1),
			}})
			r := ask(t, s.Model, SampleRequest())
			r.done(t, domain.FinishCalls)
			wantCalls(t, r,
				domain.ModelCall{ProviderID: "1", Name: "read_file", Args: []byte(`{"path":"a"}`)},
				domain.ModelCall{ProviderID: "2", Name: "write_file", Args: []byte(`{"path":"b","text":""}`)},
				domain.ModelCall{ProviderID: "3", Name: "read_file", Args: []byte(`{"path":"c"}`)})
		}},
		{"split-arguments", "arguments are joined wherever they were cut", func(t TB, h ModelHarness) {
			args := `{"path":"a\"b\\c\u00e9\ud83d\ude00","n":[1,{"x":null}],"t":"` + polyglot + `"}`
			for _, pieces := range []int{2, 3, len(args)} {
				s := h.Serve(t, Reply{Parts: []ReplyPart{call("1", "read_file", args, pieces)}})
				r := ask(t, s.Model, SampleRequest())
				r.done(t, domain.FinishCalls)
				wantCalls(t, r, domain.ModelCall{ProviderID: "1", Name: "read_file", Args: []byte(args)})
			}
		}},
		{"no-arguments", "empty arguments of a complete call are an empty object", func(t TB, h ModelHarness) {
			s := h.Serve(t, Reply{Parts: []ReplyPart{call("1", "list", "", 1)}})
			r := ask(t, s.Model, SampleRequest())
			r.done(t, domain.FinishCalls)
			wantCalls(t, r, domain.ModelCall{ProviderID: "1", Name: "list", Args: []byte(`{}`)})
		}},
		{"same-ids", "two calls that share an id are two calls", func(t TB, h ModelHarness) {
			s := h.Serve(t, Reply{Parts: []ReplyPart{call("x", "read_file", `{"path":"a"}`, 2), call("x", "read_file", `{"path":"b"}`, 2)}})
			r := ask(t, s.Model, SampleRequest())
			r.done(t, domain.FinishCalls)
			wantCalls(t, r,
				domain.ModelCall{Name: "read_file", Args: []byte(`{"path":"a"}`)},
				domain.ModelCall{Name: "read_file", Args: []byte(`{"path":"b"}`)})
		}},
		{"no-ids", "calls without ids are told apart", func(t TB, h ModelHarness) {
			s := h.Serve(t, Reply{Parts: []ReplyPart{call("", "read_file", `{"path":"a"}`, 2), call("", "read_file", `{"path":"b"}`, 3)}})
			r := ask(t, s.Model, SampleRequest())
			r.done(t, domain.FinishCalls)
			wantCalls(t, r,
				domain.ModelCall{Name: "read_file", Args: []byte(`{"path":"a"}`)},
				domain.ModelCall{Name: "read_file", Args: []byte(`{"path":"b"}`)})
		}},
		{"length-in-call", "no call of a reply cut at the token limit is requested, whole or half", func(t TB, h ModelHarness) {
			s := h.Serve(t, Reply{End: EndLength, Parts: []ReplyPart{
				SendText("I write."), call("1", "read_file", `{"path":"a"}`, 1), call("2", "write_file", `{"path":"b","text":"hal`, 2),
			}})
			r := ask(t, s.Model, SampleRequest())
			r.done(t, domain.FinishLength)
			wantCalls(t, r)
		}},
		{"refusal-in-call", "no call of a refused reply is requested", func(t TB, h ModelHarness) {
			s := h.Serve(t, Reply{End: EndRefusal, Parts: []ReplyPart{SendText("No."), call("1", "read_file", `{"path":"a"}`, 1)}})
			r := ask(t, s.Model, SampleRequest())
			r.done(t, domain.FinishRefusal)
			wantCalls(t, r)
		}},
		{"cut-in-call", "a call whose reply was cut is never requested, whole as it may look", func(t TB, h ModelHarness) {
			for _, args := range []string{`{"path":"a"}`, `{"path":"a`} {
				s := h.Serve(t, Reply{End: EndCut, Parts: []ReplyPart{SendText("I read."), call("1", "read_file", args, 2)}})
				ask(t, s.Model, SampleRequest()).failed(t, domain.Unavailable)
			}
		}},
		{"broken-arguments", "arguments that are no JSON object make the reply fail; they are not mended", func(t TB, h ModelHarness) {
			for _, args := range []string{`{"path":"a`, `null`, `"a"`, `[1]`, `{"a":1}}`, `{"a":1} {"b":2}`, `{a:1}`} {
				s := h.Serve(t, Reply{Parts: []ReplyPart{SendText("I read."), call("1", "read_file", args, 1)}})
				r := ask(t, s.Model, SampleRequest())
				if r.err == nil {
					t.Errorf("the arguments %s were taken as %s", args, callNames(r.calls))
				}
			}
		}},
	}
}
