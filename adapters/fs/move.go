package fs

import (
	"context"
	"errors"
	"fmt"
	iofs "io/fs"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/berth-dev/berth/core/domain"
	"github.com/berth-dev/berth/core/ports"
)

// moveTool is move_file.
type moveTool struct{ w *workspace }

// Spec describes move_file.
func (t moveTool) Spec() domain.ToolSpec { return t.w.specs.move }

// Prepare resolves both ends.
func (t moveTool) Prepare(ctx context.Context, call domain.ToolCall) (ports.Prepared, error) {
	a := parseArgs("move_file", call.Args, "source (string)", "destination (string)", "overwrite (boolean)")
	from := a.text(true, "", "source")
	to := a.text(true, "", "destination")
	overwrite := a.flag("overwrite")
	if err := a.done(); err != nil {
		return nil, err
	}
	sp, err := t.w.use()
	if err != nil {
		return nil, err
	}
	m := &movement{w: t.w, sp: sp}
	if err := m.prepare(ctx, from, to, overwrite); err != nil {
		_ = m.Close()
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		return nil, err
	}
	return m, nil
}

// movement is a prepared move_file.
type movement struct {
	w        *workspace
	sp       *space
	src, dst *target
	from, to string // for messages
	file     inspected
	survey   *survey // of a directory
	old      inspected
	replaces bool // there is something at dst that goes
	recase   bool // dst is src by another spelling
	plan     domain.ToolPlan
	ran      atomic.Bool
}

func (m *movement) prepare(ctx context.Context, from, to string, overwrite bool) error {
	var err error
	if m.src, err = m.sp.resolveName(ctx, from); err != nil {
		return err
	}
	if trimmed := strings.TrimRight(to, "/"); trimmed != "" && m.src.found && m.src.info.mode.IsDir() {
		to = trimmed // a directory's new name may end as one
	}
	if m.dst, err = m.sp.resolveName(ctx, to); err != nil {
		return err
	}
	m.from, m.to = m.sp.display(m.src), m.sp.display(m.dst)
	level := m.sp.pol.Level
	m.plan = domain.ToolPlan{
		Title: "Move " + printable(m.from) + " to " + printable(m.to), Kind: domain.KindMove,
		Locations: []domain.Location{{Path: m.src.show}, {Path: m.dst.show}},
		Access: merge(m.src.access("move_file", domain.AccessEdit, level),
			m.dst.access("move_file", domain.AccessEdit, level)),
	}
	if m.blocked() {
		return nil
	}
	if !m.src.found {
		return missing(m.sp, m.src)
	}
	if err := m.fits(overwrite); err != nil {
		return err
	}
	if err := m.workOut(ctx); err != nil {
		return prefixed(m.from, coded(m.from, err))
	}
	return nil
}

// blocked reports whether either end may not be touched, and sees to it that
// the plan says why.
func (m *movement) blocked() bool {
	for _, t := range []*target{m.src, m.dst} {
		why := m.sp.changeable(t)
		if why == "" {
			continue
		}
		if m.plan.Access.Forbidden == "" && !t.blocked() {
			m.plan.Access.Forbidden = why
		}
		return true
	}
	return false
}

// fits reports why the source cannot have the destination's name.
func (m *movement) fits(overwrite bool) error {
	src, dst := m.src, m.dst
	switch _, within := below(src.path, dst.path); {
	case src.path == dst.path:
		return domain.Errorf(domain.InvalidArgument, "source and destination are both %s; there is nothing to move", m.from)
	case within && src.info.mode.IsDir():
		return domain.Errorf(domain.InvalidArgument, "%s lies in %s; a directory cannot be moved into itself", m.to, m.from)
	case !dst.found:
		return nil
	case dst.info.id == src.info.id:
		if m.recase = m.respelt(); m.recase {
			return nil
		}
		return domain.Errorf(domain.InvalidArgument, "%s and %s are two names of the same file; delete the one that is too many", m.from, m.to)
	case dst.info.mode.IsDir():
		inside := filepath.Join(m.to, filepath.Base(src.path))
		return domain.Errorf(domain.InvalidArgument, "%s is a directory; to move %s into it, give %s as the destination", m.to, m.from, inside)
	case !overwrite:
		return domain.Errorf(domain.InvalidArgument, "%s exists already; set overwrite to replace it, or choose another name", m.to)
	case src.info.mode.IsDir():
		return domain.Errorf(domain.InvalidArgument, "%s is %s, which a directory cannot replace; delete it first", m.to, kindOf(dst.info.mode))
	}
	m.replaces = true
	return nil
}

// respelt reports whether the destination is the source's own entry, found
// under a spelling that the file system takes for the same. Two entries of one
// directory with one file are hard links instead.
func (m *movement) respelt() bool {
	a, aerr := m.src.dir.stat()
	b, berr := m.dst.dir.stat()
	if aerr != nil || berr != nil || a.id != b.id {
		return false
	}
	f, err := m.src.dir.readable()
	if err != nil {
		return false
	}
	defer func() { _ = f.Close() }()
	names, err := f.Readdirnames(-1)
	return err == nil && !slices.Contains(names, m.dst.name)
}

// workOut looks at what is moved and what is replaced, and fills in the plan.
func (m *movement) workOut(ctx context.Context) error {
	var err error
	if m.src.info.mode.IsDir() {
		m.survey, err = m.sp.survey(ctx, m.src, func(names []string) protection {
			return max(m.src.protectionBelow(names), m.dst.protectionBelow(names))
		})
		if err != nil {
			return err
		}
		guardedBy(&m.plan.Access, m.survey, m.sp.pol.Level)
	} else if m.file, err = m.sp.inspect(ctx, m.src); err != nil {
		return err
	}
	if m.replaces {
		if m.old, err = m.sp.inspect(ctx, m.dst); err != nil {
			return err
		}
		if m.old.whole && m.w.seen.outdated(m.dst.path, stampOf(m.old.raw)) {
			return domain.Errorf(domain.InvalidArgument, "%s was changed by someone else since you last read or wrote it; read it again before you replace it", m.to)
		}
	}
	for _, t := range []*target{m.src, m.dst} {
		if t.ban != "" {
			m.plan.Access.Forbidden = forbiddenWords(t.show, t.ban)
			return nil
		}
	}
	m.plan.Content = m.preview()
	return nil
}

// preview shows the move: a diff where a text is replaced, else words.
func (m *movement) preview() []domain.CallContent {
	what := m.file.describe(m.src)
	if m.survey != nil {
		what = "directory with " + m.survey.words()
	}
	words := fmt.Sprintf("Moves %s to %s (%s).", printable(m.from), printable(m.to), what)
	if m.file.link != "" && !filepath.IsAbs(m.file.link) && filepath.Dir(m.src.path) != filepath.Dir(m.dst.path) {
		words += " The link is relative: it will lead somewhere else from there."
	}
	if !m.replaces {
		return shownText(words)
	}
	list := shownText(words + " What " + printable(m.to) + " holds now (" + m.old.describe(m.dst) + ") is lost.")
	before, was := m.old.text()
	after, is := m.file.text()
	if was && is && len(before)+len(after) <= maxDiff && string(before) != string(after) {
		list = append(list, domain.Diff{Path: m.dst.show, OldText: shown(before), NewText: shown(after)})
	}
	return list
}

// Plan shows the move.
func (m *movement) Plan() domain.ToolPlan { return m.plan }

// Close gives up both directories.
func (m *movement) Close() error {
	for _, t := range []*target{m.src, m.dst} {
		if t != nil {
			t.close()
		}
	}
	m.sp.drop()
	return nil
}

// Run moves exactly what was shown.
func (m *movement) Run(ctx context.Context, _ func(domain.ToolProgress)) (domain.ToolResult, error) {
	if m.ran.Swap(true) {
		return domain.ToolResult{}, errRanTwice
	}
	if ctx.Err() != nil {
		return domain.ToolResult{}, context.Cause(ctx)
	}
	for _, t := range []*target{m.src, m.dst} {
		if why := m.sp.changeable(t); why != "" {
			return failed(why), nil
		}
	}
	if m.plan.Access.Forbidden != "" {
		return failed(m.plan.Access.Forbidden), nil
	}
	if err := m.unchanged(ctx); err != nil {
		return failedWith(ctx, m.from, err)
	}
	confirmed, err := m.perform()
	switch {
	case otherDevice(err):
		return failed(fmt.Sprintf("%s and %s lie on different file systems, where a name cannot just move; nothing was changed. "+
			"Write the new file and delete the old one, or copy it with a command", m.from, m.to)), nil
	case errors.Is(err, iofs.ErrExist):
		return failed(m.to + " was put there by someone else just now; nothing was moved"), nil
	case err != nil:
		return failedWith(ctx, m.from, err)
	}
	m.w.seen.moved(m.src.path, m.dst.path)
	text := fmt.Sprintf("Moved %s to %s", m.from, m.to)
	if m.replaces {
		text += ", replacing what was there"
	}
	text += "."
	if confirmed != nil {
		text += " The disk did not confirm that it is stored for good: " + reason(confirmed)
	}
	return domain.ToolResult{
		Text: text, Content: m.plan.Content, Locations: []domain.Location{{Path: m.dst.show}},
	}, nil
}

// unchanged fails unless both ends are what they were when the move was shown.
func (m *movement) unchanged(ctx context.Context) error {
	if m.replaces {
		if err := m.old.still(m.dst); err != nil {
			return domain.Errorf(domain.Conflict, "nothing was moved, because of %s: %s", m.to, messageOf(err))
		}
	}
	if m.survey == nil {
		return m.file.still(m.src)
	}
	now, err := m.sp.survey(ctx, m.src, func([]string) protection { return ordinary })
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(err, errMoved), err == nil && !m.survey.top.unchanged(now.top, false):
		return domain.Errorf(domain.Conflict, "what is in it was changed by someone else just now, so nothing was moved; look at it again")
	}
	return err
}

// perform gives the source its new name. confirmed is what became of making
// that durable.
func (m *movement) perform() (confirmed, err error) {
	if m.recase {
		if err := m.src.dir.renameTo(m.src.name, m.src.dir, m.dst.name); err != nil {
			return nil, err
		}
		return m.src.dir.sync(), nil
	}
	p, err := placeFor(m.dst)
	if err != nil {
		return nil, err
	}
	if m.replaces {
		err = m.src.dir.renameTo(m.src.name, p.dir, p.name)
	} else {
		err = m.src.dir.settle(m.src.name, p.dir, p.name)
	}
	if err != nil {
		p.undo()
		return nil, err
	}
	confirmed = errors.Join(p.sync(), m.src.dir.sync())
	p.close()
	return confirmed, nil
}

// renamed is what a path is called after one above it, or itself, was moved.
func renamed(path, from, to string) (string, bool) {
	rest, in := below(from, path)
	if !in {
		return "", false
	}
	if rest == "" {
		return to, true
	}
	return join(to, strings.Split(rest, string(filepath.Separator))...), true
}
