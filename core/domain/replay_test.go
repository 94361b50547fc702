package domain_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	. "github.com/berth-dev/berth/core/domain"
)

// checkStory demands what a client may rely on in any run of updates: a call
// is introduced once and before it is changed, its status only moves forward,
// it ends exactly once, and it does end.
func checkStory(ups []Update) error {
	status := map[CallID]CallStatus{}
	order := map[CallStatus]int{CallPending: 0, CallInProgress: 1, CallCompleted: 2, CallFailed: 2}
	for i, u := range ups {
		switch u := u.(type) {
		case CallOpened:
			if _, again := status[u.ID]; again {
				return fmt.Errorf("update %d introduces call %s again", i, u.ID)
			}
			status[u.ID] = u.Status
		case CallChanged:
			now, known := status[u.ID]
			switch {
			case !known:
				return fmt.Errorf("update %d changes call %s, which nobody introduced", i, u.ID)
			case now.Final():
				return fmt.Errorf("update %d changes call %s after its end", i, u.ID)
			case u.Status != "" && order[u.Status] < order[now]:
				return fmt.Errorf("update %d moves call %s back to %s", i, u.ID, u.Status)
			}
			if u.Status != "" {
				status[u.ID] = u.Status
			}
		case UserMessage, AgentText, AgentThought, PlanChanged, UsageChanged, InfoChanged, CommandsChanged, CompactionChanged, CompactionText, Notice, TurnStarted, TurnEnded:
		}
	}
	for id, s := range status {
		if !s.Final() {
			return fmt.Errorf("call %s is left %s", id, s)
		}
	}
	return nil
}

func replay(recs []Record) []Update {
	var ups []Update
	for _, r := range recs {
		ups = append(ups, Replay(r)...)
	}
	return ups
}

func TestReplay_OfAnyPrefixIsAWholeStory(t *testing.T) {
	for seed := range uint64(seeds) {
		recs := newJournals(seed).make()
		if again := replay(recs); !cmp.Equal(replay(recs), again) {
			t.Fatalf("seed %d: replay is not the same twice", seed)
		}
		for n := range len(recs) + 1 {
			settled := slices.Concat(recs[:n], fold(recs[:n]).Settle())
			ups := replay(settled)
			if err := checkStory(ups); err != nil {
				t.Fatalf("seed %d, prefix %d: %v\n%s", seed, n, err, list(settled))
			}
		}
	}
}

// What is replayed of a call is what was told live: both come from Updates.
func TestReplay_OfCallsEqualsLive(t *testing.T) {
	for seed := range uint64(300) {
		for _, r := range newJournals(seed).make() {
			switch r.(type) {
			case CallBegan, CallFinished, PlanSet, PermissionGiven:
				if diff := cmp.Diff(Updates(r), Replay(r)); diff != "" {
					t.Fatalf("live and replay of %T differ:\n%s", r, diff)
				}
			}
		}
	}
}

func TestUpdatesAndReplay(t *testing.T) {
	plan := []PlanEntry{{Content: "x"}}
	diff := Diff{Path: "/a", NewText: "n", Created: true}
	opened := CallOpened{ID: "c", Name: "read_file", Title: "Read a", Kind: KindRead, Status: CallPending, RawInput: []byte("{}")}
	text := func(s string) []CallContent { return []CallContent{ContentBlock{Block: Text{Text: s}}} }
	cases := []struct {
		name         string
		rec          Record
		live, replay []Update
	}{
		{
			"a prompt is never echoed live, and replayed block by block",
			UserSaid{Turn: "t", ID: "t-u", Blocks: []Block{Text{Text: "a"}, Link{URI: "u"}}},
			nil,
			[]Update{UserMessage{ID: "t-u", Block: Text{Text: "a"}}, UserMessage{ID: "t-u", Block: Link{URI: "u"}}},
		},
		{
			"a reply was streamed; the context's fill is told live",
			AssistantSaid{Turn: "t", Parts: []MessagePart{{ID: "m1", Thought: true, Text: "hm"}, {ID: "m2", Text: "a"}}, Usage: Usage{Input: 5, Output: 2}, Window: 50},
			[]Update{UsageChanged{Used: 7, Size: 50}},
			[]Update{AgentThought{ID: "m1", Text: "hm"}, AgentText{ID: "m2", Text: "a"}},
		},
		{"a part of a reply was streamed, and the reply is replayed", Streamed{Turn: "t", Parts: []MessagePart{{ID: "m", Text: "a"}}}, nil, nil},
		{"no fill is told when the window is unknown", AssistantSaid{Turn: "t", Usage: Usage{Input: 5}}, nil, []Update{}},
		{"a call opens", CallBegan{Turn: "t", Call: call("c"), Update: opened}, []Update{opened}, []Update{opened}},
		{
			"a call completes with its text",
			CallFinished{Turn: "t", Call: "c", Text: "r"},
			[]Update{CallChanged{ID: "c", Status: CallCompleted, Content: text("r")}},
			[]Update{CallChanged{ID: "c", Status: CallCompleted, Content: text("r")}},
		},
		{
			"a call completes with its own content",
			CallFinished{Turn: "t", Call: "c", Text: "r", Content: []CallContent{diff}, RawOutput: []byte("1"), Locations: []Location{{Path: "/a"}}},
			[]Update{CallChanged{ID: "c", Status: CallCompleted, Content: []CallContent{diff}, RawOutput: []byte("1"), Locations: []Location{{Path: "/a"}}}},
			[]Update{CallChanged{ID: "c", Status: CallCompleted, Content: []CallContent{diff}, RawOutput: []byte("1"), Locations: []Location{{Path: "/a"}}}},
		},
		{"a call fails", CallFinished{Turn: "t", Call: "c", Failed: true}, []Update{CallChanged{ID: "c", Status: CallFailed}}, []Update{CallChanged{ID: "c", Status: CallFailed}}},
		{"an interrupted call has failed", CallFinished{Turn: "t", Call: "c", Interrupted: true}, []Update{CallChanged{ID: "c", Status: CallFailed}}, []Update{CallChanged{ID: "c", Status: CallFailed}}},
		{"a plan", PlanSet{Entries: plan}, []Update{PlanChanged{Entries: plan}}, []Update{PlanChanged{Entries: plan}}},
		{"a title is told live; on load once, at the end", TitleSet{Title: "x"}, []Update{InfoChanged{Title: "x"}}, nil},
		{"a permission is not an update", PermissionGiven{Call: "c"}, nil, nil},
		{"a client event is not an update", ClientEvent{Type: "x"}, nil, nil},
		{"a turn that ended well leaves no mark", TurnFinished{Turn: "t", Stop: StopEndTurn}, nil, nil},
		{"a cancelled turn leaves no words", TurnFinished{Turn: "t", Stop: StopCancelled}, nil, []Update{TurnEnded{Turn: "t", Stop: StopCancelled, Past: true}}},
		{"nor does a refused one", TurnFinished{Turn: "t", Stop: StopRefusal}, nil, []Update{TurnEnded{Turn: "t", Stop: StopRefusal, Past: true}}},
		{"nor one at a limit of tokens", TurnFinished{Turn: "t", Stop: StopMaxTokens}, nil, []Update{TurnEnded{Turn: "t", Stop: StopMaxTokens, Past: true}}},
		{"nor one at a limit of requests", TurnFinished{Turn: "t", Stop: StopMaxTurnRequests}, nil, []Update{TurnEnded{Turn: "t", Stop: StopMaxTurnRequests, Past: true}}},
		{
			"an interrupted turn is marked",
			TurnFinished{Turn: "t", Interrupted: true},
			nil,
			[]Update{
				AgentText{ID: "t-end", Text: "[Interrupted: the agent stopped before this turn ended.]"},
				TurnEnded{Turn: "t", Why: "Interrupted: the agent stopped before this turn ended.", Past: true},
			},
		},
		{
			"a failed turn is marked with its message",
			TurnFinished{Turn: "t", Failure: &Failure{Code: Unavailable, Msg: "no route"}},
			nil,
			[]Update{AgentText{ID: "t-end", Text: "[This turn failed: no route]"}, TurnEnded{Turn: "t", Why: "no route", Past: true}},
		},
		{"an unknown record is not shown", Unknown{Kind: "x"}, nil, nil},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if diff := cmp.Diff(c.live, Updates(c.rec)); diff != "" {
				t.Errorf("live (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(c.replay, Replay(c.rec)); diff != "" {
				t.Errorf("replay (-want +got):\n%s", diff)
			}
		})
	}
}
