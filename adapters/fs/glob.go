package fs

import (
	"context"
	"fmt"
	iofs "io/fs"
	"path/filepath"
	"strings"

	"github.com/berth-dev/berth/core/domain"
	"github.com/berth-dev/berth/core/ports"
)

const (
	globLimit    = 500  // paths one answer shows unless asked for
	maxGlobLimit = 5000 // and at most
)

// globTool is glob.
type globTool struct{ w *workspace }

// Spec describes glob.
func (t globTool) Spec() domain.ToolSpec { return t.w.specs.glob }

// Prepare reads the pattern and opens the directory it begins at.
func (t globTool) Prepare(ctx context.Context, call domain.ToolCall) (ports.Prepared, error) {
	a := parseArgs("glob", call.Args, "pattern (string)", "path (string)", "hidden (boolean)", "ignored (boolean)", "limit (number)")
	pattern := a.text(true, "", "pattern")
	path := a.text(false, ".", "path")
	o := a.options()
	limit := min(a.count(globLimit, "limit", "head_limit"), maxGlobLimit)
	if err := a.done(); err != nil {
		return nil, err
	}
	if path == "" {
		return nil, checkSyntax(path)
	}
	base, rest := splitPattern(pattern)
	switch {
	case base == "":
	case filepath.IsAbs(base), base[0] == '~', path == ".":
		path = base
	default:
		path = strings.TrimSuffix(path, "/") + "/" + base
	}
	g, err := parseGlob(rest)
	if err != nil {
		return nil, prefixed("glob", err)
	}
	o.hidden = o.hidden || g.dotted
	at, err := t.w.lookUp(ctx, "glob", path, false)
	if err != nil {
		return nil, notPattern(err, path, "pattern")
	}
	at.plan.Title = "Find " + printable(brief(rest)) + " in " + printable(at.show)
	return &globbing{ground: at, globs: g, pattern: rest, options: o, limit: limit}, nil
}

// globbing is a prepared glob, and the visitor of its sweep.
type globbing struct {
	*ground
	globs   *globs
	pattern string
	options options
	limit   int

	// The rest is the result, taken in order.
	list  []globFound
	total int
	dirs  int // directories that matched although none were asked for
}

type globFound struct {
	path string
	link string
	note string
	dir  bool
}

// Run looks for the names.
func (g *globbing) Run(ctx context.Context, _ func(domain.ToolProgress)) (domain.ToolResult, error) {
	refused, err := g.begin(ctx)
	if err != nil {
		return domain.ToolResult{}, err
	}
	if refused != nil {
		return *refused, nil
	}
	s, err := g.sweep(ctx, g.options, g)
	if err != nil {
		return g.stopped(ctx, err)
	}
	head, body := g.words(s)
	r := domain.ToolResult{
		Text: head, Content: []domain.CallContent{domain.ContentBlock{Block: domain.Text{Text: preview(head, []byte(body))}}},
		RawOutput: fmt.Appendf(nil, `{"paths":%d,"complete":%t}`, g.total, s.limit == "" && g.total <= g.limit),
	}
	if body != "" {
		r.Text += "\n" + body
	}
	for _, f := range g.list[:min(len(g.list), maxLocations)] {
		r.Locations = append(r.Locations, domain.Location{Path: g.full(f.path)})
	}
	return r, nil
}

func (g *globbing) keep(path string, _ iofs.FileMode) bool { return g.globs.match(path) }

func (g *globbing) enter(path string) bool { return g.globs.below(path) }

func (g *globbing) visit(_ *sweeper, d *dir, run []leaf) any {
	list := make([]globFound, 0, len(run))
	for _, l := range run {
		f := globFound{path: l.path, dir: l.mode.IsDir()}
		switch {
		case f.dir:
		case l.mode&iofs.ModeSymlink != 0:
			f.link, _ = d.readlink(l.name())
		case !l.mode.IsRegular():
			f.note = kindOf(l.mode)
		}
		list = append(list, f)
	}
	return list
}

func (g *globbing) take(result any) bool {
	list, _ := result.([]globFound)
	for _, f := range list {
		if f.dir != g.globs.dirsOnly {
			if f.dir {
				g.dirs++
			}
			continue
		}
		if g.total++; g.total <= g.limit {
			g.list = append(g.list, f)
		}
	}
	return false
}

// words are the result as text: what was found in a few words, and the paths.
func (g *globbing) words(s *sweep) (head, body string) {
	one, several := "file", "files"
	if g.globs.dirsOnly {
		one, several = "directory", "directories"
	}
	pattern := printable(brief(g.pattern))
	var h strings.Builder
	switch g.total {
	case 0:
		fmt.Fprintf(&h, "[no %s matches %s in %s", one, pattern, g.where())
	case 1:
		fmt.Fprintf(&h, "[1 %s matches %s in %s", one, pattern, g.where())
	default:
		fmt.Fprintf(&h, "[%d %s match %s in %s", g.total, several, pattern, g.where())
	}
	if g.total > g.limit {
		h.WriteString("; " + firstShown(g.limit, ""))
	}
	if why := s.unfinished(); why != "" {
		h.WriteString("; " + why + ", so there may be more: name a directory further down")
	}
	if g.total == 0 {
		switch {
		case g.dirs > 0:
			h.WriteString("; directories do: end the pattern with / to see them")
		case !strings.Contains(g.pattern, "/") && !strings.HasPrefix(g.pattern, "**"):
			fmt.Fprintf(&h, "; **/%s looks in the directories below too", pattern)
		}
		if hint := s.tally.hint(); hint != "" {
			h.WriteString("; " + hint)
		}
	}
	h.WriteByte(']')
	var b strings.Builder
	for _, f := range g.list {
		b.WriteString(printable(g.shown(f.path)))
		switch {
		case f.dir:
			b.WriteByte(filepath.Separator)
		case f.link != "":
			b.WriteString(" -> " + printable(f.link))
		case f.note != "":
			b.WriteString("  (" + f.note + ")")
		}
		b.WriteByte('\n')
	}
	if passed := s.tally.words(g.prefix()); passed != "" {
		b.WriteString("[not looked at: " + passed + "]\n")
	}
	return h.String(), b.String()
}
