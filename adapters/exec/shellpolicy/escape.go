package shellpolicy

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/berth-dev/berth/core/domain"
)

// maxTitle is how many characters a title has at most.
const maxTitle = 200

// Escape makes visible what would not be seen, or would be taken for something
// else: control characters, invisible ones and those that change the direction
// of text, and in the first word of each command and in words with a slash
// everything that is not ASCII. Other letters stay.
func Escape(s string) string {
	var b strings.Builder
	start := true // at the beginning of a command
	for s != "" {
		n := strings.IndexAny(s, " \t\n;|&()")
		if n < 0 {
			n = len(s)
		}
		if n > 0 {
			escapeWord(&b, s[:n], start && !strings.Contains(s[:n], "="))
			start = start && strings.Contains(s[:n], "=")
		}
		if n < len(s) {
			escapeWord(&b, s[n:n+1], false)
			start = start || strings.IndexByte(";|&(\n", s[n]) >= 0
			n++
		}
		s = s[n:]
	}
	return b.String()
}

func escapeWord(b *strings.Builder, s string, command bool) {
	for i, r := range s {
		switch {
		case r == utf8.RuneError && !strings.HasPrefix(s[i:], "\uFFFD"):
			fmt.Fprintf(b, `\x%02x`, s[i])
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\t':
			b.WriteString(`\t`)
		case r < ' ' || r == 0x7f:
			fmt.Fprintf(b, `\x%02x`, r)
		case r < 0x80:
			b.WriteRune(r)
		case command || hidden(r):
			if r > 0xffff {
				fmt.Fprintf(b, `\U%08x`, r)
			} else {
				fmt.Fprintf(b, `\u%04x`, r)
			}
		default:
			b.WriteRune(r)
		}
	}
}

// hidden reports whether a character is invisible, has no agreed look, or
// changes the direction of the text around it.
func hidden(r rune) bool { return domain.Unseen(r) || !unicode.IsPrint(r) }

// title is s on one line: runs of blanks collapsed, with their number when
// they are long, escaped, and cut to maxTitle characters.
func title(s string) string {
	var b strings.Builder
	blanks := 0
	flush := func() {
		switch {
		case blanks > 8:
			fmt.Fprintf(&b, " …%d blanks… ", blanks)
		case blanks > 0:
			b.WriteByte(' ')
		}
		blanks = 0
	}
	for _, r := range strings.Trim(s, " \t\n") {
		if r == ' ' || r == '\t' {
			blanks++
			continue
		}
		flush()
		b.WriteRune(r)
	}
	runes := []rune(Escape(b.String()))
	if len(runes) > maxTitle {
		runes = append(runes[:maxTitle-1], '…')
	}
	return string(runes)
}
