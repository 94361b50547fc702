package offline

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/berth-dev/berth/core/domain"
)

// reply is what the model says and wants done in one step.
type reply struct {
	text  string
	calls []domain.ModelCall
}

// request is one kind of request it understands.
type request struct {
	form  string // as documented
	match *regexp.Regexp
	tool  string // the tool it needs; "" for none
	do    func(m []string) reply
}

// requests returns the kinds, in the order they are tried. It is a function
// so that nothing is compiled before the model is used.
func requests() []request {
	re := func(s string) *regexp.Regexp { return regexp.MustCompile(`(?is)^` + s + `\s*$`) }
	const name = "(\"[^\"]+\"|'[^']+'|`[^`]+`|\\S+)"
	const quoted = "(\"(?:[^\"]*)\"|'(?:[^']*)'|`(?:[^`]*)`|\\S+)"
	return []request{
		{"help", re(`(?:help|hi|hello|hey|\?|what can you do\??|what are you\??|who are you\??|explain(?: yourself)?)[.!]?`), "",
			func([]string) reply { return reply{text: helpText} }},
		{"read FILE", re(`(?:please )?(?:read|show|open|cat)(?: the file| me)? ` + name), "read_file",
			func(m []string) reply {
				return call("I will read "+bare(m[1])+".", "read_file", args{"path": bare(m[1])})
			}},
		{"list [DIRECTORY]", re(`(?:please )?(?:list|ls)(?: the)?(?: files| directory)?(?: in| of)?(?: ` + name + `)?`), "list_directory",
			func(m []string) reply {
				dir := bare(m[1])
				if dir == "" {
					dir = "."
				}
				return call("I will look at what is in "+dir+".", "list_directory", args{"path": dir})
			}},
		{"write FILE: TEXT", re(`(?:please )?(?:write|create|make)(?: the file| a file)? ` + nameUntilColon + `(?::| with(?: the text)?)\s*(.+)`), "write_file",
			func(m []string) reply {
				text := strings.TrimRight(bare(m[2]), "\n") + "\n"
				return call("I will write "+bare(m[1])+"; you will be asked first.", "write_file", args{"path": bare(m[1]), "content": text})
			}},
		{`edit FILE replace "OLD" with "NEW"`, re(`(?:please )?(?:edit|change)(?: the file| in)? ` + name + `:? (?:and )?replace ` + quoted + ` (?:with|by) ` + quoted), "edit_file",
			func(m []string) reply {
				edit := []args{{"old_text": bare(m[2]), "new_text": bare(m[3])}}
				return call("I will change "+bare(m[1])+"; you will see the difference and be asked first.", "edit_file", args{"path": bare(m[1]), "edits": edit})
			}},
		{"plan: STEP; STEP; ...", re(`(?:please )?plan:?\s+(.+)`), "update_plan",
			func(m []string) reply { return planned(m[1]) }},
		{"search TEXT", re(`(?:please )?(?:search|grep|find)(?: for)? ` + quoted), "search",
			func(m []string) reply { return call("I will search for it.", "search", args{"pattern": bare(m[1])}) }},
		{"run COMMAND", re(`(?:please )?(?:run|execute)(?: the command)? (.+)`), "shell",
			func(m []string) reply { return call("I will run that.", "shell", args{"command": bare(m[1])}) }},
		{"ask QUESTION", re(`ask(?: me)? (.+)`), "ask_user",
			func(m []string) reply {
				return call("I have a question.", "ask_user", args{"question": bare(m[1]), "choices": []string{"Yes", "No"}})
			}},
		{"count to N", re(`(?:please )?count(?: up)? to (\d{1,5})[.!]?`), "",
			func(m []string) reply { return reply{text: counted(m[1])} }},
	}
}

// nameUntilColon is a file name that a colon may follow directly.
const nameUntilColon = "(\"[^\"]+\"|'[^']+'|`[^`]+`|[^\\s:]+)"

// Forms returns the requests the model understands, as they are documented.
func Forms() []string {
	var forms []string
	for _, r := range requests() {
		forms = append(forms, r.form)
	}
	return forms
}

const helpText = "I am Berth's offline model. I am not a language model: I understand a few fixed requests and turn them " +
	"into real tool calls, so that you can see how a session works.\n\n" +
	"Try:\n\n" +
	"- `list` or `list src`\n" +
	"- `read README.md`\n" +
	"- `write hello.txt: Hello, harbour`\n" +
	"- `edit hello.txt replace \"Hello\" with \"Goodbye\"`\n" +
	"- `plan: look around; write a note; check it`\n" +
	"- `count to 100`, and cancel it half-way\n" +
	"- several at once, joined by `then`: `write a.txt: one then read a.txt`\n\n" +
	"For a real model set ANTHROPIC_API_KEY, OPENAI_API_KEY, GEMINI_API_KEY or OPENROUTER_API_KEY, start Ollama, " +
	"or name a provider in the configuration."

// answer decides on the next step: which part of the newest user message is
// to be done, and what came of the parts before it.
func answer(req domain.ModelRequest) reply {
	text, done, outputs := newest(req.Messages)
	steps := split(text)
	before := report(outputs)
	if done >= len(steps) {
		if before == "" {
			before = "Done."
		}
		return reply{text: before}
	}
	next := understand(steps[done], req.Tools)
	if before != "" {
		next.text = before + "\n\n" + next.text
	}
	if len(next.calls) == 0 && done+1 < len(steps) {
		// A part without a tool call ends here; the rest is answered with it.
		for _, s := range steps[done+1:] {
			more := understand(s, req.Tools)
			next.text += "\n\n" + more.text
			if next.calls = more.calls; len(next.calls) > 0 {
				break
			}
		}
	}
	return next
}

// newest returns the newest user message without the host's own notes, how
// many steps of it were done, and the outputs of the last one.
func newest(messages []domain.ModelMessage) (text string, done int, outputs []domain.ToolOutput) {
	for i := len(messages) - 1; i >= 0; i-- {
		switch m := messages[i].(type) {
		case domain.ToolOutput:
			if done == 0 {
				outputs = append([]domain.ToolOutput{m}, outputs...)
			}
		case domain.ModelReply:
			done++
		case domain.UserInput:
			return withoutNotes(domain.PromptText(m.Blocks)), done, outputs
		}
	}
	return "", done, outputs
}

// withoutNotes drops leading paragraphs in square brackets: what the host
// tells the model about the turn before.
func withoutNotes(s string) string {
	for strings.HasPrefix(s, "[") {
		note, rest, found := strings.Cut(s, "\n\n")
		if !found || !strings.HasSuffix(strings.TrimSpace(note), "]") {
			break
		}
		s = rest
	}
	return strings.TrimSpace(s)
}

// split cuts "A then B" into its parts, but not inside quotes.
func split(text string) []string {
	var parts []string
	quote, start := byte(0), 0
	for i := 0; i < len(text); i++ {
		c := text[i]
		switch {
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == '"' || c == '`':
			quote = c
		case strings.HasPrefix(strings.ToLower(text[i:min(len(text), i+6)]), " then "):
			parts = append(parts, strings.TrimRight(strings.TrimSpace(text[start:i]), ",;"))
			start = i + len(" then ")
		}
	}
	return append(parts, strings.TrimSpace(text[start:]))
}

// understand finds what one part asks for.
func understand(part string, tools []domain.ToolSpec) reply {
	for _, r := range requests() {
		m := r.match.FindStringSubmatch(part)
		if m == nil {
			continue
		}
		if r.tool != "" && !has(tools, r.tool) {
			return reply{text: fmt.Sprintf("That needs the tool `%s`, which this session does not have.", r.tool)}
		}
		return r.do(m)
	}
	return reply{text: "I am not a language model, so I did not understand that. I know: `" +
		strings.Join(Forms(), "`, `") + "`. Say `help` for examples."}
}

func has(tools []domain.ToolSpec, name string) bool {
	for _, t := range tools {
		if t.Name == name {
			return true
		}
	}
	return false
}

// args are the arguments of a call.
type args map[string]any

func call(text, tool string, a args) reply {
	data, err := json.Marshal(a)
	if err != nil { // strings, lists and maps of strings always marshal
		return reply{text: "I could not put that into a call."}
	}
	return reply{text: text, calls: []domain.ModelCall{{Name: tool, Args: data}}}
}

// bare takes quotes off.
func bare(s string) string {
	s = strings.TrimSpace(s)
	if len(s) >= 2 && strings.ContainsRune("\"'`", rune(s[0])) && s[len(s)-1] == s[0] {
		return s[1 : len(s)-1]
	}
	return s
}

// planned makes a plan whose first step is under way.
func planned(list string) reply {
	var entries []args
	for _, step := range strings.FieldsFunc(list, func(r rune) bool { return r == ';' || r == '\n' }) {
		step = strings.TrimSpace(strings.TrimLeft(strings.TrimSpace(step), "-*"))
		if step == "" {
			continue
		}
		status := "pending"
		if len(entries) == 0 {
			status = "in_progress"
		}
		entries = append(entries, args{"content": step, "status": status, "priority": "medium"})
	}
	if len(entries) == 0 {
		return reply{text: "A plan needs steps: `plan: look around; write a note`."}
	}
	return call(fmt.Sprintf("A plan of %d steps.", len(entries)), "update_plan", args{"entries": entries})
}

// counted is the numbers up to n, ten a line.
func counted(n string) string {
	last, _ := strconv.Atoi(n) // the pattern allows digits alone
	var b strings.Builder
	for i := 1; i <= last; i++ {
		b.WriteString(strconv.Itoa(i))
		switch {
		case i == last:
		case i%10 == 0:
			b.WriteByte('\n')
		default:
			b.WriteByte(' ')
		}
	}
	if last == 0 {
		return "0"
	}
	return b.String()
}

// quotedLines is how much of a tool's output is quoted.
const quotedLines = 12

// report says what came of calls.
func report(outputs []domain.ToolOutput) string {
	var parts []string
	for _, o := range outputs {
		switch {
		case o.Failed:
			parts = append(parts, "That did not work: "+strings.TrimSpace(o.Text))
		case o.Call.Name == "read_file" || o.Call.Name == "list_directory" || o.Call.Name == "search" || o.Call.Name == "shell":
			parts = append(parts, "Here is what I got:\n\n"+quote(o.Text))
		default:
			first, _, _ := strings.Cut(strings.TrimSpace(o.Text), "\n")
			parts = append(parts, first)
		}
	}
	return strings.Join(parts, "\n\n")
}

func quote(text string) string {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	more := ""
	if len(lines) > quotedLines {
		more = fmt.Sprintf("\n> … and %d more lines", len(lines)-quotedLines)
		lines = lines[:quotedLines]
	}
	return "> " + strings.Join(lines, "\n> ") + more
}
