package fs

import (
	"context"
	"errors"
	"fmt"
	"io"
	iofs "io/fs"
	"os"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/berth-dev/berth/core/domain"
	"github.com/berth-dev/berth/core/ports"
)

const (
	maxShown  = 1000   // entries one answer shows
	maxListed = 20_000 // entries that are looked at and sorted
)

// listTool is list_directory.
type listTool struct{ w *workspace }

// Spec describes list_directory.
func (t listTool) Spec() domain.ToolSpec { return t.w.specs.list }

// Prepare opens the directory.
func (t listTool) Prepare(ctx context.Context, call domain.ToolCall) (ports.Prepared, error) {
	a := parseArgs("list_directory", call.Args, "path (string)")
	path := a.text(false, ".", "path")
	if err := a.done(); err != nil {
		return nil, err
	}
	sp, err := t.w.use()
	if err != nil {
		return nil, err
	}
	var d *dir
	tg, err := sp.retry(ctx, path, func() (*target, error) {
		tg, err := sp.walk(path)
		if err == nil && !tg.blocked() {
			d, err = openListed(sp, tg)
		}
		return tg, err
	})
	if err != nil {
		sp.drop()
		return nil, err
	}
	show := sp.display(tg)
	l := &listing{sp: sp, target: tg, dir: d, show: show}
	l.plan = domain.ToolPlan{
		Title: "List " + printable(show), Kind: domain.KindRead,
		Locations: []domain.Location{{Path: tg.show}},
		Access:    tg.access("list_directory", domain.AccessRead, sp.pol.Level),
	}
	return l, nil
}

// openListed opens the directory a target is. On an error the target is
// closed.
func openListed(sp *space, t *target) (*dir, error) {
	d, err := func() (*dir, error) {
		switch {
		case !t.found:
			return nil, missing(sp, t)
		case t.name == "":
			return t.dir.again()
		case !t.info.mode.IsDir():
			return nil, domain.Errorf(domain.InvalidArgument, "%s is %s, not a directory", sp.display(t), kindOf(t.info.mode))
		}
		d, err := t.dir.sub(t.name)
		switch {
		case errors.Is(err, errIsLink), errors.Is(err, errNotDir), errors.Is(err, iofs.ErrNotExist), errors.Is(err, errMoved):
			return nil, errMoved
		case err != nil:
			return nil, systemError(sp.display(t), err)
		}
		if i, err := d.stat(); err != nil || i.id != t.info.id {
			_ = d.close()
			return nil, errMoved
		}
		return d, nil
	}()
	if err != nil {
		t.close()
	}
	return d, err
}

// listing is a prepared list_directory.
type listing struct {
	sp     *space
	target *target
	dir    *dir // nil when policy blocks it
	show   string
	plan   domain.ToolPlan
	ran    atomic.Bool
}

// Plan tells what will be listed.
func (l *listing) Plan() domain.ToolPlan { return l.plan }

// Close closes the directory.
func (l *listing) Close() error {
	l.target.close()
	l.sp.drop()
	if l.dir != nil {
		return l.dir.close()
	}
	return nil
}

// Run lists the directory.
func (l *listing) Run(ctx context.Context, _ func(domain.ToolProgress)) (domain.ToolResult, error) {
	if l.ran.Swap(true) {
		return domain.ToolResult{}, errRanTwice
	}
	if ctx.Err() != nil {
		return domain.ToolResult{}, context.Cause(ctx)
	}
	if why := l.target.refusal(); why != "" {
		return failed(why), nil
	}
	entries, more, err := l.entries(ctx)
	if err != nil {
		return failedWith(ctx, l.show, err)
	}
	text := l.words(entries, more)
	return domain.ToolResult{
		Text:      text,
		Content:   []domain.CallContent{domain.ContentBlock{Block: domain.Text{Text: domain.Fenced("", text)}}},
		RawOutput: fmt.Appendf(nil, `{"entries":%d,"complete":%t}`, len(entries), !more && len(entries) <= maxShown),
	}, nil
}

// entry is one line of a listing.
type entry struct {
	name string
	info info
	link string // where a link points
	note string
}

// entries looks at what is in the directory, sorted, directories first. more
// tells that there is more than it looked at.
func (l *listing) entries(ctx context.Context) (list []entry, more bool, err error) {
	f, err := l.dir.readable()
	if err != nil {
		return nil, false, err
	}
	defer func() { _ = f.Close() }()
	self, err := l.dir.stat()
	if err != nil {
		return nil, false, err
	}
	for {
		names, err := f.Readdirnames(256)
		if ctx.Err() != nil {
			return nil, false, context.Cause(ctx)
		}
		for _, n := range names {
			if e, there := l.entry(n, self); there {
				list = append(list, e)
			}
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, false, err
		}
		if err != nil {
			break
		}
		if len(list) >= maxListed {
			more = true
			break
		}
	}
	slices.SortFunc(list, func(a, b entry) int {
		if x, y := a.info.mode.IsDir(), b.info.mode.IsDir(); x != y {
			if x {
				return -1
			}
			return 1
		}
		return strings.Compare(a.name, b.name)
	})
	return list, more, nil
}

// entry describes one name, by what it is itself. A name that is gone already
// is left out.
func (l *listing) entry(name string, self info) (entry, bool) {
	e := entry{name: name}
	i, err := l.dir.lstat(name)
	switch {
	case errors.Is(err, iofs.ErrNotExist):
		return e, false
	case err != nil:
		e.note = reason(err)
		return e, true
	}
	e.info = i
	switch {
	case i.mode&iofs.ModeSymlink != 0:
		e.link, _ = l.dir.readlink(name)
	case i.mode.IsDir() && i.id.dev != self.id.dev:
		e.note = "other device"
	case !i.mode.IsDir() && !i.mode.IsRegular():
		e.note = kindOf(i.mode)
	}
	if ban, _ := l.sp.guard.object(i.id); ban != "" {
		e.note = "forbidden"
	}
	return e, true
}

// words is the listing as text.
func (l *listing) words(list []entry, more bool) string {
	var b strings.Builder
	show := printable(l.show)
	switch {
	case len(list) == 0:
		return "[" + show + " is empty]"
	case more:
		fmt.Fprintf(&b, "[%s: more than %d entries, the first %d of those looked at are shown; name a directory below it to see less]\n", show, len(list), maxShown)
	case len(list) > maxShown:
		fmt.Fprintf(&b, "[%s: %d entries, the first %d are shown]\n", show, len(list), maxShown)
	case len(list) == 1:
		fmt.Fprintf(&b, "[%s: 1 entry]\n", show)
	default:
		fmt.Fprintf(&b, "[%s: %d entries]\n", show, len(list))
	}
	for _, e := range list[:min(len(list), maxShown)] {
		b.WriteString(printable(e.name))
		switch {
		case e.info.mode.IsDir():
			b.WriteByte(os.PathSeparator)
		case e.link != "":
			b.WriteString(" -> " + printable(e.link))
		case e.info.mode.IsRegular() && e.note == "":
			b.WriteString("  " + bytesWords(e.info.size))
		}
		if e.note != "" {
			b.WriteString("  (" + e.note + ")")
		}
		b.WriteByte('\n')
	}
	return b.String()
}
