package fs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"unicode/utf8"

	"github.com/berth-dev/berth/core/domain"
	"github.com/berth-dev/berth/core/ports"
)

// Limits on one answer of read_file.
const (
	maxReadLines = 2000
	maxReadBytes = 256 << 10
	maxLineBytes = 4 << 10 // of one line; the rest of it is left out
	maxPreview   = 8 << 10 // of what the client is shown
)

// readTool is read_file.
type readTool struct{ w *workspace }

// Spec describes read_file.
func (t readTool) Spec() domain.ToolSpec { return t.w.specs.read }

// window is the part of a file that is asked for.
type window struct{ offset, limit int }

// Prepare opens the file.
func (t readTool) Prepare(ctx context.Context, call domain.ToolCall) (ports.Prepared, error) {
	a := parseArgs("read_file", call.Args, "path (string)", "offset (first line, from 1)", "limit (number of lines)")
	path := a.text(true, "", "path")
	win := window{a.count(1, "offset", "line"), a.count(maxReadLines, "limit")}
	if err := a.done(); err != nil {
		return nil, err
	}
	sp, err := t.w.use()
	if err != nil {
		return nil, err
	}
	defer sp.drop()
	tg, file, err := sp.openFile(ctx, path)
	if err != nil {
		return nil, err
	}
	if !tg.blocked() && tg.ban == "" && !tg.found && t.w.editor(tg) == nil {
		defer tg.close()
		return nil, missing(sp, tg)
	}
	p := &reading{w: t.w, target: tg, file: file, win: win, show: sp.display(tg)}
	p.plan = domain.ToolPlan{
		Title: "Read " + printable(p.show), Kind: domain.KindRead,
		Locations: []domain.Location{{Path: tg.show}},
		Access:    tg.access("read_file", domain.AccessRead, sp.pol.Level),
	}
	if win.offset > 1 {
		p.plan.Title += fmt.Sprintf(" from line %d", win.offset)
		p.plan.Locations[0].Line = win.offset
	}
	return p, nil
}

// reading is a prepared read_file.
type reading struct {
	w      *workspace
	target *target
	file   *os.File // nil when policy blocks the file or only the client may have it
	win    window
	show   string
	plan   domain.ToolPlan
	ran    atomic.Bool
}

// Plan tells what will be read.
func (p *reading) Plan() domain.ToolPlan { return p.plan }

// Close closes the file.
func (p *reading) Close() error {
	p.target.close()
	if p.file != nil {
		return p.file.Close()
	}
	return nil
}

// Run reads the file, or the client's buffer over it.
func (p *reading) Run(ctx context.Context, _ func(domain.ToolProgress)) (domain.ToolResult, error) {
	if p.ran.Swap(true) {
		return domain.ToolResult{}, errRanTwice
	}
	if ctx.Err() != nil {
		return domain.ToolResult{}, context.Cause(ctx)
	}
	if why := p.target.refusal(); why != "" {
		return failed(why), nil
	}
	r, err := p.read(ctx)
	if err != nil {
		return failedWith(ctx, p.show, err)
	}
	return r, nil
}

// read reads what was asked for.
func (p *reading) read(ctx context.Context) (domain.ToolResult, error) {
	if p.file != nil && p.target.info.size > maxWhole {
		return p.part(ctx)
	}
	c, err := p.w.load(ctx, p.target, p.file)
	if domain.HasCode(err, domain.TooLarge) && p.file != nil {
		return p.part(ctx) // it has grown since it was opened
	}
	if err != nil {
		return domain.ToolResult{}, err
	}
	if !c.exists {
		return domain.ToolResult{}, errNoFile
	}
	if why := notText(c.raw, false); why != "" {
		if pic, ok := pictureOf(c.raw); ok {
			p.w.seen.note(p.target.path, stampOf(c.raw))
			return p.shows(c.raw, pic), nil
		}
		return domain.ToolResult{}, errNotText(why)
	}
	p.w.seen.note(p.target.path, stampOf(c.raw))
	page, err := pageOf(newDoc(c.raw).text, p.win)
	return page.result(p.show), err
}

// part reads from a file too large to be held.
func (p *reading) part(ctx context.Context) (domain.ToolResult, error) {
	page, err := readPart(ctx, p.file, p.win)
	return page.result(p.show), err
}

func errNotText(why string) error {
	return domain.Errorf(domain.Denied, "%s; this tool works on UTF-8 text only", why)
}

// page is a run of lines of a file.
type page struct {
	text  []byte // the lines, long ones shortened
	first int    // number of the first line; 0 when the file is empty
	last  int
	total int   // lines of the whole file; 0 when unknown
	size  int64 // bytes of the whole file, when total is unknown
	more  bool  // lines follow
	cut   int   // lines that were shortened
	noEnd bool  // the file's last line is here and has no line end
}

// pageOf takes the window out of a whole text.
func pageOf(text []byte, win window) (page, error) {
	p := page{total: lineCount(text)}
	if p.total == 0 {
		return p, nil
	}
	if win.offset > p.total {
		return p, domain.Errorf(domain.InvalidArgument, "it has %s; there is no line %d", plural(p.total, "line"), win.offset)
	}
	rest := text
	for range win.offset - 1 {
		rest = rest[bytes.IndexByte(rest, '\n')+1:]
	}
	p.first = win.offset
	for p.last = win.offset - 1; len(rest) > 0 && p.last-p.first+1 < min(win.limit, maxReadLines); {
		line, ended := rest, false
		if i := bytes.IndexByte(rest, '\n'); i >= 0 {
			line, ended = rest[:i], true
		}
		if !p.add(line, ended) {
			break
		}
		rest = rest[min(len(line)+1, len(rest)):]
	}
	p.more = len(rest) > 0
	return p, nil
}

// add appends one line; false when there is no room for it.
func (p *page) add(line []byte, ended bool) bool {
	omitted := 0
	if len(line) > maxLineBytes {
		cut := maxLineBytes
		for cut > 0 && !utf8.RuneStart(line[cut]) {
			cut--
		}
		omitted, line = len(line)-cut, line[:cut]
	}
	if len(p.text) > 0 && len(p.text)+len(line) > maxReadBytes {
		return false
	}
	p.text = append(p.text, line...)
	if omitted > 0 {
		p.text = fmt.Appendf(p.text, " … [%d more bytes of this line]", omitted)
		p.cut++
	}
	if ended {
		p.text = append(p.text, '\n')
	}
	p.noEnd = !ended
	p.last++
	return true
}

// header is the line in front of the text.
func (p page) header(show string) string {
	if p.first == 0 {
		return "[" + show + " is empty]"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "[%s: lines %d-%d", show, p.first, p.last)
	if p.total > 0 {
		fmt.Fprintf(&b, " of %d", p.total)
	} else {
		fmt.Fprintf(&b, " of a file of %s", bytesWords(p.size))
	}
	if p.more {
		fmt.Fprintf(&b, "; go on with offset %d", p.last+1)
	}
	if p.cut > 0 {
		fmt.Fprintf(&b, "; %s shortened", plural(p.cut, "long line"))
	}
	if p.noEnd && !p.more {
		b.WriteString("; the last line has no line end")
	}
	b.WriteByte(']')
	return b.String()
}

func (p page) result(show string) domain.ToolResult {
	head := p.header(printable(show))
	r := domain.ToolResult{Text: head, RawOutput: fmt.Appendf(nil, `{"firstLine":%d,"lastLine":%d,"totalLines":%d}`, p.first, p.last, p.total)}
	if p.first > 0 {
		r.Text += "\n" + string(p.text)
	}
	r.Content = []domain.CallContent{domain.ContentBlock{Block: domain.Text{Text: preview(head, p.text)}}}
	return r
}

// preview is what the client shows: the beginning of the text as a block of
// code. The whole stands in the file itself, one click away.
func preview(head string, text []byte) string {
	if len(text) == 0 {
		return head
	}
	note := ""
	if len(text) > maxPreview {
		cut := bytes.LastIndexByte(text[:maxPreview], '\n') + 1
		if cut == 0 {
			for cut = maxPreview; cut > 0 && !utf8.RuneStart(text[cut]); cut-- {
			}
		}
		text, note = text[:cut], "\n…"
	}
	return domain.Fenced("", string(text)) + note
}

var errRanTwice = errors.New("fs: a prepared call ran twice")

// failed is the result of a call that did not do what it was asked to.
func failed(text string) domain.ToolResult { return domain.ToolResult{Failed: true, Text: text} }

// failedWith turns what went wrong with a file into a result. Only the end of
// the context is passed on.
func failedWith(ctx context.Context, show string, err error) (domain.ToolResult, error) {
	if ctx.Err() != nil {
		return domain.ToolResult{}, context.Cause(ctx)
	}
	var e *domain.Error
	if errors.As(err, &e) {
		return failed(show + ": " + e.Msg), nil
	}
	return failed(show + ": " + reason(err)), nil
}

func plural(n int, one string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %ss", n, one)
}

// bytesWords is a size for people.
func bytesWords(n int64) string {
	const units = "KMGTPE"
	if n < 1<<10 {
		return plural(int(n), "byte")
	}
	v, u := float64(n), -1
	for v >= 1<<10 && u < len(units)-1 {
		v, u = v/(1<<10), u+1
	}
	return fmt.Sprintf("%.1f %ciB", v, units[u])
}
