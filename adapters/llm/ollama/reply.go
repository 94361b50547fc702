package ollama

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/berth-dev/berth/adapters/llm"
	"github.com/berth-dev/berth/core/domain"
)

// line is one line of an answer. Texts stay raw, because halves of characters
// would be lost in decoding.
type line struct {
	Error   json.RawMessage `json:"error"`
	Message *struct {
		Content  json.RawMessage `json:"content"`
		Thinking json.RawMessage `json:"thinking"`
		Calls    []struct {
			ID       string `json:"id"`
			Function struct {
				Name string          `json:"name"`
				Args json.RawMessage `json:"arguments"`
			} `json:"function"`
		} `json:"tool_calls"`
	} `json:"message"`
	Done       bool      `json:"done"`
	DoneReason string    `json:"done_reason"`
	Prompt     llm.Count `json:"prompt_eval_count"`
	Generated  llm.Count `json:"eval_count"`
}

// reply is one answer as far as it has come.
type reply struct {
	model *Model
	facts *facts
	x     *llm.Exchange
	emit  llm.Emit

	text    llm.Joiner
	thought llm.Joiner
	scratch []byte
	thinks  bool // something of a thought has come
	calls   []domain.ModelCall
	bytes   int // of arguments
}

// read reads the answer to its last line. It is complete when a line says that
// it is done, and not before.
func (r *reply) read() error {
	lines := llm.NewLines(r.x, r.x.Alive)
	for {
		data, err := lines.Next()
		if err != nil {
			return r.x.Cut(err)
		}
		done, err := r.take(data)
		if err != nil {
			return err
		}
		if done != nil {
			r.x.Drain()
			return r.end(done)
		}
	}
}

// take takes in one line, and returns it if it is the last.
func (r *reply) take(data []byte) (*line, error) {
	var l line
	if err := json.Unmarshal(data, &l); err != nil {
		switch {
		case data[0] == '<':
			return nil, r.x.NotAnAPI("a web page")
		case !llm.Present(l.Error):
			return nil, r.x.Broken("it holds a line that is no JSON of the expected form")
		}
	}
	if llm.Present(l.Error) {
		return nil, r.x.Refused(refusal(data))
	}
	if l.Message == nil && !l.Done {
		if said, ok := llm.ParseRefusal(data); ok {
			return nil, r.x.Refused(said)
		}
		return nil, r.x.Broken("it holds a line that is no JSON of the expected form")
	}
	if err := r.message(&l); err != nil {
		return nil, err
	}
	if !l.Done {
		return nil, nil
	}
	return &l, nil
}

// refusal reads the error of a line. Newer servers put the status beside it.
func refusal(data []byte) llm.Refusal {
	said, _ := llm.ParseRefusal(data)
	var beside struct {
		Status     int `json:"status_code"`
		StatusCode int `json:"StatusCode"`
	}
	if json.Unmarshal(data, &beside) == nil && said.Status == 0 {
		if n := max(beside.Status, beside.StatusCode); n >= 400 && n < 600 {
			said.Status = n
		}
	}
	return said
}

// message takes in what a line says.
func (r *reply) message(l *line) error {
	if l.Message == nil {
		return nil
	}
	if err := r.piece(l.Message.Thinking, &r.thought, true); err != nil {
		return err
	}
	if err := r.piece(l.Message.Content, &r.text, false); err != nil {
		return err
	}
	for _, c := range l.Message.Calls {
		if r.bytes += len(c.Function.Args); r.bytes > llm.MaxEvent {
			return r.x.Cut(llm.ErrTooLong)
		}
		r.calls = append(r.calls, domain.ModelCall{ProviderID: c.ID, Name: c.Function.Name, Args: c.Function.Args})
	}
	return nil
}

// piece passes a piece of text on.
func (r *reply) piece(raw json.RawMessage, to *llm.Joiner, thought bool) error {
	var err error
	if r.scratch, err = llm.AppendText(r.scratch[:0], raw); err != nil {
		return r.x.Broken(err.Error())
	}
	return r.pass(to.Add(r.scratch), thought)
}

func (r *reply) pass(s string, thought bool) error {
	r.thinks = r.thinks || thought && s != ""
	return r.emit.Text(s, thought)
}

// end closes the reply by its last line.
func (r *reply) end(l *line) error {
	if err := r.pass(r.thought.End(), true); err != nil {
		return err
	}
	if err := r.pass(r.text.End(), false); err != nil {
		return err
	}
	if u := (domain.Usage{Input: int64(l.Prompt), Output: int64(l.Generated)}); u != (domain.Usage{}) && !r.emit(domain.UsageReported{Usage: u}) {
		return llm.ErrLeft
	}
	if int64(l.Prompt) >= r.facts.window && !r.facts.elsewhere {
		// As many tokens as the window has: the rest of the conversation was
		// left out. What answers half a conversation must not act.
		return r.model.tooLong(r.facts, "the server cut the conversation before the model read it, to the window of")
	}
	reason, err := r.reason(l)
	if err != nil {
		return err
	}
	calls, whole := r.requested()
	reason, calls, why := llm.Ending(reason, calls, whole)
	if why != "" {
		return r.x.Broken(why)
	}
	return r.emit.Close(domain.UsageReported{}, calls, domain.Finish{Reason: reason, Opaque: r.opaque()})
}

// reason maps the reason of the last line. Servers before reasons give none.
// The words of other wires come from servers that stand in for Ollama or pass
// a hosted model on.
func (r *reply) reason(l *line) (domain.FinishReason, error) {
	switch strings.ToLower(l.DoneReason) {
	case "", "stop":
		return domain.FinishStop, nil
	case "length":
		return domain.FinishLength, nil
	case "tool_calls":
		return domain.FinishCalls, nil
	case "content_filter", "refusal":
		return domain.FinishRefusal, nil
	case "load":
		return "", r.x.Broken("it says that the model was loaded, and holds no reply")
	case "unload":
		return "", r.x.Broken("it says that the model was unloaded, and holds no reply")
	}
	return "", r.x.Broken("it ended with an unknown reason")
}

// requested returns the calls of a complete reply. Their arguments are an
// object, or a text that is one, which some models write. It reports false when
// one of them cannot be used; nothing is mended.
func (r *reply) requested() ([]domain.ModelCall, bool) {
	for i, c := range r.calls {
		came := c.Args
		if len(came) > 0 && came[0] == '"' {
			came = llm.AppendArguments(nil, came)
		}
		args, ok := llm.Arguments(came)
		if !ok || c.Name == "" {
			return nil, false
		}
		r.calls[i].Args = bytes.TrimSpace(args)
	}
	return r.calls, true
}

func (r *reply) opaque() *domain.Opaque {
	if !r.thinks {
		return nil
	}
	data, err := json.Marshal(keepsake{Model: r.model.info.Ref.Model})
	if err != nil {
		return nil // a text always encodes
	}
	return &domain.Opaque{Provider: r.model.info.Ref.Provider, Data: data}
}
