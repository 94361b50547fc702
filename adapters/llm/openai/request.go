package openai

import (
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/berth-dev/berth/adapters/llm"
	"github.com/berth-dev/berth/core/domain"
)

// option is a set of optional things a server may refuse. Its lowest bits are
// the refused efforts.
type option uint32

// The options.
const (
	efforts      option = 1<<llm.EffortBits - 1
	dropUsage    option = 1 << (llm.EffortBits + iota) // stream_options
	dropThoughts                                       // reasoning given back
	swapLimit                                          // max_completion_tokens in place of max_tokens
	dropCacheKey                                       // prompt_cache_key
)

// refusedOption returns the option to leave out after a refusal, 0 when the
// refusal is about something else. Level is what the request asked for.
func refusedOption(err error, level domain.ThoughtLevel, dropped option) option {
	f, ok := err.(*llm.Failure) //nolint:errorlint // Start returns its failures bare
	if !ok || (f.Status != http.StatusBadRequest && f.Status != http.StatusUnprocessableEntity) {
		return 0
	}
	words := strings.ToLower(f.Param + " " + f.Words)
	named := func(subs ...string) bool {
		return slices.ContainsFunc(subs, func(s string) bool { return strings.Contains(words, s) })
	}
	unknown := named("unsupported", "not supported", "unknown", "unrecognized", "not permitted", "not allowed", "unexpected", "extra")
	sent := llm.Effort(level, llm.Efforts(dropped&efforts))
	var drop option
	switch {
	case named("max_completion_tokens") && named("max_tokens"):
		drop = swapLimit
	case sent != "" && named("effort", "reasoning", "think") &&
		(named("effort") && unknown || named("does not support", "must be one of", "invalid value", "input should be", "mandatory", "cannot be disabled")):
		drop = option(llm.RefuseEffort(0, sent, words))
	case !unknown:
	case named("stream_options", "include_usage"):
		drop = dropUsage
	case named("prompt_cache_key"):
		drop = dropCacheKey
	case named("reasoning", "extra_content"):
		if drop = dropThoughts; dropped&dropThoughts != 0 && sent != "" {
			drop = option(llm.RefuseEffort(0, "", words))
		}
	}
	return drop &^ dropped
}

// body is the request as it is sent.
type body struct {
	Model         string         `json:"model"`
	Messages      []any          `json:"messages"`
	Tools         []tool         `json:"tools,omitempty"`
	Stream        bool           `json:"stream"`
	StreamOptions *streamOptions `json:"stream_options,omitempty"`
	MaxTokens     int            `json:"max_tokens,omitempty"`
	MaxCompletion int            `json:"max_completion_tokens,omitempty"`
	Effort        string         `json:"reasoning_effort,omitempty"`
	CacheKey      string         `json:"prompt_cache_key,omitempty"`
	// What only OpenRouter has.
	Reasoning *reasoning `json:"reasoning,omitempty"`
	Usage     *askUsage  `json:"usage,omitempty"`
}

type streamOptions struct {
	IncludeUsage bool `json:"include_usage"`
}

type tool struct {
	Type     string       `json:"type"`
	Function toolFunction `json:"function"`
}

type toolFunction struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Parameters  json.RawMessage `json:"parameters"`
}

// plainMessage is a message of the system or the user. Content, as in a
// toolMessage, is a string or a list of parts.
type plainMessage struct {
	Role    string `json:"role"`
	Content any    `json:"content"`
}

type part struct {
	Type  string    `json:"type"`
	Text  string    `json:"text,omitempty"`
	Image *imageURL `json:"image_url,omitempty"`
	Audio *audio    `json:"input_audio,omitempty"`
	Cache *cache    `json:"cache_control,omitempty"`
}

type imageURL struct {
	URL string `json:"url"`
}

type audio struct {
	Data   string `json:"data"`
	Format string `json:"format"`
}

// assistantMessage is a reply of before. Content is null when there was none.
type assistantMessage struct {
	Role      string            `json:"role"`
	Content   *string           `json:"content"`
	Calls     []sentCall        `json:"tool_calls,omitempty"`
	Reasoning *string           `json:"reasoning,omitempty"`
	Thought   *string           `json:"reasoning_content,omitempty"`
	Details   []json.RawMessage `json:"reasoning_details,omitempty"`
	Extra     json.RawMessage   `json:"extra_content,omitempty"`
}

type sentCall struct {
	ID       string          `json:"id"`
	Type     string          `json:"type"`
	Function sentFunction    `json:"function"`
	Extra    json.RawMessage `json:"extra_content,omitempty"`
}

type sentFunction struct {
	Name string `json:"name"`
	Args string `json:"arguments"`
}

type toolMessage struct {
	Role    string `json:"role"`
	ID      string `json:"tool_call_id"`
	Content any    `json:"content"`
}

// render writes a request down.
func (m *Model) render(req domain.ModelRequest, dropped option) ([]byte, error) {
	b := body{Model: m.info.Ref.Model, Stream: true, Messages: m.messages(req, dropped)}
	for _, t := range req.Tools {
		b.Tools = append(b.Tools, tool{Type: "function", Function: toolFunction{Name: t.Name, Description: t.Description, Parameters: llm.Schema(t)}})
	}
	if dropped&dropUsage == 0 && m.variant != openRouter {
		b.StreamOptions = &streamOptions{IncludeUsage: true}
	}
	if dropped&swapLimit == 0 {
		b.MaxTokens = req.MaxOutputTokens
	} else {
		b.MaxCompletion = req.MaxOutputTokens
	}
	m.vary(&b, req, dropped)
	return llm.Encode(b)
}

// messages renders the conversation. Messages of one role that follow each
// other become one, because many chat templates refuse them apart.
func (m *Model) messages(req domain.ModelRequest, dropped option) []any {
	out := make([]any, 0, len(req.Messages)+1)
	if req.System != "" {
		out = append(out, plainMessage{Role: "system", Content: req.System})
	}
	names := llm.NewCallNames()
	giveBack := llm.ToolTurns(req.Messages)
	// Media are what tools showed: they follow the outputs, which hold text
	// alone and must stay together.
	var user, media []domain.Block
	flush := func() {
		if user = append(media, user...); len(user) > 0 {
			out = append(out, plainMessage{Role: "user", Content: m.content(user)})
		}
		user, media = nil, nil
	}
	for i, msg := range req.Messages {
		switch msg := msg.(type) {
		case domain.UserInput:
			user = append(user, msg.Blocks...)
		case domain.ModelReply:
			if msg.Text == "" && len(msg.Calls) == 0 {
				continue // only thoughts; no server wants a message without content
			}
			flush()
			var keep keepsake
			if giveBack[i] && dropped&dropThoughts == 0 {
				keep = m.kept(msg.Opaque)
			}
			next := assistant(msg, keep, names)
			if last, ok := lastReply(out); ok && len(last.Calls) == 0 {
				joined := *last.Content
				if next.Content != nil {
					joined += "\n\n" + *next.Content
				}
				next.Content = &joined
				out[len(out)-1] = next
				continue
			}
			out = append(out, next)
		case domain.ToolOutput:
			if len(user) > 0 {
				flush()
			}
			text, shown := m.output(msg)
			media = append(media, shown...)
			out = append(out, toolMessage{Role: "tool", ID: names.Of(msg.Call), Content: text})
		}
	}
	flush()
	return out
}

// output returns the text of a tool's result, and what of it is to be shown
// behind the results. What the model can neither see nor hear is named.
func (m *Model) output(o domain.ToolOutput) (text string, shown []domain.Block) {
	said := []domain.Block{domain.Text{Text: o.Text}}
	for _, b := range o.Media {
		_, image := b.(domain.Image)
		_, sound := b.(domain.Audio)
		if image && m.info.Images || sound && m.info.Audio {
			shown = append(shown, b)
			continue
		}
		said = append(said, b)
	}
	if text = domain.PromptText(said); text == "" {
		text = "(no output)"
	}
	if len(shown) > 0 {
		shown = append([]domain.Block{domain.Text{Text: "[Shown by the tool " + o.Call.Name + ":]"}}, shown...)
	}
	return text, shown
}

func lastReply(out []any) (assistantMessage, bool) {
	if len(out) == 0 {
		return assistantMessage{}, false
	}
	last, ok := out[len(out)-1].(assistantMessage)
	return last, ok
}

func assistant(r domain.ModelReply, keep keepsake, names *llm.CallNames) assistantMessage {
	out := assistantMessage{Role: "assistant", Details: keep.Details, Extra: keep.Extra}
	if r.Text != "" {
		out.Content = &r.Text
	}
	switch {
	case len(keep.Details) > 0: // they hold the text
	case keep.Field == "reasoning":
		out.Reasoning = &r.Thought
	case keep.Field != "":
		out.Thought = &r.Thought
	}
	for i, c := range r.Calls {
		out.Calls = append(out.Calls, sentCall{
			ID: names.Add(c), Type: "function",
			Function: sentFunction{Name: llm.ToolName(c.Name), Args: string(llm.Sent(c))}, Extra: keep.Calls[position(i)],
		})
	}
	return out
}

func position(i int) string { return strconv.Itoa(i) }

// content renders what the user said: a text, or parts when there is
// something the model can see or hear.
func (m *Model) content(blocks []domain.Block) any {
	var parts []part
	var text []domain.Block
	rich := false
	flush := func() {
		if s := domain.PromptText(text); s != "" {
			parts = append(parts, part{Type: "text", Text: s})
		}
		text = nil
	}
	for _, b := range blocks {
		switch b := b.(type) {
		case domain.Image:
			if m.info.Images {
				flush()
				parts, rich = append(parts, part{Type: "image_url", Image: &imageURL{URL: llm.DataURL(b.MIME, b.Data)}}), true
				continue
			}
		case domain.Audio:
			if m.info.Audio {
				flush()
				parts, rich = append(parts, part{Type: "input_audio", Audio: &audio{
					Data: llm.Base64(b.Data), Format: llm.AudioFormat(b.MIME),
				}}), true
				continue
			}
		}
		text = append(text, b)
	}
	if !rich {
		return domain.PromptText(blocks)
	}
	flush()
	return parts
}
