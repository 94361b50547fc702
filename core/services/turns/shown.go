package turns

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// What a client is shown of a call before anybody has looked at it. The model
// wrote it, and some of what JSON allows ends the connection of a client whose
// decoder is strict.
const (
	maxRawInput = 256 << 10 // the longest argument text, in bytes
	maxRawDepth = 64        // how deep it may be nested: usual decoders give up at 128
	maxTitle    = 100       // the longest name of an unknown tool, in characters
)

// rawInput is what a client is shown of a call's arguments, which are a valid
// JSON object: halves of characters are replaced, and what no usual decoder
// takes is told and not shown.
func rawInput(args []byte) []byte {
	if len(args) <= maxRawInput {
		if shown, ok := decodable(bytes.ToValidUTF8(args, []byte("\uFFFD"))); ok {
			return shown
		}
	}
	return fmt.Appendf(nil, `{"truncated":true,"bytes":%d}`, len(args))
}

// decodable returns valid JSON with U+FFFD for each escaped surrogate that has
// no partner. It reports false when it is nested too deep or holds a number
// that is beyond all floating point numbers.
func decodable(b []byte) ([]byte, bool) {
	depth := 0
	for i := 0; i < len(b); i++ {
		switch c := b[i]; {
		case c == '"':
			b, i = decodableString(b, i+1)
		case c == '{' || c == '[':
			if depth++; depth > maxRawDepth {
				return nil, false
			}
		case c == '}' || c == ']':
			depth--
		case c == '-' || c >= '0' && c <= '9':
			n := i + 1
			for n < len(b) && strings.IndexByte("+-.eE0123456789", b[n]) >= 0 {
				n++
			}
			if _, err := strconv.ParseFloat(string(b[i:n]), 64); err != nil {
				return nil, false
			}
			i = n - 1
		}
	}
	return b, true
}

// decodableString looks at a string whose body begins at i, and returns where
// its quote is. B is copied before it is changed.
func decodableString(b []byte, i int) ([]byte, int) {
	copied := false
	for ; b[i] != '"'; i++ {
		if b[i] != '\\' {
			continue
		}
		if i++; b[i] != 'u' {
			continue
		}
		switch unit := hexUnit(b[i+1:]); {
		case unit >= 0xD800 && unit < 0xDC00 && b[i+5] == '\\' && b[i+6] == 'u' && hexUnit(b[i+7:])&^0x3FF == 0xDC00:
			i += 10
		case unit >= 0xD800 && unit < 0xE000:
			if !copied {
				b, copied = bytes.Clone(b), true
			}
			copy(b[i+1:], "fffd")
			i += 4
		default:
			i += 4
		}
	}
	return b, i
}

// hexUnit reads the four digits of an escape.
func hexUnit(b []byte) uint64 {
	unit, err := strconv.ParseUint(string(b[:4]), 16, 16)
	if err != nil {
		return 0
	}
	return unit
}

// plainTitle is a name that the model wrote, fit for one line of a screen and
// never empty.
func plainTitle(name string) string {
	most := min(len(name), 4*maxTitle)
	for most > 0 && most < len(name) && !utf8.RuneStart(name[most]) {
		most--
	}
	title := []rune(strings.Map(func(c rune) rune {
		if unicode.IsGraphic(c) {
			return c
		}
		return -1 // control characters, and those that turn the direction of text
	}, strings.Join(strings.Fields(strings.ToValidUTF8(name[:most], "\uFFFD")), " ")))
	switch {
	case len(title) > maxTitle:
		return string(title[:maxTitle-1]) + "…"
	case len(title) == 0:
		return "unknown"
	}
	return string(title)
}
