package llm

import (
	"bytes"
	"errors"
	"io"
)

// MaxEvent is the longest line, and the longest data of one event, in bytes.
const MaxEvent = 32 << 20

// ErrTooLong is returned for an event beyond MaxEvent.
var ErrTooLong = errors.New("event too long")

// Event is one server-sent event. Its slices are valid until the next call.
type Event struct {
	Name []byte // the event field; empty when there was none
	Data []byte // the data fields, joined by LF
}

// Events reads server-sent events as the HTML standard defines them (lines
// ended by LF, CRLF or CR, one optional space after the colon, comments, data
// over several lines, a byte order mark), byte by byte the same however the
// network cut them. An event is given out with the line end that completes
// it: nothing waits for bytes that come later. It departs from the standard
// where model servers do:
//
//   - the last event counts without its blank line, and its last line without
//     a line end;
//   - a field named "error" is an event of that name (llama.cpp);
//   - a line that begins with "{" is data (proxies that put a bare error
//     object into a stream).
type Events struct {
	r     io.Reader
	alive func() // called before waiting again after a whole line was read
	max   int

	buf  []byte
	pos  int // start of what was not parsed
	scan int // up to here no line end was found
	end  int
	err  error // sticky, from r

	name    []byte
	data    []byte
	hasData bool
	skipLF  bool // the last line ended with CR: a LF that follows belongs to it
	begun   bool // the first line was read
	moved   bool // a line was read since alive was called
}

// NewEvents returns a reader of r. Alive, which may be nil, is called when a
// line has arrived since the last wait.
func NewEvents(r io.Reader, alive func()) *Events {
	return &Events{r: r, alive: alive, max: MaxEvent, buf: make([]byte, 16<<10)}
}

// First returns the first byte of the body that is no white space, without
// taking it. It returns io.EOF for an empty body.
func (e *Events) First() (byte, error) {
	for i := e.pos; ; {
		for ; i < e.end; i++ {
			switch e.buf[i] {
			case ' ', '\t', '\r', '\n':
			case bom[0], bom[1], bom[2]:
			default:
				return e.buf[i], nil
			}
		}
		shift := i - e.pos
		if err := e.fill(); err != nil {
			return 0, err
		}
		i = e.pos + shift
	}
}

const bom = "\xEF\xBB\xBF"

// Rest returns the whole remaining body, for answers that are no stream.
func (e *Events) Rest() ([]byte, error) {
	for {
		if err := e.fill(); err == io.EOF {
			return bytes.TrimPrefix(e.buf[e.pos:e.end], []byte(bom)), nil
		} else if err != nil {
			return nil, err
		}
	}
}

// Next returns the next event that has data. At the end of the body it
// returns io.EOF, when the body broke off the reader's own error.
func (e *Events) Next() (Event, error) {
	e.name, e.data, e.hasData = e.name[:0], e.data[:0], false
	for {
		line, err := e.line()
		if err != nil {
			if err == io.EOF && e.hasData {
				return Event{Name: e.name, Data: e.data}, nil
			}
			return Event{}, err
		}
		if len(line) == 0 {
			if e.hasData {
				return Event{Name: e.name, Data: e.data}, nil
			}
			e.name = e.name[:0]
			continue
		}
		if err := e.field(line); err != nil {
			return Event{}, err
		}
	}
}

// field takes in one line that is not blank.
func (e *Events) field(line []byte) error {
	name, value := line, []byte(nil)
	if line[0] == '{' {
		name, value = []byte("data"), line
	} else if i := bytes.IndexByte(line, ':'); i >= 0 {
		name, value = line[:i], line[i+1:]
		if len(value) > 0 && value[0] == ' ' {
			value = value[1:]
		}
	}
	switch string(name) {
	case "error":
		e.name = append(e.name[:0], name...)
	case "data":
	case "event":
		e.name = append(e.name[:0], value...)
		return nil
	default: // comments have an empty name; id, retry and unknown fields mean nothing here
		return nil
	}
	if len(e.data)+len(value) >= e.max {
		return ErrTooLong
	}
	if len(e.data) > 0 {
		e.data = append(e.data, '\n')
	}
	e.data = append(e.data, value...)
	// As in the standard, an event whose data is empty is none.
	e.hasData = len(e.data) > 0
	return nil
}

// line returns the next line without its end. The slice is valid until the
// next call.
func (e *Events) line() ([]byte, error) {
	for {
		if e.skipLF && e.pos < e.end {
			if e.buf[e.pos] == '\n' {
				e.pos++
				e.scan = max(e.scan, e.pos)
			}
			e.skipLF = false
		}
		if line, ok := e.cut(); ok {
			return e.first(line), nil
		}
		if e.end-e.pos > e.max {
			return nil, ErrTooLong
		}
		err := e.fill()
		if err == nil {
			continue
		}
		if err == io.EOF && e.pos < e.end {
			line := e.buf[e.pos:e.end]
			e.pos, e.scan = e.end, e.end
			return e.first(line), nil
		}
		return nil, err
	}
}

// cut takes a line out of the buffer if a whole one is there.
func (e *Events) cut() ([]byte, bool) {
	fresh := e.buf[e.scan:e.end]
	n := bytes.IndexByte(fresh, '\n')
	if n >= 0 {
		fresh = fresh[:n]
	}
	if c := bytes.IndexByte(fresh, '\r'); c >= 0 {
		n, e.skipLF = c, true
	}
	if n < 0 {
		e.scan = e.end
		return nil, false
	}
	at := e.scan + n
	line := e.buf[e.pos:at]
	e.pos, e.scan, e.moved = at+1, at+1, true
	return line, true
}

// first strips the byte order mark from the first line.
func (e *Events) first(line []byte) []byte {
	if e.begun {
		return line
	}
	e.begun = true
	return bytes.TrimPrefix(line, []byte(bom))
}

// fill waits for more bytes. It keeps what was not parsed.
func (e *Events) fill() error {
	if e.err != nil {
		return e.err
	}
	if e.moved && e.alive != nil {
		e.alive()
	}
	e.moved = false
	if e.pos > 0 {
		copy(e.buf, e.buf[e.pos:e.end])
		e.end, e.scan, e.pos = e.end-e.pos, e.scan-e.pos, 0
	}
	if e.end == len(e.buf) {
		if e.end > e.max {
			return ErrTooLong
		}
		e.buf = append(e.buf, make([]byte, len(e.buf))...)
	}
	for range 100 {
		n, err := e.r.Read(e.buf[e.end:])
		e.end += n
		if err != nil {
			e.err = err
		}
		if n > 0 {
			return nil
		}
		if e.err != nil {
			return e.err
		}
	}
	return io.ErrNoProgress
}
