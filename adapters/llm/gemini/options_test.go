package gemini

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/berth-dev/berth/core/domain"
	"github.com/berth-dev/berth/core/ports/porttest"
)

// picky is a server that refuses what a test names and records requests.
type picky struct {
	refuse func(body string) string // words of a refusal; "" accepts
	seen   []string
}

func (p *picky) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	data0, _ := io.ReadAll(req.Body)
	p.seen = append(p.seen, string(data0))
	if words := p.refuse(string(data0)); words != "" {
		w.WriteHeader(http.StatusBadRequest)
		_, _ = fmt.Fprintf(w, `{"error":{"code":400,"message":%q,"status":"INVALID_ARGUMENT"}}`, words)
		return
	}
	_, _ = io.WriteString(w, data(ends("STOP", `{"text":"ok"}`)))
}

// when refuses bodies that hold one of some texts.
func when(words string, holds ...string) func(string) string {
	return func(body string) string {
		for _, s := range holds {
			if strings.Contains(body, s) {
				return words
			}
		}
		return ""
	}
}

// TestOptions: a server that refuses an optional thing is asked again without
// it, at once and without a word, and is not offered it again.
func TestOptions(t *testing.T) {
	x := domain.ModelCall{ID: "1", ProviderID: "k", Name: "read_file", Args: []byte(`{}`)}
	request := func(model string) domain.ModelRequest {
		req := porttest.SampleRequest()
		req.Thoughts = domain.ThoughtsOff
		req.Messages = append(req.Messages,
			domain.ModelReply{Calls: []domain.ModelCall{x}, Opaque: &domain.Opaque{Provider: "fake", Data: fmt.Appendf(nil, `{"model":%q,"parts":[{"kind":"call","sign":"c2ln"}]}`, model)}},
			domain.ToolOutput{Call: x, Text: "1", Media: []domain.Block{domain.Image{MIME: "image/png", Data: []byte("png")}}})
		return req
	}
	for _, c := range []struct {
		name   string
		model  string
		refuse func(string) string
		want   string
		asked  int    // for two requests
		holds  string // what the last request has in its place
	}{
		{"schemas", "", when(`Invalid JSON payload received. Unknown name "parametersJsonSchema" at 'tools[0].function_declarations[0]': Cannot find field.`, "parametersJsonSchema"), "ok .stop", 3, `"parameters":{"properties"`},
		{"a word of a schema", "", when(`Unknown name "additionalProperties" at 'tools[0].function_declarations[6].parameters': Cannot find field.`, "parametersJsonSchema"), "ok .stop", 3, `"parameters":{`},
		{"a level", "", when("Thinking level MINIMAL is not supported for this model.", "MINIMAL"), "ok .stop", 3, `"thinkingLevel":"LOW"`},
		{"all levels", "", when("Thinking level is not supported for this model.", "thinkingLevel"), "ok .stop", 4, `"thinkingBudget":512`},
		{"no budget", "gemini-2.5-flash", when("Budget 0 is invalid. This model only works in thinking mode.", `"thinkingBudget":0`), "ok .stop", 3, `"thinkingBudget":512`},
		{"any way of telling", "", when("thinking_level and thinking_budget are not supported", "thinkingLevel", "thinkingBudget"), "ok .stop", 5, ``},
		{"ids", "", when(`Invalid JSON payload received. Unknown name "id" at 'contents[1].parts[0].function_call': Cannot find field.`, `"id"`), "ok .stop", 3, `"functionCall":{"name"`},
		{"pictures in responses", "", when(`Invalid JSON payload received. Unknown name "parts" at 'contents[2].parts[0].function_response': Cannot find field.`, `"parts":[{"inlineData"`), "ok .stop", 3, `{"inlineData"`},
		{"pictures in responses, by name", "", when("Multimodal function response is not supported by this model", `"parts":[{"inlineData"`), "ok .stop", 3, `{"inlineData"`},
		{"the system prompt", "", when("Developer instruction is not enabled for models/gemma-3-27b-it", "systemInstruction"), "ok .stop", 3, `{"role":"user","parts":[{"text":"You are a test.`},
		{"signatures", "", when(`Unknown name "thoughtSignature" at 'contents[1].parts[0]': Cannot find field.`, "thoughtSignature"), "ok .stop", 3, ``},
		{"signatures of this history", "", when("Corrupted thought signature.", "c2ln"), "ok .stop", 4, skipSign},
		{"signatures missing", "my-own-name", func(body string) string {
			if strings.Contains(body, "c2ln") {
				return "Thought signature is not valid"
			}
			return when("Function call is missing a thought_signature in functionCall parts. Additional data, position 2", `"args":{}}}`)(body)
		}, "ok .stop", 5, skipSign},
		{"two things", "", func(body string) string {
			return when(`Unknown name "parametersJsonSchema": Cannot find field.`, "parametersJsonSchema")(body) + when("Thinking level is not supported", "MINIMAL")(body)
		}, "ok .stop", 4, `"LOW"`},
		{"the order of responses", "", when("Please ensure that the number of function response parts is equal to the number of function call parts of the function call turn.", "contents"), "!provider rejected", 2, ``},
		{"whatever is sent", "", when(`Unknown name "parametersJsonSchema": Cannot find field.`, "contents"), "!provider rejected", 3, ``},
		{"a wrong key", "", when("API key not valid. Thinking is not for you.", "contents"), "!auth required", 2, ``},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				if c.model == "" {
					c.model = "gemini-3-flash"
				}
				server := &picky{refuse: c.refuse}
				m := open(porttest.T(t), server, c.model)
				for range 2 {
					if line, err := got(porttest.T(t), m, request(c.model)); line != c.want {
						t.Errorf("%q, %v", line, err)
					}
				}
				last := server.seen[len(server.seen)-1]
				if len(server.seen) != c.asked || !strings.Contains(last, c.holds) {
					t.Errorf("%d requests were sent, want %d; the last was %s", len(server.seen), c.asked, last)
				}
			})
		})
	}
}

// TestTurn: what the model gave with a reply stands in the next request, byte
// by byte, after the reply was stored and read again.
func TestTurn(t *testing.T) {
	for _, c := range []struct{ name, body, want string }{
		{
			"the first of two calls signs", data(say(`{"text":"I look."}`), say(`{"functionCall":{"name":"f","args":{"x": 1.0}},"thoughtSignature":"AB+/="},{"functionCall":{"name":"g","args":{}}}`), stop),
			`[{"text":"I look."},{"functionCall":{"name":"f","args":{"x":1.0}},"thoughtSignature":"AB+/="},{"functionCall":{"name":"g","args":{}}}]`,
		},
		{"ids without signatures", data(say(`{"functionCall":{"id":"k1","name":"f","args":{}}}`), stop), `[{"functionCall":{"id":"k1","name":"f","args":{}}}]`},
		{"an empty text at the end", data(say(`{"text":"a"}`), say(`{"text":"b"}`), ends("STOP", `{"text":"","thoughtSignature":"E="}`)), `[{"text":"ab"},{"text":"","thoughtSignature":"E="}]`},
		{"a signature without a text", data(say(`{"text":"a"}`), ends("STOP", `{"thoughtSignature":"E="}`)), `[{"text":"a"},{"text":"","thoughtSignature":"E="}]`},
		{
			"a signed piece is not joined", data(say(`{"text":"a"}`), say(`{"text":"b","thoughtSignature":"1="}`), say(`{"text":"c"}`), say(`{"text":"d"}`), stop),
			`[{"text":"a"},{"text":"b","thoughtSignature":"1="},{"text":"cd"}]`,
		},
		{"a signed thought", data(say(`{"text":"hm","thought":true},{"text":"so","thought":true,"thoughtSignature":"1="},{"text":"a"}`), stop), `[{"text":"so","thought":true,"thoughtSignature":"1="},{"text":"a"}]`},
		{"thoughts without signatures stay", data(say(`{"text":"hm","thought":true}`), say(`{"text":"a","thoughtSignature":"1="}`), stop), `[{"text":"a","thoughtSignature":"1="}]`},
		{
			"a character cut at a signed piece", data(say(`{"text":"x\ud83d"}`), say(`{"text":"\ude00y","thoughtSignature":"1="}`), say(`{"text":"z\ud83d"}`), stop),
			"[{\"text\":\"x\"},{\"text\":\"😀y\",\"thoughtSignature\":\"1=\"},{\"text\":\"z\uFFFD\"}]",
		},
		{"calls of a reply that was cut short", data(say(`{"text":"a","thoughtSignature":"1="}`), say(`{"functionCall":{"name":"f","args":{}},"thoughtSignature":"2="}`), ends("MAX_TOKENS", "")), `[{"text":"a","thoughtSignature":"1="}]`},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := open(porttest.T(t), answer("", c.body), "m")
				var r domain.ModelReply
				for ev, err := range m.Stream(t.Context(), porttest.SampleRequest()) {
					if err != nil {
						t.Fatal(err)
					}
					switch ev := ev.(type) {
					case domain.TextDelta:
						r.Text += ev.Text
					case domain.ThoughtDelta:
						r.Thought += ev.Text
					case domain.CallRequested:
						ev.Call.ID = domain.CallID(fmt.Sprintf("ours-%d", len(r.Calls)+1))
						r.Calls = append(r.Calls, ev.Call)
					case domain.Finish:
						r.Opaque = ev.Opaque
					}
				}
				r = stored(t, r)
				lines := strings.Split(rendered(t, open(porttest.T(t), http.NotFoundHandler(), "m"), 0, user("q"), r), "\n")
				if got, want := lines[1], `{"role":"model","parts":`+c.want+`}`; got != want {
					t.Errorf("got\n%s\nwant\n%s", got, want)
				}
				if other := rendered(t, testModel(t, "n", nil), 0, user("q"), r); strings.Contains(other, "thoughtSignature") {
					t.Errorf("another model is sent %s", other)
				}
			})
		})
	}
}

// stored is a reply as it comes back from a store.
func stored(t *testing.T, r domain.ModelReply) domain.ModelReply {
	t.Helper()
	data, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	var out domain.ModelReply
	if err := json.Unmarshal(data, &out); err != nil {
		t.Fatal(err)
	}
	return out
}
