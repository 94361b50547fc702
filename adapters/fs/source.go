package fs

import (
	"context"
	"slices"
	"sync"

	"github.com/berth-dev/berth/core/domain"
	"github.com/berth-dev/berth/core/ports"
)

// Source opens the file tools of sessions.
type Source struct {
	disk  *Disk
	specs specs
}

var _ ports.ToolSource = (*Source)(nil)

// NewSource makes the source of a disk's file tools.
func NewSource(d *Disk) *Source { return &Source{disk: d, specs: newSpecs()} }

// Open opens the session's directories and returns its tools. A directory
// that is not there now is no error: calls that need it fail until it is back.
func (s *Source) Open(_ context.Context, session domain.Session, client ports.Client) (ports.Toolset, error) {
	if session.Cwd == "" {
		return nil, domain.Errorf(domain.InvalidArgument, "session %s has no working directory", session.ID)
	}
	w := &workspace{disk: s.disk, specs: &s.specs, session: session, client: client, budget: sweepBudget()}
	w.current = s.disk.newSpace(session, s.disk.policy(session.Agent))
	s.disk.mu.Lock()
	s.disk.open[session.ID] = w
	s.disk.mu.Unlock()
	return w, nil
}

// workspace is the files of one open session: its toolset, and what its tools
// share.
type workspace struct {
	disk    *Disk
	specs   *specs
	session domain.Session
	client  ports.Client
	seen    seen
	budget  budget // of one glob or search

	mu      sync.Mutex
	current *space // nil once closed
}

// Tools returns the session's file tools.
func (w *workspace) Tools() []ports.Tool {
	return []ports.Tool{readTool{w}, writeTool{w}, editTool{w}, listTool{w}, moveTool{w}, deleteTool{w}, globTool{w}, searchTool{w}, deliverTool{w}}
}

// Close closes the session's directories. Calls that are still running keep
// what they hold until they end.
func (w *workspace) Close() error {
	w.disk.mu.Lock()
	if w.disk.open[w.session.ID] == w {
		delete(w.disk.open, w.session.ID)
	}
	w.disk.mu.Unlock()
	w.mu.Lock()
	sp := w.current
	w.current = nil
	w.mu.Unlock()
	if sp != nil {
		sp.drop()
	}
	return nil
}

// use returns the session's roots and rules as of now, with a share that must
// be dropped.
func (w *workspace) use() (*space, error) {
	pol := w.disk.policy(w.session.Agent)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.current == nil {
		return nil, domain.Errorf(domain.Cancelled, "The session is closed")
	}
	if !w.current.pol.equal(pol) {
		old := w.current
		w.current = w.disk.newSpace(w.session, pol)
		old.drop()
	} else if w.current.broken() {
		w.current = w.disk.mended(w.current)
	}
	w.current.share()
	return w.current, nil
}

// mended returns the space with those roots opened that can be now. Roots
// that are open stay the directories they are. It takes over the caller's
// share of the old one.
func (d *Disk) mended(old *space) *space {
	roots := slices.Clone(old.roots)
	better := false
	for i := range roots {
		if roots[i].h == nil {
			if roots[i].h, roots[i].err = d.acquire(roots[i].path); roots[i].err == nil {
				roots[i].ban = old.guard.rootBan(roots[i].path)
				better = true
			}
		}
	}
	if !better {
		return old
	}
	d.mu.Lock()
	for i := range roots {
		if h := old.roots[i].h; h != nil {
			h.refs++
		}
	}
	d.mu.Unlock()
	sp := &space{disk: d, roots: roots, guard: old.guard, pol: old.pol}
	sp.refs.Store(1)
	old.drop()
	return sp
}

// spaceFor returns the roots a session holds open, or opens them for a
// moment. The share must be dropped.
func (d *Disk) spaceFor(session domain.Session) (*space, error) {
	d.mu.Lock()
	w := d.open[session.ID]
	d.mu.Unlock()
	if w != nil && w.session.Cwd == session.Cwd {
		if sp, err := w.use(); err == nil {
			return sp, nil
		}
	}
	return d.newSpace(session, d.policy(session.Agent)), nil
}
