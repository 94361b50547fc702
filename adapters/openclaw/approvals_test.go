package openclaw

import (
	"encoding/json"
	"testing"

	"github.com/berth-dev/berth/core/domain"
)

// TestOptionsOf: a no can always be said, and nothing else that was not
// offered.
func TestOptionsOf(t *testing.T) {
	for in, want := range map[string][]string{
		`{}`:                                            {allowOnce, deny},
		`{"allowedDecisions":["allow-always"]}`:         {allowAlways, deny},
		`{"allowedDecisions":["run-it","deny"]}`:        {deny},
		`{"allowedDecisions":"allow-once"}`:             {allowOnce, deny},
		`{"allowedDecisions":["nonsense",5,null]}`:      {deny},
		`{"allowedDecisions":["deny","allow-once",""]}`: {allowOnce, deny},
	} {
		var got []string
		for _, o := range optionsOf(fieldsOf(json.RawMessage(in))) {
			got = append(got, string(o.ID))
		}
		if len(got) != len(want) || got[0] != want[0] || got[len(got)-1] != want[len(want)-1] {
			t.Errorf("%s: %v, want %v", in, got, want)
		}
	}
}

// TestPermission_Late has a request whose run has been told the end of: no
// call of it is told any more.
func TestPermission_Late(t *testing.T) {
	for name, over := range map[string]func(t *turn){
		"closed": func(t *turn) { t.closed = true },
		"ended":  func(t *turn) { t.out = &outcome{stop: stopEnd} },
	} {
		t.Run(name, func(t *testing.T) {
			turn := newTurn(nil, &session{id: domain.SessionID("s"), calls: map[string]string{}}, "r") // telling would be a fault
			over(turn)
			if _, ok := turn.permission("a", fieldsOf(json.RawMessage(`{"command":"ls"}`))); ok {
				t.Error("the editor is asked")
			}
		})
	}
}

// TestSession_CallIDs: what is remembered of tool calls is bounded.
func TestSession_CallIDs(t *testing.T) {
	s := &session{calls: map[string]string{}}
	for i := range 3 * mostCalls {
		s.callID("r", string(rune('a'+i%26))+string(rune(i)))
	}
	if len(s.calls) > mostCalls {
		t.Errorf("%d are remembered", len(s.calls))
	}
}
