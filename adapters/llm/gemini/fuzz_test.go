package gemini

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"unicode/utf8"

	"github.com/berth-dev/berth/adapters/llm"
	"github.com/berth-dev/berth/core/domain"
	"github.com/berth-dev/berth/core/ports/porttest"
)

// read renders all that becomes of a body: the text, the thought, the calls
// and what is kept, and how it ended.
func read(t *testing.T, body string, wrap func(io.Reader) io.Reader) string {
	var text, thought strings.Builder
	out := ""
	for ev, err := range over(t, canned{body, wrap}).Stream(t.Context(), porttest.SampleRequest()) {
		switch ev := ev.(type) {
		case domain.TextDelta:
			text.WriteString(ev.Text)
			if ev.Text == "" || !utf8.ValidString(ev.Text) {
				t.Fatalf("%q gave the text %q", body, ev.Text)
			}
		case domain.ThoughtDelta:
			thought.WriteString(ev.Text)
		case domain.CallRequested:
			out += fmt.Sprintf(" +%s:%s%s", ev.Call.ProviderID, ev.Call.Name, ev.Call.Args)
		case domain.Finish:
			out += " ." + string(ev.Reason)
			if ev.Opaque != nil {
				out += " " + string(ev.Opaque.Data)
			}
		}
		if err != nil {
			out += " !" + err.Error()
			if domain.CodeOf(err) == domain.Internal {
				t.Fatalf("%q: the error %v is not coded", body, err)
			}
		}
	}
	return text.String() + "<" + thought.String() + ">" + out
}

// FuzzReply: whatever a server sends, the reader comes to an end, and to the
// same one however the network cut it.
func FuzzReply(f *testing.F) {
	for _, body := range []string{
		data(say(`{"text":"hé\ud83d"}`), say(`{"text":"\ude00","thoughtSignature":"AB=="}`), ends("STOP", fcall)),
		data(say(`{"text":"hm","thought":true,"thoughtSignature":"1="}`), `{"promptFeedback":{"blockReason":"SAFETY"}}`),
		"[" + say(`{"text":"a"}`) + "\n,\r\n" + ends("MAX_TOKENS", `{"text":"b"}`) + "]",
		"[" + say(`{"text":"a"}`) + ",", "\uFEFF" + ends("STOP", `{"text":"a"}`) + "\n{", "[]", "{}", "[[", " \r\n<html>",
		data(say(`{"text":"a"}`)) + "{\n  \"error\": {\n    \"code\": 503\n  }\n}\n",
		"event: error\ndata: x\n\n", data(`{"error":{"message":"m","details":[{"@type":"x.RetryInfo","retryDelay":"1s"}]}}`, "[DONE]"),
		data(ends("STOP", `{"text":"a"}`), ends("OTHER", `{"text":"b"}`), `{"usageMetadata":{"promptTokenCount":1}}`),
		data(say(`{"functionCall":{"name":"f","args":{"x":[1,{}]},"id":"k"},"thoughtSignature":"s"},{"inlineData":null}`), stop),
	} {
		f.Add(body)
	}
	f.Fuzz(func(t *testing.T, body string) {
		want := read(t, body, nil)
		if got := read(t, body, iotest.OneByteReader); got != want {
			t.Fatalf("%q: byte by byte %q, at once %q", body, got, want)
		}
		if got := read(t, body, iotest.DataErrReader); got != want {
			t.Fatalf("%q: with the end %q, before it %q", body, got, want)
		}
	})
}

// FuzzScan: what the fast reader accepts is valid JSON, and the full decoding
// says the same of it.
func FuzzScan(f *testing.F) {
	for _, s := range []string{
		say(`{"text":"hello"}`), say(`{"text":"é\n\"\\😀\ud83d","thought":true}`), say(`{"text":"a"},{"text":"b"}`), say(`{"text":null}`),
		`{"candidates": [{"content": {"parts": [{"text": "x","thought": false}],"role": "model"},"index": 0,"safetyRatings":[{"a":"b]"}]}],"usageMetadata": {"promptTokenCount": 8,"x":[{"y":"}"}]},"modelVersion": "m","responseId": "r"}`,
		`{"candidates":[{"index":1,"content":{"parts":[{"text":"x"}]}}]}`, `{"candidates":[{"Content":{"parts":[{"text":"x"}]}}]}`,
		`{"candidates":[{"content":{"parts":[{"text":"x"}]}}],"candidates":[]}`, `{"candidates":[{"content":{"parts":[{"text":"x"}]}}],"usageMetadata":null}`,
		`{"candidates":[{"content":{"parts":[{"text":"x"}]}}]} x`, `{"candidates":[{"content":{"parts":[{"text":"x\q"}]}}]}`, `{"modelVersion":,"candidates":[]}`,
		stop, `{}`, `[]`, `{"candidates":[{"content":{"parts":[{"text":"`, `{"candidates":[{"content":{"parts":[{"text":"x"}]},"index":0 }],"responseId":"\`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		p, ok := scan(data)
		if !ok {
			return
		}
		if !json.Valid(data) {
			t.Fatalf("accepted %q, which is no JSON", data)
		}
		var c chunk
		if err := json.Unmarshal(data, &c); err != nil {
			if p.usage != nil && json.Unmarshal(p.usage, &usage{}) != nil {
				return // counts are decoded later, and fail then
			}
			t.Fatalf("accepted %q, which does not decode: %v", data, err)
		}
		k := c.first()
		if k == nil || k.Content == nil || len(k.Content.Parts) != 1 || k.Finish != "" || c.Feedback != nil || llm.Present(c.Error) {
			t.Fatalf("accepted %q, which is %+v", data, c)
		}
		part := k.Content.Parts[0]
		if part.strange() || part.Sign != "" || part.Call != nil || part.Thought != p.thought || string(part.Text) != `"`+string(p.text)+`"` {
			t.Fatalf("%q: fast %q, full %+v", data, p.text, part)
		}
		if (c.Usage == nil) != (p.usage == nil) {
			t.Fatalf("%q: the counts are %q and %v", data, p.usage, c.Usage)
		}
	})
}

// TestScan_Common: the chunks that make up a stream take the fast way.
func TestScan_Common(t *testing.T) {
	first, _, _ := strings.Cut(strings.TrimPrefix(benchBody(), "data: "), "\r\n")
	for _, s := range []string{first, say(`{"text":"a"}`), say(`{"text":"a","thought":true}`)} {
		if p, ok := scan([]byte(s)); !ok || len(p.text) == 0 {
			t.Errorf("not taken: %s", s)
		}
	}
}

const fcall = `{"functionCall":{"name":"f","args":{"x":"é"}}}`
