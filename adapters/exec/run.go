package exec

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/berth-dev/berth/core/domain"
)

const (
	// maxLive is how much of the output is shown while a command runs, and
	// liveEvery how often it may change.
	maxLive   = 16 << 10
	liveEvery = 100 * time.Millisecond
	// maxShown is how much of it the client gets in the end.
	maxShown = 64 << 10
	// cancelWait is how long a cancelled call waits for the command's end, so
	// as to tell it; ending goes on without the call.
	cancelWait = 100 * time.Millisecond
	// settle is how long a background job has to fail before the call answers.
	settle = 300 * time.Millisecond
)

var errRanTwice = errors.New("exec: a prepared call was run twice")

// prepared is a call of shell that was looked at.
type prepared struct {
	t        *toolset
	request  request
	dir      *directory
	profile  Profile
	analysis Analysis
	access   domain.Access
	readOnly bool
	confined bool // it was decided on as a command in a sandbox
	scripts  []script
	plan     domain.ToolPlan
	ran      atomic.Bool
	closing  sync.Once
}

// Plan tells what will be run.
func (c *prepared) Plan() domain.ToolPlan { return c.plan }

// Close closes the directory. A command that still runs belongs to the
// session.
func (c *prepared) Close() error {
	c.closing.Do(c.dir.close)
	return nil
}

// Run runs the command.
func (c *prepared) Run(ctx context.Context, report func(domain.ToolProgress)) (domain.ToolResult, error) {
	if c.ran.Swap(true) {
		return domain.ToolResult{}, errRanTwice
	}
	if ctx.Err() != nil {
		return domain.ToolResult{}, context.Cause(ctx)
	}
	if why := c.refusal(); why != "" {
		return failed(why), nil
	}
	j, err := c.start(ctx)
	switch {
	case err != nil && ctx.Err() != nil:
		return domain.ToolResult{}, context.Cause(ctx)
	case err != nil:
		var e *domain.Error
		if errors.As(err, &e) {
			return failed("Nothing was run: " + e.Msg), nil
		}
		return failed("Nothing was run: the command could not be started: " + reasonOf(err)), nil
	}
	if c.request.background {
		return c.followStart(ctx, j), nil
	}
	return c.follow(ctx, j, report), nil
}

func failed(text string) domain.ToolResult { return domain.ToolResult{Failed: true, Text: text} }

// refusal says why what was looked at is not run; "" when it is.
func (c *prepared) refusal() string {
	if c.access.Forbidden != "" {
		return c.access.Forbidden
	}
	if !c.dir.same() {
		return "Nothing was run: the directory " + c.dir.path + " was moved or replaced since the command was looked at. Make the call again."
	}
	if path := changed(c.scripts); path != "" {
		return "Nothing was run: the file " + path + " changed after the command was looked at, so what was allowed is not what would run. Make the call again."
	}
	return ""
}

// start starts what was looked at, with what was allowed.
func (c *prepared) start(ctx context.Context) (*job, error) {
	conf, session := c.t.conf, c.t.session
	roots := conf.Roots(session)
	spec := Spec{
		Session: session, Argv: append(append([]string{conf.Shell.Path}, conf.Shell.Args...), c.request.line),
		Dir: c.dir.path, DirFile: c.dir.f, ReadOnly: c.readOnly, Confined: c.confined, Network: c.access.Network, Roots: roots, Limits: c.profile.Limits,
		Env: environment(conf.Environ, c.profile.ShellEnv, conf.hidden(), conf.SystemPath, c.dir.path, roots, c.readOnly),
	}
	if err := c.open(ctx, &spec); err != nil {
		return nil, err
	}
	p, err := conf.Confiner.Command(ctx, spec)
	if err != nil {
		return nil, err
	}
	name := "shell"
	if c.request.background {
		name = "job"
	}
	out := newOutput(max(c.request.text, 2*maxLive), c.t.files, name)
	return c.t.start(p, c.request.line, out, c.request.wall, c.request.background)
}

// open opens for the command what it was allowed to use besides the roots:
// protected names, and at level full, which alone allows that, paths outside.
func (c *prepared) open(ctx context.Context, spec *Spec) error {
	conf, full := c.t.conf, c.profile.Level == domain.LevelFull
	for i, path := range slices.Concat(c.analysis.Reads, c.analysis.Writes) {
		p := conf.Judge(ctx, c.t.session, "", path)
		writes := i >= len(c.analysis.Reads)
		switch {
		case p.Where == domain.WhereForbidden:
			return domain.Errorf(domain.Denied, "%s", p.Why)
		case p.Where == domain.WhereOutside && full && writes:
			spec.Extra = append(spec.Extra, p.Path)
		case p.Where == domain.WhereOutside && full:
			spec.Readable = append(spec.Readable, p.Path)
		}
		if p.Protected && writes {
			spec.AllowProtected = append(spec.AllowProtected, p.Path)
		}
	}
	return nil
}

// follow shows the output until the command ends or the call is cancelled.
func (c *prepared) follow(ctx context.Context, j *job, report func(domain.ToolProgress)) domain.ToolResult {
	// The first output is shown at once; what comes after it is gathered for a
	// while.
	timer := time.NewTimer(liveEvery)
	timer.Stop()
	defer timer.Stop()
	changed := j.out.changed
	var last time.Time
	for {
		select {
		case <-ctx.Done():
			j.stop(stopCancel)
			c.await(j, cancelWait)
			return c.result(j)
		case <-j.ended:
			return c.result(j)
		case <-changed:
			if wait := liveEvery - time.Since(last); wait > 0 {
				timer.Reset(wait)
				changed = nil
				continue
			}
		case <-timer.C:
			changed = j.out.changed
		}
		if text := j.out.tail(maxLive); text != "" && !j.over() {
			report(domain.ToolProgress{Content: block(text)})
		}
		last = time.Now()
	}
}

// await waits for a job's end, for a bounded time.
func (c *prepared) await(j *job, limit time.Duration) {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-j.ended:
	case <-timer.C:
	}
}

// followStart gives a background job a moment, so that one that fails at
// once is told as such.
func (c *prepared) followStart(ctx context.Context, j *job) domain.ToolResult {
	timer := time.NewTimer(c.t.conf.settle)
	defer timer.Stop()
	select {
	case <-j.ended:
	case <-timer.C:
	case <-ctx.Done():
	}
	r := j.report(j.out.show(c.request.text))
	if !j.over() {
		r.Text = fmt.Sprintf("[job %s is running; its output: shell_output {\"job\":%q}, its end: shell_kill {\"job\":%q}]\n", j.id, j.id, j.id) + body(r.Text)
	}
	return r
}

// result is how the call ended.
func (c *prepared) result(j *job) domain.ToolResult {
	return j.report(j.out.show(c.request.text))
}

// block is output as the client shows it.
func block(text string) []domain.CallContent {
	return []domain.CallContent{domain.ContentBlock{Block: domain.Text{Text: domain.Fenced("", text)}}}
}
