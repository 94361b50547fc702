package exec

import (
	"bytes"
	"unicode/utf8"
)

const (
	// maxLine is how much of an unfinished line is held back, so that a
	// carriage return can still take it away, in bytes.
	maxLine = 16 << 10
	// maxEscape is the longest escape sequence; what goes on for longer was
	// none and is text again.
	maxEscape = 4 << 10
)

// cleaner turns what a command writes into text that is safe to show and
// that a model can read: escape sequences and control characters are taken
// out, of a line that was written over only the last state stays, bytes that
// are no UTF-8 become one U+FFFD for each run of them. It works on a stream;
// where the pieces are cut makes no difference.
type cleaner struct {
	emit func([]byte) // gets clean text; keeps nothing of it

	line    []byte // the unfinished line
	flushed bool   // the line's beginning was emitted already
	part    []byte // a character cut off at the end of a piece
	garbled bool   // the last thing in line is a U+FFFD made of garbage
	cr      bool   // a carriage return came and nothing after it
	esc     escape
	escLen  int

	dropped int64 // bytes that are no text and are not in the output
}

// escape is where in an escape sequence the stream is.
type escape int

const (
	noEscape  escape = iota
	escStart         // after ESC
	escParams        // after ESC [
	escOne           // one more byte belongs to it
	escString        // in a string that BEL or ESC \ ends
	escStringEnd
)

// plain are the bytes that stay as they are: printable ASCII and the tab.
var plain = [256]bool{
	'\t': true,
	' ':  true, '!': true, '"': true, '#': true, '$': true, '%': true, '&': true, '\'': true, '(': true, ')': true, '*': true, '+': true,
	',': true, '-': true, '.': true, '/': true, '0': true, '1': true, '2': true, '3': true, '4': true, '5': true, '6': true, '7': true,
	'8': true, '9': true, ':': true, ';': true, '<': true, '=': true, '>': true, '?': true, '@': true, 'A': true, 'B': true, 'C': true,
	'D': true, 'E': true, 'F': true, 'G': true, 'H': true, 'I': true, 'J': true, 'K': true, 'L': true, 'M': true, 'N': true, 'O': true,
	'P': true, 'Q': true, 'R': true, 'S': true, 'T': true, 'U': true, 'V': true, 'W': true, 'X': true, 'Y': true, 'Z': true, '[': true,
	'\\': true, ']': true, '^': true, '_': true, '`': true, 'a': true, 'b': true, 'c': true, 'd': true, 'e': true, 'f': true, 'g': true,
	'h': true, 'i': true, 'j': true, 'k': true, 'l': true, 'm': true, 'n': true, 'o': true, 'p': true, 'q': true, 'r': true, 's': true,
	't': true, 'u': true, 'v': true, 'w': true, 'x': true, 'y': true, 'z': true, '{': true, '|': true, '}': true, '~': true,
}

// write takes the next piece of output.
func (c *cleaner) write(p []byte) {
	if len(c.part) > 0 {
		p = append(c.part, p...)
		c.part = nil
	}
	for len(p) > 0 {
		if c.esc != noEscape {
			p = c.escaped(p)
			continue
		}
		if n := plainRun(p); n > 0 {
			c.text(p[:n])
			p = p[n:]
			continue
		}
		n := c.odd(p)
		if n == 0 {
			c.part = bytes.Clone(p)
			return
		}
		p = p[n:]
	}
}

// plainRun returns how many bytes at the start need no change: printable
// characters, tabs and line ends.
func plainRun(p []byte) int {
	for i := 0; i < len(p); {
		b := p[i]
		if plain[b] || b == '\n' {
			i++
			continue
		}
		if b < utf8.RuneSelf {
			return i
		}
		r, n := utf8.DecodeRune(p[i:])
		if r < 0xA0 || r == utf8.RuneError || turnsText(r) {
			return i
		}
		i += n
	}
	return len(p)
}

// text takes a run of plain bytes and line ends.
func (c *cleaner) text(p []byte) {
	if c.cr {
		c.cr = false
		if p[0] != '\n' {
			c.overwrite()
		}
	}
	c.garbled = false
	last := bytes.LastIndexByte(p, '\n')
	if last >= 0 {
		c.flush()
		c.emit(p[:last+1])
		c.flushed = false
		p = p[last+1:]
	}
	c.hold(p)
}

// hold adds to the unfinished line.
func (c *cleaner) hold(p []byte) {
	if len(c.line)+len(p) > maxLine {
		c.flush()
		c.flushed = true
		if len(p) > maxLine {
			c.emit(p)
			return
		}
	}
	c.line = append(c.line, p...)
}

// flush emits what is held.
func (c *cleaner) flush() {
	if len(c.line) > 0 {
		c.emit(c.line)
		c.line = c.line[:0]
	}
}

// overwrite is a carriage return with something after it: the line is
// written anew. What is out already gets a line end instead.
func (c *cleaner) overwrite() {
	if c.flushed {
		c.flush()
		c.emit([]byte{'\n'})
		c.flushed = false
	}
	c.line = c.line[:0]
}

// odd takes one character that is not plain and returns its length; 0 when
// more of it has to come.
func (c *cleaner) odd(p []byte) int {
	switch b := p[0]; {
	case b == 0x1B:
		c.esc, c.escLen = escStart, 1
		return 1
	case b == '\r':
		c.cr = true
		return 1
	case b == '\b':
		c.back()
		return 1
	case b < utf8.RuneSelf:
		n := 1 // the same byte many times over is one look
		for n < len(p) && p[n] == b {
			n++
		}
		c.dropped += int64(n)
		return n
	}
	if !utf8.FullRune(p) {
		return 0
	}
	r, n := utf8.DecodeRune(p)
	switch {
	case r == utf8.RuneError && n == 1:
		c.dropped++
		if !c.garbled {
			c.char([]byte("\uFFFD"))
			c.garbled = true
		}
	case r >= 0x80 && r < 0xA0:
		c.dropped += int64(n)
	case turnsText(r):
		c.char([]byte(escapeRune(r)))
	default:
		c.char(p[:n])
	}
	return n
}

// char adds one character that is no line end.
func (c *cleaner) char(p []byte) {
	if c.cr {
		c.cr = false
		c.overwrite()
	}
	c.garbled = false
	c.hold(p)
}

// back is a backspace: the last character of the line is written over.
func (c *cleaner) back() {
	if c.cr || len(c.line) == 0 {
		return
	}
	_, n := utf8.DecodeLastRune(c.line)
	c.line = c.line[:len(c.line)-n]
}

// escaped takes bytes of an escape sequence and returns what follows them.
// A sequence nobody ended, or with a line end in it, was none.
func (c *cleaner) escaped(p []byte) []byte {
	for i, b := range p {
		c.escLen++
		if b == '\n' || c.escLen > maxEscape {
			c.esc = noEscape
			return p[i:]
		}
		switch c.esc {
		case escStart:
			switch {
			case b == '[':
				c.esc = escParams
			case b == ']' || b == 'P' || b == 'X' || b == '^' || b == '_':
				c.esc = escString
			case b >= ' ' && b <= '/':
				c.esc = escOne
			default:
				c.esc = noEscape
			}
		case escParams:
			if b >= 0x40 && b <= 0x7E {
				c.esc = noEscape
			} else if b < ' ' || b > 0x7E {
				c.esc = noEscape
				return p[i:]
			}
		case escOne:
			if b < ' ' || b > '/' {
				c.esc = noEscape
			}
		case escString:
			if b == 0x07 {
				c.esc = noEscape
			} else if b == 0x1B {
				c.esc = escStringEnd
			}
		case escStringEnd:
			if b == '\\' {
				c.esc = noEscape
			} else {
				c.esc = escStart // the string was cut off by another sequence
				return p[i:]
			}
		}
		if c.esc == noEscape {
			return p[i+1:]
		}
	}
	return nil
}

// end is the end of the output: what was held back comes out.
func (c *cleaner) end() {
	if len(c.part) > 0 {
		c.dropped += int64(len(c.part))
		c.part = nil
		if !c.garbled {
			c.char([]byte("\uFFFD"))
		}
	}
	c.flush()
}
