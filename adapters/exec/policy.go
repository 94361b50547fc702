package exec

import (
	"context"
	"os"

	"github.com/berth-dev/berth/adapters/exec/shellpolicy"
	"github.com/berth-dev/berth/core/domain"
)

// Policy is the analyser of Config by the shell policy.
type Policy struct {
	// Env returns what a command of the session will find: Home, Dialect, Own,
	// Forbidden and SystemPath. The rest is filled in.
	Env func(domain.Session) shellpolicy.Env
	// Judge is that of Config.
	Judge func(ctx context.Context, s domain.Session, dir, path string) domain.Place
}

// Analyze is Config.Analyze.
func (p Policy) Analyze(ctx context.Context, s domain.Session, dir, line string, held bool) Analysis {
	env := p.Env(s)
	env.Cwd, env.ReadOnlySandbox = dir, held
	a := shellpolicy.Analyze(ctx, line, env, placed{p, s, dir})
	return Analysis{Access: a.Access("shell", dir), Decisive: a.Decisive, Git: a.Git, Reads: a.Reads, Writes: a.Writes}
}

// placed judges the paths of one command.
type placed struct {
	p   Policy
	s   domain.Session
	dir string
}

// Judge says what the path rules make of a path.
func (j placed) Judge(ctx context.Context, dir, path string) domain.Place {
	if dir == "" {
		dir = j.dir
	}
	return j.p.Judge(ctx, j.s, dir, path)
}

// SystemPath returns the directories of the system's programs that are there,
// the order that PATH has them in. Nobody but their owner, root, can change
// what is in them.
func SystemPath() []string {
	var list []string
	for _, dir := range []string{"/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"} {
		if info, err := os.Stat(dir); err == nil && info.IsDir() && rootsOwn(info) {
			list = append(list, dir)
		}
	}
	return list
}
