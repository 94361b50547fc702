package gemini

import "github.com/berth-dev/berth/adapters/llm"

// piece is what the usual chunk carries. Its slices are parts of the chunk.
type piece struct {
	text    []byte // the body of a JSON string, without its quotes
	thought bool
	usage   []byte // an object, nil when there was none
}

// scan reads the chunk that makes up nearly all of a stream: one candidate with
// one text, and counts. It reports false for everything else, valid or not, and
// the caller decodes the chunk in full. What it accepts is valid JSON, and it
// says of it what the full decoding would; so it passes over no name but the
// few it knows to mean nothing here.
//
// A stream is thousands of such chunks, each with a few bytes of text in four
// hundred bytes of repetition.
func scan(b []byte) (piece, bool) {
	s := scanner{Scanner: llm.NewScanner(b)}
	var p piece
	ok := s.Object(func(name []byte) bool {
		switch string(name) {
		case "candidates":
			return s.once(seenCandidates) && s.List(func() bool { return s.candidate(&p) })
		case "usageMetadata":
			return s.once(seenUsage) && s.Peek() == '{' && s.Value(&p.usage)
		case "modelVersion", "responseId", "createTime":
			return s.Value(nil)
		}
		return false
	})
	return p, ok && s.End() && s.seen&seenText != 0
}

// What of a chunk was seen; a name that comes twice is left to the full
// decoding.
const (
	seenCandidates = 1 << iota
	seenUsage
	seenContent
	seenIndex
	seenParts
	seenText
	seenThought
)

type scanner struct {
	llm.Scanner
	seen int
}

func (s *scanner) candidate(p *piece) bool {
	return s.Object(func(name []byte) bool {
		switch string(name) {
		case "content":
			return s.once(seenContent) && s.content(p)
		case "index":
			var n int
			return s.once(seenIndex) && s.Index(&n) && n == 0
		case "safetyRatings":
			return s.Value(nil)
		}
		return false
	})
}

func (s *scanner) content(p *piece) bool {
	return s.Object(func(name []byte) bool {
		switch string(name) {
		case "parts":
			return s.once(seenParts) && s.List(func() bool { return s.part(p) })
		case "role":
			return s.Value(nil)
		}
		return false
	})
}

func (s *scanner) part(p *piece) bool {
	return s.Object(func(name []byte) bool {
		switch string(name) {
		case "text":
			return s.once(seenText) && s.String(&p.text)
		case "thought":
			p.thought = s.Literal("true")
			return s.once(seenThought) && (p.thought || s.Literal("false"))
		}
		return false
	})
}

func (s *scanner) once(bit int) bool {
	fresh := s.seen&bit == 0
	s.seen |= bit
	return fresh
}
