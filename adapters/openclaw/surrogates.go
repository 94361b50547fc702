package openclaw

import (
	"bytes"
	"encoding/hex"
	"unicode/utf8"
)

// mendHalves takes the halves of characters out of a frame, in place. A
// Gateway counts text in UTF-16 and may cut it between the two halves of a
// character; what is left of it then stands in the frame as an escape that
// names no character, and the frame is no JSON over it. U+FFFD, which has an
// escape of the same length, stands for it.
func mendHalves(frame []byte) {
	i := 0
	for {
		n := bytes.IndexByte(frame[i:], '\\')
		if n < 0 {
			return
		}
		i += n
		switch c := unitAt(frame, i); {
		case c >= 0xd800 && c < 0xdc00 && low(unitAt(frame, i+6)):
			i += 12
		case c >= 0xd800 && c < 0xe000:
			copy(frame[i:], `\ufffd`)
			i += 6
		default:
			i += 2 // an escape of two bytes, or one that needs no mending
		}
		if i >= len(frame) {
			return
		}
	}
}

func low(c int) bool { return c >= 0xdc00 && c < 0xe000 }

// unitAt is the number of the escape \uXXXX at i, -1 when there is none.
func unitAt(b []byte, i int) int {
	if i+6 > len(b) || b[i] != '\\' || b[i+1] != 'u' {
		return -1
	}
	var unit [2]byte
	if _, err := hex.Decode(unit[:], b[i+2:i+6]); err != nil {
		return -1
	}
	return int(unit[0])<<8 | int(unit[1])
}

// endsInHalf reports whether a text ends in what may be a half of a character.
func endsInHalf(s string) bool {
	r, _ := utf8.DecodeLastRuneInString(s)
	return r == utf8.RuneError && s != ""
}
