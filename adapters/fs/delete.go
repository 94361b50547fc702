package fs

import (
	"context"
	"errors"
	"fmt"
	iofs "io/fs"
	"sync/atomic"

	"github.com/berth-dev/berth/core/domain"
	"github.com/berth-dev/berth/core/ports"
)

// deleteTool is delete_file.
type deleteTool struct{ w *workspace }

// Spec describes delete_file.
func (t deleteTool) Spec() domain.ToolSpec { return t.w.specs.remove }

// Prepare looks at what is going to be lost.
func (t deleteTool) Prepare(ctx context.Context, call domain.ToolCall) (ports.Prepared, error) {
	a := parseArgs("delete_file", call.Args, "path (string)", "recursive (boolean)")
	path := a.text(true, "", "path")
	recursive := a.flag("recursive")
	if err := a.done(); err != nil {
		return nil, err
	}
	sp, err := t.w.use()
	if err != nil {
		return nil, err
	}
	p, err := t.w.prepareDelete(ctx, sp, path, recursive)
	if err != nil {
		sp.drop()
		return nil, err
	}
	return p, nil
}

// deletion is a prepared delete_file.
type deletion struct {
	w      *workspace
	sp     *space
	target *target
	show   string
	file   inspected
	survey *survey // of a directory
	plan   domain.ToolPlan
	ran    atomic.Bool
}

func (w *workspace) prepareDelete(ctx context.Context, sp *space, path string, recursive bool) (*deletion, error) {
	t, err := sp.resolveName(ctx, path)
	if err != nil {
		return nil, err
	}
	d := &deletion{w: w, sp: sp, target: t, show: sp.display(t)}
	d.plan = domain.ToolPlan{
		Title: "Delete " + printable(d.show), Kind: domain.KindDelete, Locations: []domain.Location{{Path: t.show}},
		Access: t.access("delete_file", domain.AccessEdit, sp.pol.Level),
	}
	if why := sp.changeable(t); why != "" {
		if d.plan.Access.Forbidden == "" && !t.blocked() {
			d.plan.Access.Forbidden = why
		}
		return d, nil
	}
	if !t.found {
		defer t.close()
		return nil, missing(sp, t)
	}
	if err := d.workOut(ctx, recursive); err != nil {
		t.close()
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		return nil, prefixed(d.show, coded(d.show, err))
	}
	return d, nil
}

// coded gives an error of the system a code; errMoved becomes errChanged.
func coded(show string, err error) error {
	var e *domain.Error
	switch {
	case errors.As(err, &e):
		return err
	case errors.Is(err, errMoved):
		return domain.Errorf(domain.Denied, "it keeps changing while it is looked at; try again")
	}
	return systemError(show, err)
}

// workOut fills in what will be deleted and what the plan says about it.
func (d *deletion) workOut(ctx context.Context, recursive bool) error {
	t := d.target
	if t.info.mode.IsDir() {
		return d.workOutTree(ctx, recursive)
	}
	var err error
	if d.file, err = d.sp.inspect(ctx, t); err != nil {
		return err
	}
	if t.ban != "" {
		d.plan.Access.Forbidden = forbiddenWords(t.show, t.ban)
		return nil
	}
	if d.file.whole && d.w.seen.outdated(t.path, stampOf(d.file.raw)) {
		return errOutdated
	}
	if text, ok := d.file.text(); ok && len(text) > 0 {
		d.plan.Content = []domain.CallContent{domain.Diff{Path: t.show, OldText: shown(text)}}
		return nil
	}
	words := "Deletes " + printable(d.show) + " (" + d.file.describe(t) + ")."
	if t.info.mode&iofs.ModeSymlink != 0 {
		words += " What it points to stays."
	}
	d.plan.Content = shownText(words)
	return nil
}

// workOutTree does that for a directory.
func (d *deletion) workOutTree(ctx context.Context, recursive bool) error {
	t := d.target
	var err error
	if d.survey, err = d.sp.survey(ctx, t, t.protectionBelow); err != nil {
		return err
	}
	guardedBy(&d.plan.Access, d.survey, d.sp.pol.Level)
	n := d.survey.count()
	switch {
	case n == 0:
		d.plan.Content = shownText("Deletes the empty directory " + printable(d.show) + ".")
		return nil
	case !recursive:
		return domain.Errorf(domain.InvalidArgument, "it is a directory that holds %s; set recursive to delete it and everything in it", d.survey.words())
	}
	d.plan.Title += " and everything in it"
	// One answer must not stand for the loss of any other directory.
	d.plan.Access.Scope = ""
	d.plan.Access.Reason = "it deletes a directory with " + d.survey.words()
	d.plan.Content = shownText("Deletes the directory " + printable(d.show) + " with " + d.survey.words() + ":\n" + domain.Fenced("", d.survey.listed()))
	return nil
}

// protectionBelow judges a name below the target.
func (t *target) protectionBelow(names []string) protection {
	return t.protectionAs(append(t.names[:len(t.names):len(t.names)], names...))
}

// Plan shows what will be lost.
func (d *deletion) Plan() domain.ToolPlan { return d.plan }

// Close gives up the directory.
func (d *deletion) Close() error {
	d.target.close()
	d.sp.drop()
	return nil
}

// Run deletes exactly what was shown, or nothing if it is not the same any more.
func (d *deletion) Run(ctx context.Context, _ func(domain.ToolProgress)) (domain.ToolResult, error) {
	if d.ran.Swap(true) {
		return domain.ToolResult{}, errRanTwice
	}
	if ctx.Err() != nil {
		return domain.ToolResult{}, context.Cause(ctx)
	}
	if why := d.sp.changeable(d.target); why != "" {
		return failed(why), nil
	}
	if d.plan.Access.Forbidden != "" {
		return failed(d.plan.Access.Forbidden), nil
	}
	if d.survey != nil {
		return d.runTree(ctx)
	}
	err := d.file.still(d.target)
	if err == nil {
		err = d.target.dir.remove(d.target.name)
	}
	if err != nil {
		return failedWith(ctx, d.show, err)
	}
	d.w.seen.forget(d.target.path)
	text := "Deleted " + d.show + " (" + d.file.describe(d.target) + ")."
	return d.done(text, 1), nil
}

func (d *deletion) done(text string, n int) domain.ToolResult {
	if err := d.target.dir.sync(); err != nil {
		text += " The disk did not confirm that it is stored for good: " + reason(err)
	}
	return domain.ToolResult{
		Text: text, Content: d.plan.Content, Locations: d.plan.Locations, RawOutput: fmt.Appendf(nil, `{"deleted":%d}`, n),
	}
}

var errTreeChanged = domain.Errorf(domain.Conflict, "what is in it was changed by someone else just now, so nothing was deleted; look at it again")

// runTree deletes a directory.
func (d *deletion) runTree(ctx context.Context) (domain.ToolResult, error) {
	now, err := d.sp.survey(ctx, d.target, func([]string) protection { return ordinary })
	switch {
	case ctx.Err() != nil:
		return domain.ToolResult{}, context.Cause(ctx)
	case errors.Is(err, errMoved), err == nil && !d.survey.top.unchanged(now.top, true):
		return failedWith(ctx, d.show, errTreeChanged)
	case err != nil:
		return failedWith(ctx, d.show, err)
	}
	r := &remover{ctx: ctx}
	err = r.dir(d.target.dir, d.survey.top)
	d.w.seen.forget(d.target.path)
	all := d.survey.count() + 1
	if err != nil {
		why := reason(err)
		if ctx.Err() != nil {
			why = "it was cancelled"
		} else if e := messageOf(err); e != "" {
			why = e
		}
		res := failed(fmt.Sprintf("%s: %d of %d entries were deleted, then it stopped: %s. The rest is still there.", d.show, r.gone, all, why))
		res.RawOutput = fmt.Appendf(nil, `{"deleted":%d,"of":%d}`, r.gone, all)
		return res, nil
	}
	text := "Deleted the directory " + d.show + " with " + d.survey.words() + "."
	if d.survey.count() == 0 {
		text = "Deleted the empty directory " + d.show + "."
	}
	return d.done(text, r.gone), nil
}

// remover deletes what a survey found, and nothing else: an entry that came
// later is not among it, and keeps its directory from being removed.
type remover struct {
	ctx  context.Context //nolint:containedctx // remover is one running deletion
	gone int
}

// dir deletes a directory, what is in it first.
func (r *remover) dir(parent *dir, m *member) error {
	d, err := parent.sub(m.name)
	if err != nil {
		return changed(err)
	}
	defer func() { _ = d.close() }()
	if i, err := d.stat(); err != nil || i.id != m.info.id {
		return errChanged
	}
	for _, kid := range m.kids {
		if r.ctx.Err() != nil {
			return context.Cause(r.ctx)
		}
		if kid.info.mode.IsDir() {
			err = r.dir(d, kid)
		} else {
			err = r.file(d, kid)
		}
		if err != nil {
			return err
		}
	}
	if err := parent.rmdir(m.name); err != nil {
		return err
	}
	r.gone++
	return nil
}

// file deletes one entry that is no directory.
func (r *remover) file(d *dir, m *member) error {
	now, err := d.lstat(m.name)
	switch {
	case err != nil:
		return changed(err)
	case now.id != m.info.id || now.mode != m.info.mode || now.size != m.info.size || now.mtime != m.info.mtime:
		return errChanged
	}
	if err := d.remove(m.name); err != nil {
		return err
	}
	r.gone++
	return nil
}

// changed is errChanged for the errors that say an entry became another.
func changed(err error) error {
	if errors.Is(err, errIsLink) || errors.Is(err, errNotDir) || errors.Is(err, errMoved) || errors.Is(err, iofs.ErrNotExist) {
		return errChanged
	}
	return err
}
