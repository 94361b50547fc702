package domain_test

import (
	"testing"

	. "github.com/berth-dev/berth/core/domain"
)

// No rights are all rights, and what limits is read exactly: a directory whose
// name only begins like a root's is not below it.
func TestRights(t *testing.T) {
	var all *Rights
	some := &Rights{Name: "x", Agents: []string{"a"}, Roots: []string{"/team", `C:\work`, "/end/"}}
	none := &Rights{Agents: []string{}, Roots: []string{}}
	for _, c := range []struct {
		name string
		got  bool
		want bool
	}{
		{"everything: agent", all.Agent("a"), true},
		{"everything: directory", all.Directory("/"), true},
		{"everything: answers", all.Answers(), true},
		{"an agent on the list", some.Agent("a"), true},
		{"another agent", some.Agent("A"), false},
		{"an empty list of agents", none.Agent("a"), false},
		{"an empty list of roots", none.Directory("/team"), false},
		{"no lists", (&Rights{}).Agent("a") && (&Rights{}).Directory("/"), true},
		{"the root itself", some.Directory("/team"), true},
		{"below the root", some.Directory("/team/a/b"), true},
		{"beside the root", some.Directory("/teamwork"), false},
		{"above the root", some.Directory("/"), false},
		{"a root with a separator", some.Directory("/end/x"), true},
		{"a Windows root", some.Directory(`C:\work\x`), true},
		{"beside a Windows root", some.Directory(`C:\workshop`), false},
		{"a session within", some.Session(Session{Agent: "a", Cwd: "/team", Additional: []string{"/team/x"}}), true},
		{"a session with a directory beyond", some.Session(Session{Agent: "a", Cwd: "/team", Additional: []string{"/x"}}), false},
		{"a session of another agent", some.Session(Session{Agent: "b", Cwd: "/team"}), false},
		{"an observer answers", (&Rights{Observe: true}).Answers(), false},
		{"a reader answers", (&Rights{Level: LevelReadOnly}).Answers(), false},
	} {
		if c.got != c.want {
			t.Errorf("%s: %v", c.name, c.got)
		}
	}
	if all.Principal() != "" || some.Principal() != "x" {
		t.Error("principals")
	}
}

// The lower of two levels applies, and a level nobody knows is the lowest.
func TestRights_Cap(t *testing.T) {
	levels := []Level{LevelReadOnly, LevelSupervised, LevelFull}
	for i, agent := range levels {
		if got := (*Rights)(nil).Cap(agent); got != agent {
			t.Errorf("no rights cap %s to %s", agent, got)
		}
		for k, most := range levels {
			if got, want := (&Rights{Level: most}).Cap(agent), levels[min(i, k)]; got != want {
				t.Errorf("%s capped by %s is %s", agent, most, got)
			}
		}
		if got := (&Rights{Level: "odd"}).Cap(agent); got != "odd" {
			t.Errorf("%s capped by an unknown level is %s", agent, got)
		}
	}
}

// How the newest turn ended outlives it, and not the next one's end.
func TestConversation_Ended(t *testing.T) {
	c := NewConversation(0)
	if _, ok := c.Ended(); ok {
		t.Error("a turn has ended in an empty conversation")
	}
	for i, r := range []Record{
		UserSaid{Turn: "t1"}, TurnFinished{Turn: "t1", Stop: StopEndTurn},
		UserSaid{Turn: "t2"}, TurnFinished{Turn: "t2", Failure: &Failure{Code: RateLimited}},
		UserSaid{Turn: "t3"},
	} {
		c.Add(Entry{Seq: Seq(i + 1), Record: r})
	}
	if end, ok := c.Ended(); !ok || end.Turn != "t2" || end.Failure == nil {
		t.Errorf("the newest end is %+v", end)
	}
}
