package exec

import (
	"context"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/berth-dev/berth/core/domain"
	"github.com/berth-dev/berth/core/ports"
)

const (
	// maxWall is the longest time limit a call may ask for.
	maxWall = time.Hour
	// defaultText is how much output a model gets when it does not say, in
	// bytes, if the profile allows that much.
	defaultText = 64 << 10
	leastText   = 1 << 10
)

// shellTool is shell.
type shellTool struct{ t *toolset }

// Spec describes shell.
func (s shellTool) Spec() domain.ToolSpec { return s.t.specs.shell }

// request is a call of shell as it was asked for.
type request struct {
	line        string
	dir         string // as given
	wall        time.Duration
	background  bool
	network     bool
	text        int // bytes of output to return
	description string
}

func (s shellTool) parse(raw []byte, limits Limits) (request, error) {
	a := parseArgs("shell", shellArgs, raw)
	a.forgetClaims()
	r := request{
		line: a.text("command", "cmd"), dir: a.text("cwd", "workdir", "directory"),
		background: a.flag("background", "run_in_background"), network: a.flag("network"), description: a.text("description"),
	}
	def := limits.Wall
	if r.background {
		def = maxWall
	}
	most := int64(max(maxWall, limits.Wall) / time.Second)
	r.wall = time.Duration(a.count(int64(def/time.Second), 1, most, "timeout_secs", "timeout")) * time.Second
	// Less is asked for than is useful, more than the profile allows: neither
	// is worth a failed call.
	text := a.count(min(defaultText, limits.OutputBytes), 1, 1<<40, "max_output_bytes")
	r.text = int(min(max(text, leastText), limits.OutputBytes))
	if a.why == "" && strings.TrimSpace(r.line) == "" {
		a.fail("\"command\" is missing or empty")
	}
	return r, a.done()
}

// Prepare analyses the line and pins what it depends on.
func (s shellTool) Prepare(ctx context.Context, call domain.ToolCall) (ports.Prepared, error) {
	t := s.t
	prof := t.conf.Profile(t.session.Agent)
	prof.Limits = prof.Limits.withDefaults()
	r, err := s.parse(call.Args, prof.Limits)
	if err != nil {
		return nil, err
	}
	dir, err := t.openDir(ctx, r.dir)
	if err != nil {
		return nil, err
	}
	posture := t.conf.Confiner.Posture(ctx, t.session.Agent)
	an := t.conf.Analyze(ctx, t.session, dir.path, r.line, posture.Confined())
	c := &prepared{t: t, request: r, dir: dir, profile: prof, analysis: an}
	c.decide(posture)
	if c.access.Forbidden == "" {
		c.scripts, err = t.scripts(ctx, dir.path, an.Access.Commands)
		if err != nil {
			dir.close()
			return nil, err
		}
	}
	c.plan = domain.ToolPlan{Title: c.title(), Kind: domain.KindExecute, Content: c.preview(posture), Access: c.access}
	return c, nil
}

// decide fills in what the permission decision is made on.
func (c *prepared) decide(posture domain.Posture) {
	a := c.analysis.Access
	a.Commands = slices.Clone(a.Commands)
	a.Tool, a.Scope = "shell", c.dir.path
	raise := func(why string) {
		for i := range a.Commands {
			if a.Commands[i].Class == domain.AccessRead {
				a.Commands[i].Class = domain.AccessRun
			}
		}
		if a.Class == domain.AccessRead {
			a.Class = domain.AccessRun
		}
		a.Reason = joined(a.Reason, why)
	}
	if c.analysis.Git && a.Class == domain.AccessRead && !posture.Confined() {
		raise("git may run programs that this repository names, and there is no sandbox")
	}
	if c.request.background {
		raise("it stays in the background, for up to " + c.request.wall.String() + " or until the session ends")
	}
	if c.request.network {
		raise("it asks for the network")
		a.Network = true
	}
	if a.Network && c.profile.Network != domain.NetworkAllow {
		a.Scope = "" // having allowed a command says nothing about the network
	}
	switch {
	case posture.Word != domain.PostureNone:
	case c.profile.Sandbox != "" && c.profile.Sandbox != "auto" && a.Forbidden == "":
		a.Forbidden = "the agent's profile asks for the sandbox " + c.profile.Sandbox + ", which does not work here (" + posture.Reason + "); no command can be run"
	default:
		a.Unconfined = posture.Reason
		if a.Unconfined == "" {
			a.Unconfined = "none works here"
		}
	}
	a.Reason = cutRunes(oneLine(a.Reason), maxReason) // it quotes the command
	c.access = a
	c.readOnly = a.Class == domain.AccessRead
	c.confined = posture.Confined()
}

func joined(a, b string) string {
	if a == "" {
		return b
	}
	return a + "; " + b
}

// directory is an open directory: whatever becomes of its name, the command
// runs in it or not at all.
type directory struct {
	path string // canonical
	f    *os.File
}

func (d *directory) close() { _ = d.f.Close() }

// openDir opens the directory a call names. It must lie in the roots of the
// session, at every level: where commands run is where they may write.
func (t *toolset) openDir(ctx context.Context, name string) (*directory, error) {
	show := name
	if name == "" {
		name, show = t.session.Cwd, "the working directory"
	}
	p := t.conf.Judge(ctx, t.session, "", name)
	switch {
	case p.Where == domain.WhereForbidden:
		return nil, domain.Errorf(domain.Denied, "The command cannot run in %s: %s", visible(cutAt(show, 200), false), p.Why)
	case p.Where == domain.WhereOutside:
		return nil, domain.Errorf(domain.Denied, "The command cannot run in %s: it lies outside the session's directories", visible(cutAt(show, 200), false))
	case !p.Exists:
		return nil, domain.Errorf(domain.NotFound, "The command cannot run in %s: it does not exist", visible(cutAt(show, 200), false))
	case !p.Dir:
		return nil, domain.Errorf(domain.InvalidArgument, "The command cannot run in %s: it is not a directory", visible(cutAt(show, 200), false))
	}
	f, err := os.Open(p.Path)
	if err != nil {
		return nil, domain.WrapError(domain.NotFound, err, "The command cannot run in "+visible(cutAt(show, 200), false)+": "+reasonOf(err))
	}
	d := &directory{path: p.Path, f: f}
	if !d.same() {
		d.close()
		return nil, domain.Errorf(domain.NotFound, "The command cannot run in %s: it was moved or replaced since the session began, or is being changed now", visible(cutAt(show, 200), false))
	}
	return d, nil
}

// same reports whether the directory still has its name, without a link on
// the way.
func (d *directory) same() bool {
	if runtime.GOOS == "linux" {
		at, err := os.Readlink("/proc/self/fd/" + strconv.Itoa(int(d.f.Fd())))
		if err == nil {
			return at == d.path
		}
	}
	real, err := filepath.EvalSymlinks(d.path)
	if err != nil || real != d.path {
		return false
	}
	now, err := os.Lstat(d.path)
	if err != nil {
		return false
	}
	then, err := d.f.Stat()
	return err == nil && then.IsDir() && os.SameFile(now, then)
}
