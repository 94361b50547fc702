package openai

import (
	"bytes"
	"encoding/json"
	"testing"
	"unicode/utf8"

	"github.com/berth-dev/berth/adapters/llm"
)

// FuzzChunk: what the fast reader accepts is valid JSON, and the full decoding
// says the same of it.
func FuzzChunk(f *testing.F) {
	for _, s := range []string{
		text("hello"), deltaOf(`{"role":"assistant","content":""}`), ended("stop"), text("é\n\"\\😀"),
		deltaOf(`{"content":null,"reasoning_content":"hm"}`), deltaOf(`{"reasoning":"hm","content":""}`),
		`{"id":"x","created":1700000000,"model":"m","choices":[{"index":0,"delta":{"content":"a\ud83d"},"logprobs":null,"finish_reason":null}],"usage":null,"x":{"y":[1,-2.5E+3,true,false,null,"s",{}]}}`,
		`{"choices":[{"delta":{"content":"a"},"delta":{"content":"b"}}]}`, `{"choices":[],"usage":{"prompt_tokens":1}}`,
		`{"choices":[{"Delta":{"content":"a"}}]}`, `{"choices":[{"index":1,"delta":{"content":"b"}}]}`, `{"choices":[{"index":-0}]}`,
		`{"choices":[{"index":0.0}]}`, `{"choices":null}`, `[]`, `{"choices":[{"delta":{"content":"a"}}]} x`, `{"error":null,"choices":[{}]}`,
		`{"choices":[{"delta":{"content":"\u00e9\udc00\ud800x"}}]}`, `{"choices":[{"finish_reason":"st\u006fp"}]}`,
		`{"choices":[{"error":{"code":1},"delta":{"content":"a"}}]}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		d, ok := scan(data)
		if !ok {
			return
		}
		c, err := decode(data)
		if err != nil {
			t.Fatalf("accepted %q, which does not decode: %v", data, err)
		}
		if u := c.usages(); u != nil || len(c.Error) > 0 && string(c.Error) != "null" {
			t.Fatalf("accepted %q, which has counts or an error", data)
		}
		k := c.first()
		if k == nil {
			t.Fatalf("accepted %q, which has no first choice", data)
		}
		if len(k.Error) > 0 {
			t.Fatalf("accepted %q, whose choice has an error", data)
		}
		var content, reasoning []byte
		if m := k.said(); m != nil {
			if len(m.Calls) > 0 || m.Function != nil || len(m.Details) > 0 {
				t.Fatalf("accepted %q, which has calls or details", data)
			}
			content, _, err = textOf(m.Content)
			if err == nil {
				if reasoning, _, err = textOf(m.ReasoningContent); err == nil && len(reasoning) == 0 {
					reasoning, _, err = textOf(m.Reasoning)
				}
			}
			if err != nil {
				t.Fatalf("accepted %q, which has texts of a wrong type", data)
			}
		}
		if !bytes.Equal(llm.Unescape(nil, d.content), content) || !bytes.Equal(llm.Unescape(nil, d.reasoning), reasoning) {
			t.Fatalf("%q: fast %q %q, full %q %q", data, d.content, d.reasoning, content, reasoning)
		}
		var finish llm.Joiner
		if got := finish.Add(llm.Unescape(nil, d.finish)) + finish.End(); utf8.Valid(d.finish) && got != k.Finish {
			t.Fatalf("%q: finish %q, full %q", data, got, k.Finish)
		}
	})
}

// TestScan_Common: the events that make up a stream take the fast way.
func TestScan_Common(t *testing.T) {
	for _, s := range []string{
		// the forms of OpenAI, OpenRouter, Ollama, llama.cpp, vLLM, DeepSeek
		`{"id":"c","object":"chat.completion.chunk","created":1,"model":"m","service_tier":"default","system_fingerprint":"fp","choices":[{"index":0,"delta":{"content":"Hi"},"logprobs":null,"finish_reason":null}],"usage":null,"obfuscation":"x"}`,
		`{"id":"gen","provider":"P","model":"m","object":"chat.completion.chunk","created":1,"choices":[{"index":0,"delta":{"role":"assistant","content":"Hi"},"finish_reason":null,"native_finish_reason":null,"logprobs":null}]}`,
		`{"id":"chatcmpl","object":"chat.completion.chunk","created":1,"model":"m","system_fingerprint":"fp_ollama","choices":[{"index":0,"delta":{"role":"assistant","content":"Hi"},"finish_reason":null}]}`,
		`{"choices":[{"finish_reason":null,"index":0,"delta":{"content":"Hi"}}],"created":1,"id":"c","model":"m","system_fingerprint":"b1","object":"chat.completion.chunk"}`,
		`{"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"content":"Hi"},"logprobs":null,"finish_reason":null,"token_ids":null}]}`,
		`{"id":"c","choices":[{"index":0,"delta":{"content":null,"reasoning_content":"Hi"},"logprobs":null,"finish_reason":null}]}`,
		`{"id":"c","choices":[{"index":0,"delta":{},"logprobs":null,"finish_reason":"stop"}]}`,
	} {
		d, ok := scan([]byte(s))
		if !ok {
			t.Errorf("not taken: %s", s)
		}
		if string(d.content)+string(d.reasoning)+string(d.finish) == "" {
			t.Errorf("nothing found in %s", s)
		}
	}
}

// FuzzText: unescaping and joining gives what encoding/json gives, however a
// text is cut into pieces.
func FuzzText(f *testing.F) {
	f.Add("héllo 😀 \\ud83d", uint8(3))
	f.Add(`a\ud83d\ude00b\ud83dc\ude00`, uint8(1))
	f.Add(`\u00e9\n\"\\\/`, uint8(2))
	f.Fuzz(func(t *testing.T, body string, step uint8) {
		quoted := []byte(`"` + body + `"`)
		var want string
		if !utf8.ValidString(body) || !json.Valid(quoted) || json.Unmarshal(quoted, &want) != nil {
			return
		}
		wide := llm.Unescape(nil, quoted[1:len(quoted)-1])
		var j llm.Joiner
		var got string
		for n := int(step)%7 + 1; len(wide) > 0; wide = wide[min(n, len(wide)):] {
			piece := j.Add(wide[:min(n, len(wide))])
			if !utf8.ValidString(piece) {
				t.Fatalf("the piece %q of %q is no text", piece, body)
			}
			got += piece
		}
		if got += j.End(); got != want {
			t.Fatalf("%q in pieces of %d: %q, want %q", body, step%7+1, got, want)
		}
	})
}
