package fs

import (
	"context"
	"errors"
	iofs "io/fs"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

const (
	sweepers  = 8   // directories or runs of files at work at once, at most
	runLength = 32  // files of a directory that are taken as one piece of work
	maxDepth  = 256 // directories below the start
)

// budget bounds one sweep. What it does not reach is said in the result.
type budget struct {
	entries int64 // names looked at
	bytes   int64 // read from files
	time    time.Duration
}

func sweepBudget() budget {
	return budget{entries: 1_000_000, bytes: 4 << 30, time: 10 * time.Second}
}

// leaf is a name that a visitor wants: anything, a directory too.
type leaf struct {
	path string // from the start, with slashes
	mode iofs.FileMode
}

// name is the last part of the path.
func (l leaf) name() string { return l.path[strings.LastIndexByte(l.path, '/')+1:] }

// visitor is what a sweep is for. All but take is called by several
// goroutines at once.
type visitor interface {
	// keep reports whether a name is wanted, by its path from the start.
	keep(path string, mode iofs.FileMode) bool
	// enter reports whether something below a directory may be wanted.
	enter(path string) bool
	// visit deals with wanted names of one directory. What it returns goes to
	// take, unless it is nil.
	visit(s *sweeper, d *dir, run []leaf) any
	// take gets the results one at a time, in the order of their paths. It
	// reports whether that is enough.
	take(result any) (enough bool)
}

// sweep is one way through everything below a directory: several goroutines
// read directories and visit names, and the results are taken in the order of
// the paths, compared name by name. So what a visitor makes of them does not
// depend on who was first, even if it ends the sweep early.
//
// No link is followed, no other device entered, nothing forbidden looked at;
// work is done depth first, so that few directories are open at a time.
type sweep struct {
	ctx     context.Context //nolint:containedctx // sweep is one running sweep
	guard   *guard
	visitor visitor
	hidden  bool // look at names that begin with a dot
	max     budget

	dev  uint64   // of the start
	cut  int      // bytes of a rule path that lie above the start
	bans []string // forbidden paths below the start, from it, with slashes

	entries, bytes atomic.Int64
	stopped        atomic.Bool

	mu    sync.Mutex
	wake  sync.Cond
	stack []task // what to do next is last
	busy  int    // goroutines at work
	limit string // the budget that ran out

	order sync.Mutex
	front []cursor // the way to the first piece that is not done yet
	tally tally    // of everything taken
}

// sweeper is what one goroutine of a sweep has for itself.
type sweeper struct {
	*sweep
	names  []byte // for reading directories
	buf    []byte // for a file
	text   []byte // for a file in another form
	passed tally  // of the piece at work
	own    any    // what the visitor keeps for this goroutine
}

// spot is an open directory of a sweep, with the work left in it.
type spot struct {
	dir   *dir
	above string   // path from the session's root, for ignore rules; "" or ending in a slash
	rules *ignores // nil when nothing is ignored
	depth int
	left  atomic.Int64
}

// done gives up n pieces of work in the directory.
func (p *spot) done(n int64) {
	if p.left.Add(-n) == 0 {
		_ = p.dir.close()
	}
}

// node is a directory of the sweep, item a piece of it: a run of names, or a
// directory when sub is set. Both are guarded by sweep.order.
type node struct {
	items  []item
	listed bool
	tally  tally
}

type item struct {
	sub    *node
	done   bool
	result any
	tally  tally
}

// task is the work of one item. It holds one piece of its spot.
type task struct {
	in   *spot
	run  []leaf
	name string // of the directory, when run is empty
	into *item
	sub  *node
}

type cursor struct {
	node *node
	next int
}

// sweepStart is where a sweep begins.
type sweepStart struct {
	dir   *dir   // stays the caller's
	path  string // canonical
	names []string
	rules *ignores
}

// errTooLong ends a sweep by its own time limit.
var errTooLong = errors.New("fs: the time of a sweep is over")

// run sweeps and returns when every goroutine has ended. The error is that of
// the context or of the start itself; a budget that ran out is none.
func (s *sweep) run(from sweepStart) error {
	outer := s.ctx
	ctx, cancel := context.WithTimeoutCause(outer, s.max.time, errTooLong)
	defer cancel()
	s.ctx, s.wake.L = ctx, &s.mu
	if err := s.begin(from); err != nil && ctx.Err() == nil {
		return err
	}
	var crew sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), sweepers) - 1 {
		crew.Go(func() { (&sweeper{sweep: s}).work() })
	}
	(&sweeper{sweep: s}).work()
	crew.Wait()
	for _, t := range s.stack {
		t.in.done(1)
	}
	if outer.Err() != nil {
		return context.Cause(outer)
	}
	if s.ctx.Err() != nil {
		s.exhaust("time")
	}
	s.rest()
	return nil
}

// begin reads the start.
func (s *sweep) begin(from sweepStart) error {
	self, err := from.dir.stat()
	if err != nil {
		return err
	}
	s.dev = self.id.dev
	for _, p := range s.guard.paths {
		if rest, in := below(from.path, sameCase(p, from.path)); in && rest != "" {
			names, _ := components(rest)
			s.bans = append(s.bans, strings.Join(names, "/"))
		}
	}
	d, err := from.dir.listable(".")
	if err != nil {
		return err
	}
	p := &spot{dir: d, rules: from.rules}
	if len(from.names) > 0 {
		p.above = strings.Join(from.names, "/") + "/"
	}
	s.cut = len(p.above)
	top := &node{}
	s.front = []cursor{{top, 0}}
	w := &sweeper{sweep: s}
	return w.list(p, top)
}

// work takes tasks until there are none and nobody can make more.
func (s *sweeper) work() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		for len(s.stack) == 0 && s.busy > 0 && !s.over() {
			s.wake.Wait()
		}
		if len(s.stack) == 0 || s.over() {
			s.wake.Broadcast()
			return
		}
		t := s.stack[len(s.stack)-1]
		s.stack = s.stack[:len(s.stack)-1]
		s.busy++
		s.mu.Unlock()
		s.do(t)
		s.mu.Lock()
		if s.busy--; s.busy == 0 {
			s.wake.Broadcast()
		}
	}
}

// over reports whether nothing new may begin.
func (s *sweep) over() bool { return s.stopped.Load() || s.ctx.Err() != nil }

// exhaust ends the sweep because a budget ran out.
func (s *sweep) exhaust(what string) {
	s.mu.Lock()
	if s.limit == "" {
		s.limit = what
	}
	s.mu.Unlock()
	s.stopped.Store(true)
}

// spend takes bytes off the budget; false when it has run out.
func (s *sweep) spend(n int64) bool {
	if s.bytes.Add(n) > s.max.bytes {
		s.exhaust("bytes")
		return false
	}
	return true
}

func (s *sweeper) do(t task) {
	if t.sub != nil {
		s.descend(t)
		return
	}
	s.passed = tally{}
	result := s.visitor.visit(s, t.in.dir, t.run)
	t.in.done(1)
	whole := s.ctx.Err() == nil
	s.order.Lock()
	defer s.order.Unlock()
	t.into.result, t.into.tally, t.into.done = result, s.passed, true
	if whole {
		s.advance()
	}
}

// descend opens a directory and lists it.
func (s *sweeper) descend(t task) {
	path := t.in.above + t.name
	p, why := s.open(t.in, t.name, path)
	t.in.done(1)
	if p != nil {
		if err := s.list(p, t.sub); err == nil {
			return
		} else if s.ctx.Err() == nil {
			why = passedUnreadable
		}
	}
	s.order.Lock()
	defer s.order.Unlock()
	if why != passedGone {
		t.sub.tally.pass(why, path[s.cut:])
	}
	t.sub.listed = true
	s.advance()
}

// open opens a directory of the sweep, or says why it is passed over.
func (s *sweeper) open(in *spot, name, path string) (*spot, passing) {
	d, err := in.dir.listable(name)
	switch {
	case errors.Is(err, errIsLink), errors.Is(err, errNotDir), errors.Is(err, errMoved), errors.Is(err, iofs.ErrNotExist):
		return nil, passedGone // it was a directory a moment ago
	case err != nil:
		return nil, passedUnreadable
	}
	i, err := d.stat()
	why := passedGone
	switch {
	case err != nil:
		why = passedUnreadable
	case i.id.dev != s.dev:
		why = passedDevice
	case s.banned(i):
		why = passedForbidden
	case in.depth+1 > maxDepth:
		why = passedDeep
	default:
		return &spot{dir: d, above: path + "/", rules: in.rules, depth: in.depth + 1}, why
	}
	_ = d.close()
	return nil, why
}

// banned reports whether a file or directory is forbidden by what it is.
func (s *sweep) banned(i info) bool {
	ban, _ := s.guard.object(i.id)
	return ban != ""
}
