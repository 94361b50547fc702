package offline

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/berth-dev/berth/adapters/llm"
	"github.com/berth-dev/berth/core/domain"
	"github.com/berth-dev/berth/core/ports"
	"github.com/berth-dev/berth/core/ports/porttest"
)

// tools are those of a full session, with the arguments they take.
func tools(names ...string) []domain.ToolSpec {
	schemas := map[string]string{
		"read_file": "path offset limit", "write_file": "path content", "edit_file": "path edits", "list_directory": "path",
		"move_file": "source destination", "delete_file": "path", "deliver_file": "path", "glob": "pattern path", "search": "pattern path glob",
		"shell": "command timeout_secs background network", "shell_output": "job", "shell_kill": "job",
		"ask_user": "question options", "escalate_to_human": "summary", "web_fetch": "url", "update_plan": "entries",
	}
	if len(names) == 0 {
		for name := range schemas {
			names = append(names, name)
		}
	}
	var out []domain.ToolSpec
	for _, name := range names {
		properties := make(map[string]any)
		for _, p := range strings.Fields(schemas[name]) {
			properties[p] = map[string]any{}
		}
		schema, err := json.Marshal(map[string]any{"type": "object", "properties": properties})
		if err != nil {
			panic(err)
		}
		out = append(out, domain.ToolSpec{Name: name, Schema: schema})
	}
	return out
}

// A request for a summary is not taken for one that asks for something to do.
func TestStream_RefusesTasksForLanguageModels(t *testing.T) {
	req := domain.ModelRequest{System: "You summarise.", Messages: []domain.ModelMessage{
		domain.UserInput{Blocks: []domain.Block{domain.Text{Text: "count to 3"}}},
	}}
	n := 0
	for ev, err := range New(testInfo(), 0).Stream(t.Context(), req) {
		if n++; ev != nil || !domain.HasCode(err, domain.ProviderRejected) {
			t.Errorf("it answers %v, %v", ev, err)
		}
	}
	if n != 1 {
		t.Errorf("%d events", n)
	}
}

func testInfo() domain.ModelInfo {
	return complete(domain.ModelInfo{Ref: domain.ModelRef{Provider: "offline", Model: Name}})
}

// session talks with the model: outputs answer its calls in turn.
type session struct {
	t     *testing.T
	model ports.Model
	tools []domain.ToolSpec
	msgs  []domain.ModelMessage
	run   func(domain.ModelCall) (output string, failed bool)
}

func newSession(t *testing.T) *session {
	return &session{t: t, model: New(testInfo(), 0), tools: tools(), run: func(c domain.ModelCall) (string, bool) {
		return "output of " + c.Name, false
	}}
}

// say sends a message and returns the turn: what was said, calls as
// +name{args}.
func (s *session) say(text string) string {
	s.t.Helper()
	s.msgs = append(s.msgs, domain.UserInput{Blocks: []domain.Block{domain.Text{Text: text}}})
	var b strings.Builder
	for range 60 {
		var r domain.ModelReply
		for ev, err := range s.model.Stream(s.t.Context(), domain.ModelRequest{Messages: s.msgs, Tools: s.tools}) {
			if err != nil {
				s.t.Fatalf("%q: %v", text, err)
			}
			switch ev := ev.(type) {
			case domain.TextDelta:
				r.Text += ev.Text
			case domain.CallRequested:
				ev.Call.ID = domain.CallID(fmt.Sprint("c", len(s.msgs)))
				r.Calls = append(r.Calls, ev.Call)
			}
		}
		s.msgs = append(s.msgs, r)
		b.WriteString(r.Text)
		for _, c := range r.Calls {
			fmt.Fprintf(&b, "\n+%s%s\n", c.Name, c.Args)
			out, failed := s.run(c)
			s.msgs = append(s.msgs, domain.ToolOutput{Call: c, Text: out, Failed: failed})
		}
		if len(r.Calls) == 0 {
			return b.String()
		}
	}
	s.t.Fatalf("%q: the turn does not end", text)
	return ""
}

// TestModel proves the model by the cases that hold for every model.
func TestModel(t *testing.T) {
	porttest.Model(porttest.Bubble(t), porttest.ModelHarness{Open: func(porttest.TB) (ports.Model, []domain.ModelRequest) {
		ask := func(text string) domain.ModelRequest {
			return domain.ModelRequest{Tools: tools(), Messages: []domain.ModelMessage{
				domain.UserInput{Blocks: []domain.Block{domain.Text{Text: text}}},
			}}
		}
		return New(testInfo(), DefaultPace), []domain.ModelRequest{
			ask("read README.md"), ask("plan: list; count to 3"), ask("hm?"), ask("count to 20"), ask(""), {}, porttest.SampleHistory(),
		}
	}})
}

func TestModels(t *testing.T) {
	porttest.Models(porttest.T(t), porttest.ModelsHarness{
		Known:   domain.ModelRef{Provider: "offline", Model: Name},
		Keyless: domain.ModelRef{Provider: "locked", Model: Name},
		Open: func(t porttest.TB) ports.Models {
			ms, err := llm.New(llm.Config{Providers: []llm.ProviderConfig{
				{Name: "offline", Type: "offline"},
				{Name: "locked", Type: "offline", APIKey: func() (string, error) { return "", nil }},
			}}, map[string]llm.Opener{"offline": Opener()})
			if err != nil {
				t.Fatalf("%v", err)
			}
			return ms
		},
	})
}

// TestUnderstands is the table of what a message makes the model do.
func TestUnderstands(t *testing.T) {
	for _, c := range []struct{ message, want string }{
		{"list", `+list_directory{"path":"."}`},
		{"Please list the files in src/lib.", `+list_directory{"path":"src/lib"}`},
		{"ls ..", `+list_directory{"path":".."}`},
		{"show me the files", `+list_directory{"path":"."}`},
		{"read README.md", `+read_file{"path":"README.md"}`},
		{"could you please read README.md?", `+read_file{"path":"README.md"}`},
		{"Read README.md.", `+read_file{"path":"README.md"}`},
		{"show me the file my notes.txt", `+read_file{"path":"my notes.txt"}`},
		{"read `a b.txt`", `+read_file{"path":"a b.txt"}`},
		{"read “a b.txt”", `+read_file{"path":"a b.txt"}`},
		{"read \"it's.txt\" lines 10-20", `+read_file{"limit":11,"offset":10,"path":"it's.txt"}`},
		{"read a.txt, line 7", `+read_file{"limit":1,"offset":7,"path":"a.txt"}`},
		{"read /tmp/日本 语.txt", `+read_file{"path":"/tmp/日本 语.txt"}`},
		{"write hello.txt: Hello, harbour", `+write_file{"content":"Hello, harbour\n","path":"hello.txt"}`},
		{"create a file named x.md with the text # Title", `+write_file{"content":"# Title\n","path":"x.md"}`},
		{"write a.txt: one\ntwo\n\nthree", `+write_file{"content":"one\ntwo\n\nthree\n","path":"a.txt"}`},
		{"write a.txt: first this then that", `+write_file{"content":"first this then that\n","path":"a.txt"}`},
		{`write a.txt: "list then list"`, `+write_file{"content":"list then list\n","path":"a.txt"}`},
		{"create empty.txt", `+write_file{"content":"","path":"empty.txt"}`},
		{`edit a.go replace "x := 1" with "x := 2"`, `+edit_file{"edits":[{"new_text":"x := 2","old_text":"x := 1"}],"path":"a.go"}`},
		{"edit a.go: replace foo with bar baz", `+edit_file{"edits":[{"new_text":"bar baz","old_text":"foo"}],"path":"a.go"}`},
		{"edit a.go replace `a\nb` with ``", `+edit_file{"edits":[{"new_text":"","old_text":"a\nb"}],"path":"a.go"}`},
		{"replace foo with bar in a.go", `+edit_file{"edits":[{"new_text":"bar","old_text":"foo"}],"path":"a.go"}`},
		{"move a.txt to b/c.txt", `+move_file{"destination":"b/c.txt","source":"a.txt"}`},
		{"please rename the file \"a b.txt\" to c.txt.", `+move_file{"destination":"c.txt","source":"a b.txt"}`},
		{"mv a.txt b.txt", `+move_file{"destination":"b.txt","source":"a.txt"}`},
		{"rm a.txt", `+delete_file{"path":"a.txt"}`},
		{"deliver report.pdf", `+deliver_file{"path":"report.pdf"}`},
		{"send me the file my report.pdf.", `+deliver_file{"path":"my report.pdf"}`},
		{"send a.txt to me", `+deliver_file{"path":"a.txt"}`},
		{"find *.go", `+glob{"pattern":"**/*.go"}`},
		{"find all files named main_?.go in cmd.", `+glob{"path":"cmd","pattern":"**/main_?.go"}`},
		{"glob docs/**/*.md", `+glob{"pattern":"docs/**/*.md"}`},
		{"search for a.b in src", `+search{"path":"src","pattern":"a\\.b"}`},
		{"search TODO", `+search{"pattern":"TODO"}`},
		{"grep \"in the\" in src/lib", `+search{"path":"src/lib","pattern":"in the"}`},
		{"look for TODO in *.go", `+search{"glob":"*.go","pattern":"TODO"}`},
		{"find the text Hello", `+search{"pattern":"Hello"}`},
		{`search /func \w+\(/ in src`, `+search{"path":"src","pattern":"func \\w+\\("}`},
		{"search /", `+search{"pattern":"/"}`},
		{"look at me", "did not understand"},
		{"run go test ./...", `+shell{"command":"go test ./..."}`},
		{"run `ls -la`", `+shell{"command":"ls -la"}`},
		{"Please run `ls -la`.", `+shell{"command":"ls -la"}`},
		{`run "echo 'it'"`, `+shell{"command":"echo 'it'"}`},
		{`run "my prog" "an argument"`, `+shell{"command":"\"my prog\" \"an argument\""}`},
		{"run `date` `whoami`", "+shell{\"command\":\"`date` `whoami`\"}"},
		{"run:\n```sh\nmake\nmake test\n```", `+shell{"command":"make\nmake test"}`},
		{"execute the command: make -k", `+shell{"command":"make -k"}`},
		{"$ make", `+shell{"command":"make"}`},
		{`$ "my prog" in the background`, `+shell{"command":"\"my prog\" in the background"}`},
		{"run make serve in the background", `+shell{"background":true,"command":"make serve"}`},
		{"run `git fetch` with the network, for at most 30 seconds.", `+shell{"command":"git fetch","network":true,"timeout_secs":30}`},
		{"run if true; then ls; fi", `+shell{"command":"if true; then ls; fi"}`},
		{"run make; then list", `+shell{"command":"make"}`},
		{"run the tests", "cannot tell which command"},
		{"run", "I understand this one as `run COMMAND`"},
		{"show the output of job 3", `+shell_output{"job":"3"}`},
		{"stop job 3.", `+shell_kill{"job":"3"}`},
		{"fetch https://example.com/a?b=c.", `+web_fetch{"url":"https://example.com/a?b=c"}`},
		{"fetch example.com", `+web_fetch{"url":"https://example.com"}`},
		{"read http://example.com", `+web_fetch{"url":"http://example.com"}`},
		{"read\n\n[Link: page] https://example.com/", `+web_fetch{"url":"https://example.com/"}`},
		{"ask Shall we go on?", `+ask_user{"options":["Yes","No"],"question":"Shall we go on?"}`},
		{"ask me Which colour? choices red, green or blue", `+ask_user{"options":["red","green","blue"],"question":"Which colour?"}`},
		{`ask "Which one?" with the options "a", b, b.`, `+ask_user{"options":["a","b"],"question":"Which one?"}`},
		{"ask Which? choices red", "needs two choices or more"},
		{"escalate: the build is broken", `+escalate_to_human{"summary":"the build is broken"}`},
		{"make a plan: think; write a book", `+update_plan{"entries":[{"content":"think","priority":"medium","status":"pending"},{"content":"write a book","priority":"medium","status":"pending"}]}`},
		{"read\n\n[Link: README.md] file:///srv/README.md", `+read_file{"path":"/srv/README.md"}`},
		{"explain\n\n<resource uri=\"file:///a%20b.txt\" type=\"text/plain\">\nx\n</resource>", `+read_file{"path":"/a b.txt"}`},
		{"[The previous turn was cancelled before it ended.]\n\nread a.txt", `+read_file{"path":"a.txt"}`},
		{"[client event note] {\"a\":1}\n\nlist", `+list_directory{"path":"."}`},
		{"count to 12", "1 2 3 4 5 6 7 8 9 10\n11 12"},
		{"count to 0", "0"},
		{"help", "not a language model"},
		{"Hello there!", "not a language model"},
		{"What can you do?", "not a language model"},
		{"explain what you can do", "not a language model"},
		{"explain", "not a language model"},
		{"/help", "not a language model"},
		{"/compact now", "There is no command `/compact`"},
		{"Lies bitte die Datei", "not a language model, so I did not understand"},
		{"edit a.txt", "I understand this one as `edit FILE replace"},
		{"plan: ;;", "A plan has 1 to 50 steps"},
		{"history", "first message"},
		{"   ", "nothing that I could act on"},
		{"```", "did not understand"},
		{"\"", "did not understand"},
		{"[", "did not understand"},
	} {
		if got := newSession(t).say(c.message); !strings.Contains(got, c.want) {
			t.Errorf("%q:\n%s\nwant %s", c.message, got, c.want)
		}
	}
}

// TestTurns are whole turns, with what the tools gave.
func TestTurns(t *testing.T) {
	for _, c := range []struct {
		name, message string
		outputs       []string // "!" begins a failure
		want          []string // in this order
	}{
		{"an output is quoted", "read a.txt", []string{"[a.txt, lines 1-2 of 2]\none\ntwo\n"}, []string{"I will read `a.txt`.", "+read_file", "[a.txt, lines 1-2 of 2]\n\n```\none\ntwo\n```"}},
		{"a long one in part", "read a.txt", []string{strings.Repeat("line\n", 40)}, []string{"line\n```\n\n… and 28 lines more."}},
		{"a fence in it is kept apart", "read a.md", []string{"```go\nx\n```\n"}, []string{"````\n```go\nx\n```\n````"}},
		{"an empty one", "read a.txt", []string{"[empty]\n"}, []string{"[empty]\n\nThere is nothing in it."}},
		{"a failure is told", "read a.txt", []string{"!no such file\nhave you meant b.txt?"}, []string{"That did not work: no such file have you meant b.txt?"}},
		{"one after the other", "write a.txt: one then read a.txt and then list", []string{"Wrote a.txt\n+1", "one\n", "a.txt\n"},
			[]string{"I will write `a.txt`", `+write_file{"content":"one\n"`, "Wrote a.txt\n\nI will read `a.txt`", "+read_file", "```\none\n```\n\nI will look at", "+list_directory", "```\na.txt\n```"}},
		{"a line each", "list src\ncount to 3\nread a.txt", []string{"x", "y"}, []string{"+list_directory", "```\nx\n```\n\n1 2 3\n\nI will read", "+read_file", "```\ny\n```"}},
		{"a failure ends it", "write a.txt: one then read a.txt", []string{"!Not allowed: the user rejected this call. Do not try the same thing again another way; ask or go on without it."}, []string{"+write_file", "That was not allowed: the user rejected this call.\n\nI stop here; what was to follow is left undone"}},
		{"a plan is carried out", "plan: list; count to 3; read a.txt", []string{"ok", "listing", "ok", "ok", "text", "ok"},
			[]string{`"list","priority":"medium","status":"in_progress"}`, "+list_directory", "listing", `"list","priority":"medium","status":"completed"},{"content":"count to 3","priority":"medium","status":"in_progress"`,
				"1 2 3", `"count to 3","priority":"medium","status":"completed"}`, "+read_file", "text", `"read a.txt","priority":"medium","status":"completed"`, "The plan is carried out."}},
		{"a plan of other things is kept", "plan: think; list", []string{"ok"}, []string{`"think","priority":"medium","status":"pending"`, "The plan is kept"}},
		{"facts of a file", "explain a.md", []string{"[a.md]\n\n# Title\nsome words here\n## Part\n"}, []string{"cannot explain", "+read_file", "`a.md` has 4 lines and 7 words. It begins with `# Title`", "- `# Title`\n- `## Part`"}},
		{"a command that ends well", "run make", []string{"[exit code 0, 1.5 s]\ncc a.c\n"}, []string{"I will run `make`; you may be asked first.", "+shell", "It ended well: exit code 0, after 1.5 s.\n\n```\ncc a.c\n```"}},
		{"one that fails, and what was to follow", "run make then list", []string{"![exit code 2, 20 ms]\nno rule\n[3 bytes of it were no text and are not shown]\n"},
			[]string{"It failed: exit code 2, after 20 ms.\n\n```\nno rule\n[3 bytes of it were no text and are not shown]\n```", "what was to follow is left undone"}},
		{"one that a signal ended", "run make", []string{"![exit code 139 (what SIGSEGV leaves), 20 ms]\n(no output)"}, []string{"It failed: exit code 139 (what SIGSEGV leaves), after 20 ms.\n\nIt wrote nothing."}},
		{"one that took too long", "run make", []string{"![timed out after 2m0s and was ended, killed by SIGTERM; what it wrote until then follows]\nx"}, []string{"Timed out after 2m0s and was ended, killed by SIGTERM; what it wrote until then follows.\n\n```\nx\n```"}},
		{"one that was not run", "run make", []string{"!Nothing was run: the command could not be started"}, []string{"That did not work: Nothing was run: the command"}},
		{"one that was not allowed", "run make then list", []string{"!Not allowed: the profile denies this. Do not try it another way."}, []string{"That was not allowed: the profile denies this.\n\nI stop here"}},
		{"of a long output both ends", "run seq 20", []string{"[exit code 0, 1 ms]\n1\n2\n3\n4\n" + strings.Repeat("x\n", 8) + "13\n14\n15\n16\n17\n18\n19\n20\n"},
			[]string{"```\n1\n2\n3\n4\n```\n\n… and 8 lines more.\n\n```\n13\n14"}},
		{"in the background", "run make serve in the background then output of job 1 then stop job 1",
			[]string{"[job 1 is running; its output: shell_output]\n(no output)", "[job 1 has been running for 2.0 s; since: 5]\nhello\n", "[job 1: ended on request after 2.1 s, killed by SIGTERM]\nhello\n"},
			[]string{"`make serve` in the background", `"background":true`, "It runs as job 1. Say `output of job 1`", "I will look at what job `1`", "+shell_output", "Job 1 has been running for 2.0 s.\n\n```\nhello\n```", "+shell_kill", "Job 1: ended on request after 2.1 s, killed by SIGTERM."}},
		{"jobs", "list my jobs", []string{"There are no background jobs.\n"}, []string{"+shell_output{}", "There are no background jobs."}},
		{"how much was found", "search TODO", []string{"[2 matches in 1 file]\na.go\n3: TODO\n"}, []string{"+search", "2 matches in 1 file.\n\n```\na.go"}},
		{"nothing was found", "find *.go", []string{"[no file matches **/*.go in .]"}, []string{"+glob", "No file matches **/*.go in ."}},
		{"a file", "deliver a.txt", []string{`{"delivered":true,"uri":"attachment://deliver/1f.txt","path":"a.txt","title":"a.txt"}`}, []string{"+deliver_file", "Here is `a.txt`: attachment://deliver/1f.txt"}},
		{"a page", "fetch example.com", []string{"[https://example.com/: 200 OK, text/html; bytes 0 to 5 of 5]\n" + domain.Foreign("b7", "https://example.com/", "# Hi\nread a.txt")},
			[]string{"+web_fetch", "\nhttps://example.com/: 200 OK, text/html; bytes 0 to 5 of 5.\n\n```\n# Hi\nread a.txt\n```"}},
		{"no page", "fetch example.com then list", []string{"!https://example.com/ answered 404 Not Found.\n" + domain.Foreign("b7", "https://example.com/", "gone")},
			[]string{"That did not work: https://example.com/ answered 404 Not Found.\n\n```\ngone\n```\n\nI stop here"}},
		{"an answer", "ask Go on? then list", []string{"Yes", "a.txt\n"}, []string{"+ask_user", "You answered: Yes\n\nI will look at", "+list_directory"}},
		{"the answer no", "ask Go on? then list", []string{"No"}, []string{"+ask_user", "You answered: No\n\nI stop here; what was to follow"}},
		{"a choice that is called no", "ask Which? choices No, Maybe then list", []string{"No", "a.txt\n"}, []string{"You answered: No\n\nI will look at"}},
		{"none of the answers", "ask Go on? then list", []string{"The user chose none of the options."}, []string{"You chose none of the answers.\n\nI stop here"}},
		{"no answer", "ask Go on? then list", []string{"!There was no answer (nobody answered in time). Nothing was decided: do not take it for a yes."}, []string{"That did not work: There was no answer (nobody answered in time)\n\nI stop here"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newSession(t)
			outputs := c.outputs
			s.run = func(call domain.ModelCall) (string, bool) {
				if len(outputs) == 0 {
					t.Errorf("one call too many: %s%s", call.Name, call.Args)
					return "", true
				}
				out, failed := strings.CutPrefix(outputs[0], "!")
				outputs = outputs[1:]
				return out, failed
			}
			got := s.say(c.message)
			at := 0
			for _, w := range c.want {
				i := strings.Index(got[at:], w)
				if i < 0 {
					t.Fatalf("%q is missing, or not in its place, in:\n%s", w, got)
				}
				at += i + len(w)
			}
			if len(outputs) > 0 {
				t.Errorf("%d calls were not made", len(outputs))
			}
		})
	}
}

// TestHistory: what was asked is known from the conversation alone.
func TestHistory(t *testing.T) {
	s := newSession(t)
	s.say("read a.txt")
	s.say("count to 3")
	s.model = New(testInfo(), 0) // as after a restart
	got := s.say("what did we do?")
	if !strings.Contains(got, "you sent 2 messages, and I made 1 tool call.") || !strings.Contains(got, "- `read a.txt`\n- `count to 3`") {
		t.Errorf("%s", got)
	}
	for range 30 {
		s.say("count to 1")
	}
	if got := s.say("history"); !strings.Contains(got, "you sent 33 messages") || strings.Count(got, "\n- ") != 20 {
		t.Errorf("%s", got)
	}
}

// TestWithoutTools: a request whose tool is missing is said to be so, and one
// that fits a tool of another make is made to fit.
func TestWithoutTools(t *testing.T) {
	s := newSession(t)
	s.tools = tools("read_file")
	if got := s.say("run ls"); !strings.Contains(got, "needs the tool `shell`, which this session does not have") {
		t.Errorf("%s", got)
	}
	if got := s.say("help"); !strings.Contains(got, "- `read README.md`") || strings.Contains(got, "git status") || strings.Contains(got, "write") {
		t.Errorf("%s", got)
	}
	if got := s.say("run ls in the background"); strings.Contains(got, "+shell") {
		t.Errorf("%s", got)
	}
	if got := s.say("plan: read a.txt"); !strings.Contains(got, "needs the tool `update_plan`") {
		t.Errorf("%s", got)
	}
	s.tools = []domain.ToolSpec{{Name: "read_file", Schema: []byte(`{"properties":{"file_path":{}}}`)}, {Name: "shell", Schema: []byte(`nonsense`)}}
	if got := s.say("read a.txt line 3 then run ls"); !strings.Contains(got, `+read_file{"file_path":"a.txt"}`) || !strings.Contains(got, `+shell{"command":"ls"}`) {
		t.Errorf("%s", got)
	}
	if got := s.say("run ls in the background"); strings.Contains(got, "+shell") || !strings.Contains(got, "cannot run a command like that") {
		t.Errorf("%s", got)
	}
}

// TestPage: every message of the documentation does what its row says, and
// every request is documented.
func TestPage(t *testing.T) {
	page, err := os.ReadFile("../../../docs/offline-model.md")
	if err != nil {
		t.Fatal(err)
	}
	row := regexp.MustCompile("(?m)^\\| `([^|]+)` \\| (–|`[a-z_]+`) \\| (.+) \\|$")
	used := make(map[string]bool)
	g := newGrammar()
	rows := row.FindAllStringSubmatch(string(page), -1)
	for _, r := range rows {
		message, tool := r[1], strings.Trim(r[2], "`")
		got := newSession(t).say(message)
		_, args, called := strings.Cut(got, "\n+")
		name, _, _ := strings.Cut(args, "{")
		switch {
		case tool == "–" && called:
			t.Errorf("%q calls %s", message, name)
		case tool != "–" && name != tool:
			t.Errorf("%q calls %q, the page says %q", message, name, tool)
		case strings.Contains(got, "did not understand"):
			t.Errorf("%q is not understood", message)
		}
		for _, part := range g.split(message) {
			if req := g.find(part); req != nil {
				used[req.form] = true
			}
		}
	}
	if len(rows) < 20 {
		t.Errorf("the page has %d rows that could be read", len(rows))
	}
	for _, r := range g.requests {
		if !used[r.form] {
			t.Errorf("the page has no example of %q", r.form)
		}
	}
}

// TestPace: words come one by one, and a cancel ends a pause.
func TestPace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := New(testInfo(), 10*time.Millisecond)
		req := domain.ModelRequest{Messages: []domain.ModelMessage{domain.UserInput{Blocks: []domain.Block{domain.Text{Text: "count to 100"}}}}}
		began, words := time.Now(), 0
		for ev, err := range m.Stream(t.Context(), req) {
			if err != nil {
				t.Fatal(err)
			}
			if _, ok := ev.(domain.TextDelta); ok {
				words++
			}
		}
		if took := time.Since(began); words != 100 || took != time.Second {
			t.Errorf("%d words in %s", words, took)
		}
	})
}

// FuzzMessages: whatever is said gets a legal answer.
func FuzzMessages(f *testing.F) {
	for _, s := range []string{"list then read a", "write a: \"b\nplan: x; list", "edit a replace ` with `", "[Link: x] file:///a\n\n[", "read \xff"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		req := domain.ModelRequest{Tools: tools(), Messages: []domain.ModelMessage{domain.UserInput{Blocks: []domain.Block{domain.Text{Text: text}}}}}
		finished := false
		for ev, err := range New(testInfo(), 0).Stream(t.Context(), req) {
			if err != nil || finished {
				t.Fatalf("%q: %v, %v", text, ev, err)
			}
			switch ev := ev.(type) {
			case domain.TextDelta:
				if ev.Text == "" {
					t.Fatalf("%q: an empty piece", text)
				}
			case domain.CallRequested:
				if !json.Valid(ev.Call.Args) {
					t.Fatalf("%q: arguments %q", text, ev.Call.Args)
				}
			case domain.Finish:
				finished = true
			}
		}
		if !finished {
			t.Fatalf("%q: no finish", text)
		}
	})
}
