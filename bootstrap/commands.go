package bootstrap

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/berth-dev/berth/adapters/exec"
	"github.com/berth-dev/berth/adapters/exec/sandbox"
	"github.com/berth-dev/berth/adapters/exec/shellpolicy"
	"github.com/berth-dev/berth/adapters/fs"
	"github.com/berth-dev/berth/core/domain"
	"github.com/berth-dev/berth/core/ports"
)

// Helper is a program that builds sandboxes and holds commands. The zero value
// is none.
type Helper struct {
	path string
	why  string // there is none, if somebody looked for one
}

// RunHelper does the work of a helper process and ends the process, if this
// process was started as one. Otherwise it returns this program as a helper:
// only a program that calls it, before anything else, can be one. A program
// that is started as a helper and does not know it would start another.
func RunHelper() Helper {
	if sandbox.IsHelper(os.Args) {
		sandbox.Main()
	}
	if code, mine := exec.Supervise(os.Args); mine {
		os.Exit(code)
	}
	_, err := os.Executable()
	return ownHelper(exec.SelfHelper(), err)
}

// ownHelper is this program, by its path; without one, err says why.
func ownHelper(path string, err error) Helper {
	if path == "" {
		return Helper{why: fmt.Sprintf("this program would build it and cannot find its own file: %v", err)}
	}
	return Helper{path: path}
}

// HelperAt is another program that calls RunHelper before anything else, such
// as an installed berth, by its absolute path.
func HelperAt(path string) Helper { return Helper{path: path} }

// InsideCommand reports whether this process was started by a command that an
// agent runs: then it must not change what the agent may do.
func InsideCommand(env []string) bool {
	for _, kv := range env {
		if strings.HasPrefix(kv, exec.Marker+"=") || strings.HasPrefix(kv, sandbox.EnvMarker+"=") {
			return true
		}
	}
	return false
}

// commands is what the shell tools are made of: the one parser, the one
// resolver, and a sandbox for each agent.
type commands struct {
	now    *current
	disk   *fs.Disk
	helper Helper
	home   string
	own    []string
	system []string // directories of the system's programs
	shell  exec.Shell
	source *exec.Source

	mu    sync.Mutex
	boxes map[string]*box // by agent
}

// boxFresh is how long a sandbox is used without looking which paths are
// forbidden now.
const boxFresh = time.Second

// box is an agent's sandbox and what it was made for.
type box struct {
	of     *Config
	hidden string
	seen   time.Time
	*sandbox.Sandbox
}

// newCommands makes the shell tools. Nothing is tried or started.
func newCommands(o *options, now *current, disk *fs.Disk, clock ports.Clock, ids ports.IDs) *commands {
	home, _ := os.UserHomeDir()
	c := &commands{now: now, disk: disk, helper: o.helper, home: home, own: ownPaths(), system: exec.SystemPath(), shell: exec.FindShell(), boxes: map[string]*box{}}
	c.source = exec.NewSource(exec.Config{
		Shell: c.shell, Environ: os.Environ(), Hidden: now.secretVariables, SystemPath: c.system,
		Profile: c.profile, Analyze: exec.Policy{Env: c.env, Judge: disk.Judge}.Analyze, Judge: disk.Judge, Roots: disk.WritableRoots,
		Confiner: c.confiner(), Clock: clock, IDs: ids,
	})
	return c
}

// ownPaths are the names of our own program.
func ownPaths() []string {
	path, err := os.Executable()
	if err != nil {
		return nil
	}
	if real, err := filepath.EvalSymlinks(path); err == nil && real != path {
		return []string{path, real}
	}
	return []string{path}
}

func (c *commands) confiner() exec.Confiner {
	if c.helper.path == "" {
		return unhelped{commands: c}
	}
	return &homed{Sandboxed: exec.Sandboxed{Of: c.box, Otherwise: exec.Plain{Helper: c.helper.path}}, commands: c}
}

// homed gives the private homes of sandboxes what commands need there, when
// the first command of an agent runs.
type homed struct {
	exec.Sandboxed
	commands *commands

	mu    sync.Mutex
	ready map[string]bool // by agent
}

// Command prepares the agent's home and then the command.
func (h *homed) Command(ctx context.Context, s exec.Spec) (exec.Process, error) {
	c := h.commands
	h.mu.Lock()
	if !h.ready[s.Session.Agent] {
		keepGitIdentity(c.state(s.Session.Agent), c.home, c.system)
		if h.ready == nil {
			h.ready = map[string]bool{}
		}
		h.ready[s.Session.Agent] = true
	}
	h.mu.Unlock()
	return h.Sandboxed.Command(ctx, s)
}

// state is where the sandbox of an agent keeps its home and caches.
func (c *commands) state(agent string) string {
	return filepath.Join(c.now.config().DataDir, "agents", agent, "sandbox")
}

// unhelped runs commands where no program can build a sandbox.
type unhelped struct {
	exec.Plain
	commands *commands
}

// Posture says that there is no sandbox, and why.
func (u unhelped) Posture(_ context.Context, agent string) domain.Posture {
	if u.commands.profile(agent).Sandbox == sandbox.None {
		return domain.Posture{Word: domain.PostureOff, Reason: "the profile's sandbox is \"none\""}
	}
	why := u.commands.helper.why
	if why == "" {
		why = "the program that Berth is part of cannot build one (bootstrap.WithHelper)"
	}
	return domain.Posture{Word: domain.PostureNone, Reason: why}
}

// Known says the same.
func (u unhelped) Known(agent string) (domain.Posture, bool) {
	return u.Posture(context.Background(), agent), true
}

// profile is what an agent's profile says about commands.
func (c *commands) profile(agent string) exec.Profile {
	p := profileOf(c.now.config(), agent)
	return exec.Profile{
		Level: p.Level, Network: domain.NetworkMode(p.Network), ShellEnv: p.ShellEnv, Sandbox: p.Sandbox,
		Limits: exec.Limits{
			OutputBytes: p.Limits.OutputBytes, Wall: p.Limits.Wall, Processes: p.Limits.Processes, MemoryBytes: p.Limits.MemoryBytes,
		},
	}
}

// box returns the agent's sandbox. It is a new one when the configuration is,
// and when other paths are forbidden than before, such as one that was made
// since.
func (c *commands) box(agent string) *sandbox.Sandbox {
	cfg := c.now.config()
	c.mu.Lock()
	if b := c.boxes[agent]; b != nil && b.of == cfg && time.Since(b.seen) < boxFresh {
		defer c.mu.Unlock()
		return b.Sandbox
	}
	c.mu.Unlock()
	forbidden := hiddenPaths(c.disk.Forbidden(domain.Session{Agent: agent, Workspace: fs.NewRoots(c.disk).Canonical(cfg.AgentWorkspace(agent))}))
	key := strings.Join(forbidden, "\x00")
	c.mu.Lock()
	defer c.mu.Unlock()
	if b := c.boxes[agent]; b != nil && b.of == cfg && b.hidden == key {
		b.seen = time.Now()
		return b.Sandbox
	}
	b := &box{of: cfg, hidden: key, seen: time.Now(), Sandbox: sandbox.New(sandbox.Config{
		Helper: c.helperArgv(), Mode: profileOf(cfg, agent).Sandbox, Home: c.home,
		State: c.state(agent), Path: os.Getenv("PATH"), Hidden: forbidden, Protected: protectedNames(fs.ProtectedNames()),
		Fold: fs.PlainName,
	})}
	c.boxes[agent] = b
	return b.Sandbox
}

// helperArgv is how the sandbox starts its helper; nil is this very image,
// whatever became of its name.
func (c *commands) helperArgv() []string {
	if c.helper.path == exec.SelfHelper() {
		return nil
	}
	return []string{c.helper.path}
}

// hiddenPaths leaves out of the forbidden paths those that a sandbox has small
// forms of its own of, without which no program runs.
func hiddenPaths(forbidden []string) []string {
	own := []string{"/dev", "/etc", "/proc", "/run", "/sys"}
	return slices.DeleteFunc(forbidden, func(path string) bool { return slices.Contains(own, path) })
}

// protectedNames writes the lists of the file tools as the sandbox reads them.
// It knows by itself what makes git run programs.
func protectedNames(l fs.ProtectedLists) []string {
	names := append([]string{}, l.Files...)
	for _, dir := range append(append([]string{}, l.Dirs...), l.AskDirs...) {
		names = append(names, dir+"/")
	}
	return names
}

// env is what the parser needs to know about the commands of a session.
func (c *commands) env(s domain.Session) shellpolicy.Env {
	env := shellpolicy.Env{
		Home: c.home, Own: c.own, Forbidden: c.disk.Forbidden(s), SystemPath: c.system,
	}
	if !c.shell.Bash {
		env.Dialect = shellpolicy.Posix
	}
	return env
}

// forgetful is blobs that also remove what commands left of a session.
type forgetful struct {
	ports.Blobs
	commands *commands
}

// Remove deletes the attachments of a deleted session and the outputs of its
// commands.
func (f forgetful) Remove(ctx context.Context, s domain.Session, list []domain.Attachment) error {
	return errors.Join(f.Blobs.Remove(ctx, s, list), f.commands.source.Forget(s))
}

// noCommands is the sandbox where there is no shell tool of ours.
type noCommands struct{}

// Posture says nothing: nothing is run.
func (noCommands) Posture(context.Context, string) domain.Posture { return domain.Posture{} }

// Known says nothing either.
func (noCommands) Known(string) (domain.Posture, bool) { return domain.Posture{}, true }
