package scripted

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"reflect"
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

func TestParse_PrintsBack(t *testing.T) {
	text := `text "Let me look. <&> \u0001 é"
thought "hm"
chunks 3 "tick "
chunks 3 "tick " every 20ms
call shell {"command":"sleep 60"}
call @id list {}
usage input=10 output=20 thought=1 cached_read=2 cached_write=3
usage input=1 cost=0.0205
fingerprint
delay 50ms
stall 1s
retrying 1 2s "rate limit"
opaque "data"
expect "a"
refute "b"
error rate_limited "words" 20s
--- next session 2 when "weather" always
finish calls
--- next
finish length
--- next
cut
--- next
hang
--- next
text "No."
finish refusal
--- next
`
	script, err := Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	if got := script.String(); got != text {
		t.Errorf("printed:\n%s\nwant:\n%s", got, text)
	}
}

func TestParse_ShortForms(t *testing.T) {
	for short, long := range map[string]string{
		"":                               "",
		"# nothing\n\n":                  "",
		"call list":                      "call list {}\n",
		"call list { \"a\" : [ 1 ] }":    "call list {\"a\":[1]}\n",
		"length":                         "finish length\n",
		"refuse \"No.\"":                 "text \"No.\"\nfinish refusal\n",
		"refuse":                         "finish refusal\n",
		"error internal":                 "error internal \"the scripted model failed as told\"\n",
		"  text  \"a\"\r\n":              "text \"a\"\n",
		"--- next":                       "--- next\n",
		"text \"a\"\n--- next\n":         "text \"a\"\n--- next\n",
		"--- next session 1\ntext \"a\"": "--- next session 1\ntext \"a\"\n",
	} {
		script, err := Parse(short)
		if err != nil {
			t.Errorf("%q: %v", short, err)
			continue
		}
		if got := script.String(); got != long {
			t.Errorf("%q printed %q, want %q", short, got, long)
		}
	}
}

func TestParse_Refuses(t *testing.T) {
	for text, want := range map[string]string{
		"say \"a\"":                      `line 1: unknown move "say"`,
		"\n\ntext a":                     "line 3",
		"text":                           "missing",
		"text \"\"":                      "empty",
		"text \"a\" b":                   `"b" is too much`,
		"text 5":                         "not a JSON string",
		"call":                           "missing",
		"call {}":                        "not the name of a tool",
		"call @ shell":                   "missing",
		"call shell [1]":                 "not a JSON object",
		"call shell {\"a\"":              "JSON",
		"call shell {} {}":               "too much",
		"usage input":                    "not one of input=N",
		"usage input=-1":                 "not one of input=N",
		"usage cost=much":                "not an amount",
		"usage cost=-1":                  "not an amount",
		"fingerprint \"a\"":              "too much",
		"usage dollars=1":                "not one of input=N",
		"delay soon":                     "not a duration",
		"delay -1s":                      "not a duration",
		"chunks 0 \"a\"":                 "not a number",
		"chunks 2 \"a\" each 1s":         "every",
		"finish well":                    "not one of stop",
		"error oops":                     "not an error code",
		"cut\ntext \"a\"":                `follows "cut"`,
		"--- next sometimes":             "unknown guard",
		"--- next when \"\"":             "wants a text",
		"--- next session x":             "not a number",
		"hang\nhang":                     "follows",
		"text \"a\xff\"":                 "not UTF-8",
		"retrying 1 1s":                  "missing",
		"--- nextstep":                   "unknown move",
		"text \"a\"\n--- next\ncall\n":   "line 3",
		"refuse \"no\" \"really\"":       "too much",
		"error rate_limited \"a\" later": "not a duration",
	} {
		_, err := Parse(text)
		if err == nil || domain.CodeOf(err) != domain.InvalidArgument || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want %q", text, err, want)
		}
	}
}

// play asks once and renders what came.
func play(t *testing.T, m *Model, session, prompt string) string {
	t.Helper()
	req := porttest.SampleRequest()
	req.Session = domain.SessionID(session)
	req.Messages = []domain.ModelMessage{domain.UserInput{Blocks: []domain.Block{domain.Text{Text: prompt}}}}
	var b strings.Builder
	for ev, err := range m.Stream(t.Context(), req) {
		switch ev := ev.(type) {
		case domain.TextDelta:
			b.WriteString(ev.Text)
		case domain.CallRequested:
			b.WriteString("+" + ev.Call.ProviderID + ":" + ev.Call.Name)
		case domain.Finish:
			b.WriteString("." + string(ev.Reason))
		}
		if err != nil {
			b.WriteString("!" + domain.CodeOf(err).String())
		}
	}
	return b.String()
}

func mustParse(t *testing.T, text string) Script {
	t.Helper()
	s, err := Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestModel_StepsArePerSession(t *testing.T) {
	m := New(testInfo(), mustParse(t, `
text "one"
call a
call b
--- next session 2
text "only the second"
--- next when "weather"
text "rain"
--- next
text "two"
call c
--- next always
text "again"
`))
	for _, step := range []struct{ session, prompt, want string }{
		{"s1", "hi", "one+scripted_1:a+scripted_2:b.calls"},
		{"s2", "hi", "one+scripted_1:a+scripted_2:b.calls"},
		{"s2", "hi", "only the second.stop"},
		{"s1", "the weather?", "rain.stop"},
		{"s1", "hi", "two+scripted_3:c.calls"},
		{"s1", "hi", "again.stop"},
		{"s1", "hi", "again.stop"},
		{"s1", "no weather left", "again.stop"},
		{"s3", "weather", "one+scripted_1:a+scripted_2:b.calls"},
	} {
		if got := play(t, m, step.session, step.prompt); got != step.want {
			t.Errorf("session %s, %q: %q, want %q", step.session, step.prompt, got, step.want)
		}
	}
}

func TestModel_NoStepLeft(t *testing.T) {
	m := New(testInfo(), mustParse(t, `text "one"`))
	play(t, m, "s", "")
	if got := play(t, m, "s", ""); got != "!provider rejected" {
		t.Errorf("got %q", got)
	}
}

func TestModel_Expect(t *testing.T) {
	m := New(testInfo(), mustParse(t, `
expect "diary"
refute "secret"
text "ok"
--- next
expect "secret"
text "never"
--- next
refute "diary"
text "never"
`))
	for _, want := range []string{"ok.stop", "!provider rejected", "!provider rejected"} {
		if got := play(t, m, "s", "my diary"); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// TestModel_Times shows which waits a cancel ends.
// TestModel_Fingerprint: it says the same of equal requests, whatever the newest
// prompt is, and another thing of every other request.
func TestModel_Fingerprint(t *testing.T) {
	user := func(text string) domain.ModelMessage {
		return domain.UserInput{Blocks: []domain.Block{domain.Text{Text: text}}}
	}
	reply := func(data string) domain.ModelMessage {
		return domain.ModelReply{Text: "a", Opaque: &domain.Opaque{Provider: "p", Data: []byte(data)}}
	}
	says := func(req domain.ModelRequest) string {
		m := New(testInfo(), mustParse(t, "fingerprint"))
		for ev := range m.Stream(t.Context(), req) {
			if text, ok := ev.(domain.TextDelta); ok {
				return text.Text
			}
		}
		return ""
	}
	base := says(domain.ModelRequest{Session: "s", Messages: []domain.ModelMessage{user("one"), reply("x"), user("two")}})
	if same := says(domain.ModelRequest{Session: "t", Messages: []domain.ModelMessage{user("one"), reply("x"), user("three"), reply("z")}}); same != base || base == "" {
		t.Errorf("%q and %q are told apart by the newest prompt", base, same)
	}
	for name, req := range map[string]domain.ModelRequest{
		"a prompt":     {Messages: []domain.ModelMessage{user("other"), reply("x"), user("two")}},
		"a signature":  {Messages: []domain.ModelMessage{user("one"), reply("y"), user("two")}},
		"instructions": {System: "be brief", Messages: []domain.ModelMessage{user("one"), reply("x"), user("two")}},
		"a tool":       {Tools: []domain.ToolSpec{{Name: "x"}}, Messages: []domain.ModelMessage{user("one"), reply("x"), user("two")}},
		"nothing":      {},
	} {
		if got := says(req); got == base {
			t.Errorf("%s makes no difference", name)
		}
	}
}

func TestModel_Times(t *testing.T) {
	for name, c := range map[string]struct {
		script string
		cancel time.Duration
		took   time.Duration
	}{
		"delay":             {"delay 3s\ntext \"a\"", time.Hour, 3 * time.Second},
		"chunks":            {"chunks 4 \"a\" every 1s", time.Hour, 4 * time.Second},
		"cancelled delay":   {"delay 3s\ntext \"a\"", time.Second, time.Second},
		"cancelled chunks":  {"chunks 4 \"a\" every 1s", 2500 * time.Millisecond, 2500 * time.Millisecond},
		"cancelled hang":    {"hang", time.Second, time.Second},
		"cancelled retry":   {"retrying 1 1h \"r\"\ntext \"a\"", time.Second, time.Second},
		"stall is stubborn": {"stall 3s\ntext \"a\"", time.Second, 3 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := New(testInfo(), mustParse(t, c.script))
				ctx, cancel := context.WithCancelCause(t.Context())
				timer := time.AfterFunc(c.cancel, func() { cancel(domain.CancelledByClient) })
				defer timer.Stop()
				began := time.Now()
				var last error
				for _, err := range m.Stream(ctx, porttest.SampleRequest()) {
					last = err
				}
				if took := time.Since(began); took != c.took {
					t.Errorf("took %s, want %s", took, c.took)
				}
				if wantErr := c.cancel < time.Hour; errors.Is(last, domain.CancelledByClient) != wantErr {
					t.Errorf("the stream ended with %v", last)
				}
			})
		})
	}
}

func TestModel_Opaque(t *testing.T) {
	m := New(testInfo(), mustParse(t, `opaque "signed"`))
	for ev, err := range m.Stream(t.Context(), porttest.SampleRequest()) {
		want := domain.Finish{Reason: domain.FinishStop, Opaque: &domain.Opaque{Provider: "fake", Data: []byte("signed")}}
		if err != nil || !reflect.DeepEqual(ev, domain.ModelEvent(want)) {
			t.Errorf("got %+v, %v", ev, err)
		}
	}
}

func TestModels(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "story.script"), `text "from a directory"`)
	write(t, filepath.Join(dir, "bad.script"), `nonsense`)
	ms, err := llm.New(llm.Config{Providers: []llm.ProviderConfig{
		{Name: "one", Type: "scripted", BaseURL: "file:" + filepath.Join(dir, "story.script"), Models: map[string]llm.ModelFacts{"any": {ContextWindow: 99}}},
		{Name: "dir", Type: "scripted", BaseURL: "file:" + dir},
		{Name: "none", Type: "scripted"},
		{Name: "locked", Type: "scripted", APIKey: func() (string, error) { return "", nil }, Models: map[string]llm.ModelFacts{"m": {}}},
	}}, map[string]llm.Opener{"scripted": Opener()})
	if err != nil {
		t.Fatal(err)
	}
	porttest.Models(porttest.T(t), porttest.ModelsHarness{
		Open:    func(porttest.TB) ports.Models { return ms },
		Known:   domain.ModelRef{Provider: "one", Model: "any"},
		Keyless: domain.ModelRef{Provider: "locked", Model: "m"},
	})
	for ref, want := range map[string]string{
		"one/x":          "from a directory.stop",
		"dir/story":      "from a directory.stop",
		"dir/missing":    "missing.script",
		"dir/bad":        "bad.script: script line 1",
		"dir/../story":   "not the name of a script",
		"dir/sub/script": "not the name of a script",
		"none/x":         "providers.none.script",
	} {
		parsed, err := domain.ParseModelRef(ref)
		if err != nil {
			t.Fatal(err)
		}
		m, err := ms.Open(t.Context(), parsed)
		if err != nil {
			if !strings.Contains(err.Error(), want) || domain.CodeOf(err) != domain.InvalidArgument {
				t.Errorf("%s: %v, want %q", ref, err, want)
			}
			continue
		}
		if got := play(t, m.(*Model), "s", ""); got != want {
			t.Errorf("%s: %q, want %q", ref, got, want)
		}
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// FuzzScript: whatever parses prints to a text that parses to the same.
func FuzzScript(f *testing.F) {
	f.Add("text \"a\"\ncall @x shell {\"a\":1.50}\n--- next session 3 when \"w\" always\nrefuse \"no\"\n--- next\nerror conflict \"c\" 1h\n")
	f.Add("chunks 3 \"\\ud800\" every 1ms\nusage input=1\n# c\nretrying 2 0s \"\"\nhang")
	f.Add("--- next\n--- next\n")
	f.Fuzz(func(t *testing.T, text string) {
		first, err := Parse(text)
		if err != nil {
			if domain.CodeOf(err) != domain.InvalidArgument {
				t.Fatalf("uncoded error %v", err)
			}
			return
		}
		second, err := Parse(first.String())
		if err != nil {
			t.Fatalf("%q printed as %q, which does not parse: %v", text, first.String(), err)
		}
		if !reflect.DeepEqual(first, second) {
			t.Fatalf("%q printed as %q, which is another script", text, first.String())
		}
	})
}

// TestPage: what the documentation shows is a script.
func TestPage(t *testing.T) {
	page, err := os.ReadFile("../../../docs/scripted-model.md")
	if err != nil {
		t.Fatal(err)
	}
	_, example, _ := strings.Cut(string(page), "```script\n")
	example, _, _ = strings.Cut(example, "```")
	if s := mustParse(t, example); len(s.Steps) != 2 || len(s.Steps[0].Moves) != 4 {
		t.Errorf("the example is %+v", s)
	}
	moves := 0
	for _, row := range regexp.MustCompile("(?m)^\\| (`[^|]+`) \\|").FindAllStringSubmatch(string(page), -1) {
		for cell := range strings.SplitSeq(row[1], "`, `") {
			line := strings.NewReplacer("NAME", "shell", "{…}", "{}", "`", "").Replace(cell)
			moves++
			if _, err := Parse(line); err != nil {
				t.Errorf("%s: %v", cell, err)
			}
		}
	}
	if moves < 20 {
		t.Errorf("the page shows %d moves", moves)
	}
}
