package responses

import (
	"fmt"
	"strings"
	"testing"

	"github.com/berth-dev/berth/core/domain"
	"github.com/berth-dev/berth/core/ports/porttest"
)

// FuzzStream: whatever a server sends is a reply or a failure, the same one
// when it comes a byte at a time; only a reply that is closed requests calls,
// and what is kept of it can be sent.
func FuzzStream(f *testing.F) {
	for _, s := range []string{
		data(thought(0, 0, "hm"), finished(0, thinking(0, "e", "hm")), text(1, "hé😀"), finished(1, said(1, "hé😀")),
			added(2, `{"id":"i2","type":"function_call","call_id":"a","name":"f","arguments":""}`), args(2, `{"x":`), args(2, `1}`),
			finished(2, call(2, "a", "f", `{"x":1}`)), completed(thinking(0, "e", "hm"), said(1, "hé😀"), call(2, "a", "f", `{"x":1}`))),
		data(text(0, "a"), incomplete("max_output_tokens")), data(text(0, "a"), failed("server_error", "boom")),
		data(`{"type":"error","code":"server_error","message":"boom"}`), data(`{"type":"response.refusal.delta","delta":"no"}`, completed()),
		strings.ReplaceAll(data(text(0, "a"), completed()), "\n", "\r\n"), ": ping\n\n" + data(`{"type":"response.output_text.delta","delta":"a\ud83d"}`, completed()),
		`{"object":"response","status":"completed","output":[` + said(0, "a") + `,` + call(1, "a", "f", "{}") + `],"usage":{"input_tokens":1,"output_tokens":2}}`,
		`{"error":{"message":"x"}}`, "<html>", "event: response.completed\ndata: {}\n\n",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		m := cannedModel(t, canned{body: string(body)})
		line, err := got(t, m, porttest.SampleRequest())
		slowly, slowErr := got(t, cannedModel(t, canned{body: string(body), slow: true}), porttest.SampleRequest())
		if line != slowly || fmt.Sprint(err) != fmt.Sprint(slowErr) {
			t.Fatalf("at once %q, %v\na byte at a time %q, %v", line, err, slowly, slowErr)
		}
		if err != nil && domain.CodeOf(err) == domain.Internal {
			t.Fatalf("the error %v is not coded", err)
		}
		var reply domain.ModelReply
		for ev := range m.Stream(t.Context(), porttest.SampleRequest()) {
			switch ev := ev.(type) {
			case domain.TextDelta:
				reply.Text += ev.Text
			case domain.CallRequested:
				if err != nil {
					t.Fatalf("a call was requested by a reply that failed with %v", err)
				}
				reply.Calls = append(reply.Calls, ev.Call)
			case domain.Finish:
				reply.Opaque = ev.Opaque
			}
		}
		if _, ok := m.kept(reply); reply.Opaque != nil && !ok {
			t.Fatalf("what was kept does not fit the reply %q: %s", line, reply.Opaque.Data)
		}
		if _, err := m.render(domain.ModelRequest{Messages: []domain.ModelMessage{reply}}, 0); err != nil {
			t.Fatalf("%v", err)
		}
	})
}
