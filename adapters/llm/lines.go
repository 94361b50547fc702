package llm

import (
	"bytes"
	"io"
)

// Lines reads a stream of one JSON value a line, byte by byte the same however
// the network cut it. Lines end with LF or CRLF; blank ones are passed over;
// the last one counts without its end.
type Lines struct{ cutter }

// NewLines returns a reader of r. Alive, which may be nil, is called when a
// line has arrived since the last wait.
func NewLines(r io.Reader, alive func()) *Lines {
	return &Lines{cutter: newCutter(r, alive, false)}
}

// Next returns the next line that is not blank, without white space around
// it. The slice is valid until the next call. At the end of the body it
// returns io.EOF, when the body broke off the reader's own error, and
// ErrTooLong for a line beyond MaxEvent.
func (l *Lines) Next() ([]byte, error) {
	for {
		line, err := l.line()
		if err != nil {
			return nil, err
		}
		if line = bytes.Trim(line, " \t\r"); len(line) > 0 {
			return line, nil
		}
	}
}

// cutter cuts a body into lines, for all readers of streams.
type cutter struct {
	r     io.Reader
	alive func() // called before waiting again after a whole line was read
	max   int
	cr    bool // CR ends a line too

	buf  []byte
	pos  int // start of what was not parsed
	scan int // up to here no line end was found
	end  int
	err  error // sticky, from r

	skipLF bool // the last line ended with CR: a LF that follows belongs to it
	begun  bool // the first line was read
	moved  bool // a line was read since alive was called
}

func newCutter(r io.Reader, alive func(), cr bool) cutter {
	return cutter{r: r, alive: alive, max: MaxEvent, cr: cr, buf: make([]byte, 16<<10)}
}

// First returns the first byte of the body that is no white space, without
// taking it. It returns io.EOF for an empty body.
func (c *cutter) First() (byte, error) {
	for i := c.pos; ; {
		for ; i < c.end; i++ {
			switch c.buf[i] {
			case ' ', '\t', '\r', '\n':
			case bom[0], bom[1], bom[2]:
			default:
				return c.buf[i], nil
			}
		}
		shift := i - c.pos
		if err := c.fill(); err != nil {
			return 0, err
		}
		i = c.pos + shift
	}
}

const bom = "\xEF\xBB\xBF"

// Rest returns the whole remaining body, for answers that are no stream.
func (c *cutter) Rest() ([]byte, error) {
	for {
		if err := c.fill(); err == io.EOF {
			return bytes.TrimPrefix(c.buf[c.pos:c.end], []byte(bom)), nil
		} else if err != nil {
			return nil, err
		}
	}
}

// line returns the next line without its end. The slice is valid until the
// next call.
func (c *cutter) line() ([]byte, error) {
	for {
		if c.skipLF && c.pos < c.end {
			if c.buf[c.pos] == '\n' {
				c.pos++
				c.scan = max(c.scan, c.pos)
			}
			c.skipLF = false
		}
		if line, ok := c.cut(); ok {
			return c.first(line), nil
		}
		if c.end-c.pos > c.max {
			return nil, ErrTooLong
		}
		err := c.fill()
		if err == nil {
			continue
		}
		if err == io.EOF && c.pos < c.end {
			line := c.buf[c.pos:c.end]
			c.pos, c.scan = c.end, c.end
			return c.first(line), nil
		}
		return nil, err
	}
}

// cut takes a line out of the buffer if a whole one is there.
func (c *cutter) cut() ([]byte, bool) {
	fresh := c.buf[c.scan:c.end]
	n := bytes.IndexByte(fresh, '\n')
	if n >= 0 {
		fresh = fresh[:n]
	}
	if c.cr {
		if r := bytes.IndexByte(fresh, '\r'); r >= 0 {
			n, c.skipLF = r, true
		}
	}
	if n < 0 {
		c.scan = c.end
		return nil, false
	}
	at := c.scan + n
	line := c.buf[c.pos:at]
	c.pos, c.scan, c.moved = at+1, at+1, true
	return line, true
}

// first strips the byte order mark from the first line.
func (c *cutter) first(line []byte) []byte {
	if c.begun {
		return line
	}
	c.begun = true
	return bytes.TrimPrefix(line, []byte(bom))
}

// fill waits for more bytes. It keeps what was not parsed.
func (c *cutter) fill() error {
	if c.err != nil {
		return c.err
	}
	if c.moved && c.alive != nil {
		c.alive()
	}
	c.moved = false
	if c.pos > 0 {
		copy(c.buf, c.buf[c.pos:c.end])
		c.end, c.scan, c.pos = c.end-c.pos, c.scan-c.pos, 0
	}
	if c.end == len(c.buf) {
		if c.end > c.max {
			return ErrTooLong
		}
		c.buf = append(c.buf, make([]byte, len(c.buf))...)
	}
	for range 100 {
		n, err := c.r.Read(c.buf[c.end:])
		c.end += n
		if err != nil {
			c.err = err
		}
		if n > 0 {
			return nil
		}
		if c.err != nil {
			return c.err
		}
	}
	return io.ErrNoProgress
}
