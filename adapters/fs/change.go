package fs

import (
	"bytes"
	"context"
	"errors"
	iofs "io/fs"
	"os"
	"sync/atomic"

	"github.com/berth-dev/berth/core/domain"
	"github.com/berth-dev/berth/core/ports"
)

// errOutdated: the file is not what the model knows of it.
var errOutdated = domain.Errorf(domain.InvalidArgument,
	"the file was changed by someone else since you last read or wrote it; read it again, then repeat the change if it still makes sense")

// made is what a tool wants a file to become.
type made struct {
	raw  []byte // the complete new content
	text string // what the model reads when it is done
}

// maker works out the new content of a file from the present one. show names
// the file in messages.
type maker func(c content, show string) (made, error)

// change is a prepared write_file or edit_file: a file's present content, its
// new one, and the open directory it lies in. Run puts the one in the place of
// the other, or does nothing.
type change struct {
	w      *workspace
	target *target
	show   string
	before content
	made   made
	plan   domain.ToolPlan
	ran    atomic.Bool
}

// prepare resolves the path, reads what is there, and works out the change.
func (w *workspace) prepare(ctx context.Context, tool, path string, make maker) (ports.Prepared, error) {
	sp, err := w.use()
	if err != nil {
		return nil, err
	}
	defer sp.drop()
	t, file, err := sp.openFile(ctx, path)
	if err != nil {
		return nil, err
	}
	if file != nil {
		defer func() { _ = file.Close() }()
	}
	c := &change{w: w, target: t, show: sp.display(t)}
	c.plan = domain.ToolPlan{
		Title: "Edit " + printable(c.show), Kind: domain.KindEdit,
		Locations: []domain.Location{{Path: t.show}},
		Access:    t.access(tool, domain.AccessEdit, sp.pol.Level),
	}
	if t.refusal() != "" {
		return c, nil
	}
	if err := c.workOut(ctx, file, make); err != nil {
		t.close()
		return nil, prefixed(c.show, err)
	}
	return c, nil
}

// workOut fills in the contents and what the plan says about them.
func (c *change) workOut(ctx context.Context, file *os.File, make maker) error {
	var err error
	if c.before, err = c.w.load(ctx, c.target, file); err != nil {
		return err
	}
	if c.before.exists && c.w.seen.outdated(c.target.path, stampOf(c.before.raw)) {
		return errOutdated
	}
	if c.made, err = make(c.before, c.show); err != nil {
		return err
	}
	if len(c.made.raw) > maxWhole {
		return errLarge(int64(len(c.made.raw)))
	}
	if c.idle() {
		c.plan.Access.Class = domain.AccessRead // nothing will be written
		return nil
	}
	if c.before.exists && !c.before.editor && (c.target.info.mode&0o222 == 0 || !c.target.dir.mayWrite(c.target.name)) {
		return domain.Errorf(domain.Denied, "the file is write-protected (mode %04o)", c.target.info.mode.Perm())
	}
	before, after := newDoc(c.before.raw).text, newDoc(c.made.raw).text
	c.plan.Content = diffOf(c.target.show, before, after, !c.before.exists)
	c.plan.Locations[0].Line = firstChange(before, after)
	if !c.before.exists {
		c.plan.Title = "Create " + printable(c.show)
	}
	return nil
}

// idle reports whether the file already is what it should become.
func (c *change) idle() bool { return c.before.exists && bytes.Equal(c.before.raw, c.made.raw) }

// Plan shows the change.
func (c *change) Plan() domain.ToolPlan { return c.plan }

// Close gives up the directory.
func (c *change) Close() error {
	c.target.close()
	return nil
}

// Run makes the change, if the file still is what it was when the change was
// worked out.
func (c *change) Run(ctx context.Context, _ func(domain.ToolProgress)) (domain.ToolResult, error) {
	if c.ran.Swap(true) {
		return domain.ToolResult{}, errRanTwice
	}
	if ctx.Err() != nil {
		return domain.ToolResult{}, context.Cause(ctx)
	}
	if why := c.target.refusal(); why != "" {
		return failed(why), nil
	}
	if err := c.perform(ctx); err != nil {
		return failedWith(ctx, c.show, err)
	}
	c.w.seen.note(c.target.path, stampOf(c.made.raw))
	return domain.ToolResult{Text: c.made.text, Content: c.plan.Content, Locations: c.plan.Locations}, nil
}

// perform checks once more and writes.
func (c *change) perform(ctx context.Context) error {
	now, file, was, err := c.again(ctx)
	if err != nil {
		return err
	}
	if file != nil {
		defer func() { _ = file.Close() }()
	}
	if now.exists != c.before.exists || now.editor != c.before.editor || !bytes.Equal(now.raw, c.before.raw) {
		return errChanged
	}
	if c.idle() {
		return nil
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	p, err := placeFor(c.target)
	if err != nil {
		return err
	}
	if c.before.editor {
		done, err := c.hand(ctx)
		if err != nil {
			p.undo()
			return err
		}
		if done {
			p.close()
			return nil
		}
	}
	if err := p.put(c.made.raw, file, was); err != nil {
		p.undo()
		return err
	}
	if file != nil && was.links > 1 {
		c.made.text += " It had other names (hard links); under those the file is what it was."
	}
	err = p.sync()
	p.close()
	if err != nil {
		c.made.text += " The disk did not confirm that it is stored for good: " + reason(err)
	}
	return nil
}

// again looks at the file anew, in the directory that is open since the call
// was prepared. The file is returned open.
func (c *change) again(ctx context.Context) (now content, file *os.File, was info, err error) {
	t := *c.target
	if len(t.missing) == 0 {
		file, was, err = t.dir.open(t.name)
		switch {
		case errors.Is(err, iofs.ErrNotExist):
			file, err = nil, nil
		case errors.Is(err, errMoved):
			err = errChanged
		case err == nil && !was.mode.IsRegular():
			err = errChanged
		}
		if err == nil && file != nil && c.target.found && was.id != c.target.info.id && !c.before.editor {
			// Another file took its place. With the same content it would be
			// ours to replace, but it may be one that is forbidden.
			err = errChanged
		}
	}
	if err == nil {
		t.info = was
		now, err = c.w.load(ctx, &t, file)
	}
	if err != nil && file != nil {
		_ = file.Close()
		file = nil
	}
	return now, file, was, err
}

// hand gives the new content to the client. done is false when the client
// cannot take it, which leaves it to the disk; a refusal is an error.
func (c *change) hand(ctx context.Context) (done bool, err error) {
	files := c.w.editor(c.target)
	if files == nil {
		return false, errChanged // the client went away between two looks
	}
	err = files.WriteText(ctx, c.w.session.ID, c.target.show, string(c.made.raw))
	switch {
	case err == nil:
		return true, nil
	case ctx.Err() != nil:
		return false, context.Cause(ctx)
	case domain.HasCode(err, domain.Unsupported), domain.HasCode(err, domain.NotFound), domain.HasCode(err, domain.TooLarge):
		return false, nil
	}
	return false, clientSays(err)
}
