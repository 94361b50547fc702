package offline

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/berth-dev/berth/core/domain"
)

// request is one kind of request the model understands.
type request struct {
	form    string // as help and the page show it
	tool    string // the tool it needs; "" for none
	match   *regexp.Regexp
	perform func(m []string, tools toolbox) action
}

// action is one thing to do: words, and a call when something is to be done
// by a tool.
type action struct {
	thought string
	say     string
	call    *domain.ModelCall
	// report says what came of the call; nil quotes the output.
	report func(domain.ToolOutput) string
}

// grammar is all the model understands.
type grammar struct{ requests []request }

// Pieces of patterns. A name may be quoted; unquoted it is the rest of the
// request. A value is quoted, or as short as the pattern allows.
const (
	polite = `(?:(?:please|could you|can you|would you)\s+)*`
	rest   = `(.+)`
	name   = `("[^"]+"|'[^']+'|` + "`[^`]+`" + `|“[^”]+”|[^\s:]+)`
	value  = `("[^"]*"|'[^']*'|` + "`[^`]*`" + `|“[^”]*”|.+?)`
)

// newGrammar compiles the patterns, in the order in which they are tried.
func newGrammar() grammar {
	re := func(s string) *regexp.Regexp { return regexp.MustCompile(`(?is)^\s*` + polite + s + `\s*$`) }
	return grammar{[]request{
		{"help", "", re(`(?:/?help|hi|hello|hey|\?|(?:explain )?what (?:can you|do you|you can) (?:do|understand)|what are you|who are you|explain(?: yourself)?)(?: there)?[.!?]*`), help},
		{"history", "", re(`(?:history|what did (?:we|i) (?:do|say|ask)(?: before| so far)?|what have we done)[.!?]*`), nil},
		{"list [DIRECTORY]", "list_directory", re(`(?:(?:list|ls|dir)(?: the)?(?: (?:files|directory|folder|contents))?|show(?: me)?(?: the)? (?:files|directory|folder))(?: (?:in|of|under))?(?: ` + rest + `)?`), list},
		{"plan: STEP; STEP; …", "update_plan", re(`(?:make a |update the )?plan(?: to)?:?\s+` + rest), nil},
		{"explain FILE", "read_file", re(`(?:explain|describe|summari[sz]e)(?: the)?(?: file)? ` + rest), explain},
		{"read FILE [lines A-B]", "read_file", re(`(?:read|show|open|cat|print)(?: me)?(?: the)?(?: file)? (.+?)(?:,? lines? (\d{1,7})(?: ?(?:-|–|to) ?(\d{1,7}))?)?`), read},
		{`edit FILE replace "OLD" with "NEW"`, "edit_file", re(`(?:edit|change|update)(?: the file| in)? ` + name + `[:,]? (?:and )?replace ` + value + ` (?:with|by) (.*)`), edit},
		{`replace "OLD" with "NEW" in FILE`, "edit_file", re(`replace ` + value + ` (?:with|by) ` + value + ` in(?: the file)? ` + rest), editIn},
		{"write FILE: TEXT", "write_file", re(`(?:write|create|make)(?: to)?(?: (?:the|a))?(?: new)?(?: file)?(?: named| called)? ` + name + `(?::| with(?: the)?(?: text| content)?:?)\s*(.+)`), write},
		{"create FILE", "write_file", re(`(?:create|make|touch)(?: (?:the|a|an))?(?: new)?(?: empty)?(?: file)?(?: named| called)? ` + rest), create},
		{"move FILE to FILE", "move_file", re(`(?:move|rename|mv)(?: the)?(?: file)? ` + value + ` (?:to|into|as) ` + rest), move},
		{"delete FILE", "delete_file", re(`(?:delete|remove|rm)(?: the)?(?: file)? ` + rest), remove},
		{"find PATTERN", "glob", re(`(?:find|glob)(?: files?)?(?: named| called| like)? ` + rest), find},
		{"search TEXT [in DIRECTORY]", "search", re(`(?:search|grep|look)(?: for)? ` + value + `(?: (?:in|under) ` + name + `)?`), search},
		{"run COMMAND", "shell", re(`(?:run|execute|exec)(?: the)?(?: command)?:? ` + rest), command},
		{"ask QUESTION", "ask_user", re(`ask(?: me)?:? ` + rest), ask},
		{"count to N", "", re(`count(?: slowly)?(?: up)? to (\d{1,5})[.!]?`), count},
	}}
}

const helpText = "I am Berth's offline model. I am **not a language model**: I understand a few fixed requests and turn them " +
	"into real tool calls, so that you can see how a session works before you own a key.\n\nTry one of these:\n\n" +
	"- `list` or `list src`\n" +
	"- `read README.md`\n" +
	"- `write hello.txt: Hello, harbour`\n" +
	"- `edit hello.txt replace \"Hello\" with \"Goodbye\"`\n" +
	"- `plan: list; count to 20; read hello.txt`\n" +
	"- `count to 500`, and cancel it half-way\n" +
	"- several at once: `write a.txt: one then read a.txt`\n\n" +
	"For a real model set ANTHROPIC_API_KEY, OPENAI_API_KEY, GEMINI_API_KEY or OPENROUTER_API_KEY, start Ollama, " +
	"or name a provider in the configuration."

func help([]string, toolbox) action { return action{say: helpText} }

func read(m []string, tools toolbox) action {
	path := fileName(m[1])
	first, _ := strconv.Atoi(m[2]) // digits alone, by the pattern
	last, _ := strconv.Atoi(m[3])
	values := []role{{paths, path}}
	say := "I will read " + code(path) + "."
	if first > 0 {
		values = append(values, role{offsets, first})
		say = fmt.Sprintf("I will read %s from line %d.", code(path), first)
		if last == 0 {
			last = first
		}
		values = append(values, role{limits, max(1, last-first+1)})
	}
	return action{say: say, call: tools.call("read_file", values...)}
}

func list(m []string, tools toolbox) action {
	dir := fileName(m[1])
	if dir == "" {
		dir = "."
	}
	return action{say: "I will look at what is in " + code(dir) + ".", call: tools.call("list_directory", role{paths, dir})}
}

func write(m []string, tools toolbox) action {
	path, text := fileName(m[1]), strings.TrimRight(bare(m[2]), "\n")+"\n"
	return action{
		say:  "I will write " + code(path) + ". You will see the change and be asked first, unless this session may write freely.",
		call: tools.call("write_file", role{paths, path}, role{contents, text}), report: firstLine,
	}
}

func create(m []string, tools toolbox) action {
	path := fileName(m[1])
	return action{
		say:  "I will create " + code(path) + ", without content. To give it some: " + code("write "+path+": some text") + ".",
		call: tools.call("write_file", role{paths, path}, role{contents, ""}), report: firstLine,
	}
}

func edit(m []string, tools toolbox) action {
	path := fileName(m[1])
	return action{
		say: "I will change " + code(path) + ". You will see the difference and be asked first, unless this session may write freely.",
		call: tools.call("edit_file", role{paths, path},
			role{edits, []map[string]any{{"old_text": bare(m[2]), "new_text": bare(m[3])}}}),
		report: firstLine,
	}
}

func editIn(m []string, tools toolbox) action { return edit([]string{"", m[3], m[1], m[2]}, tools) }

func move(m []string, tools toolbox) action {
	from, to := fileName(m[1]), fileName(m[2])
	return action{say: "I will move " + code(from) + " to " + code(to) + ".", call: tools.call("move_file", role{froms, from}, role{tos, to}), report: firstLine}
}

func remove(m []string, tools toolbox) action {
	path := fileName(m[1])
	return action{say: "I will delete " + code(path) + ".", call: tools.call("delete_file", role{paths, path}), report: firstLine}
}

func find(m []string, tools toolbox) action {
	return action{say: "I will look for files like " + code(bare(m[1])) + ".", call: tools.call("glob", role{patterns, bare(m[1])})}
}

func search(m []string, tools toolbox) action {
	text, values := bare(m[1]), []role(nil)
	// What is sought is taken literally; the tool takes a pattern.
	values = append(values, role{patterns, regexp.QuoteMeta(text)})
	if m[2] != "" {
		values = append(values, role{paths, fileName(m[2])})
	}
	return action{say: "I will search for " + code(text) + ".", call: tools.call("search", values...)}
}

func command(m []string, tools toolbox) action {
	return action{say: "I will run that; you may be asked first.", call: tools.call("shell", role{commands, bare(m[1])})}
}

func ask(m []string, tools toolbox) action {
	return action{
		say:  "I have a question.",
		call: tools.call("ask_user", role{questions, bare(m[1])}, role{choices, []string{"Yes", "No"}}),
		report: func(o domain.ToolOutput) string {
			return "You answered: " + shorten(o.Text, 200)
		},
	}
}

// count streams the numbers up to n, ten a line: something to cancel.
func count(m []string, _ toolbox) action {
	last, _ := strconv.Atoi(m[1]) // digits alone, by the pattern
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
		return action{say: "0"}
	}
	return action{say: b.String()}
}
