package shellpolicy

import (
	"context"
	"slices"
	"strings"

	"github.com/berth-dev/berth/core/domain"
)

// Paths is the one path resolver.
type Paths interface {
	// Judge says what the path rules make of a path as a command in dir would
	// name it; dir is absolute and canonical, "" is the session's working
	// directory. It is called from the goroutine of Analyze.
	Judge(ctx context.Context, dir, path string) domain.Place
}

// Dialect is the shell language of a line.
type Dialect int

// The dialects. The shell that runs a line must speak the one it was judged in.
const (
	Bash  Dialect = iota // bash --noprofile --norc -c
	Posix                // sh -c
)

// Env is what a command will find when it runs. Everything is canonical.
type Env struct {
	Home    string // the value of HOME
	Cwd     string // the session's working directory, and the value of PWD
	Dialect Dialect
	// Own are the paths of our own program. Its name is refused as a command
	// wherever it lies.
	Own []string
	// Forbidden are the forbidden directories. A command that walks through
	// all of a directory above one of them is no proven read.
	Forbidden []string
	// SystemPath are the directories of the system's programs, which nobody
	// but the system's owner can change. A program named by a path is known
	// only there, and a bare name is looked up nowhere else.
	SystemPath []string
	// ReadOnlySandbox is set when what is judged a read runs in the read-only
	// form of a sandbox without network. Without it git is never a read, for
	// a repository's own settings make it run programs.
	ReadOnlySandbox bool
}

// Analysis is what is known about a line before it runs.
type Analysis struct {
	// Class is AccessRead, AccessRun or AccessRisk: the worst of the commands.
	Class domain.AccessClass
	// Commands are the simple commands in order. Beside those that the line
	// spells out there are the redirections to files (">", path), the
	// assignments ("NAME=", value) and, before a command that changes things
	// somewhere else than in the session's directory, that place ("cd", path):
	// they are remembered, asked about and denied like commands of their own.
	Commands []domain.SimpleCommand
	// Paths are the canonical paths that the line names, sorted.
	Paths []string
	// Outside is set when one of them lies outside every root.
	Outside bool
	// Protected is set when one that is written is asked for each time.
	Protected bool
	// Network is set when the line is of no use without the network.
	Network bool
	// Git is set when git is among the commands.
	Git bool
	// Forbidden, when not empty, says why the line is not run whatever anyone
	// answers; it is told to the model.
	Forbidden string
	// Reason says in a few words why the line is no read, for the person.
	Reason string
	// Opaque says why it cannot be told what the line runs; "" when it can.
	Opaque string
	// Decisive is the worst simple command as it is written.
	Decisive string
	// Reads and Writes are the canonical paths outside the roots that the line
	// names to read or to write, and the protected ones it writes: what a
	// sandbox has to open when the line was approved.
	Reads, Writes []string
}

// ReadOnly reports whether the line is a proven read, to be run in the
// read-only form of the sandbox.
func (a Analysis) ReadOnly() bool { return a.Class == domain.AccessRead && a.Forbidden == "" }

// Title is one line for the person, the worst part first: escaped, blanks
// collapsed, at most 200 characters.
func (a Analysis) Title() string { return title(a.Decisive) }

// Access is the analysis as domain.Decide wants it. scope is the canonical
// directory that an "always" answer is bound to.
func (a Analysis) Access(tool, scope string) domain.Access {
	return domain.Access{
		Class: a.Class, Tool: tool, Scope: scope, Commands: a.Commands, Paths: a.Paths,
		Outside: a.Outside, Protected: a.Protected, Network: a.Network, Forbidden: a.Forbidden, Reason: a.Reason,
	}
}

// Analyze judges a line. It never fails: what it does not understand is
// forbidden or asked about. It stops with the context, forbidding the line.
func Analyze(ctx context.Context, line string, env Env, paths Paths) (a Analysis) {
	defer func() {
		if v := recover(); v != nil { // a fault of the grammar must not end the agent, nor let the line pass
			a = Analysis{Class: domain.AccessRisk, Forbidden: "the command cannot be judged", Decisive: cut(line, maxTitle)}
		}
	}()
	return analyze(ctx, line, env, paths)
}

func analyze(ctx context.Context, line string, env Env, paths Paths) Analysis {
	if why := gate(line); why != "" {
		return Analysis{Class: domain.AccessRisk, Forbidden: why, Decisive: cut(line, maxTitle)}
	}
	file, err := parse(ctx, line, env.Dialect)
	if err != nil {
		return Analysis{Class: domain.AccessRisk, Forbidden: err.Error(), Decisive: cut(line, maxTitle)}
	}
	w := newWalker(ctx, line, env, paths)
	w.file(file)
	return w.result()
}

// sorted returns a list in order, without repetitions.
func sorted(list []string) []string {
	list = slices.Clone(list)
	slices.Sort(list)
	return slices.Compact(list)
}

// cut shortens s to about n bytes.
func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "")
}
