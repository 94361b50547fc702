package domain

import (
	"slices"
	"strings"
)

// Rights are what a client may do, where it was given less than everything. A
// nil *Rights is everything: a client that started this process.
type Rights struct {
	// Name is who the client is, such as the name of its token. Clients of one
	// name stand for each other.
	Name string
	// Agents are the aliases it may use; nil is all.
	Agents []string
	// Level is the most that its prompts may do without asking; "" is no limit.
	Level Level
	// Roots are the canonical directories below which the directories of its
	// sessions must lie; nil is anywhere.
	Roots []string
	// Observe means that it may list and observe sessions, and nothing else.
	Observe bool
	// MCPCommands means that it may name programs to start as MCP servers.
	MCPCommands bool
}

// Agent reports whether the agent may be used.
func (r *Rights) Agent(alias string) bool {
	return r == nil || r.Agents == nil || slices.Contains(r.Agents, alias)
}

// Directory reports whether a canonical directory may be one of a session's.
func (r *Rights) Directory(dir string) bool {
	return r == nil || r.Roots == nil || slices.ContainsFunc(r.Roots, func(root string) bool { return below(dir, root) })
}

// Session reports whether the session may be used, as its row has it now.
func (r *Rights) Session(s Session) bool {
	return r.Agent(s.Agent) && r.Directory(s.Cwd) && !slices.ContainsFunc(s.Additional, func(d string) bool { return !r.Directory(d) })
}

// Cap returns the level that applies where an agent has one: the lower of the
// two.
func (r *Rights) Cap(level Level) Level {
	if r == nil || r.Level == "" || r.Level.rank() >= level.rank() {
		return level
	}
	return r.Level
}

// Answers reports whether the client may answer permission requests of a
// session that it observes.
func (r *Rights) Answers() bool { return r == nil || !r.Observe && r.Level != LevelReadOnly }

// Principal names who a client with these rights is; "" without any.
func (r *Rights) Principal() string {
	if r == nil {
		return ""
	}
	return r.Name
}

// rank orders the levels. One that is unknown is the lowest.
func (l Level) rank() int { return slices.Index([]Level{LevelReadOnly, LevelSupervised, LevelFull}, l) }

// below reports whether a canonical path is root or lies in it.
func below(path, root string) bool {
	rest, ok := strings.CutPrefix(path, strings.TrimRight(root, `/\`))
	return ok && (rest == "" || rest[0] == '/' || rest[0] == '\\')
}
