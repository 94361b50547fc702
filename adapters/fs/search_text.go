package fs

import (
	"bytes"
	"encoding/binary"
	"errors"
	iofs "io/fs"
	"unicode/utf16"
	"unicode/utf8"
)

// Errors that say how a file of a sweep is passed over.
var (
	errBinary = errors.New("it is binary")
	errLong   = errors.New("it is too large")
	errBanned = errors.New("it is forbidden")
)

// mayRead refuses what must not be read, by what was opened.
func (s *sweep) mayRead(i info) error {
	if s.banned(i) {
		return errBanned
	}
	ban, err := s.guard.linked(s.ctx, i)
	if err == nil && ban == "" {
		return nil
	}
	return errBanned
}

// textOf reads a file of the sweep; nil when it is passed over, which is
// counted.
func (s *sweeper) textOf(d *dir, l leaf) []byte {
	var err error
	s.buf, err = d.slurp(l.name(), s.buf, func(i info, head []byte) error {
		if head != nil {
			if isBinary(head) {
				return errBinary
			}
			return nil
		}
		if i.size > maxSwept {
			return errLong
		}
		if !s.spend(i.size) {
			return errLong
		}
		return s.mayRead(i)
	})
	switch {
	case err == nil:
		s.passed.files++
		text, why := s.decode(s.buf)
		if why != "" {
			s.passed.files--
			s.passed.binary++
		}
		return text
	case errors.Is(err, errBinary):
		s.passed.binary++
	case errors.Is(err, errLong):
		s.passed.large++
	case errors.Is(err, errBanned):
		s.passed.pass(passedForbidden, l.path)
	case errors.Is(err, errMoved), errors.Is(err, iofs.ErrNotExist): // it is gone
	default:
		s.passed.pass(passedUnreadable, l.path)
	}
	return nil
}

// sniffed is how much of a file is looked at for a NUL.
const sniffed = 8 << 10

// isBinary reports whether a file begins like a binary one.
func isBinary(head []byte) bool {
	return byteOrder(head) == nil && bytes.IndexByte(head[:min(len(head), sniffed)], 0) >= 0
}

// byteOrder is that of UTF-16 text with a byte-order mark; nil for anything
// else.
func byteOrder(b []byte) binary.ByteOrder {
	switch {
	case len(b) < 2:
	case b[0] == 0xFF && b[1] == 0xFE:
		return binary.LittleEndian
	case b[0] == 0xFE && b[1] == 0xFF:
		return binary.BigEndian
	}
	return nil
}

// decode returns text as it is searched: without byte-order mark, UTF-16 as
// UTF-8. why says that it is none. Bytes that are not UTF-8 stay as they are.
func (s *sweeper) decode(raw []byte) (text []byte, why string) {
	order := byteOrder(raw)
	if order == nil {
		if isBinary(raw) {
			return nil, "it is binary and cannot be searched"
		}
		return bytes.TrimPrefix(raw, bom), ""
	}
	s.text = s.text[:0]
	for raw = raw[2:]; len(raw) > 1; raw = raw[2:] {
		r := rune(order.Uint16(raw))
		if utf16.IsSurrogate(r) && len(raw) > 3 {
			if pair := utf16.DecodeRune(r, rune(order.Uint16(raw[2:]))); pair != utf8.RuneError {
				r, raw = pair, raw[2:]
			}
		}
		if r == 0 {
			return nil, "it is binary and cannot be searched"
		}
		s.text = utf8.AppendRune(s.text, r)
	}
	return s.text, ""
}
