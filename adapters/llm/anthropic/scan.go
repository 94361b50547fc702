package anthropic

import "github.com/berth-dev/berth/adapters/llm"

// delta is what the usual event carries: the body of a JSON string, without
// its quotes, as it stood in the event.
type delta struct {
	index int
	think bool // a thought, not a text
	text  []byte
}

// scan reads the event that makes up nearly all of a stream, a piece of text
// or of a thought, in the order of names that servers write it in. It reports
// false for everything else, valid or not, and the caller decodes the event in
// full. What it accepts is valid JSON, and it says of it what the full
// decoding would.
func scan(b []byte) (delta, bool) {
	s := llm.NewScanner(b)
	var d delta
	ok := s.Eat('{') && s.Literal(`"type"`) && s.Eat(':') && s.Literal(`"content_block_delta"`) && s.Eat(',') &&
		s.Literal(`"index"`) && s.Eat(':') && s.Index(&d.index) && s.Eat(',') &&
		s.Literal(`"delta"`) && s.Eat(':') && s.Eat('{') && s.Literal(`"type"`) && s.Eat(':')
	if !ok {
		return d, false
	}
	switch {
	case s.Literal(`"text_delta"`):
		ok = s.Eat(',') && s.Literal(`"text"`)
	case s.Literal(`"thinking_delta"`):
		d.think = true
		ok = s.Eat(',') && s.Literal(`"thinking"`)
	default:
		return d, false
	}
	return d, ok && s.Eat(':') && s.String(&d.text) && s.Eat('}') && s.Eat('}') && s.End()
}
