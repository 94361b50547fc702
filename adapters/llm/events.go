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
//     object into a stream), and so are the lines of one that is indented
//     (Google's services).
type Events struct {
	cutter
	name    []byte
	data    []byte
	hasData bool
	bare    bool // the data is an object without a field name
}

// NewEvents returns a reader of r. Alive, which may be nil, is called when a
// line has arrived since the last wait.
func NewEvents(r io.Reader, alive func()) *Events {
	return &Events{cutter: newCutter(r, alive, true)}
}

// Next returns the next event that has data. At the end of the body it
// returns io.EOF, when the body broke off the reader's own error.
func (e *Events) Next() (Event, error) {
	e.name, e.data, e.hasData, e.bare = e.name[:0], e.data[:0], false, false
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
	if e.object(line) {
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

// object reports whether a line is one of an object without a field name.
func (e *Events) object(line []byte) bool {
	switch line[0] {
	case '{':
		e.bare = true
	case ' ', '\t', '}', ']':
	case '[':
		e.bare = e.bare || bytes.HasPrefix(line, []byte("[{"))
	default:
		return false
	}
	return e.bare
}
