package jsonrpc

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"sync"
)

// DefaultMaxBytes is the longest inbound line unless told otherwise, 64 MiB:
// what careful peers take, and room for the largest attachment in base64.
const DefaultMaxBytes = 64 << 20

// readBuffer is what lines up to this long are read through; longer ones spill.
const readBuffer = 64 << 10

// Stdio frames messages as lines, one JSON text each (ACP, transports).
type Stdio struct {
	br  *bufio.Reader
	w   io.Writer
	max int

	first bool   // no line was read yet, so a byte order mark may come
	rest  bool   // the rest of an over-long line is still to be skipped
	out   []byte // Write's scratch

	closeRead, closeWrite func() error // each works once
}

var (
	_ Frames      = (*Stdio)(nil)
	_ BatchWriter = (*Stdio)(nil)
	_ CloseWriter = (*Stdio)(nil)
)

// NewStdio reads frames from r and writes them to w; maxBytes bounds an
// inbound line without its newline (0: DefaultMaxBytes). Close closes r and w
// if they can be closed.
//
// Read tolerates a carriage return before the newline, blank lines, and a
// byte order mark before the first line. A last line without newline counts
// if it is a whole JSON text. A line over the limit is skipped without being
// kept.
func NewStdio(r io.Reader, w io.Writer, maxBytes int) *Stdio {
	if maxBytes <= 0 {
		maxBytes = DefaultMaxBytes
	}
	return &Stdio{
		br: bufio.NewReaderSize(r, readBuffer), w: w, max: maxBytes, first: true,
		closeRead: closeOnce(r), closeWrite: closeOnce(w),
	}
}

// closeOnce returns a function that closes end, if that is possible, once.
func closeOnce(end any) func() error {
	return sync.OnceValue(func() error {
		if c, ok := end.(io.Closer); ok {
			return c.Close()
		}
		return nil
	})
}

// Read returns the next line that is not blank.
func (s *Stdio) Read() ([]byte, error) {
	for {
		line, err := s.line()
		if s.first {
			line = bytes.TrimPrefix(line, []byte("\xEF\xBB\xBF"))
			s.first = false
		}
		line = bytes.TrimSuffix(line, []byte{'\r'})
		if err != nil {
			if errors.Is(err, io.EOF) && !blank(line) && Valid(line) {
				return line, nil // the next Read meets the end again
			}
			return nil, err
		}
		if !blank(line) {
			return line, nil
		}
	}
}

// blank reports whether a line holds no message.
func blank(line []byte) bool {
	for _, c := range line {
		if c != ' ' && c != '\t' && c != '\r' {
			return false
		}
	}
	return true
}

// line returns the next line without its newline, as memory of its own. With
// an error comes what was read of a last line.
func (s *Stdio) line() ([]byte, error) {
	for s.rest {
		_, err := s.br.ReadSlice('\n')
		if err == nil {
			s.rest = false
		} else if !errors.Is(err, bufio.ErrBufferFull) {
			return nil, err
		}
	}
	var spill spill
	for {
		part, err := s.br.ReadSlice('\n')
		if err == nil {
			part = part[:len(part)-1]
		}
		if spill.size+len(part) > s.max {
			s.rest = err != nil
			return nil, &TooLongError{Limit: s.max}
		}
		switch {
		case err == nil, !errors.Is(err, bufio.ErrBufferFull):
			return spill.join(part), err
		default:
			spill.add(part, s.max)
		}
	}
}

// spill keeps the parts of a long line. Growing one slice instead would leave
// several times the line as garbage; here it is the line twice, at the end.
type spill struct {
	parts [][]byte
	size  int
}

// spillPart is the size of the first part; each one doubles it up to 64 times.
const spillPart = 4 * readBuffer

func (p *spill) add(b []byte, limit int) {
	p.size += len(b)
	for len(b) > 0 {
		n := len(p.parts)
		if n == 0 || len(p.parts[n-1]) == cap(p.parts[n-1]) {
			grow := min(spillPart<<min(n, 6), max(limit-p.size, 0)+len(b))
			p.parts = append(p.parts, make([]byte, 0, grow))
			n++
		}
		last := p.parts[n-1]
		k := min(len(b), cap(last)-len(last))
		p.parts[n-1] = append(last, b[:k]...)
		b = b[k:]
	}
}

// join returns all parts and then tail in memory of its own.
func (p *spill) join(tail []byte) []byte {
	all := make([]byte, 0, p.size+len(tail))
	for _, part := range p.parts {
		all = append(all, part...)
	}
	return append(all, tail...)
}

// Write writes the frame and a newline in one write. A frame that holds raw
// newlines, as a WebSocket message may, is put on one line.
func (s *Stdio) Write(frame []byte) error {
	s.out = s.out[:0]
	if bytes.IndexByte(frame, '\n') >= 0 {
		flat := bytes.NewBuffer(s.out)
		if err := json.Compact(flat, frame); err != nil {
			return errors.New("the frame holds a newline and is not JSON")
		}
		s.out = flat.Bytes()
	} else {
		s.out = append(s.out, frame...)
	}
	s.out = append(s.out, '\n')
	err := s.WriteBatch(s.out)
	if cap(s.out) > 1<<20 {
		s.out = nil
	}
	return err
}

// WriteBatch writes lines that already end in newlines, in one write.
func (s *Stdio) WriteBatch(lines []byte) error {
	_, err := s.w.Write(lines)
	return err
}

// CloseWrite ends the outgoing direction by closing w.
func (s *Stdio) CloseWrite() error { return s.closeWrite() }

// Close closes both ends. On files without poller support, such as a blocking
// standard input, a Read in progress goes on until the peer moves; a Conn does
// not wait for it.
func (s *Stdio) Close() error { return errors.Join(s.closeRead(), s.closeWrite()) }
