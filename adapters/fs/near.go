package fs

import (
	"bytes"
	"fmt"
	"strings"
	"unicode"

	"github.com/berth-dev/berth/core/domain"
)

// Limits on what an error quotes from a file.
const (
	maxQuotedLines = 12
	maxQuotedBytes = 160 // of one line
)

// ambiguous tells where a text that should be there once is.
func (d *doc) ambiguous(at []int) error {
	var lines []string
	for i, offset := range at {
		if i == 10 {
			lines = append(lines, "…")
			break
		}
		lines = append(lines, fmt.Sprint(lineOf(d.text, offset)))
	}
	return domain.Errorf(domain.InvalidArgument,
		"old_text was found %d times, at lines %s; add more of the lines around the one you mean, or set replace_all", len(at), strings.Join(lines, ", "))
}

// notFound says in what way a text is not in the file: what comes closest,
// how it differs, and how the file really reads there.
func (d *doc) notFound(e edit) error {
	want := strings.ReplaceAll(e.old, "\r\n", "\n")
	if e.put != "" && len(e.put) >= 8 {
		if put, at := d.find(e.put); len(at) > 0 && put != "" {
			return domain.Errorf(domain.InvalidArgument,
				"old_text was not found, but new_text is there already, at line %d; perhaps this edit was made before", lineOf(d.text, at[0]))
		}
	}
	have, wanted := splitLines(string(d.text)), splitLines(want)
	have = have[:min(len(have), maxSearched)]
	for _, how := range differences() {
		if i := matchLines(have, wanted, how.plain); i >= 0 {
			return domain.Errorf(domain.InvalidArgument, "old_text was not found exactly: line %d on differs in %s. The file reads there:\n%s",
				i+1, how.words, quoteLines(have, i, len(wanted)))
		}
	}
	if strings.Contains(want, `\n`) && !strings.Contains(want, "\n") {
		if at := occurrences(d.text, strings.ReplaceAll(want, `\n`, "\n")); len(at) > 0 {
			return domain.Errorf(domain.InvalidArgument, `old_text was not found: it holds a backslash and an n where the file has a line end, at line %d`, lineOf(d.text, at[0]))
		}
	}
	if i := closest(have, wanted); i >= 0 {
		return domain.Errorf(domain.InvalidArgument, "old_text was not found. Closest is line %d; the file reads there:\n%s",
			i+1, quoteLines(have, i, len(wanted)))
	}
	return domain.Errorf(domain.InvalidArgument, "old_text was not found, nor anything like it; read the file again")
}

// difference is a way in which a quoted text often differs from the file.
type difference struct {
	words string
	plain func(string) string // makes lines equal that differ only so
}

func differences() []difference {
	marks := asciiMarks()
	return []difference{
		{"whitespace at the end of lines", func(s string) string { return strings.TrimRightFunc(s, unicode.IsSpace) }},
		{"indentation", strings.TrimSpace},
		{"spacing", func(s string) string { return strings.Join(strings.Fields(s), " ") }},
		{"the kind of quotes, dashes or spaces", func(s string) string {
			return strings.Join(strings.Fields(marks.Replace(s)), " ")
		}},
		{"upper and lower case", func(s string) string { return strings.ToLower(strings.Join(strings.Fields(s), " ")) }},
	}
}

func asciiMarks() *strings.Replacer {
	return strings.NewReplacer("\u2018", "'", "\u2019", "'", "\u201C", `"`, "\u201D", `"`, "\u2013", "-", "\u2014", "-",
		"\u2212", "-", "\u2026", "...", "\u00A0", " ", "\u202F", " ", "\u200B", "")
}

func splitLines(text string) []string {
	lines := strings.Split(text, "\n")
	if n := len(lines); n > 1 && lines[n-1] == "" {
		lines = lines[:n-1]
	}
	return lines
}

// maxMatched bounds the comparisons of one search, for files that repeat
// themselves.
const maxMatched = 1_000_000

// matchLines finds wanted in have, lines compared after plain. The first and
// the last wanted line may be parts of lines.
func matchLines(have, wanted []string, plain func(string) string) int {
	want := make([]string, len(wanted))
	empty := true
	for i, l := range wanted {
		want[i] = plain(l)
		empty = empty && want[i] == ""
	}
	if empty || len(have) < len(want) {
		return -1
	}
	line := make([]string, len(have))
	for i, l := range have {
		line[i] = plain(l)
	}
	last := len(want) - 1
	left := maxMatched
outer:
	for i := 0; i+last < len(line) && left > 0; i++ {
		if last == 0 {
			if strings.Contains(line[i], want[0]) {
				return i
			}
			continue
		}
		if !strings.HasSuffix(line[i], want[0]) || !strings.HasPrefix(line[i+last], want[last]) {
			continue
		}
		for j := 1; j < last; j++ {
			if left--; line[i+j] != want[j] {
				continue outer
			}
		}
		return i
	}
	return -1
}

// Bounds on the lines that a near miss is looked for in, and on those that are
// compared by likeness.
const (
	maxSearched = 100_000
	maxCompared = 20_000
)

// closest finds the line most like the first wanted line that says anything;
// -1 when none shares at least half of its letter pairs.
func closest(have, wanted []string) int {
	skip := 0
	for skip < len(wanted) && len(strings.TrimSpace(wanted[skip])) < 3 {
		skip++
	}
	if skip == len(wanted) {
		return -1
	}
	want := pairs(wanted[skip])
	best, score := -1, 0.5
	for i, line := range have[:min(len(have), maxCompared)] {
		if s := likeness(want, pairs(line)); s > score {
			best, score = i, s
		}
	}
	if best < 0 {
		return -1
	}
	return max(0, best-skip)
}

// pairs counts the pairs of neighbouring bytes of a line, spaces left out.
func pairs(line string) map[[2]byte]int {
	line = strings.Join(strings.Fields(line), "")
	line = line[:min(len(line), 400)]
	p := make(map[[2]byte]int, len(line))
	for i := 0; i+1 < len(line); i++ {
		p[[2]byte{line[i], line[i+1]}]++
	}
	return p
}

// likeness is twice the pairs in common by the pairs of both, 0 to 1.
func likeness(a, b map[[2]byte]int) float64 {
	common, all := 0, 0
	for p, n := range a {
		common += min(n, b[p])
		all += n
	}
	for _, n := range b {
		all += n
	}
	if all == 0 {
		return 0
	}
	return 2 * float64(common) / float64(all)
}

// quoteLines shows lines with their numbers.
func quoteLines(lines []string, from, count int) string {
	var b bytes.Buffer
	for i := from; i < min(from+min(count, maxQuotedLines), len(lines)); i++ {
		line := lines[i]
		if len(line) > maxQuotedBytes {
			line = clip(line, maxQuotedBytes) + "…"
		}
		fmt.Fprintf(&b, "%6d | %s\n", i+1, strings.ToValidUTF8(line, "\uFFFD"))
	}
	if count > maxQuotedLines {
		b.WriteString("       | …\n")
	}
	return b.String()
}
