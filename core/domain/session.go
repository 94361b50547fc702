package domain

import "time"

// Session is what the store keeps about a session besides its journal.
type Session struct {
	ID    SessionID
	Key   string // unique; "acp:<uuid>" unless the client asked for one
	Label string // optional second name; unique when not empty
	Agent string // alias of the agent that owns it

	Cwd        string   // canonical working directory, the first root
	CwdGiven   string   // the same directory as the client spelled it, for display
	Additional []string // canonical additional directories, as of the latest new, load or resume
	Workspace  string   // canonical agent workspace, always the last root

	Title  string
	Parent SessionID // the session that delegated to this one; "" at the top
	Client string    // name and version of the client that created it

	// Start is the journal position the current transcript begins after. A
	// reset moves it; what lies before is kept but no longer part of the
	// conversation.
	Start Seq

	CreatedAt time.Time // UTC, microseconds
	UpdatedAt time.Time // UTC, microseconds; moved by every append
}

// Roots returns the directories file tools may touch, cwd first, the agent
// workspace last, without repeats.
func (s Session) Roots() []string {
	roots := make([]string, 0, 2+len(s.Additional))
	for _, r := range append(append([]string{s.Cwd}, s.Additional...), s.Workspace) {
		if r != "" && !contains(roots, r) {
			roots = append(roots, r)
		}
	}
	return roots
}

// Validate checks what every stored session must hold.
func (s Session) Validate() error {
	switch {
	case !s.ID.Valid():
		return Errorf(InvalidArgument, "session id %q is not valid", s.ID)
	case s.Key == "":
		return Errorf(InvalidArgument, "session %s has no key", s.ID)
	case s.Agent == "":
		return Errorf(InvalidArgument, "session %s has no agent", s.ID)
	case s.Cwd == "":
		return Errorf(InvalidArgument, "session %s has no working directory", s.ID)
	}
	return nil
}

// SessionQuery selects sessions. Filters that are empty match everything;
// several must all match.
type SessionQuery struct {
	Cwd   string // canonical, exact
	Key   string // exact
	Label string // exact
	After *SessionCursor
	Limit int // page size; 0 means 50, at most 200
	// All includes sub-sessions, which are otherwise left out.
	All bool
}

// PageSize returns the limit that applies.
func (q SessionQuery) PageSize() int {
	switch {
	case q.Limit <= 0:
		return 50
	case q.Limit > 200:
		return 200
	}
	return q.Limit
}

// SessionCursor is a place in the list order: newest UpdatedAt first, then
// ID descending.
type SessionCursor struct {
	UpdatedAt time.Time
	ID        SessionID
}

// SessionPage is one page of a list. Next is nil on the last page, and never
// leads to an empty one.
type SessionPage struct {
	Sessions []Session
	Next     *SessionCursor
}

// Directories is what a client asked for when it opened a session.
type Directories struct {
	Cwd        string // as sent; "" when omitted
	Additional []string
	// Lenient accepts what the zeroclaw dialect does: an omitted cwd means the
	// agent workspace, a relative one is taken from the process directory.
	Lenient bool
}

// Agent is one configured agent.
type Agent struct {
	Alias       string
	Title       string
	Description string
	Enabled     bool
	Model       ModelRef
	Workspace   string   // absolute path; created on first use
	Prompt      string   // system prompt of its own; "" for the built-in one
	Skills      []string // absolute paths of directories with skills
	Policy      Policy

	MaxTurnRequests int // model requests per turn; at least 1
	MaxOutputTokens int // per reply; 0 leaves it to the provider
	// Thoughts is how much the model should reason; "" leaves it to the provider.
	Thoughts ThoughtLevel
	// MaxCostPerSession and MaxCostPerDay are what the agent's requests may
	// cost, the day being one of UTC; 0 is no limit.
	MaxCostPerSession MicroUSD
	MaxCostPerDay     MicroUSD
}

// NewSession is what a client asks for when it opens a session by key, label
// or not by name at all.
type NewSession struct {
	Agent           string // alias the client named; "" when it named none
	FallbackAgent   string // alias the connection named, used when Agent is ""; "" when none
	Dirs            Directories
	Key             string // "" makes a new one
	Label           string
	Reset           bool   // give an existing session a fresh transcript
	RequireExisting bool   // refuse to create
	Client          string // name and version, for the record
	Parent          SessionID
	Takeover        bool // take an existing session from another connection
	// Answered is that of OpenSession.
	Answered <-chan struct{}
}

// OpenSession is what a client asks for when it opens a stored session by id.
type OpenSession struct {
	ID       SessionID
	Dirs     Directories // Cwd "" keeps the stored one; Additional is the complete list
	Replay   bool        // load: send the whole history before answering
	Takeover bool        // take the session from another connection
	// Answered is closed when the client was answered: what goes on in the
	// session is told after that. Nil is at once.
	Answered <-chan struct{}
	// After is closed, each, when the client was answered what it asked of the
	// session before. If no turn runs it is told nothing of the session before
	// that; one that runs it may have sent itself, and lost to another.
	After []<-chan struct{}
}

// OpenedSession is what a client gets.
type OpenedSession struct {
	Session Session
	Agent   Agent
	Model   ModelInfo
	Posture Posture  // how its commands are confined
	Created bool     // false when the key or label named an existing session
	Notes   []string // what the person should know, one sentence each
	// Commands are the slash commands that a prompt may be.
	Commands []Command
	// Running is the turn that runs while the session is opened; "" when none
	// does. Queued are those that wait behind it, in order.
	Running TurnID
	Queued  []QueuedTurn
	// Going is where the running turn stands, to be told right behind the answer
	// to a client that did not know the session's id before.
	Going []Update
}

// QueuedTurn is a prompt that waits for its turn.
type QueuedTurn struct {
	Turn   TurnID
	Blocks []Block
}

// TurnOutcome is how a turn that did not fail ended.
type TurnOutcome struct {
	Turn  TurnID
	Stop  Stop
	Text  string // the final assistant message; when cancelled, what was streamed
	Usage Usage  // of the turn
	Total Usage  // of the session
}
