package exec

import (
	"bytes"
	"fmt"
	"strings"
	"sync"
)

// output is what a command has written so far: both of its streams in the
// order they came in, cleaned. The two ends are in memory; as soon as
// something would be lost in between, all of it goes to a file.
type output struct {
	mu    sync.Mutex
	raw   int64 // bytes as the command wrote them
	clean cleaner
	keep  keep
	file  *outputFile // nil while memory holds everything
	files *outputDir
	name  string
	ended bool

	// changed has one token when something came since it was taken.
	changed chan struct{}
}

// newOutput makes an output that keeps limit bytes in memory; name is what
// its file will be called.
func newOutput(limit int, files *outputDir, name string) *output {
	o := &output{files: files, name: name, changed: make(chan struct{}, 1)}
	o.keep = keep{headMax: limit / 3, tailMax: limit - limit/3}
	o.clean.emit = o.add
	return o
}

// write takes the next bytes a command wrote.
func (o *output) write(p []byte) {
	o.mu.Lock()
	o.raw += int64(len(p))
	o.clean.write(p)
	o.mu.Unlock()
	o.signal()
}

func (o *output) signal() {
	select {
	case o.changed <- struct{}{}:
	default:
	}
}

// add takes clean text. Called with mu held.
func (o *output) add(p []byte) {
	if o.file == nil && o.files != nil && o.keep.total+int64(len(p)) > int64(o.keep.headMax+o.keep.tailMax) {
		o.file = o.files.create(o.name)
		o.file.write(o.keep.head)
		o.file.write(o.keep.tail)
	}
	if o.file != nil {
		o.file.write(p)
	}
	o.keep.add(p)
}

// end is called once, when nothing more can come.
func (o *output) end() {
	o.mu.Lock()
	o.ended = true
	o.clean.end()
	if o.file != nil {
		o.file.close()
	}
	o.mu.Unlock()
	o.signal()
}

// tail returns the end of the text for showing it live, at most n bytes.
func (o *output) tail(n int) string {
	o.mu.Lock()
	defer o.mu.Unlock()
	p := o.keep.tail
	switch {
	case !o.keep.whole():
		p = fromLine(p)
	case len(p) < n:
		p = append(bytes.Clone(o.keep.head), p...)
	}
	line := o.clean.line
	p = tailOf(p, max(0, n-len(line)))
	s := string(p) + string(tailOf(line, n))
	return s
}

// shown is text of an output for a reader, with the facts about it.
type shown struct {
	text      string
	raw       int64 // bytes the command wrote
	next      int64 // where text after this one begins
	truncated bool
	file      string // the file with all of it; "" when there is none
	fileCut   string // why the file is not complete; "" when it is
	dropped   int64  // bytes that were no text
}

// show returns all of the output in at most n bytes, and a line about what
// was left out.
func (o *output) show(n int) shown {
	o.mu.Lock()
	defer o.mu.Unlock()
	k := o.keep.ends(n)
	s := o.facts()
	var b strings.Builder
	b.Write(k.head)
	if k.omitted > 0 {
		s.truncated = true
		if len(k.head) > 0 && k.head[len(k.head)-1] != '\n' {
			b.WriteByte('\n')
		}
		fmt.Fprintf(&b, "[... %s left out here; %s ...]\n", bytesAndLines(k.omitted, k.lines), s.where())
		b.Write(k.tail)
	}
	b.Write(o.clean.line)
	s.text = b.String()
	return s
}

// since returns what came after an offset, at most n bytes of its end.
func (o *output) since(at int64, n int) shown {
	o.mu.Lock()
	defer o.mu.Unlock()
	p, from := o.keep.from(at)
	s := o.facts()
	if cut := tailOf(p, n); len(cut) < len(p) {
		from += int64(len(p) - len(cut))
		p = cut
	}
	lost := from - max(0, min(at, o.keep.total))
	var b strings.Builder
	if lost > 0 {
		s.truncated = true
		fmt.Fprintf(&b, "[... %s left out here; %s ...]\n", bytesWords(lost), s.where())
	}
	b.Write(p)
	b.Write(o.clean.line)
	s.text = b.String()
	return s
}

// facts are the numbers about the output. Called with mu held.
func (o *output) facts() shown {
	s := shown{raw: o.raw, next: o.keep.total, dropped: o.clean.dropped}
	if o.file != nil {
		s.file, s.fileCut = o.file.path, o.file.why
	}
	return s
}

// size returns how much text there is that is not going to change.
func (o *output) size() int64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.keep.total
}

// where says where the rest can be read.
func (s shown) where() string {
	switch {
	case s.file == "":
		return "it was not kept" + because(s.fileCut)
	case s.fileCut != "":
		return "the beginning of the output is in " + s.file + because(s.fileCut)
	}
	return "all of the output is in " + s.file
}

func because(why string) string {
	if why == "" {
		return ""
	}
	return " (" + why + ")"
}

func bytesAndLines(bytes, lines int64) string {
	if lines == 0 {
		return bytesWords(bytes)
	}
	if lines == 1 {
		return bytesWords(bytes) + " (1 line)"
	}
	return fmt.Sprintf("%s (%d lines)", bytesWords(bytes), lines)
}

func bytesWords(n int64) string {
	if n == 1 {
		return "1 byte"
	}
	return fmt.Sprintf("%d bytes", n)
}
