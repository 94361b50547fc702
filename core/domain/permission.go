package domain

// Level is how much an agent may do without asking.
type Level string

// The levels (risk profiles).
const (
	LevelReadOnly   Level = "read_only"
	LevelSupervised Level = "supervised"
	LevelFull       Level = "full"
)

// AccessClass says what kind of effect a call has.
type AccessClass int

// The access classes. The zero value is the most careful one that can still
// be allowed.
const (
	AccessUnknown AccessClass = iota // nothing is known about it: asks, but at level full
	AccessNone                       // no effect outside the session (update_plan)
	AccessRead                       // reads inside the roots
	AccessEdit                       // changes files inside the roots
)

// Access is what a prepared call would touch, as the tool's own resolver
// found it. The permission decision is made on it and on nothing else.
type Access struct {
	Class AccessClass
	Tool  string
	// Scope is what an "always" answer covers: for edits the canonical root
	// the file lies in. Empty means it cannot be remembered.
	Scope string
	// Paths are the canonical paths concerned, for display and audit.
	Paths []string
	// Outside is set when a path lies outside every root of the session.
	Outside bool
	// Protected is set for names that are asked for each time and never
	// remembered, such as .git/config; full and read_only deny them.
	Protected bool
	// Forbidden, when not empty, says why policy denies this whatever anyone
	// answers. It is told to the model.
	Forbidden string
	// Reason tells the person why the question is asked, when it is not
	// plain from the call.
	Reason string
}

// OptionKind is what choosing an option means (ACP v1 "Permission options").
type OptionKind string

// The option kinds.
const (
	AllowOnce    OptionKind = "allow_once"
	AllowAlways  OptionKind = "allow_always"
	RejectOnce   OptionKind = "reject_once"
	RejectAlways OptionKind = "reject_always"
)

// Allows reports whether the kind lets the call run.
func (k OptionKind) Allows() bool { return k == AllowOnce || k == AllowAlways }

// PermissionOption is one answer offered to the person.
type PermissionOption struct {
	ID   string // "allow-once", "allow-always", "reject-once", "reject-always"
	Name string // says exactly what it covers
	Kind OptionKind
}

// PermissionRequest asks a client whether one call may run.
type PermissionRequest struct {
	Session SessionID
	Turn    TurnID
	Call    CallOpened // as announced, with the diff or command
	Reason  string     // why it is asked; may be empty
	Options []PermissionOption
}

// Outcome is how a permission request ended.
type Outcome int

// The outcomes. The zero value is a refusal.
const (
	Unanswered Outcome = iota // error, unknown option, disconnect: refused
	Selected                  // one of the offered options was chosen
	Withdrawn                 // the client answered "cancelled"
)

// Decision is a client's answer. Only Selected with an offered option of an
// allowing kind lets a call run.
type Decision struct {
	Outcome Outcome
	Option  string // the chosen option's id, when Selected
	Note    string // why there is no answer, for the model and the log
}

// Rule is a remembered answer.
type Rule struct {
	Allow bool
	Tool  string
	Scope string
}

// Covers reports whether the rule speaks about access.
func (r Rule) Covers(a Access) bool {
	return r.Tool == a.Tool && r.Scope == a.Scope && r.Scope != ""
}

// Policy is the part of a risk profile that Decide needs.
type Policy struct {
	Level       Level
	Deny        []string // tool names
	AlwaysAsk   []string
	AutoApprove []string
}

// Verdict is what Decide says about a call.
type Verdict int

// The verdicts. The zero value refuses.
const (
	Refuse Verdict = iota
	Ask
	Allow
)

// Ruling is Decide's answer: the verdict, why (for the model when refused,
// for the person when asked), and whether an "always" answer may be offered.
type Ruling struct {
	Verdict      Verdict
	Reason       string
	Rememberable bool
}

// Decide is the one permission decision. Order: forbidden, deny, protected,
// ask, remembered (a reject beats an allow), auto approve, level.
func Decide(p Policy, remembered []Rule, a Access) Ruling {
	if a.Forbidden != "" {
		return Ruling{Verdict: Refuse, Reason: a.Forbidden}
	}
	if contains(p.Deny, a.Tool) {
		return Ruling{Verdict: Refuse, Reason: "the tool " + a.Tool + " is denied by the agent's profile"}
	}
	if a.Class == AccessNone {
		return Ruling{Verdict: Allow}
	}
	if a.Outside && p.Level != LevelFull {
		return Ruling{Verdict: Refuse, Reason: "the path lies outside the session's directories"}
	}
	if p.Level == LevelReadOnly && a.Class != AccessRead {
		return Ruling{Verdict: Refuse, Reason: "the agent's profile is read-only"}
	}
	if a.Protected && a.Class != AccessRead {
		if p.Level == LevelFull {
			return Ruling{Verdict: Refuse, Reason: "this file can start programs or loosen rules, and nobody is asked at level full"}
		}
		return Ruling{Verdict: Ask, Reason: "this file can start programs or change how tools behave"}
	}
	if contains(p.AlwaysAsk, a.Tool) {
		return Ruling{Verdict: Ask, Reason: a.Reason}
	}
	allowed := false
	for _, r := range remembered {
		if !r.Covers(a) {
			continue
		}
		if !r.Allow {
			return Ruling{Verdict: Refuse, Reason: "the user said never to allow this"}
		}
		allowed = true
	}
	switch {
	case allowed, a.Class == AccessRead, p.Level == LevelFull, contains(p.AutoApprove, a.Tool):
		return Ruling{Verdict: Allow}
	}
	return Ruling{Verdict: Ask, Reason: a.Reason, Rememberable: a.Scope != ""}
}

func contains(list []string, s string) bool {
	for _, v := range list {
		if v == s {
			return true
		}
	}
	return false
}
