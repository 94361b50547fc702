package domain_test

import (
	"fmt"
	"reflect"
	"testing"

	. "github.com/berth-dev/berth/core/domain"
)

func TestDecide(t *testing.T) {
	const tool, root = "write_file", "/work"
	edit := Access{Class: AccessEdit, Tool: tool, Scope: root}
	read := Access{Class: AccessRead, Tool: "read_file"}
	allow := []Rule{{Allow: true, Tool: tool, Scope: root}}
	reject := []Rule{{Allow: false, Tool: tool, Scope: root}}
	with := func(a Access, change func(*Access)) Access { change(&a); return a }

	cases := []struct {
		name       string
		policy     Policy
		rules      []Rule
		access     Access
		want       Verdict
		remembered bool
	}{
		{"reading inside the roots never asks", Policy{Level: LevelSupervised}, nil, read, Allow, false},
		{"reading is allowed read-only", Policy{Level: LevelReadOnly}, nil, read, Allow, false},
		{"an edit asks", Policy{Level: LevelSupervised}, nil, edit, Ask, true},
		{"an edit is refused read-only", Policy{Level: LevelReadOnly}, nil, edit, Refuse, false},
		{"read-only beats a remembered allow", Policy{Level: LevelReadOnly}, allow, edit, Refuse, false},
		{"read-only beats auto approve", Policy{Level: LevelReadOnly, AutoApprove: []ToolRule{{Tool: tool}}}, nil, edit, Refuse, false},
		{"an edit runs at level full", Policy{Level: LevelFull}, nil, edit, Allow, false},
		{"an empty level is as careful as supervised", Policy{}, nil, edit, Ask, true},
		{"an unknown level is as careful as supervised", Policy{Level: "FULL"}, nil, edit, Ask, true},
		{"an edit without a scope cannot be remembered", Policy{}, nil, Access{Class: AccessEdit, Tool: tool}, Ask, false},
		{"the zero access asks", Policy{Level: LevelSupervised}, nil, Access{}, Ask, false},
		{"the zero access is refused read-only", Policy{Level: LevelReadOnly}, nil, Access{}, Refuse, false},
		{"a remembered allow allows", Policy{}, allow, edit, Allow, false},
		{"a remembered reject refuses", Policy{}, reject, edit, Refuse, false},
		{"a reject beats an allow, whichever came first", Policy{}, []Rule{allow[0], reject[0]}, edit, Refuse, false},
		{"an allow after a reject changes nothing", Policy{}, []Rule{reject[0], allow[0]}, edit, Refuse, false},
		{"a reject beats auto approve", Policy{AutoApprove: []ToolRule{{Tool: tool}}}, reject, edit, Refuse, false},
		{"a reject beats level full", Policy{Level: LevelFull}, reject, edit, Refuse, false},
		{"a rule of another tool says nothing", Policy{}, []Rule{{Allow: true, Tool: "edit_file", Scope: root}}, edit, Ask, true},
		{"a rule of another root says nothing", Policy{}, []Rule{{Allow: true, Tool: tool, Scope: "/other"}}, edit, Ask, true},
		{"a rule of a root above says nothing", Policy{}, []Rule{{Allow: true, Tool: tool, Scope: "/"}}, edit, Ask, true},
		{"a rule without a scope covers nothing", Policy{}, []Rule{{Allow: true, Tool: tool}}, Access{Class: AccessEdit, Tool: tool}, Ask, false},
		{"auto approve allows", Policy{AutoApprove: []ToolRule{{Tool: tool}}}, nil, edit, Allow, false},
		{"always ask beats auto approve", Policy{AlwaysAsk: []ToolRule{{Tool: tool}}, AutoApprove: []ToolRule{{Tool: tool}}}, nil, edit, Ask, false},
		{"always ask beats a remembered allow", Policy{AlwaysAsk: []ToolRule{{Tool: tool}}}, allow, edit, Ask, false},
		{"always ask asks for reads as well", Policy{AlwaysAsk: []ToolRule{{Tool: "read_file"}}}, nil, read, Ask, false},
		{"deny beats always ask", Policy{Deny: []ToolRule{{Tool: tool}}, AlwaysAsk: []ToolRule{{Tool: tool}}}, allow, edit, Refuse, false},
		{"deny beats what has no effect", Policy{Deny: []ToolRule{{Tool: "update_plan"}}}, nil, Access{Class: AccessNone, Tool: "update_plan"}, Refuse, false},
		{"what has no effect runs read-only", Policy{Level: LevelReadOnly}, nil, Access{Class: AccessNone, Tool: "update_plan"}, Allow, false},
		{"outside is refused", Policy{}, allow, with(edit, func(a *Access) { a.Outside = true }), Refuse, false},
		{"reading outside is refused", Policy{}, nil, with(read, func(a *Access) { a.Outside = true }), Refuse, false},
		{"outside is open at level full", Policy{Level: LevelFull}, nil, with(edit, func(a *Access) { a.Outside = true }), Allow, false},
		{"a protected file asks each time", Policy{AutoApprove: []ToolRule{{Tool: tool}}}, allow, with(edit, func(a *Access) { a.Protected = true }), Ask, false},
		{"a protected file is refused at level full", Policy{Level: LevelFull}, nil, with(edit, func(a *Access) { a.Protected = true }), Refuse, false},
		{"a protected file is refused read-only", Policy{Level: LevelReadOnly}, nil, with(edit, func(a *Access) { a.Protected = true }), Refuse, false},
		{"reading a protected file is reading", Policy{}, nil, with(read, func(a *Access) { a.Protected = true }), Allow, false},
		{"forbidden beats level full", Policy{Level: LevelFull}, allow, with(edit, func(a *Access) { a.Forbidden = "no" }), Refuse, false},
		{"forbidden beats what has no effect", Policy{}, nil, Access{Class: AccessNone, Forbidden: "no"}, Refuse, false},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got := Decide(c.policy, c.rules, c.access)
			if got.Verdict != c.want || (len(got.Always) > 0) != c.remembered {
				t.Errorf("Decide(%+v, %v, %+v) = %+v, want verdict %d, rememberable %v", c.policy, c.rules, c.access, got, c.want, c.remembered)
			}
			if got.Verdict == Refuse && got.Reason == "" {
				t.Error("a refusal gives the model no reason")
			}
		})
	}
}

// TestDecide_Properties goes through every combination of level, class, flags,
// lists and rules.
func TestDecide_Properties(t *testing.T) {
	const tool, scope = "write_file", "/work"
	lists := []Policy{
		{},
		{Deny: []ToolRule{{Tool: tool}}},
		{AlwaysAsk: []ToolRule{{Tool: tool}}},
		{AutoApprove: []ToolRule{{Tool: tool}}},
		{Deny: []ToolRule{{Tool: tool}}, AlwaysAsk: []ToolRule{{Tool: tool}}, AutoApprove: []ToolRule{{Tool: tool}}},
		{AlwaysAsk: []ToolRule{{Tool: tool}}, AutoApprove: []ToolRule{{Tool: tool}}},
	}
	yes, no := Rule{Allow: true, Tool: tool, Scope: scope}, Rule{Tool: tool, Scope: scope}
	n := 0
	for _, level := range []Level{LevelReadOnly, LevelSupervised, LevelFull, "", "nonsense"} {
		for _, class := range []AccessClass{AccessUnknown, AccessNone, AccessRead, AccessEdit} {
			for flags := range 16 {
				for _, lists := range lists {
					for _, rules := range [][]Rule{nil, {yes}, {no}, {yes, no}, {no, yes}, {{Allow: true, Tool: "x", Scope: scope}}} {
						p := lists
						p.Level = level
						a := Access{Class: class, Tool: tool, Outside: flags&1 != 0, Protected: flags&2 != 0}
						if flags&4 != 0 {
							a.Forbidden = "forbidden"
						}
						if flags&8 != 0 {
							a.Scope = scope
						}
						n++
						checkRuling(t, p, rules, a)
					}
				}
			}
		}
	}
	if n != 5*4*16*6*6 {
		t.Errorf("only %d combinations were seen", n)
	}
}

// checkRuling demands what must hold whatever else is set.
func checkRuling(t *testing.T, p Policy, rules []Rule, a Access) {
	t.Helper()
	got := Decide(p, rules, a)
	what := fmt.Sprintf("Decide(%+v, %v, %+v) = %+v", p, rules, a, got)
	covered, rejected := false, false
	for _, r := range rules {
		covered = covered || r.Covers(a)
		rejected = rejected || (r.Covers(a) && !r.Allow)
	}
	effect := a.Class == AccessUnknown || a.Class == AccessEdit
	switch {
	case a.Forbidden != "" && got.Verdict != Refuse:
		t.Errorf("forbidden must be refused: %s", what)
	case len(p.Deny) > 0 && got.Verdict != Refuse:
		t.Errorf("denied must be refused: %s", what)
	case rejected && got.Verdict == Allow && a.Class != AccessNone:
		t.Errorf("a remembered reject must never end in allow: %s", what)
	case a.Outside && p.Level != LevelFull && a.Class != AccessNone && got.Verdict != Refuse:
		t.Errorf("outside the roots must be refused: %s", what)
	case p.Level == LevelReadOnly && effect && got.Verdict != Refuse:
		t.Errorf("read-only must refuse effects: %s", what)
	case a.Protected && effect && got.Verdict == Allow:
		t.Errorf("a protected file must never be changed unasked: %s", what)
	case p.Level != LevelFull && effect && got.Verdict == Allow && !covered && len(p.AutoApprove) == 0:
		t.Errorf("an effect must be asked for: %s", what)
	case len(got.Always) > 0 && (got.Verdict != Ask || a.Scope == "" || len(p.AlwaysAsk) > 0 || a.Protected):
		t.Errorf("always must not be offered here: %s", what)
	case got.Verdict == Refuse && got.Reason == "":
		t.Errorf("a refusal needs a reason: %s", what)
	}
	if !reflect.DeepEqual(got, Decide(p, rules, a)) {
		t.Errorf("not a function: %s", what)
	}
}
