package fs

import (
	"context"
	"time"

	"github.com/berth-dev/berth/core/domain"
)

// linkScan is the files with several names below the forbidden directories
// of one device.
type linkScan struct {
	at    time.Time
	files map[fileID]string
	whole bool // false when the budget ran out
}

// linked reports the forbidden file that an open regular file is too, under
// another name; "" when it is none. An error means it could not be told.
func (g *guard) linked(ctx context.Context, i info) (string, error) {
	if i.links < 2 {
		return "", nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	s := g.scans[i.id.dev]
	now := time.Now()
	// Giving a file a name moves its ctime, to a clock that may lag a little.
	// Windows has no such mark.
	fresh := linksFresh
	if i.ctime == 0 {
		fresh = idsFresh
	}
	stale := s == nil || now.Sub(s.at) > fresh || now.Before(s.at) || i.ctime >= s.at.Add(-time.Second).UnixNano()
	if stale {
		var err error
		if s, err = g.scan(ctx, i.id.dev, now); err != nil {
			return "", err
		}
		g.scans[i.id.dev] = s
	}
	if path, ok := s.files[i.id]; ok {
		return path, nil
	}
	if !s.whole {
		return "", domain.Errorf(domain.Denied,
			"the file has several hard links, and the forbidden directories are too large to rule out that one of them is there")
	}
	return "", nil
}

// scan collects the files with several names below the forbidden directories
// that lie on the device. Hard links never cross devices.
func (g *guard) scan(ctx context.Context, dev uint64, now time.Time) (*linkScan, error) {
	g.look(now)
	s := &linkScan{at: now, files: map[fileID]string{}}
	r := &scanner{ctx: ctx, dev: dev, own: g.ownID, into: s, seen: map[fileID]bool{}, left: maxScanned, until: now.Add(maxScanTime)}
	for _, p := range g.paths {
		if !g.system[p] {
			r.tree(p)
		}
	}
	s.whole = r.left > 0
	r.left, r.until = maxAside, time.Now().Add(maxAsideTime)
	for _, p := range g.paths {
		if g.system[p] {
			r.tree(p)
		}
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return s, nil
}

// scanner is one scan under way. What cannot be entered is passed over: nobody
// made a link out of it through us either.
type scanner struct {
	ctx   context.Context //nolint:containedctx // scanner is one running scan
	dev   uint64
	own   fileID
	into  *linkScan
	seen  map[fileID]bool
	left  int // entries; 0 when the budget is gone
	until time.Time
}

// tree scans a forbidden path.
func (r *scanner) tree(path string) {
	top, err := statPath(path)
	switch {
	case err != nil || top.id.dev != r.dev:
		return
	case !top.mode.IsDir():
		r.into.files[top.id] = path
		return
	}
	if d, err := openPath(canonical(path)); err == nil {
		r.dir(d, path)
	}
}

// dir scans and closes d.
func (r *scanner) dir(d *dir, path string) {
	defer func() { _ = d.close() }()
	self, err := d.stat()
	if err != nil || r.seen[self.id] || self.id == r.own {
		return
	}
	r.seen[self.id] = true
	f, err := d.readable()
	if err != nil {
		return
	}
	defer func() { _ = f.Close() }()
	for {
		names, err := f.Readdirnames(256)
		if r.ctx.Err() != nil || time.Now().After(r.until) {
			r.left = 0
		}
		for _, name := range names {
			if r.left--; r.left <= 0 {
				r.left = 0
				return
			}
			r.entry(d, path, name)
		}
		if err != nil {
			return
		}
	}
}

func (r *scanner) entry(d *dir, path, name string) {
	i, err := d.lstat(name)
	switch {
	case err != nil || i.id.dev != r.dev:
	case i.mode.IsRegular() && i.links > 1:
		r.into.files[i.id] = join(path, name)
	case i.mode.IsDir():
		if sub, err := d.sub(name); err == nil {
			r.dir(sub, join(path, name))
		}
	}
}
