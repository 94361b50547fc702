package bedrocktest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/berth-dev/berth/core/ports/porttest"
)

// request is all that the wire knows of one, as far as it is used here: a
// field that is missing here is refused.
type request struct {
	Messages []message `json:"messages"`
	System   []content `json:"system"`
	Tools    *struct {
		Tools []struct {
			Spec *struct {
				Name        string `json:"name"`
				Description string `json:"description"`
				Input       struct {
					JSON map[string]any `json:"json"`
				} `json:"inputSchema"`
			} `json:"toolSpec"`
			CachePoint *point `json:"cachePoint"`
		} `json:"tools"`
	} `json:"toolConfig"`
	Inference *struct {
		MaxTokens int `json:"maxTokens"`
	} `json:"inferenceConfig"`
	More map[string]any `json:"additionalModelRequestFields"`
}

type message struct {
	Role    string    `json:"role"`
	Content []content `json:"content"`
}

type content struct {
	Text  *string `json:"text"`
	Image *media  `json:"image"`
	Audio *media  `json:"audio"`
	Call  *struct {
		ID    string         `json:"toolUseId"`
		Name  string         `json:"name"`
		Input map[string]any `json:"input"`
	} `json:"toolUse"`
	Result *struct {
		ID      string    `json:"toolUseId"`
		Content []content `json:"content"`
		Status  string    `json:"status"`
	} `json:"toolResult"`
	Thought *struct {
		Text *struct {
			Text      string `json:"text"`
			Signature string `json:"signature"`
		} `json:"reasoningText"`
		Redacted []byte `json:"redactedContent"`
	} `json:"reasoningContent"`
	CachePoint *point `json:"cachePoint"`
}

type media struct {
	Format string `json:"format"`
	Source struct {
		Bytes []byte `json:"bytes"`
	} `json:"source"`
}

type point struct {
	Type string `json:"type"`
}

// lookout is the memory of one server.
type lookout struct {
	form    Form
	answers int

	mu     sync.Mutex
	signed []signedReply
}

// signedReply is what has to come back with a reply.
type signedReply struct {
	id      string // of its first call
	thought string
	secret  []byte
}

func (s *lookout) remember(name string, r porttest.Reply) {
	out := signedReply{secret: secret(name)}
	for _, part := range r.Parts {
		switch part := part.(type) {
		case porttest.SendThought:
			out.thought += string(part)
		case porttest.SendCall:
			if out.id == "" {
				out.id = part.ID
			}
		}
	}
	if out.id != "" && out.thought != "" {
		s.mu.Lock()
		s.signed = append(s.signed, out)
		s.mu.Unlock()
	}
}

// look returns what the real service would refuse.
func (s *lookout) look(body []byte) []string {
	var req request
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&req); err != nil {
		return []string{err.Error()}
	}
	v := &view{form: s.form, req: &req, ids: map[string]bool{}}
	v.tools()
	v.system()
	v.messages()
	if v.points > 4 {
		v.add("%d cache points", v.points)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	v.returned(s.signed)
	return v.problems
}

// view is one request under inspection.
type view struct {
	form     Form
	req      *request
	problems []string
	ids      map[string]bool // of calls so far
	points   int
}

func (v *view) add(format string, args ...any) {
	v.problems = append(v.problems, fmt.Sprintf(format, args...))
}

// plain is the form of names and ids.
func plain(s string) bool { return regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`).MatchString(s) }

func (v *view) cached(p *point, where string) {
	v.points++
	switch {
	case p.Type != "default":
		v.add("a cache point of type %q", p.Type)
	case v.form.Model == Llama:
		v.add("%s: extraneous key [cachePoint] is not permitted", where)
	case v.form.Model == Nova && where == "toolConfig":
		v.add("#/toolConfig/tools: extraneous key [cachePoint] is not permitted")
	}
}

func (v *view) tools() {
	if v.req.Tools == nil {
		return
	}
	if len(v.req.Tools.Tools) == 0 {
		v.add("toolConfig without tools")
	}
	for i, t := range v.req.Tools.Tools {
		switch {
		case t.CachePoint != nil:
			v.cached(t.CachePoint, "toolConfig")
			if i == 0 || t.Spec != nil {
				v.add("a cache point in the place of a tool")
			}
		case t.Spec == nil || !plain(t.Spec.Name) || t.Spec.Input.JSON["type"] != "object":
			v.add("tool %d is none", i)
		}
	}
}

func (v *view) system() {
	for i, c := range v.req.System {
		switch {
		case c.CachePoint != nil && i > 0:
			v.cached(c.CachePoint, "system")
		case c.Text == nil || strings.TrimSpace(*c.Text) == "":
			v.add("system block %d is blank", i)
		}
	}
}

func (v *view) messages() {
	var asked []string // calls that the next message must answer
	for i, m := range v.req.Messages {
		want := "user"
		if i%2 == 1 {
			want = "assistant"
		}
		if m.Role != want || len(m.Content) == 0 {
			v.add("message %d is %s's with %d blocks; roles alternate", i, m.Role, len(m.Content))
		}
		for at, c := range m.Content {
			v.content(fmt.Sprintf("messages.%d.content.%d", i, at), m.Role, c)
		}
		answered := results(m)
		slices.Sort(asked)
		slices.Sort(answered)
		if !slices.Equal(asked, answered) {
			v.add("message %d answers the calls %q, asked were %q", i, answered, asked)
		}
		asked = calls(m)
		if len(asked)+len(answered) > 0 && v.req.Tools == nil {
			v.add("the toolConfig field must be defined when using toolUse and toolResult content blocks")
		}
	}
	if len(asked) > 0 {
		v.add("the calls %q have no output", asked)
	}
	if n := len(v.req.Messages); n == 0 || v.req.Messages[n-1].Role != "user" {
		v.add("the conversation does not end with the user")
	}
}

func results(m message) []string {
	var out []string
	for _, c := range m.Content {
		if c.Result != nil {
			out = append(out, c.Result.ID)
		}
	}
	return out
}

func calls(m message) []string {
	var out []string
	for _, c := range m.Content {
		if c.Call != nil {
			out = append(out, c.Call.ID)
		}
	}
	return out
}

// content looks at one block of a message.
func (v *view) content(where, role string, c content) {
	members := 0
	for _, there := range []bool{c.Text != nil, c.Image != nil, c.Audio != nil, c.Call != nil, c.Result != nil, c.Thought != nil, c.CachePoint != nil} {
		if there {
			members++
		}
	}
	switch {
	case members != 1:
		v.add("%s has %d members", where, members)
	case c.Text != nil && strings.TrimSpace(*c.Text) == "":
		v.add("%s: the text field is blank", where)
	case (c.Call != nil || c.Thought != nil) && role != "assistant", (c.Result != nil || c.Image != nil) && role != "user":
		v.add("%s is not of the %s", where, role)
	case c.Image != nil && (!slices.Contains([]string{"png", "jpeg", "gif", "webp"}, c.Image.Format) || len(c.Image.Source.Bytes) == 0):
		v.add("%s is no image", where)
	case c.CachePoint != nil:
		v.cached(c.CachePoint, where)
	case c.Call != nil:
		if !plain(c.Call.ID) || !plain(c.Call.Name) || c.Call.Input == nil || v.ids[c.Call.ID] {
			v.add("%s: the id %q or the name %q is not plain or not its own", where, c.Call.ID, c.Call.Name)
		}
		v.ids[c.Call.ID] = true
	case c.Thought != nil:
		v.thought(where, c)
	case c.Result != nil:
		v.result(where, c)
	}
}

func (v *view) thought(where string, c content) {
	t := c.Thought
	switch {
	case (t.Text == nil) == (t.Redacted == nil):
		v.add("%s: a thought is text or redacted", where)
	case t.Text != nil && t.Text.Signature != signatureOf(t.Text.Text):
		v.add("%s: invalid signature in thinking block", where)
	}
}

func (v *view) result(where string, c content) {
	if len(c.Result.Content) == 0 || !slices.Contains([]string{"", "error", "success"}, c.Result.Status) {
		v.add("%s: an empty result or the status %q", where, c.Result.Status)
	}
	for _, inner := range c.Result.Content {
		switch {
		case inner.Text != nil && strings.TrimSpace(*inner.Text) != "":
		case inner.Image != nil && v.form.Model != Llama:
		default:
			v.add("%s: a result holds what it cannot", where)
		}
	}
	if c.Result.Status != "" && v.form.Model == Llama {
		v.add("%s: status is not supported", where)
	}
}

// returned demands the thoughts of signed replies, in front of their texts.
func (v *view) returned(signed []signedReply) {
	for _, m := range v.req.Messages {
		for _, s := range signed {
			if !slices.Contains(calls(m), s.id) {
				continue
			}
			if len(m.Content) < 2 || m.Content[0].Thought == nil || m.Content[0].Thought.Text == nil ||
				m.Content[0].Thought.Text.Text != s.thought {
				v.add("the reply that calls %s does not begin with its thought", s.id)
				continue
			}
			if m.Content[1].Thought == nil || !bytes.Equal(m.Content[1].Thought.Redacted, s.secret) {
				v.add("the reply that calls %s lacks its redacted thought", s.id)
			}
		}
	}
}
