package domain_test

import (
	"fmt"
	"math/rand/v2"
	"time"

	. "github.com/berth-dev/berth/core/domain"
)

// journals makes random journals as an engine would write them: turns with
// replies, calls that run one after the other or side by side, permissions,
// plans, titles, client events and every way of ending, crashes included.
type journals struct {
	rng   *rand.Rand
	recs  []Record
	turns int
}

func newJournals(seed uint64) *journals {
	return &journals{rng: rand.New(rand.NewPCG(seed, 1))}
}

// make returns the records of a few turns. A crash leaves a turn without an
// end; what Settle says then is what the next process appends first.
func (j *journals) make() []Record {
	j.recs = nil
	for range 1 + j.rng.IntN(5) {
		j.turn()
		if j.chance(4) {
			j.add(ClientEvent{Type: "note", Payload: []byte(`{"n":1}`), ForModel: j.chance(2)})
		}
	}
	return j.recs
}

func (j *journals) chance(n int) bool { return j.rng.IntN(n) == 0 }

func (j *journals) add(r ...Record) { j.recs = append(j.recs, r...) }

func (j *journals) turn() {
	j.turns++
	id := TurnID(fmt.Sprintf("t%d", j.turns))
	j.add(UserSaid{Turn: id, ID: MessageID(id + "-u"), Blocks: []Block{Text{Text: "do " + string(id)}, Link{URI: "file:///a", Name: "a"}}})
	if j.turns == 1 {
		j.add(TitleSet{Title: "do"})
	}
	n := 0
	for step := range j.rng.IntN(4) {
		if j.chance(3) {
			j.compaction(id)
		}
		said := j.reply(id, step, &n)
		if !j.stream(said) {
			j.crash(id)
			return
		}
		j.add(said)
		if !j.calls(id, said.Calls) {
			j.crash(id)
			return
		}
	}
	switch j.rng.IntN(6) {
	case 0:
		j.crash(id)
	case 1:
		j.add(TurnFinished{Turn: id, Stop: StopCancelled})
	case 2:
		j.add(AssistantSaid{Turn: id, Parts: []MessagePart{{ID: MessageID(id + "-mx"), Text: "half"}}, Truncated: true},
			TurnFinished{Turn: id, Failure: &Failure{Code: Unavailable, Msg: "broke off"}})
	case 3:
		j.add(TurnFinished{Turn: id, Stop: StopRefusal})
	default:
		said := j.reply(id, 9, &n)
		said.Calls = nil
		j.add(said, TurnFinished{Turn: id, Stop: StopEndTurn})
	}
}

func (j *journals) reply(id TurnID, step int, n *int) AssistantSaid {
	said := AssistantSaid{Turn: id, Finish: FinishStop, Window: 1000, Usage: Usage{Input: int64(10 * step), Output: 3}}
	for p := range j.rng.IntN(3) {
		said.Parts = append(said.Parts, MessagePart{
			ID: MessageID(fmt.Sprintf("%s-m%d-%d", id, step, p)), Thought: j.chance(2), Text: fmt.Sprintf("text %d", p),
		})
	}
	for range j.rng.IntN(4) {
		*n++
		said.Calls = append(said.Calls, ModelCall{ID: CallID(fmt.Sprintf("%s-c%d", id, *n)), Name: "read_file", Args: []byte("{}")})
		said.Finish = FinishCalls
	}
	return said
}

// stream is what an engine appends while a reply comes in slowly. It reports
// whether the reply came to its end.
func (j *journals) stream(said AssistantSaid) bool {
	for _, p := range said.Parts {
		for len(p.Text) > 0 && j.chance(3) {
			n := 1 + j.rng.IntN(len(p.Text))
			piece := p
			piece.Text, p.Text = p.Text[:n], p.Text[n:]
			j.add(Streamed{Turn: said.Turn, Parts: []MessagePart{piece}})
			if j.chance(9) {
				return false
			}
		}
	}
	return true
}

// compaction is what an engine appends between two steps.
func (j *journals) compaction(id TurnID) {
	s, ok := fold(j.recs).Shrink(int64(j.rng.IntN(60)), int64(j.rng.IntN(60)), j.chance(4))
	if !ok {
		return
	}
	rec := s.Record
	rec.Turn, rec.ID = id, CompactionID(fmt.Sprintf("%s-k%d", id, len(j.recs)))
	if len(s.Old) > 0 {
		rec.Summary = "a summary"
	}
	rec.Cancelled = j.chance(5)
	j.add(rec)
}

// calls runs the calls of a reply in batches and reports whether all ended.
func (j *journals) calls(id TurnID, calls []ModelCall) bool {
	for len(calls) > 0 {
		batch := calls[:1+j.rng.IntN(len(calls))]
		calls = calls[len(batch):]
		for _, c := range batch {
			j.add(CallBegan{Turn: id, Call: c, Update: CallOpened{ID: c.ID, Name: c.Name, Title: c.Name, Status: CallPending}})
		}
		order := j.rng.Perm(len(batch))
		for _, i := range order {
			if j.chance(12) {
				return false
			}
			if j.chance(4) {
				j.add(PermissionGiven{
					Turn: id, Call: batch[i].ID, Outcome: Selected, Option: "allow-always",
					Rules: []Rule{{Allow: j.chance(2), Tool: "write_file", Scope: "/work"}},
				})
			}
			j.add(CallFinished{Turn: id, Call: batch[i].ID, Failed: j.chance(3), Text: "result of " + string(batch[i].ID)})
			if j.chance(5) {
				j.add(PlanSet{Turn: id, Entries: []PlanEntry{{Content: "x", Priority: "low", Status: "pending"}}})
			}
		}
	}
	return true
}

// crash ends a turn as a process does that read a journal which broke off.
func (j *journals) crash(TurnID) {
	conv := fold(j.recs)
	j.add(conv.Settle()...)
}

// wild returns records in no order that makes sense, over few names, so that
// they collide.
func (j *journals) wild() []Record {
	var recs []Record
	for range j.rng.IntN(30) {
		id := TurnID(fmt.Sprintf("t%d", j.rng.IntN(3)))
		call := ModelCall{ID: CallID(fmt.Sprintf("c%d", j.rng.IntN(6))), Name: "x", Args: []byte("{}")}
		other := ModelCall{ID: call.ID + "b", Name: "y", Args: []byte("{}")}
		recs = append(recs, []Record{
			UserSaid{Turn: id, Blocks: []Block{Text{Text: "hi"}}},
			AssistantSaid{Turn: id, Parts: []MessagePart{{Text: "a"}}, Calls: []ModelCall{call, other}},
			AssistantSaid{Turn: id},
			CallBegan{Turn: id, Call: call, Update: CallOpened{ID: call.ID}},
			CallFinished{Turn: id, Call: call.ID, Text: "r"},
			TurnFinished{Turn: id, Stop: StopRefusal},
			TurnFinished{Turn: id, Stop: StopCancelled},
			TurnFinished{Turn: id, Interrupted: true},
			TurnFinished{Turn: id, Stop: StopEndTurn},
			Unknown{Kind: "future", Version: 9},
			ClientEvent{Type: "e", ForModel: true},
			PermissionGiven{Turn: id, Rules: []Rule{{Tool: "x"}}},
			Compacted{Turn: id, Trimmed: j.anywhere(recs), Through: j.anywhere(recs), Summary: "s"},
			Compacted{Turn: id, Trimmed: j.anywhere(recs), Largest: 1},
			UserSaid{Turn: id, Command: "compact"},
		}[j.rng.IntN(15)])
	}
	return recs
}

// anywhere is a position in a journal, or a little behind it.
func (j *journals) anywhere(recs []Record) Seq { return Seq(j.rng.IntN(len(recs) + 3)) }

func fold(recs []Record) *Conversation {
	conv := NewConversation(0)
	for i, r := range recs {
		conv.Add(Entry{Seq: Seq(i + 1), At: time.Unix(int64(i), 0), Record: r})
	}
	return conv
}
