package gemini

import (
	"errors"
	"io"
	"strings"
	"time"

	"github.com/berth-dev/berth/adapters/llm"
	"github.com/berth-dev/berth/core/domain"
)

// reply is one answer as far as it has come.
type reply struct {
	model *Model
	x     *llm.Exchange
	emit  llm.Emit

	text    llm.Joiner
	thought llm.Joiner
	scratch []byte
	calls   []domain.ModelCall
	bytes   int // of the calls' arguments
	usage   *usage
	counts  []byte // newer than usage, as they came; empty when there are none
	finish  string // the finish reason, "" until it came
	blocked bool   // the prompt was refused
	early   bool   // more came after a finish reason
	shown   bool   // something was passed on
	keep    keepsake
}

func newReply(m *Model, x *llm.Exchange, emit llm.Emit) *reply {
	return &reply{model: m, x: x, emit: emit, keep: keepsake{Model: m.info.Ref.Model}}
}

// afterFinish is how long to wait for the end of the body once a reply is
// complete. Some proxies keep the connection open.
const afterFinish = 3 * time.Second

// piece takes in the usual chunk. Its counts are read when they are wanted:
// those of the next chunk replace them.
func (r *reply) piece(p piece) error {
	if p.usage != nil {
		r.counts = append(r.counts[:0], p.usage...)
	}
	r.more()
	r.scratch = llm.Unescape(r.scratch[:0], p.text)
	return r.say(r.scratch, p.thought, "")
}

// more notes that something came. After a finish reason it shows that the
// reason was not the end: models of old gave one with every chunk.
func (r *reply) more() {
	if r.finish != "" {
		r.finish, r.early = "", true
	}
}

// chunk takes in any other chunk.
func (r *reply) chunk(c *chunk) error {
	if c.Usage != nil {
		r.usage, r.counts = c.Usage, r.counts[:0]
	}
	if c.Feedback != nil && c.Feedback.Blocked != "" {
		r.blocked = true
	}
	k := c.first()
	if k == nil {
		return nil
	}
	if k.Content != nil {
		for i := range k.Content.Parts {
			if err := r.part(&k.Content.Parts[i]); err != nil {
				return err
			}
		}
	}
	if k.Finish != "" {
		if r.finish == "" && !r.early {
			r.x.Within(afterFinish)
		}
		if said, why, _ := meaning(r.finish); r.finish == "" || !llm.Lasting(said, why == "") {
			r.finish = k.Finish
		}
	}
	return nil
}

// part takes in a part.
func (r *reply) part(p *came) error {
	if p.strange() {
		f := r.x.Broken("it holds something else than text and calls")
		f.Retry = false
		return f
	}
	if p.Call == nil && !llm.Present(p.Text) && p.Sign == "" {
		return nil
	}
	r.more()
	if p.Call != nil {
		return r.call(p.Call, p.Sign)
	}
	var err error
	if r.scratch, err = llm.AppendText(r.scratch[:0], p.Text); err != nil {
		return r.x.Broken(err.Error())
	}
	return r.say(r.scratch, p.Thought, p.Sign)
}

// say passes a text or a thought on.
func (r *reply) say(piece []byte, thought bool, sign string) error {
	kind, join := textPart, &r.text
	if thought {
		kind, join = thoughtPart, &r.thought
	}
	s := join.Add(piece)
	r.keep.add(kind, len(s), sign)
	r.shown = r.shown || s != ""
	return r.emit.Text(s, thought)
}

// call takes in a call, which comes whole. Nothing of it is mended.
func (r *reply) call(c *asked, sign string) error {
	if c.More || llm.Present(c.Partial) {
		return r.x.Broken("it holds a tool call in pieces, which was not asked for")
	}
	args, ok := llm.Arguments(c.Args)
	if c.Name == "" || !ok {
		return r.x.Broken(llm.NotWhole)
	}
	if r.bytes += len(args); r.bytes > llm.MaxEvent {
		return r.x.Cut(llm.ErrTooLong)
	}
	r.keep.add(callPart, 0, sign)
	r.calls = append(r.calls, domain.ModelCall{ProviderID: c.ID, Name: c.Name, Args: args})
	return nil
}

// costs passes the counts of a reply on that failed after some of it was
// shown: it was paid for all the same.
func (r *reply) costs() {
	if u := r.used(); r.shown && u != nil {
		r.emit(domain.UsageReported{Usage: u.domain()})
	}
}

// used returns the newest counts, nil when there were none.
func (r *reply) used() *usage {
	if len(r.counts) > 0 {
		r.usage = new(usage)
		llm.Counts(r.counts, r.usage)
		r.counts = r.counts[:0]
	}
	return r.usage
}

// end closes the reply when the answer has ended, with why it did.
func (r *reply) end(err error) error {
	if r.blocked && r.finish == "" {
		return r.close(domain.FinishRefusal)
	}
	if r.finish == "" || r.early && err != nil && !errors.Is(err, io.EOF) {
		return r.x.Cut(err)
	}
	reason, why, again := meaning(r.finish)
	if why != "" {
		f := r.x.Broken(why)
		f.Retry = again
		return f
	}
	if reason == domain.FinishStop && len(r.calls) > 0 {
		reason = domain.FinishCalls
	}
	return r.close(reason)
}

func (r *reply) close(reason domain.FinishReason) error {
	for _, thought := range []bool{true, false} {
		kind, join := textPart, &r.text
		if thought {
			kind, join = thoughtPart, &r.thought
		}
		if s := join.End(); s != "" {
			r.keep.grow(kind, len(s))
			if err := r.emit.Text(s, thought); err != nil {
				return err
			}
		}
	}
	var counts domain.UsageReported
	if used := r.used(); used != nil {
		counts.Usage = used.domain()
	}
	if reason != domain.FinishCalls {
		r.calls = nil
	}
	return r.emit.Close(counts, r.calls, domain.Finish{Reason: reason, Opaque: r.keep.opaque(r.model.info.Ref.Provider, r.calls)})
}

// meaning maps a finish reason. Why is not empty for one that is no good end,
// and again tells whether the same request may end better.
func meaning(finish string) (reason domain.FinishReason, why string, again bool) {
	switch name := strings.ToUpper(finish); name {
	case "STOP":
		return domain.FinishStop, "", false
	case "MAX_TOKENS":
		return domain.FinishLength, "", false
	case "SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "LANGUAGE", "MODEL_ARMOR",
		"IMAGE_SAFETY", "IMAGE_PROHIBITED_CONTENT", "IMAGE_RECITATION":
		return domain.FinishRefusal, "", false
	case "MALFORMED_FUNCTION_CALL":
		return "", "the model wrote a tool call that cannot be read (MALFORMED_FUNCTION_CALL)", true
	case "UNEXPECTED_TOOL_CALL":
		return "", "the model called a tool that it was not given (UNEXPECTED_TOOL_CALL)", true
	case "TOO_MANY_TOOL_CALLS":
		return "", "the model called too many tools in a row (TOO_MANY_TOOL_CALLS)", true
	case "MALFORMED_RESPONSE":
		return "", "the model wrote something that cannot be read (MALFORMED_RESPONSE)", true
	case "MISSING_THOUGHT_SIGNATURE":
		return "", "the provider misses the signature of a thought in the conversation (MISSING_THOUGHT_SIGNATURE)", false
	default:
		return "", "it ended with the finish reason \"" + llm.PlainWord(name) + "\"", true
	}
}
