package gemini

import (
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"unicode/utf8"

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

const fcall = `{"functionCall":{"name":"f","args":{"x":"é"}}}`
