package offline

import (
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
	// failure is report for a call that failed; nil quotes it in one line.
	failure func(domain.ToolOutput) string
	// stops reports whether what follows is to be left undone although the
	// call succeeded; nil never does.
	stops func(domain.ToolOutput) bool
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
		{"run COMMAND", "shell", re(`(?:(?:run|execute|exec)(?: the command)?(?::|\s)|(\$)\s)\s*` + rest), command},
		{"output of job JOB", "shell_output", re(`(?:show(?: me)? |read )?(?:the )?output of(?: the)?(?: job)? ` + job), output},
		{"jobs", "shell_output", re(`(?:(?:list|show)(?: me)? (?:the|all|my) )?(?:background )?jobs[.!?]*`), running},
		{"stop job JOB", "shell_kill", re(`(?:stop|kill)(?: the)? job ` + job), kill},
		{"list [DIRECTORY]", "list_directory", re(`(?:(?:list|ls|dir)(?: the)?(?: (?:files|directory|folder|contents))?|show(?: me)?(?: the)? (?:files|directory|folder))(?: (?:in|of|under))?(?: ` + rest + `)?`), list},
		{"plan: STEP; STEP; …", "update_plan", re(`(?:make a |update the )?plan(?: to)?:?\s+` + rest), nil},
		{"fetch ADDRESS", "web_fetch", re(`(?:(?:fetch|download)(?: the)?(?: page| address)? (\S+)|(?:read|open|show|get)(?: me)?(?: the)?(?: page| address)? (["']?https?://\S+))`), fetch},
		{"explain FILE", "read_file", re(`(?:explain|describe|summari[sz]e)(?: the)?(?: file)? ` + rest), explain},
		{"read FILE [lines A-B]", "read_file", re(`(?:read|show|open|cat|print)(?: me)?(?: the)?(?: file)? (.+?)(?:,? lines? (\d{1,7})(?: ?(?:-|–|to) ?(\d{1,7}))?)?`), read},
		{`edit FILE replace "OLD" with "NEW"`, "edit_file", re(`(?:edit|change|update)(?: the file| in)? ` + name + `[:,]? (?:and )?replace ` + value + ` (?:with|by) (.*)`), edit},
		{`replace "OLD" with "NEW" in FILE`, "edit_file", re(`replace ` + value + ` (?:with|by) ` + value + ` in(?: the file)? ` + rest), editIn},
		{"write FILE: TEXT", "write_file", re(`(?:write|create|make)(?: to)?(?: (?:the|a))?(?: new)?(?: file)?(?: named| called)? ` + name + `(?::| with(?: the)?(?: text| content)?:?)\s*(.+)`), write},
		{"create FILE", "write_file", re(`(?:create|make|touch)(?: (?:the|a|an))?(?: new)?(?: empty)?(?: file)?(?: named| called)? ` + rest), create},
		{"move FILE to FILE", "move_file", re(`(?:move|rename|mv)(?: the)?(?: file)? (?:` + value + ` (?:to|into|as) ` + rest + `|` + name + ` ` + name + `)`), move},
		{"delete FILE", "delete_file", re(`(?:delete|remove|rm)(?: the)?(?: file)? ` + rest), remove},
		{"deliver FILE", "deliver_file", re(`(?:deliver|send|attach)(?: (?:me|us))?(?: the)?(?: file)? ` + value + `(?: to (?:me|us|the user))?[.!]?`), deliver},
		{"search TEXT [in PLACE]", "search", re(`(?:(?:search|grep)(?: for)?|look for|find(?: the)? text) ` + value + `(?: (?:in|under) ` + rest + `)?`), search},
		{"find PATTERN [in DIRECTORY]", "glob", re(`(?:find|glob)(?: all)?(?: the)?(?: files?)?(?: named| called| like)? ` + value + `(?: (?:in|under) ` + rest + `)?`), find},
		{"ask QUESTION [choices A, B or C]", "ask_user", re(`ask(?: (?:me|the user))?:? ` + value + `(?:,? (?:with )?(?:the )?(?:choices|options):? ` + rest + `)?`), ask},
		{"escalate: MESSAGE", "escalate_to_human", re(`(?:escalate(?: to a human)?|call a human)(?::|\s)\s*` + rest), escalate},
		{"count to N", "", re(`count(?: slowly)?(?: up)? to (\d{1,5})[.!]?`), count},
	}}
}

// job is how a background command is named in a request.
const job = `(\S+?)[.!?]?`

// helpLines are the examples of help with the tools they need.
var helpLines = [...]struct{ tool, line string }{
	{"list_directory", "- `list` or `list src`\n"},
	{"read_file", "- `read README.md`\n"},
	{"write_file", "- `write hello.txt: Hello, harbour`\n"},
	{"edit_file", "- `edit hello.txt replace \"Hello\" with \"Goodbye\"`\n"},
	{"glob", "- `find *.md`\n"},
	{"search", "- `search harbour in *.txt`\n"},
	{"shell", "- `run git status`, or `$ git status`\n"},
	{"ask_user", "- `ask Which colour? choices red, green or blue`\n"},
	{"update_plan", "- `plan: list; count to 20; read hello.txt`\n"},
	{"", "- `count to 500`, and cancel it half-way\n"},
	{"write_file", "- several at once: `write a.txt: one then read a.txt`\n"},
}

// help says what the model is, with examples for the tools there are.
func help(_ []string, tools toolbox) action {
	var b strings.Builder
	b.WriteString("I am Berth's offline model. I am **not a language model**: I understand a few fixed requests and turn them " +
		"into real tool calls, so that you can see how a session works before you own a key.\n\nTry one of these:\n\n")
	for _, l := range helpLines {
		if _, ok := tools[l.tool]; ok || l.tool == "" {
			b.WriteString(l.line)
		}
	}
	b.WriteString("\nFor a real model run `berth login`, set ANTHROPIC_API_KEY, OPENAI_API_KEY, GEMINI_API_KEY or OPENROUTER_API_KEY, start Ollama, " +
		"or name a provider in the configuration.")
	return action{say: b.String()}
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
