package fs

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/berth-dev/berth/core/domain"
)

const (
	// maxDiff bounds both sides of a diff together, in bytes. Escaped, that is
	// still well below the 10 MiB a message of ours may have.
	maxDiff = 1 << 20
	// maxShortDiff bounds what is shown of a change with no full diff.
	maxShortDiff = 16 << 10
)

// diffOf describes the change of a file: its texts before and after, with LF
// line ends and without byte-order mark.
func diffOf(path string, before, after []byte, created bool) []domain.CallContent {
	if len(before)+len(after) <= maxDiff {
		return []domain.CallContent{domain.Diff{Path: path, OldText: shown(before), NewText: shown(after), Created: created}}
	}
	return []domain.CallContent{domain.ContentBlock{Block: domain.Text{Text: shortDiff(path, before, after, created)}}}
}

// shortDiff is for changes too large to show: where they begin and end, and
// as much of them as there is room for.
func shortDiff(path string, before, after []byte, created bool) string {
	start := lineStart(before, commonPrefix(before, string(after)))
	old, put := before[start:], after[start:]
	tail := commonSuffix(old, string(put))
	old, put = wholeLines(old, len(old)-tail), wholeLines(put, len(put)-tail)
	var b strings.Builder
	verb := "changes"
	if created {
		verb = "creates"
	}
	fmt.Fprintf(&b, "The call %s %s; it is too large for a full diff (%s before, %s after). From line %d on, %s replace %s:\n",
		verb, path, bytesWords(int64(len(before))), bytesWords(int64(len(after))), lineOf(before, start),
		plural(lineCount(put), "line"), plural(lineCount(old), "line"))
	var lines strings.Builder
	room := maxShortDiff
	prefixLines(&lines, "-", old, room/2)
	prefixLines(&lines, "+", put, room/2)
	b.WriteString(domain.Fenced("diff", lines.String()))
	return b.String()
}

// prefixLines writes lines with a mark before each, as far as there is room.
func prefixLines(b *strings.Builder, mark string, text []byte, room int) {
	for line := range bytes.Lines(text) {
		if room -= len(line) + 1; room < 0 {
			b.WriteString(mark + "… (more is not shown)\n")
			return
		}
		b.WriteString(mark)
		b.WriteString(strings.TrimSuffix(shown(line), "\n"))
		b.WriteByte('\n')
	}
}

// lineStart is where the line of an offset begins.
func lineStart(text []byte, offset int) int {
	return bytes.LastIndexByte(text[:offset], '\n') + 1
}

// wholeLines is text up to the end of the line that offset end lies in.
func wholeLines(text []byte, end int) []byte {
	if end == 0 || text[end-1] == '\n' {
		return text[:end]
	}
	if i := bytes.IndexByte(text[end:], '\n'); i >= 0 {
		return text[:end+i+1]
	}
	return text
}
