package transcript

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// everything uses every statement.
const everything = `# A comment.

> initialize {"protocolVersion":1,"clientCapabilities":{}}
< {"protocolVersion":1}
> session/new
< {"sessionId":"$sid"}
> session/prompt @p {"sessionId":"$sid"}
>! note
<! session/update {"update":{"content":{"text":"Let me look."}}}
says "Let me \"look\".\n"
thinks "hm"
<? session/request_permission @q {"toolCall":{"toolCallId":"$call"}}
>= @q {"outcome":{"outcome":"selected"}}
<? fs/read
>= error {"code":-1,"message":"no"}
any {
	< @p error {"code":-32602}
	# inside
	{
		<? a @x
		>= @x
		<! b
	}
}
>= #"nobody" {}
> m #"my id" {"a":1}
< #"my id"
>> {
< #null error {"code":-32700}
raw "\x00\xff\n"
quiet
strict
loose
ambient
skip session/update {"update":{"sessionUpdate":"agent_thought_chunk"}}
hold
release
after 1m30s
client second
> m
< error
client main
eof
end
exit 0
kill
restart
drop
reconnect
cut
`

func TestParse_PrintsTheSame(t *testing.T) {
	s, err := Parse(everything)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(everything, s.String()); d != "" {
		t.Error(d)
	}
}

func TestParse_LongJSON(t *testing.T) {
	s, err := Parse("> m @a {\r\n  \"text\": \"a } \\\" {\",\r\n  \"list\": [\r\n    1,\r\n    2 ]\r\n}\r\n  <   @a   {}  \n")
	if err != nil {
		t.Fatal(err)
	}
	want := "> m @a {\"text\":\"a } \\\" {\",\"list\":[1,2]}\n< @a {}\n"
	if got := s.String(); got != want {
		t.Errorf("got %s", got)
	}
	if s.Lines[1].N != 7 {
		t.Errorf("the second line is number %d, want 7", s.Lines[1].N)
	}
}

func TestParse_Mistakes(t *testing.T) {
	for _, tt := range []struct {
		name, in string
		line     int
		msg      string
	}{
		{"unknown word", "> a\n<-- b", 2, `"<--" is no statement`},
		{"no method", ">", 1, `"" is no method`},
		{"JSON for a method", "> {}", 1, `"{}" is no method`},
		{"bad JSON", "> m {a:1}", 1, "is not valid JSON"},
		{"repeated member", `> m {"a":1,"a":2}`, 1, "is not valid JSON"},
		{"open JSON at the end", "> m {\n\n", 1, "is not valid JSON"},
		{"text behind JSON", "> m {} x", 1, "is not valid JSON"},
		{"bad label", "> m @a/b", 1, `"a/b" is no label`},
		{"bad id", "> m #x", 1, "no id"},
		{"id of the agent", "<? m #1", 1, "use a label"},
		{"nothing to answer", "< {}", 1, "no unlabelled request is open"},
		{"two to answer", "> a\n> b\n< {}", 3, "more than one unlabelled request is open"},
		{"unknown label", "> a @x\n< @y", 2, "has the label @y"},
		{"answered before", "> a @x\n< @x\n< @x", 3, "has the label @x"},
		{"answer without question", ">= {}", 1, `no unlabelled "<?" is open`},
		{"label in use", "> a @x\n<? b @x", 2, "still in use"},
		{"labels do not outlive a connection", "> a @x\nrestart\n< @x", 3, "has the label @x"},
		{"nor one that comes again", "> a @x\nreconnect\n< @x", 3, "has the label @x"},
		{"another client's label", "> a @x\nclient b\n< @x", 3, "has the label @x"},
		{"open block", "any {\n<! m\n", 1, "not closed"},
		{"block on one line", "any { <! m }", 1, `write "any {"`},
		{"closing brace alone", "}", 1, `"}" is no statement`},
		{"word inside any", "any {\nquiet\n}", 2, "no place inside any"},
		{"sending inside any", "any {\n> m\n}", 2, "no place inside any"},
		{"any inside any", "any {\nany {\n}\n}", 2, "write"},
		{"says without quotes", "says hello", 1, "quoted string"},
		{"says in back quotes", "says `hello`", 1, "quoted string"},
		{"quiet with words", "quiet please", 1, "does not belong"},
		{"exit without status", "exit", 1, "status"},
		{"after without duration", "after 5", 1, "duration"},
		{"after no time", "after 0s", 1, "duration"},
		{"client without name", "client", 1, "name"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s, err := Parse(tt.in)
			var mistake *Error
			if !errors.As(err, &mistake) {
				t.Fatalf("accepted as %q (%v)", s, err)
			}
			if mistake.Line != tt.line || !strings.Contains(mistake.Msg, tt.msg) {
				t.Errorf("got line %d: %s; want line %d: … %s …", mistake.Line, mistake.Msg, tt.line, tt.msg)
			}
		})
	}
}

func FuzzScript(f *testing.F) {
	f.Add(everything)
	for line := range strings.Lines(everything) {
		f.Add(line)
	}
	f.Add("any {\n{\n<? m\n>= {}\n}\n< #1\n}\n>>   x  \n> a #{\"b\": [1 , 2]} [1,\n2]")
	f.Fuzz(func(t *testing.T, text string) {
		s, err := Parse(text)
		if err != nil {
			return
		}
		printed := s.String()
		again, err := Parse(printed)
		if err != nil {
			t.Fatalf("%q was printed as %q, which is a mistake: %v", text, printed, err)
		}
		if d := cmp.Diff(s.Lines, again.Lines, cmpopts.IgnoreFields(Line{}, "N"), cmpopts.IgnoreUnexported(Line{})); d != "" {
			t.Fatalf("%q was printed as %q, which is another script: %s", text, printed, d)
		}
	})
}
