package exec

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/berth-dev/berth/core/domain"
	"github.com/berth-dev/berth/core/ports"
)

const (
	// maxJobs is how many background jobs of a session may run at once.
	maxJobs = 8
	// maxEnded is how many ended ones are remembered.
	maxEnded = 16
	// joinLimit bounds how long closing a session waits for its commands.
	joinLimit = 5 * time.Second
)

// Source opens the shell tools of sessions.
type Source struct {
	conf  Config
	specs specs
}

var _ ports.ToolSource = (*Source)(nil)

// NewSource makes the source of the shell tools. Nothing is started or tried.
func NewSource(conf Config) *Source {
	conf.settle, conf.join = cmp.Or(conf.settle, settle), cmp.Or(conf.join, joinLimit)
	return &Source{conf: conf, specs: newSpecs(conf.Shell.Bash)}
}

// Open returns the session's shell tools; none where there is no shell.
func (s *Source) Open(_ context.Context, session domain.Session, _ ports.Client) (ports.Toolset, error) {
	if session.Cwd == "" {
		return nil, domain.Errorf(domain.InvalidArgument, "session %s has no working directory", session.ID)
	}
	return &toolset{
		conf: &s.conf, specs: &s.specs, session: session,
		files: &outputDir{workspace: session.Workspace, session: session.ID, clock: s.conf.Clock, newID: s.conf.IDs},
	}, nil
}

// Forget removes the outputs that were kept of a session that is deleted.
func (s *Source) Forget(session domain.Session) error {
	d := outputDir{workspace: session.Workspace, session: session.ID}
	return d.remove()
}

// toolset is the commands of one open session.
type toolset struct {
	conf    *Config
	specs   *specs
	session domain.Session
	files   *outputDir

	mu     sync.Mutex
	closed bool
	live   []*job // everything that may still have processes
	jobs   []*job // background jobs, oldest first
	last   int    // number of the last one
}

// Tools returns shell, shell_output and shell_kill.
func (t *toolset) Tools() []ports.Tool {
	if t.conf.Shell.Path == "" {
		return nil
	}
	return []ports.Tool{shellTool{t}, outputTool{t}, killTool{t}}
}

// errClosed tells a call that comes too late.
func errClosed() error { return domain.Errorf(domain.Cancelled, "The session is closed") }

// start starts a process as a job of the session.
func (t *toolset) start(p Process, line string, out *output, limit time.Duration, background bool) (*job, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.closed:
		_ = p.Close()
		return nil, errClosed()
	case background && t.running() >= maxJobs:
		_ = p.Close()
		return nil, domain.Errorf(domain.TooLarge, "There are %d background jobs already; end one with shell_kill first", maxJobs)
	}
	j, err := startJob(p, line, out, limit)
	if err != nil {
		return nil, err
	}
	t.live = slices.DeleteFunc(t.live, func(j *job) bool { return j.over() && closed(j.gone) })
	t.live = append(t.live, j)
	if background {
		t.last++
		j.id = strconv.Itoa(t.last)
		t.jobs = append(t.jobs, j)
		t.forgetOld()
	}
	return j, nil
}

// running counts the background jobs that run. Called with mu held.
func (t *toolset) running() int {
	n := 0
	for _, j := range t.jobs {
		if !j.over() {
			n++
		}
	}
	return n
}

// forgetOld drops the oldest jobs that have ended. Called with mu held.
func (t *toolset) forgetOld() {
	ended := len(t.jobs) - t.running()
	t.jobs = slices.DeleteFunc(t.jobs, func(j *job) bool {
		if ended > maxEnded && j.over() {
			ended--
			return true
		}
		return false
	})
}

// job returns a background job by its name.
func (t *toolset) job(id string) (*job, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, j := range t.jobs {
		if j.id == id {
			return j, nil
		}
	}
	if len(t.jobs) == 0 {
		return nil, domain.Errorf(domain.NotFound, "There is no job %s; this session has no background jobs", strconv.Quote(cutAt(id, 40)))
	}
	return nil, domain.Errorf(domain.NotFound, "There is no job %s; shell_output without a job lists them", strconv.Quote(cutAt(id, 40)))
}

// all returns the background jobs, oldest first.
func (t *toolset) all() []*job {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.jobs)
}

// Close ends every command of the session, background jobs too, and waits
// until nothing of them lives.
func (t *toolset) Close() error {
	t.mu.Lock()
	t.closed = true
	live := slices.Clone(t.live)
	t.mu.Unlock()
	for _, j := range live {
		j.stop(stopClose)
	}
	limit := time.NewTimer(t.conf.join)
	defer limit.Stop()
	for _, j := range live {
		select {
		case <-j.gone:
		case <-limit.C:
			return fmt.Errorf("exec: a command of session %s does not end: %s", t.session.ID, cutAt(visible(j.line, false), 80))
		}
	}
	return nil
}

// closed reports whether a channel is closed.
func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
