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

// reply is one that is wanted back as it was.
type reply struct {
	blocks said
	prefix string // what it was said to
}

// remember notes a reply to a request that is wanted back as it was.
func (f *fake) remember(s said, body []byte) {
	var r request
	if decode(body, &r) != nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.signed = append(f.signed, reply{s, r.prefix(len(r.Messages))})
}

// prefix is all that stands before the n-th message, but for what is no part of
// a conversation.
func (r request) prefix(n int) string {
	bare := func(blocks []block) []block {
		out := slices.Clone(blocks)
		for i := range out {
			out[i].Cache = nil
		}
		return out
	}
	tools := slices.Clone(r.Tools)
	for i := range tools {
		tools[i].Cache = nil
	}
	messages := slices.Clone(r.Messages[:n])
	for i := range messages {
		messages[i].Content = bare(messages[i].Content)
	}
	return js([]any{tools, bare(r.System), messages})
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
		for _, b := range m.Content {
			if b.Type == "thinking" && *b.Signature != signature(*b.Thinking) {
				problems = append(problems, fmt.Sprintf("messages.%d: Invalid `signature` in `thinking` block", i))
			}
		}
		if p := f.compare(linesOf(m), r.prefix(i)); p != "" {
			problems = append(problems, fmt.Sprintf("messages.%d: %s", i, p))
		}
	}
	if r.Thinking != nil && r.Thinking.Type == "enabled" && !r.turnBeginsWithThought() {
		problems = append(problems, "Expected `thinking` or `redacted_thinking`. When `thinking` is enabled, a final `assistant` message must start with a thinking block")
	}
	return problems
}

// compare returns what is wrong with the thoughts of a reply that came back.
// Thoughts are bound to what stood before them: without that they are wrong,
// with it they must be there.
func (f *fake) compare(got said, prefix string) string {
	binds := f.style.Name == Model
	for _, want := range f.signed {
		if !slices.Equal(got.spoken(), want.blocks.spoken()) {
			continue
		}
		switch moved := binds && prefix != want.prefix; {
		case moved && !slices.Equal(got, got.spoken()):
			return "Invalid `signature` in `thinking` block. The block is bound to a different conversation."
		case !moved && !slices.Equal(got, want.blocks):
			return fmt.Sprintf("`thinking` or `redacted_thinking` blocks cannot be modified: they are %q, they were %q", got, want.blocks)
		}
	}
	return ""
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
