package transcript

import (
	"strconv"
	"strings"
)

// String prints the script. Parse reads it back to the same lines.
func (s *Script) String() string {
	var b strings.Builder
	printLines(&b, s.Lines, "")
	return b.String()
}

func printLines(b *strings.Builder, lines []Line, indent string) {
	for i := range lines {
		l := &lines[i]
		if l.Op != Blank {
			b.WriteString(indent)
			b.WriteString(l.head())
		}
		b.WriteByte('\n')
		if l.Op == Any || l.Op == Group {
			printLines(b, l.Body, indent+"\t")
			b.WriteString(indent + "}\n")
		}
	}
}

// head prints the line without its body.
func (l *Line) head() string {
	switch l.Op {
	case Blank:
		return ""
	case Comment:
		return "#" + l.Text
	case Group:
		return "{"
	case Any:
		return "any {"
	case Send:
		return strings.TrimRight(">> "+l.Text, " ")
	case Raw, Says, Thinks:
		return words[l.Op] + " " + strconv.Quote(l.Text)
	}
	parts := []string{words[l.Op]}
	add := func(s string) {
		if s != "" {
			parts = append(parts, s)
		}
	}
	add(l.Text)
	add(l.Method)
	if l.Label != "" {
		add("@" + l.Label)
	}
	if l.ID != nil {
		add("#" + string(l.ID))
	}
	if l.Error {
		add("error")
	}
	add(string(l.Value))
	return strings.Join(parts, " ")
}
