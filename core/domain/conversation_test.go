package domain_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	. "github.com/berth-dev/berth/core/domain"
)

const seeds = 200 // random journals for each property

// checkMessages demands what every provider demands: each call of a reply has
// exactly one output, and the outputs stand directly behind their reply.
func checkMessages(msgs []ModelMessage) error {
	owed := map[CallID]bool{}
	for i, m := range msgs {
		switch m := m.(type) {
		case ToolOutput:
			if !owed[m.Call.ID] {
				return fmt.Errorf("message %d answers call %s, which is not waiting", i, m.Call.ID)
			}
			delete(owed, m.Call.ID)
		case UserInput, ModelReply:
			if len(owed) > 0 {
				return fmt.Errorf("message %d comes before the outputs of %v", i, owed)
			}
			if reply, ok := m.(ModelReply); ok {
				for _, c := range reply.Calls {
					owed[c.ID] = true
				}
			}
		}
	}
	if len(owed) > 0 {
		return fmt.Errorf("calls without an output: %v", owed)
	}
	return nil
}

func TestConversation_AnyPrefixIsValid(t *testing.T) {
	for seed := range uint64(seeds) {
		recs := newJournals(seed).make()
		for n := range len(recs) + 1 {
			if err := checkPrefix(recs[:n]); err != nil {
				t.Fatalf("seed %d, prefix %d of %d: %v\n%s", seed, n, len(recs), err, list(recs[:n]))
			}
		}
	}
}

func TestConversation_WildJournalsAreValid(t *testing.T) {
	for seed := range uint64(seeds) {
		recs := newJournals(seed).wild()
		if err := checkPrefix(recs); err != nil {
			t.Fatalf("seed %d: %v\n%s", seed, err, list(recs))
		}
	}
}

// checkPrefix demands that a journal gives a valid conversation, before and
// after what Settle closes, and that nothing is left to close then.
func checkPrefix(recs []Record) error {
	conv := fold(recs)
	if err := checkMessages(conv.Messages()); err != nil {
		return err
	}
	if conv.Seq() != Seq(len(recs)) {
		return fmt.Errorf("position %d after %d records", conv.Seq(), len(recs))
	}
	turn, calls := conv.Open()
	closers := conv.Settle()
	want := len(calls)
	if turn != "" {
		want++
	}
	if streamedText(recs) != "" {
		want++
	}
	if len(closers) != want {
		return fmt.Errorf("turn %q and calls %v are open but Settle says %v", turn, calls, closers)
	}
	settled := fold(slices.Concat(recs, closers))
	if more := settled.Settle(); len(more) != 0 {
		return fmt.Errorf("after settling, still open: %v", more)
	}
	return checkMessages(settled.Messages())
}

// streamedText is what was streamed of the newest turn, if it is open, since
// its last reply.
func streamedText(recs []Record) string {
	var turn TurnID
	text := ""
	for _, r := range recs {
		switch r := r.(type) {
		case UserSaid:
			turn, text = r.Turn, ""
		case Streamed:
			if r.Turn == turn && turn != "" {
				for _, p := range r.Parts {
					text += p.Text
				}
			}
		case AssistantSaid:
			text = ""
		case TurnFinished:
			if r.Turn == turn {
				turn, text = "", ""
			}
		}
	}
	return text
}

// What was streamed of a reply that never came is a reply that was cut off; of
// one that came it counts no more.
func TestConversation_StreamedIsKept(t *testing.T) {
	for seed := range uint64(seeds) {
		recs := newJournals(seed).make()
		for n := range len(recs) + 1 {
			var kept string
			for _, r := range fold(recs[:n]).Settle() {
				if said, ok := r.(AssistantSaid); ok {
					for _, p := range said.Parts {
						kept += p.Text
					}
				}
			}
			if want := streamedText(recs[:n]); kept != want {
				t.Fatalf("seed %d, prefix %d: kept %q of %q\n%s", seed, n, kept, want, list(recs[:n]))
			}
		}
	}
}

func list(recs []Record) string {
	var b strings.Builder
	for i, r := range recs {
		fmt.Fprintf(&b, "%d %T %+v\n", i+1, r, r)
	}
	return b.String()
}

func call(id string) ModelCall {
	return ModelCall{ID: CallID(id), Name: "write_file", Args: []byte("{}")}
}

func said(turn TurnID, text string, calls ...ModelCall) AssistantSaid {
	return AssistantSaid{Turn: turn, Parts: []MessagePart{{ID: "m", Text: text}}, Calls: calls}
}

func user(turn TurnID, text string) UserSaid {
	return UserSaid{Turn: turn, ID: MessageID(turn + "-u"), Blocks: []Block{Text{Text: text}}}
}

func asked(text string) UserInput { return UserInput{Blocks: []Block{Text{Text: text}}} }

func TestConversation_Messages(t *testing.T) {
	a, b := call("a"), call("b")
	began := func(c ModelCall) CallBegan {
		return CallBegan{Turn: "t1", Call: c, Update: CallOpened{ID: c.ID}}
	}
	cases := []struct {
		name string
		recs []Record
		want []ModelMessage
	}{
		{
			"a turn",
			[]Record{user("t1", "hi"), said("t1", "hello"), TurnFinished{Turn: "t1", Stop: StopEndTurn}},
			[]ModelMessage{asked("hi"), ModelReply{Text: "hello"}},
		},
		{
			"thought and text are told apart",
			[]Record{user("t1", "hi"), AssistantSaid{Turn: "t1", Parts: []MessagePart{
				{Thought: true, Text: "hm"}, {Text: "a"}, {Thought: true, Text: "so"}, {Text: "b"},
			}}},
			[]ModelMessage{asked("hi"), ModelReply{Text: "ab", Thought: "hmso"}},
		},
		{
			"an empty reply leaves no message",
			[]Record{user("t1", "hi"), AssistantSaid{Turn: "t1"}},
			[]ModelMessage{asked("hi")},
		},
		{
			"outputs keep the order in which calls ended",
			[]Record{
				user("t1", "hi"), said("t1", "x", a, b), began(a), began(b),
				CallFinished{Turn: "t1", Call: "b", Text: "rb"},
				CallFinished{Turn: "t1", Call: "a", Text: "ra", Failed: true},
			},
			[]ModelMessage{
				asked("hi"),
				ModelReply{Text: "x", Calls: []ModelCall{a, b}},
				ToolOutput{Call: b, Text: "rb"},
				ToolOutput{Call: a, Text: "ra", Failed: true},
			},
		},
		{
			"a second result of the same call is not told twice",
			[]Record{
				user("t1", "hi"), said("t1", "x", a), began(a),
				CallFinished{Turn: "t1", Call: "a", Text: "1"},
				CallFinished{Turn: "t1", Call: "a", Text: "2"},
			},
			[]ModelMessage{asked("hi"), ModelReply{Text: "x", Calls: []ModelCall{a}}, ToolOutput{Call: a, Text: "1"}},
		},
		{
			"a started call may have had effects, one that was not has none",
			[]Record{user("t1", "hi"), said("t1", "x", a, b), began(a)},
			[]ModelMessage{
				asked("hi"),
				ModelReply{Text: "x", Calls: []ModelCall{a, b}},
				ToolOutput{Call: a, Text: InterruptedText, Failed: true},
				ToolOutput{Call: b, Text: NotRunText, Failed: true},
			},
		},
		{
			"open calls are answered before the next prompt",
			[]Record{user("t1", "hi"), said("t1", "x", a), began(a), user("t2", "again")},
			[]ModelMessage{
				asked("hi"),
				ModelReply{Text: "x", Calls: []ModelCall{a}},
				ToolOutput{Call: a, Text: InterruptedText, Failed: true},
				asked("again"),
			},
		},
		{
			"open calls are answered before the next reply",
			[]Record{user("t1", "hi"), said("t1", "x", a), said("t1", "y")},
			[]ModelMessage{
				asked("hi"),
				ModelReply{Text: "x", Calls: []ModelCall{a}},
				ToolOutput{Call: a, Text: NotRunText, Failed: true},
				ModelReply{Text: "y"},
			},
		},
		{
			"a refused turn is dropped",
			[]Record{
				user("t1", "hi"), said("t1", "hello"),
				TurnFinished{Turn: "t1", Stop: StopEndTurn},
				user("t2", "bad"), said("t2", "x", a), began(a),
				CallFinished{Turn: "t2", Call: "a", Text: "r"},
				said("t2", "no"),
				TurnFinished{Turn: "t2", Stop: StopRefusal},
				user("t3", "good"),
			},
			[]ModelMessage{asked("hi"), ModelReply{Text: "hello"}, asked("good")},
		},
		{
			"the model is told once that a turn was cancelled",
			[]Record{
				user("t1", "hi"),
				TurnFinished{Turn: "t1", Stop: StopCancelled},
				TurnFinished{Turn: "t1", Stop: StopCancelled},
				user("t2", "a"),
				TurnFinished{Turn: "t2", Stop: StopEndTurn},
				user("t3", "b"),
			},
			[]ModelMessage{asked("hi"), UserInput{Blocks: []Block{Text{Text: "[The previous turn was cancelled before it ended.]"}, Text{Text: "a"}}}, asked("b")},
		},
		{
			"the model is told that a turn was interrupted",
			[]Record{user("t1", "hi"), TurnFinished{Turn: "t1", Interrupted: true}, user("t2", "a")},
			[]ModelMessage{asked("hi"), UserInput{Blocks: []Block{Text{Text: "[The previous turn was interrupted: the agent stopped before it ended.]"}, Text{Text: "a"}}}},
		},
		{
			"events for the model come with the next prompt, others never",
			[]Record{
				ClientEvent{Type: "open", Payload: []byte(`{"f":1}`), ForModel: true},
				ClientEvent{Type: "secret", Payload: []byte(`{}`)},
				user("t1", "hi"),
			},
			[]ModelMessage{UserInput{Blocks: []Block{Text{Text: `[client event open] {"f":1}`}, Text{Text: "hi"}}}},
		},
		{
			"an unknown record takes part in nothing",
			[]Record{Unknown{Kind: "future"}, user("t1", "hi"), Unknown{Kind: "future"}},
			[]ModelMessage{asked("hi")},
		},
		{
			"a late end of an older turn does not end the newer",
			[]Record{user("t1", "hi"), user("t2", "again"), TurnFinished{Turn: "t1", Stop: StopRefusal}},
			[]ModelMessage{asked("hi"), asked("again")},
		},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got := fold(c.recs).Messages()
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("messages (-want +got):\n%s", diff)
			}
		})
	}
}

func TestConversation_MessagesAreACopy(t *testing.T) {
	for _, recs := range [][]Record{{user("t1", "hi")}, {user("t1", "hi"), said("t1", "x", call("a"))}} {
		conv := fold(recs)
		msgs := conv.Messages()
		msgs[0] = asked("changed")
		_ = append(msgs, asked("more"))
		if diff := cmp.Diff(ModelMessage(asked("hi")), conv.Messages()[0]); diff != "" {
			t.Errorf("a caller changed the conversation:\n%s", diff)
		}
	}
}

func TestConversation_Settle(t *testing.T) {
	began := func(turn TurnID, id string) CallBegan {
		return CallBegan{Turn: turn, Call: call(id), Update: CallOpened{ID: CallID(id)}}
	}
	closed := func(turn TurnID, id CallID) CallFinished {
		return CallFinished{Turn: turn, Call: id, Failed: true, Interrupted: true, Text: InterruptedText}
	}
	cases := []struct {
		name string
		recs []Record
		want []Record
	}{
		{"nothing", nil, nil},
		{"an ended turn", []Record{user("t1", "hi"), TurnFinished{Turn: "t1", Stop: StopEndTurn}}, nil},
		{"a prompt alone", []Record{user("t1", "hi")}, []Record{TurnFinished{Turn: "t1", Interrupted: true}}},
		{
			"calls in the order they began",
			[]Record{user("t1", "hi"), said("t1", "x", call("t1-c9"), call("t1-c10")), began("t1", "t1-c9"), began("t1", "t1-c10")},
			[]Record{closed("t1", "t1-c9"), closed("t1", "t1-c10"), TurnFinished{Turn: "t1", Interrupted: true}},
		},
		{
			"a call that never began is not closed for the client",
			[]Record{user("t1", "hi"), said("t1", "x", call("a"))},
			[]Record{TurnFinished{Turn: "t1", Interrupted: true}},
		},
		{
			"a call left open in an earlier turn",
			[]Record{
				user("t1", "hi"), said("t1", "x", call("a")), began("t1", "a"),
				TurnFinished{Turn: "t1", Stop: StopCancelled},
				user("t2", "b"),
				TurnFinished{Turn: "t2", Stop: StopEndTurn},
			},
			[]Record{closed("t1", "a")},
		},
		{
			"both",
			[]Record{user("t1", "hi"), said("t1", "x", call("a")), began("t1", "a"), user("t2", "b")},
			[]Record{closed("t1", "a"), TurnFinished{Turn: "t2", Interrupted: true}},
		},
		{
			"a reply that was streamed, in parts of one message and of two",
			[]Record{
				user("t1", "hi"), said("t1", "x", call("a")), began("t1", "a"),
				Streamed{Turn: "t1", Agent: "g", Model: ModelRef{Provider: "p", Model: "m"}, Parts: []MessagePart{{ID: "m1", Thought: true, Text: "h"}, {ID: "m2", Text: "he"}}},
				Streamed{Turn: "t1", Agent: "g", Model: ModelRef{Provider: "p", Model: "m"}, Parts: []MessagePart{{ID: "m2", Text: "llo"}}},
			},
			[]Record{
				closed("t1", "a"),
				AssistantSaid{
					Turn: "t1", Agent: "g", Model: ModelRef{Provider: "p", Model: "m"}, Truncated: true,
					Parts: []MessagePart{{ID: "m1", Thought: true, Text: "h"}, {ID: "m2", Text: "hello"}},
				},
				TurnFinished{Turn: "t1", Interrupted: true},
			},
		},
		{
			"a reply that came after it was streamed",
			[]Record{user("t1", "hi"), Streamed{Turn: "t1", Parts: []MessagePart{{ID: "m1", Text: "x"}}}, said("t1", "x")},
			[]Record{TurnFinished{Turn: "t1", Interrupted: true}},
		},
		{
			"what comes after the end, or of a turn that nobody knows, counts for nothing",
			[]Record{
				user("t1", "hi"), Streamed{Turn: "t2", Parts: []MessagePart{{ID: "m1", Text: "x"}}},
				TurnFinished{Turn: "t1", Stop: StopCancelled}, Streamed{Turn: "t1", Parts: []MessagePart{{ID: "m1", Text: "x"}}},
			},
			nil,
		},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, fold(c.recs).Settle()); diff != "" {
				t.Errorf("Settle (-want +got):\n%s", diff)
			}
		})
	}
}

func TestConversation_Rules(t *testing.T) {
	give := func(r Rule) PermissionGiven { return PermissionGiven{Turn: "t", Rules: []Rule{r}} }
	yes, no, other := Rule{Allow: true, Tool: "w", Scope: "/a"}, Rule{Tool: "w", Scope: "/a"}, Rule{Allow: true, Tool: "w", Scope: "/b"}
	conv := fold([]Record{give(yes), give(other), give(no), PermissionGiven{Turn: "t", Option: "allow-once"}})
	if diff := cmp.Diff([]Rule{other, no}, conv.Rules()); diff != "" {
		t.Errorf("a newer answer replaces the older one for the same thing (-want +got):\n%s", diff)
	}
	conv.Rules()[0].Allow = false
	if !conv.Rules()[0].Allow {
		t.Error("a caller changed the remembered rules")
	}
}

func TestConversation_State(t *testing.T) {
	if got := NewConversation(7).State(); got != nil {
		t.Errorf("an empty conversation has the state %v", got)
	}
	if got := NewConversation(7).Seq(); got != 7 {
		t.Errorf("a conversation that begins after 7 stands at %d", got)
	}
	plan := []PlanEntry{{Content: "x", Priority: "low", Status: "pending"}}
	conv := fold([]Record{
		user("t1", "hi"),
		TitleSet{Title: "first"},
		TitleSet{Title: "second"},
		PlanSet{Turn: "t1", Entries: []PlanEntry{{Content: "old"}}},
		PlanSet{Turn: "t1", Entries: plan},
		AssistantSaid{Turn: "t1", Parts: []MessagePart{{Text: "a"}}, Usage: Usage{Input: 10, Output: 2, CachedRead: 4}, Window: 100},
		AssistantSaid{Turn: "t1", Parts: []MessagePart{{Text: "b"}}, Usage: Usage{Input: 20, Output: 3, Thought: 1, CachedWrite: 2}, Window: 100},
		AssistantSaid{Turn: "t1", Parts: []MessagePart{{Text: "no count"}}},
	})
	want := []Update{PlanChanged{Entries: plan}, UsageChanged{Used: 23, Size: 100}, InfoChanged{Title: "second"}}
	if diff := cmp.Diff(want, conv.State()); diff != "" {
		t.Errorf("state (-want +got):\n%s", diff)
	}
	used, window, total := conv.Usage()
	if used != 23 || window != 100 || total != (Usage{Input: 30, Output: 5, Thought: 1, CachedRead: 4, CachedWrite: 2}) {
		t.Errorf("usage is %d of %d, total %+v", used, window, total)
	}
}
