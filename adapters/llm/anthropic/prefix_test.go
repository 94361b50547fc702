package anthropic

import (
	"testing"

	"github.com/berth-dev/berth/core/domain"
	"github.com/berth-dev/berth/core/ports/porttest"
)

// TestPrefix: the digest of a request tells of every change of what is said,
// and of nothing else.
func TestPrefix(t *testing.T) {
	digest := func(edit func(*domain.ModelRequest)) string {
		req := porttest.SampleHistory()
		c := call("y", "read_file")
		req.Messages = append(req.Messages, domain.ModelReply{Text: "so", Calls: []domain.ModelCall{c}, Opaque: &domain.Opaque{
			Provider: "fake", Data: []byte(`{"model":"claude-sonnet-5-5","blocks":[{"thought":{"text":"hm","signature":"s"}},{"thought":{"data":"d"}},{"text":2},{"call":1}]}`),
		}}, domain.ToolOutput{Call: c, Text: "a dot", Media: []domain.Block{domain.Image{MIME: "image/png", Data: []byte("png")}}})
		edit(&req)
		m := open(t, nil, nil)
		p := m.plan(req, amends{})
		if _, err := m.render(req, p); err != nil || p.prefix == "" {
			t.Fatalf("%v, digest %q", err, p.prefix)
		}
		return p.prefix
	}
	reply := func(at int, edit func(*domain.ModelReply)) func(*domain.ModelRequest) {
		return func(r *domain.ModelRequest) {
			msg, _ := r.Messages[at].(domain.ModelReply)
			edit(&msg)
			r.Messages[at] = msg
		}
	}
	output := func(at int, edit func(*domain.ToolOutput)) func(*domain.ModelRequest) {
		return func(r *domain.ModelRequest) {
			msg, _ := r.Messages[at].(domain.ToolOutput)
			edit(&msg)
			r.Messages[at] = msg
		}
	}
	kept := func(s string) func(*domain.ModelRequest) {
		return reply(9, func(m *domain.ModelReply) {
			m.Opaque = &domain.Opaque{Provider: "fake", Data: []byte(`{"model":"claude-sonnet-5-5","blocks":[` + s + `,{"text":2},{"call":1}]}`)}
		})
	}
	same := digest(func(*domain.ModelRequest) {})
	for name, edit := range map[string]func(*domain.ModelRequest){
		"settings":              func(r *domain.ModelRequest) { r.MaxOutputTokens, r.Thoughts, r.Session = 77, domain.ThoughtsHigh, "x" },
		"another's opaque data": reply(4, func(m *domain.ModelReply) { m.Opaque = nil }),
		"thoughts not sent":     reply(1, func(m *domain.ModelReply) { m.Thought = "else" }),
	} {
		if got := digest(edit); got != same {
			t.Errorf("%s: the digest changed", name)
		}
	}
	seen := map[string]string{same: "nothing"}
	for name, edit := range map[string]func(*domain.ModelRequest){
		"system":         func(r *domain.ModelRequest) { r.System += "." },
		"a tool's name":  func(r *domain.ModelRequest) { r.Tools[0].Name = "other" },
		"a description":  func(r *domain.ModelRequest) { r.Tools[0].Description = "other" },
		"a schema":       func(r *domain.ModelRequest) { r.Tools[0].Schema = []byte(`{"type":"object"}`) },
		"a prompt":       func(r *domain.ModelRequest) { r.Messages[0] = user("other") },
		"a message less": func(r *domain.ModelRequest) { r.Messages = append(r.Messages[:8:8], r.Messages[9:]...) },
		"a text":         reply(6, func(m *domain.ModelReply) { m.Text = "other" }),
		"a call's name": reply(1, func(m *domain.ModelReply) {
			m.Calls = []domain.ModelCall{{ID: "c1", ProviderID: "x", Name: "other"}, m.Calls[1]}
		}),
		"arguments": reply(1, func(m *domain.ModelReply) {
			m.Calls = []domain.ModelCall{{ID: "c1", ProviderID: "x", Name: "read_file"}, m.Calls[1]}
		}),
		"an id":     reply(9, func(m *domain.ModelReply) { m.Calls[0].ProviderID = "z" }),
		"an output": output(2, func(m *domain.ToolOutput) { m.Text = "other" }),
		"a failure": output(2, func(m *domain.ToolOutput) { m.Failed = true }),
		"a picture": output(10, func(m *domain.ToolOutput) {
			m.Media = []domain.Block{domain.Image{MIME: "image/png", Data: []byte("gnp")}}
		}),
		"its type": output(10, func(m *domain.ToolOutput) {
			m.Media = []domain.Block{domain.Image{MIME: "image/gif", Data: []byte("png")}}
		}),
		"a thought":     kept(`{"thought":{"text":"hn","signature":"s"}},{"thought":{"data":"d"}}`),
		"a signature":   kept(`{"thought":{"text":"hm","signature":"t"}},{"thought":{"data":"d"}}`),
		"redacted data": kept(`{"thought":{"text":"hm","signature":"s"}},{"thought":{"data":"e"}}`),
		"no thought":    kept(`{"thought":{"data":"d"}}`),
	} {
		got := digest(edit)
		if other, twice := seen[got]; twice {
			t.Errorf("the digest of %q is that of %q", name, other)
		}
		seen[got] = name
	}
}
