package domain_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	. "github.com/berth-dev/berth/core/domain"
)

// longText is a result that is worth trimming.
func longText(name string) string {
	return "begin " + name + "\n" + strings.Repeat("line\n", 1000) + "end " + name
}

// tell is a step of a turn: a call and its result.
func tell(turn TurnID, id, result string) []Record {
	c := call(id)
	return []Record{
		AssistantSaid{Turn: turn, Parts: []MessagePart{{Text: "step " + id}}, Calls: []ModelCall{c}, Opaque: &Opaque{Provider: "p", Data: []byte("signed " + id)}},
		CallBegan{Turn: turn, Call: c, Update: CallOpened{ID: c.ID}},
		CallFinished{Turn: turn, Call: c.ID, Text: result},
	}
}

// shape names messages in a few words, to compare conversations by.
func shape(list []ModelMessage) []string {
	var out []string
	for _, m := range list {
		switch m := m.(type) {
		case UserInput:
			text := PromptText(m.Blocks)
			if _, after, ok := strings.Cut(text, "on a detail.]\n\n"); ok {
				text = "recap: " + strings.ReplaceAll(after, "\n", "|")
			}
			out = append(out, "user "+text)
		case ModelReply:
			out = append(out, "reply "+m.Text)
		case ToolOutput:
			whole := "part"
			if m.Text == longText(string(m.Call.ID)) {
				whole = "whole"
			} else if len(m.Text) < 20 {
				whole = m.Text
			}
			out = append(out, fmt.Sprintf("output %s %s", m.Call.ID, whole))
		}
	}
	return out
}

func TestConversation_Compacted(t *testing.T) {
	done := func(turn TurnID) Record { return TurnFinished{Turn: turn, Stop: StopEndTurn} }
	// Two turns that ended (records 1 to 6 and 7 to 9) and one with two steps.
	story := slices.Concat(
		[]Record{user("t1", "first")}, tell("t1", "a", longText("a")), []Record{said("t1", "one"), done("t1")},
		[]Record{user("t2", "second"), said("t2", "two"), done("t2")},
		[]Record{user("t3", "third")}, tell("t3", "b", longText("b")), tell("t3", "c", longText("c")),
	)
	plan := PlanSet{Turn: "t3", Entries: []PlanEntry{{Content: "dig", Status: "pending"}}}
	for name, c := range map[string]struct {
		recs []Record
		want []string
	}{
		"older results are trimmed": {
			[]Record{Compacted{Trimmed: 13}},
			[]string{"user first", "reply step a", "output a part", "reply one", "user second", "reply two", "user third", "reply step b", "output b part", "reply step c", "output c whole"},
		},
		"what came before the prompt is summarised": {
			[]Record{Compacted{Through: 9, Summary: "SUM"}},
			[]string{"user recap: SUM||What the user asked in it, in order:|- first|- second", "user third", "reply step b", "output b whole", "reply step c", "output c whole"},
		},
		"the newest prompt and step stay": {
			[]Record{plan, Compacted{Through: 13, Summary: "SUM"}},
			[]string{"user recap: SUM||What the user asked in it, in order:|- first|- second|||The plan as it stood at the end of it:|1. [pending] dig", "user third", "reply step c", "output c whole"},
		},
		"the results of the newest step are cut": {
			[]Record{Compacted{Through: 13, Summary: "SUM", Largest: 1100}},
			[]string{"user recap: SUM||What the user asked in it, in order:|- first|- second", "user third", "reply step c", "output c part"},
		},
		"a later one replaces the summary": {
			[]Record{Compacted{Through: 6, Summary: "ONE"}, Compacted{Through: 9, Summary: "TWO"}},
			[]string{"user recap: TWO||What the user asked in it, in order:|- first|- second", "user third", "reply step b", "output b whole", "reply step c", "output c whole"},
		},
		"a cancelled one changes nothing": {
			[]Record{Compacted{Through: 13, Trimmed: 13, Summary: "SUM", Cancelled: true}},
			shape(fold(story).Messages()),
		},
		"a refused turn takes with it what was done to it": {
			[]Record{Compacted{Through: 9, Summary: "ONE"}, Compacted{Through: 13, Summary: "BAD"}, TurnFinished{Turn: "t3", Stop: StopRefusal}},
			[]string{"user recap: ONE||What the user asked in it, in order:|- first|- second"},
		},
		"and nothing else": {
			[]Record{Compacted{Through: 9, Summary: "ONE"}, TurnFinished{Turn: "t3", Stop: StopRefusal}},
			[]string{"user recap: ONE||What the user asked in it, in order:|- first|- second"},
		},
		"calls that wait keep their reply": {
			slices.Concat(tell("t3", "d", "r")[:2], []Record{Compacted{Through: 99, Summary: "SUM"}, CallFinished{Turn: "t3", Call: "d", Text: "late"}}),
			[]string{"user recap: SUM||What the user asked in it, in order:|- first|- second", "user third", "reply step d", "output d late"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := fold(slices.Concat(story, c.recs)).Messages()
			if diff := cmp.Diff(c.want, shape(got)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if err := checkMessages(got); err != nil {
				t.Error(err)
			}
			for _, m := range got {
				r, ok := m.(ModelReply)
				if ok && r.Opaque != nil && string(r.Opaque.Data) != "signed "+string(r.Calls[0].ID) {
					t.Errorf("the signature of %q has become %q", r.Text, r.Opaque.Data)
				}
			}
		})
	}
}

// TestShrink demands of every compaction of random journals that it can be
// applied, wins what it says, and leaves the newest prompt and step.
func TestShrink(t *testing.T) {
	shrunk := 0
	for seed := range uint64(seeds) {
		j := newJournals(seed)
		recs := j.make()
		for n := range len(recs) {
			conv := fold(recs[:n])
			goal := int64(j.rng.IntN(100))
			s, ok := conv.Shrink(goal, goal*2, j.chance(2))
			before := conv.Messages()
			if n%5 == 0 && !cmp.Equal(before, fold(recs[:n]).Messages()) {
				t.Fatalf("seed %d, prefix %d: looking for it changed the conversation", seed, n)
			}
			if !ok {
				continue
			}
			shrunk++
			rec := s.Record
			if len(s.Old) > 0 {
				rec.Summary = "s"
			}
			after := fold(append(slices.Clone(recs[:n]), rec)).Messages()
			if err := checkMessages(after); err != nil {
				t.Fatalf("seed %d, prefix %d: %v", seed, n, err)
			}
			if got := EstimateMessages(after); got > s.Left+s.Recap+4 {
				t.Fatalf("seed %d, prefix %d: %d tokens are left, not %d+%d\n%v", seed, n, got, s.Left, s.Recap, shape(after))
			}
			if (rec.Through > 0) != (len(s.Old) > 0) {
				t.Fatalf("seed %d, prefix %d: through %d with %d messages to summarise", seed, n, rec.Through, len(s.Old))
			}
			if newest(before) != newest(after) {
				t.Fatalf("seed %d, prefix %d: the newest prompt or step changed from %q to %q", seed, n, newest(before), newest(after))
			}
		}
	}
	if shrunk < seeds {
		t.Errorf("only %d conversations could be made shorter", shrunk)
	}
}

// newest is the newest prompt and the newest reply with calls behind it.
func newest(list []ModelMessage) string {
	var prompt, step string
	for _, m := range list {
		switch m := m.(type) {
		case UserInput:
			prompt, step = PromptText(m.Blocks), ""
		case ModelReply:
			if len(m.Calls) > 0 {
				step = fmt.Sprint(m.Calls)
			}
		case ToolOutput:
		}
	}
	if strings.HasPrefix(prompt, "[The earlier part") {
		prompt = ""
	}
	return prompt + " / " + step
}

func TestShrink_TakesTheLeastThatDoes(t *testing.T) {
	story := slices.Concat(
		[]Record{user("t1", "first")}, tell("t1", "a", longText("a")), []Record{TurnFinished{Turn: "t1", Stop: StopEndTurn}},
		[]Record{user("t2", "second")}, tell("t2", "b", longText("b")), tell("t2", "c", longText("c")),
	)
	for name, c := range map[string]struct {
		goal, limit int64
		summarise   bool
		want        Compacted
	}{
		"trimming does":            {goal: 3000, limit: 6000, want: Compacted{Trimmed: 9}},
		"a person asked":           {goal: 4000, limit: 6000, summarise: true, want: Compacted{Trimmed: 9, Through: 5}},
		"the turn is too long too": {goal: 1000, limit: 6000, want: Compacted{Trimmed: 9, Through: 9}},
		"and its newest results":   {goal: 1000, limit: 2000, want: Compacted{Trimmed: 9, Through: 9, Largest: 3460}},
		"however small the window": {goal: -50, limit: -50, want: Compacted{Trimmed: 9, Through: 9, Largest: 1024}},
	} {
		t.Run(name, func(t *testing.T) {
			s, ok := fold(story).Shrink(c.goal, c.limit, c.summarise)
			if !ok {
				t.Fatal("nothing was found")
			}
			if diff := cmp.Diff(c.want, s.Record); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	short := []Record{user("t1", "hi"), said("t1", "hello")}
	if s, ok := fold(short).Shrink(1, 1, true); ok {
		t.Errorf("a conversation of one turn can be made shorter: %+v", s)
	}
}

func TestConversation_CommandsAreNotTheModels(t *testing.T) {
	conv := fold([]Record{
		user("t1", "hi"), said("t1", "hello"), TurnFinished{Turn: "t1", Stop: StopCancelled},
		UserSaid{Turn: "t2", Command: "compact", Blocks: []Block{Text{Text: "/compact"}}},
		said("t2", "done"), TurnFinished{Turn: "t2", Stop: StopCancelled},
		user("t3", "go on"),
	})
	want := []string{"user hi", "reply hello", "user [The previous turn was cancelled before it ended.]\n\ngo on"}
	if diff := cmp.Diff(want, shape(conv.Messages())); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestConversation_FailuresDoNotWedge(t *testing.T) {
	tooLong := func(turn TurnID) Record {
		return TurnFinished{Turn: turn, Failure: &Failure{Code: ContextTooLong}}
	}
	conv := fold(slices.Concat(
		[]Record{user("t1", "hi"), said("t1", "hello"), TurnFinished{Turn: "t1", Stop: StopEndTurn}},
		[]Record{user("t2", "huge"), tooLong("t2"), user("t3", "work")}, tell("t3", "a", "r"), []Record{tooLong("t3")},
		[]Record{user("t4", "cut"), TurnFinished{Turn: "t4", Stop: StopMaxTokens}, user("t5", "next")},
	))
	want := []string{
		"user hi", "reply hello", "user [The previous prompt was left out: it was too long.]\n\nwork", "reply step a", "output a r", "user cut",
		"user [Your previous reply was cut off at the limit of its length. Tool calls in it were not run.]\n\nnext",
	}
	if diff := cmp.Diff(want, shape(conv.Messages())); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestConversation_LimitOfAResult(t *testing.T) {
	conv := fold([]Record{
		user("t1", "hi"), said("t1", "x", call("a")),
		CallFinished{Turn: "t1", Call: "a", Text: longText("a"), Limit: 1200},
	})
	out := conv.Messages()[2].(ToolOutput).Text
	if len(out) > 1200 || !strings.HasPrefix(out, "begin a\n") || !strings.HasSuffix(out, "end a") || !strings.Contains(out, "bytes are left out here") {
		t.Errorf("the model is shown %d bytes: %.200q", len(out), out)
	}
}

func TestConversation_Cost(t *testing.T) {
	cost := func(m MicroUSD) *MicroUSD { return &m }
	free := fold([]Record{user("t1", "hi"), said("t1", "x")})
	if free.Cost() != nil {
		t.Errorf("what nobody priced costs %v", *free.Cost())
	}
	conv := fold([]Record{
		user("t1", "hi"), AssistantSaid{Turn: "t1", Cost: cost(5), Usage: Usage{Input: 3}, Window: 9}, said("t1", "x"),
		Compacted{Cost: cost(7), Usage: Usage{Output: 2}, Cancelled: true}, AssistantSaid{Turn: "t1", Cost: cost(100), Truncated: true},
	})
	if got := conv.Cost(); got == nil || *got != 112 {
		t.Errorf("the session cost %v", got)
	}
	if _, _, total := conv.Usage(); total != (Usage{Input: 3, Output: 2}) {
		t.Errorf("the session used %+v", total)
	}
	want := []Update{UsageChanged{Used: 3, Size: 9, Cost: &Cost{Amount: 0.000112, Currency: "USD"}}}
	if diff := cmp.Diff(want, conv.State()); diff != "" {
		t.Errorf("state (-want +got):\n%s", diff)
	}
}

func TestSpending(t *testing.T) {
	cost := func(m MicroUSD) *MicroUSD { return &m }
	for name, c := range map[string]struct {
		rec   Record
		agent string
		want  MicroUSD
	}{
		"a reply":       {AssistantSaid{Agent: "a", Cost: cost(5)}, "a", 5},
		"a compaction":  {Compacted{Agent: "a", Cost: cost(5), Cancelled: true}, "a", 5},
		"unknown":       {AssistantSaid{Agent: "a"}, "", 0},
		"nobody's":      {AssistantSaid{Cost: cost(5)}, "", 0},
		"less than 0":   {AssistantSaid{Agent: "a", Cost: cost(-5)}, "", 0},
		"another thing": {TurnFinished{}, "", 0},
	} {
		if agent, got := Spending(c.rec); agent != c.agent || got != c.want {
			t.Errorf("%s: %q %v", name, agent, got)
		}
	}
}
