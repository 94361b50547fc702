package bedrock

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"

	"github.com/berth-dev/berth/adapters/llm"
)

// The sizes of a frame of application/vnd.amazon.eventstream, in bytes. All
// numbers on the wire are big-endian.
const (
	preludeSize = 12                       // total length, length of the headers, CRC-32 of both
	frameSize   = preludeSize + crc32.Size // a frame without headers and payload
	maxHeaders  = 128 << 10                // all headers of a frame
	firstBuffer = 16 << 10                 // grows as bytes arrive, never by what a length promises
	maxFrame    = llm.MaxEvent             // the whole frame
	noProgress  = 100                      // reads that bring nothing before the reader is given up
)

// What can be wrong with a frame. None of these holds anything of the frame.
var (
	errPrelude = errors.New("a frame with a wrong checksum of its lengths")
	errLengths = errors.New("a frame whose lengths cannot be")
	errChecks  = errors.New("a frame with a wrong checksum")
	errHeaders = errors.New("a frame with headers of no known form")
)

// frame is one message of the stream. Its slices are valid until the next
// call of Next.
type frame struct {
	message []byte // ":message-type": "event", "exception" or "error"
	event   []byte // ":event-type" of an event, ":exception-type" of an exception
	code    []byte // ":error-code" of an error
	words   []byte // ":error-message" of an error
	payload []byte
}

// frames reads the binary frames of an event stream, byte by byte the same
// however the network cut them. Both checksums are verified before anything of
// a frame is believed, lengths first. Whatever is wrong is final: there is no
// way to find the next frame behind a broken one.
type frames struct {
	r     io.Reader
	alive func() // called before waiting again after a whole frame was read

	buf   []byte
	pos   int // start of what was not parsed
	end   int
	err   error // sticky
	moved bool  // a frame was read since alive was called
}

// newFrames returns a reader of r. Alive, which may be nil, is called when a
// frame has arrived since the last wait.
func newFrames(r io.Reader, alive func()) *frames {
	return &frames{r: r, alive: alive, buf: make([]byte, firstBuffer)}
}

// First returns the first byte of the body, without taking it. It returns
// io.EOF for an empty body.
func (f *frames) First() (byte, error) {
	if err := f.want(1); err != nil {
		return 0, err
	}
	return f.buf[f.pos], nil
}

// Rest returns the whole remaining body, at most limit bytes of it, for
// answers that are no event stream.
func (f *frames) Rest(limit int) ([]byte, error) {
	for f.end-f.pos < limit {
		if err := f.fill(); err == io.EOF {
			break
		} else if err != nil {
			return nil, err
		}
	}
	return f.buf[f.pos:min(f.end, f.pos+limit)], nil
}

// Next returns the next frame. At the end of the body it returns io.EOF, in
// the middle of a frame io.ErrUnexpectedEOF, when the body broke off the
// reader's own error, llm.ErrTooLong for a frame beyond llm.MaxEvent, and one
// of the errors above for what is no frame.
func (f *frames) Next() (frame, error) {
	out, err := f.next()
	if err != nil {
		f.err = err
	}
	return out, err
}

func (f *frames) next() (frame, error) {
	if err := f.want(preludeSize); err != nil {
		return frame{}, err
	}
	b := f.buf[f.pos:]
	if crc32.ChecksumIEEE(b[:8]) != binary.BigEndian.Uint32(b[8:]) {
		return frame{}, errPrelude
	}
	total, headers := binary.BigEndian.Uint32(b), binary.BigEndian.Uint32(b[4:])
	switch {
	case total < frameSize, headers > maxHeaders, headers > total-frameSize:
		return frame{}, errLengths
	case total > maxFrame:
		return frame{}, llm.ErrTooLong
	}
	if err := f.want(int(total)); err != nil {
		return frame{}, err
	}
	b = f.buf[f.pos : f.pos+int(total)]
	body := b[:total-crc32.Size]
	if crc32.ChecksumIEEE(body) != binary.BigEndian.Uint32(b[total-crc32.Size:]) {
		return frame{}, errChecks
	}
	out := frame{payload: body[preludeSize+headers:]}
	if !out.read(body[preludeSize : preludeSize+headers]) {
		return frame{}, errHeaders
	}
	f.pos, f.moved = f.pos+int(total), true
	return out, nil
}

// The types of a header's value.
const (
	valueTrue = iota
	valueFalse
	valueByte
	valueShort
	valueInt
	valueLong
	valueBytes
	valueString
	valueTime
	valueUUID
)

// read takes in the headers. It reports false when they are not what the
// format allows, or when one that matters is no string or comes twice.
func (out *frame) read(b []byte) bool {
	for len(b) > 0 {
		n := int(b[0])
		if n == 0 || len(b) < 1+n+1 {
			return false
		}
		name, kind := b[1:1+n], b[1+n]
		value, rest, ok := headerValue(kind, b[1+n+1:])
		if !ok {
			return false
		}
		b = rest
		if to := out.field(name); to != nil {
			if kind != valueString || *to != nil {
				return false
			}
			*to = value
		}
	}
	return true
}

// field returns where the header of that name belongs, nil for one that means
// nothing here.
func (out *frame) field(name []byte) *[]byte {
	switch string(name) {
	case ":message-type":
		return &out.message
	case ":event-type", ":exception-type":
		return &out.event
	case ":error-code":
		return &out.code
	case ":error-message":
		return &out.words
	}
	return nil
}

// headerValue cuts the value of that type off b. The result is not nil unless
// it is not ok.
func headerValue(kind byte, b []byte) (value, rest []byte, ok bool) {
	size := 0
	switch kind {
	case valueTrue, valueFalse:
	case valueByte:
		size = 1
	case valueShort:
		size = 2
	case valueInt:
		size = 4
	case valueLong, valueTime:
		size = 8
	case valueUUID:
		size = 16
	case valueBytes, valueString:
		if len(b) < 2 {
			return nil, nil, false
		}
		size, b = int(binary.BigEndian.Uint16(b)), b[2:]
	default:
		return nil, nil, false
	}
	if len(b) < size {
		return nil, nil, false
	}
	return b[:size:size], b[size:], true
}

// want waits until n bytes are there.
func (f *frames) want(n int) error {
	for f.end-f.pos < n {
		if err := f.fill(); err != nil {
			if err == io.EOF && f.end > f.pos {
				return io.ErrUnexpectedEOF
			}
			return err
		}
	}
	return nil
}

// fill waits for more bytes. It keeps what was not parsed.
func (f *frames) fill() error {
	if f.err != nil {
		return f.err
	}
	if f.moved && f.alive != nil {
		f.alive()
	}
	f.moved = false
	if f.pos > 0 {
		copy(f.buf, f.buf[f.pos:f.end])
		f.end, f.pos = f.end-f.pos, 0
	}
	if f.end == len(f.buf) {
		f.buf = append(f.buf, make([]byte, len(f.buf))...)
	}
	for range noProgress {
		n, err := f.r.Read(f.buf[f.end:])
		f.end += n
		if err != nil {
			f.err = err
		}
		if n > 0 {
			return nil
		}
		if f.err != nil {
			return f.err
		}
	}
	return io.ErrNoProgress
}
