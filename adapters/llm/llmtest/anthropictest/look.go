package anthropictest

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// said is a reply as the server knows it: its blocks, each in a line.
type said []string

// spoken returns the blocks that are no thoughts.
func (s said) spoken() said {
	return slices.DeleteFunc(slices.Clone(s), func(b string) bool { return strings.HasPrefix(b, "thought ") })
}

func thoughtLine(text, signature string) string { return "thought " + js(text) + " " + signature }
func textLine(text string) string               { return "text " + js(text) }
func callLine(name, args string) string         { return "call " + name + " " + compact(args) }

// signature is what the server signs a thought with.
func signature(text string) string {
	sum := sha256.Sum256([]byte("secret " + text))
	return "sig+/" + base64.StdEncoding.EncodeToString(sum[:])
}

func compact(object string) string {
	var v any
	if strings.TrimSpace(object) == "" {
		object = "{}"
	}
	if json.Unmarshal([]byte(object), &v) != nil {
		return object
	}
	return js(v)
}

// remember notes a reply that is wanted back as it was.
func (f *fake) remember(s said) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.signed = append(f.signed, s)
}

// look compares what came back of former replies with what they were.
func (f *fake) look(body []byte) []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	var r request
	if err := decode(body, &r); err != nil {
		return []string{err.Error()}
	}
	var problems []string
	for i, m := range r.Messages {
		if m.Role != "assistant" {
			continue
		}
		got := linesOf(m)
		for _, b := range m.Content {
			if b.Type == "thinking" && *b.Signature != signature(*b.Thinking) {
				problems = append(problems, fmt.Sprintf("messages.%d: Invalid `signature` in `thinking` block", i))
			}
		}
		for _, want := range f.signed {
			if slices.Equal(got.spoken(), want.spoken()) && !slices.Equal(got, want) {
				problems = append(problems, fmt.Sprintf(
					"messages.%d: `thinking` or `redacted_thinking` blocks cannot be modified: they are %q, they were %q", i, got, want))
			}
		}
	}
	if r.Thinking != nil && r.Thinking.Type == "enabled" && !r.turnBeginsWithThought() {
		problems = append(problems, "Expected `thinking` or `redacted_thinking`. When `thinking` is enabled, a final `assistant` message must start with a thinking block")
	}
	return problems
}

// linesOf returns the blocks of a message in lines.
func linesOf(m message) said {
	var out said
	for _, b := range m.Content {
		switch b.Type {
		case "text":
			out = append(out, textLine(*b.Text))
		case "tool_use":
			out = append(out, callLine(*b.Name, string(b.Input)))
		case "thinking":
			out = append(out, thoughtLine(*b.Thinking, *b.Signature))
		case "redacted_thinking":
			out = append(out, thoughtLine("", *b.Data))
		}
	}
	return out
}

// turnBeginsWithThought reports whether the reply that the newest results
// belong to begins with a thought, if there are any.
func (r request) turnBeginsWithThought() bool {
	n := len(r.Messages)
	if n < 2 || r.Messages[n-1].Content[0].Type != "tool_result" {
		return true
	}
	return strings.HasSuffix(r.Messages[n-2].Content[0].Type, "thinking")
}
