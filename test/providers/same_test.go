package providers

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/berth-dev/berth/adapters/llm"
	"github.com/berth-dev/berth/adapters/llm/llmtest"
	"github.com/berth-dev/berth/core/domain"
	"github.com/berth-dev/berth/core/ports"
	"github.com/berth-dev/berth/core/ports/porttest"
)

// bodiesVariable makes this program print what each provider type is sent, and
// end.
const bodiesVariable = "BERTH_TEST_BODIES"

// TestSame: the same conversation is the same bytes, from whichever process.
// What a provider has cached is found by nothing else.
func TestSame(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var runs []map[string][]string
	for range 3 { // maps have another order in each process
		cmd := exec.CommandContext(t.Context(), self)
		cmd.Env = append(os.Environ(), bodiesVariable+"=1")
		out, err := cmd.Output()
		var all map[string][]string
		if err != nil || json.Unmarshal(out, &all) != nil {
			t.Fatalf("%v: %s", err, out)
		}
		runs = append(runs, all)
	}
	for _, d := range dialects() {
		t.Run(d.Name, func(t *testing.T) {
			for range 2 {
				bodies, err := bodiesOf(t.Context(), d)
				if err != nil {
					t.Fatal(err)
				}
				runs = append(runs, map[string][]string{d.Name: bodies})
			}
			first := runs[0][d.Name]
			if len(first) != 3 {
				t.Fatalf("%d requests", len(first))
			}
			for _, run := range runs {
				for i, body := range run[d.Name] {
					if body != first[i] {
						t.Errorf("request %d differs: …%s and …%s", i+1, apart(body, first[i]), apart(first[i], body))
					}
				}
			}
			runs = runs[:3]
		})
	}
}

// printBodies writes what each provider type is sent, by its name.
func printBodies() error {
	all := make(map[string][]string)
	for _, d := range dialects() {
		bodies, err := bodiesOf(context.Background(), d)
		if err != nil {
			return fmt.Errorf("%s: %w", d.Name, err)
		}
		all[d.Name] = bodies
	}
	return json.NewEncoder(os.Stdout).Encode(all)
}

// bodiesOf returns the requests of a long conversation, most of it another
// model's, that a model goes on with for two steps and a summary.
func bodiesOf(ctx context.Context, d llmtest.Dialect) ([]string, error) {
	server := d.New().Replies(append(pairTurns(1), porttest.Reply{Parts: []porttest.ReplyPart{porttest.SendText("In short.")}})...)
	wire := httptest.NewServer(server)
	defer wire.Close()
	client := llm.NewClient(llm.HTTPConfig{})
	defer client.Close()
	model, err := d.Opener.Open(llm.Provider{ProviderConfig: d.Provider("fake", wire.URL), Client: client}, d.Info())
	if err != nil {
		return nil, err
	}
	req := porttest.SampleHistory()
	req.Model, req.Thoughts, req.MaxOutputTokens = model.Info().Ref, domain.ThoughtsHigh, 20_000
	req.Tools = append(req.Tools, domain.ToolSpec{Name: "query", Description: "Asks.", Schema: []byte(
		`{"type":"object","properties":{"rows":{"type":["integer","null"]},"mode":{"enum":["a","b"]},"of":{"$ref":"#/$defs/t"}},"$defs":{"t":{"type":"string"}}}`)})
	for step := range 2 {
		reply, err := hear(ctx, model, req)
		if err != nil {
			return nil, err
		}
		for i := range reply.Calls {
			reply.Calls[i].ID = domain.CallID(fmt.Sprintf("turn-c%d", 10*step+i))
		}
		req.Messages = append(req.Messages, reply)
		for _, c := range reply.Calls {
			req.Messages = append(req.Messages, domain.ToolOutput{
				Call: c, Text: "<content> & more", Media: []domain.Block{domain.Image{MIME: "image/png", Data: []byte("\x89PNG")}},
			})
		}
	}
	req.Tools = nil
	req.Messages = append(req.Messages, domain.UserInput{Blocks: []domain.Block{domain.Text{Text: "In short?"}}})
	if _, err := hear(ctx, model, req); err != nil {
		return nil, err
	}
	if problems := server.Problems(); len(problems) > 0 {
		return nil, fmt.Errorf("the provider would refuse: %q", problems)
	}
	return server.Bodies(), nil
}

// hear asks a model and returns its reply.
func hear(ctx context.Context, m ports.Model, req domain.ModelRequest) (domain.ModelReply, error) {
	var reply domain.ModelReply
	for ev, err := range m.Stream(ctx, req) {
		if err != nil {
			return reply, err
		}
		switch ev := ev.(type) {
		case domain.TextDelta:
			reply.Text += ev.Text
		case domain.ThoughtDelta:
			reply.Thought += ev.Text
		case domain.CallRequested:
			reply.Calls = append(reply.Calls, ev.Call)
		case domain.Finish:
			reply.Opaque = ev.Opaque
		case domain.UsageReported, domain.Retrying, domain.FellBack:
		}
	}
	return reply, nil
}

// TestGrows: every request of a session begins with the one before it, from
// turn to turn too, apart from the marks of what is to be cached.
func TestGrows(t *testing.T) {
	for _, d := range dialects() {
		t.Run(d.Name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, d, append(pairTurns(1), append(pairTurns(2), pairTurns(3)...)...))
			write(t, r.project+"/pixel.png", "no picture")
			for range 3 {
				if got := r.turn("go"); got != "end_turn" {
					t.Fatalf("the turn ended with %s", got)
				}
			}
			bodies := r.server.Bodies()
			if len(bodies) != 6 {
				t.Fatalf("%d requests", len(bodies))
			}
			for i := 1; i < len(bodies); i++ {
				before, now := parts(t, bodies[i-1]), parts(t, bodies[i])
				for field, was := range before {
					if is := now[field]; !bytes.HasPrefix(is, was) {
						t.Errorf("request %d does not begin with the one before it: %s was …%s and is …%s", i+1, field,
							apart(string(was), string(is)), apart(string(is), string(was)))
					}
				}
			}
		})
	}
}

// parts returns the fields of a request, without the marks of caches and the
// brackets at the end of lists.
func parts(t *testing.T, body string) map[string][]byte {
	t.Helper()
	for _, mark := range []string{`,"cache_control":{"type":"ephemeral"}`, `,{"cachePoint":{"type":"default"}}`} {
		body = strings.ReplaceAll(body, mark, "")
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal([]byte(body), &fields); err != nil {
		t.Fatal(err)
	}
	out := make(map[string][]byte)
	for name, value := range fields {
		out[name] = bytes.TrimRight(value, "]}")
	}
	return out
}

// apart returns where a text begins to differ from another, and some of what
// stands around that.
func apart(s, other string) string {
	i := 0
	for i < len(s) && i < len(other) && s[i] == other[i] {
		i++
	}
	return s[max(0, i-60):min(len(s), i+100)]
}
