package fs

import (
	"context"
	"fmt"
	iofs "io/fs"
	"strings"
	"sync/atomic"

	"github.com/berth-dev/berth/core/domain"
	"github.com/berth-dev/berth/core/ports"
)

const (
	maxSwept        = 4 << 20  // bytes of a file in a directory that is searched
	maxSearchedFile = 64 << 20 // and of one that is named
	maxCounted      = 10_000   // matches that are counted, though not shown
	searchLimit     = 100      // matches one answer shows unless asked for
	maxSearchLimit  = 1000     // and at most
	maxSearchText   = 64 << 10 // bytes of lines one answer shows
	maxContext      = 20       // lines around a match
	maxLocations    = 20       // places told to the client
)

// output is what a search tells of its matches.
type output int

const (
	outputContent output = iota
	outputFiles
	outputCount
)

// searchTool is search.
type searchTool struct{ w *workspace }

// Spec describes search.
func (t searchTool) Spec() domain.ToolSpec { return t.w.specs.search }

// Prepare compiles the pattern and opens the directory or file.
func (t searchTool) Prepare(ctx context.Context, call domain.ToolCall) (ports.Prepared, error) {
	a := parseArgs("search", call.Args, "pattern (string)", "path (string)", "glob (string)", "case_insensitive (boolean)", "context (number)",
		"multiline (boolean)", "literal (boolean)", "output (content, files or count)", "limit (number)", "hidden (boolean)", "ignored (boolean)")
	ask := asked{pattern: a.text(true, "", "pattern"), fold: a.flag("case_insensitive", "ignore_case"), multi: a.flag("multiline"), literal: a.flag("literal")}
	path, filter := a.text(false, ".", "path"), a.text(false, "", "glob", "include")
	p := &searching{around: min(a.size("context"), maxContext), options: a.options()}
	p.output = a.output()
	limit, most := searchLimit, maxSearchLimit
	if p.output != outputContent {
		limit, most = globLimit, maxGlobLimit
	}
	p.limit = min(a.count(limit, "limit", "head_limit"), most)
	if err := a.done(); err != nil {
		return nil, err
	}
	var err error
	if p.query, err = compile(ask); err != nil {
		return nil, prefixed("search", err)
	}
	if err := p.filter(filter); err != nil {
		return nil, prefixed("search", err)
	}
	if p.ground, err = t.w.lookUp(ctx, "search", path, true); err != nil {
		return nil, notPattern(err, path, "glob")
	}
	p.plan.Title = "Search " + printable(brief(ask.pattern)) + " in " + printable(p.show)
	return p, nil
}

// output takes the argument of that name.
func (a *arguments) output() output {
	switch words := a.text(false, "content", "output", "output_mode"); words {
	case "content":
		return outputContent
	case "files", "files_with_matches":
		return outputFiles
	case "count":
		return outputCount
	default:
		a.fail("%q must be content, files or count, not %s", "output", brief(words))
	}
	return outputContent
}

// size takes a whole number of at least 0, which is the default.
func (a *arguments) size(name string) int {
	if string(a.members[name]) == "0" || string(a.members[name]) == `"0"` {
		delete(a.members, name)
	}
	return a.count(0, name)
}

// searching is a prepared search, and the visitor of its sweep.
type searching struct {
	*ground
	query   *query
	globs   *globs // nil when every file is wanted
	without bool   // globs says which files are not wanted
	byName  bool   // globs is about names, not paths
	around  int
	output  output
	limit   int
	options options

	quiet   atomic.Bool // no more matches are going to be shown
	matches searchResult
}

// filter reads the argument glob: without a slash it is about names at any
// depth, and a leading ! turns it around.
func (p *searching) filter(pattern string) error {
	if pattern == "" {
		return nil
	}
	pattern, p.without = strings.CutPrefix(pattern, "!")
	pattern = strings.TrimPrefix(pattern, "./")
	p.byName = !strings.Contains(pattern, "/")
	var err error
	if p.globs, err = parseGlob(pattern); err == nil && !p.without {
		p.options.hidden = p.options.hidden || p.globs.dotted
	}
	return err
}

// Run searches.
func (p *searching) Run(ctx context.Context, _ func(domain.ToolProgress)) (domain.ToolResult, error) {
	refused, err := p.begin(ctx)
	if err != nil {
		return domain.ToolResult{}, err
	}
	if refused != nil {
		return *refused, nil
	}
	p.matches = searchResult{limit: p.limit, around: p.around, output: p.output, multi: p.query.multi}
	var s *sweep
	if p.dir == nil {
		s, err = p.one(ctx)
	} else {
		s, err = p.sweep(ctx, p.options, p)
	}
	if err != nil {
		return p.stopped(ctx, err)
	}
	return p.result(s), nil
}

func (p *searching) keep(path string, mode iofs.FileMode) bool {
	if mode.IsDir() || p.globs == nil {
		return !mode.IsDir()
	}
	if p.byName {
		path = path[strings.LastIndexByte(path, '/')+1:]
	}
	return p.globs.match(path) != p.without
}

func (p *searching) enter(path string) bool {
	return p.globs == nil || p.byName || p.without || p.globs.below(path)
}

// visit searches a run of files.
func (p *searching) visit(s *sweeper, d *dir, run []leaf) any {
	sc, ok := s.own.(*scan)
	if !ok {
		sc = &scan{query: p.query, ctx: s.ctx}
		s.own = sc
	}
	var list []fileHits
	for _, l := range run {
		if s.over() {
			break
		}
		switch {
		case l.mode&iofs.ModeSymlink != 0:
			s.passed.links++
			continue
		case !l.mode.IsRegular():
			s.passed.special++
			continue
		}
		text := s.textOf(d, l)
		if len(text) == 0 {
			continue
		}
		if h := p.look(sc, text); h.count > 0 {
			h.path = l.path
			list = append(list, h)
		}
	}
	if list == nil {
		return nil
	}
	return list
}

// look searches one text.
func (p *searching) look(sc *scan, text []byte) fileHits {
	if sc.multi {
		text = newDoc(text).text
	}
	h := collector{p: p, text: text, show: p.output == outputContent && !p.quiet.Load()}
	sc.each(text, h.tell)
	h.finish()
	return h.fileHits
}

// take puts the results of a run with those before.
func (p *searching) take(result any) bool {
	list, _ := result.([]fileHits)
	for i := range list {
		if p.matches.add(&list[i]) {
			return true
		}
	}
	p.quiet.Store(p.matches.enough())
	return false
}

// one searches the one file, or the client's buffer over it.
func (p *searching) one(ctx context.Context) (*sweep, error) {
	max := p.w.budget
	outer := ctx
	ctx, cancel := context.WithTimeoutCause(ctx, max.time, errTooLong)
	defer cancel()
	s := &sweep{ctx: ctx, max: max}
	raw, err := p.whole(ctx)
	if err != nil {
		return s, err
	}
	w := &sweeper{sweep: s}
	text, why := w.decode(raw)
	if why != "" {
		return s, domain.Errorf(domain.Denied, "%s", why)
	}
	s.tally.files = 1
	h := p.look(&scan{query: p.query, ctx: ctx}, text)
	if outer.Err() != nil {
		return s, context.Cause(outer)
	}
	if ctx.Err() != nil {
		s.limit = "time"
	}
	if h.count > 0 {
		p.matches.add(&h)
	}
	return s, nil
}

// whole reads the one file.
func (p *searching) whole(ctx context.Context) ([]byte, error) {
	if p.file != nil && p.target.info.size > maxWhole {
		if p.target.info.size > maxSearchedFile {
			return nil, domain.Errorf(domain.TooLarge, "it is %s long; at most %s of one file are searched. Search it with a shell command, or read parts of it with read_file",
				bytesWords(p.target.info.size), bytesWords(maxSearchedFile))
		}
		raw := make([]byte, p.target.info.size)
		n, err := p.file.ReadAt(raw, 0)
		if n == len(raw) {
			err = nil
		}
		return raw[:n], err
	}
	c, err := p.w.load(ctx, p.target, p.file)
	if err == nil && !c.exists {
		err = errNoFile
	}
	return c.raw, err
}

// result is what the search found, in words.
func (p *searching) result(s *sweep) domain.ToolResult {
	m := &p.matches
	head, body := p.words(s)
	r := domain.ToolResult{
		Text: head, Content: []domain.CallContent{domain.ContentBlock{Block: domain.Text{Text: preview(head, []byte(body))}}},
		RawOutput: fmt.Appendf(nil, `{"matches":%d,"files":%d,"complete":%t}`, m.total, m.files, s.limit == "" && !m.more()),
	}
	if body != "" {
		r.Text += "\n" + body
	}
	for i := range m.list[:min(len(m.list), maxLocations)] {
		f := &m.list[i]
		r.Locations = append(r.Locations, domain.Location{Path: p.full(f.path), Line: f.first})
	}
	return r
}
