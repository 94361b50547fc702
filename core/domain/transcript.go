package domain

import "strings"

// Transcript renders a part of a conversation as text, for a model that is to
// summarise it: earlier is the summary of what came before. Results of tools
// are marked line by line, so that nothing in them looks like the rest. It
// takes at most limit bytes, first at the cost of long results; 0 is no limit.
func Transcript(earlier string, old []ModelMessage, limit int64) string {
	var text string
	for each := int64(4000); each >= 250; each /= 4 {
		if text = transcript(earlier, old, each); limit <= 0 || int64(len(text)) <= limit {
			return text
		}
	}
	return Shorten(text, limit, "")
}

func transcript(earlier string, old []ModelMessage, each int64) string {
	var b strings.Builder
	if earlier != "" {
		b.WriteString("SUMMARY OF WHAT CAME BEFORE\n" + strings.TrimSpace(earlier) + "\n\n")
	}
	for _, m := range old {
		switch m := m.(type) {
		case UserInput:
			b.WriteString("USER\n" + Shorten(PromptText(m.Blocks), 4*each, "") + "\n\n")
		case ModelReply:
			if m.Text != "" {
				b.WriteString("AGENT\n" + m.Text + "\n\n")
			}
			for _, c := range m.Calls {
				b.WriteString("AGENT CALLS " + c.Name + " " + Shorten(string(c.Args), each, "") + "\n\n")
			}
		case ToolOutput:
			b.WriteString(resultTitle(m) + "\n")
			for line := range strings.Lines(Shorten(m.Text, each, "")) {
				b.WriteString("| " + line)
			}
			b.WriteString("\n\n")
		}
	}
	return strings.TrimRight(b.String(), "\n")
}

func resultTitle(m ToolOutput) string {
	if m.Failed {
		return "FAILED RESULT OF " + m.Call.Name
	}
	return "RESULT OF " + m.Call.Name
}

// PlainSummary is a summary that needs no model: who said what and which tools
// were called with what outcome, each in a line, at most limit bytes in all.
func PlainSummary(earlier string, old []ModelMessage, limit int64) string {
	var b strings.Builder
	if earlier != "" {
		b.WriteString(Shorten(strings.TrimSpace(earlier), limit/2, "") + "\n")
	}
	results := make(map[CallID]ToolOutput)
	for _, m := range old {
		if out, ok := m.(ToolOutput); ok {
			results[out.Call.ID] = out
		}
	}
	for _, m := range old {
		switch m := m.(type) {
		case UserInput:
			b.WriteString("- The user: " + inLine(PromptText(m.Blocks), 200) + "\n")
		case ModelReply:
			if m.Text != "" {
				b.WriteString("- The agent: " + inLine(m.Text, 200) + "\n")
			}
			for _, c := range m.Calls {
				b.WriteString("- Called " + c.Name + " " + inLine(string(c.Args), 150) + outcome(results[c.ID]) + "\n")
			}
		case ToolOutput: // told with its call
		}
	}
	return Shorten(strings.TrimRight(b.String(), "\n"), limit, "")
}

// outcome is how a call ended, in a few words.
func outcome(out ToolOutput) string {
	switch {
	case out.Call.ID == "":
		return ""
	case out.Failed:
		return ": failed: " + inLine(out.Text, 100)
	}
	return ": " + inLine(out.Text, 100)
}

// inLine returns a text as one line of at most limit bytes and a mark.
func inLine(text string, limit int) string {
	text = strings.Join(strings.Fields(text[:runeStart(text, min(len(text), 4*limit))]), " ")
	if len(text) <= limit {
		return text
	}
	return text[:runeStart(text, limit)] + "…"
}
