package exec

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/berth-dev/berth/core/domain"
)

// turnsText reports whether a character changes how the text around it is
// shown: marks of writing direction.
func turnsText(r rune) bool { return unicode.Is(unicode.Bidi_Control, r) }

// escapeRune writes a character so that it can be seen.
func escapeRune(r rune) string {
	switch {
	case r == '\n':
		return `\n`
	case r == '\t':
		return `\t`
	case r == '\r':
		return `\r`
	case r < 0x80:
		return fmt.Sprintf(`\x%02x`, r)
	case r > 0xFFFF:
		return fmt.Sprintf(`\U%08x`, r)
	}
	return fmt.Sprintf(`\u%04x`, r)
}

// visible writes text so that nothing in it hides: control characters,
// direction marks and characters without a shape are escaped. Line ends and
// tabs stay when lines is set.
func visible(s string, lines bool) string {
	hides := func(r rune) bool {
		if r == '\n' || r == '\t' {
			return !lines
		}
		return domain.Unseen(r)
	}
	if utf8.ValidString(s) && !strings.ContainsFunc(s, hides) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && n == 1:
			fmt.Fprintf(&b, `\x%02x`, s[i])
		case hides(r):
			b.WriteString(escapeRune(r))
		default:
			b.WriteString(s[i : i+n])
		}
		i += n
	}
	return b.String()
}

// ascii escapes everything that is not ASCII.
func ascii(s string) string {
	var b strings.Builder
	for _, r := range s {
		if r < 0x80 {
			b.WriteRune(r)
		} else {
			b.WriteString(escapeRune(r))
		}
	}
	return b.String()
}

// cutAt shortens s to at most n bytes, at a character.
func cutAt(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

// lastBytes returns the end of s, at most n bytes, from a line's start where
// one is near, else from a character.
func lastBytes(s string, n int) string {
	if len(s) <= n {
		return s
	}
	s = s[len(s)-n:]
	if i := strings.IndexByte(s, '\n'); i >= 0 && i < n/4 {
		return s[i+1:]
	}
	for s != "" && !utf8.RuneStart(s[0]) {
		s = s[1:]
	}
	return s
}
