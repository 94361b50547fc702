package scripted

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/berth-dev/berth/core/domain"
	"github.com/berth-dev/berth/core/ports"
	"github.com/berth-dev/berth/core/ports/porttest"
)

// TestModel proves the scripted model by the suite of all models: a reply is
// written down as a step of a script.
func TestModel(t *testing.T) {
	porttest.Model(porttest.Bubble(t), porttest.ModelHarness{
		Serve: func(t porttest.TB, replies ...porttest.Reply) porttest.Served {
			var text strings.Builder
			for _, r := range replies {
				text.WriteString("--- next\n" + render(r))
			}
			script, err := Parse(text.String())
			if err != nil {
				t.Fatalf("%v", err)
			}
			m := New(testInfo(), script)
			return porttest.Served{Model: m, Requests: m.taken}
		},
	})
}

// TestModel_Every proves it by the cases for models that cannot be told what
// to say, too: they cancel and leave at every event.
func TestModel_Every(t *testing.T) {
	porttest.Model(porttest.Bubble(t), porttest.ModelHarness{
		Open: func(t porttest.TB) (ports.Model, []domain.ModelRequest) {
			script, err := Parse("--- next always\nretrying 1 1s \"r\"\nthought \"t\"\nchunks 3 \"c\" every 1s\ndelay 1s\nusage input=1\ncall n\ncall m {\"a\":1}")
			if err != nil {
				t.Fatalf("%v", err)
			}
			return New(testInfo(), script), []domain.ModelRequest{porttest.SampleRequest()}
		},
	})
}

func testInfo() domain.ModelInfo {
	return domain.ModelInfo{Ref: domain.ModelRef{Provider: "fake", Model: "fake-1"}, Title: "fake"}
}

// taken counts the steps consumed so far.
func (m *Model) taken() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := 0
	for _, s := range m.sessions {
		n += len(s.steps)
	}
	return n
}

// render writes a reply down as the moves of a step.
func render(r porttest.Reply) string {
	var b strings.Builder
	if r.Refusal != nil {
		fmt.Fprintf(&b, "error %s %s\n", codeWord(r.Refusal.Kind.Code()), quote(r.Refusal.Words))
		return b.String()
	}
	broken := false
	for _, part := range r.Parts {
		switch part := part.(type) {
		case porttest.SendText:
			fmt.Fprintf(&b, "text %s\n", quote(string(part)))
		case porttest.SendThought:
			fmt.Fprintf(&b, "thought %s\n", quote(string(part)))
		case porttest.Wait:
			fmt.Fprintf(&b, "delay %s\n", time.Duration(part))
		case porttest.SendCall:
			var object map[string]any
			if part.Args != "" && (json.Unmarshal([]byte(part.Args), &object) != nil || object == nil) {
				broken = true // a script cannot say it; the reply fails instead
				continue
			}
			id := ""
			if part.ID != "" {
				id = "@" + part.ID + " "
			}
			fmt.Fprintf(&b, "call %s%s %s\n", id, part.Name, part.Args)
		}
	}
	if u := r.Usage; u != (domain.Usage{}) {
		fmt.Fprintln(&b, Report{Usage: u}.line())
	}
	switch r.End {
	case porttest.EndComplete:
		if broken {
			b.WriteString("error unavailable \"broken arguments\"\n")
		}
	case porttest.EndLength:
		b.WriteString("length\n")
	case porttest.EndRefusal:
		b.WriteString("refuse\n")
	case porttest.EndCut, porttest.EndBroken, porttest.EndMalformed:
		b.WriteString("cut\n")
	case porttest.EndSilent:
		b.WriteString("hang\n")
	case porttest.EndError:
		fmt.Fprintf(&b, "error %s %s\n", codeWord(r.Fault.Kind.Code()), quote(r.Fault.Words))
	}
	return b.String()
}
