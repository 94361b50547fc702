package domain

import "strings"

// streamed gathers what a turn's Streamed records hold of one reply. A text is
// put together only when somebody asks for it.
type streamed struct {
	said   AssistantSaid // without the texts of its parts
	pieces [][]string    // of each part
}

func (s *streamed) add(r Streamed) {
	s.said.Turn, s.said.Agent, s.said.Model, s.said.Truncated = r.Turn, r.Agent, r.Model, true
	for _, p := range r.Parts {
		n := len(s.said.Parts)
		if n == 0 || s.said.Parts[n-1].ID != p.ID {
			s.said.Parts = append(s.said.Parts, MessagePart{ID: p.ID, Thought: p.Thought})
			s.pieces = append(s.pieces, nil)
			n++
		}
		s.pieces[n-1] = append(s.pieces[n-1], p.Text)
	}
}

// reply is the record of what was gathered; it has no parts when that is
// nothing.
func (s *streamed) reply() AssistantSaid {
	said := s.said
	said.Parts = make([]MessagePart, len(s.pieces))
	for i, p := range s.said.Parts {
		p.Text = strings.Join(s.pieces[i], "")
		said.Parts[i] = p
	}
	return said
}
