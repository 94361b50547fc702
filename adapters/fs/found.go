package fs

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"github.com/berth-dev/berth/core/domain"
)

// ground is what a prepared glob or search holds: the directory it begins at,
// or for search the one file.
type ground struct {
	w      *workspace
	sp     *space
	target *target
	dir    *dir     // nil when policy blocks it, or for a file
	file   *os.File // the one file; nil too when only the client may have it
	show   string
	plan   domain.ToolPlan
	ran    atomic.Bool
}

// Plan tells what will be looked through.
func (g *ground) Plan() domain.ToolPlan { return g.plan }

// Close closes the directory or file.
func (g *ground) Close() error {
	g.target.close()
	g.sp.drop()
	switch {
	case g.dir != nil:
		return g.dir.close()
	case g.file != nil:
		return g.file.Close()
	}
	return nil
}

// begin is the start of every run: it tells whether anything is left to do.
func (g *ground) begin(ctx context.Context) (refused *domain.ToolResult, err error) {
	if g.ran.Swap(true) {
		return nil, errRanTwice
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if why := g.target.refusal(); why != "" {
		r := failed(why)
		return &r, nil
	}
	return nil, nil
}

// options are the arguments that say which names are looked at.
type options struct {
	hidden  bool // names that begin with a dot too
	ignored bool // names that ignore files leave out too
}

func (a *arguments) options() options {
	return options{hidden: a.flag("hidden"), ignored: a.flag("ignored", "no_ignore")}
}

// sweep goes through everything below the directory.
func (g *ground) sweep(ctx context.Context, o options, v visitor) (*sweep, error) {
	s := &sweep{ctx: ctx, guard: g.sp.guard, visitor: v, hidden: o.hidden, max: g.w.budget}
	from := sweepStart{dir: g.dir, path: g.target.path}
	if g.target.root != nil {
		from.names = g.target.names
	}
	if !o.ignored {
		from.rules = s.rulesAbove(g.target)
	}
	return s, s.run(from)
}

// rulesAbove reads the ignore files between the session's root and the
// directory that holds the start. Those above the root are not ours to read.
func (s *sweep) rulesAbove(t *target) *ignores {
	rules := &ignores{}
	if t.root == nil || t.root.h == nil || len(t.names) == 0 {
		return rules
	}
	d, err := t.root.h.dir.again()
	if err != nil {
		return rules
	}
	w := &sweeper{sweep: s}
	p := &spot{above: ""}
	for _, name := range t.names {
		p.dir, p.rules = d, rules
		var names []dirent
		for _, file := range []string{".git", ".gitignore", ".ignore"} {
			if i, err := d.lstat(file); err == nil {
				names = append(names, dirent{file, i.mode.Type()})
			}
		}
		rules = w.rulesIn(p, names, &s.tally)
		sub, err := d.sub(name)
		_ = d.close()
		if err != nil {
			return rules // it is not there any more; what was opened still is
		}
		d, p.above = sub, p.above+name+"/"
	}
	_ = d.close()
	return rules
}

// prefix is what a path from the start is put behind to be shown: relative to
// the working directory where it lies in it.
func (g *ground) prefix() string {
	at := g.show
	switch {
	case at == ".":
		return ""
	case strings.HasSuffix(at, string(filepath.Separator)):
		return at
	}
	return at + string(filepath.Separator)
}

// shown is a path of the sweep as the model sees it, full as the client does.
func (g *ground) shown(path string) string {
	if path == "" {
		return g.show
	}
	return g.prefix() + filepath.FromSlash(path)
}

func (g *ground) full(path string) string {
	names, _ := components(path)
	return join(g.target.show, names...)
}

// where says what was looked through.
func (g *ground) where() string {
	if g.show == "." {
		return "the working directory"
	}
	return printable(g.show)
}

// unfinished says why a sweep did not see everything; "" when it did.
func (s *sweep) unfinished() string {
	switch s.limit {
	case "time":
		return "stopped after " + seconds(s.max.time)
	case "entries":
		return fmt.Sprintf("stopped after %d names", s.max.entries)
	case "bytes":
		return "stopped after reading " + bytesWords(s.max.bytes)
	}
	return ""
}

func seconds(d time.Duration) string {
	if d < time.Second {
		return d.String()
	}
	return plural(int(d/time.Second), "second")
}

// hint says what was not looked at and how to have it looked at; "" when
// nothing was left out.
func (t *tally) hint() string {
	switch {
	case t.hidden > 0 && t.ignored > 0:
		return fmt.Sprintf("%s and %s were left out; set hidden or ignored to true to include them", plural(t.hidden, "hidden name"), plural(t.ignored, "ignored one"))
	case t.hidden > 0:
		return plural(t.hidden, "hidden name") + " left out; set hidden to true to include them"
	case t.ignored > 0:
		return plural(t.ignored, "ignored name") + " left out; set ignored to true to include them"
	}
	return ""
}

// notPattern adds to the error about a path that looks like a pattern where
// patterns go.
func notPattern(err error, path, argument string) error {
	var e *domain.Error
	if !errors.As(err, &e) || e.Code != domain.NotFound || !strings.ContainsAny(path, "*?[{") {
		return err
	}
	return domain.WrapError(e.Code, e.Err, e.Msg+"; path is taken as it is, a pattern of names goes into "+argument)
}

// lookUp resolves where to begin, and opens it: a directory, or with files set
// a file too.
func (w *workspace) lookUp(ctx context.Context, tool, path string, files bool) (*ground, error) {
	sp, err := w.use()
	if err != nil {
		return nil, err
	}
	g := &ground{w: w, sp: sp}
	g.target, err = sp.retry(ctx, path, func() (*target, error) {
		t, err := sp.walk(path)
		switch {
		case err != nil || t.blocked():
			return t, err
		case files && !t.found && w.editor(t) != nil && len(t.missing) == 0:
			return t, nil // it may be a new file in the client's editor
		case files && t.found && t.name != "" && !t.info.mode.IsDir():
			if g.file, err = sp.open(ctx, t); err != nil {
				t.close()
			}
			return t, err
		}
		g.dir, err = openListed(sp, t)
		return t, err
	})
	if err != nil {
		sp.drop()
		return nil, err
	}
	g.show = sp.display(g.target)
	g.plan = domain.ToolPlan{
		Kind: domain.KindSearch, Locations: []domain.Location{{Path: g.target.show}},
		Access: g.target.access(tool, domain.AccessRead, sp.pol.Level),
	}
	return g, nil
}

// stopped turns what ended a sweep into a result.
func (g *ground) stopped(ctx context.Context, err error) (domain.ToolResult, error) {
	if errors.Is(err, errTooLong) {
		return failed(g.show + ": the time was over before anything was read"), nil
	}
	return failedWith(ctx, g.show, err)
}
