package geminitest

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"sync"
)

// skipSign is accepted in place of a signature.
const skipSign = "skip_thought_signature_validator"

// memory is what a server has sent with signatures.
type memory struct {
	mu      sync.Mutex
	replies [][]part // all parts of each signed reply
}

func (m *memory) keep(parts []part) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.replies = append(m.replies, parts)
}

// look returns what a strict model would refuse: responses that do not answer
// their calls one by one, signatures that are missing, moved or made up.
func (m *memory) look(body []byte, strict bool) []string {
	r, err := decode(body)
	if err != nil {
		return []string{err.Error()}
	}
	problems := pairs(r.Contents)
	m.mu.Lock()
	defer m.mu.Unlock()
	for i, c := range r.Contents {
		if c.Role != "model" {
			continue
		}
		for _, p := range c.Parts {
			if p.Sign != "" && p.Sign != skipSign && !m.issued(p) {
				problems = append(problems, fmt.Sprintf("content %d: the signature %q was not given with %s", i, p.Sign, describe(p)))
			}
		}
	}
	for n, reply := range m.replies {
		at := slices.IndexFunc(r.Contents, func(c content) bool { return c.Role == "model" && holds(c.Parts, reply) })
		if at < 0 {
			continue
		}
		signed := slices.DeleteFunc(slices.Clone(r.Contents[at].Parts), func(p part) bool { return p.Sign == "" || p.Sign == skipSign })
		want := slices.DeleteFunc(slices.Clone(reply), func(p part) bool { return p.Sign == "" })
		if !slices.EqualFunc(signed, want, same) {
			problems = append(problems, fmt.Sprintf("reply %d came back with %d signed parts, or others than the %d it had", n+1, len(signed), len(want)))
		}
	}
	if strict {
		problems = append(problems, unsigned(r.Contents)...)
	}
	return problems
}

func (m *memory) issued(p part) bool {
	return slices.ContainsFunc(m.replies, func(reply []part) bool {
		return slices.ContainsFunc(reply, func(q part) bool { return same(p, q) })
	})
}

// holds reports whether a message has one of the calls of a reply, or its
// first text.
func holds(parts, reply []part) bool {
	return slices.ContainsFunc(parts, func(p part) bool {
		return slices.ContainsFunc(reply, func(q part) bool {
			p.Sign, q.Sign = "", ""
			return (q.Call != nil || q.Text != nil && *q.Text != "" && !q.Thought) && same(p, q)
		})
	})
}

// same compares two parts of a model, arguments as values.
func same(p, q part) bool {
	switch {
	case p.Sign != q.Sign || p.Thought != q.Thought || (p.Text == nil) != (q.Text == nil) || (p.Call == nil) != (q.Call == nil):
		return false
	case p.Text != nil:
		return *p.Text == *q.Text
	case p.Call == nil:
		return true
	}
	var a, b any
	_, _ = json.Unmarshal(p.Call.Args, &a), json.Unmarshal(q.Call.Args, &b) // both came out of a decoder
	return p.Call.ID == q.Call.ID && p.Call.Name == q.Call.Name && reflect.DeepEqual(a, b)
}

func describe(p part) string {
	switch {
	case p.Call != nil:
		return "the call " + p.Call.Name + string(p.Call.Args)
	case p.Text != nil:
		return fmt.Sprintf("the text %q", *p.Text)
	}
	return "such a part"
}

// pairs demands for each message with calls a message that begins with their
// responses, in their order, and no response anywhere else.
func pairs(contents []content) []string {
	var problems []string
	for i, c := range contents {
		var calls []call
		if i > 0 {
			for _, p := range contents[i-1].Parts {
				if p.Call != nil {
					calls = append(calls, *p.Call)
				}
			}
		}
		n := 0
		for _, p := range c.Parts {
			if p.Response != nil {
				if n < len(calls) && (p.Response.Name != calls[n].Name || p.Response.ID != calls[n].ID) {
					problems = append(problems, fmt.Sprintf("content %d: response %d is of %s %q, the call was %s %q",
						i, n, p.Response.Name, p.Response.ID, calls[n].Name, calls[n].ID))
				}
				n++
			}
		}
		if c.Role == "user" && n != len(calls) {
			problems = append(problems, fmt.Sprintf("content %d: the number of function response parts is %d, of function call parts %d", i, n, len(calls)))
		}
	}
	return problems
}

// unsigned demands a signature of the first call of each message since the
// user last spoke.
func unsigned(contents []content) []string {
	var problems []string
	for i := len(contents) - 1; i >= 0; i-- {
		c := contents[i]
		if c.Role == "user" {
			if !slices.ContainsFunc(c.Parts, func(p part) bool { return p.Response != nil }) {
				break
			}
			continue
		}
		if at := slices.IndexFunc(c.Parts, func(p part) bool { return p.Call != nil }); at >= 0 && c.Parts[at].Sign == "" {
			problems = append(problems, fmt.Sprintf("function call is missing a thought_signature: %s, position %d", c.Parts[at].Call.Name, i))
		}
	}
	return problems
}
