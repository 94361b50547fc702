package exec

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/berth-dev/berth/core/domain"
	"github.com/berth-dev/berth/core/ports"
)

// outputTool is shell_output.
type outputTool struct{ t *toolset }

// Spec describes shell_output.
func (o outputTool) Spec() domain.ToolSpec { return o.t.specs.output }

// Prepare finds the job.
func (o outputTool) Prepare(_ context.Context, call domain.ToolCall) (ports.Prepared, error) {
	a := parseArgs("shell_output", outputArgs, call.Args)
	id, wait, since := a.id("job", "job_id", "id"), a.count(0, 0, 300, "wait_secs", "wait"), a.count(-1, 0, 1<<53, "since", "offset")
	if err := a.done(); err != nil {
		return nil, err
	}
	p := &look{t: o.t, wait: time.Duration(wait) * time.Second, since: since}
	title := "List background jobs"
	if id != "" {
		j, err := o.t.job(id)
		if err != nil {
			return nil, err
		}
		p.job, title = j, "Output of job "+j.id+": "+oneLine(j.line)
	}
	p.plan = jobPlan("shell_output", title)
	return p, nil
}

// jobPlan is a plan for a call that has no effect on anything but a job that
// was allowed to run.
func jobPlan(tool, title string) domain.ToolPlan {
	return domain.ToolPlan{
		Title: cutRunes(title, maxTitle), Kind: domain.KindExecute,
		Access: domain.Access{Tool: tool, Class: domain.AccessNone},
	}
}

// look is a prepared shell_output.
type look struct {
	t     *toolset
	job   *job // nil lists all
	wait  time.Duration
	since int64 // -1 for all there is
	plan  domain.ToolPlan
	ran   atomic.Bool
}

// Plan tells which job is looked at.
func (l *look) Plan() domain.ToolPlan { return l.plan }

// Close has nothing to give up.
func (l *look) Close() error { return nil }

// Run waits as long as it was asked to, and looks.
func (l *look) Run(ctx context.Context, _ func(domain.ToolProgress)) (domain.ToolResult, error) {
	if l.ran.Swap(true) {
		return domain.ToolResult{}, errRanTwice
	}
	if ctx.Err() != nil {
		return domain.ToolResult{}, context.Cause(ctx)
	}
	if l.job == nil {
		return l.list(), nil
	}
	if l.wait > 0 {
		if err := l.await(ctx); err != nil {
			return domain.ToolResult{}, err
		}
	}
	s := l.job.out.show(defaultText)
	if l.since >= 0 {
		s = l.job.out.since(l.since, defaultText)
	}
	r := l.job.report(s)
	// What a job did is its own affair; that it was looked at worked.
	r.Failed = false
	first, rest, _ := strings.Cut(r.Text, "\n")
	r.Text = fmt.Sprintf("%s; since: %d]\n%s", strings.TrimSuffix(first, "]"), s.next, rest)
	r.Content = block(cutAt(r.Text, maxShown))
	return r, nil
}

// await waits until the job ends, until it wrote more than was seen if that
// is known, or until the time is over.
func (l *look) await(ctx context.Context) error {
	timer := time.NewTimer(l.wait)
	defer timer.Stop()
	poll := time.NewTicker(liveEvery)
	defer poll.Stop()
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-l.job.ended:
			return nil
		case <-timer.C:
			return nil
		case <-poll.C:
			if l.since >= 0 && l.job.out.size() > l.since {
				return nil
			}
		}
	}
}

func (l *look) list() domain.ToolResult {
	var b strings.Builder
	for _, j := range l.t.all() {
		status, _ := j.status(&facts{})
		fmt.Fprintf(&b, "%s: %s\n", status, cutRunes(oneLine(j.line), maxTitle))
	}
	if b.Len() == 0 {
		b.WriteString("There are no background jobs.\n")
	}
	return domain.ToolResult{Text: b.String(), Content: block(b.String())}
}

// killTool is shell_kill.
type killTool struct{ t *toolset }

// Spec describes shell_kill.
func (k killTool) Spec() domain.ToolSpec { return k.t.specs.kill }

// Prepare finds the job.
func (k killTool) Prepare(_ context.Context, call domain.ToolCall) (ports.Prepared, error) {
	a := parseArgs("shell_kill", killArgs, call.Args)
	id := a.id("job", "job_id", "id")
	if id == "" {
		a.fail("\"job\" is missing")
	}
	if err := a.done(); err != nil {
		return nil, err
	}
	j, err := k.t.job(id)
	if err != nil {
		return nil, err
	}
	return &ending{job: j, join: k.t.conf.join, plan: jobPlan("shell_kill", "End job "+j.id+": "+oneLine(j.line))}, nil
}

// ending is a prepared shell_kill.
type ending struct {
	job  *job
	join time.Duration // at most
	plan domain.ToolPlan
	ran  atomic.Bool
}

// Plan tells which job is ended.
func (e *ending) Plan() domain.ToolPlan { return e.plan }

// Close has nothing to give up.
func (e *ending) Close() error { return nil }

// Run ends the job and waits for that.
func (e *ending) Run(ctx context.Context, _ func(domain.ToolProgress)) (domain.ToolResult, error) {
	if e.ran.Swap(true) {
		return domain.ToolResult{}, errRanTwice
	}
	if ctx.Err() != nil {
		return domain.ToolResult{}, context.Cause(ctx)
	}
	before := "it had ended before"
	if !e.job.over() {
		before = ""
		e.job.stop(stopKill)
	}
	limit := time.NewTimer(e.join)
	defer limit.Stop()
	select {
	case <-e.job.ended:
	case <-ctx.Done():
		return failed("Cancelled; the job is being ended all the same."), nil
	case <-limit.C:
		return failed("The job does not end; the system does not let it be killed. It is tried again when the session closes."), nil
	}
	s := e.job.out.show(maxLive)
	r := e.job.report(s)
	r.Failed = false
	if before != "" {
		r.Text = "[" + before + "]\n" + r.Text
	}
	return r, nil
}
