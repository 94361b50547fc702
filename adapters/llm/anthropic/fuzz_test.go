package anthropic

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"testing"

	"github.com/berth-dev/berth/adapters/llm"
	"github.com/berth-dev/berth/core/domain"
	"github.com/berth-dev/berth/core/ports/porttest"
)

// dripping answers every request with the same bytes, so many at once, without
// a network.
type dripping struct {
	body []byte
	step int
}

func (d dripping) RoundTrip(*http.Request) (*http.Response, error) {
	var body io.Reader = bytes.NewReader(d.body)
	if d.step > 0 {
		body = &slowReader{d.body, d.step}
	}
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(body)}, nil
}

type slowReader struct {
	rest []byte
	step int
}

func (r *slowReader) Read(p []byte) (int, error) {
	if len(r.rest) == 0 {
		return 0, io.EOF
	}
	n := copy(p, r.rest[:min(r.step, len(r.rest))])
	r.rest = r.rest[n:]
	return n, nil
}

// over returns a model whose every answer are these bytes.
func over(t testing.TB, body []byte, step int) *Model {
	t.Helper()
	p := llm.Provider{Client: llm.NewClient(llm.HTTPConfig{Transport: dripping{body, step}}), ProviderConfig: llm.ProviderConfig{Name: "fake", BaseURL: "http://fake.invalid/v1"}}
	m, err := New(p, domain.ModelInfo{Ref: domain.ModelRef{Provider: "fake", Model: "claude-sonnet-5-5"}})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// FuzzReader: no bytes crash or hang the reader, and however they arrive it
// says the same of them; it says nothing that no reply may say.
func FuzzReader(f *testing.F) {
	for _, c := range append(append(endCases(), blockCases()...), usageCases()...) {
		f.Add([]byte(c.body), uint8(1))
	}
	f.Add([]byte(`{"type":"message","content":[{"type":"text","text":"a"},{"type":"tool_use","name":"f","input":{}}],"stop_reason":"tool_use"}`), uint8(3))
	f.Fuzz(func(t *testing.T, body []byte, step uint8) {
		atOnce, whole := got(t, over(t, body, 0), porttest.SampleRequest())
		inBytes, cut := got(t, over(t, body, 1), porttest.SampleRequest())
		inSteps, _ := got(t, over(t, body, int(step)+2), porttest.SampleRequest())
		if atOnce != inBytes || atOnce != inSteps {
			t.Fatalf("at once %q (%v), in bytes %q (%v), in steps %q", atOnce, whole, inBytes, cut, inSteps)
		}
		calls, finished := 0, false
		for ev, err := range over(t, body, 0).Stream(t.Context(), porttest.SampleRequest()) {
			switch ev := ev.(type) {
			case domain.CallRequested:
				calls++
				var args map[string]any
				if json.Unmarshal(ev.Call.Args, &args) != nil || args == nil || ev.Call.Name == "" {
					t.Fatalf("call %+v", ev.Call)
				}
			case domain.Finish:
				finished = true
				if (ev.Reason == domain.FinishCalls) != (calls > 0) {
					t.Fatalf("%d calls, then %s", calls, ev.Reason)
				}
				sendBack(t, ev.Opaque)
			}
			if err != nil && (calls > 0 || finished) {
				t.Fatalf("%d calls of a reply that failed: %v", calls, err)
			}
		}
	})
}

// sendBack writes a request with what was kept.
func sendBack(t *testing.T, o *domain.Opaque) {
	t.Helper()
	m := over(t, nil, 0)
	req := domain.ModelRequest{Messages: []domain.ModelMessage{domain.ModelReply{Text: "x", Opaque: o}}}
	if _, err := m.render(req, m.plan(req, amends{})); err != nil {
		t.Fatal(err)
	}
}

// FuzzScan: what the fast reader accepts is valid JSON, and the full decoding
// says the same of it.
func FuzzScan(f *testing.F) {
	for _, s := range []string{
		text(0, "hello"), hint(12, "é\n\"\\😀"), text(0, ""), args(1, "{}"), sign(0, "s"), msgStart, msgStop, ended("end_turn"),
		` { "type" : "content_block_delta" , "index" : 10 , "delta" : { "type" : "text_delta" , "text" : "a\ud83d" } } `,
		`{"type":"content_block_delta","index":-0,"delta":{"type":"text_delta","text":"a"}}`,
		`{"type":"content_block_delta","index":01,"delta":{"type":"text_delta","text":"a"}}`,
		`{"type":"content_block_delta","index":1.0,"delta":{"type":"text_delta","text":"a"}}`,
		`{"type":"content_block_delta","index":1234567,"delta":{"type":"text_delta","text":"a"}}`,
		`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"a"}} x`,
		`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"a","text":"b"}}`,
		`{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","text":"a"}}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		d, ok := scan(data)
		if !ok {
			return
		}
		var e event
		if err := json.Unmarshal(data, &e); err != nil {
			t.Fatalf("accepted %q, which does not decode: %v", data, err)
		}
		if e.Type != "content_block_delta" || e.Index == nil || *e.Index != d.index || e.Delta == nil || len(e.Error) > 0 {
			t.Fatalf("%q: fast %+v, full %+v", data, d, e)
		}
		raw, kind := e.Delta.Text, "text_delta"
		if d.think {
			raw, kind = e.Delta.Thinking, "thinking_delta"
		}
		want, err := llm.AppendText(nil, raw)
		if err != nil || e.Delta.Type != kind || !bytes.Equal(llm.Unescape(nil, d.text), want) {
			t.Fatalf("%q: fast %q, full %q, %v", data, d.text, want, err)
		}
	})
}

// TestScan_Common: the events that make up a stream take the fast way.
func TestScan_Common(t *testing.T) {
	for _, s := range []string{
		`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Hi"}}`,
		`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Hi"}           }`,
		`{"type": "content_block_delta", "index": 12, "delta": {"type": "thinking_delta", "thinking": "Hi"}}`,
	} {
		if d, ok := scan([]byte(s)); !ok || string(d.text) != "Hi" {
			t.Errorf("not taken: %s", s)
		}
	}
}
